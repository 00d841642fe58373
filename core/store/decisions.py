"""Decisions: what people said of cells. Rows are only ever added.

A decision belongs to data (fingerprint, instance id, label name), so it survives retraining and
the removal of the run it was made on. An undo is a row too: it cancels the newest decision of its
annotator on its cell that still stands, so undoing twice steps back twice, and undoing where
nothing stands does nothing. Each row has a `uid` made by the sender; sent again, it is ignored.
Whatever is stored was on the disk before `add` returned. Where several people decided a cell, the
newest adjudicating decision holds, else the newest.

Ids grow, and rows become visible in their order (`core.store.database`): whoever remembers the last
one it saw reads only what is new. `CurrentDecisions` does.
"""

import threading
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Annotated, Any, Literal, TypeAlias
from uuid import uuid4

import sqlalchemy as sa
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from sqlalchemy import select

from core.errors import StoreError
from core.failpoints import failpoint
from core.store.database import Database
from core.store.lanes import keep_answered
from core.store.runs import require_dataset
from core.store.schema import decisions, now

Verdict = Literal["keep", "reject", "unsure", "undo"]
Name = Annotated[str, Field(min_length=1, pattern=r"^[^\x00]*$")]  # PostgreSQL takes no NUL


class Decision(BaseModel):
    """One verdict of one person on one cell; `id` is given when it is stored."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: int | None = None
    uid: Name = Field(default_factory=lambda: uuid4().hex)
    fingerprint: Name
    instance_id: Name
    label: Name
    verdict: Verdict
    annotator: Name
    time: Name = Field(default_factory=now)
    run_id: Name | None = None
    confidence: float | None = Field(None, ge=0, le=1, description="What was or would be shown.")
    shown: bool = Field(True, description="False in blind mode: the confidence was hidden.")
    seconds: float | None = Field(
        None, ge=0, allow_inf_nan=False, description="How long the person looked."
    )
    sampled: bool = Field(False, description="Asked because it was drawn at random.")
    adjudicates: bool = Field(False, description="Settles a disagreement: goes before all others.")
    batch: Name | None = Field(None, description="Decisions made with one key share it.")
    received: Name | None = Field(None, description="When the server got it; `time` is when made.")

    def __init__(self, **values: Any) -> None:
        try:
            super().__init__(**values)
        except ValidationError as error:
            lines = [f"{one['loc'][0]}: {one['msg']}" for one in error.errors(include_url=False)]
            raise StoreError("This decision is not valid.", "\n".join(lines)) from None

    @property
    def late(self) -> timedelta:
        """How long it was on its way, where that was long: the desk was offline."""
        if self.received is None:
            return timedelta(0)
        spent = datetime.fromisoformat(self.received) - datetime.fromisoformat(self.time)
        return spent if spent >= LATE else timedelta(0)


LATE = timedelta(minutes=1)
"""A decision that took longer to arrive is shown as late."""

Cell: TypeAlias = tuple[str, str]
"""Instance id and label name."""

Decisions: TypeAlias = list[Decision]
_FIELDS = tuple(column.name for column in decisions.columns)


class DecisionStore:
    """The decisions of one workspace. May be used from many threads and processes."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, decision: Decision) -> int:
        """Store a decision; return 0 when it was there already, else 1."""
        return self.add_many([decision])

    def add_many(self, given: Iterable[Decision], *, keep_lanes: bool = False) -> int:
        """Store decisions, all or none; return how many were new.

        With `keep_lanes` the same transaction keeps their instances from other annotators.
        """
        rows = [decision.model_dump(exclude={"id"}) for decision in given]
        with self._database.write() as connection:
            for fingerprint in {row["fingerprint"] for row in rows}:
                require_dataset(connection, fingerprint)
            n_new = self._database.insert_new(connection, decisions, rows)
            failpoint("decisions.inserted")
            if keep_lanes:
                keep_answered(self._database, connection, rows)
            return n_new

    def undo(self, made: Iterable[Decision], annotator: str) -> Decisions:
        """Take back these decisions of one person, all or none; return the rows that were added.

        A decision that does not stand any more, or is another person's, is passed over; one that
        a newer decision of the same person covers is not laid bare. Sent again, nothing happens.
        """
        with self._database.write() as connection:
            undone = []
            for one in made:
                stack: Decisions = []
                rows = self._rows(connection, one.fingerprint, one.instance_id, one.label)
                for row in rows:
                    if row.annotator == annotator:
                        _apply(stack, _decision(row))
                if stack and stack[-1].uid == one.uid:
                    undone.append(_undo_of(one, annotator))
            rows_ = [decision.model_dump(exclude={"id"}) for decision in undone]
            self._database.insert_new(connection, decisions, rows_)
        return undone

    def latest(self, fingerprint: str) -> Decisions:
        """Return what holds: per cell the newest decision that was not undone, oldest first."""
        return _by_age(CurrentDecisions(self, fingerprint).refresh().latest)

    def by_annotator(self, fingerprint: str) -> dict[str, Decisions]:
        """Return for every annotator the newest decision on each cell that was not undone."""
        found = CurrentDecisions(self, fingerprint).refresh().by_annotator
        return {who: _by_age(made) for who, made in found.items()}

    def history(
        self, fingerprint: str, instance_id: str | None = None, label: str | None = None
    ) -> Decisions:
        """Return every row ever stored, undone ones and undos too, oldest first."""
        with self._database.read() as connection:
            return [
                _decision(row) for row in self._rows(connection, fingerprint, instance_id, label)
            ]

    def count(self, fingerprint: str) -> int:
        """Return how many rows are stored, undone ones and undos too.

        It only ever grows, so it tells whether anything else computed here is still so.
        """
        query = select(sa.func.count()).where(decisions.c.fingerprint == fingerprint)
        with self._database.read() as connection:
            return connection.scalar(query) or 0

    def since(self, fingerprint: str, last_id: int) -> Decisions:
        """Return the rows from this id on, it included, oldest first."""
        # By id alone: SQLite would take the index of cells, and read all of the data's decisions.
        of_data = decisions.c.fingerprint.concat("") == fingerprint
        query = select(decisions).where(of_data, decisions.c.id >= last_id).order_by(decisions.c.id)
        with self._database.read() as connection:
            return [_decision(row) for row in connection.execute(query)]

    def _rows(
        self,
        connection: sa.Connection,
        fingerprint: str,
        instance_id: str | None = None,
        label: str | None = None,
    ) -> list[sa.Row[Any]]:
        query = select(decisions).where(decisions.c.fingerprint == fingerprint)
        if instance_id is not None:
            query = query.where(decisions.c.instance_id == instance_id)
        if label is not None:
            query = query.where(decisions.c.label == label)
        return list(connection.execute(query.order_by(decisions.c.id)).all())


