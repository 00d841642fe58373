"""NumPy `.npz`: `X` (or its CSR arrays), `Y` truth, `Yp` candidates, names, ids, votes, display.

Owns the keys. Without features, labels are enough; `L` is Snorkel's label matrix, a class number
per source, less than 0 where it said nothing. An `.npy` file is one of these two. Refuses pickled
objects, and archives that declare more than they can hold: sizes and headers are read and judged
before any array is.
"""

import tokenize
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import scipy.sparse as sp

from core.data.dataset import NO_FEATURE, CandidateDataset, Features, no_features
from core.data.votes import Votes
from core.errors import ExportError
from core.formats.shared.archives import BAD_ARCHIVE
from core.formats.shared.findings import refuse
from core.formats.shared.label_sets import RESOLVED, TRUTH_ONLY, display_texts, is_numbering
from core.formats.shared.limits import check_shape, check_size
from core.formats.shared.mapping import ColumnMapping, Outcome, ReadResult
from core.formats.shared.original import exact_features_of
from core.formats.shared.sparse_rows import checked_csr
from core.formats.shared.tabular import NO_FEATURES

NAME = "npz"
EXTENSIONS = (".npz",)

DAMAGED = "The file is damaged or cut off: write it again."
MAX_HEADER = 10_000
MAX_MEMBERS = 10_000
MAX_CODE = 0x10FFFF  # the last Unicode character
# What NumPy raises on a header that is not one: it is parsed as Python literals.
BAD_HEADER = (
    ValueError,
    KeyError,
    TypeError,
    SyntaxError,
    RecursionError,
    MemoryError,
    tokenize.TokenError,
)
CSR_KEYS = ("X_data", "X_indices", "X_indptr", "X_shape")
VOTE_KEYS = ("votes_sources", "votes_yes", "votes_answered", "votes_no")
OUTCOME_KEYS = ("resolved", "confidences", "reasons")
NAME_KEYS = ("label_names", "feature_names", "ids", "reason_texts")
KEYS = ("X", *CSR_KEYS, "L", "Y", "Yp", *NAME_KEYS, *OUTCOME_KEYS, *VOTE_KEYS)
SPELLINGS = {  # how others call them
    "L": ("L_train", "label_matrix", "weak_labels"),
    "Y": ("y", "labels", "y_train"),
    "X": ("x", "features", "embeddings", "X_train"),
}
DISPLAY = "display_"
NPY = b"\x93NUMPY"

Arrays = dict[str, npt.NDArray[Any]]


def sniff(head: bytes, path: Path) -> bool:
    """Whether this is a NumPy array, or a zip archive whose first member is one."""
    if head.startswith(NPY):
        return True
    name_length = int.from_bytes(head[26:28], "little")
    return head[:4] == b"PK\3\4" and head[30 : 30 + name_length].endswith(b".npy")


def read(path: Path, mapping: ColumnMapping | None = None) -> ReadResult:
    """Read an archive with the keys of this format; other keys are left alone."""
    arrays = _loaded(path)
    problems = []
    votes = _votes(arrays) if "L" not in arrays else _class_votes(arrays)
    if "Yp" not in arrays and "Y" not in arrays:
        fix = "Name the candidates Yp (n x L, 0/1)."
        refuse("an npz needs Yp or Y", fix, value=", ".join(arrays))
    if "Yp" not in arrays:
        problems.append(TRUTH_ONLY)
    labels = table_of(arrays, "Yp" if "Yp" in arrays else "Y")
    names = _names(arrays, "feature_names")
    if any(key in arrays for key in ("X", *CSR_KEYS)):
        features = features_of(arrays)
    else:
        features, names = no_features(len(labels)), [NO_FEATURE]
        problems.append(NO_FEATURES)
    dataset = CandidateDataset(
        features=features,
        candidates=labels,
        truth=table_of(arrays, "Y") if "Y" in arrays else None,
        label_names=_names(arrays, "label_names"),
        feature_names=names,
        ids=_names(arrays, "ids"),
        display=_display(arrays),
        votes=votes,
    )
    outcome = None
    if "resolved" in arrays:
        outcome = outcome_of(arrays, _names(arrays, "reason_texts"), dataset.candidates.shape)
        problems.append(RESOLVED)
    return ReadResult(dataset, tuple(problems), mapping, NAME, outcome)


