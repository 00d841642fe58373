"""A quick model of which candidates are true, learned from the decisions while they are made.

For every label a Bayesian logistic regression on what is known of a cell: where it started (the
run's confidence), how far decisions moved it in the propagation, where its instance lies in feature
space (random Fourier features, so any smooth boundary), which other labels were offered with it,
and what was decided of those. The priors make it say what the run says while nothing is decided,
and share the base rate among labels. It is strictly convex, so it has one answer; that is found by
Newton's method, and after a single decision by a few steps from the previous answer.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy.linalg import cho_factor, cho_solve

Matrix = npt.NDArray[np.float32]
Vector = npt.NDArray[Any]
Rows = npt.NDArray[np.int64]

N_RELATED = 16
"""Labels offered together most often, of which a label hears what was decided."""

STEP_TOLERANCE = 0.02
"""Log-odds that move less than this in a step are those of the fit."""

COMMON_SCALE, STRETCH_SCALE = (0.4, 0.2), (0.3, 0.4)
"""Of the Cauchy priors of intercept and slope of all labels: a handful of answers moves little, a
level that is far off moves at once."""

CAUCHY_ROUNDS = 6

REFIT_SHARE = 0.05
"""After this share of new decisions all labels are fitted anew."""


@dataclass(frozen=True, eq=False)
class CellFeatures:
    """What is known of cells beside the decisions."""

    offered: npt.NDArray[np.bool_]  # (n, L)
    start: Matrix  # (n, L), log-odds before any decision
    place: Matrix  # (n, D), where instances lie in feature space
    related: Rows  # (L, R)
    n_offered: Matrix  # (n,), standardised

    @classmethod
    def of(cls, offered: npt.NDArray[np.bool_], start: Matrix, place: Matrix) -> Self:
        together = offered.T.astype(np.float32) @ offered.astype(np.float32)
        np.fill_diagonal(together, -1)
        related = np.argsort(-together, axis=1, kind="stable")[
            :, : min(N_RELATED, len(together) - 1)
        ]
        count = offered.sum(axis=1).astype(np.float32)
        spread = (count - count.mean()) / max(float(count.std()), 1e-6)
        return cls(offered, start, place, related, spread.astype(np.float32))

    @property
    def size(self) -> int:
        return int(6 + self.place.shape[1] + 3 * self.related.shape[1])

    def of_instances(self, labels: list[int], weights: Matrix) -> Matrix:
        """Return what all instances as such add to these labels' cells, (n, labels).

        That is their place and what they are offered: of all cells of a label by one product each.
        """
        n_place, R = self.place.shape[1], self.related.shape[1]
        place, mates, count = np.split(
            weights[labels, 3 : 4 + n_place + R], [n_place, n_place + R], axis=1
        )
        out: Matrix = np.float32(0.3) * self.n_offered[:, None] * count.T
        if place.any():
            out += self.place @ place.T
        if mates.any():
            spread = np.zeros((len(labels), len(weights)), np.float32)
            np.put_along_axis(spread, self.related[labels], np.float32(0.2) * mates, axis=1)
            out += self.offered.astype(np.float32) @ spread.T
        return out

    def of_label(self, j: int, rows: Rows, moved: Matrix, decided: Matrix) -> Matrix:
        """Return one row of features for each of these instances' cells of a label."""
        near = self.related[j]
        mates = decided[np.ix_(rows, near)]
        kept, rejected = mates == 1, mates == 0
        n_kept, n_rejected = (
            (decided[rows] == value).sum(axis=1) - (decided[rows, j] == value) for value in (1, 0)
        )
        columns = [
            np.ones((len(rows), 1)),
            self.start[rows, j, None],
            moved[rows, j, None],
            self.place[rows],
            0.2 * self.offered[np.ix_(rows, near)],
            0.3 * self.n_offered[rows, None],
            0.5 * kept,
            0.5 * rejected,
            0.5 * n_kept[:, None],
            0.5 * n_rejected[:, None],
        ]
        return np.concatenate(columns, axis=1, dtype=np.float32)


@dataclass(frozen=True, eq=False)
class Fit:
    """What was learned: weights of every label, and how sure they are.

    `common` is the intercept and slope all labels are drawn to; `stretch` corrects log-odds by what
    decided cells show when each is left out.
    """

    weights: Matrix  # (L, K)
    covariance: dict[int, Matrix] = field(default_factory=dict)  # (K, K) of labels with decisions
    common: tuple[float, float] = (0.0, 1.0)
    stretch: tuple[float, float] = (0.0, 1.0)
    n_decided: int = 0
    n_fresh: int = 0  # decisions since all labels were fitted


