"""How much is still wrong, how far it is to a target, and what may be accepted unseen.

All of it comes from decisions on cells that were drawn at random (`sampled`). What the model says
of such a cell is what it says without that decision, so these cells stand for those nobody has
decided. Cells that the queue chose are left out: they were chosen because they are doubtful. So are
answers that were likely given without looking (`core.review.habits`).
"""

from dataclasses import dataclass
from math import ceil, log
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy.special import betaincinv

from core.errors import ConfigError
from core.review.queue import audit_cells, audit_order
from core.review.resolve import Threshold
from core.review.reviewer import Reviewer

Floats = npt.NDArray[np.float64]
Rows = npt.NDArray[np.int64]

STRATA = (0.5, 0.8, 0.95)
"""Lower ends of the bins of confidence in which cells that will be kept are counted."""

PRIOR_STRENGTH = 2.0
"""Of how many audited cells the expectation counts in a label's bin."""

N_DRAWS = 2000

CERTAINTY = 0.95
"""Of the intervals of what is still false, and of the precision that is guaranteed."""


@dataclass(frozen=True, eq=False)
class RemainingFalse:
    """Of the candidates nobody decided and that will be kept: how many are false, by label."""

    n_kept: Rows  # (L,)
    n_audited: Rows  # (L,)
    estimate: Floats  # (L,)
    low: Floats  # (L,)
    high: Floats  # (L,)
    total: float
    total_low: float
    total_high: float


@dataclass(frozen=True, eq=False)
class AutoResolve:
    """What may be accepted (or rejected) unseen, or how many random cells are missing.

    `cut` is none when it was refused; then `n_needed` more cells must be audited, and all of them
    turn out right. `bound` is the precision that holds with `CERTAINTY`.
    """

    verdict: Literal["keep", "reject"]
    precision: float
    cut: float | None
    bound: float
    n_audited: int
    n_wrong: int
    n_needed: int
    rows: Rows
    labels: Rows


@dataclass(frozen=True)
class Audit:
    """What thirty random cells, answered blind, say of all candidates. Intervals are of 90 %.

    The random answers beyond the thirty count too. Of the cells that a rule keeps, `n_right` of
    `n_kept` are true; `expected` is how many of all answered the confidences took for true.
    """

    n_asked: int
    n_answered: int
    n_definite: int  # random cells answered with keep or reject
    n_true: int
    expected: float
    deviation: float  # standard deviation of that
    level: tuple[float, float]
    n_kept: int
    n_right: int
    precision: tuple[float, float]
    is_careful: bool  # nobody's random answers look as if given without looking

    @property
    def is_done(self) -> bool:
        return self.n_answered == self.n_asked > 0 and self.is_careful

    @property
    def is_calibrated(self) -> bool:
        """Whether the answers allow that the confidences are right."""
        return abs(self.n_true - self.expected) <= 1.645 * self.deviation  # 90 % of a normal

    @property
    def sentence(self) -> str:
        """What can be trusted, or what is not known."""
        if not self.is_done:
            why = "" if self.is_careful else ", some of them as if without looking"
            return (
                f"Not audited ({self.n_answered} of {self.n_asked} random cells answered{why}): "
                "only the run says how right the labels are."
            )
        low, high = self.level
        fit = "as" if self.is_calibrated else "unlike"
        audited = (
            f"Audited: by {self.n_definite} random answers, {low:.0%} to {high:.0%} of the "
            f"candidates are true, {fit} the confidences say "
            f"({self.n_true} true, {self.expected:.0f} expected)."
        )
        if not self.n_kept:
            return audited
        low, high = self.precision
        right = f"{self.n_right} of {self.n_kept}"
        return f"{audited} Of what is kept, {low:.0%} to {high:.0%} is right ({right})."


