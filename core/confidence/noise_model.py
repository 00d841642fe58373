"""How candidates come to be false: predictions turned into P(true | candidate) without decisions.

A candidate can be false in two ways, and the odds add up: P(true) = 1 / (1 + o_1 + o_2).

1. *By chance*, whatever the features say (o_1). The levels e of such candidates that the data allow
   and P(true | x) come from `core.confidence.level`, how many an instance carries from
   `core.confidence.counts`. Where no false ones are seen (e = 0) this way is closed.
2. *Because it resembles the true ones* (o_2). How many do cannot be seen, only who would be first:
   candidates of rare labels, predicted less than is usual for the label, beside many others.
   `core.confidence.readings` weighs what is possible.

Last, *kinds*: a label that is never offered without another is a kind of it, and the other is true
whenever one of its kinds is: it is at least as likely as that, in every reading and in their mean.
"""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np

from core.confidence.candidates import Candidates, Cells, Floats, Kinds
from core.confidence.counts import FalseCounts
from core.confidence.level import Level
from core.confidence.offer_curve import OfferCurve, TrueCurve
from core.confidence.readings import Readings, held

_OF_LABEL, _OF_CELL = 0.75, 0.5
"""Weights of a label's frequency and of an unusual prediction in the second way's order: those of
the eight sets' best order, flat from .5 to 1."""


class Evidence(NamedTuple):
    """What candidates show, in row-major order."""

    chance: Floats  # (E, cells) odds that they are false by chance, at every level
    order: Floats  # (cells,) log-odds that they do not just resemble true ones, up to a constant

    def at(self, cells: Any) -> "Evidence":
        return Evidence(self.chance[:, cells], self.order[cells])


@dataclass(frozen=True, eq=False)
class Noise:
    """How candidates come to be false, learned from candidates and predictions without truth."""

    level: Level
    frequency: Floats  # (L,) of candidates
    predicted: Floats  # (L,) mean prediction
    curve: OfferCurve | None = None  # none without candidates
    by_chance: tuple[tuple[TrueCurve, FalseCounts] | None, ...] = ()  # of every level; e = 0: none
    readings: Readings | None = None
    kinds: Kinds = ()

    @classmethod
    def fit(cls, Y: Any, Y_hat: Any, level: Level | None = None, *, floors: bool = True) -> Self:
        """Learn from all rows. `level` is known where earlier predictions were of candidates.

        Without `floors` in a shorter time, as an epoch does (`core.confidence.readings`).
        """
        candidates = Candidates.of(Y)
        Y_hat, some = candidates.see(Y_hat), candidates.offered[candidates.sample]
        frequency, predicted = candidates.frequency, Y_hat.mean
        level = Level.fit(some, Y_hat.rows) if level is None else level
        if not candidates.size.any():
            return cls(level, frequency, predicted)
        curve = OfferCurve(some, Y_hat.rows)
        levels, weights = level.readings
        few, of_few = candidates.sampled(Y_hat)
        by_chance = _by_chance(curve, few, of_few, level, levels)
        model = cls(level, frequency, predicted, curve, by_chance, kinds=candidates.kinds)
        evidence = model.evidence(few, None, of_few)
        readings = Readings.fit(*evidence, weights, level.expectation, floors=floors)
        return replace(model, readings=readings)

    def evidence(self, Y: Any, Z: Any, Y_hat: Any, eta: float = 1.0) -> Evidence:
        """Return what the candidates of these rows show; they may be a few of all."""
        candidates = Candidates.of(Y)
        if self.curve is None:
            return Evidence(np.zeros((1, 0)), np.zeros(0))
        (rows, labels), size = candidates.cells, candidates.size
        said = candidates.values(Y_hat).astype(np.float64)
        u = self.curve.score(said, labels)
        if Z is not None:
            moved = by_graphs(candidates.values(Z), said, rows, eta)
            # In log-odds; of predictions below the label's frequency as at that.
            at = np.clip(np.maximum(said, self.frequency[labels]), 0.01, 0.99)
            u, said = u + moved / (at * (1 - at)), said + moved
        chance = np.zeros((len(self.by_chance), len(rows)))
        for odds, fitted in zip(chance, self.by_chance, strict=True):
            if fitted is not None:
                true, counts = fitted
                c = np.clip(counts.confidences(true(u, labels), size), 1e-6, 1 - 1e-9)
                odds[:] = (1 - c) / c
        unusual = logit(said) - logit(self.predicted)[labels] - np.log(size[rows])
        order = _OF_LABEL * logit(self.frequency)[labels] + _OF_CELL * unusual
        return _with_kinds(Evidence(chance, np.asarray(order)), candidates, self.kinds)

    def confidences(self, Y: Any, Z: Any, Y_hat: Any, eta: float = 1.0) -> Floats:
        """Return the probability of every candidate of these rows, which may be a few of all.

        The mean of all readings, but not below even odds where some keep the candidate.
        """
        candidates = Candidates.of(Y)
        out = np.zeros(candidates.offered.shape)
        out[candidates.cells] = self.of_cells(candidates, Z, Y_hat, eta)
        return out

    def of_cells(self, Y: Any, Z: Any, Y_hat: Any, eta: float = 1.0) -> Floats:
        """Return `confidences` of the candidates alone, in row-major order."""
        candidates = Candidates.of(Y)
        if not candidates.size.any():
            return np.zeros(0)
        return self.weighed(candidates, self.evidence(candidates, Z, Y_hat, eta))

    def weighed(
        self, candidates: Candidates, evidence: Evidence, *, targets: bool = False
    ) -> Floats:
        """Return `of_cells` of candidates by what they show; for `targets` of networks, a likely
        reading instead of the mean."""
        if self.readings is None:
            return np.zeros(len(evidence.order))
        if targets:
            p = self.readings.likely(*evidence)
            return self.coherent(candidates, p, p > 0.5)[0]
        return held(*self.coherent(candidates, *self.readings.mean(*evidence)))

    def coherent(self, candidates: Candidates, p: Floats, kept: Cells) -> tuple[Floats, Cells]:
        """Return probabilities of candidates and which are kept, coherent among kinds."""
        if not self.kinds:
            return p, kept
        out, keeps = np.zeros(candidates.offered.shape), np.zeros(candidates.offered.shape, bool)
        out[candidates.cells], keeps[candidates.cells] = p, kept
        for j, whole in self.kinds:
            keeps[:, whole] |= keeps[:, j]
        return _coherent(out, self.kinds)[candidates.cells], keeps[candidates.cells]