class Learner:
    """Fits and applies the model; itself unchanging."""

    def __init__(self, features: CellFeatures) -> None:
        self.features = features

    def fit(
        self,
        decided: Matrix,
        moved: Matrix,
        before: Fit | None = None,
        sampled: npt.NDArray[np.bool_] | None = None,
    ) -> Fit:
        """Fit all labels. What they share comes from `sampled` decisions only, those on cells
        drawn at random: cells chosen as doubtful say little about all others.
        """
        n_labels = decided.shape[1]
        rows, labels = np.nonzero(~np.isnan(decided))
        common = (0.0, 1.0)
        drawn = np.ones(len(rows), bool) if sampled is None else sampled[rows, labels]
        if drawn.any():
            at_random = rows[drawn], labels[drawn]
            common = _two_parameters(
                self.features.start[at_random], decided[at_random], (0.0, 1.0), COMMON_SCALE
            )
        mean = self._mean(common)
        weights = np.tile(mean, (n_labels, 1))
        covariance: dict[int, Matrix] = {}
        loo, answers = [], []
        for j in np.unique(labels):
            at = rows[labels == j]
            F, y = self.features.of_label(j, at, moved, decided), decided[at, j]
            start = weights[j] if before is None else before.weights[j]
            known = None if before is None else before.covariance.get(int(j))
            weights[j], covariance[int(j)] = map_weights(
                F, y, self._precision(), mean, start, known
            )
            loo.append(_left_out(F, y, weights[j], covariance[int(j)]))
            answers.append(y)
        stretch = (0.0, 1.0)
        if loo:
            stretch = _two_parameters(
                np.concatenate(loo), np.concatenate(answers), (0.0, 1.0), STRETCH_SCALE
            )
        return Fit(weights.astype(np.float32), covariance, common, stretch, len(rows), 0)

    def update(
        self, fit: Fit, decided: Matrix, moved: Matrix, labels: Iterable[int], n_new: int
    ) -> Fit:
        """Fit only these labels anew, from where they were, after so many new decisions."""
        mean, precision = self._mean(fit.common), self._precision()
        weights, covariance = fit.weights.copy(), dict(fit.covariance)
        for j in set(labels):
            at = np.flatnonzero(~np.isnan(decided[:, j]))
            if not len(at):
                weights[j] = mean
                covariance.pop(j, None)
                continue
            F, y = self.features.of_label(j, at, moved, decided), decided[at, j]
            known = covariance.get(j)
            found = None if known is None else _chord(F, y, precision, mean, weights[j], known)
            if found is None:
                weights[j], covariance[j] = map_weights(F, y, precision, mean, weights[j])
            else:
                weights[j] = found
        n_fresh = fit.n_fresh + n_new
        return replace(fit, weights=weights, covariance=covariance, n_fresh=n_fresh)

    def is_stale(self, fit: Fit) -> bool:
        """Tell whether so much was decided since that all labels should be fitted anew."""
        return fit.n_fresh > REFIT_SHARE * fit.n_decided

    def whole_labels(
        self, fit: Fit, labels: Iterable[int], decided: Matrix, moved: Matrix
    ) -> Iterator[tuple[int, Rows, Vector]]:
        """Yield labels, the instances that offer each, and the log-odds of these cells.

        As `log_odds`, but rows of features are made only of instances with decisions.
        """
        labels, (a, b) = list(labels), fit.stretch
        is_decided = np.asarray(~np.isnan(decided).all(axis=1))
        shared = self.features.of_instances(labels, fit.weights)
        for at, j in enumerate(labels):
            rows = np.flatnonzero(self.features.offered[:, j])
            own, by_start, by_move = fit.weights[j, :3]
            found = own + by_start * self.features.start[rows, j] + by_move * moved[rows, j]
            found = a + b * (found + shared[rows, at])
            some = np.flatnonzero(is_decided[rows])
            if len(some):
                found[some] = self.log_odds(fit, j, rows[some], decided, moved)
            yield j, rows, found

    def log_odds(self, fit: Fit, j: int, rows: Rows, decided: Matrix, moved: Matrix) -> Vector:
        """Return the log-odds of cells of a label; of decided ones as if they were not."""
        F = self.features.of_label(j, rows, moved, decided)
        out = F @ fit.weights[j]
        at = np.flatnonzero(~np.isnan(decided[rows, j]))
        if len(at) and j in fit.covariance:
            y = decided[rows[at], j]
            out[at] = _left_out(F[at], y, fit.weights[j], fit.covariance[j])
        a, b = fit.stretch
        return np.asarray(a + b * out)

    def pull(
        self, fit: Fit, j: int, asked: Rows, others: Rows, decided: Matrix, moved: Matrix
    ) -> Matrix:
        """Return how far learning that one cell is true moves another, per unit of surprise.

        Parameters
        ----------
        asked, others : instances whose cells of label j are learned about, and watched

        Returns
        -------
        (others, asked); times (1 - p) when the asked cell is kept, times -p when it is rejected
        """
        F, G = (self.features.of_label(j, rows, moved, decided) for rows in (others, asked))
        known = fit.covariance.get(j)
        spread = G / self._precision() if known is None else G @ known
        p = sigmoid(G @ fit.weights[j])
        leverage = (spread * G).sum(axis=1)
        damped = spread / (1 + leverage * p * (1 - p))[:, None]
        return np.asarray(fit.stretch[1] * (F @ damped.T), np.float32)

    def within_instance(self, fit: Fit) -> Matrix:
        """Return how far a decision moves the other cells of its instance, (2, L, L).

        `within_instance[v, k, j]` is the change of label k's log-odds when label j is decided as v.
        """
        n_labels, R = self.features.related.shape
        kept, rejected = fit.weights[:, -2 * R - 2 : -R - 2], fit.weights[:, -R - 2 : -2]
        out = np.empty((2, n_labels, n_labels), np.float32)
        for value, each, all_ in ((1, kept, -2), (0, rejected, -1)):
            out[value] = fit.weights[:, all_, None]
            np.put_along_axis(
                out[value], self.features.related, fit.weights[:, all_, None] + each, 1
            )
        return np.asarray(0.5 * fit.stretch[1] * out)

    def _mean(self, common: tuple[float, float]) -> Vector:
        mean = np.zeros(self.features.size, np.float32)
        mean[:3] = (*common, 1.0)
        return mean

    def _precision(self) -> Vector:
        precision = np.ones(self.features.size, np.float32)
        precision[:3] = (1 / 1.0**2, 1 / 0.4**2, 1 / 3.0**2)
        return precision


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-np.clip(x, -30, 30)))


