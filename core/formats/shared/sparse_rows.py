"""Sparse features from a file's raw CSR arrays, checked before scipy's C code trusts them."""

from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from core.data.dataset import Features
from core.formats.shared.findings import refuse
from core.formats.shared.limits import check_shape

DAMAGED = "The file is damaged: write it again."


def checked_csr(
    data: Any, indices: Any, indptr: Any, shape: Any, *, exact: bool = False
) -> sp.csr_array:
    """Return the float32 CSR matrix these arrays describe; refuse arrays that describe none.

    `exact` leaves the values as they are.
    """
    n, d = _pair(shape)
    check_shape(n, d, 0)
    values = _vector(data, "data", "biuf")
    columns, starts = _vector(indices, "indices", "iu"), _vector(indptr, "indptr", "iu")
    if len(starts) != n + 1:
        refuse("indptr must have one entry more than there are rows", DAMAGED, value=len(starts))
    if int(starts[0]) != 0 or int(starts[-1]) != len(values) or len(columns) != len(values):
        found = f"{int(starts[0])} to {int(starts[-1])} over {len(columns)} and {len(values)}"
        refuse("indptr must run from 0 to the number of values", DAMAGED, value=found)
    if (starts[1:] < starts[:-1]).any():
        refuse("indptr must not fall", DAMAGED)
    if len(columns) and not (int(columns.min()) >= 0 and int(columns.max()) < d):
        found = f"{int(columns.min())} to {int(columns.max())}"
        refuse(f"column indices must lie between 0 and {d - 1}", DAMAGED, value=found)
    with np.errstate(over="ignore"):  # infinities are reported by CandidateDataset
        values = values if exact else values.astype(np.float32)
        return sp.csr_array((values, columns, starts), shape=(n, d))


def row_of(features: Features, row: int) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Return the columns and values of what one row stores: everything but zeros."""
    if sp.issparse(features):
        part = slice(features.indptr[row], features.indptr[row + 1])
        columns, values = features.indices[part], features.data[part]
        return columns[values != 0], values[values != 0]
    columns = np.flatnonzero(features[row])
    return columns, features[row, columns]


def _pair(shape: Any) -> tuple[int, int]:
    sizes = _vector(shape, "shape", "iu")
    if len(sizes) != 2 or int(sizes.min()) < 0:
        refuse("the shape of a sparse matrix is two counts", DAMAGED, value=sizes.tolist()[:9])
    return int(sizes[0]), int(sizes[1])


def _vector(given: Any, what: str, kinds: str) -> npt.NDArray[Any]:
    try:
        array = np.asarray(given)
    except ValueError:  # lists of different lengths
        refuse(f"{what} must be a list of numbers", DAMAGED, value=given)
    if array.size == 0 and array.dtype.kind == "f":
        array = array.astype(np.int64)  # an empty list has no type of its own
    if array.ndim != 1 or array.dtype.kind not in kinds:
        found = f"{array.dtype} of shape {array.shape}"
        refuse(f"{what} must be a list of numbers", DAMAGED, value=found)
    return array
