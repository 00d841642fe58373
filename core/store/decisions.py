"""Decisions: what people said of cells. Rows are only ever added.

A decision belongs to data (fingerprint, instance id, label name), so it survives retraining and
the removal of the run it was made on. An undo is a row too: it cancels the newest decision of its
annotator on its cell that still stands, so undoing twice steps back twice, and undoing where
nothing stands does nothing. Each row has a `uid` made by the sender; sent again, it is ignored.
Whatever is stored was on the disk before `add` returned. Where several people decided a cell, the
newest adjudicating decision holds, else the newest.
"""

from collections import defaultdict
from collections.abc import Iterable
from typing import Annotated, Any, Literal, TypeAlias
from uuid import uuid4

import sqlalchemy as sa
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from sqlalchemy import select

from core.errors import StoreError
from core.store.database import Database
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
    seconds: float | None = Field(None, ge=0, description="How long the person looked.")
    sampled: bool = Field(False, description="Asked because it was drawn at random.")
    adjudicates: bool = Field(False, description="Settles a disagreement: goes before all others.")
    batch: Name | None = Field(None, description="Decisions made with one key share it.")

    def __init__(self, **values: Any) -> None:
        try:
            super().__init__(**values)
        except ValidationError as error:
            lines = [f"{one['loc'][0]}: {one['msg']}" for one in error.errors(include_url=False)]
            raise StoreError("This decision is not valid.", "\n".join(lines)) from None


Decisions: TypeAlias = list[Decision]
_FIELDS = tuple(column.name for column in decisions.columns)


class DecisionStore:
    """The decisions of one workspace. May be used from many threads and processes."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, decision: Decision) -> int:
        """Store a decision; return 0 when it was there already, else 1."""
        return self.add_many([decision])

    def add_many(self, given: Iterable[Decision]) -> int:
        """Store decisions, all or none; return how many were new."""
        rows = [decision.model_dump(exclude={"id"}) for decision in given]
        with self._database.write() as connection:
            for fingerprint in {row["fingerprint"] for row in rows}:
                require_dataset(connection, fingerprint)
            return self._database.insert_new(connection, decisions, rows)

    def undo(self, made: Iterable[Decision], annotator: str) -> Decisions:
        """Take back these decisions of one person, all or none; return the rows that were added.

        A decision that does not stand any more, or is another person's, is passed over; one that
        a newer decision of the same person covers is not laid bare. Sent again, nothing happens.
        """
        with self._database.write() as connection:
            undone = []
            for one in made:
                rows = self._rows(connection, one.fingerprint, one.instance_id, one.label)
                stack = _stacks(rows)[one.instance_id, one.label, annotator]
                if stack and stack[-1].uid == one.uid:
                    undone.append(_undo_of(one, annotator))
            rows_ = [decision.model_dump(exclude={"id"}) for decision in undone]
            self._database.insert_new(connection, decisions, rows_)
        return undone

    def latest(self, fingerprint: str) -> Decisions:
        """Return what holds: per cell the newest decision that was not undone, oldest first."""
        standing = sorted(self._standing(fingerprint), key=lambda row: bool(row.adjudicates))
        cells = {(row.instance_id, row.label): row for row in standing}
        return [_decision(row) for row in sorted(cells.values(), key=lambda row: int(row.id))]

    def by_annotator(self, fingerprint: str) -> dict[str, Decisions]:
        """Return for every annotator the newest decision on each cell that was not undone."""
        found: dict[str, Decisions] = defaultdict(list)
        for row in self._standing(fingerprint):
            found[row.annotator].append(_decision(row))
        return dict(found)

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

    def _standing(self, fingerprint: str) -> list[sa.Row[Any]]:
        with self._database.read() as connection:
            stacks = _stacks(self._rows(connection, fingerprint))
        standing = [stack[-1] for stack in stacks.values() if stack]
        return sorted(standing, key=lambda row: int(row.id))

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


def _stacks(rows: list[sa.Row[Any]]) -> dict[tuple[str, str, str], list[sa.Row[Any]]]:
    """Return what stands of each annotator on each cell, the newest last."""
    stacks: dict[tuple[str, str, str], list[sa.Row[Any]]] = defaultdict(list)
    for row in rows:
        stack = stacks[row.instance_id, row.label, row.annotator]
        if row.verdict != "undo":
            stack.append(row)
        elif stack:
            stack.pop()
    return stacks


def _undo_of(one: Decision, annotator: str) -> Decision:
    cell = {name: getattr(one, name) for name in ("fingerprint", "instance_id", "label", "run_id")}
    return Decision(**cell, uid=f"undo-{one.uid}", verdict="undo", annotator=annotator)


def _decision(row: sa.Row[Any]) -> Decision:
    return Decision(**dict(zip(_FIELDS, row, strict=True)))
