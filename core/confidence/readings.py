"""Readings: the ways in which candidates may have come to be false, and how answers weigh them.

A reading says four things: the level e of false candidates that fall anywhere (one of those that
`core.confidence.level` allows), the share u of the others that are false though they resemble true
ones, how sharply the order of the candidates tells these (s), and which share is true even where
the order says least (h). In it a candidate is true with

    P = 1 / (1 + o_e + (1 - h) o / (1 + h o)),    o = exp(-s x - shift),

o_e its odds of being false by chance, x its place in the order, and the shift such that the share
is u. Before anybody answers, readings weigh as their priors say: e by its likelihood, u as false
labels are known to be frequent, s evenly. Answers on random cells multiply these weights by their
likelihood; thirty settle u to within a tenth. A confidence is the weighted mean.

*Nothing is rejected that a reading keeps*: a reading keeps a candidate where that raises the F1 it
expects (from half of that F1 on). Where readings with a tenth of the weight keep a candidate, it
stays at even odds at least.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy.special import betainc

Floats = npt.NDArray[np.float64]

_SHARES = np.array([0, 0.01, 0.03, 0.07, 0.15, 0.25, 0.35, 0.45, 0.55, 0.65, 0.75, 0.85, 1.0])
"""Edges of the shares u that are told apart: finer than thirty answers can."""

UNSEEN = 0.5, 2.5
"""Beta prior of u: .3 of the weight below 3 %, half below 10 %, a tenth above 45 %. Labels that
people use are mostly 1 to 20 % wrong; of the candidates in four real sets 4, 7, 15 and 47 % are."""

_SHARPNESS = np.array([0.0, 0.5, 1.0, 2.0, 4.0, 1.0, 2.0, 4.0])
"""Of the order. Regressions of truth on x have 1 to 5 in nine cases of three sets: 1 where
predictions are weak (emotions, mirflickr), 4 and more where they are strong (the demo). 0: it
tells nothing. After thirty answers (ten draws), without 0 emotions loses .016 of F1 more
where half is false and alike, without .5 mirflickr gains .018 less."""

_FLOOR = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.4, 0.2, 0.1])
"""Share h of true ones that is left where the order says least: labels that the features do not
show. Fitted to the truth of 18 cases it is .3 to .5 in eight and more in four (emotions, birds,
image), below .1 on the demo, mirflickr and medical with half false. Against readings without a
floor, after sixty answers (twenty draws): birds with 35 % alike loses .0025 of F1 instead of .007,
the demo gains .002, mirflickr .004 less; with .4 alone birds loses nothing, mirflickr .028 more."""

_LIKELY = 5
"""Place among the shares of what networks fit: u = .3. Against the mean of all readings, on eight
cases, one seed: macro AUC +.006 on mirflickr, +.004 on the demo, +.003 on image at r = 3, but -.005
on birds and -.004 on image with confusable noise; at .4 emotions at r = 3 loses .02."""

_KEEPS, _SETTLED = (0.1, 0.3), 30
"""One in ten; after thirty answers, which settle most, three in ten. With even odds as every
reading's cut, one in four lost up to .012 of F1 on clean labels without answers (birds with weak
features). After thirty (twenty draws, 20 cases), three in ten gains .006 on the demo and on
mirflickr over one in five, and loses .003 at most (emotions, half false and alike)."""

_BORNE_OUT, _LESS = 0.8, np.arange(10, 0, -1) / 10
"""How sure answers must be that what they take away is not worth keeping, and the parts of it that
are tried. Twenty draws of 7, 15, 30 and 60 answers on 30 cases: against none, F1 is lower by more
than .002 in 4 of 120 instead of 20, by .0033 at most instead of .0062; thirty gain as much on the
demo, .005 less on mirflickr. With .7 six are, by .0045; .9 costs the demo .019 after thirty."""

_EVEN = 0.5005
"""Above what is held at even odds."""

_STRENGTH = 20.0
"""Of how many answers an expectation counts."""

_NEGLIGIBLE = 1e-3
"""Weight of readings that are left out of means."""

_AT_ONCE = 2**14
"""Candidates whose readings are averaged at once."""

_STEPS = np.linspace(-30, 30, 41)
"""Shifts at which shares are computed; between them they are interpolated."""

_MAX_CANDIDATES, _FEWER = 750, 3
"""Candidates from which shifts are found, evenly spaced in the order; every which of them tells the
cuts, within .01."""


@dataclass(frozen=True, eq=False)
class Readings:
    """All readings of one data set: their weights, and what they say of any candidates."""

    weights: Floats  # (E, S, U), sum 1
    shifts: Floats  # (E, S, U)
    shares: Floats  # (E, S, U) of candidates that are false
    cuts: Floats  # (S, U) from which P a candidate is worth keeping
    middle: float  # of the order
    n_answers: float = 0.0

    @classmethod
    def fit(
        cls,
        chance: Floats,
        order: Floats,
        levels: Floats,
        expected: tuple[float, float] | None,
        *,
        floors: bool = True,
    ) -> Self:
        """Find the shifts that give every reading its share.

        Parameters
        ----------
        chance : (E, cells) odds that candidates are false by chance
        order : (cells,) x, larger where truth is likelier
        levels : (E,) weights of the levels
        expected : the range of the share of false candidates that a person expects
        floors : whether readings with a floor are among them
        """
        middle = float(np.median(order))
        every = max(-(-len(order) // _MAX_CANDIDATES), 1)
        some = np.argsort(order, kind="stable")[::every]
        chance, x = chance[:, some], order[some] - middle
        few = slice(None, None, _FEWER)
        u = (_SHARES[1:] + _SHARES[:-1]) / 2
        prior = np.diff(betainc(*UNSEEN, _SHARES))
        seen = (chance / (1 + chance)).mean(axis=1)
        each = seen[:, None] + u * (1 - seen[:, None])  # (E, U)
        n_shapes = len(_FLOOR) if floors else int((_FLOOR == 0).sum())
        shares = np.repeat(each[:, None], n_shapes, axis=1)
        shifts, cuts = np.empty(shares.shape), np.empty(shares.shape[1:])
        alikes = zip(_alike(x, n_shapes), _alike(x[few], n_shapes), strict=True)
        for k, (alike, fewer) in enumerate(alikes):
            moved = alike(_STEPS[:, None])  # (steps, cells)
            for e, odds in enumerate(chance):
                false = (1 - 1 / (1 + odds + moved)).mean(axis=1)  # falls with the shift
                shifts[e, k] = np.interp(-shares[e, k], -false, _STEPS)
                shares[e, k] = np.minimum(shares[e, k], false[0])
            p = 1 / (1 + chance[:, None, few] + fewer(shifts[:, k, :, None]))  # (E, U, cells)
            cuts[k] = _worth(np.tensordot(levels, p, axes=1))
        # No more can be false than what the floor leaves.
        weights = levels[:, None, None] * (prior * (u < 1 - _FLOOR[:n_shapes, None]))
        if expected is not None:
            weights = weights * np.exp(_log_expected(shares, expected))
        return cls(weights / weights.sum(), shifts, shares, cuts, middle)

    def after(self, chance: Floats, order: Floats, verdicts: Floats, weights: Floats) -> Self:
        """Return the readings weighed by answers about these candidates."""
        if not len(verdicts):
            return self
        log = np.log(np.maximum(self.weights, 1e-300))
        for k, alike in enumerate(_alike(order - self.middle, self.weights.shape[1])):
            # (E, U, answers)
            p = 1 / (1 + chance[:, None] + alike(self.shifts[:, k, :, None]))
            p = np.clip(p, 1e-4, 1 - 1e-4)
            log[:, k] += (verdicts * np.log(p) + (1 - verdicts) * np.log1p(-p)) @ weights
        weighed = np.exp(log - log.max())
        n_answers = self.n_answers + float(weights.sum())
        return replace(self, weights=weighed / weighed.sum(), n_answers=n_answers)

    def mean(self, chance: Floats, order: Floats) -> tuple[Floats, npt.NDArray[np.bool_]]:
        """Return the mean of all readings, and which candidates some of them keep.

        Readings that differ in e alone are one here: what is seen of e is rather too low.
        """
        if len(order) > _AT_ONCE:  # many passes over few candidates: they stay near the processor
            starts = range(0, len(order), _AT_ONCE)
            parts = [
                self.mean(chance[:, at : at + _AT_ONCE], order[at : at + _AT_ONCE]) for at in starts
            ]
            return np.concatenate([p for p, _ in parts]), np.concatenate([k for _, k in parts])
        mean, keep, total = np.zeros(len(order)), np.zeros(len(order)), 0.0
        for k, alike in enumerate(_alike(order - self.middle, self.weights.shape[1])):
            for u, weights in enumerate(self.weights[:, k].T):
                weight = float(weights.sum())
                if weight < _NEGLIGIBLE:
                    continue
                p = np.zeros(len(order))
                for e, part in enumerate(weights / weight):
                    p += part / (1 + chance[e] + alike(self.shifts[e, k, u]))
                mean += weight * p
                keep += weight * (p >= self.cuts[k, u])
                total += weight
        needed = np.interp(self.n_answers, (0, _SETTLED), _KEEPS)
        return mean / total, keep > needed * total

    def likely(self, chance: Floats, order: Floats) -> Floats:
        """Return P(true) as networks should fit it: of a likely share, by an order that tells."""
        some = np.zeros_like(self.weights)
        tells = ((_SHARPNESS > 0) & (_FLOOR == 0))[: some.shape[1]]
        some[:, tells, _LIKELY] = self.weights[:, tells, _LIKELY]
        return replace(self, weights=some / some.sum()).mean(chance, order)[0]


def _alike(x: Floats, n_shapes: int) -> list[Callable[[Any], Floats]]:
    """Return the odds of just resembling a true one, by shift, at every sharpness and floor."""
    shapes = zip(_SHARPNESS[:n_shapes], _FLOOR[:n_shapes], strict=True)
    return [_odds(sharp * x, floor) for sharp, floor in shapes]


def _odds(x: Floats, floor: float) -> Callable[[Any], Floats]:
    like = np.exp(-np.clip(x, -50, 50))

    def at(shift: Any) -> Floats:
        odds = np.exp(-shift) * like
        return np.asarray((1 - floor) * odds / (1 + floor * odds) if floor else odds)

    return at


def held(p: Floats, kept: Any) -> Floats:
    """Return the probabilities, those of `kept` candidates not below even odds.

    These come after all that have even odds of their own, and stay in their order.
    """
    own = np.maximum(p, _EVEN + 0.001 * (p - 0.5))
    return np.asarray(np.where(p >= 0.5, own, np.where(kept, 0.5 + 0.001 * p, p)))


def worth_keeping(p: Floats) -> npt.NDArray[np.bool_]:
    """Return which candidates raise the expected F1 of what is kept."""
    return np.asarray(p >= _worth(p))


def borne_out(
    p: Floats, rejected: npt.NDArray[np.bool_], known: Any, verdicts: Floats, weights: Floats
) -> npt.NDArray[np.bool_]:
    """Return which candidates that readings reject because of answers these bear out themselves.

    The least likely ones first, as many as hold too few true ones to be worth keeping, by the
    answers among them alone: readings may have a wrong idea of the order.

    Parameters
    ----------
    p : (cells,) as readings say after the answers
    rejected : (cells,) those in question
    known, verdicts, weights : the cells that were answered, how, and what an answer weighs
    """
    out, cut = np.zeros_like(rejected), float(_worth(p))
    at = np.flatnonzero(rejected)
    at = at[np.argsort(p[at], kind="stable")]
    place = np.full(len(p), len(p))
    place[at] = np.arange(len(at))
    for n in np.ceil(_LESS * len(at)).astype(int):
        answered = weights * (place[known] < n)
        n_true, n_answers = float(answered @ verdicts), float(answered.sum())
        if betainc(n_true + 0.5, n_answers - n_true + 0.5, cut) >= _BORNE_OUT:
            out[at[:n]] = True
            break
    return out


def _worth(p: Floats) -> Floats:
    """Return the probability from which keeping raises the expected F1: half of the largest.

    For each row of probabilities.
    """
    if not p.shape[-1]:
        return np.full(p.shape[:-1], 0.5)
    right = np.cumsum(np.sort(p)[..., ::-1], axis=-1)
    n = np.arange(1, p.shape[-1] + 1)
    return np.asarray((right / (n + right[..., -1:])).max(axis=-1))


def _log_expected(shares: Floats, expected: tuple[float, float]) -> Floats:
    mean = float(np.clip(sum(expected) / 2, 0.01, 0.99))
    shares = np.clip(shares, 1e-4, 1 - 1e-4)
    return np.asarray(_STRENGTH * (mean * np.log(shares) + (1 - mean) * np.log1p(-shares)))
