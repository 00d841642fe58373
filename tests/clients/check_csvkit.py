"""csvkit: csvclean finds nothing to clean, csvcut the ids as they are."""

import subprocess
import sys
from pathlib import Path

folder, tools = Path(sys.argv[1]), Path(sys.executable).parent
for format in ("csv", "csv-excel", "csv-raw"):
    file = str(folder / "odd" / format / "odd.csv")
    clean = [str(tools / "csvclean"), "--length-mismatch", file]
    done = subprocess.run(clean, capture_output=True, text=True, check=False)
    assert "length-mismatch" not in done.stderr, done.stderr
    cut = [str(tools / "csvcut"), "-c", "id", file]
    ids = subprocess.run(cut, capture_output=True, text=True, check=True).stdout.split()
    assert ids[1:] == ["007", "008", "0009", "010", "11", "012"], ids
print("no row of another length; leading zeros kept")
