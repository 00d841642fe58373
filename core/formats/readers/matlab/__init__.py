"""MATLAB `.mat` (v5 and 7.3) as partial multi-label data is shared: data, target, partial_labels.

Owns the names of variables and which way round they are. The bytes are decoded by a child process
(`decoding`), because the C libraries that parse them can be crashed by a damaged file.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import scipy.sparse as sp

from core.data.dataset import NO_FEATURE, CandidateDataset, Features, no_features
from core.errors import ExportError
from core.formats.readers.matlab.decoding import Variables, decoded
from core.formats.readers.matlab.orientation import orientation
from core.formats.shared.cells import plain_key
from core.formats.shared.findings import Findings, refuse
from core.formats.shared.label_sets import RESOLVED, TRUTH_ONLY, display_texts, is_numbering
from core.formats.shared.limits import check_shape
from core.formats.shared.mapping import ColumnMapping, ReadResult
from core.formats.shared.original import exact_features_of
from core.formats.shared.tabular import NO_FEATURES
from core.formats.shared.variables import (
    ANSWERS,
    CANDIDATES,
    DATA,
    MAX_CLASSES,
    NAMES,
    ROLES,
    SURELY_TRUE,
    TESTED,
    TRUTH,
    called,
    is_vector_of_classes,
    named_by_content,
    table_of_classes,
    votes_of_classes,
)

NAME = "matlab"
EXTENSIONS = (".mat",)

TEXTS = ("label_names", "ids", "feature_names", "display_names", "display_values")
RESOLVED_KEY = "resolved_labels"
WANTED = "|".join(
    f"({one.pattern})" for one in (DATA, TRUTH, SURELY_TRUE, CANDIDATES, ANSWERS, TESTED, NAMES)
)
WANTED += "|" + "|".join(map(plain_key, (*TEXTS, RESOLVED_KEY)))
MAX_VARIABLE = 2**31 - 2**16  # bytes a v5 file can hold in one variable


def sniff(head: bytes, path: Path) -> bool:
    """Whether this begins as MATLAB files do: its text header, or HDF5 after one."""
    is_v5 = head[:7] == b"MATLAB " and head[126:128] in (b"IM", b"MI")
    is_hdf5 = any(head[at : at + 8] == b"\x89HDF\r\n\x1a\n" for at in (0, 512))
    return is_v5 or is_hdf5


def read(path: Path, mapping: ColumnMapping | None = None) -> ReadResult:
    """Read the variables this program knows and turn them the right way round."""
    return _read(decoded(path, WANTED), mapping)[0]


def exact_features(path: Path, mapping: ColumnMapping) -> Features:
    """Return the features with the type they have in the file."""
    return _read(decoded(path, WANTED), mapping)[1]


def _read(variables: Variables, mapping: ColumnMapping | None) -> tuple[ReadResult, Features]:
    """Return what was read, and the features as they are in the file."""
    findings = Findings()
    tables = {name: one for name, one in variables.items() if _is_table(one)}
    names = _roles(tables, findings)
    if _are_answers(tables, names):
        return _crowd(tables, names, variables, findings, mapping)
    if "features" not in names or not {"candidates", "truth"} & names.keys():
        fix = "Name the features data (N x D) and the candidates partial_labels (L x N)."
        refuse("a .mat file needs features and labels", fix, value=", ".join(variables) or "none")
    data = tables[names["features"]]
    candidates, truth = (
        tables[names[role]] if role in names else None for role in ("candidates", "truth")
    )
    if called([*tables], TESTED):
        rule = f"{called([*tables], TESTED)[0]} is left out: only what is for training is read"
        findings.add(rule, "Join both in MATLAB if all of them are meant.")
    given = _spread([labels for labels in (candidates, truth) if labels is not None], data)
    turn = orientation(data, given, variables, findings)
    given = [_labels(_upright(t, side)) for t, side in zip(given, turn.labels, strict=True)]
    if candidates is None:
        findings.add(TRUTH_ONLY.message, TRUTH_ONLY.fix)
    if RESOLVED_KEY in variables:
        findings.add(RESOLVED.message, RESOLVED.fix)
    data = _upright(data, turn.data)
    dataset = CandidateDataset(
        features=_features(data),
        candidates=given[0],
        truth=None if truth is None else given[-1],
        label_names=_label_names(variables, given[0].shape[1]),
        feature_names=_texts(variables, "feature_names"),
        ids=_texts(variables, "ids"),
        display=_display(variables),
    )
    return ReadResult(dataset, findings.problems(), mapping, NAME), data


def _roles(tables: Variables, findings: Findings) -> dict[str, str]:
    """Return which variable is what: by its name, else by what is in it."""
    found: dict[str, str] = {}
    for role, what in (*ROLES, ("answers", ANSWERS)):
        names = [name for name in called([*tables], what) if name not in found.values()]
        if len(names) > 1 and role not in found and (role, what) != ("answers", ANSWERS):
            fix = "Remove the others if that is wrong."
            rule = f"several variables may be the {role}: {names[0]} is used"
            findings.add(rule, fix, value=names)
        if names:
            found.setdefault(role, names[0])
    others = [name for name in called([*tables], TRUTH) if name not in found.values()]
    if "candidates" not in found and "truth" in found and others:
        if called([found["truth"]], SURELY_TRUE):  # what is beside a sure truth: its candidates
            found["candidates"] = others[0]
    is_whole = "features" in found and {"candidates", "truth"} & found.keys()
    return found if is_whole or "answers" in found else named_by_content(tables, findings) or found


def _are_answers(tables: Variables, names: dict[str, str]) -> bool:
    """Whether there are class numbers of people, and no labels but perhaps a true one each."""
    if "answers" not in names or "candidates" in names:
        return False
    if "truth" in names and not is_vector_of_classes(tables[names["truth"]]):
        return False
    answers = tables[names["answers"]]
    values = answers.data if sp.issparse(answers) else answers
    values = values[np.isfinite(values)]
    is_whole = bool(((values == np.floor(values)) & (values >= -1)).all())
    return is_whole and 1 < values.max(initial=0) < MAX_CLASSES


def _crowd(
    tables: Variables,
    names: dict[str, str],
    variables: Variables,
    findings: Findings,
    mapping: ColumnMapping | None,
) -> tuple[ReadResult, Features]:
    """Read a class number per item and person, counted from 1; 0 or less said nothing."""
    answers, truth = tables[names["answers"]], None
    answers = np.nan_to_num(answers.toarray() if sp.issparse(answers) else answers)
    if "truth" in names and is_vector_of_classes(tables[names["truth"]]):
        truth = np.ravel(tables[names["truth"]])
    if answers.shape[0] < answers.shape[1] and (truth is None or len(truth) == answers.shape[1]):
        answers = answers.T
        findings.add("items are taken for the longer side of the answers", "Turn them if wrong.")
    data: Any = tables.get(names.get("features", ""), no_features(len(answers)))
    data = data.T if data.shape[0] != len(answers) == data.shape[1] else data
    names_of_labels = _label_names(variables, int(answers.max(initial=0)))
    votes, true = votes_of_classes(answers - 1, truth, names_of_labels, from_one=True)
    if "features" not in names:
        findings.add(NO_FEATURES.message, NO_FEATURES.fix)
    dataset = CandidateDataset(
        features=_features(data),
        candidates=votes.candidates,
        truth=true,
        label_names=names_of_labels or [str(j + 1) for j in range(votes.shape[1])],
        feature_names=() if "features" in names else (NO_FEATURE,),
        votes=votes,
    )
    return ReadResult(dataset, findings.problems(), mapping, NAME), data


def _spread(given: list[Any], data: Any) -> list[Any]:
    """Return label tables, vectors of class numbers made into such."""
    sizes = [one.shape for one in given if not is_vector_of_classes(one)]
    widths = [size for shape in sizes for size in shape if size not in data.shape]
    return [
        table_of_classes(one, (widths or [None])[0], from_one=True).T
        if is_vector_of_classes(one)
        else one
        for one in given
    ]


def _is_table(value: Any) -> bool:
    is_full = sp.issparse(value) or (value.dtype.kind in "biuf" and value.size > 0)
    return is_full and len(value.shape) == 2


def _upright(table: Any, turn: bool) -> Any:
    table = table.T if turn else table
    if sp.issparse(table):
        return sp.csr_array(table)
    return np.ascontiguousarray(table)


def _features(table: Any) -> Features:
    check_shape(table.shape[0], table.shape[1], 0)
    with np.errstate(over="ignore"):
        features: Features = table.astype(np.float32)
    return features


def _labels(table: Any) -> Any:
    check_shape(table.shape[0], 0, table.shape[1])
    return table.toarray() if sp.issparse(table) else table


def _label_names(variables: Variables, n_labels: int) -> list[str]:
    """Return the names of labels, under whichever name, where there are as many."""
    others = [name for name in called([*variables], NAMES) if name != "label_names"]
    given = [variables[name] for name in others if not sp.issparse(variables[name])]
    fitting = [one for one in given if one.dtype.kind == "U" and one.size == n_labels]
    names = _texts(variables, "label_names")
    return names or ([str(text) for text in fitting[0].ravel().tolist()] if fitting else [])


def _texts(variables: Variables, name: str) -> list[str]:
    value = variables.get(name, np.empty(0, np.str_))
    if sp.issparse(value) or value.dtype.kind not in "Uiuf":
        refuse("names must be a cell array of texts", "Use a cell array.", column=name)
    if value.dtype.kind == "f":
        value = np.asarray([f"{number:g}" for number in value.ravel()])
    return [str(text) for text in value.ravel().tolist()]


def _display(variables: Variables) -> pd.DataFrame | None:
    names, values = _texts(variables, "display_names"), _texts(variables, "display_values")
    if not names or len(values) % len(names):
        return None
    n = len(values) // len(names)
    return pd.DataFrame({name: values[j * n : (j + 1) * n] for j, name in enumerate(names)})


def write(
    dataset: CandidateDataset,
    path: Path,
    mapping: ColumnMapping | None = None,
    resolution: Any = None,
) -> None:
    """Write a v5 file: data N x D, label tables L x N, names as cell arrays.

    Tables are double, the type that MATLAB and Octave compute with. Octave reads no letters beyond
    ASCII from such a file: names that have them are there as UTF-8 bytes too, for `char`.
    """
    variables = {"data": exact_features_of(dataset).astype(np.float64)}
    variables["partial_labels"] = dataset.candidates.T.astype(np.float64)
    if dataset.truth is not None:
        variables["target"] = dataset.truth.T.astype(np.float64)
    variables |= {"label_names": _cells(dataset.label_names), "ids": _cells(dataset.ids)}
    if not is_numbering(dataset.feature_names, "x"):
        variables["feature_names"] = _cells(dataset.feature_names)
    if display := display_texts(dataset):
        variables["display_names"] = _cells(list(display))
        variables["display_values"] = np.hstack([_cells(texts) for texts in display.values()])
    if resolution is not None:
        variables[RESOLVED_KEY] = np.asarray(resolution.labels, np.float64).T
        variables["confidences"] = np.asarray(resolution.confidences, np.float64).T
        variables["reasons"] = np.asarray(resolution.reasons, np.float64).T + 1  # counted from 1
        variables["reason_texts"] = _cells(resolution.reason_texts)
    for name, texts in (("label_names", dataset.label_names), ("ids", dataset.ids)):
        if not all(map(str.isascii, texts)):
            variables[f"{name}_utf8"] = _cells([_utf8(text) for text in texts])
    _save(path, variables)


def _save(path: Path, variables: Variables) -> None:
    from scipy.io import savemat  # not needed to read: the decoder imports its own

    for name, value in variables.items():
        stored = 12 * value.nnz if sp.issparse(value) else value.nbytes
        if stored > MAX_VARIABLE:
            hint = "Write npz instead."
            raise ExportError("A v5 .mat file holds less than 2 GB per variable.", name, hint)
    savemat(path, variables, appendmat=False, do_compression=True, oned_as="column")


def _cells(values: Sequence[Any]) -> npt.NDArray[np.object_]:
    cells = np.empty((len(values), 1), dtype=object)
    for row, value in zip(cells, values, strict=True):
        row[0] = value
    return cells


def _utf8(text: str) -> npt.NDArray[np.uint8]:
    return np.frombuffer(text.encode("utf-8", "replace"), np.uint8)[None, :]
