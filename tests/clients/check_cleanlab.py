"""cleanlab: finds the same label issues in our file as when it is fed by hand."""

import json
import sys
from pathlib import Path

import numpy as np
from cleanlab.multilabel_classification.filter import find_label_issues

folder = Path(sys.argv[1])
content = json.loads((folder / "emotions.json").read_text("utf-8"))
found = find_label_issues(content["labels"], np.array(content["pred_probs"]))
given = [np.flatnonzero(row).tolist() for row in np.load(folder / "candidates.npy")]
by_hand = find_label_issues(given, np.load(folder / "predictions.npy").astype(float))
assert found.any()
assert (found == by_hand).all()
print(f"{found.sum()} of {len(found)} instances flagged, the same as by hand")
