"""scipy: our .mat file, every table a table of doubles."""

import json
import sys
from pathlib import Path

from scipy.io import loadmat

folder = Path(sys.argv[1])
n, d, n_labels = json.loads((folder / "expected.json").read_text())["emotions"]
found = loadmat(folder / "emotions.mat")
assert found["data"].shape == (n, d)
for name in ("data", "partial_labels", "target", "resolved_labels", "confidences"):
    assert found[name].dtype == float, name
print("data, partial_labels, target, resolved_labels, confidences are double")
