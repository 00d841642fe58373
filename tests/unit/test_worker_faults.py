"""What ends a process or cuts it off does not end its run: real children, servers and limits."""

import os
import resource
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing, contextmanager
from time import sleep

import psutil
import pytest
from real_runs import assert_same_results, kill_all, queue, wait
from typer.testing import CliRunner

from core.cli import app
from core.cli.runs import _launch
from core.errors import StoreError, StoreUnavailable
from core.runs import worker
from core.runs.results import confidence_history
from core.store import RunState, Workspace


@pytest.fixture
def workspace(tmp_path, demo, monkeypatch):
    monkeypatch.delenv("PLAIN_DATABASE_URL", raising=False)
    yield from opened(tmp_path / "space", demo)


@pytest.fixture
def workspace_on_postgres(tmp_path, demo, postgres_url, monkeypatch):
    monkeypatch.setenv("PLAIN_DATABASE_URL", postgres_url)
    yield from opened(tmp_path / "space", demo)


def opened(folder, demo):
    space = Workspace(folder)
    space.add_dataset(demo, "demo")
    yield space
    kill_all(space)
    space.close()


def plain(workspace, *arguments):
    return CliRunner().invoke(app, [*arguments, "--workspace", str(workspace.folder)])


def contents(folder):
    """Return the files of a run, without temporary ones and what processes print and lock."""
    names = (path for path in folder.iterdir() if not path.name.startswith(("worker.", ".")))
    return {path.name: path.read_bytes() for path in names}


def stop_between_writes(workspace, pid):
    """Stop a process while it does not hold the database."""
    while True:
        os.kill(pid, signal.SIGSTOP)
        wait(lambda: psutil.Process(pid).status() == psutil.STATUS_STOPPED)
        with closing(sqlite3.connect(workspace.database.path, timeout=0)) as connection:
            try:
                connection.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError:
                os.kill(pid, signal.SIGCONT)
                sleep(0.05)
            else:
                return


def test_a_worker_that_slept_finds_that_it_lost_its_claim(workspace, demo):
    run = queue(workspace, demo, epochs=100_000)
    said = plain(workspace, "resume", run.id, "--background").stderr
    assert f"Run {run.id} is on its way." in said
    assert workspace.runs.get(run.id).heartbeat is not None
    wait(lambda: workspace.runs.get(run.id).epoch > 0)
    asleep = workspace.runs.get(run.id)
    stop_between_writes(workspace, asleep.pid)
    assert workspace.runs.requeue(workspace.runs.get(run.id))
    new = workspace.runs.claim(run.id, 1, 2.0)  # as one on another machine with the same folder
    files, events = contents(workspace.runs.folder(run.id)), workspace.runs.events_after(run.id)
    os.kill(asleep.pid, signal.SIGCONT)
    assert worker._children[-1].wait(120) != 0
    assert workspace.runs.get(run.id) == new
    assert workspace.runs.events_after(run.id) == events
    assert contents(workspace.runs.folder(run.id)) == files
    assert "taken over" in worker.log_of(workspace, run.id).read_text()


def test_a_database_that_restarts_ends_no_run_and_is_told_everything(
    workspace_on_postgres, demo, postgres
):
    space = workspace_on_postgres
    run = queue(space, demo, epochs=100_000, batch_size=4)
    worker.launch(space, run.id)
    wait(lambda: space.runs.get(run.id).epoch > 0)
    before = space.runs.get(run.id)
    postgres.stop()
    try:
        sleep(2.5)  # for three attempts to write
        assert worker._children[-1].poll() is None
    finally:
        postgres.start()
    wait(lambda: space.runs.get(run.id).epoch > before.epoch)
    space.runs.command(run.id, "pause")
    wait(lambda: space.runs.get(run.id).state is RunState.PAUSED)
    space.runs.command(run.id, "stop")
    wait(lambda: space.runs.get(run.id).state.is_ended)
    ended = space.runs.get(run.id)
    assert (ended.state, ended.claim) == (RunState.STOPPED, before.claim)
    events = space.runs.events_after(run.id)
    assert [seq for seq, _ in events] == list(range(ended.epoch + 3))
    assert confidence_history(space, run.id).shape[0] == ended.epoch


