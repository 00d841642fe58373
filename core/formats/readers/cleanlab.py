"""cleanlab's lists as one JSON object, and its table of label issues.

Owns `{"labels": [[0,2],[],[1]], "features": [[...]], "label_names": [...]}`: given labels are our
candidates, `pred_probs` the networks' predictions, made without an instance's own labels under
`studio`, as cleanlab wants them. (Confidences are 0 outside the candidates: taken for predictions
they would agree with every given label.) The issues table is written only.
"""

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

from core.data.dataset import CandidateDataset, Features, Labels
from core.formats.shared.findings import Findings, refuse
from core.formats.shared.json_text import features_of_rows, load_json
from core.formats.shared.label_sets import (
    RESOLVED,
    display_texts,
    is_numbering,
    matrix_of,
    resolved_labels,
    sets_of,
)
from core.formats.shared.limits import check_shape
from core.formats.shared.mapping import ColumnMapping, ReadResult
from core.formats.shared.sparse_rows import checked_csr

NAME = "cleanlab"
EXTENSIONS = (".json",)

CSR_KEYS = ("data", "indices", "indptr", "shape")
ISSUE_COLUMNS = ("", "is_label_issue", "label_score", "given_label", "predicted_label")
FORMULA = ("=", "+", "-", "@", "\t", "\r")


def sniff(head: bytes, path: Path) -> bool:
    """Whether this is one JSON object with labels as a list of lists."""
    start = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if not start.startswith(b"{") or b'"labels"' not in start:
        return False
    if b'"text"' in start and b'"features"' not in start:
        return False
    after = start.split(b'"labels"', 1)[1].lstrip().removeprefix(b":").lstrip()
    return after.startswith(b"[") and after[1:].lstrip().startswith(b"[")


def read(path: Path, mapping: ColumnMapping | None = None) -> ReadResult:
    """Read labels and features; the rest is optional."""
    findings = Findings()
    content = load_json(path, findings)
    if not isinstance(content, dict) or "labels" not in content or "features" not in content:
        rule = "a cleanlab file is an object with labels and features"
        refuse(rule, 'Write {"labels": [[0,2],[]], "features": [[0.5],[1.0]]}.')
    given = {k: _sets(content[k], k, findings) for k in ("labels", "truth") if k in content}
    findings.stop_if_fatal()
    names = _names(content, "label_names") or _numbered(given)
    if "resolved" in content or "confidences" in content:
        findings.add(RESOLVED.message, RESOLVED.fix)
    labels = {key: _matrix(sets, len(names), key) for key, sets in given.items()}
    dataset = CandidateDataset(
        features=_features(content["features"]),
        candidates=labels["labels"],
        truth=labels.get("truth"),
        label_names=names,
        ids=_names(content, "ids"),
        feature_names=_names(content, "feature_names"),
        display=_display(content),
    )
    return ReadResult(dataset, findings.problems(), mapping, NAME)


def _sets(given: Any, key: str, findings: Findings) -> list[list[int]]:
    if not isinstance(given, list):
        refuse("labels must be a list of lists", "Write [[0,2],[],[1]].", column=key)
    for i, members in enumerate(given):
        if not isinstance(members, list) or not all(_is_label(label) for label in members):
            rule = "labels must be lists of whole numbers from 0"
            findings.add(rule, "Correct it.", fatal=True, row=i, column=key, value=members)
    return given


def _is_label(label: Any) -> bool:
    return isinstance(label, int) and not isinstance(label, bool) and label >= 0


def _numbered(given: dict[str, list[list[int]]]) -> list[str]:
    n_labels = 1 + max(_highest(sets) for sets in given.values())
    check_shape(0, 0, n_labels)
    return [f"label{j}" for j in range(n_labels)]


def _highest(sets: list[list[int]]) -> int:
    return max((label for members in sets for label in members), default=-1)


