"""In which order cells are asked.

The first lap asks random cells of every label: base rates, calibration and the audit come from
it. After that every tenth question is random, and the others follow the chosen order.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from core.review.reviewer import Reviewer

Cells: TypeAlias = npt.NDArray[np.bool_]
Order: TypeAlias = Literal[
    "worth", "false_first", "doubtful", "restless", "label", "contradictions", "audit"
]
State: TypeAlias = Literal["open", "settled", "decided", "unsure"]

ORDERS: tuple[Order, ...] = get_args(Order)
STATES: tuple[State, ...] = get_args(State)
SETTLED = 0.95
"""A cell whose confidence is this near to 0 or 1 need not be asked."""

FIRST_LAP = 10
"""Random cells of every label that are asked first."""

AUDIT_SHARE = 0.1
"""Of the questions after the first lap that are random."""


@dataclass(frozen=True)
class Question:
    """What to ask about one instance.

    `cells` are label indices in asking order. `promise` is how many other cells the answers would
    settle. The decisions on a `sampled` question must be stored as such: it was drawn at random.
    """

    row: int
    cells: list[int]
    promise: float
    reason: str
    sampled: bool = False


def is_settled(confidences: npt.NDArray[Any]) -> Cells:
    """Tell which confidences are near enough to 0 or 1."""
    near: Cells = (confidences >= SETTLED) | (confidences <= 1 - SETTLED)
    return near


def ask(
    reviewer: "Reviewer",
    order: Order,
    labels: Sequence[int] | None,
    rows: Sequence[int] | None,
    states: Collection[State] | None,
    limit: int,
    skip_rows: Collection[int],
) -> list[Question]:
    """Return the next questions; see `Reviewer.questions`."""
    may = _may_ask(reviewer, labels, rows, skip_rows)
    undecided: tuple[State, ...] = ("open", "settled")
    unaudited = may & _in_states(reviewer, states or undecided)
    open_ = unaudited.copy()
    if order != "audit" and not states:
        open_ &= _in_states(reviewer, ("open",))
    lap = _first_lap(reviewer, unaudited) if order == "worth" else np.zeros_like(may)
    drawn = _by_row(reviewer, lap, _random(reviewer), "first lap", True, limit)
    if len(drawn) >= limit:
        return drawn
    taken = {one.row for one in drawn}
    open_[list(taken)] = unaudited[list(taken)] = False
    if order == "audit":
        return drawn + _by_row(reviewer, open_, _random(reviewer), "audit", True, limit)
    worth = worth_of(reviewer, order)
    ordered = _by_row(reviewer, open_, worth, order, False, limit - len(drawn))
    if order != "worth":
        return ordered
    audit = _by_row(reviewer, unaudited, _random(reviewer), "audit", True, limit)
    step = round(1 / AUDIT_SHARE)
    mixed: list[Question] = []
    for place, question in enumerate(ordered):
        mixed.append(question)
        if place % (step - 1) == step - 2 and audit:
            mixed.append(audit.pop(0))
    seen: set[int] = set()
    fresh = [one for one in mixed if not (one.row in seen or seen.add(one.row))]  # type: ignore[func-returns-value]
    return [*drawn, *fresh][:limit]


def worth_of(reviewer: "Reviewer", order: Order) -> npt.NDArray[Any]:
    """Return what asking each cell is worth in this order, n x L; larger comes first."""
    confidences = reviewer.confidences
    if order == "false_first":
        return -confidences
    if order == "restless" and reviewer.variability is not None:
        return reviewer.variability
    doubt: npt.NDArray[Any] = 0.5 - np.abs(confidences - 0.5)
    return doubt


def near(reviewer: "Reviewer", label: int, like: int | None, size: int) -> list[int]:
    """Return open instances of the label around one of them, by walking the instance graph."""
    may = reviewer.offered[:, label] & (reviewer.states()[:, label] == 0)
    open_rows = np.flatnonzero(may)
    if not len(open_rows):
        return []
    if like is None:
        doubt = np.abs(reviewer.confidences[open_rows, label] - 0.5)
        like = int(open_rows[np.argmin(doubt)])
    closeness = np.zeros(len(may), np.float32)
    closeness[like] = 1
    weights = reviewer.propagator.instance_weights
    for _ in range(3):
        closeness = closeness + weights @ closeness
    order = np.argsort(-closeness[open_rows], kind="stable")[:size]
    return [int(row) for row in open_rows[order]]


def _may_ask(
    reviewer: "Reviewer",
    labels: Sequence[int] | None,
    rows: Sequence[int] | None,
    skip_rows: Collection[int],
) -> Cells:
    may = reviewer.offered.copy()
    if labels is not None:
        may[:, np.setdiff1d(np.arange(may.shape[1]), labels)] = False
    if rows is not None:
        may[np.setdiff1d(np.arange(len(may)), rows)] = False
    may[list(skip_rows)] = False
    return may


def _in_states(reviewer: "Reviewer", states: Collection[str]) -> Cells:
    return np.isin(
        reviewer.states(), [place for place, state in enumerate(STATES) if state in states]
    )


def _random(reviewer: "Reviewer") -> npt.NDArray[np.float64]:
    """Return the same random worth for every cell, always."""
    return np.random.default_rng(reviewer.seed).random(reviewer.offered.shape)


def _first_lap(reviewer: "Reviewer", may: Cells) -> Cells:
    """Return the cells still missing for 10 random ones of every label."""
    missing = FIRST_LAP - reviewer.sampled.sum(axis=0)
    order = np.argsort(np.where(may, -_random(reviewer), np.inf), axis=0, kind="stable")
    rank = np.empty_like(order)
    np.put_along_axis(rank, order, np.arange(len(order))[:, None], axis=0)
    lap: Cells = may & (rank < missing)
    return lap


def _by_row(
    reviewer: "Reviewer",
    may: Cells,
    worth: npt.NDArray[Any],
    reason: str,
    sampled: bool,
    limit: int,
) -> list[Question]:
    """Return one question per instance: the best cells that may be asked, by their best cell."""
    rows, labels = np.nonzero(may)
    order = np.argsort(-worth[rows, labels], kind="stable")
    cells: dict[int, list[int]] = {}
    for at in order:
        row = int(rows[at])
        if row not in cells and len(cells) == limit:
            break
        cells.setdefault(row, []).append(int(labels[at]))
    return [Question(row, found, 0.0, reason, sampled) for row, found in cells.items()]
