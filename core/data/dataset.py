"""The data every other part works on: instances with features, candidates and, perhaps, truth.

Owns what a usable data set is. Reading and writing files belongs to `core.formats`.
"""

import hashlib
import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from core.data.votes import Votes, as_votes
from core.errors import DatasetError, Problem

if TYPE_CHECKING:
    import pandas as pd

    from core.formats.shared.original import Original

Features: TypeAlias = Any  # (n, d) float32: ndarray or csr_array, which mypy cannot tell apart
Labels: TypeAlias = npt.NDArray[np.uint8]

NO_FEATURE = "(no features)"
MIN_INSTANCES = 3
PENDING_FEATURES = ("not encoded yet",)
"""Name of the one feature, all zero, of data whose pictures wait for `core.encoders`."""
MAX_LISTED = 20
_WORTH_THREADS = 2**21  # values
_CHUNK_CELLS = 2**20


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


@dataclass(frozen=True, eq=False, repr=False)
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
    original : the file this was read from, if exports shall copy its columns as they came
    votes : who said what, where several sources offered labels (`core.data.votes.as_votes`);
        candidates are then the cells with a yes, and may be left out (None)

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
    display: "pd.DataFrame | None" = None
    original: "Original | None" = None
    votes: Votes | None = None

    def __repr__(self) -> str:
        sources = f", {self.votes.n_sources} sources" if self.votes is not None else ""
        return (
            f"<CandidateDataset: {self.n_instances:,} instances, {self.n_features:,} features, "
            f"{self.n_labels:,} labels, {int(self.candidates.sum()):,} candidates{sources}>"
        )

    def __post_init__(self) -> None:
        problems: list[Problem] = []
        ids, labels = self.ids, self.label_names
        features = as_features(self.features, problems, ids, self.feature_names)
        given = self.candidates
        if given is None and self.votes is not None:
            numbered = ids if len(ids) else _numbered("", features.shape[0])
            given = as_votes(self.votes, numbered, labels).candidates
        candidates = as_labels(given, "candidates", problems, ids, labels)
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
        votes = self._votes_of(candidates, names)
        for name, value in {
            "features": features,
            "candidates": _frozen(candidates),
            "truth": None if truth is None else _frozen(truth),
            "votes": votes,
            **names,
        }.items():
            object.__setattr__(self, name, value)

    def _votes_of(self, candidates: Labels, names: dict[str, Sequence[str]]) -> Votes | None:
        if self.votes is None:
            return None
        shape = (int(candidates.shape[0]), int(candidates.shape[1]))
        votes = as_votes(self.votes, names["ids"], names["label_names"], shape)
        differ = np.argwhere(votes.candidates != candidates)
        if len(differ):
            i, j = differ[0]
            rule = "candidates must be the cells that a source said yes to"
            fix = f"Leave the candidates out, or correct {len(differ):,} cells."
            at = {"row": names["ids"][i], "column": names["label_names"][j]}
            found = "a candidate without a yes" if candidates[i, j] else "a yes, not a candidate"
            raise DatasetError([Problem(rule, fix, True, value=found, **at)])
        return votes

    @property
    def n_instances(self) -> int:
        return int(self.candidates.shape[0])

    @property
    def n_labels(self) -> int:
        return int(self.candidates.shape[1])

    @property
    def n_features(self) -> int:
        return int(self.features.shape[1])

    @property
    def has_features(self) -> bool:
        """Whether instances can be told apart at all; else votes and label graph stand alone."""
        return tuple(self.feature_names[:2]) not in ((NO_FEATURE,), PENDING_FEATURES)

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
        """SHA-256 of features, candidates, ids, label names and votes: the identity of the data."""
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
        if self.votes is not None:
            self.votes.add_to(digest)
        return digest.hexdigest()

    def read_from(self, original: "Original | None") -> "CandidateDataset":
        """Return the same data, with the file whose columns are copied into exports."""
        same = copy(self)
        object.__setattr__(same, "original", original)
        return same

    def check(self) -> list[Problem]:
        """Return what is odd about the data though it can be used."""
        from core.data.checks import check

        return check(self)


