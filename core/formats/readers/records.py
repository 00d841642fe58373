"""What is written for other programs only: Argilla, FiftyOne, Hugging Face, cleanlab's issues.

Owns the names these go by, and the keys of the three that are JSON. Confidences go where each has a
place for them: a list of scores in Argilla's suggestion, a confidence per classification in
FiftyOne, a parallel list for Hugging Face. While nothing is resolved the candidates stand in for
the labels, without confidences.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from core.data.dataset import CandidateDataset
from core.formats.readers.cleanlab import write_issues
from core.formats.shared.json_text import write_json_lines, write_json_list
from core.formats.shared.label_sets import (
    decided_labels,
    display_texts,
    image_column,
    resolved_labels,
    sets_of,
)
from core.formats.shared.mapping import ColumnMapping

EXTENSIONS = {
    "argilla": ".json",  # one list: what `Dataset.records.from_json` reads
    "fiftyone": ".jsonl",
    "huggingface": ".jsonl",
    "cleanlab-issues": ".csv",
}

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
) -> None:
    """Write one record per instance, in the flavour of this name."""
    if name == "cleanlab-issues":
        write_issues(dataset, path, mapping, resolution)
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


def fiftyone_record(row: Row) -> Record:
    """Return labels and candidates as `fo.Classifications`, a confidence on each."""
    image = image_column(row.display)
    shown = {key: text for key, text in row.display.items() if key != image}
    return {
        **shown,
        "id": row.id,
        **({} if image is None else {"filepath": row.display[image]}),
        "labels": _classifications(row.labels, row.confidence(row.labels)),
        "candidate_labels": _classifications(row.candidates, row.confidence(row.candidates)),
    }


def _classifications(labels: list[str], confidences: list[float] | None) -> Record:
    if confidences is None:
        return {"classifications": [{"label": label} for label in labels]}
    pairs = zip(labels, confidences, strict=True)
    return {"classifications": [{"label": label, "confidence": value} for label, value in pairs]}


def huggingface_record(row: Row) -> Record:
    """Return label names, castable to `Sequence(ClassLabel)`; confidences follow the candidates."""
    record: Record = {**row.display, "id": row.id, "labels": row.labels}
    record["candidate_labels"] = row.candidates
    if (confidences := row.confidence(row.candidates)) is not None:
        record["confidence"] = confidences
    return record


FLAVOURS: dict[str, Callable[[Row], Record]] = {
    "argilla": argilla_record,
    "fiftyone": fiftyone_record,
    "huggingface": huggingface_record,
}
