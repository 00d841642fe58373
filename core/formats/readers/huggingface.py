"""Hugging Face `datasets` folders (`save_to_disk`), where that package is installed.

Owns the columns: `labels` or `candidate_labels` as lists of class numbers or names, `truth`,
`features` or `embedding`, else the words of `text`; other plain columns are for display.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from core.data.dataset import CandidateDataset, Features
from core.errors import PlainError
from core.formats.shared.findings import Findings, refuse
from core.formats.shared.json_text import features_of_rows, record_features
from core.formats.shared.label_sets import (
    display_texts,
    matrix_of_names,
    resolved_labels,
    sets_of,
)
from core.formats.shared.mapping import ColumnMapping, ReadResult
from core.formats.shared.text_features import word_features

NAME = "datasets"
EXTENSIONS = ()

LABEL_COLUMNS = ("candidate_labels", "labels", "label")
FEATURE_COLUMNS = ("features", "embedding", "embeddings")
OWN_COLUMNS = (*LABEL_COLUMNS, *FEATURE_COLUMNS, "truth", "confidence", "id")


def sniff(head: bytes, path: Path) -> bool:
    """Whether this is a folder that `save_to_disk` wrote."""
    return path.is_dir() and (path / "dataset_info.json").is_file()


def read(path: Path, mapping: ColumnMapping | None = None) -> ReadResult:
    """Read one split; a folder of several is refused by name."""
    table = _package().load_from_disk(str(path))
    if isinstance(table, dict):
        fix = f"Choose one of its folders: {', '.join(map(str, table))}."
        refuse("one split can be read at a time", fix)
    findings = Findings()
    columns = {name: list(table[name]) for name in table.column_names}
    key = next((name for name in LABEL_COLUMNS if name in columns), None)
    if key is None:
        refuse("a column of labels is needed", "Name it candidate_labels.", value=list(columns))
    offered, classes = _named(table, columns, key)
    truth = _named(table, columns, "truth")[0] if "truth" in columns else None
    names = classes or sorted({n for sets in (offered, truth or []) for s in sets for n in s})
    display = _display(columns)
    candidates = matrix_of_names(offered, names, findings, "a candidate")
    truths = None if truth is None else matrix_of_names(truth, names, findings, "a true label")
    findings.stop_if_fatal()
    features, words = _features(columns, display)
    ids = [str(value) for value in columns.get("id", ())]
    dataset = CandidateDataset(features, candidates, names, ids, words, truths, display)
    return ReadResult(dataset, findings.problems(), mapping, NAME)


def _package() -> Any:
    try:
        import datasets  # heavy, and not everybody's: imported where it is used
    except ImportError:
        hint = "Install it with: pip install datasets"
        raise PlainError("Hugging Face folders need the package `datasets`.", "", hint) from None
    return datasets


def _named(table: Any, columns: dict[str, Any], key: str) -> tuple[list[list[str]], list[str]]:
    """Return the label sets of a column by name, and the names of its classes if it has them."""
    feature = table.features[key]
    classes = list(getattr(getattr(feature, "feature", None), "names", None) or ())
    sets = [value if isinstance(value, (list, tuple)) else [value] for value in columns[key]]
    for i, members in enumerate(sets):
        if any(isinstance(m, int) and not 0 <= m < len(classes or sets) for m in members):
            refuse("class numbers must have names", "Correct it.", row=i, column=key, value=members)
    return [[_class_name(member, classes) for member in members] for members in sets], classes


def _class_name(member: Any, classes: Sequence[str]) -> str:
    return classes[member] if isinstance(member, int) and classes else str(member)


def _features(columns: dict[str, Any], display: pd.DataFrame | None) -> tuple[Features, list[str]]:
    key = next((name for name in FEATURE_COLUMNS if name in columns), None)
    if key is not None:
        return features_of_rows(columns[key]), []
    if display is None or "text" not in display:
        refuse("a column of features or text is needed", "Add features.", value=list(columns))
    return word_features([str(text) for text in display["text"]], "text")


def _display(columns: dict[str, Any]) -> pd.DataFrame | None:
    plain = (str, int, float, bool, type(None))
    shown = {
        name: values
        for name, values in columns.items()
        if name not in OWN_COLUMNS and all(isinstance(value, plain) for value in values)
    }
    return pd.DataFrame(shown) if shown else None


def write(
    dataset: CandidateDataset,
    path: Path,
    mapping: ColumnMapping | None = None,
    resolution: Any = None,
) -> None:
    """Write a folder: labels as sequences of classes, confidences in the candidates' order."""
    datasets = _package()
    numbers = range(dataset.n_labels)
    columns: dict[str, Any] = {**display_texts(dataset), "id": list(dataset.ids)}
    columns["labels"] = sets_of(resolved_labels(dataset, resolution), numbers)
    columns["candidate_labels"] = sets_of(dataset.candidates, numbers)
    if dataset.truth is not None:
        columns["truth"] = sets_of(dataset.truth, numbers)
    if resolution is not None:
        rows = zip(resolution.confidences, columns["candidate_labels"], strict=True)
        columns["confidence"] = [[float(row[j]) for j in members] for row, members in rows]
    columns["features"] = [record_features(dataset.features, i) for i in range(len(dataset.ids))]
    table = datasets.Dataset.from_dict(columns)
    labels = datasets.Sequence(datasets.ClassLabel(names=list(dataset.label_names)))
    for name in ("labels", "candidate_labels", "truth"):
        if name in columns:
            table = table.cast_column(name, labels)
    table.save_to_disk(str(path))
