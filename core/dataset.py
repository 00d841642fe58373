"""The data every other part works on: instances with features, candidates and, perhaps, truth.

Owns what a usable data set is. Reading and writing files belongs to `core.formats`.
"""

import hashlib
import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from core.errors import DatasetError, Problem

if TYPE_CHECKING:
    import pandas as pd

Features: TypeAlias = Any  # (n, d) float32: ndarray or csr_array, which mypy cannot tell apart
Labels: TypeAlias = npt.NDArray[np.uint8]

MIN_INSTANCES = 3
MAX_LISTED = 20
_WORTH_THREADS = 2**21  # values


class DistinctNames(Sequence[str]):
    """Names known to differ, made only when the first is asked for: most readings need none."""

    def __init__(self, n: int, make: Callable[[], list[str]]) -> None:
        self._n, self._make = n, make

    @cached_property
    def _names(self) -> tuple[str, ...]:
        return tuple(self._make())

    def __len__(self) -> int:
        return self._n

    def __getitem__(self, at: Any) -> Any:
        return self._names[at]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, tuple | DistinctNames) and self._names == tuple(other)

    def __hash__(self) -> int:
        return hash(self._names)

    def __repr__(self) -> str:
        return repr(self._names)


@dataclass(frozen=True, eq=False)
class CandidateDataset:
    """Instances, their candidate labels, and what is shown of them. Immutable.

    Parameters
    ----------
    features : (n, d) array or sparse matrix, finite
    candidates : (n, L) array of 0/1, true/false or -1/1
    label_names : L distinct names; numbered when not given
    ids : n distinct names of the instances; numbered when not given
    feature_names : d names; numbered when not given
    truth : (n, L) like candidates; only ever used for scoring
    display : DataFrame with n rows of text, pictures or anything else a person judges by

    Raises
    ------
    DatasetError
        With every reason at once why this cannot be used.
    """

    features: Features
    candidates: Labels
    label_names: Sequence[str] = ()
    ids: Sequence[str] = ()
    feature_names: Sequence[str] = ()
    truth: Labels | None = None
    display: "pd.DataFrame | None" = field(default=None, repr=False)

    def __post_init__(self) -> None:
        problems: list[Problem] = []
        ids, labels = self.ids, self.label_names
        features = as_features(self.features, problems, ids, self.feature_names)
        candidates = as_labels(self.candidates, "candidates", problems, ids, labels)
        truth = None
        if self.truth is not None:
            truth = as_labels(self.truth, "truth", problems, ids, labels)
        if problems:
            raise DatasetError(problems)
        (n, d), n_labels = features.shape, candidates.shape[1]
        if n < MIN_INSTANCES:
            few = f"a data set needs at least {MIN_INSTANCES} instances"
            problems.append(Problem(few, "Add instances.", fatal=True, value=str(n)))
        problems += _size_problems(n, candidates, truth, self.display)
        names = {
            "label_names": tuple(_names(self.label_names, n_labels, "label", "label", problems)),
            "ids": _names(self.ids, n, "id", "", problems),
            "feature_names": tuple(_names(self.feature_names, d, "feature name", "x", problems)),
        }
        if problems:
            raise DatasetError(problems)
        for name, value in {
            "features": features,
            "candidates": _frozen(candidates),
            "truth": None if truth is None else _frozen(truth),
            **names,
        }.items():
            object.__setattr__(self, name, value)

    @property
    def n_instances(self) -> int:
        return int(self.candidates.shape[0])

    @property
    def n_labels(self) -> int:
        return int(self.candidates.shape[1])

    @property
    def n_features(self) -> int:
        return int(self.features.shape[1])

    @cached_property
    def row_of(self) -> dict[str, int]:
        """The row of every id."""
        return {name: row for row, name in enumerate(self.ids)}

    @cached_property
    def label_of(self) -> dict[str, int]:
        """The column of every label name."""
        return {name: column for column, name in enumerate(self.label_names)}

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of features, candidates, ids and label names: the identity of the data."""
        digest = hashlib.sha256(repr((self.features.shape, self.candidates.shape)).encode())
        if sp.issparse(self.features):
            parts = [self.features.indptr.astype(np.int64), self.features.indices.astype(np.int64)]
            parts.append(self.features.data)
        else:
            parts = [np.ascontiguousarray(self.features)]
        for part in (*parts, np.ascontiguousarray(self.candidates)):
            digest.update(part.data)
        for name in (*self.ids, *self.label_names):
            digest.update(name.encode("utf-8", "surrogatepass") + b"\0")
        return digest.hexdigest()

    def check(self) -> list[Problem]:
        """Return what is odd about the data though it can be used."""
        from core.checks import check

        return check(self)


def as_features(
    X: Any, problems: list[Problem], ids: Sequence[str] = (), names: Sequence[str] = ()
) -> Features:
    """Return X as float32, dense or CSR; append what is wrong with it to `problems`."""
    try:
        X = sp.csr_array(X, dtype=np.float32) if sp.issparse(X) else np.asarray(X, np.float32)
    except (TypeError, ValueError):
        problems.append(Problem("features must be numbers", "Encode text first.", fatal=True))
        return np.zeros((0, 0), np.float32)
    if X.ndim != 2 or X.shape[1] == 0:
        table = "features must be a table with one row per instance and at least one column"
        problems.append(Problem(table, "Reshape.", fatal=True, value=str(X.shape)))
        return np.zeros((0, 0), np.float32)
    if sp.issparse(X):
        X.sum_duplicates()
        bad = ~np.isfinite(X.data)
        rows, columns = X.tocoo().row[bad], X.tocoo().col[bad]
        values = X.data[bad]
    else:
        seen = _seems_finite(X)
        rows, columns = (np.empty(0, int),) * 2 if seen else np.nonzero(~np.isfinite(X))
        values = X[rows, columns]
        X = _frozen(X)
    rule, fix = "features must be finite", "Fill or drop these values."
    for i, j, value in islice(zip(rows, columns, values, strict=True), MAX_LISTED):
        row, column = _named(ids, int(i)), _named(names, int(j))
        problems.append(Problem(rule, fix, True, row, column, str(value)))
    problems += more_of(rule, fix, len(rows))
    return X


def _seems_finite(X: npt.NDArray[np.float32]) -> bool:
    """One pass without a temporary, several times faster than `isfinite`.

    A sum of squares is finite unless a value is not, or it overflows: only yes is certain.
    """

    def is_finite(part: npt.NDArray[np.float32]) -> bool:
        with np.errstate(over="ignore", invalid="ignore"):
            return bool(np.isfinite(np.einsum("ij,ij->", part, part)))

    if X.size < _WORTH_THREADS:
        return is_finite(X)
    n_threads = os.cpu_count() or 1
    with ThreadPoolExecutor(n_threads) as threads:
        return all(threads.map(is_finite, np.array_split(X, n_threads, axis=int(X.flags.fnc))))


def as_labels(
    Y: Any,
    what: str,
    problems: list[Problem],
    ids: Sequence[str] = (),
    names: Sequence[str] = (),
) -> Labels:
    """Return Y, given as 0/1, true/false or -1/1, as uint8; append what is wrong with it."""
    try:
        Y = Y.toarray() if sp.issparse(Y) else np.asarray(Y)
        numbers: npt.NDArray[Any] = Y if Y.dtype.kind in "biuf" else Y.astype(np.float32)
    except (TypeError, ValueError, AttributeError):
        problems.append(Problem(f"{what} must be 0/1 values", "Encode the labels.", fatal=True))
        return np.zeros((0, 0), np.uint8)
    if numbers.ndim != 2 or numbers.shape[1] == 0:
        shape = f"{what} must be a table with one column per label"
        problems.append(Problem(shape, "Reshape.", fatal=True, value=str(numbers.shape)))
        return np.zeros((0, 0), np.uint8)
    if numbers.dtype == np.uint8 and numbers.max(initial=0) <= 1:
        return numbers  # as readers give them
    bad = np.argwhere(~((numbers == 0) | (numbers == 1) | (numbers == -1)))
    rule, fix = f"{what} must be 0 or 1", "Use 0/1, true/false or -1/1."
    for i, j in bad[:MAX_LISTED]:
        row, column = _named(ids, int(i)), _named(names, int(j))
        problems.append(Problem(rule, fix, True, row, column, str(numbers[i, j])))
    problems += more_of(rule, fix, len(bad))
    return np.asarray(numbers > 0, np.uint8)


def more_of(rule: str, fix: str, count: int, fatal: bool = True) -> list[Problem]:
    """Return how many of a kind of problem are there beyond those listed one by one."""
    if count <= MAX_LISTED:
        return []
    return [Problem(f"… and {count - MAX_LISTED:,} more: {rule}", fix, fatal)]


def _named(names: Sequence[str], i: int) -> int | str:
    return str(names[i]) if i < len(names) else i


def _frozen(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    view = array.view()
    view.flags.writeable = False
    return view


def _size_problems(
    n: int, candidates: Labels, truth: Labels | None, display: "pd.DataFrame | None"
) -> list[Problem]:
    problems = []
    if candidates.shape[0] != n:
        uneven = f"features have {n} rows, candidates {candidates.shape[0]}"
        problems.append(Problem(uneven, "Give one row of each per instance.", fatal=True))
    if truth is not None and truth.shape != candidates.shape:
        uneven = f"truth is {truth.shape}, candidates {candidates.shape}"
        problems.append(Problem(uneven, "Give both the same shape.", fatal=True))
    if display is not None and len(display) != n:
        uneven = f"display columns have {len(display)} rows, features {n}"
        problems.append(Problem(uneven, "Give one row per instance.", fatal=True))
    return problems


def _numbered(prefix: str, n: int) -> list[str]:
    return [f"{prefix}{i}" for i in range(n)]


def _names(
    given: Sequence[str], n: int, what: str, prefix: str, problems: list[Problem]
) -> Sequence[str]:
    if len(given) == 0:
        return DistinctNames(n, partial(_numbered, prefix, n))
    if len(given) != n:
        problems.append(
            Problem(f"{n} {what}s are needed", "Name each one.", True, value=str(len(given)))
        )
    if isinstance(given, DistinctNames):
        return given
    names = tuple(given)
    if set(map(type, names)) != {str}:
        names = tuple(map(str, names))
    if len(set(names)) != len(names):
        rule, fix = f"every {what} must be different", "Rename it."
        twice = [name for name, count in Counter(names).items() if count > 1]
        problems += [Problem(rule, fix, True, value=repr(one)) for one in twice[:MAX_LISTED]]
        problems += more_of(rule, fix, len(twice))
    return names
