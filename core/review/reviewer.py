"""One run with the decisions that stand: what is known now, what to ask next, what answers do.

A `Reviewer` never changes; `decide` returns the next one. Decisions hold their cells at 0 or 1 in
the propagation (`Propagator.clamped`), and only what an answer reaches is computed anew. What a
person decided and what the model thinks stay apart: the confidence of a decided cell is what the
model says of it without that decision.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from core.calibration import calibrate
from core.dataset import CandidateDataset
from core.propagation import Propagator
from core.review.learner import CellFeatures, Fit, Learner
from core.review.queue import Order, Question, State, ask, is_settled, near
from core.review.resolve import VALUES, Verdict, located

Matrix = npt.NDArray[np.float32]
Rows = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Ripple:
    """The undecided candidate cells that answers move, the strongest first."""

    rows: Rows
    labels: Rows
    before: Matrix
    after: Matrix

    @property
    def settled(self) -> npt.NDArray[np.bool_]:
        """Which of the cells need not be asked any more."""
        return is_settled(self.after) & ~is_settled(self.before)

    @property
    def n_settled(self) -> int:
        return int(self.settled.sum())


class Reviewer:
    """One run with the decisions that stand.

    Parameters
    ----------
    dataset, propagator, Y_hat : of the run
    decisions : those that stand, latest last; unknown instances and labels are passed over
    variability : (n, L), how restless each cell was over the epochs; for the order "restless"
    dependence : (n, L), how much each cell depends on settings (`core.tuning`); for "depends"
    seed : of what is drawn at random

    Attributes
    ----------
    log_odds : (n, L), the same as log-odds
    confidences : (n, L), the estimated probability that a candidate is true; 0 elsewhere
    decided : (n, L), 0 or 1 where a decision stands, else NaN
    sampled : (n, L), which of the decisions were drawn at random
    unsure : (n, L), where a person could not tell
    """

    _fit: Fit

    def __init__(
        self,
        dataset: CandidateDataset,
        propagator: Propagator,
        Y_hat: Matrix,
        decisions: Iterable[Verdict] = (),
        *,
        variability: Matrix | None = None,
        dependence: Matrix | None = None,
        seed: int = 0,
    ) -> None:
        self.dataset, self.propagator, self.seed = dataset, propagator, seed
        self.variability, self.dependence = variability, dependence
        self.offered = dataset.candidates > 0
        self._Y = dataset.candidates.astype(np.float32)
        self._Y_hat = np.asarray(Y_hat, np.float32)
        shape = self.offered.shape
        self.decided = np.full(shape, np.nan, np.float32)
        self.sampled, self.unsure = np.zeros(shape, bool), np.zeros(shape, bool)
        self._mark(decisions)
        nothing = np.full(shape, np.nan, np.float32)
        self._Z_start = propagator.clamped(self._Y, self._Y_hat, nothing)
        self._Z = propagator.clamped(self._Y, self._Y_hat, self.decided)
        self._learner = Learner(CellFeatures.of(dataset, self._start(), seed))
        self._relearn()

    @property
    def proposed(self) -> npt.NDArray[np.bool_]:
        """What a person accepts with one key: the decision, else what is more likely, n x L."""
        likely = self.offered & (self.confidences >= 0.5)
        return np.where(np.isnan(self.decided), likely, self.decided > 0)

    @property
    def settled(self) -> npt.NDArray[np.bool_]:
        """Which undecided candidate cells are confident enough that nobody need answer them."""
        found: npt.NDArray[np.bool_] = is_settled(self.confidences)
        return self.offered & np.isnan(self.decided) & found

    def states(self) -> npt.NDArray[np.uint8]:
        """Return the state of each cell as its place in `STATES`; only candidates mean anything."""
        states = np.where(is_settled(self.confidences), 1, 0)
        states[self.unsure] = 3
        states[~np.isnan(self.decided)] = 2
        return states.astype(np.uint8)

    def questions(
        self,
        order: Order = "worth",
        *,
        labels: Sequence[int] | None = None,
        rows: Sequence[int] | None = None,
        states: Collection[State] | None = None,
        limit: int = 50,
        skip_rows: Collection[int] = (),
    ) -> list[Question]:
        """Return what to ask next, in this order.

        Parameters
        ----------
        labels, rows : ask only about these
        states : ask only about cells in these states; open ones by default, and for an audit
            settled ones too; contradictions are always of decided cells
        skip_rows : instances that are not to be asked now
        """
        return ask(self, order, labels, rows, states, limit, skip_rows)

    def same_question(self, label: int, like: int | None = None, size: int = 24) -> list[int]:
        """Return instances that are near each other and have this label open, nearest first."""
        return near(self, label, like, size)

    def ripple(self, i: int, j: int, verdict: Literal["keep", "reject"]) -> Ripple:
        """Return what this answer would move, without giving it."""
        following = self._copy()
        following.decided[i, j] = VALUES[verdict]
        following._learn({(i, j)})
        return _moved(self, following)

    def decide(self, decisions: Iterable[Verdict]) -> tuple["Reviewer", Ripple]:
        """Return the reviewer after these decisions, and what they moved.

        An "undo" makes its cell undecided; where an older decision comes to stand again, send that
        one instead.
        """
        following = self._copy()
        following._learn(following._mark(decisions))
        return following, _moved(self, following)

    def pull(self, j: int, asked: Rows, others: Rows) -> Matrix:
        """Return how far learning about `asked` cells of a label moves others; see `Learner`."""
        return self._learner.pull(self._fit, j, asked, others, self.decided, self._moved)

    def mates(self) -> Matrix:
        """Return how far a decision moves other cells of its instance; see `Learner`."""
        return self._learner.mates(self._fit)

    def reach(self, rows: Rows, labels: Rows, weights: Matrix, value: int) -> Matrix:
        """Return how far deciding cells moves the same label of neighbours, by their edge."""
        step = weights * self.propagator.step_scale * (value - self._Z[rows, labels])
        slope = self._fit.weights[labels, 2] * np.float32(self._fit.stretch[1])
        return np.asarray(step * slope * np.float32(1 + self.propagator.eta))

    def likeness(self, rows: Rows, others: Rows) -> Matrix:
        """Return how alike pairs of instances are: 1 the same, about 0 unrelated."""
        place = self._learner.features.place
        dot, a, b = (
            np.einsum("rd,rd->r", place[x], place[y])
            for x, y in ((rows, others), (rows, rows), (others, others))
        )
        return np.asarray(dot / np.maximum(np.sqrt(a * b), 1e-9))

    def reseeded(self, seed: int) -> "Reviewer":
        """Return the same reviewer that draws other cells at random."""
        copy = self._copy()
        copy.seed = seed
        return copy

    def _copy(self) -> "Reviewer":
        copy = object.__new__(type(self))
        copy.__dict__.update(self.__dict__)
        for name in ("decided", "sampled", "unsure", "_Z", "_moved", "log_odds", "confidences"):
            copy.__dict__[name] = getattr(self, name).copy()
        return copy

    def _learn(self, cells: set[tuple[int, int]]) -> None:
        """Bring everything up to date after the decisions on these cells changed."""
        rows, labels = self._settle(cells), {j for _, j in cells}
        self._fit = self._learner.update(self._fit, self.decided, self._moved, labels, len(cells))
        if self._learner.is_stale(self._fit):
            self._relearn(self._fit)
        else:
            self._estimate(rows, labels)

    def _settle(self, cells: set[tuple[int, int]]) -> Rows:
        """Bring Z to the clamped solution after these cells changed; return the rows it moved."""
        if not cells:
            return np.empty(0, np.int64)
        rows, labels = (np.array(part, np.int64) for part in zip(*sorted(cells), strict=True))
        value = self.decided[rows, labels]
        free = np.isnan(value)
        change = value - self._Z[rows, labels]
        change[free] = self._residual(rows[free], labels[free])
        touched = self.propagator.reclamped(self._Z, self.decided >= 0, rows, labels, change)
        self._moved[touched] = self._movement(touched)
        return touched

    def _residual(self, rows: Rows, labels: Rows) -> Matrix:
        return self.propagator.residual(self._Z, self._Y, self._Y_hat, rows, labels)

    def _movement(self, rows: Rows) -> Matrix:
        """Return how far decisions moved the cells of these rows, decided ones by the others."""
        moved: Matrix = self._Z[rows] - self._Z_start[rows]
        at, labels = np.nonzero(~np.isnan(self.decided[rows]))
        moved[at, labels] += self._residual(rows[at], labels)
        return np.asarray(moved * np.float32(1 + self.propagator.eta))

    def _start(self) -> Matrix:
        """Return the log-odds before any decision."""
        eta = self.propagator.eta
        p = calibrate(self._Y, self._Z_start, self._Y_hat, eta=eta).confidences
        p = np.clip(p, 0.005, 0.995)
        return np.asarray(np.log(p / (1 - p)), np.float32)

    def _relearn(self, before: Fit | None = None) -> None:
        everywhere: Rows = np.arange(len(self.decided), dtype=np.int64)
        self._moved: Matrix = self._movement(everywhere)
        self._fit = self._learner.fit(self.decided, self._moved, before)
        self.log_odds = np.zeros(self.decided.shape, np.float32)
        self.confidences = np.zeros(self.decided.shape, np.float32)
        self._estimate(everywhere[:0], range(self.dataset.n_labels))

    def _estimate(self, rows: Rows, labels: Iterable[int]) -> None:
        """Compute the confidences of whole labels, and in these rows of all labels."""
        whole = set(labels)
        for j in range(self.dataset.n_labels):
            at = np.flatnonzero(self.offered[:, j]) if j in whole else rows[self.offered[rows, j]]
            if len(at):
                found = self._learner.log_odds(self._fit, j, at, self.decided, self._moved)
                self.log_odds[at, j] = found
                self.confidences[at, j] = 1 / (1 + np.exp(-np.clip(found, -30, 30)))

    def _mark(self, decisions: Iterable[Verdict]) -> set[tuple[int, int]]:
        """Write the decisions down, the latest last; return their cells."""
        cells = set()
        for i, j, one in located(self.dataset, decisions):
            if self.offered[i, j]:
                self.decided[i, j] = VALUES.get(one.verdict, np.nan)
                self.unsure[i, j] = one.verdict == "unsure"
                self.sampled[i, j] = bool(getattr(one, "sampled", False))
                cells.add((i, j))
        return cells


def _moved(before: Reviewer, after: Reviewer) -> Ripple:
    """Return the cells that moved visibly and are undecided in both."""
    change = np.abs(after.confidences - before.confidences)
    free = np.isnan(before.decided) & np.isnan(after.decided) & before.offered
    rows, labels = np.nonzero(free & (change > 1e-3))
    order = np.argsort(-change[rows, labels], kind="stable")
    rows, labels = rows[order], labels[order]
    return Ripple(rows, labels, before.confidences[rows, labels], after.confidences[rows, labels])
