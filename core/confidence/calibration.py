"""Confidence: predictions and decisions turned into P(true | candidate), one scale for all labels.

`core.confidence.noise_model` says what candidates and predictions alone imply. Decisions then
correct it by a logistic regression of the verdicts on that logit, with one intercept per label.
Slope and common intercept have Cauchy priors around 1 and 0, which hold small changes back and let
large ones pass. Labels get intercepts of their own, shrunk by their estimated spread, only where
they differ by more than chance would: the order of cells is that without decisions until these say
that it is wrong. A decision never overwrites the confidence of its own cell.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from core.confidence.candidates import Candidates, Floats
from core.confidence.level import Level
from core.confidence.noise_model import Evidence, Noise, logit
from core.confidence.readings import borne_out, held, worth_keeping
from core.confidence.sources import SourceModel

_SPREAD_ROUNDS, _NEWTON_STEPS, _FIRST_STEPS = 20, 3, 15

_NO_CHANGE, _SCALE = np.array([1.0, 0.0]), np.array([0.2, 0.4])
"""Of slope and common intercept: the middle and the scale of their priors."""

_LABEL_SD = 0.2
"""Spread of the label intercepts before any decision."""

_APPARENT, _NO_SPREAD = 2.0, 1e-12
"""Standard deviations beyond chance at which labels differ; their spread while they do not."""

_CHOSEN_WEIGHT = 0.25
"""Weight of a decision on a cell that was not drawn at random."""


@dataclass(frozen=True, eq=False)
class Calibration:
    """What each candidate's chance is."""

    confidences: npt.NDArray[np.float32]  # (n, L), 0 outside the candidates
    probabilities: npt.NDArray[np.float32]  # (n, L) before candidates are kept at even odds
    kept: npt.NDArray[np.bool_]  # (n, L) candidates that are not to be rejected


@dataclass(frozen=True, eq=False)
class Told:
    """What candidates and predictions alone say, which decisions do not change."""

    candidates: Candidates
    noise: Noise
    evidence: Evidence | None  # none without candidates

    @classmethod
    def by(cls, Y: Any, Z: Any, Y_hat: Any, eta: float, level: Level | None) -> Self:
        candidates = Candidates.of(Y)
        noise = Noise.fit(candidates, Y_hat, level)
        is_any = noise.readings is not None
        return cls(candidates, noise, noise.evidence(candidates, Z, Y_hat, eta) if is_any else None)

    @cached_property
    def mean(self) -> tuple[Floats, npt.NDArray[np.bool_]]:
        """The mean of all readings, and which candidates some of them keep."""
        assert self.noise.readings is not None
        assert self.evidence is not None
        return self.noise.coherent(self.candidates, *self.noise.readings.mean(*self.evidence))

    def after(
        self, known: Any, verdicts: Floats, weights: Floats
    ) -> tuple[Floats, npt.NDArray[np.bool_]]:
        """Return the same after these answers, and which candidates are not to be rejected."""
        p, kept = self.mean
        noise, evidence = self.noise, self.evidence
        if not len(known) or noise.readings is None or evidence is None:
            return p, kept
        alone = held(p, kept)
        readings = noise.readings.after(*evidence.at(known), verdicts, weights)
        p, kept = noise.coherent(self.candidates, *readings.mean(*evidence))
        by_answers = ~kept & ~worth_keeping(p) & (alone >= 0.5)
        kept = kept | worth_keeping(p) | by_answers
        kept &= ~borne_out(p, by_answers, known, verdicts, weights)
        return p, kept


class Reliability(NamedTuple):
    """Cells binned by confidence: what was claimed beside what was true; empty bins left out."""

    confidence: Floats
    true_share: Floats
    n_cells: npt.NDArray[np.int64]