@dataclass(frozen=True, eq=False)
class DecisionsNow:
    """What holds of a data set's decisions at one moment. Shared: nobody may change it."""

    last: Decision | None = None  # of all rows, undos too
    latest: dict[Cell, Decision] = field(default_factory=dict)
    by_annotator: dict[str, dict[Cell, Decision]] = field(default_factory=dict)
    repeated: dict[str, frozenset[str]] = field(default_factory=dict)
    """Instances that came back to a person who had decided them, and were answered blind."""
    n_by_annotator: dict[str, int] = field(default_factory=dict)
    """How many cells hold what each person decided."""


class CurrentDecisions:
    """Follows the decisions on one data set: reads and checks only rows it has not seen."""

    def __init__(self, store: DecisionStore, fingerprint: str) -> None:
        self._store, self._fingerprint = store, fingerprint
        self._lock = threading.Lock()
        self._start()

    def _start(self) -> None:
        self._stacks: defaultdict[Cell, defaultdict[str, Decisions]]
        self._stacks = defaultdict(lambda: defaultdict(list))
        self._now = DecisionsNow()

    def refresh(self) -> DecisionsNow:
        """Return what holds now."""
        with self._lock:
            last = self._now.last
            rows = self._store.since(self._fingerprint, (last and last.id) or 0)
            if last and (not rows or rows[0] != last):  # another database: a backup was restored
                self._start()
                last, rows = None, self._store.since(self._fingerprint, 0)
            fresh = rows[1:] if last else rows
            if fresh:
                self._now = self._followed_by(fresh)
            return self._now

    def _followed_by(self, rows: Decisions) -> DecisionsNow:
        latest, by_annotator = dict(self._now.latest), dict(self._now.by_annotator)
        for who in {one.annotator for one in rows}:
            by_annotator[who] = dict(by_annotator.get(who, {}))
        repeated = dict(self._now.repeated)
        for one in rows:
            stack = self._stacks[one.instance_id, one.label][one.annotator]
            if stack and not one.shown and one.verdict in ("keep", "reject"):
                so_far = repeated.get(one.annotator, frozenset())
                repeated[one.annotator] = so_far | {one.instance_id}
            _apply(stack, one)
        counts = Counter(self._now.n_by_annotator)
        for one in rows:
            cell = (one.instance_id, one.label)
            counts.subtract(holder.annotator for holder in (latest.get(cell),) if holder)
            held = [stack[-1] for stack in self._stacks[cell].values() if stack]
            _put(latest, cell, max(held, key=_precedence, default=None))
            counts.update(holder.annotator for holder in (latest.get(cell),) if holder)
            own = self._stacks[cell][one.annotator]
            _put(by_annotator[one.annotator], cell, own[-1] if own else None)
        people = {who: own for who, own in by_annotator.items() if own}
        return DecisionsNow(rows[-1], latest, people, repeated, dict(+counts))


def _apply(stack: Decisions, one: Decision) -> None:
    """Add a decision of one person on one cell to those that were not undone, or undo the last."""
    if one.verdict != "undo":
        stack.append(one)
    elif stack:
        stack.pop()


def _put(found: dict[Cell, Decision], cell: Cell, one: Decision | None) -> None:
    if one is None:
        found.pop(cell, None)
    else:
        found[cell] = one


def _precedence(one: Decision) -> tuple[bool, int]:
    return one.adjudicates, one.id or 0


def _by_age(made: dict[Cell, Decision]) -> Decisions:
    return sorted(made.values(), key=lambda one: one.id or 0)


def _undo_of(one: Decision, annotator: str) -> Decision:
    cell = {name: getattr(one, name) for name in ("fingerprint", "instance_id", "label", "run_id")}
    return Decision(**cell, uid=f"undo-{one.uid}", verdict="undo", annotator=annotator)


def _decision(row: sa.Row[Any]) -> Decision:
    return Decision(**dict(zip(_FIELDS, row, strict=True)))
