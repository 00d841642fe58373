"""Runs: their settings, states, commands and events.

States go queued → running ⇄ paused → finished | stopped | failed. "Interrupted" is not stored: it
is a running or paused run whose process is gone, which only `core.worker` can tell; it is then
either put back into the queue (`requeue`) or ended (`finish`).

An ended run is immutable: events, state and commands are refused with `RunEndedError`; only name,
note and whether it is deleted may change. Events carry a `seq` without gaps from 0; one that is
already stored is ignored, so that a resumed training may repeat what it told.

All methods may be called from many threads and processes. Except for `get`, ids are whole ids.
"""

import json
import shutil
import time
from collections.abc import Collection, Iterable
from enum import StrEnum
from pathlib import Path
from secrets import choice
from typing import Annotated, Any, Literal, TypeAlias

import sqlalchemy as sa
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter
from sqlalchemy import Connection, select, update

from core.config import PlainConfig
from core.errors import DatasetNotFound, PlainError, RunEndedError, RunNotFound, StoreError
from core.events import EpochRecord, Event
from core.store.database import Database
from core.store.files import telling_disk, write_json
from core.store.schema import datasets, events, now, runs

Command = Literal["pause", "resume", "stop"]

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"  # Crockford's base 32: sorts, has no look-alikes
_EVENT: TypeAdapter[Event] = TypeAdapter(Annotated[Event, Field(discriminator="kind")])


class RunState(StrEnum):
    """Where a run is in its life."""

    QUEUED = "queued"
    RUNNING = "running"
    PAUSED = "paused"
    FINISHED = "finished"
    STOPPED = "stopped"
    FAILED = "failed"

    @property
    def is_ended(self) -> bool:
        return self in (RunState.FINISHED, RunState.STOPPED, RunState.FAILED)


_ACTIVE = (RunState.RUNNING, RunState.PAUSED)
_LIVE = (RunState.QUEUED, *_ACTIVE)
_ANSWERED_BY: dict[RunState, Command] = {RunState.PAUSED: "pause", RunState.RUNNING: "resume"}