def calibrate(
    Y: Any,
    Z: Any,
    Y_hat: Any,
    decided: Any = None,
    sampled: Any = None,
    *,
    eta: float = 1.0,
    sources: SourceModel | None = None,
    level: Level | None = None,
    told: Told | None = None,
) -> Calibration:
    """Return the probability of every candidate.

    Parameters
    ----------
    Y, Y_hat : (n, L) candidates and predictions
    Z : (n, L) what propagation with weight `eta` made of them, not balanced; None without graphs
    decided : (n, L), 1 kept, 0 rejected, NaN undecided
    sampled : (n, L), which decided cells were drawn at random; the others count less, because a
        cell chosen for its confidence says little about the rest of its label. None: all were.
    sources : what the votes alone say, where several sources voted
    level : what earlier predictions, of candidates, told; None: these are such
    told : what all but the decisions say, where that is known
    """
    if sources is None and told is None:
        told = Told.by(Y, Z, Y_hat, eta, level)
    candidates = Candidates.of(Y) if told is None else told.candidates
    offered, (rows, labels) = candidates.offered, candidates.cells
    known, verdicts, weights = _answers(offered, decided, sampled)
    kept = np.zeros(len(rows), bool)
    if told is not None and told.evidence is not None:
        p, kept = told.after(known, verdicts, weights)
    elif sources is not None:
        p = sources.refit(Y_hat, decided).confidences(Y, Z, Y_hat, eta)[rows, labels]
    else:
        p = np.zeros(0)
    x = logit(p)
    fit = _Regression.fit(offered.shape[1], _Decisions(x[known], labels[known], verdicts, weights))
    p = fit.predict(x, labels)
    confidences, before = np.zeros((2, *offered.shape), np.float32)
    confidences[offered], before[offered] = held(p, kept), p
    keeps = np.zeros(offered.shape, bool)
    keeps[offered] = kept
    return Calibration(confidences, before, keeps)


def _answers(offered: Any, decided: Any, sampled: Any) -> tuple[Any, Floats, Floats]:
    """Return which candidates were decided, how, and what each of these decisions weighs."""
    if decided is None:
        return np.zeros(0, np.intp), np.zeros(0), np.zeros(0)
    verdicts = np.asarray(decided, np.float64)[offered]
    known = np.flatnonzero(verdicts >= 0)
    drawn = True if sampled is None else np.asarray(sampled, bool)[offered][known]
    return known, verdicts[known], np.where(drawn, np.ones(len(known)), _CHOSEN_WEIGHT)


def reliability(confidences: Any, truth: Any, mask: Any = None, n_bins: int = 10) -> Reliability:
    """Compare confidences with what was true, or decided (NaN: not yet), where `mask` holds."""
    c, t = np.asarray(confidences, np.float64), np.asarray(truth, np.float64)
    known = ~np.isnan(t) if mask is None else ~np.isnan(t) & (np.asarray(mask) > 0)
    c, t = c[known], t[known]
    at = np.minimum((c * n_bins).astype(np.int64), n_bins - 1)
    count, claimed, true = (np.bincount(at, w, n_bins) for w in (None, c, t))
    some = count > 0
    return Reliability(claimed[some] / count[some], true[some] / count[some], count[some])


def expected_calibration_error(confidences: Any, truth: Any, mask: Any = None) -> float:
    """Return the mean distance of claimed and true share over cells, in ten bins; NaN for none."""
    claimed, true, count = reliability(confidences, truth, mask)
    return float(np.average(abs(claimed - true), weights=count)) if len(count) else float("nan")


