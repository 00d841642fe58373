"""Writes a run down as it goes: events in batches, confidences and checkpoints as files.

While the database does not answer, events and confidences wait here, in order, and training goes
on; when more would have to wait than fits, training waits too. Nothing is written to a file
before the claim was checked: a process that slept must not write over its successor's.
"""

import os
import traceback
from collections.abc import Callable
from contextlib import suppress
from time import monotonic, sleep
from types import TracebackType
from typing import Any, Self, TypeVar

import numpy as np
import numpy.typing as npt

from core.engine.events import EpochRecord, Event, RunEnded
from core.errors import (
    ClaimLost,
    DatabaseUnreachable,
    PlainError,
    RunEndedError,
    StoreError,
    StoreUnavailable,
)
from core.failpoints import failpoint
from core.runs.results import write_results
from core.store import RunRow, RunState, Workspace, files

CHECKPOINT_SECONDS = float(os.environ.get("PLAIN_CHECKPOINT_SECONDS", "3"))
CHECKPOINT_SHARE = 0.1
"""Of a run's time that may go into checkpoints; that of a million rows takes seconds."""

FLUSH_SECONDS = 0.8
MAX_EVENTS = 10_000
MAX_BYTES = 256 * 2**20
"""What may wait for a database at most: events, and confidences."""

DATABASE_SECONDS = 3600.0
"""How long a run waits for its database; then its process ends, and it can be resumed."""

INTERRUPTIONS = (StoreUnavailable, ClaimLost, RunEndedError, OSError)
"""What ends the process, but not the run: it is resumed when the cause is gone."""

T = TypeVar("T")


def retrying(call: Callable[[], T]) -> T:
    """Return what a call to the store returns, repeating it while the database does not answer."""
    give_up = monotonic() + DATABASE_SECONDS
    while True:
        try:
            return call()
        except DatabaseUnreachable:
            if monotonic() > give_up:
                raise
        sleep(FLUSH_SECONDS)


def checkpoint_interval(spent: float, least: float = CHECKPOINT_SECONDS) -> float:
    """Return how long to wait after a checkpoint that took so long; 0 as the least is none."""
    return max(least, spent * (1 / CHECKPOINT_SHARE - 1)) if least else 0.0


class Recorder:
    """Records one claimed run; used as a context, also that it failed, and why."""

    def __init__(self, workspace: Workspace, run: RunRow) -> None:
        self._runs, self._run, self._share = workspace.runs, run, workspace.share
        self._folder = workspace.runs.folder(run.id)
        self._waiting: list[tuple[int, Event]] = []
        self._rows: list[npt.NDArray[np.float32]] = []  # confidences of the waiting epochs
        self._seq, self._saved, self._interval = 0, monotonic(), CHECKPOINT_SECONDS
        self._next_flush = self._next_try = monotonic()
        path = self._folder / "confidences.f16"
        with files.disk_errors(path):
            path.touch(mode=0o600)
            self._history = path.open("r+b", buffering=0)

    def add(self, event: Event, trainer: Any) -> None:
        """Record an event, at once or a little later."""
        is_epoch = isinstance(event, EpochRecord)
        if isinstance(event, EpochRecord):
            self._seq = event.epoch + 1  # after run_started and graphs_built
            self._rows.append(trainer.cell_confidences)
        self._waiting.append((self._seq, event))
        self._seq += 1
        now = monotonic()
        if now < self._next_try and not self._is_full():
            return
        if is_epoch and now - self._saved >= self._interval:
            if self._flush(durable=True):
                begin = monotonic()
                self._save(trainer.checkpoint())
                self._interval = checkpoint_interval(self._saved - begin)
        elif now >= self._next_flush or not is_epoch:
            self._flush(durable=False)

    def end(self, event: RunEnded, checkpoint: dict[str, npt.NDArray[Any]]) -> None:
        """Write the results, then the end: an ended run has all its files."""
        retrying(lambda: self._write(durable=True))
        failpoint("worker.before_results")
        write_results(self._folder, checkpoint)
        with files.disk_errors(self._folder / "confidences.f16"):
            os.fsync(self._history.fileno())
        failpoint("worker.before_finish")
        self._finish(RunState(event.state), event.error, (event.epochs + 2, event))
        failpoint("worker.after_finish")

    def fail(self, message: str) -> None:
        """End as failed; where even that cannot be written, the run shows as interrupted."""
        with suppress(StoreError):
            retrying(lambda: self._write(durable=False))
            run = retrying(lambda: self._runs.get(self._run.id))
            event = RunEnded(state="failed", epochs=run.epoch, seconds=0.0, error=message)
            last = retrying(lambda: self._runs.last_seq(run.id))
            self._finish(RunState.FAILED, message, (last + 1, event))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if isinstance(error, Exception) and not isinstance(error, INTERRUPTIONS):
                traceback.print_exception(error)
                is_ours = isinstance(error, PlainError)
                self.fail(str(error) if is_ours else f"{type(error).__name__}: {error}")
        finally:
            self._history.close()

    def _finish(self, state: RunState, error: str | None, last: tuple[int, Event]) -> None:
        claim = self._run.claim
        retrying(
            lambda: self._runs.finish(self._run.id, state, error, last_events=[last], claim=claim)
        )

    def _save(self, checkpoint: dict[str, npt.NDArray[Any]]) -> None:
        failpoint("worker.before_checkpoint")
        path = self._folder / "checkpoint.npz"
        with suppress(DatabaseUnreachable):  # the next checkpoint will do
            with files.replacing(path, check=self._check_claim) as file:
                files.save_arrays(file, checkpoint)
            failpoint("worker.after_checkpoint")
            self._share(f"runs/{self._run.id}")  # should this machine not come back
        self._saved = monotonic()

    def _check_claim(self) -> None:
        self._runs.check_claim(self._run.id, self._run.claim)

    def _flush(self, durable: bool) -> bool:
        """Write what waits; false while the database does not answer."""
        begin = monotonic()
        try:
            self._write(durable)
        except DatabaseUnreachable:
            if self._is_full():
                retrying(lambda: self._write(durable))
                return True
            spent = monotonic() - begin  # an address that does not even refuse costs seconds
            self._next_try = monotonic() + max(FLUSH_SECONDS, 5 * spent)
            return False
        return True

    def _write(self, durable: bool) -> None:
        """Write confidences, then events: an epoch that is told has its confidences."""
        if self._rows:
            self._check_claim()
            rows = _float16(np.stack(self._rows))
            epochs_before = self._seq - 2 - len(rows)
            with files.disk_errors(self._folder / "confidences.f16"):
                self._history.seek(epochs_before * rows[0].nbytes)
                files.write_all(self._history, rows.tobytes())
            self._rows.clear()
            failpoint("worker.before_events")
        self._runs.append_events(
            self._run.id, self._waiting, durable=durable, claim=self._run.claim
        )
        failpoint("worker.after_events")
        self._waiting.clear()
        self._next_flush = monotonic() + FLUSH_SECONDS

    def _is_full(self) -> bool:
        n_bytes = sum(row.nbytes for row in self._rows[:1]) * len(self._rows)
        return len(self._waiting) >= MAX_EVENTS or n_bytes >= MAX_BYTES


def _float16(rows: npt.NDArray[np.float32]) -> npt.NDArray[np.float16]:
    """Convert with torch: the processor has an instruction for it that numpy does not use."""
    import torch

    half: npt.NDArray[np.float16] = torch.from_numpy(rows).half().numpy()
    return half
