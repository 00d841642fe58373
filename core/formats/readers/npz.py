"""NumPy `.npz`: `X` (or its CSR arrays), `Y` truth, `Yp` candidates, names, ids, votes, display.

Owns the keys; what others call them says what they are (`variables`). Without features, labels are
enough; `L` is Snorkel's label matrix, a class number per source, less than 0 or NaN where it said
nothing, or yes and no by item, source and label. An `.npy` file is labels or such a matrix. Reading
refuses pickled objects, and archives that declare more than they can hold (`shared.arrays`).
"""

import re
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import scipy.sparse as sp

from core.data.dataset import NO_FEATURE, CandidateDataset, Features, no_features
from core.data.votes import Votes
from core.errors import ExportError
from core.formats.shared.arrays import NPY, array_alone, load_arrays
from core.formats.shared.findings import refuse
from core.formats.shared.label_sets import RESOLVED, TRUTH_ONLY, display_texts, is_numbering
from core.formats.shared.limits import check_shape
from core.formats.shared.mapping import ColumnMapping, Outcome, ReadResult
from core.formats.shared.original import exact_features_of
from core.formats.shared.sparse_rows import checked_csr
from core.formats.shared.tabular import NO_FEATURES
from core.formats.shared.variables import (
    ANSWERS,
    NAMES,
    ROLES,
    called,
    is_vector_of_classes,
    table_of_classes,
    votes_of_classes,
)

NAME = "npz"
EXTENSIONS = (".npz",)

DAMAGED = "The file is damaged or cut off: write it again."
MAX_CODE = 0x10FFFF  # the last Unicode character
CSR_KEYS = ("X_data", "X_indices", "X_indptr", "X_shape")
VOTE_KEYS = ("votes_sources", "votes_yes", "votes_answered", "votes_no")
OUTCOME_KEYS = ("resolved", "confidences", "reasons")
NAME_KEYS = ("label_names", "feature_names", "ids", "reason_texts")
KEYS = ("X", *CSR_KEYS, "L", "Y", "Yp", *NAME_KEYS, *OUTCOME_KEYS, *VOTE_KEYS)
SPELLINGS = {"candidates": "Yp", "truth": "Y", "features": "X", "answers": "L"}
"""What others call them is what they say (`variables`)."""
SPARSE = ("data", "indices", "indptr", "shape", "format")  # as scipy.sparse.save_npz has it
PROBABLE = re.compile(r".*(prob(s|a|abilities|ability)?|scores?|confidences?)|prob.*")
PROBABLE_FROM = 0.5
DISPLAY = "display_"

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
        arrays = {"Y": array_alone(path)}
    else:
        arrays = _named(load_arrays(path, _is_known) or load_arrays(path, lambda name: True))
    labels = arrays.get("Y")
    if "L" not in arrays and labels is not None and labels.ndim > 1 and _has_silence(labels):
        if not _is_signed(labels) and (is_alone or np.nanmax(labels) > 1):
            arrays["L"] = arrays.pop("Y")  # an answer per person
        else:
            arrays["Y"] = (np.nan_to_num(labels) > 0).astype(np.uint8)
    if "L" in arrays and arrays["L"].ndim == 2 and _is_table_of_marks(arrays["L"]):
        arrays.setdefault("Y", arrays.pop("L"))  # then it says yes or no of each label
    if "L" not in arrays:
        width = next((arrays[key].shape[-1] for key in ("Yp",) if key in arrays), None)
        for key in ("Y", "Yp"):
            if key in arrays and is_vector_of_classes(arrays[key]):
                arrays[key] = table_of_classes(arrays[key], width)
            elif key in arrays and _holds_classes(arrays[key]):  # nothing but 0 and 1
                arrays[key] = table_of_classes(arrays[key], width or 2)
    return arrays


def _is_known(name: str) -> bool:
    spoken = (what for _, what in (*ROLES, ("answers", ANSWERS), ("", NAMES), ("", PROBABLE)))
    is_ours = name in KEYS or name.startswith(DISPLAY) or name in SPARSE
    return is_ours or any(called([name], what) for what in spoken)


