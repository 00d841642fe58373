"""Columns that arrive batch by batch become one array, without a second copy.

Owns the memory of a reading: the array is reserved once (untouched pages cost nothing), filled
column by column as files have them, and cut to size at the end; its rows are a view across the
columns. Wide, mostly empty tables are kept sparse.
"""

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import scipy.sparse as sp

from core.data.dataset import Features
from core.formats.shared.limits import check_size

BLOCK_ROWS = 8192
MIN_SPARSE_WIDTH = 100
MAX_SPARSE_DENSITY = 0.1
COLUMN = 4  # bytes of the place of a sparse value

Columns = Sequence[npt.NDArray[Any]]
_SHARE = 16  # columns a thread copies at a time
_WORTH_THREADS = 2**21  # values


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(os.cpu_count(), thread_name_prefix="plain-columns")


class RowBlock:
    """An (n, width) array of one type, column-major, that grows by columns of equal length."""

    def __init__(self, width: int, dtype: type[np.generic], rows: int) -> None:
        self._columns = _reserved(width, max(1, rows), dtype)
        self._n = 0
        self._copying: list[Future[None]] = []

    def add(self, columns: Columns) -> None:
        """Copy the columns; many values in threads, which `array` waits for."""
        start, end = self._n, self._n + len(columns[0])
        self._reserve(end)
        if len(columns) * (end - start) < _WORTH_THREADS:
            _copy(columns, self._columns[:, start:end])
        else:
            for i in range(0, len(columns), _SHARE):
                some, target = columns[i : i + _SHARE], self._columns[i : i + _SHARE, start:end]
                self._copying.append(_threads().submit(_copy, some, target))
        self._n = end

    def array(self) -> npt.NDArray[Any]:
        self._settle()
        return self._columns[:, : self._n].T

    def _settle(self) -> None:
        for copying in self._copying:
            copying.result()
        self._copying.clear()

    def _reserve(self, n: int) -> None:
        width, reserved = self._columns.shape
        if n > reserved:
            self._settle()
            larger = _reserved(width, max(n, 2 * reserved), self._columns.dtype)
            larger[:, : self._n] = self._columns[:, : self._n]
            self._columns = larger


def _reserved(width: int, rows: int, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """Return memory of pyarrow's, which it keeps from one reading for the next."""
    check_size(width * rows * np.dtype(dtype).itemsize)
    memory = pa.allocate_buffer(width * rows * np.dtype(dtype).itemsize)
    return np.frombuffer(memory, dtype).reshape(width, rows)


def _copy(columns: Columns, targets: npt.NDArray[Any]) -> None:
    with np.errstate(over="ignore"):  # what float32 cannot hold becomes infinite, and is told
        for target, column in zip(targets, columns, strict=True):
            target[:] = column


class FeatureBlock:
    """Features batch by batch: dense, or CSR when the first batch is wide and mostly zero."""

    def __init__(self, width: int, rows: int, dtype: type[np.floating[Any]] = np.float32) -> None:
        self._width, self._rows, self._dtype = width, rows, dtype
        self._dense: RowBlock | None = None
        self._sparse: list[sp.csr_array] = []
        self._stored = 0  # values in them

    def add(self, columns: Columns) -> None:
        if self._dense is None and (self._sparse or self._is_sparse(columns)):
            for rows in _sparse_rows(columns, self._dtype):
                self._stored += rows.nnz
                check_size((np.dtype(self._dtype).itemsize + COLUMN) * self._stored)
                self._sparse.append(rows)
            return
        if self._dense is None:
            self._dense = RowBlock(self._width, self._dtype, self._rows)
        self._dense.add(columns)

    def array(self) -> Features:
        if self._sparse:
            return sp.csr_array(sp.vstack(self._sparse, format="csr"))
        return (
            np.empty((0, self._width), self._dtype) if self._dense is None else self._dense.array()
        )

    def _is_sparse(self, columns: Columns) -> bool:
        if self._width < MIN_SPARSE_WIDTH or not len(columns[0]):
            return False
        filled = sum(np.count_nonzero(column[:BLOCK_ROWS]) for column in columns)
        return bool(filled < MAX_SPARSE_DENSITY * self._width * len(columns[0][:BLOCK_ROWS]))


def _sparse_rows(columns: Columns, dtype: type[np.generic]) -> Iterator[sp.csr_array]:
    for i in range(0, len(columns[0]), BLOCK_ROWS):
        block = np.array([column[i : i + BLOCK_ROWS] for column in columns], dtype)
        at = np.flatnonzero(block != 0)  # scipy takes several times as long to find them
        column, row = (part.astype(np.int32) for part in np.divmod(at, block.shape[1]))
        yield sp.csr_array((block.ravel()[at], (row, column)), shape=block.T.shape)
