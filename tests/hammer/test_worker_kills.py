"""A worker killed at any of its named points: nothing told is lost, and it ends with the same bits.

Kills in the store's own writes and in migrations are in `test_store_kills.py`.
"""

import os
import signal
import subprocess
import sys

import numpy as np
import pytest
from real_runs import assert_same_results, kill_all, queue, wait
from store_integrity import integrity

from core.data.demo import load_demo
from core.errors import PlainError
from core.runs import worker
from core.runs.results import confidence_history
from core.store import RunState, Workspace

pytestmark = pytest.mark.hammer

POINTS = [
    "worker.before_claim",
    "worker.after_claim",
    "worker.before_events",
    "worker.before_events:2",
    "worker.after_events",
    "worker.after_events:3",
    "worker.before_checkpoint",
    "worker.after_checkpoint",
    "worker.before_results",
    "worker.before_finish",
    "worker.after_finish",
    "files.before_rename:2",
    "files.renamed:2",
    "store.before_commit:3",
    "store.committed:3",
]
LAUNCH = ["worker.before_spawn", "worker.after_spawn"]
SETTINGS = {"epochs": 400, "batch_size": 8}


@pytest.fixture(scope="module")
def demo():
    return load_demo(n_instances=400)


@pytest.fixture(scope="module")
def reference(tmp_path_factory, demo):
    """A workspace with a run that nothing happened to."""
    space = Workspace(tmp_path_factory.mktemp("whole"))
    space.add_dataset(demo, "demo")
    run = queue(space, demo, **SETTINGS)
    worker.run_training(space, run.id)
    yield space, run
    space.close()


@pytest.fixture
def workspace(tmp_path, demo, monkeypatch):
    monkeypatch.delenv("PLAIN_DATABASE_URL", raising=False)
    monkeypatch.setenv("PLAIN_CHECKPOINT_SECONDS", "0.2")  # also where a run takes a second
    space = Workspace(tmp_path / "space")
    space.add_dataset(demo, "demo")
    yield space
    kill_all(space)
    space.close()


def core(workspace, *arguments, **environment):
    command = [sys.executable, "-m", "core", *arguments, "--workspace", str(workspace.folder)]
    return subprocess.run(
        command, env={**os.environ, **environment}, capture_output=True, text=True, timeout=300
    )


@pytest.mark.parametrize("point", POINTS)
def test_a_killed_worker_loses_nothing_it_told(workspace, demo, reference, point):
    run = queue(workspace, demo, **SETTINGS)
    killed = core(workspace, "work", run.id, PLAIN_FAILPOINT=point)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    told = workspace.runs.events_after(run.id)
    assert [seq for seq, _ in told] == list(range(len(told)))
    left = workspace.runs.get(run.id)
    assert confidence_history(workspace, run.id).shape[0] == left.epoch
    if left.state.is_ended:
        assert point == "worker.after_finish"
    else:
        assert left.state is RunState.QUEUED or worker.is_interrupted(workspace, left)
        resumed = core(workspace, "resume", run.id)
        assert resumed.returncode == 0, resumed.stderr
    assert workspace.runs.get(run.id).state is RunState.FINISHED
    now = workspace.runs.events_after(run.id)
    assert now[: len(told)] == told
    assert [seq for seq, _ in now] == list(range(SETTINGS["epochs"] + 3))
    assert_same_as_reference(workspace, run, reference)
    assert list(workspace.runs.folder(run.id).glob(".*.tmp*")) == []
    assert integrity(workspace.database) == []


def assert_same_as_reference(workspace, run, reference):
    space, whole = reference
    assert_same_results(space, whole, run, workspace)
    histories = (confidence_history(*pair) for pair in ((space, whole.id), (workspace, run.id)))
    assert np.array_equal(*histories)


@pytest.mark.parametrize("point", LAUNCH)
def test_a_killed_launcher_leaves_a_run_that_goes_on_or_is_resumed(workspace, demo, point):
    run = queue(workspace, demo, epochs=2)
    killed = core(workspace, "resume", run.id, "--background", PLAIN_FAILPOINT=point)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    if point == "worker.before_spawn":
        assert worker.is_interrupted(workspace, workspace.runs.get(run.id))
        worker.launch(workspace, run.id)
    wait(lambda: workspace.runs.get(run.id).state is RunState.FINISHED)


def test_stop_of_an_interrupted_run_killed_on_the_way_is_stopped_the_next_time(workspace, demo):
    run = queue(workspace, demo, **SETTINGS)
    core(workspace, "work", run.id, PLAIN_FAILPOINT="worker.after_checkpoint")
    for point in ("files.before_rename", "files.renamed:2", "store.before_commit"):
        killed = core(workspace, "stop", run.id, PLAIN_FAILPOINT=point)
        assert killed.returncode == -signal.SIGKILL, killed.stderr
        assert worker.is_interrupted(workspace, workspace.runs.get(run.id))
    assert core(workspace, "stop", run.id).returncode == 0
    assert workspace.runs.get(run.id).state is RunState.STOPPED
    with pytest.raises(PlainError):
        worker.run_training(workspace, run.id)