def _loaded(path: Path) -> Arrays:
    """Return the arrays of a file by our names for them; class numbers become a table of 0/1."""
    with path.open("rb") as file:
        is_alone = file.read(len(NPY)) == NPY
    if is_alone:
        array = _alone(path)
        arrays = {"L" if array.ndim == 2 and _has_silence(array) else "Y": array}
    else:
        spelled = {other: key for key, others in SPELLINGS.items() for other in others}
        wanted = {*KEYS, *spelled}
        found = load_arrays(path, lambda name: name in wanted or name.startswith(DISPLAY))
        arrays = {key: array for key, array in found.items() if key not in spelled}
        for other, array in found.items():
            if other in spelled:
                arrays.setdefault(spelled[other], array)
    if "L" in arrays and not _has_silence(arrays["L"]):  # then it says yes or no of each label
        arrays.setdefault("Y", arrays.pop("L"))
    if "L" not in arrays and "Y" in arrays and _holds_classes(arrays["Y"]):
        n_classes = int(arrays["Y"].max(initial=-1)) + 1
        check_shape(len(arrays["Y"]), 0, n_classes)
        arrays["Y"] = np.eye(n_classes, dtype=np.uint8)[arrays["Y"].astype(np.intp)]
    return arrays


def _has_silence(array: npt.NDArray[Any]) -> bool:
    return array.dtype.kind in "if" and array.size > 0 and bool(array.min() < 0)


def _holds_classes(array: npt.NDArray[Any]) -> bool:
    return array.ndim == 1 and array.dtype.kind in "iu" and not _has_silence(array)


def _class_votes(arrays: Arrays) -> Votes:
    """Return what every source of a label matrix said; the arrays get candidates and names."""
    matrix = table_of(arrays, "L").astype(np.int64)
    truth = arrays.pop("Y", np.zeros(0, np.int64))
    stated = _names(arrays, "label_names")
    n_classes = max(int(matrix.max(initial=-1)) + 1, len(stated))
    if _holds_classes(truth) and len(truth) == len(matrix):
        n_classes = max(n_classes, int(truth.max(initial=-1)) + 1)
        arrays["Y"] = np.eye(n_classes, dtype=np.uint8)[truth.astype(np.intp)]
    check_shape(len(matrix), 0, n_classes)
    row, source = np.nonzero(matrix >= 0)
    yes = np.stack([row, matrix[row, source], source], axis=1).astype(np.int32)
    answered = np.stack([row, source], axis=1).astype(np.int32)
    sources = tuple(f"source {k + 1}" for k in range(matrix.shape[1]))
    shape = (len(matrix), n_classes)
    votes = Votes(sources, yes, answered, np.zeros((0, 3), np.int32), shape).compact()
    arrays["Yp"] = votes.candidates
    if not stated:
        arrays["label_names"] = np.array([str(j) for j in range(n_classes)])
    return votes


def outcome_of(arrays: Arrays, texts: Sequence[str], shape: tuple[int, ...]) -> Outcome | None:
    """Return what was resolved; none where the archive does not say all of it."""
    if not all(key in arrays for key in OUTCOME_KEYS):
        return None
    labels, confidences, reasons = (table_of(arrays, key) for key in OUTCOME_KEYS)
    if {labels.shape, confidences.shape, reasons.shape} != {shape}:
        refuse("resolved labels must be of the same shape as the candidates", DAMAGED)
    if reasons.dtype.kind not in "iu" or not 0 <= reasons.min() <= reasons.max() < len(texts):
        refuse("every reason must be one of the texts", DAMAGED, column="reasons")
    return Outcome(
        (labels > 0).astype(np.uint8), confidences.astype(np.float32), reasons, tuple(texts)
    )


