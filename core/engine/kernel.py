"""Kernel ridge regression on landmarks, with every training prediction made without its own row.

A Gaussian kernel of the instances to m of them (Nystroem) gives features whose ridge regression is
solved for all strengths from one eigendecomposition. What the fit would say of a row had it been
left out is exact and free: (F_i - h_i y_i) / (1 - h_i) with the leverage h_i. The strength is the
one whose left-out predictions are nearest to the targets, so no truth is needed.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.linalg import cholesky, eigh, solve_triangular

from core.data.dataset import Features

Matrix = npt.NDArray[np.float32]

STRENGTHS = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)

_FEWEST = 500
"""Landmarks of data with few features; wide data has more directions to tell apart."""

_LARGEST = 2**26
"""Values of the kernel matrix; larger data has fewer landmarks."""

_CHUNK = 8192
"""Rows handled at once."""


class KernelRidge:
    """Targets as smooth functions of the instances.

    Parameters
    ----------
    X : (n, d) scaled features; n_landmarks : at most so many; seed : of their choice
    """

    def __init__(self, X: Features, n_landmarks: int, seed: int = 0) -> None:
        n, d = X.shape
        m = min(n, n_landmarks, max(_FEWEST, d), max(_LARGEST // n, 1))
        at = np.sort(np.random.default_rng(seed).permutation(n)[:m])
        self._landmarks = X[at]
        self._squares = _squares(self._landmarks)
        # Sparse rows have length 1 and few neighbours: their kernel is wider.
        self._width = (2.0 if sp.issparse(X) else 1.0) * self._mean_distance()
        K = self._kernel(X)
        W = K[at].astype(np.float64)
        L = cholesky(W + 1e-5 * max(float(W.trace()) / m, 1e-6) * np.eye(m), lower=True)
        features = solve_triangular(L, K.T, lower=True, check_finite=False).T.astype(np.float32)
        self._mean = features.mean(axis=0)
        features -= self._mean
        spread, V = eigh((features.T @ features).astype(np.float64), driver="evd")
        some = spread > 1e-6 * max(spread[-1], 1e-12)
        self._spread = spread[some].astype(np.float32)
        basis = (V[:, some] / np.sqrt(spread[some])).astype(np.float32)
        self._A: Matrix = features @ basis  # orthonormal columns
        self._to_coefficients = solve_triangular(L, basis, lower=True, trans="T").astype(np.float32)
        self._basis = basis
        shrunk = np.stack([self._spread / (self._spread + s) for s in STRENGTHS], axis=1)
        self._leverage: Matrix = np.concatenate(
            [part**2 @ shrunk for part in np.split(self._A, range(_CHUNK, n, _CHUNK))]
        ) + np.float32(1 / n)

    def fit(self, targets: Any) -> Matrix:
        """Fit the targets (n, L); return what is predicted of every row without it."""
        T = np.asarray(targets, np.float32)
        level = T.mean(axis=0)
        T = T - level
        projected = self._A.T @ T
        few = slice(None, None, max(T.size // 200_000, 1))
        errors = [((self._left_out(T, projected, s, few) - T[few]) ** 2).mean() for s in _EACH]
        best = int(np.argmin(errors))
        coefficients = self._shrunk(best)[:, None] * projected
        self._coefficients = self._to_coefficients @ coefficients
        self._offset = level - self._mean @ (self._basis @ coefficients)
        return np.asarray(self._left_out(T, projected, best, slice(None)) + level)

    def predict(self, X: Features) -> Matrix:
        """Return what the last fit says of other instances, not cut to [0, 1]."""
        parts = [
            self._kernel(X[start : start + _CHUNK]) @ self._coefficients
            for start in range(0, X.shape[0], _CHUNK)
        ]
        return np.asarray(np.concatenate(parts) + self._offset, np.float32)

    def _shrunk(self, strength: int) -> Matrix:
        return np.asarray(self._spread / (self._spread + np.float32(STRENGTHS[strength])))

    def _left_out(self, T: Matrix, projected: Matrix, strength: int, rows: slice) -> Matrix:
        h = np.minimum(self._leverage[rows, strength, None], np.float32(0.999))
        fitted = self._A[rows] @ (self._shrunk(strength)[:, None] * projected)
        return np.asarray((fitted - h * T[rows]) / (1 - h))

    def _mean_distance(self) -> float:
        """Return the mean squared distance of the landmarks."""
        centre = np.asarray(self._landmarks.mean(axis=0)).ravel()
        return max(2 * float(self._squares.mean() - (centre**2).sum()), 1e-12)

    def _kernel(self, X: Features) -> Matrix:
        products = X @ self._landmarks.T
        products = products.toarray() if sp.issparse(products) else products
        K = np.asarray(products, np.float32)
        K *= -2
        K += _squares(X)[:, None]
        K += self._squares
        np.maximum(K, 0, out=K)
        K *= np.float32(-1 / self._width)
        return np.asarray(np.exp(K, out=K))


_EACH = range(len(STRENGTHS))


def _squares(X: Features) -> Matrix:
    if sp.issparse(X):
        return np.asarray(X.multiply(X).sum(axis=1), np.float32).ravel()
    return np.asarray((X * X).sum(axis=1), np.float32)
