"""One run as a row: its states, and how it is read and changed inside a transaction."""

import json
from enum import StrEnum
from typing import Any, Literal

import sqlalchemy as sa
from pydantic import BaseModel, ConfigDict
from sqlalchemy import Connection, select, update

from core.engine.config import PlainConfig
from core.errors import ClaimLost, PlainError, RunEndedError, RunNotFound, StoreError
from core.store.schema import now, runs

Command = Literal["pause", "resume", "stop"]


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


ACTIVE = (RunState.RUNNING, RunState.PAUSED)


class RunRow(BaseModel):
    """One run as it was when read. Times are UTC text; heartbeats and process starts, seconds.

    `machine` has the run's files; `claim` counts the processes that took it. An active run without
    a heartbeat was launched: `pid` is then the process that launches it, or the one it started.
    """

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
    machine: str | None
    claim: int


BY_ID = select(runs).where(runs.c.id == sa.bindparam("wanted"))  # asked for all the time


def read_row(row: sa.Row[Any]) -> RunRow:
    values = dict(row._mapping)
    return RunRow(**{**values, "config": PlainConfig(**json.loads(values["config"]))})


def get_row(connection: Connection, run_id: str, claim: int | None = None) -> RunRow:
    """Return a run; with `claim`, only if that is still the number of its last claim."""
    row = connection.execute(BY_ID, {"wanted": run_id}).one_or_none()
    if row is None:
        raise not_found(run_id, [])
    if claim is not None and row.claim != claim:
        detail = f"Run {run_id}: this process has claim {claim}, the run is at {row.claim}."
        raise ClaimLost("Another process has taken over this run.", detail, "Nothing is lost.")
    return read_row(row)


def update_row(connection: Connection, run_id: str, **values: Any) -> None:
    connection.execute(update(runs).where(runs.c.id == run_id).values(**values))


def start_row(connection: Connection, run_id: str, **values: Any) -> RunRow:
    """Have a process take a run: it is running now, under the next number of its claims."""
    started = sa.func.coalesce(runs.c.started, now())
    taken = {"state": RunState.RUNNING, "claim": runs.c.claim + 1}
    update_row(connection, run_id, started=started, **taken, **values)
    return get_row(connection, run_id)


def answer_for_queued(connection: Connection, run: RunRow, command: Command) -> None:
    if command != "stop":
        raise StoreError("This run waits in the queue.", run.id, f"It cannot {command} yet.")
    update_row(connection, run.id, state=RunState.STOPPED, ended=now())


def not_found(run_id: str, begin_so: list[str]) -> PlainError:
    if len(begin_so) > 1:
        detail = f"{len(begin_so)} runs begin with {run_id!r}: {', '.join(begin_so[:5])}."
        return RunNotFound("Which run?", detail, "Give more of the id.")
    return RunNotFound("There is no such run.", f"Got {run_id!r}.", "List runs with: plain runs")


def has_ended(run: RunRow) -> RunEndedError:
    return RunEndedError(
        "This run has ended.", f"Run {run.id} is {run.state} and cannot change.", "Start a new one."
    )


def not_begun(run: RunRow) -> StoreError:
    return StoreError("This run has not begun.", f"Run {run.id} is {run.state}.", "Claim it first.")
