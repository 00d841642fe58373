"""Runs a training here, or launches the same in a child process that outlives its parent.

Only one process works on a run: it holds `worker.lock`, which the system frees however it dies.
An active run whose lock is free was interrupted. Everything is written so that doing it again
changes nothing: events have fixed numbers, confidences fixed places. A resumed run therefore
repeats what came after its checkpoint and ends bit for bit as if it had not been interrupted.
"""

import os
import subprocess
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from time import monotonic, sleep, time
from typing import Any

import filelock
import numpy as np
import numpy.typing as npt
import psutil

from core import background
from core.dataset import CandidateDataset
from core.errors import PlainError, StopTraining, StoreError
from core.events import EpochRecord, Event, GraphsBuilt, RunEnded
from core.graphs import build_label_graph
from core.results import (
    give_graphs,
    keep_graphs,
    load_graphs,
    read_checkpoint,
    read_graphs,
    write_results,
)
from core.store import RunRow, RunState, Workspace, files

CHECKPOINT_SECONDS = 3.0
FLUSH_SECONDS = 0.8
POLL_SECONDS = 0.4
HEARTBEAT_SECONDS = 1.0
STARTING_SECONDS = 30.0
"""How long a run may be without a process that was launched for it."""

_children: list[subprocess.Popen[bytes]] = []


def run_training(
    workspace: Workspace,
    run_id: str,
    *,
    on_event: Callable[[Event], None] = lambda _: None,
    stop: threading.Event | None = None,
) -> RunRow:
    """Train a queued or interrupted run in this process, to its end.

    Parameters
    ----------
    on_event : told every event, also those of a resumed run that are already stored
    stop : set it to end the run after its last whole epoch
    """
    run = workspace.runs.get(run_id)
    folder = workspace.runs.folder(run.id)
    with _locked(folder):
        _claim(workspace, run)
        files.remove_leftovers(folder)
        dataset = workspace.load_dataset(run.fingerprint)
        control = _Control(workspace, run.id, stop or threading.Event())
        with control.watching():
            _train(workspace, run, dataset, control, on_event)
    return workspace.runs.get(run.id)


def log_of(workspace: Workspace, run_id: str) -> Path:
    """Return where the words of a run's process go."""
    return workspace.runs.folder(run_id) / "worker.log"


def load_engine() -> None:
    """Load all that a run needs, by a tiny one."""
    from core.config import PlainConfig
    from core.layout import pca_layout
    from core.trainer import PlainTrainer

    X = np.eye(12, 6, dtype=np.float32) + np.eye(12, 6, -6, np.float32)
    dataset = CandidateDataset(X, np.tile(np.eye(3, dtype=np.uint8), (4, 1)))
    for _ in PlainTrainer(PlainConfig.preset("studio", epochs=1)).epochs(dataset):
        pca_layout(X)


def launch(workspace: Workspace, run_id: str) -> None:
    """Start a run in a child process of its own, or let it wait in the queue."""
    run = workspace.runs.get(run_id)
    if is_interrupted(workspace, run):
        workspace.runs.requeue(run)
    tend(workspace)


def tend(workspace: Workspace) -> None:
    """Start queued runs as far as allowed. Cheap; call it whenever a run may have ended."""
    _children[:] = [child for child in _children if child.poll() is None]
    while True:
        dead = [run.id for run in workspace.runs.list() if is_interrupted(workspace, run)]
        run = workspace.runs.claim_next(workspace.max_running, dead=dead)
        if run is None:
            return
        _spawn(workspace, run.id)


def is_interrupted(workspace: Workspace, run: RunRow) -> bool:
    """Whether a run that should be at work has lost its process."""
    if run.state not in (RunState.RUNNING, RunState.PAUSED):
        return False
    if run.pid is None:  # claimed for a child that has not reported yet
        return time() - (run.heartbeat or 0) > STARTING_SECONDS
    lock = workspace.folder / "runs" / run.id / "worker.lock"
    if not lock.exists():  # its folder is on another machine
        return time() - (run.heartbeat or 0) > STARTING_SECONDS
    return not background.is_locked(lock)


def stop(workspace: Workspace, run_id: str) -> None:
    """End a run, also one that was interrupted: its results are those of its last checkpoint."""
    run = workspace.runs.get(run_id)
    if not is_interrupted(workspace, run):
        workspace.runs.command(run.id, "stop")
        return
    with _locked(workspace.runs.folder(run.id)):
        last = workspace.runs.last_seq(run.id)
        ended = RunEnded(state="stopped", epochs=run.epoch, seconds=0.0)
        checkpoint = read_checkpoint(workspace, run)
        if checkpoint is not None:
            checkpoint["confidence"] = _calibrated(workspace, run, checkpoint)
            write_results(workspace.runs.folder(run.id), checkpoint)
        workspace.runs.finish(run.id, RunState.STOPPED, last_events=[(last + 1, ended)])


