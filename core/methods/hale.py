"""HALE-style: choosing true candidates as matching two graphs."""

from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from core.methods.base import CandidateEstimator, Matrix, Setting, row_min_max
from core.methods.neighbors import Neighbors

FLOOR = 1e-12
STILL = 1e-4


class HALEStyle(CandidateEstimator):
    """After HALE (Lyu, Feng and Li, KDD 2020): a probabilistic matching of instances and labels.

    P <- normalise(P^memory * Y * (S P C)): an instance takes a label the more, the more its
    neighbours take labels that go with it. S_ij = exp(-||x_i - x_j||^2 / sigma^2) over k
    neighbours, C_pq = share of instances that offer both, C_pp = 1.

    From the paper's abstract and others' settings: matching many to many, k = 10, C, and that new
    rows are judged by reconstruction error and neighbours' votes together. Verified against the
    code of the one-to-one method it extends: that its changing affinities are exactly this
    multiplicative update with memory 1. Ours: the many-to-many normalisation. A row is divided by
    its maximum, not its sum; and since each sweep multiplies what is left of the others, with
    memory 1 one label of a row wins all, also where two are true. Of 0, 1/4, 1/2, 3/4 and 1 only
    1/2 keeps both and still removes false ones on made clusters with two true labels each, which
    is why it is the default. HALE's code was not found; this is not a reproduction.

    Parameters
    ----------
    k : neighbours; memory : how far a sweep builds on the last one
    sweeps : at most; n_jobs : threads of the search
    """

    assumes = "Near instances take the same labels, and labels that are offered together."
    settings: ClassVar = {
        "k": Setting(1, 1000, "Neighbours of every instance."),
        "memory": Setting(0, 1, "How far a sweep builds on the last one; at 1 one label wins."),
        "sweeps": Setting(1, 1000, "Sweeps at most."),
    }

    def __init__(
        self,
        k: int = 10,
        memory: float = 0.5,
        sweeps: int = 50,
        scale: str = "minmax",
        n_jobs: int | None = None,
    ) -> None:
        self.k, self.memory, self.sweeps = k, memory, sweeps
        self.scale, self.n_jobs = scale, n_jobs

    def _fit(self, X: Any, Y: Matrix) -> Matrix:
        self._near = Neighbors(X, self.k, self.n_jobs)
        distances, rows = self._near.of()
        width = max(float(np.mean(distances**2)), 1e-300)
        S = self._near.matrix(rows, np.exp(-(distances**2) / width))
        C = Y.T @ Y / len(Y)
        np.fill_diagonal(C, 1)
        self._P = match(sp.csr_array((S + S.T) / 2), C, Y, self.memory, self.sweeps)
        return self._P

    def _scores(self, X: Any) -> Matrix:
        """Return the mean of the neighbours' vote and of how well each label's part rebuilds x."""
        _, rows = self._near.of(X)
        weights, grams, aims, squares = self._near.simplex_weights(X, rows)
        parts = weights[:, :, None] * self._P[rows]  # (m, k, L)
        votes = parts.sum(axis=1)
        errors = squares[:, None] - 2 * np.einsum("mk,mkl->ml", aims, parts)
        errors += np.einsum("mkl,mkj,mjl->ml", parts, grams, parts, optimize=True)
        errors = np.sqrt(np.maximum(errors, 0))
        return row_min_max(_to_top(votes) - _to_top(errors))


def match(S: sp.csr_array, C: Matrix, Y: Matrix, memory: float, sweeps: int) -> Matrix:
    """Return the matching P; in each row the best candidate has 1."""
    P = Y
    for _ in range(sweeps):
        before = P
        support = Y * (S @ P @ C)
        support = np.where(support.any(axis=1, keepdims=True), support, Y)  # alone: all candidates
        P = _to_top(np.maximum(P, FLOOR) ** memory * support)
        if np.abs(P - before).max() < STILL:
            break
    return P


def _to_top(M: Matrix) -> Matrix:
    top = M.max(axis=1, keepdims=True)
    return np.asarray(np.divide(M, top, where=top > 0, out=np.zeros_like(M)))