def _named(found: Arrays) -> Arrays:
    """Return the arrays by our names for them."""
    own = {name: one for name, one in found.items() if name in KEYS or name.startswith(DISPLAY)}
    if set(SPARSE) <= found.keys():
        return {"Y": _sparse_labels(found)}
    if not own.keys() & {"X", *CSR_KEYS, "Y", "Yp", "L"} and len(found) == 1:
        (array,) = found.values()  # whatever it is called
        own["L" if array.ndim > 1 and _has_silence(array) and not _is_signed(array) else "Y"] = (
            array
        )
    rest = [name for name in found if name not in own and name not in ("l", "label_names")]
    for role, what in (*ROLES, ("answers", ANSWERS)):
        key, names = SPELLINGS[role], [name for name in called(rest, what) if name not in own]
        if names and key not in own and not (key == "X" and CSR_KEYS[0] in own):
            own[key] = found[names[0]]
            rest.remove(names[0])
    if not own.keys() & {"Y", "Yp", "L"} and (probable := called(rest, PROBABLE)):
        said = [found[name] for name in probable if found[name].ndim == 2]  # of a model each
        if said and {one.shape for one in said} == {said[0].shape} and said[0].dtype.kind == "f":
            own["L"] = np.stack([one >= PROBABLE_FROM for one in said], axis=1).astype(np.int8)
    if "X" in own and own["X"].ndim > 2 and own["X"].dtype.kind in "biuf":  # pictures
        own["X"] = own["X"].reshape(len(own["X"]), -1)
    for name in called(rest, NAMES):
        if found[name].dtype.kind == "U" and found[name].ndim == 1:
            own.setdefault("label_names", found[name])
    return own


def _sparse_labels(found: Arrays) -> npt.NDArray[Any]:
    """Return a sparse matrix of 0 and 1; another one has no labels."""
    if found["format"].item() not in (b"csr", "csr") or set(np.unique(found["data"])) - {0, 1}:
        refuse(
            "an npz needs Yp or Y", "Save labels beside the features.", value="one sparse matrix"
        )
    parts = (found[key] for key in ("data", "indices", "indptr", "shape"))
    table = checked_csr(*parts, exact=True)
    check_shape(table.shape[0], 0, table.shape[1])
    return np.asarray(table.toarray() > 0, np.uint8)


def _has_silence(array: npt.NDArray[Any]) -> bool:
    if array.dtype.kind not in "if" or not array.size:
        return False
    return bool(np.isnan(array).any() or array.min() < 0)


def _is_signed(array: npt.NDArray[Any]) -> bool:
    """Whether this is a table of -1 and 1: no and yes of labels."""
    return set(np.unique(array[: 10**4]).tolist()) == {-1, 1}


def _is_table_of_marks(array: npt.NDArray[Any]) -> bool:
    return not _has_silence(array) and bool(np.isin(array[: 10**4], (0, 1)).all())


def _holds_classes(array: npt.NDArray[Any]) -> bool:
    return array.ndim == 1 and array.dtype.kind in "iu" and not _has_silence(array)


def _class_votes(arrays: Arrays) -> Votes:
    """Return what every source of a label matrix said; the arrays get candidates and names."""
    truth = arrays.pop("Y", np.zeros(0, np.int64))
    stated = _names(arrays, "label_names")
    if arrays["L"].ndim == 3:  # item, person, label: yes, no, or nothing
        shape = arrays["L"].shape
        check_shape(shape[0], shape[1], shape[2])
        names = [f"source {k + 1}" for k in range(shape[1])]
        votes = Votes.from_array(arrays["L"].transpose(0, 2, 1), names).compact()
        arrays["Yp"] = votes.candidates
        return votes
    votes, true = votes_of_classes(table_of(arrays, "L"), truth, stated)
    if true is not None:
        arrays["Y"] = true
    arrays["Yp"] = votes.candidates
    if not stated:
        arrays["label_names"] = np.array([str(j) for j in range(votes.shape[1])])
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


def exact_features(path: Path, mapping: ColumnMapping) -> Features:
    """Return the features with the type they have in the file."""
    arrays = _loaded(path)
    if any(key in arrays for key in ("X", *CSR_KEYS)):
        return features_of(arrays, exact=True)
    return no_features(len(next(arrays[key] for key in ("L", "Yp", "Y") if key in arrays)))


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