def _matrix(sets: list[list[int]], n_labels: int, key: str) -> Labels:
    if _highest(sets) >= n_labels:
        rule = f"label numbers must stay below the {n_labels} label names"
        refuse(rule, "Name every label.", column=key, value=_highest(sets))
    return matrix_of(sets, n_labels)


def _names(content: dict[str, Any], key: str) -> list[str]:
    names = content.get(key, [])
    if not isinstance(names, list) or not all(isinstance(n, (str, int)) for n in names):
        refuse("names must be a list of texts", "Correct it.", column=key)
    return [str(name) for name in names]


def _features(given: Any) -> Features:
    if not isinstance(given, dict):
        return features_of_rows(given if isinstance(given, list) else [])
    missing = [key for key in CSR_KEYS if not isinstance(given.get(key), list)]
    if missing:
        refuse("sparse features need data, indices, indptr and shape", "Add them.", value=missing)
    return checked_csr(*(given[key] for key in CSR_KEYS))


def _display(content: dict[str, Any]) -> pd.DataFrame | None:
    columns = content.get("display", {})
    is_table = isinstance(columns, dict) and all(isinstance(c, list) for c in columns.values())
    if not is_table or len({len(column) for column in columns.values()}) > 1:
        refuse("display must be lists of one length, by name", "Correct it.", column="display")
    return pd.DataFrame(columns) if columns else None


def write(
    dataset: CandidateDataset,
    path: Path,
    mapping: ColumnMapping | None = None,
    resolution: Any = None,
) -> None:
    """Write given labels first, so that the file is told by its beginning."""
    numbers = range(dataset.n_labels)
    content: dict[str, Any] = {"labels": sets_of(dataset.candidates, numbers)}
    content["label_names"] = list(dataset.label_names)
    if dataset.truth is not None:
        content["truth"] = sets_of(dataset.truth, numbers)
    if not is_numbering(dataset.ids, ""):
        content["ids"] = list(dataset.ids)
    if not is_numbering(dataset.feature_names, "x"):
        content["feature_names"] = list(dataset.feature_names)
    if resolution is not None:
        content["resolved"] = sets_of(resolution.labels, numbers)
        content["confidences"] = np.asarray(resolution.confidences, np.float32).tolist()
        if resolution.predictions is not None:
            content["pred_probs"] = np.asarray(resolution.predictions, np.float32).tolist()
    content |= {"display": display_texts(dataset), "features": _listed(dataset.features)}
    path.write_text(json.dumps(content, ensure_ascii=False, allow_nan=False) + "\n", "utf-8")


def _listed(features: Features) -> Any:
    if not sp.issparse(features):
        return features.tolist()
    parts = (features.data, features.indices, features.indptr, np.asarray(features.shape))
    return {key: part.tolist() for key, part in zip(CSR_KEYS, parts, strict=True)}


def write_issues(
    dataset: CandidateDataset,
    path: Path,
    mapping: ColumnMapping | None = None,
    resolution: Any = None,
) -> None:
    """Write cleanlab's issues table; an instance's score is that of its worst candidate."""
    numbers = range(dataset.n_labels)
    given = sets_of(dataset.candidates, numbers)
    predicted = sets_of(resolved_labels(dataset, resolution), numbers)
    worst = _worst(dataset, resolution)
    with path.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(ISSUE_COLUMNS)
        for i, instance in enumerate(dataset.ids):
            is_issue = given[i] != predicted[i]
            table.writerow([_safe(instance), is_issue, worst[i], given[i], predicted[i]])


def _worst(dataset: CandidateDataset, resolution: Any) -> list[float]:
    """Return the least confidence among an instance's candidates; 1 where there are none."""
    if resolution is None:
        return [1.0] * dataset.n_instances
    confidences = np.where(dataset.candidates > 0, resolution.confidences, 1.0)
    return [float(f"{value:.6g}") for value in confidences.min(axis=1)]


def _safe(text: str) -> str:
    """Return text that no spreadsheet takes for a formula."""
    return f"'{text}" if text.startswith(FORMULA) else text
