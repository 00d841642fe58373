"""What is written for other programs: Argilla, FiftyOne, Hugging Face, cleanlab's issues, Excel.

Owns the names these go by, and the keys of those that are records of JSON. Confidences go where
each has a place for them: a list of scores in Argilla's suggestion, a parallel list for Hugging
Face. While nothing is resolved the candidates stand in for the labels, without confidences.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from core.data.dataset import CandidateDataset
from core.formats.readers import fiftyone, huggingface
from core.formats.readers.cleanlab import write_issues
from core.formats.readers.delimited import CSV
from core.formats.readers.labelstudio.tasks import write_local_files
from core.formats.shared.json_text import write_json_lines, write_json_list
from core.formats.shared.label_sets import (
    decided_labels,
    display_texts,
    resolved_labels,
    sets_of,
)
from core.formats.shared.mapping import ColumnMapping

EXTENSIONS = {
    "argilla": ".json",  # one list: what `Dataset.records.from_json` reads
    "fiftyone": "",  # a folder
    "huggingface": ".jsonl",
    "huggingface-parquet": ".parquet",
    "cleanlab-issues": ".csv",
    "csv-excel": ".csv",  # with a byte-order mark, so that its letters are right
    "csv-raw": ".csv",  # text that looks like a formula is left alone
    "labelstudio-local-files": ".json",
}
BASES = {"csv-excel": "csv", "csv-raw": "csv", "labelstudio-local-files": "labelstudio"}
"""The format of ours that those are, with an option."""

QUESTION = "labels"
AGENT = "plain"

Record = dict[str, Any]


@dataclass(frozen=True)
class Row:
    """One instance as every flavour needs it."""

    id: str
    display: dict[str, str]
    candidates: list[str]
    labels: list[str]
    confidences: dict[str, float] | None
    decided: dict[tuple[str, str], list[str]]  # (annotator, date) -> labels decided to be true

    def confidence(self, names: list[str]) -> list[float] | None:
        return None if self.confidences is None else [self.confidences[name] for name in names]


def write(
    dataset: CandidateDataset,
    path: Path,
    mapping: ColumnMapping | None = None,
    resolution: Any = None,
    *,
    name: str = "argilla",
    **options: Any,
) -> None:
    """Write the data set in the flavour of this name."""
    if name in WRITERS:
        WRITERS[name](dataset, path, mapping, resolution, **options)
        return
    made = map(FLAVOURS[name], _rows(dataset, resolution))
    (write_json_list if EXTENSIONS[name] == ".json" else write_json_lines)(path, made)


def _rows(dataset: CandidateDataset, resolution: Any) -> Iterator[Row]:
    display = display_texts(dataset)
    candidates = sets_of(dataset.candidates, dataset.label_names)
    labels = sets_of(resolved_labels(dataset, resolution), dataset.label_names)
    for i, instance in enumerate(dataset.ids):
        yield Row(
            id=instance,
            display={key: texts[i] for key, texts in display.items()},
            candidates=candidates[i],
            labels=labels[i],
            confidences=_confidences(dataset, resolution, i),
            decided=decided_labels(dataset, resolution, i),
        )


def _confidences(dataset: CandidateDataset, resolution: Any, row: int) -> dict[str, float] | None:
    if resolution is None:
        return None
    values = np.asarray(resolution.confidences[row], float).tolist()
    return dict(zip(dataset.label_names, values, strict=True))


def argilla_record(row: Row) -> Record:
    """Return a record as `rg.Record.from_dict` takes it.

    A response there belongs to a user of that server, whom we do not know: who decided goes into
    the metadata. An empty suggestion is refused there, so there is none.
    """
    suggestion: Record = {"value": row.labels, "agent": AGENT, "type": "model"}
    if (scores := row.confidence(row.labels)) is not None:
        suggestion["score"] = scores
    people = sorted({annotator for annotator, _ in row.decided})
    return {
        "id": row.id,
        "fields": row.display or {"id": row.id},
        "metadata": {"candidates": row.candidates, **({"decided_by": people} if people else {})},
        "suggestions": {QUESTION: suggestion} if row.labels else {},
        "responses": {},
        "vectors": {},
    }


def huggingface_record(row: Row) -> Record:
    """Return label names, castable to `Sequence(ClassLabel)`; confidences follow the candidates."""
    record: Record = {**row.display, "id": row.id, "labels": row.labels}
    record["candidate_labels"] = row.candidates
    if (confidences := row.confidence(row.candidates)) is not None:
        record["confidence"] = confidences
    return record


FLAVOURS: dict[str, Callable[[Row], Record]] = {
    "argilla": argilla_record,
    "huggingface": huggingface_record,
}

WRITERS: dict[str, Callable[..., None]] = {
    "fiftyone": fiftyone.write,
    "huggingface-parquet": huggingface.write_parquet,
    "cleanlab-issues": write_issues,
    "csv-excel": partial(CSV.write, bom=True),
    "csv-raw": partial(CSV.write, escape=False),
    "labelstudio-local-files": write_local_files,
}
