"""What one annotator is asked: instances nobody else has, second opinions, some that come back.

The order is everybody's (`Ranking`); which of it goes to whom is decided here and leased in the
store (`core.store.lanes`), so that nobody answers what another has, unless two shall.
"""

import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Generic

import numpy as np

from core.review.agreement import may_repeat
from core.review.queue import REPEAT, STATES, Question
from core.review.resolve import located
from core.review.session import Query, Results, ReviewState
from core.store import Decision, DecisionsNow, Workspace
from core.store.schema import stamp

SECOND_OPINIONS = 0.2
"""Of the questions handed out at once that may be about what others answered, at most."""

PAGE_LABELS = 3
"""Labels of which pages of near instances are made at once."""

REPEAT_AT = 4
"""Where among the questions an instance comes back: nobody sees it begin anew with it."""


class Ranking(Generic[Results]):
    """What to ask in a review, best first; shared, so some may have been answered since."""

    def __init__(
        self, state: ReviewState[Results], query: Query, selected: Sequence[str], limit: int
    ) -> None:
        self.state, self._query, self._selected = state, query, selected
        self._extending = threading.Lock()
        self._rank(limit)

    @property
    def is_whole(self) -> bool:
        """Whether there is nothing more to ask than `questions`."""
        return len(self.questions) < self.limit

    def extend(self, limit: int) -> None:
        """Have more questions than this limit gave, unless somebody saw to it meanwhile."""
        with self._extending:
            if self.limit <= limit:
                self._rank(4 * limit)

    def _rank(self, limit: int) -> None:
        query = self._query
        self.questions = self.state.reviewer.questions(
            query.order,
            labels=query.labels,
            rows=query.rows(self.state, self._selected),
            states=query.states,
            source=query.source or None,
            limit=limit,
        )
        self.limit = limit