def _votes(arrays: Arrays) -> Votes | None:
    """Return who said what; the tables of numbers are those of `Votes`."""
    if VOTE_KEYS[0] not in arrays:
        return None
    missing = [key for key in VOTE_KEYS if key not in arrays]
    if missing:
        refuse("votes are not complete", DAMAGED, value=f"without {', '.join(missing)}")
    for key in VOTE_KEYS[1:]:
        if arrays[key].ndim != 2 or arrays[key].dtype.kind not in "iu":
            refuse("votes must be tables of whole numbers", DAMAGED, column=key)
    _names(arrays, VOTE_KEYS[0])
    n, n_labels = table_of(arrays, "Yp" if "Yp" in arrays else "Y").shape
    parts = {key.removeprefix("votes_"): arrays[key] for key in VOTE_KEYS}
    return Votes.from_arrays(parts, (n, n_labels))


def load_arrays(path: Path, is_wanted: Callable[[str], bool]) -> Arrays:
    """Return the wanted arrays of an archive; nothing is ever unpickled."""
    try:
        with zipfile.ZipFile(path) as archive:
            members = [m for m in archive.infolist() if m.filename.endswith(".npy")]
            if len(members) > MAX_MEMBERS:
                rule = f"an npz has at most {MAX_MEMBERS:,} arrays"
                refuse(rule, "Save a display column as one array.", value=f"{len(members):,}")
            wanted = {n: m for m in members if is_wanted(n := m.filename.removesuffix(".npy"))}
            check_size(sum(member.file_size for member in wanted.values()))
            for member in members:
                _check_member(archive, member)
            return {name: _array(archive, member) for name, member in wanted.items()}
    except BAD_ARCHIVE as error:
        refuse(f"the npz archive cannot be read: {error}", DAMAGED)


def _check_member(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> None:
    """Judge one array by its header, so that nothing is allocated on a lie."""
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        refuse("arrays must be stored or deflated", "Save it with numpy.", column=member.filename)
    with archive.open(member) as stream:
        _check_header(stream, member.filename, member.file_size)


def _check_header(stream: IO[bytes], name: str, file_size: int) -> None:
    shape, dtype = _header(stream, name)
    if dtype.hasobject:
        rule = "pickled objects are refused: reading one can run any program"
        refuse(rule, "Save plain arrays.", column=name, value=str(dtype))
    n_bytes = dtype.itemsize
    for size in shape:
        n_bytes *= int(size)
    if n_bytes > file_size or min(shape, default=0) < 0:
        found = f"{shape} of {dtype} in {file_size:,} bytes"
        refuse("an array must fit its file", DAMAGED, column=name, value=found)


def _header(stream: IO[bytes], name: str) -> tuple[Any, np.dtype[Any]]:
    readers = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }
    try:
        read_header = readers[np.lib.format.read_magic(stream)]
        shape, _, dtype = read_header(stream, max_header_size=MAX_HEADER)
    except BAD_HEADER as error:
        refuse(f"not a NumPy array: {error}", DAMAGED, column=name)
    return shape, dtype


