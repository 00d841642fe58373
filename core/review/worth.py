"""What an answer is worth: how many other cells it would settle, before it is given."""

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from core.review.reviewer import Reviewer

Matrix = npt.NDArray[np.float32]
Rows = npt.NDArray[np.int64]

WATCHED, WATCHED_CLOSELY = 400, 4000
"""Undecided cells of a label that are looked at; of more, a sample stands for all."""


def settles(
    reviewer: "Reviewer", rows: Rows, labels: Rows, limit: float, n_watched: int = WATCHED
) -> Matrix:
    """Return how many other undecided cells pass `limit` (log-odds) by an answer to each cell.

    Negative where answers would rather open settled ones.
    """
    found = np.zeros((2, len(rows)))
    for j in np.unique(labels):
        at = np.flatnonzero(labels == j)
        found[:, at] += _through_label(reviewer, int(j), rows[at], limit, n_watched)
    found += _through_instance(reviewer, rows, labels, limit)
    found += _through_graph(reviewer, rows, labels, limit)
    p = reviewer.confidences[rows, labels]
    return np.asarray((1 - p) * found[0] + p * found[1], np.float32)


def _through_label(
    reviewer: "Reviewer", j: int, asked: Rows, limit: float, n_watched: int
) -> npt.NDArray[np.float64]:
    """Count what the quick model learns about other instances of the label."""
    undecided = np.flatnonzero(reviewer.offered[:, j] & np.isnan(reviewer.decided[:, j]))
    step = max(1, len(undecided) // n_watched)
    watched = undecided[(reviewer.seed + j) % step :: step]
    pull = reviewer.pull(j, asked, watched)
    pull[watched[:, None] == asked] = 0
    before, p = reviewer.log_odds[watched, j, None], reviewer.confidences[asked, j]
    return step * np.stack([_passed(before, before + pull * (v - p), limit) for v in (0, 1)])


def _through_instance(
    reviewer: "Reviewer", rows: Rows, labels: Rows, limit: float
) -> npt.NDArray[np.float64]:
    """Count the other candidates of the instance."""
    moves = reviewer.within_instance()
    free = reviewer.offered[rows] & np.isnan(reviewer.decided[rows])
    free[np.arange(len(rows)), labels] = False
    before = reviewer.log_odds[rows].T
    return np.stack([_passed(before, before + moves[v][:, labels], limit, free.T) for v in (0, 1)])


def _through_graph(
    reviewer: "Reviewer", rows: Rows, labels: Rows, limit: float
) -> npt.NDArray[np.float64]:
    """Count the neighbours, which the propagation reaches in one step."""
    near = reviewer.propagator.instance_weights[rows].tocoo()
    asked, others = near.row, near.col
    j = labels[asked]
    free = reviewer.offered[others, j] & np.isnan(reviewer.decided[others, j])
    before = reviewer.log_odds[others, j]
    out = np.empty((2, len(rows)))
    for v in (0, 1):
        after = before + reviewer.reach(rows[asked], j, near.data, v)
        passed = (_settled(after, limit) ^ _settled(before, limit)) * np.sign(
            np.abs(after) - np.abs(before)
        )
        out[v] = np.bincount(asked, passed * free, len(rows))
    return out


def _settled(log_odds: Matrix, limit: float) -> npt.NDArray[np.bool_]:
    return np.asarray(np.abs(log_odds) >= limit)


def _passed(
    before: Matrix, after: Matrix, limit: float, free: npt.NDArray[np.bool_] | None = None
) -> npt.NDArray[np.float64]:
    gain = _settled(after, limit).astype(np.int8) - _settled(before, limit)
    return np.asarray((gain if free is None else gain * free).sum(axis=0), np.float64)
