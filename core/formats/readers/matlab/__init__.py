"""MATLAB `.mat` (v5 and 7.3) as partial multi-label data is shared: data, target, partial_labels.

Owns the names of variables and which way round they are. The bytes are decoded by a child process
(`decoder`), because the C libraries that parse them can be crashed by a damaged file.
"""

import itertools
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import scipy.sparse as sp

from core.data.dataset import NO_FEATURE, CandidateDataset, Features, no_features
from core.errors import ExportError
from core.formats.shared.arrays import load_arrays
from core.formats.shared.cells import plain_key
from core.formats.shared.findings import Findings, refuse
from core.formats.shared.label_sets import RESOLVED, TRUTH_ONLY, display_texts, is_numbering
from core.formats.shared.limits import check_shape, size_limit
from core.formats.shared.mapping import ColumnMapping, ReadResult
from core.formats.shared.original import exact_features_of
from core.formats.shared.sparse_rows import checked_csr
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
DAMAGED = "The file is damaged or cut off: save it again from MATLAB."
SECONDS = 6.0  # of the processor, for a small file; decoding takes well under one
PATIENCE = 6  # times that on the clock, for a busy machine
SECONDS_PER_BYTE = 1 / 4e6
MAX_VARIABLE = 2**31 - 2**16  # bytes a v5 file can hold in one variable

Variables = dict[str, Any]


def sniff(head: bytes, path: Path) -> bool:
    """Whether this begins as MATLAB files do: its text header, or HDF5 after one."""
    is_v5 = head[:7] == b"MATLAB " and head[126:128] in (b"IM", b"MI")
    is_hdf5 = any(head[at : at + 8] == b"\x89HDF\r\n\x1a\n" for at in (0, 512))
    return is_v5 or is_hdf5


def read(path: Path, mapping: ColumnMapping | None = None) -> ReadResult:
    """Read the variables this program knows and turn them the right way round."""
    return _read(decoded(path), mapping)[0]


def exact_features(path: Path, mapping: ColumnMapping) -> Features:
    """Return the features with the type they have in the file."""
    return _read(decoded(path), mapping)[1]


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
    turn = _orientation(data, given, variables, findings)
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


def decoded(path: Path) -> Variables:
    """Return the wanted variables of a file."""
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "variables.npz"
        _decode(path, target, WANTED)
        found = _assembled(load_arrays(target, lambda name: True))
        if len(found) < 2:  # no name is known: look at all
            _decode(path, target, ".*")
            found = _assembled(load_arrays(target, lambda name: True))
        return found


def _decode(path: Path, target: Path, wanted: str) -> None:
    """Run the decoder as a child, which a damaged file may crash or stall without harm."""
    script = Path(__file__).with_name("decoder.py")
    limit = str(size_limit())
    command = [sys.executable, "-I", str(script), str(path.resolve()), str(target), limit, wanted]
    seconds = SECONDS + path.stat().st_size * SECONDS_PER_BYTE
    try:
        child = subprocess.run(
            command,
            capture_output=True,
            timeout=PATIENCE * seconds,
            env=_environment(seconds),
            check=False,
        )
    except subprocess.TimeoutExpired:
        refuse("decoding the .mat file takes too long", DAMAGED, value=f"{seconds:.0f} s")
    reason = child.stderr.decode("utf-8", "replace").strip()
    if child.returncode == 3:
        refuse(f"the .mat file cannot be read: {reason[-300:]}", DAMAGED)
    if child.returncode == 1:
        raise RuntimeError(f"the decoder of .mat files failed:\n{reason}")
    if child.returncode != 0:
        refuse("the .mat file breaks its decoder", DAMAGED, value=f"exit {child.returncode}")


def _environment(seconds: float) -> dict[str, str]:
    """One thread (memory is limited), no HDF5 plug-ins (they are programs), limited time."""
    limits = {"OPENBLAS_NUM_THREADS": "1", "PLAIN_DECODER_SECONDS": str(seconds)}
    return {**os.environ, **limits, "HDF5_PLUGIN_PRELOAD": "::"}


def _assembled(arrays: dict[str, npt.NDArray[Any]]) -> Variables:
    variables: Variables = {name: array for name, array in arrays.items() if "." not in name}
    for name in [key.removesuffix(".indptr") for key in arrays if key.endswith(".indptr")]:
        parts = (arrays[f"{name}.{part}"] for part in ("data", "indices", "indptr", "shape"))
        variables[name] = checked_csr(*parts, exact=True)
    return variables


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


@dataclass(frozen=True)
class Turn:
    """Which of the tables lie on their side."""

    data: bool
    labels: tuple[bool, ...]

    def sizes(self, data: Any, tables: Sequence[Any]) -> tuple[int, int, set[int], set[int]]:
        """Return n and d of the features, and every n and L of the labels, as turned."""
        n, d = _turned(data.shape, self.data)
        shapes = [_turned(t.shape, turn) for t, turn in zip(tables, self.labels, strict=True)]
        return n, d, {shape[0] for shape in shapes}, {shape[1] for shape in shapes}

    def __str__(self) -> str:
        kinds = ("N x L", "L x N")
        labels = ", ".join(kinds[turn] for turn in self.labels)
        return f"features {'D x N' if self.data else 'N x D'}, labels {labels}"


def _turned(shape: tuple[int, int], turn: bool) -> tuple[int, int]:
    return (shape[1], shape[0]) if turn else (shape[0], shape[1])


def _orientation(data: Any, tables: Sequence[Any], names: Variables, findings: Findings) -> Turn:
    """Return the turn that makes all sizes agree; by convention data is N x D, labels L x N."""
    choices = itertools.product((False, True), *[(True, False)] * len(tables))
    turns = [Turn(first, tuple(rest)) for first, *rest in choices]
    fitting = [turn for turn in turns if _fits(turn.sizes(data, tables), names)]
    if not fitting:
        shapes = ", ".join(str(table.shape) for table in tables)
        rule = "features and labels must agree on the number of instances"
        refuse(rule, "Give data N x D and labels L x N.", value=f"{data.shape} and {shapes}")
    if len(fitting) > 1:
        fix = "Add label_names or ids if that is wrong: their lengths settle it."
        findings.add(f"the shapes allow {len(fitting)} readings; used: {fitting[0]}", fix)
    return fitting[0]


def _fits(sizes: tuple[int, int, set[int], set[int]], names: Variables) -> bool:
    n, d, label_ns, label_counts = sizes
    if label_ns != {n} or len(label_counts) != 1:
        return False
    wanted = {"ids": n, "feature_names": d, "label_names": next(iter(label_counts))}
    return all(key not in names or names[key].size == size for key, size in wanted.items())


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
