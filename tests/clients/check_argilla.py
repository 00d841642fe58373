"""Argilla's SDK: every record of our file is one of its records, with suggestion and scores."""

import json
import sys
from pathlib import Path

import argilla as rg

folder = Path(sys.argv[1])
for name in ("demo", "odd", "pictures", "crowd"):
    records = json.loads((folder / name / "argilla" / f"{name}.json").read_text("utf-8"))
    made = [rg.Record.from_dict(record) for record in records]
    assert len(made) == len(records)
    for record in made:
        record.api_model()
    scored = [one for record in made for one in record.suggestions]
    assert scored
    assert all(len(one.score) == len(one.value) for one in scored)
print("every record of four files loads, scores beside the suggestions")
