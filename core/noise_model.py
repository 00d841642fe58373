"""How candidates come to be false: predictions turned into P(true | candidate) without decisions.

1. *Noise floor.* Where a label is predicted least it is hardly ever true, so the share of instances
   that offer it there estimates e = P(offered | not true). It is pooled over labels. Predictions
   are moved to the level this implies: true labels are (offered - e) / (1 - e) of all cells.
2. *Counts.* How many false labels an instance carries is often regular (a task that asks for three,
   a tagger that lists five). With nu(m) its distribution and any m false labels equally likely,

       P(T | S) ~ prod over T of p / (1 - p)  times  nu(|S| - |T|) / C(L - |T|, |S| - |T|),

   so the candidates of a row compete. nu is learned from all rows by EM, its mean held at what the
   floor implies. Sums over subsets are elementary symmetric polynomials: exact, |S|^2 per row.
3. *No floor.* Where candidates look almost all true (false ones follow the features too, or the
   predictions have memorised them), their predictability says less about truth. The level is then
   a guess until somebody decides: the label's frequency, and how far the prediction is from the
   label's usual one. The nearer to all true candidates look, the less either counts, and the more
   longer candidate sets count against their members.
4. *Two groups.* Where the log-odds of candidates fall into two clear groups, the doubtful cells are
   between them. If that is above even odds, false candidates resemble true ones, which neither
   the floor nor the guess can see: the level is then half-way between that view and this one.
5. *Kinds.* A label that is never offered without another is a kind of it, and the other is true
   whenever one of its kinds is: it is at least as likely as that.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.special import expit, gammaln

Floats = npt.NDArray[np.float64]
Cells = npt.NDArray[np.bool_]
Kinds = tuple[tuple[int, int], ...]

_FLOOR_SHARE = 0.2
"""Share of instances, those predicted least, that show a label's noise floor."""

_ABOUT_TRUTH = 0.97
"""Predictions with a mean below this share of the candidates' are of truth, not of candidates."""

_CREDIBLE = 0.8
"""Share of true candidates above which the noise floor is not believed."""

_GUESS, _LEAST_TRUST = 0.65, (0.75, 0.5)
"""Without a floor: the share of true candidates; least weights of frequency and prediction."""

_ODD = 0.85, 0.92
"""Shares between which these weights fall from 1 to the least."""

_CLEAR = 2 / np.pi, 0.75
"""Share of variance that two groups explain: of a normal, which is one group; of a uniform."""

_SURE = 5.0
"""Log-odds beyond which candidates are all the same to the groups."""

_LOOK = 200_000
"""Cells looked at for the noise floor; of larger data, evenly spaced rows."""

_BY_CHANCE, _EXCEPTIONS = 15, 0.02
"""How often a kind would be offered alone by chance, at least, and the share of it that is."""

_EM_ROUNDS, _MEANS_ROUNDS = 15, 20

_LARGEST_SET = 64
"""Candidates of an instance up to which they compete; odds to this power still fit a float."""


