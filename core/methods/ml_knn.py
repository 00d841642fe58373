"""ML-KNN: labels from how many neighbours have them."""

from typing import Any, ClassVar

import numpy as np

from core.methods.base import CandidateEstimator, Matrix, Setting
from core.methods.neighbors import Neighbors


class MLKNN(CandidateEstimator):
    """Multi-label k nearest neighbours (Zhang and Zhou, Pattern Recognition 40, 2007).

    For each label, P(true | c of the k neighbours have it) by Bayes' rule: the prior
    (s + #1) / (2s + n), and the likelihoods of every count c among rows with and without the label,
    (s + #c) / (s (k + 1) + #). There is no objective; candidates count as true labels.

    Verified against the authors' code: counts, smoothing, Euclidean distances, threshold 0.5. Ours:
    a row is told from its neighbours by its index, so duplicates are neighbours; features are
    scaled to [0, 1] before distances are taken; confidences are the posteriors of the training
    rows, whose counts leave the row itself out.

    Parameters
    ----------
    k : neighbours; s : smoothing; scale : "none", "minmax" or "standard"
    n_jobs : processes of the search
    """

    assumes = "Instances near each other share labels; labels are independent of one another."
    settings: ClassVar = {
        "k": Setting(1, 1000, "Neighbours of every instance."),
        "s": Setting(1e-6, 1000, "Smoothing of the counts."),
    }

    def __init__(
        self, k: int = 10, s: float = 1.0, scale: str = "minmax", n_jobs: int | None = None
    ) -> None:
        self.k, self.s, self.scale, self.n_jobs = k, s, scale, n_jobs

    def _fit(self, X: Any, Y: Matrix) -> Matrix:
        self._near, self._Y = Neighbors(X, self.k, self.n_jobs), Y
        n, n_labels = Y.shape
        k, s = self._near.k, self.s
        counts = self._counts(None)
        self._prior = (s + Y.sum(axis=0)) / (2 * s + n)
        cells = np.arange(n_labels) * (k + 1) + counts  # one bin per label and count
        bins = n_labels * (k + 1)
        having = np.bincount(cells[Y > 0], minlength=bins).reshape(n_labels, k + 1)
        lacking = np.bincount(cells[Y == 0], minlength=bins).reshape(n_labels, k + 1)
        self._having, self._lacking = (
            (s + found) / (s * (k + 1) + found.sum(axis=1, keepdims=True))
            for found in (having, lacking)
        )
        return self._posterior(counts)

    def _scores(self, X: Any) -> Matrix:
        return self._posterior(self._counts(X))

    def _counts(self, X: Any) -> Any:
        """Return how many neighbours have each label."""
        _, rows = self._near.of(X)
        return np.rint(self._near.matrix(rows) @ self._Y).astype(np.int64)

    def _posterior(self, counts: Any) -> Matrix:
        each = np.arange(counts.shape[1])
        true = self._prior * self._having[each, counts]
        return np.asarray(true / (true + (1 - self._prior) * self._lacking[each, counts]))
