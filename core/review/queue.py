"""In which order cells are asked.

The first lap asks random cells of every label: base rates, calibration and the audit come from
it. After that every tenth question is random, and the others follow the chosen order.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from core.review.contradictions import contradictions
from core.review.learner import map_weights
from core.review.worth import WATCHED_CLOSELY, settles

if TYPE_CHECKING:
    from core.review.reviewer import Reviewer

Cells: TypeAlias = npt.NDArray[np.bool_]
Rows: TypeAlias = npt.NDArray[np.int64]
Order: TypeAlias = Literal[
    "worth",
    "false_first",
    "doubtful",
    "unstable",
    "depends",
    "disagree",
    "label",
    "contradictions",
    "audit",
    "thirty",
]
State: TypeAlias = Literal["open", "settled", "decided", "unsure"]

ORDERS: tuple[Order, ...] = get_args(Order)
STATES: tuple[State, ...] = get_args(State)
SETTLED = 0.95
"""A cell whose confidence is this near to 0 or 1 need not be asked."""

LOG_ODDS_SETTLED = float(np.log(SETTLED / (1 - SETTLED)))

FEW_CELLS = 200
"""Cells of an instance, at most, that are looked at to fill a list of questions."""

PROMISE_WEIGHT = 0.1
"""Settling ten more counts like being twice as doubtful. `plain bench effort` on four sets: with 1
a person needs 1 to 3 % more decisions than by doubt alone, with 0.1 no more."""

FIRST_LAP = 10
"""Random cells of every label that are asked first."""

AUDIT_SIZE = 30
"""Random cells of one audit: a minute or two of a person's time."""

AUDIT_SHARE = 0.1
"""Of the questions after the first lap that are random."""

_USUAL_WEIGHTS = np.array([2, 1 / 3, 2 / 3], np.float32)
_WEIGHT_PRECISION = np.array([2.0, 0.3, 0.3], np.float32) ** -2
"""Log-odds that any cell is true, and the weights of what the review says and of what the other
candidates say, before decisions; how far decisions may move them. Where false candidates fall
anywhere the second is worth more, where they resemble true ones hardly anything: equal weights take
5 % more decisions than the review alone on the candidates that mirflickr-5000 came with, learned
ones no more."""

REPEAT = "again"
"""The reason of a question about an instance that the person has answered before."""


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

    def is_blind(self, is_random_blind: bool = True) -> bool:
        """Tell whether confidences and proposals are kept from the person until the answer.

        What comes back always is; random cells are unless the person wants to see.
        """
        return self.reason == REPEAT or (self.sampled and is_random_blind)


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
    source: str | None,
    limit: int,
) -> list[Question]:
    """Return the next questions; see `Reviewer.questions`.

    Only draws from all instances are samples: of a selection, nothing is drawn on the side.
    """
    may = _may_ask(reviewer, labels, rows)
    if source is not None:
        may &= _offered_by(reviewer, source)
    if order == "contradictions":
        return _at_odds(reviewer, may, limit)
    fair = rows is None and not states and source is None
    undecided = may & _in_states(reviewer, states or ("open", "settled"))
    if order == "audit":
        return _by_row(undecided, audit_order(reviewer), "audit", fair, limit)
    if order == "thirty":
        thirty = undecided & audit_cells(reviewer)
        return _by_row(thirty, audit_order(reviewer), "thirty", fair, limit)
    drawn: list[Question] = []
    if order == "worth" and fair:
        lap = _first_lap(reviewer, undecided)
        drawn = _by_row(lap, audit_order(reviewer), "first lap", True, limit)
    if len(drawn) == limit:
        return drawn
    undecided[[one.row for one in drawn]] = False
    open_ = undecided if states else undecided & _in_states(reviewer, ("open",))
    if order == "depends" and reviewer.dependence is not None:
        open_ &= reviewer.dependence > 0  # where all good trials agree there is nothing to ask
    if order == "disagree" and reviewer.dataset.votes is not None:
        open_ = undecided & (reviewer.dataset.votes.disagreement > 0)  # also where it seems settled
    ordered = _by_row(
        open_, _worth(reviewer, order, open_, limit), order, False, limit - len(drawn)
    )
    if order == "worth":
        ordered = _promising(reviewer, ordered)
    if order == "worth" and fair:
        audit = _by_row(undecided, audit_order(reviewer), "audit", True, limit)
        ordered = _mixed(ordered, audit)
    return [*drawn, *ordered][:limit]


