"""How many false labels an instance carries is often regular, so its candidates compete.

A task may ask for three labels, a tagger list five. With nu(m) the distribution of the number of
false candidates and any m false labels equally likely,

    P(T | S) ~ prod over T of p / (1 - p)  times  nu(|S| - |T|) / C(L - |T|, |S| - |T|).

nu is learned from all rows by EM, its mean held within what the level allows. Sums over subsets are
elementary symmetric polynomials: exact, |S|^2 per row.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln

Floats = npt.NDArray[np.float64]

_EM_ROUNDS, _TOLERANCE = 15, 1e-5

_LARGEST_SET = 64
"""Candidates of an instance up to which they compete; odds to this power still fit a float."""


@dataclass(frozen=True, eq=False)
class _SameSize:
    """The instances with s candidates: odds, and the polynomials of all of them."""

    odds: Floats  # (rows, s)

    @cached_property
    def last(self) -> Floats:
        """The polynomials of all candidates of a row, (rows, s + 1)."""
        *_, last = _polynomials(self.odds)
        return last

    def n_true(self, weight: Floats) -> Floats:
        """Return how many rows have t true candidates, in the mean, (s + 1,)."""
        return np.asarray(weight * ((1 / (self.last @ weight)) @ self.last))

    def marginals(self, weight: Floats) -> Floats:
        """Return P(true) of every candidate: the logarithmic derivative of the sum by its odds."""
        E = list(_polynomials(self.odds))
        total = E[-1] @ weight
        after = np.tile(weight, (len(self.odds), 1))
        out = np.empty_like(self.odds)
        for k in range(self.odds.shape[1] - 1, -1, -1):
            out[:, k] = (after[:, 1:] * E[k][:, :-1]).sum(axis=1)
            after[:, :-1] += self.odds[:, k, None] * after[:, 1:]
        return np.asarray(out * self.odds / total[:, None])


def _polynomials(odds: Floats) -> Iterator[Floats]:
    """Yield those of the first k candidates, (rows, s + 1), for k = 0..s."""
    n, s = odds.shape
    E = np.zeros((n, s + 1))
    E[:, 0] = 1
    yield E
    for k in range(s):
        E, before = E.copy(), E
        E[:, 1:] += odds[:, k, None] * before[:, :-1]
        yield E


def _groups(p: Floats, size: Any) -> Iterator[tuple[int, Any, _SameSize]]:
    """Yield candidates by the size of their set: the size, their places, and the sets."""
    odds = np.clip(p / (1 - p), 1e-4, 1e4)
    of_cell = np.repeat(size, size)
    for s in np.unique(size):
        if 0 < s <= _LARGEST_SET:
            at = np.flatnonzero(of_cell == s).reshape(-1, s)
            yield int(s), at, _SameSize(odds[at])


@dataclass(frozen=True, eq=False)
class FalseCounts:
    """The distribution of the number of false candidates of an instance."""

    nu: Floats  # (L + 1,)
    e: float  # P(offered | not true)
    log_likelihood: Floats  # (n,) of each candidate set, but for the product of its 1 - p

    @classmethod
    def fit(
        cls, p: Floats, size: Any, n_labels: int, e: float, n_false: tuple[float, float]
    ) -> Self:
        """Learn nu, with a mean from and to `n_false`.

        Parameters
        ----------
        p : P(true | features) of all candidates, in row-major order
        size : (n,) candidates of each instance
        """
        groups = [(s, sets, _log_subsets(s, n_labels)) for s, _, sets in _groups(p, size)]
        n_empty = int((size == 0).sum())
        nu = prior = _binomial(n_labels, e)
        for _ in range(_EM_ROUNDS):
            found = 0.5 * prior
            found[0] += n_empty
            for s, sets, subsets in groups:
                weight, _ = _scaled(np.log(nu[s::-1] + 1e-12) - subsets)
                found[: s + 1] += sets.n_true(weight)[::-1]
            before, nu = nu, found / found.sum()
            mean = float(nu @ np.arange(len(nu)))
            if not n_false[0] <= mean <= n_false[1]:
                nu = _with_mean(nu, min(max(mean, n_false[0]), n_false[1]))
            if np.abs(nu - before).max() < _TOLERANCE:
                break
        fit = np.where(size == 0, np.log(nu[0] + 1e-12), 0.0)
        for s, sets, subsets in groups:
            weight, scale = _scaled(np.log(nu[s::-1] + 1e-12) - subsets)
            fit[size == s] = np.log(sets.last @ weight) + scale
        return cls(np.asarray(nu), e, fit)

    def confidences(self, p: Floats, size: Any) -> Floats:
        """Return P(true | candidates of the row); sets too large for this are independent."""
        out = p / (p + (1 - p) * self.e)
        for s, at, sets in _groups(p, size):
            out[at] = sets.marginals(_count_weight(self.nu, s, len(self.nu) - 1))
        return np.asarray(out)


def _count_weight(nu: Floats, s: int, n_labels: int) -> Floats:
    """Return nu(s - t) / C(L - t, s - t) for t = 0..s, up to a factor."""
    return _scaled(np.log(nu[s::-1] + 1e-12) - _log_subsets(s, n_labels))[0]


def _log_subsets(s: int, n_labels: int) -> Floats:
    """Return log C(L - t, s - t) for t = 0..s."""
    t = np.arange(s + 1)
    return np.asarray(gammaln(n_labels - t + 1) - gammaln(s - t + 1) - gammaln(n_labels - s + 1))


def _binomial(n: int, p: float) -> Floats:
    """Return the distribution of the number of n coins that fall so with probability p."""
    m = np.arange(n + 1)
    log = gammaln(n + 1) - gammaln(m + 1) - gammaln(n - m + 1)
    return np.asarray(np.exp(log + m * np.log(p) + (n - m) * np.log1p(-p)))


def _scaled(log: Floats) -> tuple[Floats, float]:
    """Return weights of which the largest is 1, and the logarithm of what they were divided by."""
    largest = float(log.max())
    return np.exp(log - largest), largest


def _with_mean(nu: Floats, mean: float) -> Floats:
    """Return nu tilted exponentially to this mean: Newton's steps, kept between bounds."""
    m, log = np.arange(len(nu)) - mean, np.log(np.maximum(nu, 1e-300))
    low, high, tilt = -20.0, 20.0, 0.0
    for _ in range(40):
        x = log + tilt * m
        tilted = np.exp(x - x.max())
        tilted /= tilted.sum()
        off = float(tilted @ m)
        if abs(off) < 1e-7:
            break
        low, high = (tilt, high) if off < 0 else (low, tilt)
        tilt -= off / max(float(tilted @ m**2) - off**2, 1e-12)
        if not low < tilt < high:
            tilt = (low + high) / 2
    return np.asarray(tilted)
