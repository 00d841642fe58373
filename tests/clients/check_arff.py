"""liac-arff, scipy and scikit-multilearn: features and labels are what they are, nothing else."""

import json
import sys
from pathlib import Path

import arff
import numpy as np
from scipy.io import arff as scipy_arff
from skmultilearn.dataset import load_from_arff

folder = Path(sys.argv[1])
n, d, n_labels = json.loads((folder / "expected.json").read_text())["emotions"]
table = arff.loads((folder / "emotions.arff").read_text("utf-8"))
assert len(table["attributes"]) == d + n_labels
assert len(table["data"]) == n
data, meta = scipy_arff.loadarff(folder / "emotions.arff")
assert data.shape == (n,)
assert len(meta.names()) == d + n_labels
odd = arff.loads((folder / "odd" / "arff" / "odd.arff").read_text("utf-8"), return_type=arff.LOD)
labels = json.loads((folder / "expected.json").read_text())["odd labels"]
assert [name for name, _ in odd["attributes"][-len(labels) :]] == labels
assert "word_sky" in [name for name, _ in odd["attributes"]]
for name in ("odd", "crowd"):  # sparse: sized by what its last row names
    found = json.loads((folder / "expected.json").read_text())
    path = str(folder / name / "arff" / f"{name}.arff")
    X, Y = load_from_arff(path, len(found[f"{name} labels"]), load_sparse=True)
    assert X.shape == tuple(found[name][:2])
    assert Y.shape == (found[name][0], found[name][2])
X, Y = load_from_arff(str(folder / "emotions.arff"), label_count=n_labels, label_location="end")
assert X.shape == (n, d)
assert Y.shape == (n, n_labels)
assert set(np.unique(Y.toarray())) <= {0, 1}
print(f"{d} features and {n_labels} labels in all three; odd names kept")
