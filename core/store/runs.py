"""Runs: their settings, states, commands and events.

States go queued → running ⇄ paused → finished | stopped | failed. "Interrupted" is not stored: it
is a running or paused run whose process is gone, which only `core.runs.worker` can tell; it is then
either put back into the queue (`requeue`) or ended (`finish`).

A run's files are on one machine, and only that one claims it. Every claim has a number, larger
than the last; whoever gives its number with a write is refused with `ClaimLost` once another
process has taken the run, in the same transaction that would have written.

An ended run is immutable: events, state and commands are refused with `RunEndedError`; only name,
note and whether it is deleted may change. Events carry a `seq` without gaps from 0; one that is
already stored is ignored, so that a resumed training may repeat what it told.

All methods may be called from many threads and processes. Except for `get`, ids are whole ids.
"""

import shutil
import time
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeAlias

import sqlalchemy as sa
from sqlalchemy import Connection, select, update

from core.engine.config import PlainConfig
from core.engine.events import Event
from core.errors import DatasetNotFound, RunNotFound, StoreError
from core.store import run_events
from core.store.database import Database
from core.store.files import disk_errors, write_json
from core.store.machines import Machines
from core.store.permissions import make_private_folder
from core.store.run_rows import (
    ACTIVE,
    BY_ID,
    Command,
    RunRow,
    RunState,
    answer_for_queued,
    get_row,
    has_ended,
    not_begun,
    not_found,
    read_row,
    start_row,
    update_row,
)
from core.store.schema import datasets, new_id, now, runs, storable

_ANSWERED_BY: dict[RunState, Command] = {RunState.PAUSED: "pause", RunState.RUNNING: "resume"}
_PROCESS = ("pid", "pid_started", "heartbeat")

RunRows: TypeAlias = list[RunRow]


