"""Runs: start and steer them, read what they tell, and what became of every cell.

Training itself is always a child process (`core.runs.worker.launch`): torch never comes in here.
"""

import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib.util import find_spec
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import streamlit as st

from core.cluster.address import is_installed
from core.cluster.progress import Progress, read_progress
from core.confidence.level import Level
from core.engine.config import PRESETS, PlainConfig
from core.engine.events import EpochRecord, Event, GraphsBuilt, RunEnded, RunStarted
from core.errors import PlainError, StoreError
from core.methods import choice
from core.runs import processes as background
from core.runs import results, takeover, worker
from core.store import RunRow
from plain_app.services import data
from plain_app.services.workspace import list_runs, workspace

Status = Literal["queued", "running", "paused", "finished", "stopped", "failed", "interrupted"]
FIELDS: Mapping[str, Any] = {
    name: field
    for name, field in PlainConfig.model_json_schema()["properties"].items()
    # A method is chosen beside the presets, with a form of its own.
    if name != "method" and (name != "cluster" or is_installed())
}
"""The settings of a run by name: type, range, symbol and description of each."""

LIVE: tuple[Status, ...] = ("queued", "running", "paused")
"""Of a run that may still change by itself."""


class Cells(NamedTuple):
    """Where the candidate cells are, in the order of a confidence history."""

    rows: npt.NDArray[np.int64]
    columns: npt.NDArray[np.int64]
    ids: tuple[str, ...]
    labels: tuple[str, ...]


class RunEvents(NamedTuple):
    """The events of a run so far, by kind."""

    started: RunStarted | None
    graphs: GraphsBuilt | None
    epochs: list[EpochRecord]
    ended: RunEnded | None


class EventLog:
    """The events of one run, read once each and kept for all sessions."""

    def __init__(self, run_id: str) -> None:
        self._run_id, self._seq, self._events = run_id, -1, list[Event]()
        self._lock = threading.Lock()

    def read(self) -> list[Event]:
        with self._lock:
            for seq, event in workspace().runs.events_after(self._run_id, self._seq):
                self._events.append(event)
                self._seq = seq
            return list(self._events)


def get(run_id: str) -> RunRow:
    """Return a run as it is now."""
    return workspace().runs.get(run_id)


def status(run: RunRow) -> Status:
    """Return the run's state, or that it lost its process."""
    if worker.is_interrupted(workspace(), run):
        return "interrupted"
    return run.state.value


def lost_files(run: RunRow) -> PlainError | None:
    """Return what is to be said of an ended run whose files are gone; none where they are here."""
    return results.lost_files(workspace(), run)


def level(run: RunRow) -> Level | None:
    """Return what an ended run learned about the share of false candidates, if it did."""
    found = results.kept_level(workspace(), run)
    return None if found == Level() else found  # with votes these tell more


def newest_with_level(fingerprint: str) -> RunRow | None:
    """Return the newest run on this data that says how many candidates may be false."""
    found = (one for one in list_runs(fingerprint) if one.state.is_ended and level(one) is not None)
    return next(found, None)


def lost_data(fingerprint: str) -> PlainError | None:
    """Return what is to be said of data whose files are gone; none where they are here."""
    return workspace().lost_data(fingerprint)


def elsewhere(run: RunRow) -> str | None:
    """Return the name of the machine that has the run's files; none when it is this one."""
    return workspace().runs.elsewhere(run)


def files_to_fetch(fingerprint: str, run: RunRow | None) -> list[str]:
    """Return what of a data set and a run has to be fetched from object storage first."""
    return results.files_to_fetch(workspace(), fingerprint, run)


def fetch_files(owner: str, on_progress: Callable[[int, int], None]) -> None:
    """Fetch files; what fails is told by the page that needs them."""
    with suppress(StoreError):
        workspace().stored.fetch(owner, on_progress)


def presets() -> list[str]:
    """Return the presets, ours first, then those saved in the workspace."""
    return [*sorted(PRESETS, reverse=True), *workspace().presets()]


def preset(name: str) -> PlainConfig:
    """Return a preset's settings."""
    return workspace().preset(name)


def save_preset(name: str, config: PlainConfig) -> None:
    """Save settings as a preset of the workspace."""
    workspace().save_preset(name, config)


def other_methods() -> list[str]:
    """Return the methods that can learn in place of PLAIN here."""
    has_cleanlab = find_spec("cleanlab") is not None
    names = choice.other_methods()
    return [name for name in names if has_cleanlab or not name.startswith("cleanlab")]


@st.cache_resource(max_entries=50, show_spinner=False)
def method_form(name: str) -> choice.MethodForm:
    """Return what is to be known and chosen of a method."""
    return choice.method_form(name)


def method_config(name: str, settings: Mapping[str, Any]) -> PlainConfig:
    """Return the configuration of a run in which a method learns."""
    return choice.method_config(name, settings)


def settings_used(run: RunRow) -> dict[str, Any]:
    """Return the settings that a run learns with, by name."""
    return choice.settings_used(run.config)