def no_features(n: int) -> Features:
    """Return what stands for features where there are none: a column of zeros, not stored."""
    return sp.csr_array((n, 1), dtype=np.float32)


def as_features(
    X: Any, problems: list[Problem], ids: Sequence[str] = (), names: Sequence[str] = ()
) -> Features:
    """Return X as float32, dense or CSR; append what is wrong with it to `problems`."""
    try:
        dense = not sp.issparse(X)  # pandas has columns first: the same data, other roundings
        X = np.asarray(X, np.float32, order="C") if dense else sp.csr_array(X, dtype=np.float32)
    except (TypeError, ValueError):
        problems.append(Problem("features must be numbers", "Encode text first.", fatal=True))
        return np.zeros((0, 0), np.float32)
    if X.ndim != 2 or X.shape[1] == 0:
        table = "features must be a table with one row per instance and at least one column"
        problems.append(Problem(table, "Reshape.", fatal=True, value=str(X.shape)))
        return np.zeros((0, 0), np.float32)
    if sp.issparse(X):
        X.sum_duplicates()
        at = np.flatnonzero(~np.isfinite(X.data))
        rows = np.searchsorted(X.indptr, at[:MAX_LISTED], side="right") - 1
        count, places = len(at), list(zip(rows, X.indices[at[:MAX_LISTED]], strict=True))
    else:
        count, places = (0, []) if _seems_finite(X) else cells_where(lambda x: ~np.isfinite(x), X)
        X = _frozen(X)
    rule, fix = "features must be finite", "Fill or drop these values."
    for i, j in places:
        row, column = _named(ids, int(i)), _named(names, int(j))
        problems.append(Problem(rule, fix, True, row, column, str(X[i, j])))
    problems += more_of(rule, fix, count)
    return X


def cells_where(
    is_found: Callable[..., npt.NDArray[np.bool_]], *tables: npt.NDArray[Any]
) -> tuple[int, list[tuple[int, int]]]:
    """Return in how many cells something holds, and the first of them; rows are taken in turn."""
    count = 0
    places: list[tuple[int, int]] = []
    step = max(1, _CHUNK_CELLS // max(1, tables[0].shape[1]))
    for start in range(0, len(tables[0]), step):
        found = is_found(*(table[start : start + step] for table in tables))
        n_found = int(np.count_nonzero(found))
        if n_found and len(places) < MAX_LISTED:
            cells = np.argwhere(found)[: MAX_LISTED - len(places)].tolist()
            places += [(start + i, j) for i, j in cells]
        count += n_found
    return count, places


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
    Y: Any, what: str, problems: list[Problem], ids: Sequence[str] = (), names: Sequence[str] = ()
) -> Labels:
    """Return Y, given as 0/1, true/false or -1/1, as uint8; append what is wrong with it."""
    try:
        Y = np.asarray(Y.toarray() if sp.issparse(Y) else Y, order="C")
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
    count, bad = cells_where(lambda y: ~((y == 0) | (y == 1) | (y == -1)), numbers)
    rule, fix = f"{what} must be 0 or 1", "Use 0/1, true/false or -1/1."
    for i, j in bad:
        row, column = _named(ids, int(i)), _named(names, int(j))
        problems.append(Problem(rule, fix, True, row, column, str(numbers[i, j])))
    problems += more_of(rule, fix, count)
    return (numbers > 0).view(np.uint8)


def more_of(rule: str, fix: str, count: int, fatal: bool = True) -> list[Problem]:
    """Return how many of a kind of problem are there beyond those listed one by one."""
    if count <= MAX_LISTED:
        return []
    rest = count - MAX_LISTED
    return [Problem(f"… and {rest:,} more: {rule}", fix, fatal, count=rest, repeats=rule)]


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