def _array(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> npt.NDArray[Any]:
    with archive.open(member) as stream:
        return _read_array(stream, member.filename)


def _alone(path: Path) -> npt.NDArray[Any]:
    """Return the array of an `.npy` file."""
    size = path.stat().st_size
    check_size(size)
    with path.open("rb") as stream:
        _check_header(stream, path.name, size)
        stream.seek(0)
        return _read_array(stream, path.name)


def _read_array(stream: IO[bytes], name: str) -> npt.NDArray[Any]:
    try:
        array: npt.NDArray[Any] = np.lib.format.read_array(
            stream, allow_pickle=False, max_header_size=MAX_HEADER
        )
    except ValueError as error:
        refuse(f"an array is incomplete: {error}", DAMAGED, column=name)
    return array


def exact_features(path: Path, mapping: ColumnMapping) -> Features:
    """Return the features with the type they have in the file."""
    return features_of(load_arrays(path, lambda name: name in ("X", *CSR_KEYS)), exact=True)


def features_of(arrays: Arrays, *, exact: bool = False) -> Features:
    """Return the features of an archive, dense or sparse."""
    if "X" in arrays:
        dense = table_of(arrays, "X")
        check_shape(dense.shape[0], dense.shape[1], 0)
        with np.errstate(over="ignore"):
            return dense if exact else dense.astype(np.float32, copy=False)
    missing = [key for key in CSR_KEYS if key not in arrays]
    if missing:
        fix = "Save X, or all of X_data, X_indices, X_indptr and X_shape."
        refuse("an npz needs features", fix, value=f"without {', '.join(missing)}")
    return checked_csr(*(arrays[key] for key in CSR_KEYS), exact=exact)


def table_of(arrays: Arrays, key: str) -> npt.NDArray[Any]:
    """Return an array that is a table of numbers."""
    array = arrays[key]
    if array.ndim != 2 or array.dtype.kind not in "biuf":
        found = f"{array.dtype} of shape {array.shape}"
        refuse("a table of numbers is needed", "One row per instance.", column=key, value=found)
    return array


def _names(arrays: Arrays, key: str) -> list[str]:
    array = arrays.get(key, np.empty(0, "U1"))
    if array.ndim != 1 or array.dtype.kind not in "Uiu":
        found = f"{array.dtype} of shape {array.shape}"
        refuse("names must be a list of texts", "Save a unicode array.", column=key, value=found)
    if array.dtype.kind == "U" and not _is_unicode(array):
        refuse("names must be Unicode text", DAMAGED, column=key)
    return [str(name) for name in array.tolist()]


def _is_unicode(array: npt.NDArray[np.str_]) -> bool:
    """Whether every code is one of a character: Python itself fails on others."""
    if array.dtype.itemsize == 0 or array.size == 0:
        return True
    code = np.dtype(np.uint32).newbyteorder(array.dtype.byteorder)
    codes = np.ascontiguousarray(array).view(code)
    return not ((codes > MAX_CODE) | ((codes >= 0xD800) & (codes <= 0xDFFF))).any()


def _display(arrays: Arrays) -> pd.DataFrame | None:
    columns = {
        key.removeprefix(DISPLAY): _names(arrays, key) for key in arrays if key.startswith(DISPLAY)
    }
    lengths = {name: len(texts) for name, texts in columns.items()}
    if len(set(lengths.values())) > 1:
        rule = "display columns must have one entry per instance"
        refuse(rule, "Save them all at the same length.", value=lengths)
    return pd.DataFrame(columns) if columns else None


def write(
    dataset: CandidateDataset,
    path: Path,
    mapping: ColumnMapping | None = None,
    resolution: Any = None,
) -> None:
    """Write every part of the data set, and the resolution beside it."""
    arrays = {**feature_arrays(exact_features_of(dataset)), "Yp": dataset.candidates}
    if dataset.truth is not None:
        arrays["Y"] = dataset.truth
    if dataset.votes is not None:
        arrays |= {f"votes_{name}": array for name, array in dataset.votes.arrays().items()}
    arrays["label_names"] = _text_array(dataset.label_names)
    if not is_numbering(dataset.feature_names, "x"):
        arrays["feature_names"] = _text_array(dataset.feature_names)
    if not is_numbering(dataset.ids, ""):
        arrays["ids"] = _text_array(dataset.ids)
    for name, texts in display_texts(dataset).items():
        arrays[DISPLAY + name] = _text_array(texts)
    if resolution is not None:
        arrays["resolved"] = np.asarray(resolution.labels, np.uint8)
        arrays["confidences"] = np.asarray(resolution.confidences, np.float32)
        arrays["reasons"] = np.asarray(resolution.reasons)
        arrays["reason_texts"] = _text_array(resolution.reason_texts)
    save_arrays(path, arrays)


def save_arrays(path: Path, arrays: Arrays, level: int = 6) -> None:
    """Write an archive; names of arrays may be any. A lower level is quicker, and larger."""
    # Member by member: np.savez takes names as keywords, which display columns may clash with.
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=level) as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as stream:
                np.lib.format.write_array(stream, np.asarray(array), allow_pickle=False)


def feature_arrays(features: Features) -> Arrays:
    if not sp.issparse(features):
        return {"X": features}
    shape = np.asarray(features.shape, np.int64)
    parts = (features.data, features.indices, features.indptr, shape)
    return dict(zip(CSR_KEYS, parts, strict=True))


def _text_array(texts: Any) -> npt.NDArray[np.str_]:
    for text in texts:
        if text.endswith("\0"):
            hint = "Rename it, or choose another format."
            raise ExportError("NumPy cannot keep text that ends in NUL.", repr(text), hint)
    return np.asarray(list(texts), dtype=np.str_)