def audit(reviewer: Reviewer, threshold: Threshold | None = None) -> Audit:
    """Return how far the audit is, and what it says of what this rule keeps (0.5 by default)."""
    thirty = audit_cells(reviewer)
    answered = thirty & (~np.isnan(reviewer.decided) | reviewer.unsure)
    rows, labels = _audited(reviewer, reviewer.trusted)
    names = tuple(reviewer.dataset.label_names)
    kept = (threshold or Threshold()).keep(reviewer.confidences, reviewer.offered, names)
    is_true, is_kept = reviewer.decided[rows, labels] == 1, kept[rows, labels]
    p = reviewer.confidences[rows, labels].astype(np.float64)
    n_true, n_kept, n_right = (int(one.sum()) for one in (is_true, is_kept, is_true & is_kept))
    return Audit(
        n_asked=int(thirty.sum()),
        n_answered=int(answered.sum()),
        n_definite=len(rows),
        n_true=n_true,
        expected=float(p.sum()),
        deviation=float(np.sqrt((p * (1 - p)).sum())),
        level=reviewer.level.after(n_true, len(rows)),
        n_kept=n_kept,
        n_right=n_right,
        precision=reviewer.level.after(n_right, n_kept) if n_kept else (0.0, 1.0),
        is_careful=not (answered & ~reviewer.unsure & ~reviewer.trusted).any(),
    )


def remaining_false(reviewer: Reviewer) -> RemainingFalse:
    """Estimate the false candidates that would be exported now, with intervals of 95 %.

    In each label's bins of confidence the audited cells give a rate. The bin's rate over all
    labels, itself begun from the confidences, counts as a few cells more, so that a label without
    an audit has an estimate too, and a wide interval.
    """
    undecided = reviewer.offered & np.isnan(reviewer.decided)
    audited = reviewer.trusted & reviewer.sampled
    n_labels, rng = reviewer.dataset.n_labels, np.random.default_rng(0)
    draws = np.zeros((N_DRAWS, n_labels))
    mean, n_kept, n_audited = (np.zeros(n_labels) for _ in range(3))
    for low, high in zip(STRATA, (*STRATA[1:], np.inf), strict=True):
        inside = (reviewer.confidences >= low) & (reviewer.confidences < high)
        count = (undecided & inside).sum(axis=0)
        seen = (audited & inside).sum(axis=0)
        wrong = (audited & inside & (reviewer.decided == 0)).sum(axis=0)
        expected = 1 - _mean(reviewer.confidences[undecided & inside], (low + min(high, 1)) / 2)
        pooled = (wrong.sum() + PRIOR_STRENGTH * expected) / (seen.sum() + PRIOR_STRENGTH)
        a, b = wrong + PRIOR_STRENGTH * pooled, seen - wrong + PRIOR_STRENGTH * (1 - pooled)
        rate = rng.beta(np.maximum(a, 1e-3), np.maximum(b, 1e-3), (N_DRAWS, n_labels))
        draws += rng.binomial(count, rate)
        mean += count * a / (a + b)
        n_kept += count
        n_audited += seen
    ends = [(1 - CERTAINTY) / 2, (1 + CERTAINTY) / 2]
    low_, high_ = np.quantile(draws, ends, axis=0)
    total_low, total_high = np.quantile(draws.sum(axis=1), ends)
    return RemainingFalse(
        n_kept=n_kept.astype(np.int64),
        n_audited=n_audited.astype(np.int64),
        estimate=mean,
        low=low_,
        high=high_,
        total=float(mean.sum()),
        total_low=float(total_low),
        total_high=float(total_high),
    )


def clicks_left(reviewer: Reviewer, target: float = 0.95) -> int:
    """Return about how many decisions, the most doubtful first, until this share is right.

    Confidences are corrected by how often audited cells are wrong beside what they say. What the
    decisions will teach is not counted, so it is rather too many.
    """
    undecided = reviewer.offered & np.isnan(reviewer.decided)
    audited = reviewer.trusted & reviewer.sampled
    doubt = 0.5 - np.abs(reviewer.confidences - 0.5)
    wrong = ((reviewer.confidences >= 0.5) != (reviewer.decided == 1))[audited].sum()
    factor = (wrong + 1) / (doubt[audited].sum() + 1)
    risk = np.sort(np.minimum(factor * doubt[undecided], 0.5))
    may_stay = int(np.searchsorted(np.cumsum(risk), (1 - target) * reviewer.offered.sum(), "right"))
    return len(risk) - may_stay


