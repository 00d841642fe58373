"""One run with the decisions that stand: what is known now, what to ask next, what answers do.

A `Reviewer` never changes; `decide` returns the next one. Decisions hold their cells at 0 or 1 in
the propagation (`Propagator.clamped`), and only what an answer reaches is computed anew. What a
person decided and what the model thinks stay apart: the confidence of a decided cell is what the
model says of it without that decision. A decision always stands; the model learns from it as far as
it was likely looked at (`core.review.habits`).
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from core.confidence.calibration import Told, calibrate
from core.confidence.level import Level
from core.confidence.readings import held
from core.confidence.sources import source_model
from core.data.dataset import CandidateDataset
from core.engine.propagation import Propagator
from core.review.beginning import Beginning
from core.review.companions import MOST_LABELS, Companions
from core.review.effect import DecisionEffect, moved_cells
from core.review.fourier_features import fourier_features
from core.review.habits import Cell, Given, Habit, looked_at, measure_habits
from core.review.learner import CellFeatures, Fit, Learner, sigmoid
from core.review.neighbors import by_neighbors
from core.review.queue import Order, Question, State, ask, attention_draws, is_settled, near
from core.review.resolve import VALUES, Verdict, located

Matrix = npt.NDArray[np.float32]
Rows = npt.NDArray[np.int64]

_OVERRULED = 2.0
"""Log-odds against a candidate from which decisions overrule a reading that keeps it: seven to one.
On 22 cases with up to thirty random answers, 1 loses .008 of F1 on image where half is false; 9 is
as good as 2 there, but would hold what many decisions nearby speak against."""

_OWN = ("decided", "sampled", "blind", "unsure", "_learned", "_given", "_Z", "_moved", "log_odds")
"""What a following reviewer has of its own, beside the confidences."""


class Reviewer:
    """One run with the decisions that stand.

    Parameters
    ----------
    dataset, propagator, Y_hat : of the run
    decisions : those that stand, latest last; unknown instances and labels are passed over
    beginning : what the run says before any decision, where that is known; never where votes are
    variability : gives how much each cell changed over the epochs, (n, L); for the order "unstable"
    dependence : (n, L), how much each cell depends on settings (`core.tuning`); for "depends"
    held_out : whether an instance's own labels were kept from its predictions
    level : what the run learned about the share of false candidates; None: read from Y_hat
    seed : of what is drawn at random

    Attributes
    ----------
    confidences, log_odds : (n, L), the estimated probability that a candidate is true; 0 elsewhere
    decided : (n, L), 0 or 1 where a decision stands, else NaN
    start : (n, L), what the run says without any decision, as log-odds
    sampled, blind : (n, L), which decisions were drawn at random; before anything was shown
    unsure : (n, L), where a person could not tell
    habits : by annotator, how often the answer at hand was given
    """

    _fit: Fit
    _told: Told | None
    _kept: npt.NDArray[np.bool_]

    def __init__(
        self,
        dataset: CandidateDataset,
        propagator: Propagator,
        Y_hat: Matrix,
        decisions: Iterable[Verdict] = (),
        *,
        beginning: Beginning | None = None,
        variability: Callable[[], Matrix | None] = lambda: None,
        dependence: Matrix | None = None,
        held_out: bool = True,
        level: Level | None = None,
        seed: int = 0,
    ) -> None:
        self.dataset, self.propagator, self.seed = dataset, propagator, seed
        self._held_out, self.level = held_out, level or Level.fit(dataset.candidates, Y_hat)
        self.variability, self.dependence = variability, dependence
        self.offered = dataset.candidates > 0
        self._Y = dataset.candidates.astype(np.float32)
        self._Y_hat, self._told = np.asarray(Y_hat, np.float32), None
        self._forget()
        with ThreadPoolExecutor(1) as beside:
            place = beside.submit(fourier_features, dataset.features, seed)
            self._Z_start = beginning.Z if beginning else self._clamped()
            self._mark(decisions)
            self.start = beginning.start if beginning else self._start()
        self._kept_at_start = self._kept = beginning.kept if beginning else self._kept
        self._learner = Learner(CellFeatures.of(self.offered, self.start, place.result()))
        self._begin()

    @property
    def beginning(self) -> Beginning:
        """What is known before any decision, unless sources voted."""
        return Beginning(self._Z_start, self.start, self._kept_at_start)

    def afresh(self, decisions: Iterable[Verdict]) -> "Reviewer":
        """Return what a new reviewer of the run with these decisions, and no others, would be.

        What the run says is not read again, unless votes do: decisions are truth about these, too.
        """
        fresh = copy(self)
        fresh._forget()
        fresh._mark(decisions)
        if self.dataset.votes is not None:
            fresh.start = fresh._start()
            fresh._kept_at_start = fresh._kept
        fresh._kept = fresh._kept_at_start
        fresh._learner = Learner(replace(self._learner.features, start=fresh.start))
        fresh._begin()
        return fresh

    def _forget(self) -> None:
        """Know of no decision."""
        shape = self.offered.shape
        self.decided: Matrix = np.full(shape, np.nan, np.float32)
        self._learned: Matrix = self.decided.copy()
        self.sampled, self.unsure, self.blind = (np.zeros(shape, bool) for _ in range(3))
        self._given: dict[Cell, Given] = {}
        self.habits: dict[str, list[Habit]] = {}
        self._companions: Companions | None = None
        self._answers = np.full(shape, np.nan, np.float32)

    def _begin(self) -> None:
        """Learn from the decisions that were marked."""
        self._trust({one.annotator for one in self._given.values()})
        self._Z = self._Z_start.copy()
        if (self._learned >= 0).any():
            self._Z = self._clamped()
        self._relearn()

    def _clamped(self) -> Matrix:
        return self.propagator.clamped(self._Y, self._Y_hat, self._learned)

    @property
    def proposed(self) -> npt.NDArray[np.bool_]:
        """What a person accepts with one key: the decision, else what is more likely, n x L."""
        likely = self.offered & (self.confidences >= 0.5)
        return np.where(np.isnan(self.decided), likely, self.decided > 0)

    @property
    def trusted(self) -> npt.NDArray[np.bool_]:
        """Which decisions are learned from, and count in estimates, n x L."""
        return ~np.isnan(self._learned)

    @property
    def noticed(self) -> list[Habit]:
        """The habits by which people gave answers without looking."""
        return [one for mine in self.habits.values() for one in mine if one.is_noticed]

    @property
    def suspected(self) -> npt.NDArray[np.bool_]:
        """Which decisions no guarantee may rest on: their annotators may not have looked, n x L."""
        people = {who for who, mine in self.habits.items() if any(one.is_suspected for one in mine)}
        cells = np.zeros(self.offered.shape, bool)
        for cell, one in self._given.items() if people else ():
            cells[cell] = one.annotator in people
        return cells

    @property
    def settled(self) -> npt.NDArray[np.bool_]:
        """Which undecided candidate cells are confident enough that nobody need answer them."""
        found: npt.NDArray[np.bool_] = is_settled(self.confidences)
        return self.offered & np.isnan(self.decided) & found

    def states(self) -> npt.NDArray[np.uint8]:
        """Return the state of each cell as its place in `STATES`; only candidates mean anything."""
        states = is_settled(self.confidences).astype(np.uint8)
        states[self.unsure] = 3
        states[~np.isnan(self.decided)] = 2
        return states

    def questions(
        self,
        order: Order = "worth",
        *,
        labels: Sequence[int] | None = None,
        rows: Sequence[int] | None = None,
        states: Collection[State] | None = None,
        source: str | None = None,
        limit: int = 50,
    ) -> list[Question]:
        """Return what to ask next, in this order.

        Parameters
        ----------
        labels, rows : ask only about these
        states : ask only about cells in these states; open ones by default, and for an audit
            settled ones too; contradictions are always of decided cells
        source : ask only about cells that this source offered
        """
        return ask(self, order, labels, rows, states, source, limit)

    def same_question(self, label: int, size: int = 24) -> list[int]:
        """Return instances that are near each other and have this label open, nearest first."""
        return near(self, label, size)

    def preview(self, i: int, j: int, verdict: Literal["keep", "reject"]) -> DecisionEffect:
        """Return what this answer would move, without giving it."""
        following = self._copy()
        following.decided[i, j] = following._learned[i, j] = VALUES[verdict]
        following._learn({(i, j)})
        return moved_cells(self, following)

    def decide(self, decisions: Iterable[Verdict]) -> tuple["Reviewer", DecisionEffect]:
        """Return the reviewer after these decisions, and what they moved.

        An "undo" makes its cell undecided; where an older decision comes to stand again, send that
        one instead.
        """
        following = self.after(decisions)
        return following, moved_cells(self, following)

    def after(self, decisions: Iterable[Verdict]) -> "Reviewer":
        """Return the reviewer after these decisions; see `decide`."""
        following = self._copy()
        cells, annotators = following._mark(decisions)
        following._learn(cells | following._trust(annotators))
        return following

    def pull(self, j: int, asked: Rows, others: Rows) -> Matrix:
        """Return how far learning about `asked` cells of a label moves others; see `Learner`."""
        return self._learner.pull(self._fit, j, asked, others, self._learned, self._moved)

    def within_instance(self) -> Matrix:
        """Return how far a decision moves other cells of its instance; see `Learner`."""
        return self._learner.within_instance(self._fit)

    def reach(self, rows: Rows, labels: Rows, weights: Matrix, value: int) -> Matrix:
        """Return how far deciding cells moves the same label of neighbours, by their edge."""
        step = weights * self.propagator.step_scale * (value - self._Z[rows, labels])
        slope = self._fit.weights[labels, 2] * np.float32(self._fit.stretch[1])
        return np.asarray(step * slope * np.float32(1 + self.propagator.eta))

    def beside_others(self) -> Matrix:
        """Return how likely each cell is to be offered beside the instance's other candidates, as
        log-odds; what the run says where votes tell more, or labels are too many."""
        if self.dataset.votes is not None or self.dataset.n_labels > MOST_LABELS:
            return self.start
        candidates = self.offered & (self._learned != 0)
        if self._companions is None:
            alike = by_neighbors(self.dataset.features, self.offered, self.seed)
            said = [self._Y_hat] if alike is None else [self._Y_hat, alike]
            self._companions = Companions.fit(candidates, said, self.seed)
        elif self._companions.is_stale(candidates):
            self._companions = self._companions.refit(candidates)
        return self._companions.log_odds(candidates)

    def likeness(self, rows: Rows, others: Rows) -> Matrix:
        """Return how alike pairs of instances are: 1 the same, about 0 unrelated."""
        x, y = (self._learner.features.place[at] for at in (rows, others))
        dot, a, b = (np.einsum("rd,rd->r", *two) for two in ((x, y), (x, x), (y, y)))
        return np.asarray(dot / np.maximum(np.sqrt(a * b), 1e-9))

    def _copy(self) -> "Reviewer":
        own = copy(self)
        for name in (*_OWN, "confidences"):
            own.__dict__[name] = getattr(self, name).copy()
        return own

    def _learn(self, cells: set[tuple[int, int]]) -> None:
        """Bring everything up to date after the decisions on these cells changed."""
        rows, labels = self._settle(cells), {j for _, j in cells}
        self._fit = self._learner.update(self._fit, self._learned, self._moved, labels, len(cells))
        if self._learner.is_stale(self._fit):
            self._relearn(self._fit)
        else:
            self._estimate(rows, labels)

    def _settle(self, cells: set[tuple[int, int]]) -> Rows:
        """Bring Z to the clamped solution after these cells changed; return the rows it moved."""
        if not cells:
            return np.empty(0, np.int64)
        rows, labels = (np.array(part, np.int64) for part in zip(*sorted(cells), strict=True))
        value = self._learned[rows, labels]
        free = np.isnan(value)
        change = value - self._Z[rows, labels]
        at = rows[free], labels[free]
        change[free] = self.propagator.residual(self._Z, self._Y, self._Y_hat, *at)
        touched = self.propagator.reclamped(self._Z, self._learned >= 0, rows, labels, change)
        self._moved[touched] = self._movement(touched)
        return touched

    def _movement(self, rows: Rows) -> Matrix:
        """Return how far decisions moved the cells of these rows, decided ones by the others."""
        moved: Matrix = self._Z[rows] - self._Z_start[rows]
        at, labels = np.nonzero(~np.isnan(self._learned[rows]))
        own = rows[at], labels
        moved[at, labels] += self.propagator.residual(self._Z, self._Y, self._Y_hat, *own)
        return np.asarray(moved * np.float32(1 + self.propagator.eta))

    def _start(self, answers: Matrix | None = None) -> Matrix:
        """Return the log-odds at the level that these answers on random cells tell.

        Also notes which candidates some reading of the data keeps: these stay at even odds, until
        decisions say more against them than such a reading says for them (`_OVERRULED`).
        """
        given, eta = (self._Y, self._Z_start, self._Y_hat), self.propagator.eta
        if self._told is None and self.dataset.votes is None:
            self._told = Told.by(*given, eta, self.level)
        # Decisions are truth about the sources.
        decided = self.decided if (self.decided >= 0).any() else None
        sources = source_model(self.dataset.votes, decided, held_out=self._held_out)
        told, level = self._told, self.level
        found = calibrate(*given, answers, eta=eta, sources=sources, level=level, told=told)
        self._kept = found.kept
        p = np.clip(found.probabilities, 0.005, 0.995)
        return np.asarray(np.log(p / (1 - p)), np.float32)

    def _relearn(self, before: Fit | None = None) -> None:
        answers = np.where(self.sampled, self._learned, np.nan)
        if not np.array_equal(answers, self._answers, equal_nan=True):
            self._answers = answers
            self._learner = Learner(replace(self._learner.features, start=self._start(answers)))
        everywhere: Rows = np.arange(len(self._learned), dtype=np.int64)
        self._moved: Matrix = self._movement(everywhere)
        self._fit = self._learner.fit(self._learned, self._moved, before, self.sampled)
        self.log_odds: Matrix = np.zeros(self.decided.shape, np.float32)
        self.confidences: Matrix = self.log_odds.copy()
        self._estimate(everywhere[:0], range(self.dataset.n_labels))

    def _estimate(self, rows: Rows, labels: Iterable[int]) -> None:
        """Compute the confidences of whole labels, and in these rows of all labels."""
        whole = sorted(set(labels))
        state = self._learned, self._moved
        for j, at, found in self._learner.whole_labels(self._fit, whole, *state):
            self._put(j, at, found)
        for j in np.setdiff1d(np.arange(self.dataset.n_labels), whole):
            at = rows[self.offered[rows, j]]
            if len(at):
                self._put(int(j), at, self._learner.log_odds(self._fit, int(j), at, *state))

    def _put(self, j: int, rows: Rows, log_odds: Any) -> None:
        self.log_odds[rows, j] = log_odds
        against = self._learner.features.start[rows, j] - log_odds
        kept = self._kept[rows, j] & (against < _OVERRULED)
        self.confidences[rows, j] = held(sigmoid(log_odds), kept)

    def _mark(self, decisions: Iterable[Verdict]) -> tuple[set[Cell], set[str]]:
        """Write the decisions down, the latest last; return their cells and whose they are."""
        cells, annotators = set[Cell](), set[str]()
        for i, j, one in located(self.dataset, decisions):
            if not self.offered[i, j]:
                continue
            self.decided[i, j] = self._learned[i, j] = VALUES.get(one.verdict, np.nan)
            self.unsure[i, j] = one.verdict == "unsure"
            self.sampled[i, j] = bool(getattr(one, "sampled", False))
            self.blind[i, j] = not getattr(one, "shown", True)
            cells.add((i, j))
            before = self._given.pop((i, j), None)
            annotators |= {one.annotator} if before is None else {one.annotator, before.annotator}
            if one.verdict in VALUES and not getattr(one, "adjudicates", False):
                known = None if self.blind[i, j] else getattr(one, "confidence", None)
                shown = np.nan if known is None else float(known)
                self._given[i, j] = Given(one.annotator, one.verdict == "keep", shown, np.nan)
        return cells, annotators

    def _trust(self, annotators: set[str]) -> set[Cell]:
        """Measure the habits of these people; return the cells that are learned otherwise now."""
        theirs = [(cell, one) for cell, one in self._given.items() if one.annotator in annotators]
        given = {}
        if theirs:
            rows, labels = (
                np.array(part) for part in zip(*(cell for cell, _ in theirs), strict=True)
            )
            starts = sigmoid(self.start[rows, labels]).tolist()
            given = {
                cell: Given(one.annotator, one.kept, one.shown, start)
                for (cell, one), start in zip(theirs, starts, strict=True)
            }
        before = {one.annotator for one in self.noticed}
        self.habits = {
            **self.habits,
            **{who: list[Habit]() for who in annotators},
            **measure_habits(given.values()),
        }
        if not annotators & (before | {one.annotator for one in self.noticed}):
            return set()
        chances, changed = looked_at(given, self.habits), set[Cell]()
        for cell in given:
            is_learned = chances.get(cell, 1.0) > attention_draws(self)[cell]
            if is_learned == np.isnan(self._learned[cell]):
                self._learned[cell] = self.decided[cell] if is_learned else np.nan
                changed.add(cell)
        return changed