@dataclass(frozen=True, eq=False)
class Noise:
    """How candidates come to be false, learned from candidates and predictions without truth."""

    frequency: Floats  # (L,) of candidates
    predicted: Floats  # (L,) mean prediction
    true_rate: Floats  # (L,)
    e: float  # P(offered | not true)
    shift: float  # what predictions of candidates are above those of truth
    nu: Floats | None  # (L + 1,) of the number of false candidates; None without a floor
    doubt: float = 0.0
    level: float = 0.0
    between: float = 0.0  # log-odds between two groups of candidates
    kinds: Kinds = ()

    @classmethod
    def fit(cls, Y: Any, Y_hat: Any) -> Self:
        """Learn from all rows; of larger data, two groups are looked for in evenly spaced ones."""
        offered, Y_hat = np.asarray(Y) > 0, np.asarray(Y_hat)
        few = slice(None, None, max(offered.size // _LOOK, 1))
        model = cls._of(offered, Y_hat, few)
        confidences = model.confidences(offered[few], None, Y_hat[few])
        return replace(model, between=_between_groups(logit(confidences[offered[few]])))

    @classmethod
    def _of(cls, offered: Cells, Y_hat: Floats, few: slice) -> Self:
        rows, labels = np.nonzero(offered)
        frequency = np.bincount(labels, minlength=offered.shape[1]) / max(len(offered), 1)
        if not len(rows):
            return cls(frequency, frequency, frequency, 0.0, 0.0, None)
        e = _noise_floor(offered[few][:, frequency > 0], Y_hat[few][:, frequency > 0])
        true_rate = np.clip((frequency - e) / (1 - e), 0.02 * frequency, 1)
        share = float(true_rate.sum() / frequency.sum())
        predicted, kinds = Y_hat.mean(axis=0, dtype=np.float64), _kinds(offered)
        model = cls(frequency, predicted, true_rate, e, 0.0, None, kinds=kinds)
        if share > _CREDIBLE:
            doubt = float(np.clip((share - _ODD[0]) / (_ODD[1] - _ODD[0]), 0, 1))
            return replace(model, doubt=doubt)._levelled(offered[few], Y_hat[few])
        if predicted.sum() < _ABOUT_TRUTH * frequency.sum():
            true_rate = np.clip(predicted, 0.02 * frequency, 0.98 * frequency)
            e = float((frequency - true_rate).sum() / (1 - true_rate).sum())
            model = replace(model, true_rate=true_rate, e=e)
        else:
            model = replace(model, shift=_shift(Y_hat[few], float(true_rate.mean())))
        said, size = Y_hat[rows, labels], offered.sum(axis=1)
        return replace(model, nu=_count_false(model._chance(said, labels), size, model))

    def _levelled(self, offered: Cells, Y_hat: Floats) -> Self:
        """Return the model without a floor at the level of the guessed share of true candidates."""
        rows, labels = np.nonzero(offered)
        x = self._without_floor(Y_hat[rows, labels], labels, offered.sum(axis=1)[rows])
        p, low, high = np.zeros(offered.shape), -20.0, 20.0
        for _ in range(20):
            middle = (low + high) / 2
            p[rows, labels] = expit(x + middle)
            share = _coherent(p, self.kinds)[rows, labels].mean()
            low, high = (middle, high) if share < _GUESS else (low, middle)
        return replace(self, level=low)

    def confidences(self, Y: Any, Z: Any, Y_hat: Any, eta: float = 1.0) -> Floats:
        """Return the probability of every candidate of these rows, which may be a few of all."""
        offered = np.asarray(Y) > 0
        rows, labels = np.nonzero(offered)
        out = np.zeros(offered.shape)
        if not len(rows):
            return out
        said, size = np.asarray(Y_hat)[rows, labels].astype(np.float64), offered.sum(axis=1)
        if Z is not None:
            said = said + _by_graphs(np.asarray(Z)[rows, labels], said, rows, eta)
        if self.nu is None:
            x = self._without_floor(said, labels, size[rows]) + self.level
        else:
            x = logit(_compete(self._chance(said, labels), size, self))
        out[rows, labels] = expit(x - self.between / 2)
        return _coherent(out, self.kinds)

    def _chance(self, said: Floats, labels: Any) -> Floats:
        """Return P(true | features) of candidates."""
        p = (said - self.shift) / (1 - self.shift)
        return np.asarray(np.clip(p, 0.05 * self.true_rate[labels] + 1e-5, 0.999))

    def _without_floor(self, said: Floats, labels: Any, size: Any) -> Floats:
        """Return log-odds of candidates, up to the level."""
        of_label, of_cell = (1 - (1 - least) * self.doubt for least in _LEAST_TRUST)
        unusual = logit(said) - logit(self.predicted)[labels] - self.doubt * np.log(size)
        return np.asarray(of_label * logit(self.frequency)[labels] + of_cell * unusual)


def _kinds(offered: Cells) -> Kinds:
    """Return pairs of a label and what it is a kind of, rarest first.

    A kind is hardly ever offered without the other, though by chance it often would be; not so
    the other without it. Where it is a kind of several, the rarest of them is meant.
    """
    Y = sp.csr_matrix(offered, dtype=np.float32)
    together = (Y.T @ Y).toarray()
    count = together.diagonal()
    by_chance = np.outer(count, 1 - count / max(len(offered), 1))
    kind = (by_chance > _BY_CHANCE) & (count[:, None] - together <= _EXCEPTIONS * by_chance)
    others = np.where(kind & ~kind.T, count, np.inf)
    rarest_first = np.argsort(count, kind="stable")
    pairs = ((int(j), int(np.argmin(others[j]))) for j in rarest_first)
    return tuple((j, whole) for j, whole in pairs if others[j, whole] < np.inf)


def _coherent(p: Floats, kinds: Kinds) -> Floats:
    """Return the probabilities, no candidate's below that of some kind of it being true."""
    if not kinds:
        return p
    none = np.ones_like(p)
    for j, whole in kinds:
        none[:, whole] *= np.minimum(1 - p[:, j], none[:, j])
    return np.where(p > 0, np.maximum(p, 1 - none), 0)


def _by_graphs(Z: Floats, said: Floats, rows: Any, eta: float) -> Floats:
    """Return how the graphs correct the predictions of candidates, beyond their row's mean.

    At the minimiser (1 + eta) Z - eta Y - Y_hat = -alpha L_x Z - beta Z L_y.
    """
    correction = (1 + eta) * Z - eta - said
    mean = np.bincount(rows, correction) / np.maximum(np.bincount(rows), 1)
    return np.asarray(correction - mean[rows])


def _noise_floor(offered: Cells, Y_hat: Floats) -> float:
    """Return how often labels are offered where they are predicted least."""
    n = max(int(len(Y_hat) * _FLOOR_SHARE), 1)
    least = np.argpartition(Y_hat, n - 1, axis=0)[:n]
    return float(np.clip(np.take_along_axis(offered, least, axis=0).mean(), 1e-4, 0.99))


def _shift(Y_hat: Floats, mean: float) -> float:
    """Return the t at which (Y_hat - t) / (1 - t), cut at 0, has this mean."""
    low, high = 0.0, 1.0
    for _ in range(16):
        middle = (low + high) / 2
        above = np.maximum(Y_hat - middle, 0).mean() > mean * (1 - middle)
        low, high = (middle, high) if above else (low, middle)
    return low


def _between_groups(x: Floats) -> float:
    """Return the middle between two groups of log-odds if above 0, less where they are unclear."""
    x = np.clip(x, -_SURE, _SURE)
    if not len(x) or x.min() == x.max():
        return 0.0
    middle = float(np.mean(x))
    for _ in range(_MEANS_ROUNDS):
        above = x > middle
        middle = float(x[above].mean() + x[~above].mean()) / 2
    apart = float(x[above].mean() - x[~above].mean())
    explained = above.mean() * (1 - above.mean()) * apart**2 / x.var()
    clear = np.clip((explained - _CLEAR[0]) / (_CLEAR[1] - _CLEAR[0]), 0, 1)
    return max(middle, 0.0) * float(clear)


@dataclass(frozen=True, eq=False)
class _SameSize:
    """The instances with s candidates: odds, and E[k] the polynomials of the first k of them."""

    odds: Floats  # (rows, s)
    E: Floats  # (s + 1, rows, s + 1)

    @classmethod
    def of(cls, odds: Floats) -> Self:
        n, s = odds.shape
        E = np.zeros((s + 1, n, s + 1))
        E[0, :, 0] = 1
        for k in range(s):
            E[k + 1] = E[k]
            E[k + 1, :, 1:] += odds[:, k, None] * E[k, :, :-1]
        return cls(odds, E)

    def n_true(self, weight: Floats) -> Floats:
        """Return the distribution of the number of true candidates, (rows, s + 1)."""
        each = self.E[-1] * weight
        return np.asarray(each / each.sum(axis=1, keepdims=True))

    def marginals(self, weight: Floats) -> Floats:
        """Return P(true) of every candidate: the logarithmic derivative of the sum by its odds."""
        total = self.E[-1] @ weight
        after = np.tile(weight, (len(self.odds), 1))
        out = np.empty_like(self.odds)
        for k in range(self.odds.shape[1] - 1, -1, -1):
            out[:, k] = (after[:, 1:] * self.E[k, :, :-1]).sum(axis=1)
            after[:, :-1] += self.odds[:, k, None] * after[:, 1:]
        return np.asarray(out * self.odds / total[:, None])


def _groups(p: Floats, size: Any) -> Iterator[tuple[int, Any, _SameSize]]:
    """Yield candidates by the size of their set: the size, their places, and the sets."""
    odds = np.clip(p / (1 - p), 1e-4, 1e4)
    of_cell = np.repeat(size, size)
    for s in np.unique(size):
        if 0 < s <= _LARGEST_SET:
            at = np.flatnonzero(of_cell == s).reshape(-1, s)
            yield int(s), at, _SameSize.of(odds[at])


def _count_false(p: Floats, size: Any, noise: Noise) -> Floats:
    """Return the distribution of the number of false candidates of an instance."""
    from scipy.stats import binom  # slow to import

    n_labels = len(noise.frequency)
    n_false = float((noise.frequency - noise.true_rate).sum())
    groups = [(s, sets) for s, _, sets in _groups(p, size)]
    nu = prior = binom.pmf(np.arange(n_labels + 1), n_labels, noise.e)
    for _ in range(_EM_ROUNDS):
        found = 0.5 * prior
        found[0] += (size == 0).sum()
        for s, sets in groups:
            n_true = sets.n_true(_count_weight(nu, s, n_labels))
            found[: s + 1] += n_true.sum(axis=0)[::-1]
        nu = _with_mean(found / found.sum(), n_false)
    return np.asarray(nu)


def _compete(p: Floats, size: Any, noise: Noise) -> Floats:
    """Return the confidences under the count model; sets too large for it are independent."""
    assert noise.nu is not None
    confidences = p / (p + (1 - p) * noise.e)
    for s, at, sets in _groups(p, size):
        confidences[at] = sets.marginals(_count_weight(noise.nu, s, len(noise.frequency)))
    return np.asarray(confidences)


def _count_weight(nu: Floats, s: int, n_labels: int) -> Floats:
    """Return nu(s - t) / C(L - t, s - t) for t = 0..s, up to a factor."""
    t = np.arange(s + 1)
    subsets = gammaln(n_labels - t + 1) - gammaln(s - t + 1) - gammaln(n_labels - s + 1)
    log = np.log(nu[s - t] + 1e-12) - subsets
    return np.asarray(np.exp(log - log.max()))


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


def logit(p: Any) -> Floats:
    p = np.clip(p, 1e-4, 1 - 1e-4)
    return np.asarray(np.log(p / (1 - p)))
