"""LibreOffice: the table for spreadsheets has its letters right, its first column is called id."""

import subprocess
import sys
from pathlib import Path

folder = Path(sys.argv[1])
source, out = folder / "odd/csv-excel/odd.csv", folder / "libreoffice"
home = f"-env:UserInstallation=file://{folder.resolve()}/libreoffice-home"
told = "Text - txt - csv (StarCalc):44,34,76"  # without a window it asks nobody for the encoding
command = ["soffice", home, "--headless", f"--infilter={told}", "--convert-to", f"csv:{told}"]
command += ["--outdir", str(out), str(source)]
done = subprocess.run(command, capture_output=True, text=True, timeout=240)
text = (out / "odd.csv").read_text("utf-8")
assert text.startswith("id,"), text[:20]
for letters in ("Übung", "東京", "日本"):
    assert letters in text, (letters, text[:300], done.stderr)
print("Übung, 東京 and 日本 are what they were")
