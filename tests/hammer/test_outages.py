"""Runs outlive minutes without their database, one that answers nobody, and a full disk."""

import os
import subprocess
import sys
from contextlib import ExitStack, suppress
from time import monotonic, sleep

import pytest
import sqlalchemy as sa
from app_server import ROOT, is_served, serving
from desk_clients import Person
from finished_run import finished_run
from real_runs import assert_same_results, kill_all, queue, wait
from store_integrity import integrity

from core.errors import DatabaseUnreachable
from core.runs import worker
from core.store import Database, RunState, Workspace, stalled
from core.store import database as database_module
from plain_app.server import tokens

pytestmark = pytest.mark.hammer

AWAY_SECONDS = float(os.environ.get("PLAIN_HAMMER_AWAY", 150))
FROZEN_SECONDS = float(os.environ.get("PLAIN_HAMMER_FROZEN", 60))
TOLD_SECONDS = 50  # after which everybody was told that the database answers nobody
SETTINGS = {"epochs": 300, "batch_size": 8}


@pytest.fixture
def opened(demo):
    """Open a workspace with the demo data; its runs end with the test."""
    spaces = []

    def open_workspace(folder):
        spaces.append(Workspace(folder))
        spaces[-1].add_dataset(demo, "demo")
        return spaces[-1]

    yield open_workspace
    for space in spaces:
        kill_all(space)
        space.close()


def test_a_run_that_ends_while_its_database_is_away_is_told_whole_when_it_is_back(
    tmp_path, opened, demo, postgres, postgres_url, monkeypatch
):
    monkeypatch.setenv("PLAIN_DATABASE_URL", postgres_url)
    space = opened(tmp_path / "space")
    whole, cut_off = (queue(space, demo, **SETTINGS) for _ in range(2))
    worker.run_training(space, whole.id)
    worker.launch(space, cut_off.id)
    wait(lambda: space.runs.get(cut_off.id).epoch > 0)
    claimed = space.runs.get(cut_off.id)
    postgres.stop()
    try:
        sleep(AWAY_SECONDS)
        assert worker._children[-1].poll() is None
    finally:
        postgres.start()
    assert_told_whole(space, whole, claimed)


def assert_told_whole(space, whole, claimed):
    """Wait for the end of a run; it ended as if nothing had been."""
    wait(lambda: space.runs.get(claimed.id).state.is_ended)
    ended = space.runs.get(claimed.id)
    assert (ended.state, ended.claim) == (RunState.FINISHED, claimed.claim)
    seqs = [seq for seq, _ in space.runs.events_after(claimed.id)]
    assert seqs == list(range(SETTINGS["epochs"] + 3))
    assert_same_results(space, whole, claimed)


def test_a_database_that_answers_nobody_for_a_while_costs_time_and_nothing_else(
    tmp_path, opened, demo, postgres, postgres_url, monkeypatch
):
    """Its processes are stopped, its connections stay open: nothing tells that it is gone."""
    monkeypatch.setenv("PLAIN_DATABASE_URL", postgres_url)
    space = opened(tmp_path / "space")
    monkeypatch.setenv("PLAIN_WORKSPACE", str(space.folder))
    reviewed = finished_run(space, demo, noise=0.35)
    whole, trained = (queue(space, demo, **SETTINGS) for _ in range(2))
    worker.run_training(space, whole.id)
    with serving(space.folder) as server:
        token = tokens.issue(tokens.Claims(demo.fingerprint, reviewed, "ann"))
        ann = Person(server.port, token, 1.0, FROZEN_SECONDS + 30, 0)
        ann.fetch(timeout=120)
        worker.launch(space, trained.id)
        wait(lambda: space.runs.get(trained.id).epoch > 0)
        claimed = space.runs.get(trained.id)
        ann.start()
        sleep(5)
        with postgres.frozen():
            end = monotonic() + FROZEN_SECONDS
            assert_everybody_is_told(space, server)
            sleep(max(0.0, end - monotonic()))
        ann.join(FROZEN_SECONDS + 120)
        assert_told_whole(space, whole, claimed)
    stored = [one.uid for one in space.decisions.history(demo.fingerprint)]
    assert len(set(stored)) == len(stored)
    assert sorted(stored) == sorted(ann.sent) == sorted(ann.acknowledged)
    print(f"\n{len(stored)} decisions", *ann.failures, sep="\n")
    assert not [one for one in ann.failures if " 500" in one]


def test_a_connection_that_has_just_been_made_is_cut_too(postgres, postgres_url, monkeypatch):
    """The server stops answering before it is asked for anything."""
    for name, seconds in (("PATIENCE_SECONDS", 0.5), ("LOOK_SECONDS", 0.2)):
        monkeypatch.setattr(stalled, name, seconds)
    monkeypatch.setitem(database_module._PATIENCE, "connect_timeout", 2)
    database = Database(postgres_url)
    database.close()
    with ExitStack() as frozen:
        sa.event.listen(
            database._engine,
            "connect",
            lambda *_: frozen.enter_context(postgres.frozen()),
            insert=True,
            once=True,
        )
        begin = monotonic()
        with pytest.raises(DatabaseUnreachable), database.read():
            pass
        assert monotonic() - begin < TOLD_SECONDS
    database.close()


def assert_everybody_is_told(space, server):
    """Who has a connection, who wants one, and who looks at the page's server hears something."""
    begin = monotonic()
    command = [sys.executable, "-m", "core", "runs", "--workspace", str(space.folder)]
    shell = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True)
    with pytest.raises(DatabaseUnreachable):
        space.datasets()
    _, complaint = shell.communicate(timeout=TOLD_SECONDS)
    assert shell.returncode == 2
    assert "The database cannot be reached." in complaint
    assert is_served(server.port, server.process, seconds=5)
    assert monotonic() - begin < TOLD_SECONDS


@pytest.fixture
def small_disk(tmp_path):
    """A disk of a few megabytes."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=24m", "none", str(place)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True).returncode != 0:
        pytest.skip("only root can mount a small disk")
    yield place
    subprocess.run(["umount", "--lazy", str(place)], check=True)


def fill(path):
    """Write until nothing fits any more."""
    with open(path, "wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(bytes(4096))


def test_a_full_disk_interrupts_a_run_and_space_lets_it_go_on(
    tmp_path, small_disk, opened, demo, monkeypatch
):
    monkeypatch.delenv("PLAIN_DATABASE_URL", raising=False)
    elsewhere, space = opened(tmp_path / "space"), opened(small_disk / "space")
    whole, full = queue(elsewhere, demo, **SETTINGS), queue(space, demo, **SETTINGS)
    worker.run_training(elsewhere, whole.id)
    worker.launch(space, full.id)
    wait(lambda: space.runs.get(full.id).epoch > 0)
    fill(small_disk / "ballast")
    wait(lambda: worker.is_interrupted(space, space.runs.get(full.id)))
    assert space.runs.get(full.id).state is RunState.RUNNING
    (small_disk / "ballast").unlink()
    worker.launch(space, full.id)
    wait(lambda: space.runs.get(full.id).state.is_ended)
    assert space.runs.get(full.id).state is RunState.FINISHED
    assert_same_results(elsewhere, whole, full, space)
    assert integrity(space.database) == []
