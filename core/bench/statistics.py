"""Are methods different? The tests of Demsar (JMLR 7, 2006), and a Bayesian one.

Scores are (cases, methods), larger is better; a case is a set with its noise. scipy has the
distributions; Holm's correction and mean ranks are a line each, so nothing else is needed.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import stats

Matrix = npt.NDArray[np.float64]


class Friedman(NamedTuple):
    """Whether the methods' mean ranks differ at all."""

    ranks: Matrix  # 1 is best
    chi2: float
    F: float  # Iman and Davenport's correction
    p: float  # of F
    critical: float  # F at the level


def friedman(scores: Any, level: float = 0.05) -> Friedman:
    """Test that all methods are equal; ranks of ties are averaged, as in Demsar's Eq. for chi^2."""
    S = np.asarray(scores, np.float64)
    n, k = S.shape
    ranks = stats.rankdata(-S, axis=1).mean(axis=0)
    chi2 = 12 * n / (k * (k + 1)) * (float((ranks**2).sum()) - k * (k + 1) ** 2 / 4)
    rest = n * (k - 1) - chi2
    F = (n - 1) * chi2 / rest if rest > 1e-12 else float("inf")
    freedom = k - 1, (k - 1) * (n - 1)
    p, critical = stats.f.sf(F, *freedom), stats.f.isf(level, *freedom)
    return Friedman(ranks, float(chi2), float(F), float(p), float(critical))


def nemenyi_distance(n_methods: int, n_cases: int, level: float = 0.05) -> float:
    """Return by how much two mean ranks must differ when all pairs are compared."""
    q = stats.studentized_range.isf(level, n_methods, np.inf) / np.sqrt(2)
    return _distance(float(q), n_methods, n_cases)


def bonferroni_dunn_distance(n_methods: int, n_cases: int, level: float = 0.05) -> float:
    """Return by how much a mean rank must differ from the control's."""
    q = stats.norm.isf(level / (2 * (n_methods - 1)))
    return _distance(float(q), n_methods, n_cases)


def _distance(q: float, k: int, n: int) -> float:
    return float(q * np.sqrt(k * (k + 1) / (6 * n)))


class Compared(NamedTuple):
    """One method against the control over the cases."""

    p: float  # Wilcoxon's signed ranks, two-sided
    adjusted: float  # by Holm, over all methods compared
    effect: float  # rank-biserial: 1 if the control is better everywhere, -1 if nowhere


def wilcoxon_holm(control: Any, others: Any) -> list[Compared]:
    """Compare the control (cases) with each column of the others (cases, methods)."""
    ours = np.asarray(control, np.float64)
    p_values, effects = [], []
    for other in np.asarray(others, np.float64).T:
        difference = ours - other
        ranks = stats.rankdata(np.abs(difference))
        effects.append(float((np.sign(difference) * ranks).sum() / ranks.sum()))
        if difference.any():  # equal scores are shared out evenly, as Demsar does
            p_values.append(float(stats.wilcoxon(difference, zero_method="zsplit").pvalue))
        else:
            p_values.append(1.0)
    return [Compared(*one) for one in zip(p_values, holm(p_values), effects, strict=True)]


def holm(p_values: list[float]) -> list[float]:
    """Return p-values corrected for their number by Holm's step-down procedure."""
    p = np.asarray(p_values, np.float64)
    order = np.argsort(p)
    stepped = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(stepped, 1)
    return [float(one) for one in adjusted]


def win_tie_loss(control: Any, other: Any, level: float = 0.05) -> tuple[int, int, int]:
    """Count the cases in which paired t-tests over folds say better, cannot say, say worse.

    Both are (cases, folds). Folds share training rows, so the test is too sure: it is what the
    paper counts.
    """
    counts = [0, 0, 0]
    for ours, theirs in zip(np.asarray(control), np.asarray(other), strict=True):
        difference = ours - theirs
        spread = float(difference.std())
        p = stats.ttest_rel(ours, theirs).pvalue if spread > 1e-12 else float(not difference.any())
        counts[1 if not p < level else 0 if difference.mean() > 0 else 2] += 1
    return counts[0], counts[1], counts[2]


class Bayesian(NamedTuple):
    """Probabilities that the first is better, both are practically equal, the second is better."""

    better: float
    equal: float
    worse: float


def bayesian_signed_rank(
    first: Any, second: Any, rope: float = 0.01, samples: int = 20_000, seed: int = 0
) -> Bayesian:
    """Compare two methods over cases (Benavoli et al., JMLR 18, 2017).

    A Dirichlet process on the differences with a prior observation of weight 1/2 at zero; `rope` is
    the difference that does not matter. The probabilities are the shares of posterior samples in
    which each of the three is the most probable.
    """
    z = np.append(0.0, np.asarray(first, np.float64) - np.asarray(second, np.float64))
    sums = z[:, None] + z
    weights = np.random.default_rng(seed).dirichlet([0.5, *np.ones(len(z) - 1)], samples)
    sides = [sums > 2 * rope, np.abs(sums) <= 2 * rope, sums < -2 * rope]
    mass = np.stack([np.einsum("si,ij,sj->s", weights, side, weights) for side in sides], axis=1)
    top = mass == mass.max(axis=1, keepdims=True)
    share = (top / top.sum(axis=1, keepdims=True)).mean(axis=0)
    return Bayesian(*(float(one) for one in share))