@contextmanager
def file_size_limit(n_bytes):
    """Have writes fail as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_full_disk_leaves_a_run_interrupted_and_it_is_resumed_to_the_same_bits(workspace, demo):
    whole, broken = queue(workspace, demo, epochs=150), queue(workspace, demo, epochs=150)
    worker.run_training(workspace, whole.id)
    history = workspace.runs.folder(whole.id) / "confidences.f16"
    workspace.close()  # leaves a short write-ahead log
    with file_size_limit(history.stat().st_size // 2), pytest.raises(StoreUnavailable):
        worker.run_training(workspace, broken.id)
    left = workspace.runs.get(broken.id)
    assert left.state is RunState.RUNNING
    assert worker.is_interrupted(workspace, left)
    assert worker.run_training(workspace, broken.id).state is RunState.FINISHED
    assert_same_results(workspace, whole, broken)


def test_a_queued_run_begins_when_a_foreground_run_ends(workspace, demo):
    first, second = queue(workspace, demo), queue(workspace, demo, epochs=1)
    command = [sys.executable, "-m", "core", "train", "--resume", first.id]
    foreground = subprocess.Popen(
        [*command, "--workspace", str(workspace.folder)], stdout=subprocess.DEVNULL
    )
    wait(lambda: workspace.runs.get(first.id).heartbeat is not None)
    said = plain(workspace, "resume", second.id, "--background").stderr
    assert "waits in the queue" in said
    assert foreground.wait(240) == 0
    wait(lambda: workspace.runs.get(second.id).state is RunState.FINISHED)


def test_a_worker_that_died_before_it_claimed_its_run_is_noticed_at_once(
    workspace, demo, monkeypatch
):
    run = queue(workspace, demo, epochs=1)
    monkeypatch.setenv("PLAIN_FAILPOINT", "worker.before_claim")
    worker.launch(workspace, run.id)
    assert not worker.is_interrupted(workspace, workspace.runs.get(run.id))
    assert worker._children[-1].wait(120) == -signal.SIGKILL
    assert worker.is_interrupted(workspace, workspace.runs.get(run.id))
    with pytest.raises(StoreError, match="did not start"):
        worker.await_start(workspace, run.id)
    said = plain(workspace, "resume", run.id, "--background")
    assert isinstance(said.exception, StoreError)
    assert "on its way" not in said.stderr
    monkeypatch.delenv("PLAIN_FAILPOINT")
    assert worker.run_training(workspace, run.id).state is RunState.FINISHED


@pytest.mark.parametrize("state", [RunState.FAILED, RunState.STOPPED])
def test_a_run_that_has_ended_by_the_time_it_is_told_of_is_not_on_its_way(
    workspace, demo, capsys, state
):
    run = queue(workspace, demo)
    if state is RunState.FAILED:
        workspace.runs.claim(run.id, os.getpid(), 1.0)
    workspace.runs.finish(run.id, state, "no memory" if state is RunState.FAILED else None)
    _launch(workspace, run.id)
    told = " ".join(capsys.readouterr().err.split())
    why = " no memory" if state is RunState.FAILED else ""
    assert told == f"Run {run.id} has {state} already.{why}"


def test_a_run_that_could_not_be_launched_waits_in_the_queue(workspace, demo, monkeypatch):
    run = queue(workspace, demo)
    monkeypatch.setattr(sys, "executable", str(workspace.folder / "none"))
    with pytest.raises(OSError, match="No such file"):
        worker.launch(workspace, run.id)
    assert workspace.runs.get(run.id).state is RunState.QUEUED
