"""Nearest neighbours by Euclidean distance, and the weights that rebuild a row from its own."""

from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.optimize import nnls
from sklearn.utils.parallel import Parallel, delayed

from core.methods.base import Matrix

Indices = npt.NDArray[np.intp]

_BLOCK = 2**22
"""Distances held at once (32 MB)."""


class Neighbors:
    """The k nearest of some rows; a row of the fitted ones is never its own neighbour.

    Exact, by blocks of a matrix product: on 6,655 sparse rows 15 times faster than scikit-learn's
    brute force. Fewer than k rows have fewer neighbours.
    """

    def __init__(self, X: Any, k: int, n_jobs: int | None = None) -> None:
        self.X, self.k, self._n_jobs = X, min(k, X.shape[0] - 1), n_jobs
        self._squares = _squares(X)

    def of(self, X: Any = None) -> tuple[Matrix, Indices]:
        """Return distances and rows, (m, k), of X, or of the fitted rows among each other."""
        is_own = X is None
        X = self.X if is_own else X
        step = max(1, _BLOCK // self.X.shape[0])
        found = Parallel(n_jobs=self._n_jobs, prefer="threads")(
            delayed(self._block)(X[start : start + step], start if is_own else None)
            for start in range(0, X.shape[0], step)
        )
        distances, rows = (np.concatenate(part) for part in zip(*found, strict=True))
        return distances, rows

    def _block(self, X: Any, first: int | None) -> tuple[Matrix, Indices]:
        products = X @ self.X.T
        D = -2 * (products.toarray() if sp.issparse(products) else products)
        D += _squares(X)[:, None]
        D += self._squares
        each = np.arange(len(D))
        if first is not None:
            D[each, first + each] = np.inf
        rows = np.sort(np.argpartition(D, self.k - 1, axis=1)[:, : self.k], axis=1)
        near = np.take_along_axis(D, rows, axis=1)
        order = np.argsort(near, axis=1, kind="stable")  # equal distances by index
        distances = np.sqrt(np.maximum(np.take_along_axis(near, order, axis=1), 0))
        return distances, np.take_along_axis(rows, order, axis=1)

    def matrix(self, rows: Indices, values: Any = 1.0) -> sp.csr_array:
        """Return (m, n): these values at the neighbours of every row."""
        m, k = rows.shape
        data = np.broadcast_to(np.asarray(values, np.float64), (m, k)).ravel()
        starts = np.arange(0, m * k + 1, k)
        return sp.csr_array((data, rows.ravel(), starts), shape=(m, self.X.shape[0]))

    def rebuilding(self, X: Any, rows: Indices) -> Matrix:
        """Return the non-negative weights (m, k) with which neighbours come nearest to each row.

        Only products of rows are used (||N'w - x||^2 = w'NN'w - 2 (Nx)'w + const), so the cost of
        a problem does not grow with the number of features.
        """
        return _nnls_of_grams(*self.products(X, rows))

    def simplex_weights(self, X: Any, rows: Indices) -> tuple[Matrix, Matrix, Matrix, Matrix]:
        """Return the same weights summing to 1, with the products and squares they came from.

        The sum is held by a row of ones, heavy against the rest.
        """
        grams, aims = self.products(X, rows)
        heavy = 1e4 * (np.einsum("mkk->m", grams) + 1e-12) / rows.shape[1]
        weights = _nnls_of_grams(grams + heavy[:, None, None], aims + heavy[:, None])
        total = weights.sum(axis=1, keepdims=True)
        weights = np.divide(weights, total, where=total > 0, out=np.zeros_like(weights))
        return weights, grams, aims, _squares(X)

    def products(self, X: Any, rows: Indices) -> tuple[Matrix, Matrix]:
        """Return NN' (m, k, k) and Nx (m, k) of the neighbours N of each row x."""
        m, k = rows.shape
        grams, aims = np.empty((m, k, k)), np.empty((m, k))
        step = max(1, _BLOCK // (k * self.X.shape[1]))
        for start in range(0, m, step):
            some = slice(start, start + step)
            N, x = _dense(self.X[rows[some].ravel()]), _dense(X[some])
            N = N.reshape(len(x), k, -1)
            grams[some] = N @ N.transpose(0, 2, 1)
            aims[some] = (N @ x[:, :, None])[:, :, 0]
        return grams, aims


def _nnls_of_grams(grams: Matrix, aims: Matrix) -> Matrix:
    """Solve min_w>=0 w'Gw/2 - aim'w of each through the eigenvectors of G, which may be singular.

    Directions that G does not have are rows of zeros in the problem, and change nothing.
    """
    spread, V = np.linalg.eigh(grams)  # all at once: a call costs as much as a decomposition
    some = spread > 1e-12 * np.maximum(spread[:, -1:], 1e-300)
    root = np.sqrt(np.where(some, spread, 0))
    A = root[:, :, None] * V.transpose(0, 2, 1)
    b = (V.transpose(0, 2, 1) @ aims[:, :, None])[:, :, 0]
    b = np.divide(b, root, where=some, out=np.zeros_like(b))
    return np.array([nnls(*one)[0] for one in zip(A, b, strict=True)])


def _dense(X: Any) -> Matrix:
    return np.asarray(X.toarray() if sp.issparse(X) else X)


def _squares(X: Any) -> Matrix:
    if sp.issparse(X):
        return np.asarray(X.multiply(X).sum(axis=1)).ravel()
    return np.asarray(np.einsum("ij,ij->i", X, X))