def map_weights(
    F: Matrix, y: Vector, precision: Vector, mean: Vector, w: Vector, known: Matrix | None = None
) -> tuple[Vector, Matrix]:
    """Return the weights of the largest posterior, and their covariance there.

    With a `known` covariance from nearby it is first tried to do with that.
    """
    w, mean = w.astype(np.float32), mean.astype(np.float32)
    found = None if known is None else _chord(F, y, precision, mean, w, known)
    if found is not None:
        return found, _covariance(F, found, precision)
    for _ in range(25):
        covariance = _covariance(F, w, precision)
        step = covariance @ (F.T @ (y - sigmoid(F @ w)) - precision * (w - mean))
        largest = float(np.abs(F @ step).max())
        w = w + step * np.float32(min(1, 4 / max(largest, 1e-9)))
        if largest < STEP_TOLERANCE:
            break
    return w, covariance


def _covariance(F: Matrix, w: Vector, precision: Vector) -> Matrix:
    """Return the inverse of the posterior's curvature, by whichever side is smaller."""
    p = sigmoid(F @ w)
    curvature = np.maximum(p * (1 - p), 1e-6).astype(np.float32)
    m, size = F.shape
    if m < size:
        spread = F / precision  # F P^-1
        inner = spread @ F.T
        inner[np.diag_indices_from(inner)] += 1 / curvature
        out = -spread.T @ cho_solve(cho_factor(inner), spread)
        out[np.diag_indices_from(out)] += 1 / precision
        return np.asarray(out, np.float32)
    H = (F * curvature[:, None]).T @ F
    H[np.diag_indices_from(H)] += precision
    return np.asarray(cho_solve(cho_factor(H), np.eye(size, dtype=np.float32)), np.float32)


def _chord(
    F: Matrix, y: Vector, precision: Vector, mean: Vector, w: Vector, covariance: Matrix
) -> Vector | None:
    """Return the same weights by steps with a covariance nearby; none when that does not work."""
    w = w.copy()
    last = np.inf
    for _ in range(12):
        gradient = F.T @ (y - sigmoid(F @ w)) - precision * (w - mean)
        step = covariance @ gradient
        largest = float(np.abs(F @ step).max())
        if largest > last:
            return None
        w += step
        last = largest
        if largest < STEP_TOLERANCE:
            return w
    return None


def _left_out(F: Matrix, y: Vector, w: Vector, covariance: Matrix) -> Vector:
    """Return the log-odds each decided cell would have were it left out of the fit."""
    out = F @ w
    p = sigmoid(out)
    leverage = ((F @ covariance) * F).sum(axis=1)
    return np.asarray(out - leverage * (y - p) / np.maximum(1 - leverage * p * (1 - p), 0.1))


def _two_parameters(
    x: Vector, y: Vector, mean: tuple[float, float], scale: tuple[float, float]
) -> tuple[float, float]:
    """Return intercept and slope of a logistic regression with Cauchy priors."""
    F = np.stack([np.ones(len(x)), x], axis=1).astype(np.float32)
    middle = w = np.array(mean, np.float32)
    for _ in range(CAUCHY_ROUNDS):
        # A normal prior that holds as the Cauchy one does here.
        precision = (2 / (np.square(scale) + np.square(w - middle))).astype(np.float32)
        w, _ = map_weights(F, y, precision, middle, w)
    return float(w[0]), float(max(w[1], 0.05))
