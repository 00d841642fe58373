"""Between sets of labels, as files list them, and the 0/1 matrix the engine works on.

Also what writers share: which names are mere numbering, what a cell's label and text is.
"""

import re
from array import array
from collections.abc import Iterable, Sequence, Set
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

from core.data.dataset import CandidateDataset, Labels
from core.errors import Problem
from core.formats.shared.findings import Findings
from core.formats.shared.limits import MAX_LABELS, check_shape, check_size

if TYPE_CHECKING:
    import pyarrow as pa

T = TypeVar("T")

DECIDED = re.compile(r"decided by (.+) on (\S+)", re.DOTALL)
UNSAFE = re.compile(r"[^A-Za-z0-9_]+")  # such as a dot or a blank
IMAGE_NAMES = ("image", "img", "picture", "photo", "image_url", "image_path", "filepath")

TRUTH_ONLY = Problem(
    "the file has only one set of labels: it is taken as candidates and as truth",
    "Nothing to do for a clean data set; otherwise add the candidates.",
)
RESOLVED = Problem(
    "the file is an export: its candidates are read, its resolved labels and confidences are not",
    "Nothing to do, unless the resolved labels should be the new candidates: then rename them.",
)


class LabelSets:
    """The labels of n instances: every name is kept once, whoever has it has its number."""

    def __init__(self, n: int) -> None:
        self.n = n
        self._numbers: dict[str, int] = {}
        self._rows, self._labels = array("i"), array("i")

    def numbers(self, names: Iterable[str]) -> "array[int]":
        """Return the numbers of these names; new ones get the next."""
        known = self._numbers
        numbers = array("i", [known.setdefault(name, len(known)) for name in names])
        if len(known) > MAX_LABELS:
            check_shape(0, 0, len(known))
        return numbers

    def add(self, row: int, numbers: "array[int]") -> None:
        self._labels.extend(numbers)
        self._rows.extend(array("i", [row]) * len(numbers))
        check_size(16 * len(self._rows), "the list of all labels")

    @property
    def names(self) -> Set[str]:
        return self._numbers.keys()

    def matrix(self, label_names: Sequence[str]) -> Labels:
        """Return the (n, L) matrix; names that are not labels are left out."""
        check_shape(self.n, 0, len(label_names))
        matrix = np.zeros((self.n, len(label_names)), np.uint8)
        place = {name: j for j, name in enumerate(label_names)}
        columns = np.array([place.get(name, -1) for name in self._numbers], np.intc)
        if self._rows:
            found = columns[np.frombuffer(self._labels, np.intc)]
            matrix[np.frombuffer(self._rows, np.intc)[found >= 0], found[found >= 0]] = 1
        return matrix


def matrix_of(sets: Sequence[Iterable[int]], n_labels: int) -> Labels:
    """Return the (n, L) matrix of these sets of label numbers, all within range."""
    check_shape(len(sets), 0, n_labels)
    matrix = np.zeros((len(sets), n_labels), np.uint8)
    for row, members in zip(matrix, sets, strict=True):
        row[list(members)] = 1
    return matrix


def sets_of(matrix: npt.NDArray[Any], items: Sequence[T]) -> list[list[T]]:
    """Return per row the items of the columns that are set, in column order."""
    return [[items[j] for j in np.flatnonzero(row).tolist()] for row in matrix]


def matrix_of_names(
    sets: Sequence[Iterable[str]], label_names: Sequence[str], findings: Findings, what: str
) -> Labels:
    """Return the matrix of these sets of names; unknown names are fatal findings."""
    index = {name: j for j, name in enumerate(label_names)}
    numbers = [_known(names, index, i, findings, what) for i, names in enumerate(sets)]
    return matrix_of(numbers, len(label_names))


def _known(
    names: Iterable[str], index: dict[str, int], row: int, findings: Findings, what: str
) -> list[int]:
    names = list(names)
    for name in names:
        if name not in index:
            rule, fix = f"{what} must be among the label names", "Add the name, or correct it."
            findings.add(rule, fix, fatal=True, row=row, value=name)
    return [index[name] for name in names if name in index]


def is_numbering(names: Sequence[str], prefix: str) -> bool:
    """Whether names are what CandidateDataset gives when there are none."""
    return all(name == f"{prefix}{i}" for i, name in enumerate(names))


def resolved_labels(dataset: CandidateDataset, resolution: Any) -> Labels:
    """Return the resolved labels, or the candidates while nothing is resolved."""
    return dataset.candidates if resolution is None else np.asarray(resolution.labels, np.uint8)


def reason_of(resolution: Any, row: int, column: int) -> str:
    return str(resolution.reason_texts[int(resolution.reasons[row, column])])


def decided_labels(
    dataset: CandidateDataset, resolution: Any, row: int
) -> dict[tuple[str, str], list[str]]:
    """Return, by annotator and date, the labels a person decided to be true for an instance."""
    decided: dict[tuple[str, str], list[str]] = {}
    for j in decided_columns(resolution, row):
        match = DECIDED.fullmatch(reason_of(resolution, row, j))
        if match:
            names = decided.setdefault((match[1], match[2]), [])
            names += [dataset.label_names[j]] if resolution.labels[row, j] else []
    return decided


def decided_columns(resolution: Any, row: int) -> list[int]:
    """Return the labels of an instance that a person decided about."""
    if resolution is None:
        return []
    texts = enumerate(resolution.reason_texts)
    codes = [code for code, text in texts if DECIDED.fullmatch(text)]
    columns: list[int] = np.flatnonzero(np.isin(resolution.reasons[row], codes)).tolist()
    return columns


def image_column(columns: Iterable[str]) -> str | None:
    """Return the display column that names a picture, if one does."""
    return next((name for name in columns if name.lower() in IMAGE_NAMES), None)


def display_texts(dataset: CandidateDataset) -> dict[str, list[str]]:
    """Return the display columns as text; missing values become empty."""
    if dataset.display is None:
        return {}
    return {
        str(name): ["" if missing else str(value) for value, missing in _cells(column)]
        for name, column in dataset.display.items()
    }


def display_values(dataset: CandidateDataset) -> dict[str, "pa.Array"]:
    """Return the display columns with their types, or as text where values are of several kinds."""
    if dataset.display is None:
        return {}
    return {str(name): shown_values(column) for name, column in dataset.display.items()}


def shown_values(series: Any) -> "pa.Array":
    """Return a display column as it is, or as text where its values are of several kinds."""
    import pyarrow as pa

    try:
        values = pa.array(series, from_pandas=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
        texts = [None if missing else str(value) for value, missing in _cells(series)]
        values = pa.array(texts, pa.string())
    whole = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    return whole.cast(pa.string()) if pa.types.is_large_string(whole.type) else whole


def _cells(column: Any) -> Iterable[tuple[Any, bool]]:
    return zip(column.tolist(), column.isna().tolist(), strict=True)


def safe_keys(names: Iterable[str], taken: Iterable[str] = ()) -> dict[str, str]:
    """Return a key for each name that other programs can look up, all different."""
    used = set(taken)
    keys: dict[str, str] = {}
    for name in names:
        plain = UNSAFE.sub("_", name).strip("_") or "column"
        key, n = plain, 2
        while key in used:
            key, n = f"{plain}_{n}", n + 1
        used.add(key)
        keys[name] = key
    return keys
