"""Runs a training here, or launches the same in a child process that outlives its parent.

Only one process works on a run: it holds `worker.lock`, which the system frees however it dies,
and the run's last claim. An active run whose lock is free was interrupted: its process died, its
disk was full, or its database was gone for long. Everything is written so that doing it again
changes nothing: events have fixed numbers, confidences fixed places. A resumed run therefore
repeats what came after its checkpoint and ends bit for bit as if it had not been interrupted.
"""

import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from time import monotonic, sleep, time
from typing import Any

import filelock
import numpy as np
import numpy.typing as npt

from core.data.dataset import CandidateDataset
from core.engine.events import Event, GraphsBuilt, RunEnded
from core.engine.graphs import build_label_graph
from core.errors import ClaimLost, PlainError, RunEndedError, StopTraining, StoreError
from core.failpoints import failpoint
from core.methods import NEEDS_VERIFIED, OF_RUNS
from core.runs import processes as background
from core.runs.recorder import Recorder, retrying
from core.runs.results import (
    give_graphs,
    keep_graphs,
    level_of,
    load_graphs,
    lost_files,
    mean_predictions,
    read_checkpoint,
    read_graphs,
    verified_rows,
    write_results,
)
from core.store import ACTIVE, RunRow, RunState, Workspace, files

POLL_SECONDS = 0.4
HEARTBEAT_SECONDS = 1.0
SILENT_SECONDS = 30.0
"""After how long without a sign of life a run on another machine counts as interrupted."""

START_SECONDS = 20.0
"""How long a launched process is waited for until it reports."""

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
    run = retrying(lambda: workspace.runs.get(run_id))
    folder = retrying(lambda: workspace.runs.folder(run.id))
    with _locked(folder):
        failpoint("worker.before_claim")
        claimed = retrying(lambda: _claim(workspace, run.id))
        failpoint("worker.after_claim")
        with _keeping_reason(workspace, claimed):
            files.remove_leftovers(folder)
            dataset = retrying(lambda: workspace.load_dataset(run.fingerprint))
            control = _Control(workspace, claimed, stop or threading.Event())
            with control.watching():
                _train(workspace, claimed, dataset, control, on_event)
        _prepare_pages(workspace, run.id)
    workspace.share(f"datasets/{run.fingerprint}", f"runs/{run.id}")
    return retrying(lambda: workspace.runs.get(run.id))


def log_of(workspace: Workspace, run_id: str) -> Path:
    """Return where the words of a run's process go."""
    return workspace.runs.folder(run_id) / "worker.log"


def load_engine() -> None:
    """Load all that a run needs, by a tiny one."""
    from core.engine.config import PlainConfig
    from core.engine.trainer import PlainTrainer
    from core.runs.layout import pca_layout

    X = np.eye(12, 6, dtype=np.float32) + np.eye(12, 6, -6, np.float32)
    dataset = CandidateDataset(X, np.tile(np.eye(3, dtype=np.uint8), (4, 1)))
    for _ in PlainTrainer(PlainConfig.preset("studio", epochs=1)).epochs(dataset):
        pca_layout(X)


def launch(workspace: Workspace, run_id: str) -> None:
    """Start a run in a child process of its own, or let it wait in the queue."""
    run = workspace.runs.get(run_id)
    if is_interrupted(workspace, run):
        workspace.runs.requeue(run)
    start_queued(workspace)


def await_start(workspace: Workspace, run_id: str) -> RunRow:
    """Return a launched run once its process has reported, or at once while it is queued.

    Raises
    ------
    StoreError
        The process ended before it could begin; the last it printed is told.
    """
    give_up = monotonic() + START_SECONDS
    while True:
        run = workspace.runs.get(run_id)
        is_starting = run.state is RunState.RUNNING and run.heartbeat is None
        if not is_starting or monotonic() > give_up:
            return run
        if is_interrupted(workspace, run):
            words = background.end_of_log(log_of(workspace, run.id), 2000)
            hint = f"Try again with: plain resume {run.id}"
            raise StoreError("The run did not start: its process ended.", words.strip(), hint)
        sleep(POLL_SECONDS / 4)


