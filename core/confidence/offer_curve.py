"""How often a label is offered, and is true, where features point to it: the fit.

The model and its letters are those of `core.confidence.level`.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from core.confidence.candidates import MAX_CELLS
from core.confidence.counts import FalseCounts

Floats = npt.NDArray[np.float64]
Cells = npt.NDArray[np.bool_]

_ALLOWED, _CAUTIOUS = 1.92, 0.5
"""Drop of the log-likelihood at the ends of the 95 % interval, and at one standard error."""

_HIDDEN = 1.5, 10.0
"""Beta prior of tau. On six clean sets tau is .02 (medical) to .14 (birds)."""

_LEAST = 0.2
"""Share of a label's cells, those predicted least, whose offers bound e."""

_CERTAIN = 1.96
"""Standard errors by which candidate sets must be likelier with another e: Vuong's test, 95 %.
Rows gain 25 to 295 in log-likelihood, 3.1 to 39 standard errors, where false candidates come in
regular numbers (r = 3, the demo); 9 and 11, 1.8 and 1.5 standard errors, on mirflickr-5000 and on
clean labels of yeast, where the true ones do, and .011 of F1 was lost. The rule came from yeast."""

_COUNTED = 4
"""Steps from the best e to the most, at which whole candidate sets are looked at; and half steps
beside the best of them. On image, birds and medical at r = 3 they lead to within .01 of e."""

_LABEL_SD = 4.0
"""Spread of the labels' a_j, so that a label offered once has one too."""

_NEWTON_STEPS, _TOLERANCE, _FAR = 40, (1e-2, 1e-4), 3.0
"""Of the fit: steps at most, gain of the log-posterior at which it ends if e is given and if it is
to be found, which is a long way along a flat ridge; longest step."""

_EDGES = np.union1d(np.arange(12) / 12, 1 - 0.5 ** np.arange(1, 13))
"""Where bins of a label's cells by prediction begin: twelve alike, and the top halved again and
again, for there the true cells of a rare label are. With 24 alike, macro AUC at r = 3 is .960
instead of .977 on medical."""

_STRENGTH = 20.0
"""Of how many answers an expectation counts."""