def _at_odds(reviewer: "Reviewer", may: Cells, limit: int) -> list[Question]:
    """Return the instances whose decisions contradict something, the strongest first."""
    cells: dict[int, list[int]] = {}
    for one in contradictions(reviewer):
        for row, label in one.cells:
            if may[row, label] and label not in cells.setdefault(row, []):
                cells[row].append(label)
    asked = [(row, labels) for row, labels in cells.items() if labels]
    return [Question(row, labels, 0.0, "contradictions") for row, labels in asked[:limit]]


def _worth(reviewer: "Reviewer", order: Order, may: Cells, limit: int) -> npt.NDArray[Any]:
    """Return what asking each cell is worth in this order; larger comes first."""
    confidences = reviewer.confidences
    doubt: npt.NDArray[Any] = 0.5 - np.abs(confidences - 0.5)
    if order == "worth":
        rows, labels = _largest(np.where(may, doubt, -1), max(200, 4 * limit))
        promise = settles(reviewer, rows, labels, LOG_ODDS_SETTLED)
        doubt[rows, labels] *= 1 + PROMISE_WEIGHT * np.maximum(promise, 0)
    if order == "false_first":
        return likely_false(reviewer)
    if order == "unstable" and (changed := reviewer.variability()) is not None:
        return changed
    if order == "depends" and reviewer.dependence is not None:
        return reviewer.dependence
    if order == "disagree" and reviewer.dataset.votes is not None:
        return reviewer.dataset.votes.disagreement + 0.1 * doubt  # of two as divided, the doubtful
    if order == "label":  # the label with most to do first, and all of it
        rank = np.argsort(np.argsort(np.where(may, doubt, 0).sum(axis=0), kind="stable"))
        doubt += rank
    return doubt


def likely_false(reviewer: "Reviewer") -> npt.NDArray[Any]:
    """Return how likely each cell is false, as log-odds: what the review says, and how little the
    instance's other candidates make the cell expected (`core.review.companions`), weighed by the
    decisions (`_USUAL_WEIGHTS`)."""
    review, beside = reviewer.log_odds, reviewer.beside_others()
    at = reviewer.trusted
    weights = _USUAL_WEIGHTS
    if at.any():
        parts = [np.ones(int(at.sum()), np.float32), review[at], beside[at]]
        given = np.stack(parts, axis=1), reviewer.decided[at]
        weights, _ = map_weights(*given, _WEIGHT_PRECISION, _USUAL_WEIGHTS, _USUAL_WEIGHTS)
    return np.asarray(-(weights[0] + weights[1] * review + weights[2] * beside))


def _promising(reviewer: "Reviewer", ordered: list[Question]) -> list[Question]:
    """Add the promises, counted on more cells: the ones chosen for theirs had too high ones."""
    if not ordered:
        return ordered
    rows, labels = (
        np.array(part) for part in zip(*((q.row, q.cells[0]) for q in ordered), strict=True)
    )
    promise = settles(reviewer, rows, labels, LOG_ODDS_SETTLED, n_watched=WATCHED_CLOSELY)
    return [
        replace(q, promise=float(max(found, 0))) for q, found in zip(ordered, promise, strict=True)
    ]


def _largest(values: npt.NDArray[Any], count: int) -> tuple[Rows, Rows]:
    """Return rows and labels of the largest values that are not negative."""
    flat = values.ravel()
    count = min(count, flat.size)
    at = np.argpartition(-flat, count - 1)[:count]
    rows, labels = np.unravel_index(at[flat[at] >= 0], values.shape)
    return rows, labels


def _mixed(ordered: list[Question], audit: list[Question]) -> list[Question]:
    """Put a random question after every nine of the others; no instance comes twice."""
    every, mixed, seen = round(1 / AUDIT_SHARE) - 1, [], set()
    for place, question in enumerate(ordered):
        if question.row not in seen:
            mixed.append(question)
            seen.add(question.row)
        if place % every == every - 1:
            drawn = next((one for one in audit if one.row not in seen), None)
            if drawn is not None:
                mixed.append(drawn)
                seen.add(drawn.row)
    return mixed or audit