class RunStore:
    """The runs of one workspace."""

    def __init__(self, database: Database, folder: Path, machines: Machines) -> None:
        self._database, self._folder, self._machines = database, folder, machines
        self._stored = machines.stored
        self._made = dict[str, Path]()  # folders that were asked for

    def create(
        self,
        fingerprint: str,
        config: PlainConfig,
        name: str = "",
        *,
        prepare: Callable[[Path], object] | None = None,
        events: Iterable[tuple[int, Event]] = (),
    ) -> RunRow:
        """Queue a run on a data set whose files are here.

        `prepare` writes into its folder what the run begins with, and `events` are those it begins
        after: all of it is there before any process can take the run.
        """
        run_id = new_id()
        row = {
            "id": run_id,
            "fingerprint": fingerprint,
            "name": storable(name),
            "note": "",
            "state": RunState.QUEUED,
            "config": config.model_dump_json(),
            "created": now(),
            "epoch": 0,
            "machine": self._machines.here,
        }
        if prepare is not None:
            self._prepare_folder(run_id, prepare)
        with self._database.write() as connection:
            require_dataset(connection, fingerprint, self._machines)
            connection.execute(sa.insert(runs).values(row))
            run_events.append(connection, run_id, events)
            return get_row(connection, run_id)

    def get(self, run_id: str) -> RunRow:
        """Return the run with this id, or the only one whose id begins so."""
        begins = runs.c.id.startswith(run_id.strip().lower() or " ", autoescape=True)
        with self._database.read() as connection:
            found = connection.execute(BY_ID, {"wanted": run_id}).all()
            if not found:
                found = connection.execute(select(runs).where(begins).order_by(runs.c.id)).all()
        if len(found) != 1:
            raise not_found(run_id, [row.id for row in found])
        return read_row(found[0])

    def list(
        self, fingerprint: str | None = None, *, active: bool = False, include_deleted: bool = False
    ) -> RunRows:
        """Return the runs, those on one data set, or those at work, the newest first."""
        query = select(runs).order_by(runs.c.created.desc(), runs.c.id.desc())
        if fingerprint is not None:
            query = query.where(runs.c.fingerprint == fingerprint)
        if active:
            query = query.where(runs.c.state.in_(ACTIVE))
        if not include_deleted:
            query = query.where(runs.c.deleted.is_(None))
        with self._database.read() as connection:
            return [read_row(row) for row in connection.execute(query)]

    def elsewhere(self, run: RunRow) -> str | None:
        """Return the name of the machine that has the run's files; none when this one gets them."""
        is_here = run.machine == self._machines.here
        if is_here or (run.state.is_ended and self._stored.can_fetch(f"runs/{run.id}")):
            return None
        return self._machines.name(run.machine)

    def folder(self, run_id: str) -> Path:
        """Return the folder of the run's files; made, with its `config.json`, when first asked.

        Those of an ended run of another machine are fetched from object storage.
        """
        if run_id in self._made and (self._made[run_id] / "config.json").exists():
            return self._made[run_id]
        owner, folder = f"runs/{run_id}", self._folder / "runs" / run_id
        run = self.get(run_id)
        if run.state.is_ended and not folder.is_dir() and self._stored.can_fetch(owner):
            return self._stored.fetch(owner)
        with self._database.read() as connection:
            self._own_row(connection, run_id)
        with disk_errors(folder):
            make_private_folder(folder)
        if not (folder / "config.json").exists():
            write_json(folder / "config.json", run.config.model_dump(mode="json"))
        self._made[run_id] = folder
        return folder

    def claim_next(
        self, max_running: int, pid: int, pid_started: float, *, dead: Collection[str] = ()
    ) -> RunRow | None:
        """Take the oldest queued run of this machine, unless as many as allowed are at work.

        It is running from now on, in the name of the process that launches it, until `hand_over`
        names the launched one and that one records itself with `claim`. Runs named in `dead`,
        those the caller knows to have lost their process, do not count.
        """
        mine = (runs.c.machine == self._machines.here) & runs.c.deleted.is_(None)
        waiting = select(runs.c.id).where(runs.c.state == RunState.QUEUED, mine)
        with self._database.write() as connection:
            if self._n_active(connection, dead) >= max_running:
                return None
            run_id = connection.scalar(waiting.order_by(runs.c.created, runs.c.id).limit(1))
            if run_id is None:
                return None
            return start_row(connection, run_id, pid=pid, pid_started=pid_started)

    def hand_over(self, run: RunRow, pid: int, pid_started: float) -> bool:
        """Name the process that was launched for a run; false where it claimed the run already."""
        is_launched = runs.c.state.in_(ACTIVE) & runs.c.heartbeat.is_(None)
        change = update(runs).where(runs.c.id == run.id, runs.c.claim == run.claim, is_launched)
        with self._database.write() as connection:
            changed = connection.execute(change.values(pid=pid, pid_started=pid_started))
            return changed.rowcount == 1

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
            run = self._own_row(connection, run_id)
            if run.state.is_ended:
                raise has_ended(run)
            if run.deleted:
                raise RunNotFound("This run was deleted.", run_id, "Restore it first.")
            if run.heartbeat is not None or run.state is RunState.PAUSED:
                return None
            full = max_running is not None and self._n_active(connection, dead) >= max_running
            if run.state is RunState.QUEUED and full:
                return None
            process = {"pid": pid, "pid_started": pid_started, "heartbeat": time.time()}
            return start_row(connection, run_id, error=None, **process)

    def requeue(self, run: RunRow) -> bool:
        """Put a run whose process is gone back into the queue.

        `run` is the row by which it was found dead. False when it has shown life since, or
        another server was first. Should the process only have slept, its claim is lost.
        """
        same = [
            runs.c[name].is_not_distinct_from(getattr(run, name)) for name in (*_PROCESS, "claim")
        ]
        queued = {"state": RunState.QUEUED, "command": None, **dict.fromkeys(_PROCESS)}
        with self._database.write() as connection:
            self._own_row(connection, run.id)
            change = update(runs).where(runs.c.id == run.id, runs.c.state.in_(ACTIVE), *same)
            changed = connection.execute(change.values(claim=runs.c.claim + 1, **queued))
            return changed.rowcount == 1

    def check_claim(self, run_id: str, claim: int) -> None:
        """Raise `ClaimLost` unless this is still the number of the last claim."""
        with self._database.read() as connection:
            if get_row(connection, run_id, claim).state not in ACTIVE:
                raise has_ended(get_row(connection, run_id))

    def set_state(self, run_id: str, state: RunState, claim: int | None = None) -> None:
        """Record that a claimed run is running or paused; the command this answers is done."""
        if state.is_ended or state is RunState.QUEUED:
            raise ValueError("use finish() to end a run, requeue() to put it back into the queue")
        answered = sa.case((runs.c.command == _ANSWERED_BY[state], None), else_=runs.c.command)
        with self._database.write() as connection:
            run = get_row(connection, run_id, claim)
            if run.state not in ACTIVE:
                raise has_ended(run) if run.state.is_ended else not_begun(run)
            update_row(connection, run_id, state=state, command=answered)

    def set_reason(self, run_id: str, reason: str, claim: int) -> None:
        """Record why the process of a run ends, for whoever finds the run interrupted."""
        with self._database.write() as connection:
            if get_row(connection, run_id, claim).state in ACTIVE:
                update_row(connection, run_id, error=storable(reason))

    def heartbeat(self, run_id: str, claim: int | None = None) -> bool:
        """Record that the run's process lives; false when the run is not its to work on."""
        change = update(runs).where(runs.c.id == run_id, runs.c.state.in_(ACTIVE))
        if claim is not None:
            change = change.where(runs.c.claim == claim)
        with self._database.write(durable=False) as connection:
            return connection.execute(change.values(heartbeat=time.time())).rowcount == 1

    def command(self, run_id: str, command: Command) -> None:
        """Ask a run to pause, resume or stop; the last one asked holds, but nothing undoes stop.

        A queued run is stopped at once, for it has no process that could answer. What asks for
        the present state is kept too: the process may be about to leave it.
        """
        with self._database.write() as connection:
            run = get_row(connection, run_id)
            if run.state.is_ended:
                raise has_ended(run)
            if run.state is RunState.QUEUED:
                answer_for_queued(connection, run, command)
            elif run.command != "stop":
                update_row(connection, run_id, command=command)

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
        claim: int | None = None,
    ) -> None:
        """End the run, its last events in the same transaction. After this it is immutable.

        Whoever gives its claim may end the run in the same way again.
        """
        if not state.is_ended:
            raise ValueError(f"a run cannot end as {state}")
        values = {"state": state, "ended": now(), "command": None}
        with self._database.write() as connection:
            run_events.append(connection, run_id, last_events, claim)
            run = get_row(connection, run_id)
            if run.state is state and claim is not None:
                return
            if run.state.is_ended:
                raise has_ended(run)
            words = None if error is None else storable(error)
            update_row(connection, run_id, error=words, **values)

    def append_events(
        self,
        run_id: str,
        numbered: Iterable[tuple[int, Event]],
        *,
        durable: bool = True,
        claim: int | None = None,
    ) -> None:
        """Store events in one transaction; those already stored are ignored, a gap is refused.

        Events told before a checkpoint must be durable, or a power cut could leave a gap.
        """
        with self._database.write(durable=durable) as connection:
            run_events.append(connection, run_id, numbered, claim)

    def events_after(self, run_id: str, seq: int = -1) -> run_events.Numbered:
        """Return the events with a larger seq, in order."""
        with self._database.read() as connection:
            return run_events.after(connection, run_id, seq)

    def last_seq(self, run_id: str) -> int:
        """Return the seq of the last event, -1 when there is none."""
        with self._database.read() as connection:
            return run_events.last_seq(connection, run_id)

    def rename(self, run_id: str, name: str) -> None:
        """Give the run another name."""
        self._change(run_id, name=storable(name))

    def annotate(self, run_id: str, note: str) -> None:
        """Replace the run's note."""
        self._change(run_id, note=storable(note))

    def delete(self, run_id: str) -> None:
        """Hide a run that is not at work; `restore` undoes it, `purge` makes it final."""
        with self._database.write() as connection:
            run = get_row(connection, run_id)
            if run.state in ACTIVE:
                raise StoreError(f"This run is {run.state}.", run_id, "Stop it first.")
            update_row(connection, run_id, deleted=run.deleted or now())

    def restore(self, run_id: str) -> None:
        """Undo `delete`."""
        self._change(run_id, deleted=None)

    def purge(self, run_id: str) -> None:
        """Remove a deleted run for good: files, events and row. Decisions made on it stay."""
        with self._database.read() as connection:
            if not self._own_row(connection, run_id).deleted:
                raise StoreError("Only a deleted run can be removed for good.", run_id)
        self._stored.remove(f"runs/{run_id}")
        folder = self._folder / "runs" / run_id
        with disk_errors(folder), suppress(FileNotFoundError):
            shutil.rmtree(folder)
        with self._database.write() as connection:
            connection.execute(sa.delete(runs).where(runs.c.id == run_id))

    def _prepare_folder(self, run_id: str, prepare: Callable[[Path], object]) -> None:
        folder = self._folder / "runs" / run_id
        with disk_errors(folder):
            make_private_folder(folder)
        try:
            prepare(folder)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise

    def _own_row(self, connection: Connection, run_id: str) -> RunRow:
        """Return a run whose files are here; refuse another machine's."""
        run = get_row(connection, run_id)
        if run.machine != self._machines.here:
            what = f"Run {run.id} {run.name}".strip()
            raise self._machines.elsewhere(what, run.machine, f"runs/{run.id}")
        return run

    def _change(self, run_id: str, **values: Any) -> None:
        with self._database.write() as connection:
            get_row(connection, run_id)
            update_row(connection, run_id, **values)

    def _n_active(self, connection: Connection, dead: Collection[str]) -> int:
        active = runs.c.state.in_(ACTIVE) & (runs.c.machine == self._machines.here)
        count = select(sa.func.count()).select_from(runs)
        return connection.scalar(count.where(active, runs.c.id.not_in(list(dead)))) or 0


def require_dataset(
    connection: Connection, fingerprint: str, machines: Machines | None = None
) -> None:
    """Raise unless the workspace knows this data set and, with `machines`, has its files here."""
    known = select(datasets).where(datasets.c.fingerprint == fingerprint)
    row = connection.execute(known).one_or_none()
    if row is None:
        title = "This data set is not in the workspace."
        raise DatasetNotFound(title, f"Fingerprint {fingerprint}.", "Load it first.")
    if machines and row.machine != machines.here and not machines.has_data(fingerprint):
        raise machines.elsewhere(f"Data {row.name}", row.machine, f"datasets/{fingerprint}")