def _by_chance(
    curve: OfferCurve, candidates: Candidates, Y_hat: Any, level: Level, levels: Floats
) -> tuple[tuple[TrueCurve, FalseCounts] | None, ...]:
    """Return P(true | x) and the numbers of false candidates at every level."""
    labels = candidates.cells[1]
    size, frequency = candidates.size, candidates.frequency
    u = curve.score(candidates.values(Y_hat), labels)

    def n_false(e: float) -> float:
        return float((frequency - curve.true_rate(e)).sum())

    out: list[tuple[TrueCurve, FalseCounts] | None] = []
    for e in levels:
        if e <= 0:
            out.append(None)
            continue
        true = curve.at(float(e))
        ends = (e, e) if len(levels) > 1 else (level.e_low, level.e_high)
        bounds = n_false(float(ends[0])), n_false(float(ends[1]))
        p, n_labels = true(u, labels), len(frequency)
        out.append((true, FalseCounts.fit(p, size, n_labels, float(e), bounds)))
    return tuple(out)


def _with_kinds(evidence: Evidence, candidates: Candidates, kinds: Kinds) -> Evidence:
    """Return what candidates show, those that have kinds no less than these together.

    After thirty answers mirflickr-5000, the one set here with kinds, gains .004 of F1 by it.
    """
    if not kinds:
        return evidence
    offered, (chance, order) = candidates.offered, evidence
    x, of_kinds = np.full((2, *offered.shape), -np.inf)
    odds = np.full((len(chance), *offered.shape), np.inf)
    x[candidates.cells], odds[:, *candidates.cells] = order, chance
    for j, whole in kinds:
        x[:, j] = np.maximum(x[:, j], of_kinds[:, j])
        of_kinds[:, whole] = np.logaddexp(of_kinds[:, whole], x[:, j])
        odds[:, :, whole] = np.minimum(odds[:, :, whole], odds[:, :, j])
    x = np.maximum(x, of_kinds)
    return Evidence(np.asarray(odds[:, *candidates.cells]), x[candidates.cells])


def _coherent(p: Floats, kinds: Kinds) -> Floats:
    """Return the probabilities, no candidate's below that of some kind of it being true."""
    none = np.ones_like(p)
    for j, whole in kinds:
        none[:, whole] *= np.minimum(1 - p[:, j], none[:, j])
    return np.where(p > 0, np.maximum(p, 1 - none), 0)


def by_graphs(Z: Floats, said: Floats, rows: Any, eta: float) -> Floats:
    """Return how the graphs correct the predictions of candidates, beyond their row's mean.

    At the minimiser (1 + eta) Z - eta Y - Y_hat = -alpha L_x Z - beta Z L_y.
    """
    correction = (1 + eta) * Z - eta - said
    mean = np.bincount(rows, correction) / np.maximum(np.bincount(rows), 1)
    return np.asarray(correction - mean[rows])


def logit(p: Any) -> Floats:
    p = np.clip(p, 1e-4, 1 - 1e-4)
    return np.asarray(np.log(p / (1 - p)))