def near(reviewer: "Reviewer", label: int, size: int) -> list[int]:
    """Return open instances of the label around the most doubtful, by walking the graph."""
    may = reviewer.offered[:, label] & (reviewer.states()[:, label] == 0)
    open_rows = np.flatnonzero(may)
    if not len(open_rows):
        return []
    doubt = np.abs(reviewer.confidences[open_rows, label] - 0.5)
    closeness = np.zeros(len(may), np.float32)
    closeness[open_rows[np.argmin(doubt)]] = 1
    weights = reviewer.propagator.instance_weights
    for _ in range(3):
        closeness = closeness + weights @ closeness
    order = np.argsort(-closeness[open_rows], kind="stable")[:size]
    return [int(row) for row in open_rows[order]]


def _may_ask(
    reviewer: "Reviewer", labels: Sequence[int] | None, rows: Sequence[int] | None
) -> Cells:
    may = reviewer.offered.copy()
    if labels is not None:
        may[:, np.setdiff1d(np.arange(may.shape[1]), labels)] = False
    if rows is not None:
        may[np.setdiff1d(np.arange(len(may)), rows)] = False
    return may


def _offered_by(reviewer: "Reviewer", source: str) -> Cells:
    """Return the cells that a source offered; none of one that is not there."""
    votes, cells = reviewer.dataset.votes, np.zeros_like(reviewer.offered)
    if votes is not None and source in votes.sources:
        rows, labels, _ = votes.yes[votes.yes[:, 2] == votes.sources.index(source)].T
        cells[rows, labels] = True
    return cells


def _in_states(reviewer: "Reviewer", states: Collection[str]) -> Cells:
    return np.array([state in states for state in STATES])[reviewer.states()]


def audit_order(reviewer: "Reviewer") -> npt.NDArray[np.float64]:
    """Return a random number for every cell, the same always; the largest are drawn first."""
    return _drawn(reviewer.seed, reviewer.offered.shape)


def attention_draws(reviewer: "Reviewer") -> npt.NDArray[np.float64]:
    """Return another random number for every cell: of the answers that may not have been looked
    at, those with a smaller one than the chance that they were are learned from."""
    return _drawn(reviewer.seed, reviewer.offered.shape, 0x100C5)


@lru_cache(maxsize=3)
def _drawn(seed: int, shape: tuple[int, ...], purpose: int = 0xA0D17) -> npt.NDArray[np.float64]:
    # Not the plain seed: data made with the same one would not be independent of the draw.
    drawn = np.random.default_rng([seed, purpose]).random(shape)
    drawn.setflags(write=False)
    return drawn


def audit_cells(reviewer: "Reviewer") -> Cells:
    """Return the thirty cells of an audit: those drawn first, without what was decided otherwise
    than at random and blind, n x L."""
    may = reviewer.offered & (np.isnan(reviewer.decided) | (reviewer.sampled & reviewer.blind))
    cells = np.zeros_like(may)
    cells[_largest(np.where(may, audit_order(reviewer), -1), AUDIT_SIZE)] = True
    return cells


def _first_lap(reviewer: "Reviewer", may: Cells) -> Cells:
    """Return the cells still missing for 10 random ones of every label."""
    lap, order = np.zeros_like(may), audit_order(reviewer)
    missing = FIRST_LAP - reviewer.sampled.sum(axis=0)
    for j in np.flatnonzero(missing > 0):
        at = np.flatnonzero(may[:, j])
        few = min(missing[j], len(at))
        lap[at[np.argpartition(-order[at, j], few - 1)[:few]] if few else at, j] = True
    return lap


def _by_row(
    may: Cells, worth: npt.NDArray[Any], reason: str, sampled: bool, limit: int
) -> list[Question]:
    """Return one question per instance: the best cells that may be asked, by their best cell."""
    rows, labels = np.nonzero(may)
    values = worth[rows, labels]
    enough = FEW_CELLS * limit
    if len(values) > enough:  # the rest is hardly ever needed, and long to sort
        best = np.argpartition(-values, enough)[:enough]
        rows, labels, values = rows[best], labels[best], values[best]
    order = np.argsort(-values, kind="stable")
    cells: dict[int, list[int]] = {}
    for at in order:
        row = int(rows[at])
        if row not in cells and len(cells) == limit:
            break
        cells.setdefault(row, []).append(int(labels[at]))
    return [Question(row, found, 0.0, reason, sampled) for row, found in cells.items()]