@dataclass(frozen=True, eq=False)
class _Decisions:
    """Verdicts on cells, and what they say about slope, common and label intercepts."""

    x: Floats  # (decisions,) log-odds before
    labels: npt.NDArray[np.intp]
    verdicts: Floats  # 1 kept, 0 rejected
    weights: Floats

    def step(self, shared: Floats, intercepts: Floats, spread: float) -> tuple[Floats, Floats]:
        """Return both after one of Newton's steps, halved until it is for the better."""
        precision = _cauchy_precision(shared)
        covariance, pull, own = self.curvature(shared, intercepts, precision, spread)
        error = self._error(shared, intercepts)
        up = np.bincount(self.labels, error, len(intercepts)) - intercepts / spread
        step = covariance @ (self._design @ error - precision * (shared - _NO_CHANGE) + pull @ up)
        label_step = own * up + step @ pull
        best = self._penalised(shared, intercepts, spread) + 1e-9
        while self._penalised(shared + step, intercepts + label_step, spread) > best:
            step, label_step = step / 2, label_step / 2
        return shared + step, intercepts + label_step

    def curvature(
        self, shared: Floats, intercepts: Floats, precision: Floats, spread: float
    ) -> tuple[Floats, Floats, Floats]:
        """Return the covariance of the shared two, how intercepts follow them (2, L), and the
        variance of an intercept once they are known (L,)."""
        p = self._predict(shared, intercepts)
        w, design, n_labels = self.weights * p * (1 - p), self._design, len(intercepts)
        own = 1 / (np.bincount(self.labels, w, n_labels) + 1 / spread)
        cross = np.stack([np.bincount(self.labels, w * row, n_labels) for row in design])
        pull = -cross * own
        inverse = (design * w) @ design.T + np.diag(precision) + pull @ cross.T
        return np.asarray(np.linalg.inv(inverse), np.float64), pull, own

    def beyond_chance(self, shared: Floats, n_labels: int) -> float:
        """Return how far label sums of errors are apart beyond chance, in standard deviations."""
        p = self._predict(shared, np.zeros(n_labels))
        error = np.bincount(self.labels, self._error(shared, np.zeros(n_labels)), n_labels)
        variance = np.bincount(self.labels, self.weights**2 * p * (1 - p), n_labels)
        chance = np.sqrt(2 * (variance**2).sum())
        return float((error**2 - variance).sum() / max(chance, 1e-12))

    @property
    def _design(self) -> Floats:
        return np.stack([self.x, np.ones_like(self.x)])  # (2, decisions)

    def _predict(self, shared: Floats, intercepts: Floats) -> Floats:
        return np.asarray(expit(shared @ self._design + intercepts[self.labels]))

    def _error(self, shared: Floats, intercepts: Floats) -> Floats:
        return self.weights * (self.verdicts - self._predict(shared, intercepts))

    def _penalised(self, shared: Floats, intercepts: Floats, spread: float) -> float:
        f = shared @ self._design + intercepts[self.labels]
        fit = (self.weights * (np.logaddexp(0, f) - self.verdicts * f)).sum()
        prior = np.log(_SCALE**2 + (shared - _NO_CHANGE) ** 2).sum()
        return float(fit + prior + (intercepts**2).sum() / spread / 2)


def _cauchy_precision(shared: Floats) -> Floats:
    """Return the precision of a normal that holds slope and common as their prior does here."""
    return np.asarray(2 / (_SCALE**2 + (shared - _NO_CHANGE) ** 2))


@dataclass(frozen=True, eq=False)
class _Regression:
    """logit P = slope x + common + intercept of the label.

    The curvature is an arrow: dense in slope and common, diagonal in the label intercepts.
    """

    shared: Floats  # slope, common
    intercepts: Floats  # (L,)

    @classmethod
    def fit(cls, n_labels: int, decisions: _Decisions) -> Self:
        """Return the likeliest after decisions, held back by the priors."""
        shared, intercepts, spread = _NO_CHANGE, np.zeros(n_labels), _NO_SPREAD
        if not len(decisions.labels):
            return cls(shared, intercepts)
        for _ in range(_FIRST_STEPS):
            shared, intercepts = decisions.step(shared, intercepts, spread)
        if decisions.beyond_chance(shared, n_labels) > _APPARENT:
            spread = _LABEL_SD**2
            seen = np.unique(decisions.labels)
            for _ in range(_SPREAD_ROUNDS):
                for _ in range(_NEWTON_STEPS):
                    shared, intercepts = decisions.step(shared, intercepts, spread)
                precision = _cauchy_precision(shared)
                covariance, pull, own = decisions.curvature(shared, intercepts, precision, spread)
                variance = own + np.einsum("al,ab,bl->l", pull, covariance, pull)
                squares = (intercepts**2 + variance)[seen].sum()
                spread = float(squares + 2 * _LABEL_SD**2) / (len(seen) + 2)
        return cls(shared, intercepts)

    def predict(self, x: Floats, labels: Any) -> Floats:
        slope, common = self.shared
        return np.asarray(expit(max(slope, 0.05) * x + common + self.intercepts[labels]))
