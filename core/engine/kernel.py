"""Kernel ridge regression on landmarks, with every training prediction made without its own row.

A Gaussian kernel of the instances to m of them (Nystroem) gives features whose ridge regression is
solved for all strengths from one eigendecomposition. What the fit would say of a row had it been
left out is exact and free: (F_i - h_i y_i) / (1 - h_i) with the leverage h_i. The strength is the
one whose left-out predictions are nearest to the targets, so no truth is needed.

The decomposition is made on the host, once; fits are products on the device of the targets, block
by block, so that no further matrix of rows x labels is kept.
"""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import torch
from scipy.linalg import cholesky, eigh, solve_triangular
from torch import Tensor

from core.data.dataset import Features

Matrix = npt.NDArray[np.float32]

STRENGTHS = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)

_FEWEST = 500
"""Landmarks of data with few features; wide data has more directions to tell apart."""

_LARGEST = 2**26
"""Values of the kernel matrix; larger data has fewer landmarks."""

_BLOCK = 8192
"""Rows handled at once."""


class KernelRidge:
    """Targets as smooth functions of the instances.

    Parameters
    ----------
    X : (n, d) scaled features; n_landmarks : at most so many; seed : of their choice
    device : of the targets
    """

    def __init__(
        self, X: Features, n_landmarks: int, seed: int = 0, device: torch.device | str = "cpu"
    ) -> None:
        n, d = X.shape
        m = min(n, n_landmarks, max(_FEWEST, d), max(_LARGEST // n, 1))
        at = np.sort(np.random.default_rng(seed).permutation(n)[:m])
        self._landmarks = X[at]
        self._squares = _squares(self._landmarks)
        # Sparse rows have length 1 and few neighbours: their kernel is wider.
        self._width = (2.0 if sp.issparse(X) else 1.0) * self._mean_distance()
        features = np.empty((n, m), np.float32)
        for part in blocks(n):
            features[part] = self._kernel(X[part])
        W = features[at].astype(np.float64)
        L = cholesky(W + 1e-5 * max(float(W.trace()) / m, 1e-6) * np.eye(m), lower=True)
        for part in blocks(n):
            features[part] = solve_triangular(L, features[part].T, lower=True, check_finite=False).T
        self._mean = features.mean(axis=0)
        features -= self._mean
        spread, V = eigh((features.T @ features).astype(np.float64), driver="evd")
        some = spread > 1e-6 * max(spread[-1], 1e-12)
        spread = spread[some].astype(np.float32)
        basis = (V[:, some] / np.sqrt(spread)).astype(np.float32)
        shrunk = np.stack([spread / (spread + s) for s in STRENGTHS], axis=1)
        leverage = np.empty((n, len(STRENGTHS)), np.float32)
        for part in blocks(n):  # in place: orthonormal columns
            A = features[part] @ basis
            features[part, : len(spread)] = A
            leverage[part] = A**2 @ shrunk + np.float32(1 / n)
        self._basis = basis
        self._to_coefficients = solve_triangular(L, basis, lower=True, trans="T").astype(np.float32)
        self._A, self._leverage, self._shrunk = (
            torch.as_tensor(one, device=device)
            for one in (features[:, : len(spread)], leverage, shrunk.T)
        )

    def fit(self, targets: Tensor) -> None:
        """Fit the targets, (n, L)."""
        level = targets.mean(dim=0)
        self._targets, self._level = targets, level
        self._projected = self._A.new_zeros(self._A.shape[1], targets.shape[1])
        for part in blocks(len(targets)):
            self._projected += self._A[part].T @ (targets[part] - level)
        few = slice(None, None, max(targets.numel() // 200_000, 1))
        centred = targets[few] - level
        # Which one it is, the host need not know.
        self._best = self._errors(few, centred).argmin().reshape(1)

    def left_out(self, rows: slice) -> Tensor:
        """Return what the last fit says of these rows without them, above the targets' mean."""
        return self._without(rows, self._best)

    def predict(self, X: Features) -> Matrix:
        """Return what the last fit says of other instances, not cut to [0, 1]."""
        shrunk, projected, level = (
            one.cpu().numpy()
            for one in (self._shrunk.index_select(0, self._best).T, self._projected, self._level)
        )
        own = shrunk * projected
        coefficients = self._to_coefficients @ own
        parts = [self._kernel(X[part]) @ coefficients for part in blocks(X.shape[0])]
        offset = level - self._mean @ (self._basis @ own)
        return np.asarray(np.concatenate(parts) + offset, np.float32)

    def _errors(self, rows: slice, centred: Tensor) -> Tensor:
        """Return how far predictions of rows without themselves are off, at every strength."""
        each = self._shrunk.T[:, :, None] * self._projected[:, None]  # (basis, strengths, L)
        fitted = (self._A[rows] @ each.flatten(1)).view(len(centred), *each.shape[1:])
        h = self._leverage[rows, :, None].clamp(max=0.999)
        return (fitted - centred[:, None]).div_(1 - h).square_().mean(dim=(0, 2))

    def _without(self, rows: slice, strength: Tensor) -> Tensor:
        h = self._leverage[rows].index_select(1, strength).clamp(max=0.999)
        fitted = self._A[rows] @ (self._shrunk.index_select(0, strength).T * self._projected)
        return (fitted - h * (self._targets[rows] - self._level)).div_(1 - h)

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


def blocks(n: int) -> Iterator[slice]:
    """Yield the rows from 0 to n, a few at a time: what is made of them stays near a processor."""
    for start in range(0, n, _BLOCK):
        yield slice(start, min(start + _BLOCK, n))


def _squares(X: Features) -> Matrix:
    if sp.issparse(X):
        return np.asarray(X.multiply(X).sum(axis=1), np.float32).ravel()
    return np.asarray((X * X).sum(axis=1), np.float32)
