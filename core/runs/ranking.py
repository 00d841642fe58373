"""Runs on the same data judged: by what is known of the cells, or else by each other."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from core.bench import statistics
from core.engine.metrics import roc_auc

Floats = npt.NDArray[np.float64]

N_PARTS = (10, 5)
"""Into how many parts the instances are split, whichever has enough known cells in each."""

MIN_EACH = 5
"""True and false cells that a part needs."""

NEAR_THE_BEST = 0.05
"""How far below the best a run may score and still be a good one."""


class Ranking(NamedTuple):
    """How runs rank true above false candidates, and how sure their order is."""

    scores: Floats  # (m,), AUC
    ranks: Floats | None  # (m,), mean over parts of the instances, 1 is best
    distance: float  # by how much two mean ranks must differ
    n_parts: int
    why_not: str  # why there are no ranks

    @property
    def good(self) -> list[int]:
        """The runs near the best, two at least where there are two."""
        order = np.argsort(-self.scores, kind="stable")
        near = self.scores >= np.nanmax(self.scores) - NEAR_THE_BEST
        return sorted({*np.flatnonzero(near).tolist(), *order[:2].tolist()})


def judge(confidences: Any, rows: Any, known: Any, seed: int = 0) -> Ranking | None:
    """Judge confidences (m, cells) by what is known of the cells: 1, 0, or NaN.

    Ranks are means over parts of the instances: they tell how sure the order is on this data, not
    on others. None without both true and false cells.
    """
    C, known = np.asarray(confidences, np.float64), np.asarray(known, np.float64)
    at = np.flatnonzero(np.isfinite(known))
    true, C, rows = known[at] > 0, C[:, at], np.asarray(rows)[at]
    if not true.any() or true.all():
        return None
    scores = np.array([roc_auc(true, one) for one in C])
    if len(C) < 3:
        return Ranking(scores, None, 0.0, 0, "Ranks are drawn for three or more.")
    shuffled = np.random.default_rng(seed).permutation(int(rows.max()) + 1)[rows]
    for n in N_PARTS:
        part = shuffled % n
        counts = [np.bincount(part[side], minlength=n).min() for side in (true, ~true)]
        if min(counts) >= MIN_EACH:
            by = np.array([[roc_auc(true[part == p], c[part == p]) for c in C] for p in range(n)])
            distance = statistics.nemenyi_distance(len(C), n)
            return Ranking(scores, statistics.friedman(by).ranks, distance, n, "")
    few = (
        f"Too little is known for a diagram: {int(true.sum())} true and {int((~true).sum())} false"
    )
    return Ranking(scores, None, 0.0, 0, f"{few} cells.")


def judge_each_other(confidences: Any, cut: float = 0.5) -> Ranking | None:
    """Judge each by what most of the others keep; it tells who is odd, not who is right.

    None with fewer than three, or where the others all agree.
    """
    C = np.asarray(confidences, np.float64)
    if len(C) < 3:
        return None
    scores = []
    for at, one in enumerate(C):
        share = (np.delete(C, at, axis=0) >= cut).mean(axis=0)
        said = share != 0.5
        kept = share[said] > 0.5
        scores.append(roc_auc(kept, one[said]) if kept.any() and not kept.all() else np.nan)
    if np.isnan(scores).all():
        return None
    return Ranking(
        np.array(scores), None, 0.0, 0, "Without truth or decisions there is no diagram."
    )