class RunRow(BaseModel):
    """One run as it was when read. Times are UTC text; heartbeats and process starts, seconds."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    fingerprint: str
    name: str
    note: str
    state: RunState
    command: Command | None
    config: PlainConfig
    created: str
    started: str | None
    ended: str | None
    epoch: int
    error: str | None
    pid: int | None
    pid_started: float | None
    heartbeat: float | None
    deleted: str | None


RunRows: TypeAlias = list[RunRow]
NumberedEvents: TypeAlias = list[tuple[int, Event]]


_BY_ID = select(runs).where(runs.c.id == sa.bindparam("wanted"))  # asked for all the time


class RunStore:
    """The runs of one workspace."""

    def __init__(self, database: Database, folder: Path) -> None:
        self._database, self._folder = database, folder
        self._made = dict[str, Path]()  # folders that were asked for

    def create(
        self, fingerprint: str, config: PlainConfig, name: str = "", note: str = ""
    ) -> RunRow:
        """Queue a run on a data set of this workspace."""
        run_id = new_id()
        row = {
            "id": run_id,
            "fingerprint": fingerprint,
            "name": clean(name),
            "note": clean(note),
            "state": RunState.QUEUED,
            "config": config.model_dump_json(),
            "created": now(),
            "epoch": 0,
        }
        with self._database.write() as connection:
            require_dataset(connection, fingerprint)
            connection.execute(sa.insert(runs).values(row))
            return _get(connection, run_id)

    def get(self, run_id: str) -> RunRow:
        """Return the run with this id, or the only one whose id begins so."""
        begins = runs.c.id.startswith(run_id.strip().lower() or " ", autoescape=True)
        with self._database.read() as connection:
            found = connection.execute(_BY_ID, {"wanted": run_id}).all()
            if not found:
                found = connection.execute(select(runs).where(begins).order_by(runs.c.id)).all()
        if len(found) != 1:
            raise _not_found(run_id, [row.id for row in found])
        return _run(found[0])

    def list(self, include_deleted: bool = False) -> RunRows:
        """Return all runs, the newest first."""
        query = select(runs).order_by(runs.c.created.desc(), runs.c.id.desc())
        if not include_deleted:
            query = query.where(runs.c.deleted.is_(None))
        with self._database.read() as connection:
            return [_run(row) for row in connection.execute(query)]

    def folder(self, run_id: str) -> Path:
        """Return the folder of the run's files; made, with its `config.json`, when first asked."""
        if run_id in self._made and (self._made[run_id] / "config.json").exists():
            return self._made[run_id]
        run = self._exactly(run_id)
        folder = self._folder / "runs" / run.id
        with telling_disk(folder):
            folder.mkdir(parents=True, exist_ok=True)
        if not (folder / "config.json").exists():
            write_json(folder / "config.json", run.config.model_dump(mode="json"))
        self._made[run_id] = folder
        return folder

    def claim_next(self, max_running: int, *, dead: Collection[str] = ()) -> RunRow | None:
        """Take the oldest queued run, unless as many as allowed are running or paused.

        It is running from now on, without a process: the process records itself with `claim`.
        Runs named in `dead`, those the caller knows to have lost their process, do not count.
        """
        waiting = select(runs.c.id).where(runs.c.state == RunState.QUEUED, runs.c.deleted.is_(None))
        with self._database.write() as connection:
            if _n_active(connection, dead) >= max_running:
                return None
            run_id = connection.scalar(waiting.order_by(runs.c.created, runs.c.id).limit(1))
            return None if run_id is None else _start(connection, run_id)

    def claim(
        self,
        run_id: str,
        pid: int,
        pid_started: float,
        *,
        max_running: int | None = None,
        dead: Collection[str] = (),
    ) -> RunRow | None:
        """Make this process the one that runs a queued run, or one taken by `claim_next`.

        None when another process has it, or it would be one too many.
        """
        with self._database.write() as connection:
            run = _get(connection, run_id)
            if run.state.is_ended:
                raise _ended(run)
            if run.deleted:
                raise RunNotFound("This run was deleted.", run_id, "Restore it first.")
            if run.pid is not None or run.state is RunState.PAUSED:
                return None
            full = max_running is not None and _n_active(connection, dead) >= max_running
            if run.state is RunState.QUEUED and full:
                return None
            return _start(connection, run_id, pid=pid, pid_started=pid_started)

    def requeue(self, run: RunRow) -> bool:
        """Put a run whose process is gone back into the queue.

        `run` is the row by which it was found dead. False when it has shown life since, or
        another server was first.
        """
        same = [runs.c[name].is_not_distinct_from(getattr(run, name)) for name in _PROCESS]
        queued = {"state": RunState.QUEUED, "command": None, **dict.fromkeys(_PROCESS)}
        with self._database.write() as connection:
            change = update(runs).where(runs.c.id == run.id, runs.c.state.in_(_ACTIVE), *same)
            return connection.execute(change.values(queued)).rowcount == 1

    def set_state(self, run_id: str, state: RunState) -> None:
        """Record that a claimed run is running or paused; the command this answers is done."""
        if state.is_ended:
            return self.finish(run_id, state)
        if state is RunState.QUEUED:
            raise ValueError("use requeue() to put a run back into the queue")
        answered = sa.case((runs.c.command == _ANSWERED_BY[state], None), else_=runs.c.command)
        return self._change(run_id, _ACTIVE, state=state, command=answered)

    def heartbeat(self, run_id: str) -> bool:
        """Record that the run's process lives; false when the run is not one that should."""
        change = update(runs).where(runs.c.id == run_id, runs.c.state.in_(_ACTIVE))
        with self._database.write(durable=False) as connection:
            return connection.execute(change.values(heartbeat=time.time())).rowcount == 1

    def command(self, run_id: str, command: Command) -> None:
        """Ask a run to pause, resume or stop; the last one asked holds, but nothing undoes stop.

        A queued run is stopped at once, for it has no process that could answer. What asks for
        the present state is kept too: the process may be about to leave it.
        """
        with self._database.write() as connection:
            run = _get(connection, run_id)
            if run.state.is_ended:
                raise _ended(run)
            if run.state is RunState.QUEUED:
                _answer_for_queued(connection, run, command)
            elif run.command != "stop":
                _update(connection, run_id, command=command)

    def pending_command(self, run_id: str) -> Command | None:
        """Return what the run was asked and has not done yet; cheap enough to ask all the time."""
        with self._database.read() as connection:
            found: Command | None = connection.scalar(
                select(runs.c.command).where(runs.c.id == run_id)
            )
        return found

    def finish(
        self,
        run_id: str,
        state: RunState,
        error: str | None = None,
        *,
        last_events: Iterable[tuple[int, Event]] = (),
    ) -> None:
        """End the run, its last events in the same transaction. After this it is immutable."""
        if not state.is_ended:
            raise ValueError(f"a run cannot end as {state}")
        values = {"state": state, "ended": now(), "command": None}
        with self._database.write() as connection:
            _append(connection, run_id, last_events)
            run = _get(connection, run_id)
            if run.state.is_ended:
                raise _ended(run)
            _update(connection, run_id, error=None if error is None else clean(error), **values)

    def append_events(
        self, run_id: str, numbered: Iterable[tuple[int, Event]], *, durable: bool = True
    ) -> None:
        """Store events in one transaction; those already stored are ignored, a gap is refused.

        Events told before a checkpoint must be durable, or a power cut could leave a gap.
        """
        with self._database.write(durable=durable) as connection:
            _append(connection, run_id, numbered)

    def events_after(self, run_id: str, seq: int = -1, limit: int | None = None) -> NumberedEvents:
        """Return the events with a larger seq, in order."""
        query = select(events.c.seq, events.c.data).where(
            events.c.run_id == run_id, events.c.seq > seq
        )
        with self._database.read() as connection:
            rows = connection.execute(query.order_by(events.c.seq).limit(limit)).all()
        return [(row.seq, _EVENT.validate_python(json.loads(row.data))) for row in rows]

    def last_seq(self, run_id: str) -> int:
        """Return the seq of the last event, -1 when there is none."""
        with self._database.read() as connection:
            return _last_seq(connection, run_id)

    def rename(self, run_id: str, name: str) -> None:
        """Give the run another name."""
        self._change(run_id, name=clean(name))

    def annotate(self, run_id: str, note: str) -> None:
        """Replace the run's note."""
        self._change(run_id, note=clean(note))

    def delete(self, run_id: str) -> None:
        """Hide a run that is not at work; `restore` undoes it, `purge` makes it final."""
        with self._database.write() as connection:
            run = _get(connection, run_id)
            if run.state in _ACTIVE:
                raise StoreError(f"This run is {run.state}.", run_id, "Stop it first.")
            _update(connection, run_id, deleted=run.deleted or now())

    def restore(self, run_id: str) -> None:
        """Undo `delete`."""
        self._change(run_id, deleted=None)

    def purge(self, run_id: str) -> None:
        """Remove a deleted run for good: files, events and row. Decisions made on it stay."""
        if not self._exactly(run_id).deleted:
            raise StoreError("Only a deleted run can be removed for good.", run_id)
        folder = self._folder / "runs" / run_id
        with telling_disk(folder):
            if folder.exists():
                shutil.rmtree(folder)
        with self._database.write() as connection:
            connection.execute(sa.delete(runs).where(runs.c.id == run_id))

    def _exactly(self, run_id: str) -> RunRow:
        with self._database.read() as connection:
            return _get(connection, run_id)

    def _change(
        self, run_id: str, states: tuple[RunState, ...] = tuple(RunState), **values: Any
    ) -> None:
        with self._database.write() as connection:
            run = _get(connection, run_id)
            if run.state not in states:
                raise _ended(run) if run.state.is_ended else _unclaimed(run)
            _update(connection, run_id, **values)


