"""Columns that arrive batch by batch become one row-major array, without a second copy.

Owns the memory of a reading: the array is reserved once (untouched pages cost nothing), filled
in blocks small enough to be transposed in the processor's cache, and cut to size at the end.
Wide, mostly empty tables are kept sparse.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from core.dataset import Features

BLOCK_ROWS = 8192
MIN_SPARSE_WIDTH = 100
MAX_SPARSE_DENSITY = 0.1

Columns = Sequence[npt.NDArray[Any]]


class RowBlock:
    """An (n, width) array of one type that grows by columns of equal length."""

    def __init__(self, width: int, dtype: type[np.generic], rows: int) -> None:
        self._array: npt.NDArray[Any] = np.empty((max(1, rows), width), dtype)
        self._n = 0

    def add(self, columns: Columns) -> None:
        n_new = len(columns[0])
        self._reserve(self._n + n_new)
        target = self._array[self._n : self._n + n_new]
        for start in range(0, n_new, BLOCK_ROWS):
            rows = slice(start, start + BLOCK_ROWS)
            target[rows] = np.array([column[rows] for column in columns], target.dtype).T
        self._n += n_new

    def array(self) -> npt.NDArray[Any]:
        return self._array[: self._n]

    def _reserve(self, n: int) -> None:
        if n > len(self._array):
            larger = np.empty(
                (max(n, 2 * len(self._array)), self._array.shape[1]), self._array.dtype
            )
            larger[: self._n] = self.array()
            self._array = larger


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
