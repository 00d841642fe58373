"""Features as models take them: scaled; for networks on a device, row by row.

Dense features are standardised, sparse ones perhaps brought to length 1 instead. Many dense ones
stay where they are, also in a file mapped into memory, and are scaled as they are asked for.
"""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import torch
from torch import Tensor

from core.data.dataset import Features
from core.engine.config import PlainConfig
from core.engine.row_views import ScaledRows

_DENSE_LIMIT = 2**27
"""Values up to which sparse features are laid out densely (512 MB)."""

_KEPT_VALUES = 2**24
"""Values up to which dense features are kept scaled beside those given (64 MB)."""


class Rows(Protocol):
    """Standardised feature rows on a device, each ending with a constant 1; a tensor will do."""

    def __getitem__(self, at: Tensor | slice, /) -> Tensor:
        """Return these rows, dense."""

    def __len__(self) -> int: ...


@dataclass(frozen=True)
class Standardizer:
    """Mean 0 and standard deviation 1 per feature, as learned from the training rows."""

    mean: npt.NDArray[np.float64]
    scale: npt.NDArray[np.float64]

    @classmethod
    def fit(cls, X: Features, standardize: bool = True) -> "Standardizer":
        d = X.shape[1]
        if not standardize:
            return cls(np.zeros(d), np.ones(d))
        mean = np.asarray(X.mean(axis=0, dtype=np.float64)).ravel()
        if sp.issparse(X):
            squares = np.asarray(X.multiply(X).mean(axis=0, dtype=np.float64)).ravel()
            variance = np.maximum(squares - mean**2, 0)
        else:
            parts = (X[at : at + 2**14] - mean for at in range(0, len(X), 2**14))
            variance = sum(np.einsum("ij,ij->j", part, part) for part in parts) / len(X)
        # A constant column has a variance of rounding errors only.
        constant = variance <= 1e-12 * np.maximum(mean**2, 1e-30)
        return cls(mean, np.where(constant, 1, np.sqrt(variance)))

    def apply(self, X: Features) -> Features:
        """Return the standardised features; large sparse ones are only scaled, and stay sparse."""
        if sp.issparse(X):
            if X.shape[0] * X.shape[1] > _DENSE_LIMIT:
                return sp.csr_array(X * (1 / self.scale)[None, :], dtype=np.float32)
            X = X.toarray()
        return self._scaled(X)[:]

    def view(self, X: Features) -> Features:
        """Return the same, but many dense features only scaled as they are asked for.

        X, which may be a file mapped into memory, is then not kept a second time.
        """
        return self.apply(X) if sp.issparse(X) or X.size <= _KEPT_VALUES else self._scaled(X)

    def rows(self, applied: Features, device: torch.device) -> Rows:
        """Return what `apply` or `view` gave on the device, centred also where it stayed sparse."""
        if sp.issparse(applied):
            return _SparseRows(applied, -self.mean / self.scale, device)
        if isinstance(applied, ScaledRows) and device.type == "cpu":
            return _RowsWithOne(applied)
        one = torch.ones(len(applied), 1, device=device)
        return torch.cat([torch.as_tensor(np.asarray(applied), device=device), one], dim=1)

    def _scaled(self, X: npt.NDArray[np.float32]) -> ScaledRows:
        return ScaledRows(X, self.mean.astype(np.float32), self.scale.astype(np.float32))


@dataclass(frozen=True)
class UnitRows:
    """Rows of length 1, as sparse counts and words are best compared; zeros stay zeros."""

    def apply(self, X: sp.csr_array) -> sp.csr_array:
        """Return the same rows with length 1."""
        length = np.sqrt(np.asarray(X.multiply(X).sum(axis=1), np.float64)).ravel()
        scale = np.divide(1, length, where=length > 0, out=np.zeros_like(length))
        return sp.csr_array(sp.diags_array(scale.astype(np.float32)) @ X, dtype=np.float32)

    def view(self, X: sp.csr_array) -> sp.csr_array:
        """Return the same."""
        return self.apply(X)

    def rows(self, applied: sp.csr_array, device: torch.device) -> Rows:
        """Return features from `apply` on the device, a network's input being larger than 1."""
        n, d = applied.shape
        scaled = applied * np.float32(np.sqrt(d) / 3)
        if n * d > _DENSE_LIMIT:
            return _SparseRows(scaled, np.zeros(d), device)
        one = torch.ones(n, 1, device=device)
        return torch.cat([torch.as_tensor(scaled.toarray(), device=device), one], dim=1)


def fit_scaling(X: Features, config: PlainConfig) -> "Standardizer | UnitRows":
    """Return how these settings scale features, as learned from the training rows."""
    if config.unit_rows and sp.issparse(X):
        return UnitRows()
    return Standardizer.fit(X, config.standardize)


class _RowsWithOne:
    """Scaled rows as tensors, each ending with a constant 1."""

    def __init__(self, X: ScaledRows) -> None:
        self._X = X

    def __len__(self) -> int:
        return len(self._X)

    def __getitem__(self, at: Tensor | slice) -> Tensor:
        X = self._X[at if isinstance(at, slice) else at.numpy()]
        return torch.from_numpy(np.concatenate([X, np.ones((len(X), 1), np.float32)], axis=1))


class _SparseRows:
    """CSR values plus one dense row: what centring adds to every row without filling the matrix."""

    def __init__(self, X: sp.csr_array, offset: npt.NDArray[np.float64], device: Any) -> None:
        self._starts = torch.as_tensor(X.indptr, dtype=torch.int64, device=device)
        self._columns = torch.as_tensor(X.indices, dtype=torch.int64, device=device)
        self._values = torch.as_tensor(X.data, device=device)
        self._every = torch.arange(X.shape[0], device=device)
        with_one = np.append(offset, 1)
        self._offset = torch.as_tensor(with_one, dtype=torch.float32, device=device)

    def __len__(self) -> int:
        return len(self._every)

    def __getitem__(self, at: Tensor | slice) -> Tensor:
        at = self._every[at]
        counts = self._starts[at + 1] - self._starts[at]
        row = torch.repeat_interleave(torch.arange(len(at), device=at.device), counts)
        within = torch.arange(len(row), device=at.device) - (counts.cumsum(0) - counts)[row]
        place = self._starts[at][row] + within
        dense = self._offset.repeat(len(at), 1)
        return dense.index_put_((row, self._columns[place]), self._values[place], accumulate=True)
