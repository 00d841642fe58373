"""Columns that arrive batch by batch become one array, without a second copy.

Owns the memory of a reading: the array is reserved once (untouched pages cost nothing), filled
column by column as files have them, and cut to size at the end; its rows are a view across the
columns. Wide, mostly empty tables are kept sparse.
"""

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from core.dataset import Features

BLOCK_ROWS = 8192
MIN_SPARSE_WIDTH = 100
MAX_SPARSE_DENSITY = 0.1

Columns = Sequence[npt.NDArray[Any]]
_SHARE = 16  # columns a thread copies at a time
_WORTH_THREADS = 2**21  # values


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(os.cpu_count(), thread_name_prefix="plain-columns")


class RowBlock:
    """An (n, width) array of one type, column-major, that grows by columns of equal length."""

    def __init__(self, width: int, dtype: type[np.generic], rows: int) -> None:
        self._columns: npt.NDArray[Any] = np.empty((width, max(1, rows)), dtype)
        self._n = 0

    def add(self, columns: Columns) -> None:
        end = self._n + len(columns[0])
        self._reserve(end)
        if len(columns) * (end - self._n) < _WORTH_THREADS:
            self._fill(slice(None), columns, end)
        else:
            shares = [slice(i, i + _SHARE) for i in range(0, len(columns), _SHARE)]
            list(_threads().map(lambda some: self._fill(some, list(columns[some]), end), shares))
        self._n = end

    def array(self) -> npt.NDArray[Any]:
        return self._columns[:, : self._n].T

    def _fill(self, at: slice, columns: Columns, end: int) -> None:
        with np.errstate(over="ignore"):  # what float32 cannot hold becomes infinite, and is told
            for target, column in zip(self._columns[at], columns, strict=True):
                target[self._n : end] = column

    def _reserve(self, n: int) -> None:
        width, reserved = self._columns.shape
        if n > reserved:
            larger = np.empty((width, max(n, 2 * reserved)), self._columns.dtype)
            larger[:, : self._n] = self._columns[:, : self._n]
            self._columns = larger


class FeatureBlock:
    """Features batch by batch: dense, or CSR when the first batch is wide and mostly zero."""

    def __init__(self, width: int, rows: int) -> None:
        self._width, self._rows = width, rows
        self._dense: RowBlock | None = None
        self._sparse: list[sp.csr_array] = []

    def add(self, columns: Columns) -> None:
        if self._dense is None and (self._sparse or self._is_sparse(columns)):
            self._sparse += _sparse_rows(columns)
            return
        if self._dense is None:
            self._dense = RowBlock(self._width, np.float32, self._rows)
        self._dense.add(columns)

    def array(self) -> Features:
        if self._sparse:
            return sp.csr_array(sp.vstack(self._sparse, format="csr"))
        return (
            np.empty((0, self._width), np.float32) if self._dense is None else self._dense.array()
        )

    def _is_sparse(self, columns: Columns) -> bool:
        if self._width < MIN_SPARSE_WIDTH or not len(columns[0]):
            return False
        filled = sum(np.count_nonzero(column[:BLOCK_ROWS]) for column in columns)
        return bool(filled < MAX_SPARSE_DENSITY * self._width * len(columns[0][:BLOCK_ROWS]))


def _sparse_rows(columns: Columns) -> list[sp.csr_array]:
    starts = range(0, len(columns[0]), BLOCK_ROWS)
    blocks = (np.array([column[i : i + BLOCK_ROWS] for column in columns]) for i in starts)
    return [sp.csr_array(block.T) for block in blocks]
