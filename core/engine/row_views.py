"""Rows made of others when they are asked for: scaled, of length 1, in fewer dimensions.

What they are made of may lie on a disk and be larger than memory. A row has the same bits whichever
others are asked for with it.
"""

from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

Rows = npt.NDArray[np.float32]

_BLOCK = 2**14
"""Rows made at once: in between they have twice the digits."""

_LEARNED = 20_000
"""Sparse rows whose principal dimensions are found."""

_COLUMNS = 2**16
"""Columns of sparse rows that these are of: those with the most weight."""

_DIMENSIONS = 256
"""Of 100,000 made texts 32 cells found .56 of the neighbours by 256 random dimensions, .66 by 128
principal ones and .84 by 256."""


class RowView(Protocol):
    """Dense rows; an array will do."""

    @property
    def shape(self) -> tuple[int, ...]:
        """How many rows and columns there are."""

    def __len__(self) -> int: ...

    def __getitem__(self, at: Any, /) -> Rows:
        """Return the rows of a slice or with these numbers."""


class ScaledRows:
    """Rows less a mean, divided by a scale."""

    def __init__(self, X: Rows, mean: Rows, scale: Rows) -> None:
        self._X, self._mean, self._scale = X, mean, scale
        self.shape = X.shape

    def __len__(self) -> int:
        return len(self._X)

    def __getitem__(self, at: Any) -> Rows:
        part = np.asarray(self._X[at] - self._mean)
        part /= self._scale
        return part

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        return laid_out(self).astype(dtype or np.float32, copy=False)


class NormalizedRows:
    """Rows brought to length 1; those of zeros stay so."""

    def __init__(self, X: RowView) -> None:
        self._X, self.shape = X, X.shape
        squares = np.empty(len(X))
        for at, part in zip(_blocks(len(X)), in_blocks(X), strict=True):
            squares[at] = np.einsum("ij,ij->i", part, part, dtype=np.float64)
        lengths = np.sqrt(squares)
        self._lengths = np.where(lengths > 0, lengths, 1)[:, None]

    def __len__(self) -> int:
        return len(self._X)

    def __getitem__(self, at: Any) -> Rows:
        return np.asarray(self._X[at] / self._lengths[at], np.float32)

    @property
    def are_finite(self) -> bool:
        return bool(np.isfinite(self._lengths).all())


class ReducedRows:
    """Sparse rows in fewer dimensions, the principal ones of some of them, and of length 1 there.

    Parameters
    ----------
    X : (n, d) sparse; seed : of the choice of rows
    """

    def __init__(self, X: sp.csr_array, seed: int) -> None:
        from sklearn.decomposition import TruncatedSVD

        n = X.shape[0]
        some = X[np.sort(np.random.default_rng(seed).choice(n, min(_LEARNED, n), replace=False))]
        weights = np.bincount(some.indices, some.data**2, some.shape[1])
        self._columns = np.sort(np.argsort(-weights, kind="stable")[:_COLUMNS])
        some = sp.csr_matrix(some[:, self._columns])
        d = min(_DIMENSIONS, *some.shape)
        V = np.eye(d)  # where there are no more columns
        if d < some.shape[1]:
            V = TruncatedSVD(d, n_iter=3, random_state=seed).fit(some).components_.T
        self._V = np.ascontiguousarray(V, np.float32)
        self._X, self.shape = X, (n, self._V.shape[1])

    def __len__(self) -> int:
        return int(self.shape[0])

    def __getitem__(self, at: Any) -> Rows:
        return NormalizedRows(self._X[at][:, self._columns] @ self._V)[:]


def laid_out(rows: RowView, order: npt.NDArray[Any] | None = None) -> Rows:
    """Return all rows, in this order, as an array."""
    out = np.empty(rows.shape, np.float32)
    for at, part in zip(_blocks(len(out)), in_blocks(rows, order), strict=True):
        out[at] = part
    return out


def in_blocks(rows: RowView, order: npt.NDArray[Any] | None = None) -> Iterator[Rows]:
    """Yield all rows, in this order, some at a time."""
    for at in _blocks(len(rows)):
        yield rows[at if order is None else order[at]]


def _blocks(n: int) -> Iterator[slice]:
    for at in range(0, n, _BLOCK):
        yield slice(at, at + _BLOCK)