def auto_resolve(
    reviewer: Reviewer, precision: float = 0.95, verdict: Literal["keep", "reject"] = "keep"
) -> AutoResolve:
    """Return the most undecided cells that get this verdict at this precision, guaranteed.

    The guarantee is the lower Clopper-Pearson bound of the audited cells beyond a cut. Cuts are
    tried from the strictest down and the first that fails ends it, so trying many costs nothing.
    Only audited cells that form a random sample of all candidates count: those of `audit_order` up
    to the first that nobody answered.
    """
    if not 0 < precision < 1:
        raise ConfigError("A precision lies between 0 and 1.", f"Got {precision}.")
    toward = reviewer.confidences if verdict == "keep" else 1 - reviewer.confidences
    rows, labels = _audited(reviewer, reviewer.trusted & ~reviewer.suspected)
    right = reviewer.decided[rows, labels] == (verdict == "keep")
    sure = toward[rows, labels].astype(np.float64)
    order = np.argsort(-sure, kind="stable")
    sure, right = sure[order], right[order]
    fewest = ceil(log(1 - CERTAINTY) / log(precision))
    best: tuple[int, float, int] | None = None
    count = fewest
    while count <= len(sure) and sure[count - 1] >= 0.5:
        wrong = int((~right[:count]).sum())
        bound = _lower_bound(count, wrong)
        if bound < precision:
            break
        best = (count, bound, wrong)
        count += max(1, fewest // 6)
    undecided = reviewer.offered & np.isnan(reviewer.decided) & ~reviewer.unsure
    if best is None:
        likely = int((sure >= 0.5).sum())
        count = min(fewest, likely)
        wrong = int((~right[:count]).sum())
        needed = _fewest_with(wrong, precision) - count
        bound = _lower_bound(count, wrong)
        nothing = np.empty(0, np.int64)
        return AutoResolve(
            verdict, precision, None, bound, count, wrong, max(needed, 1), nothing, nothing
        )
    count, bound, wrong = best
    cut = float(sure[count - 1])
    found = np.nonzero(undecided & (toward >= cut))
    return AutoResolve(verdict, precision, cut, bound, count, wrong, 0, *found)


def _audited(reviewer: Reviewer, trusted: npt.NDArray[np.bool_]) -> tuple[Rows, Rows]:
    """Return the sampled cells that form a random sample: no cell before them is unanswered, or
    was answered without looking."""
    order = audit_order(reviewer)
    untold = np.isnan(reviewer.decided) | (reviewer.sampled & ~trusted)
    waiting = reviewer.offered & untold & ~reviewer.unsure
    reached = order[waiting].max(initial=-1.0)
    rows, labels = np.nonzero(trusted & reviewer.sampled & (order > reached))
    return rows, labels


def _lower_bound(count: int, wrong: int) -> float:
    """Return the Clopper-Pearson bound: with `CERTAINTY` the share of right ones is larger."""
    if count == 0 or wrong == count:
        return 0.0
    return float(betaincinv(count - wrong, wrong + 1, 1 - CERTAINTY))


def _fewest_with(wrong: int, precision: float) -> int:
    """Return how many cells, so many of them wrong, are enough for the bound."""
    low, high = wrong, 64
    while _lower_bound(high, wrong) < precision:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        enough = _lower_bound(middle, wrong) >= precision
        low, high = (low, middle) if enough else (middle, high)
    return high


def _mean(values: npt.NDArray[Any], otherwise: float) -> float:
    return float(values.mean()) if values.size else otherwise
