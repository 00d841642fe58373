"""Weka: the attributes of our ARFF are features and labels, 0 and 1."""

import json
import subprocess
import sys
from pathlib import Path

folder = Path(sys.argv[1])
n, d, n_labels = json.loads((folder / "expected.json").read_text())["emotions"]
java = ["java", "-cp", sys.argv[2], "weka.core.Instances"]
done = subprocess.run([*java, str(folder / "emotions.arff")], capture_output=True, text=True)
assert done.returncode == 0, done.stderr
told = done.stdout.split()
assert told[told.index("Instances:") + 1] == str(n)
assert told[told.index("Attributes:") + 1] == str(d + n_labels)
odd = subprocess.run([*java, str(folder / "odd/arff/odd.arff")], capture_output=True, text=True)
assert odd.returncode == 0, odd.stderr
assert "word_sky" in odd.stdout
print(f"{n} instances, {d} + {n_labels} attributes")