def retrain(workspace: Workspace, run_id: str, name: str = "") -> RunRow:
    """Queue a run that goes on where an ended one stopped, with the decisions that stand applied.

    It begins with that run's weights, takes half its epochs, and fits what the review says of
    every cell: what was rejected is 0, what was kept 1, the rest as confident as it is now.
    (Only taking rejected candidates out teaches the wrong thing: doubtful ones, which are asked
    first, become rarer than plainly false ones, which are not.) Launch it like any other.
    """
    from core.review.load import load_reviewer

    run = workspace.runs.get(run_id)
    checkpoint = read_checkpoint(workspace, run) if run.state.is_ended else None
    if checkpoint is None:
        raise StoreError("This run has no results to go on from.", run.id, "Choose an ended run.")
    reviewer = load_reviewer(workspace, run)
    decided, candidates = reviewer.decided, reviewer.dataset.candidates
    instances, labels = load_graphs(workspace, run.id)
    if np.array_equal(labels.weights, build_label_graph(candidates).weights):
        labels = build_label_graph(np.where(decided == 0, 0, candidates))
    config = run.config.model_copy(update={"epochs": max(1, run.config.epochs // 2)})
    new = workspace.runs.create(run.fingerprint, config, name or f"{run.name} reviewed".strip())
    files.write_arrays(
        workspace.runs.folder(new.id) / "review.npz",
        targets=np.where(np.isnan(decided), reviewer.confidences, decided),
        theta=checkpoint["theta"],
        run=np.array(run.id),
    )
    give_graphs(workspace, new.id, instances, labels)
    return new


def _train(
    workspace: Workspace,
    run: RunRow,
    dataset: CandidateDataset,
    control: "_Control",
    on_event: Callable[[Event], None],
) -> None:
    """Consume the trainer's events; the only place that does."""
    import torch

    from core.trainer import PlainTrainer

    torch.set_num_threads(background.n_threads())
    folder = workspace.runs.folder(run.id)
    record = _Record(workspace, run, dataset)
    trainer = PlainTrainer(run.config)
    instances, labels = read_graphs(folder)
    reviewed = folder / "review.npz"
    warm = files.read_arrays(reviewed) if reviewed.exists() else {}
    try:
        events = trainer.epochs(
            dataset,
            instance_graph=instances,
            label_graph=labels,
            between=control.between,
            resume=read_checkpoint(workspace, run),
            targets=warm.get("targets"),
            theta=warm.get("theta"),
        )
        for event in events:
            if isinstance(event, GraphsBuilt):
                keep_graphs(folder, dataset, trainer, run.config.seed)
            if isinstance(event, RunEnded):
                record.end(event, trainer.checkpoint())
            else:
                record.add(event, trainer)
            on_event(event)
    except Exception as error:
        message = (
            str(error) if isinstance(error, PlainError) else f"{type(error).__name__}: {error}"
        )
        traceback.print_exc()
        record.fail(message)
        raise


class _Record:
    """Writes a run down as it goes: events in batches, confidences and checkpoints as files."""

    def __init__(self, workspace: Workspace, run: RunRow, dataset: CandidateDataset) -> None:
        self._runs, self._run = workspace.runs, run
        self._folder = workspace.runs.folder(run.id)
        self._offered = np.flatnonzero(dataset.candidates)
        self._waiting: list[tuple[int, Event]] = []
        self._rows: list[npt.NDArray[np.float32]] = []  # confidences of the waiting epochs
        self._seq, self._flushed, self._saved = 0, monotonic(), monotonic()
        path = self._folder / "confidences.f16"
        with files.telling_disk(path):
            path.touch()
            self._history = path.open("r+b", buffering=0)

    def add(self, event: Event, trainer: Any) -> None:
        if isinstance(event, EpochRecord):
            self._seq = event.epoch + 1  # after run_started and graphs_built
            self._rows.append(trainer.confidences.ravel().take(self._offered))
        self._waiting.append((self._seq, event))
        self._seq += 1
        now = monotonic()
        if isinstance(event, EpochRecord) and now - self._saved >= CHECKPOINT_SECONDS:
            self._flush(durable=True)
            files.write_arrays(self._folder / "checkpoint.npz", **trainer.checkpoint())
            self._saved = monotonic()
        elif now - self._flushed >= FLUSH_SECONDS or not isinstance(event, EpochRecord):
            self._flush(durable=False)

    def end(self, event: RunEnded, checkpoint: dict[str, npt.NDArray[Any]]) -> None:
        """Write the results, then the end: an ended run has all its files."""
        self._flush(durable=True)
        write_results(self._folder, checkpoint)
        os.fsync(self._history.fileno())
        self._history.close()
        last = (event.epochs + 2, event)
        self._runs.finish(self._run.id, RunState(event.state), event.error, last_events=[last])

    def fail(self, message: str) -> None:
        """End as failed; where even that cannot be written, the run shows as interrupted."""
        with suppress(StoreError):
            self._flush(durable=False)
        self._rows.clear()  # if they could not be written, the events still may
        with suppress(StoreError):
            self._flush(durable=False)
            run = self._runs.get(self._run.id)
            event = RunEnded(state="failed", epochs=run.epoch, seconds=0.0, error=message)
            last = [(self._runs.last_seq(run.id) + 1, event)]
            self._runs.finish(run.id, RunState.FAILED, message, last_events=last)
        self._history.close()

    def _flush(self, durable: bool) -> None:
        """Write confidences, then events: an epoch that is told has its confidences."""
        if self._rows:
            rows = _float16(np.stack(self._rows))
            epochs_before = self._seq - 2 - len(rows)
            with files.telling_disk(self._folder / "confidences.f16"):
                self._history.seek(epochs_before * rows[0].nbytes)
                self._history.write(rows.data)
            self._rows.clear()
        self._runs.append_events(self._run.id, self._waiting, durable=durable)
        self._waiting.clear()
        self._flushed = monotonic()


def _float16(rows: npt.NDArray[np.float32]) -> npt.NDArray[np.float16]:
    """Convert with torch: the processor has an instruction for it that numpy does not use."""
    import torch

    half: npt.NDArray[np.float16] = torch.from_numpy(rows).half().numpy()
    return half


class _Control:
    """Hears commands and shows life in a thread, so that the training only looks at a flag."""

    def __init__(self, workspace: Workspace, run_id: str, stop: threading.Event) -> None:
        self._runs, self._run_id, self._stop = workspace.runs, run_id, stop
        self._command: str | None = None
        self._ended = threading.Event()
        self._rest = background.Rest(workspace.folder)

    @contextmanager
    def watching(self) -> Iterator[None]:
        thread = threading.Thread(target=self._watch, name="plain-control", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._ended.set()
            thread.join()

    def between(self) -> None:
        """Called before every batch: go on, wait while paused, or stop."""
        self._rest.take()
        if self._stop.is_set() or self._command == "stop":
            raise StopTraining
        if self._command == "pause":
            self._runs.set_state(self._run_id, RunState.PAUSED)
            while self._command not in ("resume", "stop") and not self._stop.is_set():
                sleep(POLL_SECONDS / 2)
            self._runs.set_state(self._run_id, RunState.RUNNING)
            self._command = "stop" if self._command == "stop" else None
            self.between()

    def _watch(self) -> None:
        beat = 0.0
        while not self._ended.wait(POLL_SECONDS):
            try:
                heard = self._runs.pending_command(self._run_id)
                if heard is not None:
                    self._command = heard
                if monotonic() - beat >= HEARTBEAT_SECONDS:
                    self._runs.heartbeat(self._run_id)
                    beat = monotonic()
            except PlainError:
                continue  # a database out of reach for a moment must not end the training


def _claim(workspace: Workspace, run: RunRow) -> None:
    """Take the run for this process; the caller holds its lock, so no other process works on it."""
    if run.state in (RunState.RUNNING, RunState.PAUSED) and run.pid is not None:
        workspace.runs.requeue(run)
    me = psutil.Process()
    if workspace.runs.claim(run.id, me.pid, me.create_time()) is None:
        raise _already_running(run.id)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    lock = filelock.FileLock(folder / "worker.lock")
    try:
        lock.acquire(timeout=2)
    except filelock.Timeout:
        raise _already_running(folder.name) from None
    try:
        yield
    finally:
        lock.release()


def _already_running(run_id: str) -> StoreError:
    hint = "Follow it with: plain log"
    return StoreError("This run is already at work.", f"Another process has run {run_id}.", hint)


def _spawn(workspace: Workspace, run_id: str) -> None:
    child = background.standby.give(workspace.folder, run_id)
    if child is None:
        command = ("work", run_id, "--workspace", str(workspace.folder))
        child = background.start(*command, log=log_of(workspace, run_id))
    _children.append(child)


def _calibrated(
    workspace: Workspace, run: RunRow, checkpoint: dict[str, npt.NDArray[Any]]
) -> npt.NDArray[np.float32]:
    """Return the confidences that the run would have ended with."""
    from core.lens import confidences, make_propagator

    propagator = None
    if run.config.disambiguation == "alternating":
        propagator = make_propagator(run.config, *load_graphs(workspace, run.id))
    Y = workspace.load_dataset(run.fingerprint).candidates.astype(np.float32)
    return confidences(propagator, Y, checkpoint["Y_hat"])