class OfferCurve:
    """P(offered | x) as a function of the predictions, label by label, fitted to binned cells."""

    def __init__(self, offered: Cells, Y_hat: Any) -> None:
        every = slice(None, None, max(offered.size // MAX_CELLS, 1))
        offered, Y_hat = offered[every], np.asarray(Y_hat)[every]
        n, self._L = offered.shape
        self.frequency = np.clip(offered.mean(axis=0), 0.5 / n, 1 - 0.5 / n)
        self._least = np.maximum(0.02 * self.frequency, 1e-5)
        u = self.score(Y_hat, slice(None))
        self._middle = np.median(u, axis=0)
        self._scale = max(float((u - self._middle).std()), 1e-6)
        order = np.argsort(u.T, axis=1, kind="stable").T
        edges = np.unique((_EDGES * n).astype(int))
        self._n = np.diff(np.append(edges, n))[:, None].astype(np.float64)  # (bins, 1)
        at = np.take_along_axis((u - self._middle) / self._scale, order, axis=0)
        self._u = np.add.reduceat(at, edges, axis=0) / self._n  # (bins, L)
        yes = np.take_along_axis(offered, order, axis=0).astype(np.float64)
        self._offered = np.add.reduceat(yes, edges, axis=0)
        self._declined = self._n - self._offered
        least = yes[: max(int(_LEAST * n), 1)]
        error = np.sqrt(least.mean() * (1 - least.mean()) / least.size)
        self.most = float(min(least.mean() + 2 * error, 0.98 * self.frequency.mean()))

    def score(self, Y_hat: Any, labels: Any) -> Floats:
        """Return the log-odds of predictions, not below what says nothing about the label."""
        p = np.clip(np.asarray(Y_hat, np.float64), self._least[labels], 0.999)
        return np.asarray(np.log(p / (1 - p)))

    def true_rate(self, e: float) -> Floats:
        """Return how often each label is true, (L,)."""
        f = self.frequency
        return np.asarray(np.clip((f - e) / (1 - e), 0.02 * f, 1))

    def share_false(self, e: float) -> float:
        """Return the share of candidates that are false at this e."""
        rest = np.clip((self.frequency - e) / (1 - e), 0, None).sum()
        return max(float(1 - rest / self.frequency.sum()), 0.0) if e > 0 else 0.0

    def floor(
        self, expected: tuple[float, float] | None = None
    ) -> tuple[float, bool, float, float, float]:
        """Return e at its best, whether it is seen, its lowest and highest; and tau at the best."""
        at_none, none = self._fit(0.0, self._start, expected)
        at_best, best = self._fit(None, at_none, expected)
        e = self._e(at_best)
        if best >= none:
            at_best, best, e = at_none, none, 0.0

        def end(drop: float, inside: float, outside: float) -> float:
            theta = at_best
            for _ in range(7):
                middle = (inside + outside) / 2
                theta, found = self._fit(middle, theta, expected)
                inside, outside = (middle, outside) if found <= best + drop else (inside, middle)
            return (inside + outside) / 2

        low = 0.0 if none <= best + _ALLOWED else end(_ALLOWED, e, 0.0)
        high, hidden = end(_ALLOWED, e, self.most), float(expit(at_best[-2]))
        return e, none > best + _CAUTIOUS, low, high, hidden

    def at(
        self, e: float, hidden: float | None = None, like: "TrueCurve | None" = None
    ) -> "TrueCurve":
        """Return P(true | x) at this e, and at this tau if it is known.

        `like` is the curve of another e, to begin with.
        """
        start = self._start
        if like is not None:
            start[: self._L], start[self._L] = like.a, like.b
        if hidden is not None:
            start[-2] = np.log(hidden / (1 - hidden))
        theta, _ = self._fit(e, start, None, hidden=hidden is not None)
        a, b, tau = theta[: self._L], float(theta[self._L]), float(expit(theta[-2]))
        return TrueCurve(self, a, b, tau * self.true_rate(e), 1 - tau)

    def counted(self, offered: Cells, Y_hat: Any, e: float, hidden: float) -> float:
        """Return the e that whole candidate sets ask for, if they are surely likelier with it."""
        fits: dict[float, Floats] = {}
        like = self.at(e, hidden)

        def best(tried: Any) -> float:
            for one in sorted({e, *map(float, tried)} - set(fits)):
                true = self.at(one, hidden, like)
                fits[one] = self.rows_likelihood(offered, Y_hat, one, true)
            return max(fits, key=lambda one: float(fits[one].sum()))

        steps = np.linspace(e, self.most, _COUNTED + 1)
        at, half = best(steps), (steps[1] - steps[0]) / 2
        at = best(np.clip([at - half, at + half], e, self.most))
        gain = fits[at] - fits[e]
        return at if gain.sum() > _CERTAIN * gain.std() * np.sqrt(len(gain)) else e

    def rows_likelihood(self, offered: Cells, Y_hat: Any, e: float, true: "TrueCurve") -> Floats:
        """Return the log-likelihood of each candidate set, (n,), at this e and its curve."""
        every = slice(None, None, max(offered.size // MAX_CELLS, 1))
        offered = offered[every]
        labels = np.broadcast_to(np.arange(self._L), offered.shape)
        p = true(self.score(np.asarray(Y_hat)[every], slice(None)), labels)
        n_false = float((self.frequency - self.true_rate(e)).sum())
        counts = FalseCounts.fit(p[offered], offered.sum(axis=1), self._L, e, (n_false, n_false))
        return np.asarray(np.log1p(-p).sum(axis=1) + counts.log_likelihood)

    def standard(self, u: Floats, labels: Any) -> Floats:
        """Return scores on the curve's own scale."""
        return np.asarray((u - self._middle[labels]) / self._scale)

    @property
    def _start(self) -> Floats:
        f = self.frequency
        return np.concatenate([np.log(f / (1 - f)), [1.0, -3.0, -3.0]])

    def _e(self, theta: Floats) -> float:
        return float(self.most * expit(theta[-1]))

    def _fit(
        self, e: float | None, start: Floats, expected: Any, *, hidden: bool = False
    ) -> tuple[Floats, float]:
        """Maximise the posterior of a_j, b, tau and e, or at a fixed e or tau (`hidden`).

        Returns these and the negative log-posterior. Fisher scoring: the curvature is an arrow,
        diagonal in a_j and dense in the last three.
        """
        low, high = np.full(len(start), -40.0), np.full(len(start), 40.0)
        low[-3:], high[-3:] = (0.05, -9.0, -14.0), (20.0, 3.0, 6.0)
        free = np.array([True, not hidden, e is None])
        theta, true = start, None if e is None else self.true_rate(e)
        value, gradient, arrow = self._loss(theta, e, expected, true)
        for _ in range(_NEWTON_STEPS):
            step = _arrow_step(gradient, arrow, free)
            before = value
            while True:
                tried = np.minimum(np.maximum(theta + step, low), high)
                found = self._loss(tried, e, expected, true)
                if found[0] <= value or np.abs(step).max() < 1e-6:
                    break
                step = step / 2
            if found[0] <= value:
                theta, (value, gradient, arrow) = tried, found
            if before - value < _TOLERANCE[e is None]:
                break
        return theta, value

    def _loss(
        self, theta: Floats, fixed: float | None, expected: Any, true: Floats | None = None
    ) -> tuple[float, Floats, "_Arrow"]:
        """Return the negative log-posterior, its gradient and its curvature.

        `true` are the labels' rates at a fixed e.
        """
        a, (b, t, h) = theta[: self._L], theta[self._L :]
        tau, share = float(expit(t)), float(expit(h))
        e = self.most * share if fixed is None else fixed
        true = self.true_rate(e) if true is None else true
        g, density = _student(a + b * self._u)
        p = tau * true + (1 - tau) * g
        q = np.minimum(np.maximum(e + (1 - e) * p, 1e-9), 1 - 1e-9)
        value = -float(np.vdot(self._offered, np.log(q)) + np.vdot(self._declined, np.log1p(-q)))
        weight = self._n / (q * (1 - q))
        by_q = self._offered / q - self._declined / (1 - q)
        of_a = (1 - e) * (1 - tau) * density
        of_e = 1 - p - tau * (1 - self.frequency) / (1 - e) * (true < self.frequency)
        # What q gains by b, t and h.
        of = np.empty((3, *q.shape))
        of[0], of[1] = of_a * self._u, (1 - e) * tau * (1 - tau) * (true - g)
        of[2] = of_e * (e * (1 - share))
        off = a - a.mean()
        alpha, beta = _HIDDEN
        value += 0.5 * float(off @ off) / _LABEL_SD**2
        value -= (alpha - 1) * np.log(tau) + (beta - 1) * np.log1p(-tau)
        flat = of.reshape(3, -1)
        shared = flat @ by_q.ravel()
        shared[1] += (alpha - 1) * (1 - tau) - (beta - 1) * tau
        if expected is not None:
            prior, slope = self._log_prior(e, expected)
            value -= prior
            shared[2] += slope * e * (1 - share)
        own = (by_q * of_a).sum(axis=0) - off / _LABEL_SD**2
        weighted = of * weight
        corner = weighted.reshape(3, -1) @ flat.T
        corner[1, 1] += (alpha + beta - 2) * tau * (1 - tau)
        cross = (weighted * of_a).sum(axis=1)
        arrow = _Arrow((weight * of_a**2).sum(axis=0) + 1 / _LABEL_SD**2, cross, corner)
        return float(value), -np.concatenate([own, shared]), arrow

    def _log_prior(self, e: float, expected: tuple[float, float]) -> tuple[float, float]:
        """Return the log-prior of e, and its slope, where a person expects such a share."""
        step = 1e-6 + 1e-4 * e
        here, beyond = (_log_prior(self.share_false(at), expected) for at in (e, e + step))
        return here, (beyond - here) / step


_DIAGONAL = np.diag_indices(3)


class _Arrow(NamedTuple):
    """A curvature that is diagonal in a_j and dense in the three they share."""

    diagonal: Floats  # (L,)
    cross: Floats  # (3, L)
    corner: Floats  # (3, 3)


def _arrow_step(gradient: Floats, arrow: _Arrow, free: Cells) -> Floats:
    """Return Newton's step, zero in what is not free, at most `_FAR` in the shared three."""
    own, shared = -gradient[:-3], -gradient[-3:]
    pull = arrow.cross / arrow.diagonal
    inner = arrow.corner - pull @ arrow.cross.T
    inner[~free] = inner[:, ~free] = 0
    inner[_DIAGONAL] += np.where(free, 1e-6, 1)
    step = np.linalg.solve(inner, (shared - pull @ own) * free)
    step *= min(1.0, _FAR / max(float(np.abs(step).max()), 1e-9))
    return np.concatenate([own / arrow.diagonal - step @ pull, step])


@dataclass(frozen=True, eq=False)
class TrueCurve:
    """P(true | x) = tau t_j + (1 - tau) G(a_j + b u)."""

    curve: OfferCurve
    a: Floats  # (L,)
    b: float
    hidden: Floats  # (L,) tau t_j
    shown: float  # 1 - tau

    def __call__(self, u: Floats, labels: Any) -> Floats:
        """Return P(true) of cells with these scores (`OfferCurve.score`)."""
        g, _ = _student(self.a[labels] + self.b * self.curve.standard(u, labels))
        return np.asarray(np.clip(self.hidden[labels] + self.shown * g, 1e-6, 1 - 1e-4))


def _log_prior(share: float, expected: tuple[float, float]) -> float:
    mean = float(np.clip(sum(expected) / 2, 0.01, 0.99))
    share = float(np.clip(share, 1e-4, 1 - 1e-4))
    return float(_STRENGTH * (mean * np.log(share) + (1 - mean) * np.log1p(-share)))


def _student(x: Floats) -> tuple[Floats, Floats]:
    """Return distribution function and density of Student's t with three degrees of freedom."""
    z = x / np.sqrt(3)
    squares = 1 + z * z
    distribution = 0.5 + (np.arctan(z) + z / squares) / np.pi
    return np.asarray(distribution), np.asarray(2 / (np.pi * np.sqrt(3)) / (squares * squares))
