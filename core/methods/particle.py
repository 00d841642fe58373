"""PARTICLE: credible labels by propagation, then a classifier for every pair of labels."""

from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.model_selection import KFold
from sklearn.svm import LinearSVC
from sklearn.utils.parallel import Parallel, delayed

from core.errors import ConfigError
from core.methods.base import CandidateEstimator, Matrix, Setting, row_min_max, with_one
from core.methods.neighbors import Indices, Neighbors

MAX_SWEEPS = 1000
STILL = 1e-5
_PAIRS_AT_ONCE = 256


class PARTICLE(CandidateEstimator):
    """Partial multi-label learning via credible label elicitation (Fang and Zhang, AAAI 2019;
    Zhang and Fang, TPAMI 43(10), 2021).

    First, T holds the non-negative least squares weights that rebuild a row from its k neighbours,
    rows summing to 1; P <- normalise((a T P + (1 - a) Y) * Y) to its fixed point. A candidate is
    credible where a vote of the neighbours' confidences, learned without the row's fold, reaches
    `credible` of the row's range. Then a linear SVM for every pair of labels, rows credible for
    one and not offering the other against the reverse, and one per label (the virtual label).
    `variant` "vls" weighs their votes by training accuracy and compares with the virtual label;
    "map" turns the number of votes into a posterior by Bayes' rule.

    Verified against the authors' code: propagation, re-weighting, vote, pairs, both rules. Changed
    for a reason: the released neighbours include the row itself, which makes T the identity; the
    released MAP counts its likelihoods with the *test* labels, here with credible labels of the
    training rows. Ours: five folds, squared hinge (liblinear), confidences are those of the first
    stage.

    Parameters
    ----------
    variant : "vls" or "map"; k, a, credible : as above; C : of the SVMs
    folds : of the cross-fitting; n_jobs : threads of neighbours and SVMs
    """

    assumes = "What rebuilds a row's features from its neighbours rebuilds its labels too."
    settings: ClassVar = {
        "k": Setting(1, 1000, "Neighbours of every instance."),
        "a": Setting(0, 0.9999, "Weight of the neighbours against the candidates."),
        "credible": Setting(0, 1, "Share of a row's range from which a label is credible."),
        "C": Setting(1e-6, 1e6, "Weight of errors in the classifiers."),
        "folds": Setting(2, 100, "Folds in which credible labels are voted."),
    }

    def __init__(
        self,
        variant: str = "vls",
        k: int = 10,
        a: float = 0.95,
        credible: float = 0.9,
        C: float = 1.0,
        folds: int = 5,
        scale: str = "minmax",
        seed: int = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.variant, self.k, self.a, self.credible, self.C = variant, k, a, credible, C
        self.folds, self.scale, self.seed, self.n_jobs = folds, scale, seed, n_jobs

    def check_settings(self) -> None:
        super().check_settings()
        if self.variant not in ("vls", "map"):
            raise ConfigError("variant must be vls or map.", f"Got {self.variant!r}.")

    def _fit(self, X: Any, Y: Matrix) -> Matrix:
        near = Neighbors(X, self.k, self.n_jobs)
        confidences = elicit(near, Y, self.a)
        self.credible_labels_ = self._vote_credible(X, Y)
        self._train(with_one(X), Y, self.credible_labels_)
        if self.variant == "map":
            self._count_likelihoods(self._pair_votes(with_one(X)), Y, self.credible_labels_)
        return confidences

    def _scores(self, X: Any) -> Matrix:
        votes = self._pair_votes(with_one(X))
        if self.variant == "map":
            return row_min_max(self._odds(votes))
        own = (with_one(X) @ self._virtual.T) > 0
        real = np.ceil(votes + own * self._virtual_accuracy)
        against = np.ceil((~own * self._virtual_accuracy).sum(axis=1, keepdims=True))
        # One comparison with the virtual label's votes: above 1/2 exactly where a label has more.
        return np.asarray(_above_half(real, against))

    def _vote_credible(self, X: Any, Y: Matrix) -> npt.NDArray[np.bool_]:
        """Return which labels are credible, voted by confidences learned without a row's fold."""
        n = len(Y)
        votes = np.zeros_like(Y)
        folds = KFold(min(self.folds, n // 2 or 2), shuffle=True, random_state=self.seed)
        for train, test in folds.split(Y):
            near = Neighbors(X[train], self.k, self.n_jobs)
            confidences = elicit(near, Y[train], self.a)
            distances, rows = near.of(X[test])
            total = distances.sum(axis=1, keepdims=True)
            weights = 1 - np.divide(distances, total, where=total > 0, out=np.zeros_like(distances))
            votes[test] = near.matrix(rows, weights) @ confidences
        high = row_min_max(votes) >= self.credible
        both = high & (Y > 0)
        return np.where(both.any(axis=1, keepdims=True), both, high)

    def _train(self, X: Any, Y: Matrix, credible: npt.NDArray[np.bool_]) -> None:
        """Fit all pairs (p < q), pairs with an empty side left out, and the virtual labels."""
        n_labels, absent = Y.shape[1], Y == 0

        def rows_for(p: int, q: int) -> Indices:
            return np.flatnonzero(credible[:, p] & absent[:, q])

        p, q = np.triu_indices(n_labels, 1)
        self._pairs = np.stack([p, q], axis=1)
        tasks = [(rows_for(a, b), rows_for(b, a)) for a, b in self._pairs]
        alone = [
            (np.flatnonzero(credible[:, j]), np.flatnonzero(absent[:, j])) for j in range(n_labels)
        ]
        fitted = Parallel(n_jobs=self.n_jobs, prefer="threads", batch_size=16)(
            delayed(fit_side)(X, one, other, self.C) for one, other in [*tasks, *alone]
        )
        weights = np.array([w for w, _ in fitted])
        accuracy = np.array([share for _, share in fitted])
        self._weights, self._virtual = weights[: len(tasks)], weights[len(tasks) :]
        self._accuracy, self._virtual_accuracy = accuracy[: len(tasks)], accuracy[len(tasks) :]

    def _pair_votes(self, X: Any) -> Matrix:
        """Return (m, L): votes of the pair models, weighted by accuracy for "vls", else counted."""
        n_labels = len(self.classes_)
        votes = np.zeros((X.shape[0], n_labels))
        each = self._accuracy if self.variant == "vls" else (self._accuracy > 0).astype(float)
        for start in range(0, len(self._pairs), _PAIRS_AT_ONCE):
            some = slice(start, start + _PAIRS_AT_ONCE)
            for_p = np.asarray(X @ self._weights[some].T) > 0
            to = np.zeros((2, for_p.shape[1], n_labels))
            count = np.arange(for_p.shape[1])
            to[0, count, self._pairs[some, 0]] = each[some]
            to[1, count, self._pairs[some, 1]] = each[some]
            votes += for_p @ to[0] + ~for_p @ to[1]
        return votes

    def _count_likelihoods(self, votes: Matrix, Y: Matrix, credible: npt.NDArray[np.bool_]) -> None:
        n, n_labels = Y.shape
        cells = np.arange(n_labels) * n_labels + np.rint(votes).astype(np.int64)
        having, lacking = (
            np.bincount(cells[side], minlength=n_labels**2).reshape(n_labels, n_labels)
            for side in (credible, ~credible)
        )
        self._prior = (1 + Y.sum(axis=0)) / (2 + n)
        self._having, self._lacking = (
            (1 + found) / (n_labels + found.sum(axis=1, keepdims=True))
            for found in (having, lacking)
        )

    def _odds(self, votes: Matrix) -> Matrix:
        each, count = np.arange(votes.shape[1]), np.rint(votes).astype(np.int64)
        true = self._prior * self._having[each, count]
        return np.asarray(true / ((1 - self._prior) * self._lacking[each, count]))


def elicit(near: Neighbors, Y: Matrix, a: float) -> Matrix:
    """Return PARTICLE's confidences of the candidates Y of the fitted rows."""
    _, rows = near.of()
    T = near.matrix(rows, _rows_to_one(near.rebuilding(near.X, rows)))
    P = Y
    for _ in range(MAX_SWEEPS):
        before = P
        P = _rows_to_one((a * (T @ P) + (1 - a) * Y) * Y)
        if np.linalg.norm(P - before) < STILL:
            break
    found = P.sum(axis=0)
    P = P * np.divide(Y.sum(axis=0), found, where=found > 0, out=np.zeros_like(found))
    return np.asarray(row_min_max(P) * Y)


def fit_side(X: Any, one: Indices, other: Indices, C: float) -> tuple[Matrix, float]:
    """Fit one against other rows; return weights and training accuracy, zeros if a side is empty.

    X ends with a constant 1, so the intercept is a weight.
    """
    if not len(one) or not len(other):
        return np.zeros(X.shape[1]), 0.0
    rows, y = X[np.concatenate([one, other])], np.repeat([1, -1], [len(one), len(other)])
    model = LinearSVC(C=C, dual=False, fit_intercept=False, tol=1e-5)
    model.fit(sp.csr_matrix(rows) if sp.issparse(rows) else rows, y)
    w = model.coef_.ravel()
    return w, float(np.mean(np.where(rows @ w > 0, 1, -1) == y))


def _rows_to_one(M: Matrix) -> Matrix:
    total = M.sum(axis=1, keepdims=True)
    return np.asarray(np.divide(M, total, where=total > 0, out=np.zeros_like(M)))


def _above_half(votes: Matrix, against: Matrix) -> Matrix:
    """Map a row's votes to [0, 1], in order, above 1/2 where they exceed the virtual votes."""
    top = np.maximum(votes.max(axis=1, keepdims=True), against) - against
    low = against - np.minimum(votes.min(axis=1, keepdims=True), against)
    up = np.divide(votes - against, top, where=top > 0, out=np.zeros_like(votes))
    down = np.divide(votes - against, low, where=low > 0, out=np.zeros_like(votes))
    return np.asarray(np.where(votes > against, 0.5 + up / 2, 0.5 + down / 2))
