"""Hugging Face datasets: JSONL over 10 MB, Parquet, CSV, a folder; and a DatasetDict for us."""

import json
import sys
from pathlib import Path

from datasets import (
    ClassLabel,
    Dataset,
    DatasetDict,
    Features,
    Value,
    load_dataset,
    load_from_disk,
)

folder = Path(sys.argv[1])
cache = {"cache_dir": str(folder / "cache"), "split": "train"}
expected = json.loads((folder / "expected.json").read_text())
odd = expected["odd labels"]

many = load_dataset("json", data_files=str(folder / "many.hf.jsonl"), **cache)
assert many.num_rows == 100_000
assert many.features["confidence"].feature.dtype == "float64"
assert many.features["labels"].feature.dtype == "string"
wide = load_dataset("json", data_files=str(folder / "many.jsonl"), **cache)
assert wide.num_rows == 100_000
assert wide.features["conf_l0"].dtype == "float64"
assert wide.features["label_l0"].dtype == "int64"
parquet = load_dataset("parquet", data_files=str(folder / "many.parquet"), **cache)
assert parquet.num_rows == 100_000
assert parquet.features["conf_l0"].dtype == "float32"
table = load_dataset("csv", data_files=str(folder / "many.csv"), **cache)
assert table.num_rows == 100_000
assert table.features["conf_l0"].dtype == "float64"

classes = load_dataset(
    "parquet", data_files=str(folder / "odd/huggingface-parquet/odd.parquet"), **cache
)
saved = load_from_disk(str(folder / "odd/datasets/odd"))
for one in (classes, saved):
    assert one.features["labels"].feature.names == odd
    assert one["id"][0] == "007"
    assert isinstance(one["candidate_labels"][1], list)
assert saved.features["confidence"].feature.dtype == "float32"
made = saved.select_columns(["id", "text", "candidate_labels"])
DatasetDict(train=made.select(range(3)), test=made.select(range(3, 6))).save_to_disk(
    str(folder / "splits")
)
kinds = Features({"text": Value("string"), "label": ClassLabel(names=["sea", "sky"])})
rows = {"text": ["waves at sea", "red sky", "grey sky"], "label": [0, 1, 1]}
Dataset.from_dict(rows, features=kinds).to_parquet(str(folder / "single.parquet"))
print("100,000 rows of JSONL, Parquet and CSV with their types; class names of Parquet and folder")
