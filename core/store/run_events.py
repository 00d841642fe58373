"""The events of a run, inside a transaction: numbered without gaps, and stored once."""

import json
from collections.abc import Iterable
from typing import Annotated, Any, TypeAlias

import sqlalchemy as sa
from pydantic import Field, TypeAdapter
from sqlalchemy import Connection, select

from core.engine.events import EpochRecord, Event
from core.errors import StoreError
from core.store.run_rows import get_row, has_ended, update_row
from core.store.schema import events, now

Numbered: TypeAlias = list[tuple[int, Event]]
_EVENT: TypeAdapter[Event] = TypeAdapter(Annotated[Event, Field(discriminator="kind")])


def after(connection: Connection, run_id: str, seq: int) -> Numbered:
    """Return the events with a larger seq, in order."""
    later = (events.c.run_id == run_id) & (events.c.seq > seq)
    query = select(events.c.seq, events.c.data).where(later).order_by(events.c.seq)
    rows = connection.execute(query).all()
    return [(row.seq, _EVENT.validate_python(json.loads(row.data))) for row in rows]


def last_seq(connection: Connection, run_id: str) -> int:
    last = connection.scalar(select(sa.func.max(events.c.seq)).where(events.c.run_id == run_id))
    return -1 if last is None else int(last)


def append(
    connection: Connection,
    run_id: str,
    numbered: Iterable[tuple[int, Event]],
    claim: int | None = None,
) -> None:
    run, last = get_row(connection, run_id, claim), last_seq(connection, run_id)
    new = sorted((pair for pair in numbered if pair[0] > last), key=lambda pair: pair[0])
    if not new:
        return
    if run.state.is_ended:
        raise has_ended(run)
    found = [seq for seq, _ in new]
    if found != list(range(last + 1, last + 1 + len(new))):
        detail = f"Run {run_id}: after event {last} came {', '.join(map(str, found[:5]))}."
        raise StoreError("Events must be numbered without gaps.", detail, "Please report this.")
    connection.execute(sa.insert(events), [_event_row(run_id, seq, event) for seq, event in new])
    epochs = [event.epoch for _, event in new if isinstance(event, EpochRecord)]
    if epochs:
        update_row(connection, run_id, epoch=max(epochs))


def _event_row(run_id: str, seq: int, event: Event) -> dict[str, Any]:
    # json keeps values that are not numbers, which pydantic's JSON turns into null.
    data = json.dumps(event.model_dump())
    return {"run_id": run_id, "seq": seq, "time": now(), "kind": event.kind, "data": data}