def start_queued(workspace: Workspace) -> None:
    """Start queued runs as far as allowed. Cheap; call it whenever a run may have ended."""
    _children[:] = [child for child in _children if child.poll() is None]
    me = background.identity()
    while True:
        active = workspace.runs.list(active=True)
        dead = [run.id for run in active if is_interrupted(workspace, run)]
        run = workspace.runs.claim_next(workspace.max_running, *me, dead=dead)
        if run is None:
            return
        failpoint("worker.before_spawn")
        try:
            child = _spawn(workspace, run.id)
        except (StoreError, OSError):
            workspace.runs.requeue(run)
            raise
        failpoint("worker.after_spawn")
        _children.append(child)
        workspace.runs.hand_over(run, *background.identity(child.pid))


def is_interrupted(workspace: Workspace, run: RunRow) -> bool:
    """Whether a run that should be at work has lost its process."""
    if run.state not in ACTIVE:
        return False
    if workspace.runs.elsewhere(run):
        return run.heartbeat is not None and time() - run.heartbeat > SILENT_SECONDS
    if background.is_locked(workspace.folder / "runs" / run.id / "worker.lock"):
        return False
    if run.heartbeat is None and background.is_alive(run.pid, run.pid_started):
        return False  # launched, and about to take the lock
    return not workspace.runs.get(run.id).state.is_ended  # since the row was read


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
    workspace.share(f"runs/{run.id}")


