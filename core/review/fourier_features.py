"""Where instances lie in feature space, so that a linear model of it has any smooth boundary."""

import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from core.data.dataset import Features

Matrix = npt.NDArray[np.float32]

_ROWS = 8192
"""Rows whose place is found at once, by a thread."""


def fourier_features(X: Features, seed: int = 0) -> Matrix:
    """Return features whose inner products are a Gaussian kernel of the standardised instances."""
    rng, (n, d) = np.random.default_rng(seed), X.shape
    size = 200 if n <= 20_000 else 128
    if sp.issparse(X):
        X = sp.csr_array(X)
        square = np.asarray(X.multiply(X).mean(axis=0)).ravel()
        deviation = np.sqrt(np.maximum(square - np.asarray(X.mean(axis=0)).ravel() ** 2, 0))
        scale: Any = sp.diags_array(_inverse(deviation))
        some = (X[rng.permutation(n)[:300]] @ scale).toarray()
    else:
        X = np.asarray(X, np.float32)
        mean, scale = X.mean(axis=0), _inverse(X.std(axis=0))
        some = (X[rng.permutation(n)[:300]] - mean) * scale
    squares = (some**2).sum(axis=1)
    distances = squares[:, None] + squares - 2 * some @ some.T
    width = float(np.median(distances[np.triu_indices(len(some), 1)])) or 1.0
    W = (rng.standard_normal((d, size)) * np.sqrt(0.6 / max(width, 1e-6))).astype(np.float32)
    phase = rng.uniform(0, 2 * np.pi, size).astype(np.float32)
    place = np.empty((n, size), np.float32)

    def fill(first: int) -> None:
        at = slice(first, first + _ROWS)
        own: Matrix = (X[at] @ scale if sp.issparse(X) else (X[at] - mean) * scale) @ W
        own += phase
        np.cos(own, out=own)
        np.multiply(own, np.float32(3 * np.sqrt(2 / size)), out=place[at])

    with ThreadPoolExecutor(os.cpu_count()) as threads:
        list(threads.map(fill, range(0, n, _ROWS)))
    place -= place.mean(axis=0, dtype=np.float64).astype(np.float32)
    return place


def _inverse(deviation: Any) -> Any:
    return np.divide(1, deviation, where=deviation > 1e-9, out=np.zeros_like(deviation))
