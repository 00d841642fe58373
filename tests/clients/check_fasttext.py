"""fastText: learns from our lines; its labels are ours, spaces as underscores."""

import json
import sys
from pathlib import Path

import fasttext

folder = Path(sys.argv[1])
expected = json.loads((folder / "expected.json").read_text())
for name in ("demo", "crowd", "odd"):
    path = folder / name / "fasttext" / f"{name}.fasttext"
    assert len(path.read_text("utf-8").splitlines()) == expected[name][0]
    model = fasttext.train_supervised(str(path), loss="ova", epoch=2, dim=4, minCount=1, verbose=0)
    ours = {"__label__" + label.replace(" ", "_") for label in expected[f"{name} labels"]}
    assert model.labels
    assert set(model.labels) <= ours
print(f"{len(model.labels)} labels of odd names learned")