@dataclass(frozen=True)
class Assignment:
    """One annotator's part of a review.

    `held` are the instances this person has before them; `now` the decisions of this moment, which
    may be newer than those of the state that questions were ranked with.
    """

    workspace: Workspace
    fingerprint: str
    annotator: str
    query: Query
    held: list[str]
    now: DecisionsNow

    @property
    def is_audit(self) -> bool:
        """Whether the thirty cells of an audit are asked."""
        return self.query.order == "thirty"

    @property
    def own(self) -> dict[tuple[str, str], Decision]:
        """What this annotator decided and stands."""
        return self.now.by_annotator.get(self.annotator, {})

    def verdict(self, cell: tuple[str, str]) -> str | None:
        """Return what this annotator decided of a cell."""
        return self.own[cell].verdict if cell in self.own else None

    def said_before(self, question: Question, cell: tuple[str, str]) -> Decision | None:
        """Return this annotator's earlier answer about a cell that comes back; mostly none."""
        return self.own.get(cell) if question.reason == REPEAT else None

    def is_sampled(self, question: Question, cell: tuple[str, str]) -> bool:
        """Tell whether the answer is one about a random cell; one that comes back stays one."""
        before = self.said_before(question, cell)
        return question.sampled if before is None else before.sampled

    def claim(self, names: Sequence[str], count: int, overlap: float = 0.0) -> list[str]:
        """Lease the first instances that nobody else has; return them in order."""
        lanes = self.workspace.lanes
        return lanes.claim(self.fingerprint, self.annotator, names, count, overlap=overlap)

    def release(self, dropped: Iterable[str]) -> None:
        """Let others have instances that left this person's desk; what is held again stays."""
        gone = sorted(set(dropped) - set(self.held))
        self.workspace.lanes.release(self.fingerprint, self.annotator, gone)

    def lost(self) -> list[str]:
        """Return the held instances that went to others meanwhile; of an audit none."""
        kept = self.claim(self.held, len(self.held))
        return [] if self.is_audit else sorted(set(self.held) - set(kept))

    def questions(
        self, ranking: Ranking[Results], count: int, overlap: float
    ) -> tuple[list[Question], int]:
        """Return one question per instance, leased to this annotator; and how many others have."""
        state = ranking.state
        ids = state.results.dataset.ids
        first = self._second_opinions(state, overlap, int(SECOND_OPINIONS * count))
        while True:
            limit, is_whole = ranking.limit, ranking.is_whole
            drawn = {ids[one.row]: one for one in first}
            for one in ranking.questions:
                cells = [at for at in one.cells if not self._is_answered(state, one.row, at)]
                if cells:
                    left = one if len(cells) == len(one.cells) else replace(one, cells=cells)
                    drawn.setdefault(ids[one.row], left)
            for name in self.held:
                drawn.pop(name, None)
            mine = self.claim(list(drawn), count, overlap)
            if self.is_audit:  # thirty cells are few: nobody waits for what another has
                mine = list(drawn)
            if len(mine) == count or is_whole:
                break
            ranking.extend(limit)  # others hold much of what was drawn
        asked = [drawn[name] for name in mine]
        if repeat := self._repeat(state):
            asked.insert(REPEAT_AT, repeat)
        return asked, len(drawn) - len(mine)

    def pages(
        self, state: ReviewState[Results], size: int, selected: Sequence[str] = ()
    ) -> tuple[list[tuple[int, list[str]]], int]:
        """Return labels with near instances each, those with most open cells first; and how many
        others have."""
        reviewer, dataset = state.reviewer, state.results.dataset
        is_open = reviewer.offered & (reviewer.states() == STATES.index("open"))
        taken = {dataset.row_of[name] for name in self.held}
        is_open[list(taken)] = False
        order = [int(at) for at in np.argsort(-is_open.sum(axis=0), kind="stable")]
        labels = [one for one in self.query.labels or order if is_open[:, one].any()]
        chosen = self.query.rows(state, selected)
        among = None if chosen is None else set(chosen)
        pages, n_elsewhere = list[tuple[int, list[str]]](), 0
        for label in labels[:PAGE_LABELS]:
            names = [
                dataset.ids[row]
                for row in reviewer.same_question(label, size=20 * size)
                if row not in taken
                and (among is None or row in among)
                and not self._is_answered(state, row, label)
            ]
            mine = self.claim(names, size)
            n_elsewhere += len(names) - len(mine)
            if mine:
                taken |= {dataset.row_of[name] for name in mine}
                pages.append((label, mine))
        return pages, n_elsewhere

    def _is_answered(self, state: ReviewState[Results], row: int, label: int) -> bool:
        """Tell whether a cell was decided, or undone, after the state was made."""
        dataset = state.results.dataset
        cell = (dataset.ids[row], dataset.label_names[label])
        return self.now.latest.get(cell) is not state.now.latest.get(cell)

    def _repeat(self, state: ReviewState[Results]) -> Question | None:
        """Return an instance that is due to come back to this person, blind; mostly none."""
        query, dataset = self.query, state.results.dataset
        is_narrow = query.states is not None or query.selection
        if is_narrow or query.order in ("thirty", "contradictions"):
            return None
        made = sorted(self.own.values(), key=lambda one: one.id or 0)
        repeated = self.now.repeated.get(self.annotator, frozenset())
        names = [one for one in may_repeat(made, repeated) if one in dataset.row_of]
        if not names or set(names) & set(self.held):
            return None
        name = names[int(np.random.default_rng(len(repeated)).integers(len(names)))]
        clear = [
            one for one in made if one.instance_id == name and one.verdict in ("keep", "reject")
        ]
        labels = [dataset.label_of[one.label] for one in clear if not one.adjudicates]
        return Question(dataset.row_of[name], labels, 0.0, REPEAT) if labels else None

    def _second_opinions(
        self, state: ReviewState[Results], overlap: float, limit: int
    ) -> list[Question]:
        """Ask some of what others were asked, without saying what they answered."""
        if not overlap or self.query.states is not None:
            return []
        dataset, questions = state.results.dataset, list[Question]()
        lanes, decisions = self.workspace.lanes, self.workspace.decisions
        for name in lanes.second_opinions(self.fingerprint, self.annotator, overlap):
            row = dataset.row_of.get(name)
            if row is None or name in self.held or len(questions) == limit:
                continue
            made = decisions.history(self.fingerprint, name)
            labels = dict.fromkeys(at for _, at, _ in located(dataset, made))
            questions.append(Question(row, list(labels), 0.0, "second opinion", False))
        return questions


def answer_times(earliest: str, seconds_kept: float) -> dict[str, str]:
    """Return when an answer was given, by how long the browser kept it, and when it came.

    Browsers' clocks are not trusted, only that they go on; no answer is older than its run, which
    was made at `earliest`.
    """
    now = datetime.now(UTC)
    oldest = (now - datetime.fromisoformat(earliest)).total_seconds()
    made = now - timedelta(seconds=max(0, min(seconds_kept, oldest)))
    return {"time": stamp(made), "received": stamp(now)}