def start(fingerprint: str, config: PlainConfig, name: str = "") -> str:
    """Queue a run and launch it as soon as the workspace allows; return its id."""
    config = config.suited_to(workspace().load_dataset(fingerprint))
    run = workspace().runs.create(fingerprint, config, name)
    worker.launch(workspace(), run.id)
    return run.id


def get_ready() -> None:
    """Have a process load the engine while somebody thinks about a run's settings."""
    background.standby.renew()


def retrain(run_id: str) -> str:
    """Start a run that goes on from an ended one with what people decided; return its id."""
    new = worker.retrain(workspace(), run_id)
    worker.launch(workspace(), new.id)
    return new.id


def retrained_from(run_id: str) -> RunRow | None:
    """Return the run that this one went on from, if any."""
    before = results.retrained_from(workspace(), run_id)
    return None if before is None else get(before)


def can_continue_here(run: RunRow) -> bool:
    """Whether another machine's run, interrupted there, can go on here."""
    return takeover.can_continue_here(workspace(), run)


def continue_here(run_id: str) -> str:
    """Let another machine's run go on here; return the id it has here."""
    new = takeover.continue_here(workspace(), run_id)
    worker.launch(workspace(), new.id)
    return new.id


def resume(run_id: str) -> None:
    """Let a paused or interrupted run go on."""
    if status(get(run_id)) == "interrupted":
        worker.launch(workspace(), run_id)
    else:
        workspace().runs.command(run_id, "resume")


def pause(run_id: str) -> None:
    workspace().runs.command(run_id, "pause")


def stop(run_id: str) -> None:
    worker.stop(workspace(), run_id)


def start_queued() -> None:
    """Start queued runs whose turn has come."""
    worker.start_queued(workspace())


def rename(run_id: str, name: str, note: str) -> None:
    """Give a run another name and note."""
    workspace().runs.rename(run_id, name[:200])
    workspace().runs.annotate(run_id, note[:5000])


def delete(run_id: str) -> None:
    """Hide a run; one that lost its process is ended first."""
    if status(get(run_id)) == "interrupted":
        worker.stop(workspace(), run_id)
    workspace().runs.delete(run_id)


def restore(run_id: str) -> None:
    workspace().runs.restore(run_id)


def title(run: RunRow) -> str:
    """Return what a run is called on the screen."""
    return f"{run.name or 'run'} · {run.id[-6:]}"


def events(run_id: str) -> RunEvents:
    """Return the events of a run by kind."""
    events = _log(str(workspace().folder), run_id).read()
    return RunEvents(
        next((one for one in events if isinstance(one, RunStarted)), None),
        next((one for one in events if isinstance(one, GraphsBuilt)), None),
        [one for one in events if isinstance(one, EpochRecord)],
        next((one for one in reversed(events) if isinstance(one, RunEnded)), None),
    )


@st.cache_resource(max_entries=50, show_spinner=False)
def _log(folder: str, run_id: str) -> EventLog:
    return EventLog(run_id)


def seconds_left(run: RunRow, epochs: list[EpochRecord]) -> float | None:
    """Estimate the rest of the training from its last epochs."""
    recent = epochs[-10:]
    if not recent:
        return None
    pace = sum(sum(one.seconds.values()) for one in recent) / len(recent)
    return pace * (run.config.epochs - epochs[-1].epoch)


def known_pace(fingerprint: str, config: PlainConfig) -> float | None:
    """Return the seconds per epoch of the last run on this data with such settings, if any."""
    free = {"epochs": config.epochs, "seed": config.seed}  # an epoch takes as long with others
    for run in list_runs(fingerprint):
        if run.config.model_copy(update=free) == config and (epochs := events(run.id).epochs):
            return sum(sum(one.seconds.values()) for one in epochs) / len(epochs)
    return None


def stage_seconds(events: RunEvents) -> dict[str, float]:
    """Return how long each stage took so far."""
    spent = {} if events.graphs is None else {"graphs": events.graphs.seconds}
    for record in events.epochs:
        for stage, seconds in record.seconds.items():
            spent[stage] = spent.get(stage, 0.0) + seconds
    return spent


def cluster_progress(run: RunRow) -> Progress | None:
    """Return what the workers of a run's cluster have done; none where it has no cluster."""
    if run.config.cluster is None or elsewhere(run) is not None:
        return None
    return read_progress(workspace().runs.folder(run.id))


def history(run_id: str) -> npt.NDArray[np.float16]:
    """Return the confidences of candidate cells by epoch, (epochs, cells), memory-mapped."""
    return results.confidence_history(workspace(), run_id)


def cells(fingerprint: str) -> Cells:
    """Return the candidate cells of a data set."""
    return _cells(str(workspace().folder), fingerprint)


@st.cache_resource(max_entries=4, show_spinner=False)
def _cells(folder: str, fingerprint: str) -> Cells:
    dataset = data.load(fingerprint)
    rows, columns = np.nonzero(dataset.candidates)
    return Cells(rows, columns, tuple(dataset.ids), tuple(dataset.label_names))


def worker_log(run_id: str, limit: int = 4000) -> str:
    """Return the end of what the run's process printed."""
    return background.end_of_log(worker.log_of(workspace(), run_id), limit)
