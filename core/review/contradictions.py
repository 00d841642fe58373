"""Contradictions: decisions that do not fit each other, or what everything else says.

Three kinds: near-duplicates decided differently; a decision against a rule of the labels that
nearly always holds ("beach" never without "sand"); a decision against a very confident model.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from core.review.reviewer import Reviewer

Rows = npt.NDArray[np.int64]

NEAR = 0.9
"""From this likeness on two instances are near-duplicates; unrelated ones have about 0."""

RULE, SUPPORT = 0.97, 30
"""How often a rule must hold, and on how many instances."""

SURE = 0.97


@dataclass(frozen=True)
class Contradiction:
    """Cells, as (row, label), whose decisions are at odds; `strength` from 0 to 1."""

    kind: Literal["near", "rule", "model"]
    cells: list[tuple[int, int]]
    strength: float


def contradictions(reviewer: "Reviewer", limit: int = 200) -> list[Contradiction]:
    """Return what should be looked at again, the strongest first."""
    found = [*_near(reviewer), *_rules(reviewer), *_model(reviewer)]
    return sorted(found, key=lambda one: -one.strength)[:limit]


def _near(reviewer: "Reviewer") -> list[Contradiction]:
    """Compare decided instances with their neighbours in the graph."""
    decided = reviewer.decided
    some = np.flatnonzero((~np.isnan(decided)).any(axis=1))
    edges = reviewer.propagator.instance_weights[some][:, some].tocoo()
    once = edges.row < edges.col
    i, k = some[edges.row[once]], some[edges.col[once]]
    differ = np.abs(decided[i] - decided[k]) == 1  # NaN where either is undecided
    at, labels = np.nonzero(differ)
    likeness = reviewer.likeness(i[at], k[at])
    return [
        Contradiction("near", [(int(i[a]), int(j)), (int(k[a]), int(j))], float(s))
        for a, j, s in zip(at, labels, likeness, strict=True)
        if s >= NEAR
    ]


def _rules(reviewer: "Reviewer") -> list[Contradiction]:
    """Find pairs of labels of which the second, where offered, nearly always or never holds."""
    true, offered = reviewer.proposed.astype(np.float32), reviewer.offered.astype(np.float32)
    both, chance = true.T @ true, true.T @ offered  # given the row's label, of the column's
    share = np.divide(both, chance, where=chance > 0, out=np.full(both.shape, 0.5, np.float32))
    strong = chance >= SUPPORT
    np.fill_diagonal(strong, False)
    kept, rejected = reviewer.decided == 1, reviewer.decided == 0
    found = []
    for is_rule, broken_by, strength in (
        (strong & (share >= RULE), rejected, share),
        (strong & (share <= 1 - RULE), kept, 1 - share),
    ):
        for a, b in np.argwhere(is_rule):
            for row in np.flatnonzero(kept[:, a] & broken_by[:, b]):
                cells = [(int(row), int(a)), (int(row), int(b))]
                found.append(Contradiction("rule", cells, float(strength[a, b])))
    return found


def _model(reviewer: "Reviewer") -> list[Contradiction]:
    """Compare decisions with what the model says without them."""
    against = np.abs(reviewer.decided - reviewer.confidences)
    rows, labels = np.nonzero(against >= SURE)
    return [
        Contradiction("model", [(int(i), int(j))], float(against[i, j]))
        for i, j in zip(rows, labels, strict=True)
    ]