_PROCESS = ("pid", "pid_started", "heartbeat")


def require_dataset(connection: Connection, fingerprint: str) -> None:
    """Raise `DatasetNotFound` unless the workspace knows this data set."""
    known = select(datasets.c.fingerprint).where(datasets.c.fingerprint == fingerprint)
    if connection.scalar(known) is None:
        raise DatasetNotFound(
            "This data set is not in the workspace.",
            f"Fingerprint {fingerprint}.",
            "Load it first.",
        )


def clean(text: str) -> str:
    """Return free text as every database takes it: without NUL and half surrogate pairs."""
    return text.replace("\0", "\ufffd").encode("utf-8", "replace").decode()


def new_id() -> str:
    """Nine characters of time in milliseconds, four of chance: sorts by age, fits any path."""
    stamp = time.time_ns() // 1_000_000
    digits = "".join(_ALPHABET[stamp >> shift & 31] for shift in range(40, -1, -5))
    return digits + "".join(choice(_ALPHABET) for _ in range(4))


def _run(row: sa.Row[Any]) -> RunRow:
    values = dict(row._mapping)
    return RunRow(**{**values, "config": PlainConfig(**json.loads(values["config"]))})


def _get(connection: Connection, run_id: str) -> RunRow:
    row = connection.execute(_BY_ID, {"wanted": run_id}).one_or_none()
    if row is None:
        raise _not_found(run_id, [])
    return _run(row)


