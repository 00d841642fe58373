"""Workspaces in every state a view can meet, made without training."""

import os
import re
import shutil
from html import unescape
from pathlib import Path

import filelock
import numpy as np
import sqlalchemy as sa
from streamlit.testing.v1 import AppTest

from core.engine.config import PlainConfig
from core.engine.events import EpochRecord, GraphsBuilt, Objective, RunEnded, RunStarted
from core.store import RunState, Workspace, schema

APP = Path(__file__).parents[1] / "plain_app" / "app.py"
PATIENCE = 120  # seconds that one run of a page may take where machines are busy
STATES = ("empty", "loaded", "queued", "running", "paused", "interrupted", "failed", "finished")
ELSEWHERE = "lab-2"
EPOCHS = 12


class Stage:
    """A workspace with one data set and a run that looks as if it were in some state."""

    def __init__(self, folder: Path, dataset) -> None:
        self.space, self.dataset = Workspace(folder), dataset
        self.run_id: str | None = None
        self._lock: filelock.FileLock | None = None

    def set(self, state: str) -> "Stage":
        if state == "empty":
            return self
        self.space.add_dataset(self.dataset, "demo")
        if state == "loaded":
            return self
        config = PlainConfig(epochs=2 * EPOCHS)
        self.run_id = self.space.runs.create(self.dataset.fingerprint, config, "try").id
        if state == "queued":
            return self.keep_the_only_place()
        self._work("finished" if state == "elsewhere" else state)
        if state == "elsewhere":
            self._move_files_away()
        return self

    def _move_files_away(self) -> None:
        """As it is where another machine shares the database."""
        shutil.rmtree(self.space.folder / "datasets")
        shutil.rmtree(self.space.folder / "runs")
        with self.space.database.write() as connection:
            connection.execute(sa.insert(schema.machines).values(id="other", name=ELSEWHERE))
            for table in (schema.runs, schema.datasets):
                connection.execute(sa.update(table).values(machine="other"))

    def close(self) -> None:
        if self._lock is not None:
            self._lock.release()
        self.space.close()

    def keep_the_only_place(self) -> "Stage":
        """Have a run at work beside which no other begins: they wait in the queue."""
        other = self.space.runs.create(self.dataset.fingerprint, PlainConfig(), "other")
        self._claim(other.id, locked=True)
        return self

    def _claim(self, run_id: str, *, locked: bool) -> None:
        self.space.runs.claim(run_id, os.getpid(), 1.0)
        path = self.space.runs.folder(run_id) / "worker.lock"
        path.touch()
        if locked:
            self._lock = filelock.FileLock(path)
            self._lock.acquire()

    def _work(self, state: str) -> None:
        self._claim(self.run_id, locked=state in ("running", "paused"))
        events = [(0, started(self.dataset)), (1, built()), *epochs(EPOCHS)]
        self.space.runs.append_events(self.run_id, events)
        self._write_history()
        if state == "paused":
            self.space.runs.set_state(self.run_id, RunState.PAUSED)
        if state in ("failed", "finished"):
            error = "loss is not finite <script>alert(1)</script>" if state == "failed" else None
            ended = RunEnded(state=state, epochs=EPOCHS, seconds=3.0, error=error)
            last = [(EPOCHS + 2, ended)]
            self.space.runs.finish(self.run_id, RunState(state), error, last_events=last)

    def _write_history(self) -> None:
        n_cells = int(self.dataset.candidates.sum())
        rng = np.random.default_rng(0)
        history = rng.random((EPOCHS, n_cells)).astype(np.float16)
        (self.space.runs.folder(self.run_id) / "confidences.f16").write_bytes(history.tobytes())


def started(dataset) -> RunStarted:
    return RunStarted(
        config=PlainConfig(),
        fingerprint=dataset.fingerprint,
        n_instances=dataset.n_instances,
        n_features=dataset.n_features,
        n_labels=dataset.n_labels,
        device="cpu",
        versions={"torch": "0"},
    )


def built() -> GraphsBuilt:
    return GraphsBuilt(
        seconds=0.2, search="exact", recall=None, n_edges=10, n_isolated=0, n_label_edges=4
    )


def epochs(number: int) -> list[tuple[int, EpochRecord]]:
    terms = Objective(prediction=3.0, candidates=2.0, instance_graph=1.0, label_graph=0.5)
    return [
        (
            at + 2,
            EpochRecord(
                epoch=at + 1,
                loss=1 / (at + 1),
                objective=terms,
                cells_changed=100 - at,
                entropy=0.5,
                seconds={"train": 0.1, "predict": 0.1, "propagate": 0.1, "record": 0.0},
                metrics={"auc": 0.9, "f1": 0.8},
            ),
        )
        for at in range(number)
    ]


def new_app() -> AppTest:
    """Return the app, not yet run."""
    return AppTest.from_file(str(APP), default_timeout=PATIENCE)


def texts(app) -> str:
    """Return all words on a page of an AppTest."""
    parts = [*app.text, *app.caption, *app.markdown, *app.subheader]
    return "\n".join(str(one.value) for one in parts)


def figures(app) -> dict[str, str]:
    """Return the figures of an AppTest's page by their names."""
    drawn = "".join(str(one.proto.body) for one in app.get("html"))
    found = re.findall(r"<span>([^<]*)</span><b>([^<]*)</b>", drawn)
    return {unescape(name): unescape(value) for name, value in found}


def opened(app, key: str, is_open: bool = True):
    """Open or close an expander, which draws what is in it when opened."""
    app.session_state[key] = is_open
    return app.run()
