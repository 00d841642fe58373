"""What labels are called: renamed and merged without touching the data. Rows are only ever added.

Decisions and runs keep the names of the data; the names given here are what people see and what
is exported. Labels with one name are one label: it is true where any of them is.
"""

from collections.abc import Sequence
from typing import Literal
from uuid import uuid4

import sqlalchemy as sa
from pydantic import BaseModel, ConfigDict
from sqlalchemy import Connection, select

from core.errors import StoreError
from core.store.database import Database
from core.store.runs import require_dataset
from core.store.schema import label_changes, now, storable


class LabelChange(BaseModel):
    """One row: `label`, as the data calls it, is now called `name`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: int
    uid: str
    fingerprint: str
    kind: Literal["rename", "merge", "undo"]
    label: str
    name: str
    annotator: str
    time: str


class LabelStore:
    """The label names of one workspace. May be used from many threads and processes."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def names(self, fingerprint: str, labels: Sequence[str]) -> list[str]:
        """Return what each of the data's labels is called now."""
        with self._database.read() as connection:
            return _names(_rows(connection, fingerprint), labels)

    def rename(
        self, fingerprint: str, labels: Sequence[str], label: str, name: str, annotator: str
    ) -> None:
        """Call one of the data's `labels` otherwise; a name that is taken is refused."""
        self._change("rename", fingerprint, labels, label, name, annotator)

    def merge(
        self, fingerprint: str, labels: Sequence[str], label: str, into: str, annotator: str
    ) -> None:
        """Make a label one with another, which is named as it is called now."""
        self._change("merge", fingerprint, labels, label, into, annotator)

    def undo(self, fingerprint: str, annotator: str) -> LabelChange | None:
        """Take the newest change that stands back; return it, or none where nothing stands."""
        with self._database.write() as connection:
            changes = _in_effect(_rows(connection, fingerprint))
            if not changes:
                return None
            last = changes[-1]
            _insert(connection, fingerprint, "undo", last.label, last.name, annotator)
        return last

    def history(self, fingerprint: str) -> list[LabelChange]:
        """Return every row ever stored, oldest first."""
        with self._database.read() as connection:
            return _rows(connection, fingerprint)

    def _change(
        self,
        kind: Literal["rename", "merge"],
        fingerprint: str,
        labels: Sequence[str],
        label: str,
        name: str,
        annotator: str,
    ) -> None:
        name = storable(name).strip()
        if label not in labels or not name:
            detail = f"Got {label!r}, to be called {name!r}."
            raise StoreError("A label of the data and a name are needed.", detail)
        with self._database.write() as connection:
            require_dataset(connection, fingerprint)
            names = _names(_rows(connection, fingerprint), labels)
            taken = {now for old, now in zip(labels, names, strict=True) if old != label}
            if kind == "rename" and name in taken:
                raise StoreError("This name is taken.", name, "Merge the two labels instead.")
            if kind == "merge" and name not in taken:
                raise StoreError("There is no label to merge into.", name)
            _insert(connection, fingerprint, kind, label, name, annotator)


def _insert(
    connection: Connection, fingerprint: str, kind: str, label: str, name: str, annotator: str
) -> None:
    row = {"uid": uuid4().hex, "fingerprint": fingerprint, "kind": kind, "label": label}
    row |= {"name": name, "annotator": storable(annotator), "time": now()}
    connection.execute(sa.insert(label_changes).values(row))


def _rows(connection: Connection, fingerprint: str) -> list[LabelChange]:
    query = select(label_changes).where(label_changes.c.fingerprint == fingerprint)
    found = connection.execute(query.order_by(label_changes.c.id))
    return [LabelChange(**row._mapping) for row in found]


def _in_effect(rows: list[LabelChange]) -> list[LabelChange]:
    """Return the changes that were not undone."""
    changes: list[LabelChange] = []
    for row in rows:
        if row.kind != "undo":
            changes.append(row)
        elif changes:
            changes.pop()
    return changes


def _names(rows: list[LabelChange], labels: Sequence[str]) -> list[str]:
    called = {row.label: row.name for row in _in_effect(rows)}
    return [called.get(label, label) for label in labels]
