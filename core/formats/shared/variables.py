"""Named arrays, as MATLAB and NumPy files have them: what a name says, and classes as tables.

A name counts without its case and its underscores: `Partial_Target`, `partialTarget`.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from core.data.votes import Votes
from core.formats.shared.cells import plain_key
from core.formats.shared.findings import Findings, refuse
from core.formats.shared.limits import check_shape

LABELS = r"(y|labels?|targets?|lab)"
INPUTS = r"(data|x|fea|feas|features?|inputs?|images?|embeddings?)"
PARTIAL = r"(partial|pl|candidates?|cand)"
DATA = re.compile(rf"(train|tr)?{INPUTS}|{INPUTS}(train|tr)")
SURELY_TRUE = re.compile(
    rf"(train|tr)?(true|gold|groundtruth|gt|clean){LABELS}|(train)?y(true|gt|clean)|groundtruth"
    r"|truth|gold"
)
TRUTH = re.compile(rf"(train|tr)?{LABELS}|{LABELS}(train|tr)|gnd|class")
CANDIDATES = re.compile(
    rf"(train|tr)?({PARTIAL}(train|tr)?({LABELS}|matrix|mat|sets?)?|(p|noisy|noise|logical){LABELS})"
    rf"|{LABELS}({PARTIAL}|p|noisy)"
)
ANSWERS = re.compile(
    r"(l|labelmatrix|answers?|annotations?|votes?|responses?|lfs?|lfvotes|wl)(matrix|train)?"
    r"|(crowd|worker|weak|annotator|rater|source)s?(labels?|annotations?|answers?|votes?)"
)
NAMES = re.compile(
    r"(label|class|target|category)(es|s)?names?|names?of(label|classe)s|classes|categories"
)
TESTED = re.compile(rf"(test|te|val|valid)({INPUTS}|{LABELS})|({INPUTS}|{LABELS})(test|te|val)")
ROLES = (("candidates", CANDIDATES), ("truth", SURELY_TRUE), ("features", DATA), ("truth", TRUTH))
MAX_CLASSES = 10_000  # numbers beyond count or measure something

Arrays = Mapping[str, Any]


def called(names: Sequence[str], what: re.Pattern[str]) -> list[str]:
    """Return the names that say this."""
    return [name for name in names if what.fullmatch(plain_key(name))]


def is_vector_of_classes(array: Any) -> bool:
    """Whether this is a column or a row of whole numbers from 0 on, some beyond 1."""
    if sp.issparse(array) or array.dtype.kind not in "iuf" or array.size < 2:
        return False
    if array.ndim > 2 or array.size != max(array.shape):
        return False
    is_whole = bool(np.isfinite(array).all()) and bool((array == np.floor(array)).all())
    return is_whole and array.min() >= 0 and 1 < array.max() < MAX_CLASSES


def table_of_classes(
    array: npt.NDArray[Any], width: int | None, *, from_one: bool = False
) -> npt.NDArray[np.uint8]:
    """Return the 0/1 table of a vector of class numbers; `width` is how many labels there are.

    Classes count from 0 where 0 occurs, or where there are as many labels as the largest says.
    """
    numbers = np.ravel(array).astype(np.intp)
    largest = int(numbers.max(initial=0))
    first = int(from_one and numbers.min(initial=1) > 0 and (width is None or largest == width))
    width = largest + 1 - first if width is None else width
    if largest - first >= width:
        rule = f"class numbers must be among the {width} labels"
        refuse(rule, "Save them as a table of 0/1.", value=largest)
    check_shape(len(numbers), 0, width)
    return np.eye(width, dtype=np.uint8)[numbers - first]


def votes_of_classes(
    matrix: npt.NDArray[Any],
    truth: npt.NDArray[Any] | None,
    names: Sequence[str],
    *,
    from_one: bool = False,
) -> tuple[Votes, npt.NDArray[np.uint8] | None]:
    """Return a class number per item and source as votes, and the truth if there is one.

    What is less than 0 or no number said nothing.
    """
    with np.errstate(invalid="ignore"):
        matrix = np.where(np.isnan(matrix), -1, matrix).astype(np.int64)
    n_classes = max(int(matrix.max(initial=-1)) + 1, len(names))
    true = None
    if truth is not None and truth.size == len(matrix) and truth.dtype.kind in "iuf":
        numbers = np.nan_to_num(np.ravel(truth), nan=-1).astype(np.int64) - from_one
        if numbers.min(initial=0) >= 0:
            n_classes = max(n_classes, int(numbers.max(initial=-1)) + 1)
            check_shape(len(matrix), 0, n_classes)
            true = np.eye(n_classes, dtype=np.uint8)[numbers]
    check_shape(len(matrix), 0, n_classes)
    row, source = np.nonzero(matrix >= 0)
    yes = np.stack([row, matrix[row, source], source], axis=1).astype(np.int32)
    answered = np.stack([row, source], axis=1).astype(np.int32)
    sources = tuple(f"source {k + 1}" for k in range(matrix.shape[1]))
    shape = (len(matrix), n_classes)
    return Votes(sources, yes, answered, np.zeros((0, 3), np.int32), shape).compact(), true


def named_by_content(arrays: Arrays, findings: Findings) -> dict[str, str]:
    """Return which array is what where no name says it: tables of 0/1 beside one of numbers."""
    tables = {k: v for k, v in arrays.items() if len(v.shape) == 2 and min(v.shape) > 1}
    marks = {k: v for k, v in tables.items() if _holds_marks(v)}
    rest = [k for k in tables if k not in marks and tables[k].dtype.kind in "iuf"]
    if not rest or len(marks) not in (1, 2):
        return {}
    data = max(rest, key=lambda k: tables[k].shape[0] * tables[k].shape[1])
    order = sorted(marks, key=lambda k: -(marks[k] > 0).sum())
    if len(order) == 2 and not _covers(marks[order[0]], marks[order[1]]):
        return {}
    found = {"features": data, **dict(zip(("candidates", "truth"), order, strict=False))}
    told = ", ".join(f"{name} for {role}" for role, name in found.items())
    rule = "which variables hold what? No name says it: " + told
    findings.add(rule, "If that is wrong, call them data, partial_labels and target.")
    return found


def _holds_marks(table: Any) -> bool:
    values = table.data if sp.issparse(table) else table
    if values.dtype.kind not in "biuf" or values.size == 0:
        return False
    return set(np.unique(values).tolist()) <= {-1, 0, 1}


def _covers(larger: Any, smaller: Any) -> bool:
    if larger.shape != smaller.shape:
        return False
    return int(((smaller > 0).astype(int) > (larger > 0).astype(int)).sum()) == 0
