"""Ours: what `datasets` saved is read, splits together, classes by name."""

import sys
from pathlib import Path

from core.formats import read

folder = Path(sys.argv[1])
splits = read(folder / "splits").dataset
assert list(splits.ids) == ["007", "008", "0009", "010", "11", "012"]
assert splits.display is not None
assert splits.display["split"].tolist() == ["train"] * 3 + ["test"] * 3
assert "Übung" in splits.label_names
single = read(folder / "single.parquet")
assert single.dataset.label_names == ("sea", "sky")
assert single.dataset.candidates.tolist() == [[1, 0], [0, 1], [0, 1]]
print("a DatasetDict of two splits; names of single classes in Parquet")
