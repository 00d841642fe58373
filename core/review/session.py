"""A review session: one run, the decisions that hold on its data, and what they settled.

A `ReviewState` is the session at one moment and never changes; `follow` gives the next one. The app
shares one among all annotators of a run; `plain review-stats`, `plain export` and retraining read
the same reviewer with all decisions at once (`core.review.load`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Generic, Literal, NamedTuple, TypeVar
from uuid import uuid4

import numpy as np
import numpy.typing as npt

from core.review.audit import auto_resolve
from core.review.load import make_reviewer
from core.review.queue import Order, Question, State, audit_cells, is_settled
from core.review.reviewer import Reviewer
from core.runs.results import RunResults
from core.store import Decision, DecisionsNow, Workspace

Rows = npt.NDArray[np.int64]
Results = TypeVar("Results", bound=RunResults)


class Progress(NamedTuple):
    """How far a review is."""

    n_cells: int
    n_decided: int
    n_settled: int  # by decisions, without being decided
    n_open: int
    annotators: dict[str, int]  # cells each has decided


@dataclass(frozen=True, eq=False)
class ReviewState(Generic[Results]):
    """One run with the decisions of one moment. Shared by all annotators: nobody may change it."""

    results: Results
    reviewer: Reviewer
    before: npt.NDArray[np.float32]  # confidences without any decision
    now: DecisionsNow
    names: list[str]  # what labels are called

    @classmethod
    def begin(cls, workspace: Workspace, results: Results) -> "ReviewState[Results]":
        """Return the session of a run before any decision."""
        reviewer, names = make_reviewer(workspace, results), list(results.dataset.label_names)
        return cls(results, reviewer, reviewer.confidences, DecisionsNow(), names)

    def follow(self, now: DecisionsNow, names: list[str]) -> "ReviewState[Results]":
        """Return the session with the decisions that hold now; what was undone is undone in it."""
        state = self
        if now is not self.now:
            old, new = self.now.latest, now.latest
            changed = [one for cell, one in new.items() if old.get(cell) is not one]
            gone = [one for cell, one in old.items() if cell not in new]
            undone = [one.model_copy(update={"verdict": "undo"}) for one in gone]
            state = replace(state, reviewer=self.reviewer.after([*undone, *changed]), now=now)
        return state if names == state.names else replace(state, names=names)

    @cached_property
    def n_open(self) -> int:
        reviewer = self.reviewer
        return int((reviewer.offered & np.isnan(reviewer.decided) & ~reviewer.settled).sum())

    @cached_property
    def n_settled(self) -> int:
        return len(self.settled_cells()[0])

    def settled_cells(self) -> tuple[Rows, Rows]:
        """Return the undecided cells that are settled only because of decisions."""
        rows, labels = np.nonzero(self.reviewer.settled & ~is_settled(self.before))
        return rows, labels

    def progress(self) -> Progress:
        """Return how far the review is."""
        offered = self.reviewer.offered
        return Progress(
            n_cells=int(offered.sum()),
            n_decided=int((offered & ~np.isnan(self.reviewer.decided)).sum()),
            n_settled=self.n_settled,
            n_open=self.n_open,
            annotators=self.now.n_by_annotator,
        )

    def proposal(self, row: int, label: int) -> Literal["keep", "reject"]:
        """Return the answer that a person is proposed for a cell."""
        return "keep" if self.reviewer.confidences[row, label] >= 0.5 else "reject"

    def cells_shown(self, question: Question, *, is_blind: bool) -> list[int]:
        """Return the candidates of the instance, those in question first, then the likely ones;
        if the person must not know yet, as the data have them: their order would tell."""
        offered = np.flatnonzero(self.results.dataset.candidates[question.row]).tolist()
        others = [at for at in offered if at not in question.cells]
        if not is_blind:
            others.sort(key=lambda at: -self.reviewer.confidences[question.row, at])
        return [*question.cells, *others]

    def audit_progress(self, now: DecisionsNow) -> tuple[int, int]:
        """Return how many cells of the audit hold a decision now, and how many it has."""
        cells, dataset = np.argwhere(audit_cells(self.reviewer)), self.results.dataset
        n = sum((dataset.ids[i], dataset.label_names[j]) in now.latest for i, j in cells)
        return n, len(cells)


class Query(NamedTuple):
    """Which questions, in which order; labels by their place."""

    order: Order = "worth"
    labels: tuple[int, ...] | None = None
    states: tuple[State, ...] | None = None
    selection: str = ""  # the key of a list of instances (`core.store.review_files`)
    annotator: str = ""  # only instances that this person decided on
    source: str = ""  # only candidates that this source offered

    def rows(self, state: ReviewState[Results], selected: Sequence[str] = ()) -> list[int] | None:
        """Return the instances to ask about, those of the selection given; none for all."""
        row_of = state.results.dataset.row_of
        asked: set[int] | None = None
        if self.selection:
            asked = {row_of[name] for name in selected if name in row_of}
        if self.annotator:
            cells = state.now.latest.items()
            theirs = {row_of[cell[0]] for cell, one in cells if one.annotator == self.annotator}
            asked = theirs if asked is None else asked & theirs
        return None if asked is None else sorted(asked)


def recent_decisions(now: DecisionsNow, annotator: str, limit: int = 500) -> list[Decision]:
    """Return one person's decisions that hold, the newest first."""
    made = now.by_annotator.get(annotator, {})
    return sorted(made.values(), key=lambda one: one.id or 0, reverse=True)[:limit]


def batches(made: Sequence[Decision]) -> list[list[Decision]]:
    """Return decisions by the answer they were given in, in their order."""
    by_answer: dict[str, list[Decision]] = {}
    for one in made:
        by_answer.setdefault(one.batch or one.uid, []).append(one)
    return list(by_answer.values())


def auto_annotator(annotator: str) -> str:
    """Return whose name the decisions carry that were made unseen for a person."""
    return f"auto-resolve ({annotator})"


def auto_decisions(state: ReviewState[Results], precision: float, annotator: str) -> list[Decision]:
    """Return what may be decided unseen at this precision: one batch, so all can be undone."""
    run, dataset = state.results.run, state.results.dataset
    batch, made = uuid4().hex, list[Decision]()
    verdicts: tuple[Literal["keep", "reject"], ...] = ("keep", "reject")
    for verdict in verdicts:
        found = auto_resolve(state.reviewer, precision, verdict)
        made += [
            Decision(
                fingerprint=run.fingerprint,
                run_id=run.id,
                instance_id=dataset.ids[i],
                label=dataset.label_names[j],
                verdict=verdict,
                annotator=auto_annotator(annotator),
                confidence=float(state.reviewer.confidences[i, j]),
                shown=False,
                batch=batch,
            )
            for i, j in zip(found.rows, found.labels, strict=True)
        ]
    return made