def _update(connection: Connection, run_id: str, **values: Any) -> None:
    connection.execute(update(runs).where(runs.c.id == run_id).values(**values))


def _start(connection: Connection, run_id: str, **process: Any) -> RunRow:
    started = sa.func.coalesce(runs.c.started, now())
    alive = {"state": RunState.RUNNING, "heartbeat": time.time(), **process}
    _update(connection, run_id, started=started, **alive)
    return _get(connection, run_id)


def _n_active(connection: Connection, dead: Collection[str]) -> int:
    active = runs.c.state.in_(_ACTIVE) & runs.c.id.not_in(list(dead))
    return connection.scalar(select(sa.func.count()).select_from(runs).where(active)) or 0


def _answer_for_queued(connection: Connection, run: RunRow, command: Command) -> None:
    if command != "stop":
        raise StoreError("This run waits in the queue.", run.id, f"It cannot {command} yet.")
    _update(connection, run.id, state=RunState.STOPPED, ended=now())


def _last_seq(connection: Connection, run_id: str) -> int:
    last = connection.scalar(select(sa.func.max(events.c.seq)).where(events.c.run_id == run_id))
    return -1 if last is None else int(last)


def _append(connection: Connection, run_id: str, numbered: Iterable[tuple[int, Event]]) -> None:
    run, last = _get(connection, run_id), _last_seq(connection, run_id)
    new = sorted((pair for pair in numbered if pair[0] > last), key=lambda pair: pair[0])
    if not new:
        return
    if run.state.is_ended:
        raise _ended(run)
    found = [seq for seq, _ in new]
    if found != list(range(last + 1, last + 1 + len(new))):
        detail = f"Run {run_id}: after event {last} came {', '.join(map(str, found[:5]))}."
        raise StoreError("Events must be numbered without gaps.", detail, "Please report this.")
    connection.execute(sa.insert(events), [_event_row(run_id, seq, event) for seq, event in new])
    epochs = [event.epoch for _, event in new if isinstance(event, EpochRecord)]
    if epochs:
        _update(connection, run_id, epoch=max(epochs))


def _event_row(run_id: str, seq: int, event: Event) -> dict[str, Any]:
    # json keeps values that are not numbers, which pydantic's JSON turns into null.
    data = json.dumps(event.model_dump())
    return {"run_id": run_id, "seq": seq, "time": now(), "kind": event.kind, "data": data}


def _not_found(run_id: str, begin_so: list[str]) -> PlainError:
    if len(begin_so) > 1:
        detail = f"{len(begin_so)} runs begin with {run_id!r}: {', '.join(begin_so[:5])}."
        return RunNotFound("Which run?", detail, "Give more of the id.")
    return RunNotFound("There is no such run.", f"Got {run_id!r}.", "List runs with: plain runs")


def _ended(run: RunRow) -> RunEndedError:
    return RunEndedError(
        "This run has ended.", f"Run {run.id} is {run.state} and cannot change.", "Start a new one."
    )


def _unclaimed(run: RunRow) -> StoreError:
    return StoreError("This run has not begun.", f"Run {run.id} is {run.state}.", "Claim it first.")