def retrain(workspace: Workspace, run_id: str, name: str = "") -> RunRow:
    """Queue a run that goes on where an ended one stopped, with the decisions that stand applied.

    It begins with that run's weights, takes half its epochs, and fits what the review says of
    every cell: what was rejected is 0, what was kept 1, the rest as confident as it is now.
    (Only taking rejected candidates out teaches the wrong thing: doubtful ones, which are asked
    first, become rarer than plainly false ones, which are not.) Launch it like any other.
    """
    from core.review.load import load_reviewer

    run = workspace.runs.get(run_id)
    if (lost := lost_files(workspace, run)) is not None:
        raise lost
    if run.config.method is not None:
        hint = "Train studio, or pml-md, which learns from rows that are decided."
        raise StoreError("This method cannot go on from decisions.", run.config.method.name, hint)
    checkpoint = read_checkpoint(workspace, run) if run.state.is_ended else None
    if checkpoint is None:
        raise StoreError("This run has no results to go on from.", run.id, "Choose an ended run.")
    reviewer = load_reviewer(workspace, run)
    decided, candidates = reviewer.decided, reviewer.dataset.candidates
    instances, labels = load_graphs(workspace, run.id)
    if np.array_equal(labels.weights, build_label_graph(candidates).weights):
        labels = build_label_graph(np.where(decided == 0, 0, candidates))
    config = run.config.model_copy(update={"epochs": max(1, run.config.epochs // 2)})

    def prepare(folder: Path) -> None:
        files.write_arrays(
            folder / "review.npz",
            targets=np.where(np.isnan(decided), reviewer.confidences, decided),
            theta=checkpoint["theta"],
            run=np.array(run.id),
        )
        give_graphs(folder, instances, labels)

    name = name or f"{run.name} reviewed".strip()
    return workspace.runs.create(run.fingerprint, config, name, prepare=prepare)


def _train(
    workspace: Workspace,
    run: RunRow,
    dataset: CandidateDataset,
    control: "_Control",
    on_event: Callable[[Event], None],
) -> None:
    """Consume the trainer's events; the only place that does."""
    import torch

    from core.engine.trainer import PlainTrainer

    torch.set_num_threads(background.n_threads())
    folder = workspace.runs.folder(run.id)
    with Recorder(workspace, run) as record:
        trainer = PlainTrainer(run.config, folder=folder)
        instances, labels = read_graphs(folder)
        start = _start_values(workspace, run, dataset)
        events = trainer.epochs(
            dataset,
            instance_graph=instances,
            label_graph=labels,
            between=control.between,
            resume=read_checkpoint(workspace, run),
            targets=start.get("targets"),
            theta=start.get("theta"),
        )
        for event in events:
            if isinstance(event, GraphsBuilt):
                retrying(lambda: workspace.runs.check_claim(run.id, run.claim))
                keep_graphs(folder, dataset, trainer, run.config.seed)
            if isinstance(event, RunEnded):
                record.end(event, trainer.checkpoint())
            else:
                record.add(event, trainer)
            on_event(event)


def _prepare_pages(workspace: Workspace, run_id: str) -> None:
    """Keep what pages begin with; where that cannot be, they compute it themselves."""
    from core.review.load import keep_beginning

    run = retrying(lambda: workspace.runs.get(run_id))
    with suppress(PlainError):
        keep_beginning(workspace, run)


def _start_values(workspace: Workspace, run: RunRow, dataset: CandidateDataset) -> dict[str, Any]:
    """Return the targets and weights a run starts from, where it has such."""
    method = run.config.method
    if method is not None and method.name in NEEDS_VERIFIED:
        return {"targets": verified_rows(workspace, run, dataset)}
    if method is not None and method.name in OF_RUNS:
        return {"targets": mean_predictions(workspace, run)}
    reviewed = workspace.runs.folder(run.id) / "review.npz"
    return files.read_arrays(reviewed) if reviewed.exists() else {}


@contextmanager
def _keeping_reason(workspace: Workspace, run: RunRow) -> Iterator[None]:
    """Keep the reason with a run that is interrupted, as far as that can be written."""
    try:
        yield
    except (ClaimLost, RunEndedError):
        raise
    except (StoreError, OSError) as error:
        with suppress(PlainError):
            workspace.runs.set_reason(run.id, str(error), run.claim)
        raise


class _Control:
    """Hears commands and shows life in a thread, so that the training only looks at a flag."""

    def __init__(self, workspace: Workspace, run: RunRow, stop: threading.Event) -> None:
        self._runs, self._run, self._stop = workspace.runs, run, stop
        self._command: str | None = None
        self._is_lost = False
        self._ended = threading.Event()

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
        if self._is_lost:
            self._runs.check_claim(self._run.id, self._run.claim)
        if self._stop.is_set() or self._command == "stop":
            raise StopTraining
        if self._command == "pause":
            self._set_state(RunState.PAUSED)
            while self._command not in ("resume", "stop") and not self._stop.is_set():
                sleep(POLL_SECONDS / 2)
                if self._is_lost:
                    break
            self._set_state(RunState.RUNNING)
            self._command = "stop" if self._command == "stop" else None
            self.between()

    def _set_state(self, state: RunState) -> None:
        retrying(lambda: self._runs.set_state(self._run.id, state, self._run.claim))

    def _watch(self) -> None:
        beat = 0.0
        while not self._ended.wait(POLL_SECONDS):
            try:
                heard = self._runs.pending_command(self._run.id)
                if heard is not None:
                    self._command = heard
                if monotonic() - beat >= HEARTBEAT_SECONDS:
                    self._is_lost = not self._runs.heartbeat(self._run.id, self._run.claim)
                    beat = monotonic()
            except PlainError:
                continue  # a database out of reach for a moment must not end the training


def _claim(workspace: Workspace, run_id: str) -> RunRow:
    """Take the run for this process; the caller holds its lock, so no other process works on it."""
    run = workspace.runs.get(run_id)
    if run.heartbeat is not None:
        workspace.runs.requeue(run)
    claimed = workspace.runs.claim(run.id, *background.identity())
    if claimed is None:
        raise _already_running(run.id)
    return claimed


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    lock = filelock.FileLock(folder / "worker.lock", mode=0o600)
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


def _spawn(workspace: Workspace, run_id: str) -> "subprocess.Popen[bytes]":
    ready = background.standby.give(workspace.folder, run_id)
    command = ("work", run_id, "--workspace", str(workspace.folder))
    return ready or background.start(*command, log=log_of(workspace, run_id))


def _calibrated(
    workspace: Workspace, run: RunRow, checkpoint: dict[str, npt.NDArray[Any]]
) -> npt.NDArray[np.float32]:
    """Return the confidences that the run would have ended with."""
    from core.confidence.lens import confidence_model, confidences
    from core.engine.propagation import Propagator

    propagator = None
    if run.config.disambiguation == "alternating":
        propagator = Propagator(*load_graphs(workspace, run.id), **run.config.propagation)
    dataset = workspace.load_dataset(run.fingerprint)
    Y, Y_hat = dataset.candidates.astype(np.float32), checkpoint["Y_hat"]
    level = level_of(checkpoint)
    return confidences(
        propagator, Y, Y_hat, confidence_model(Y, Y_hat, dataset.votes, run.config, level)
    )
