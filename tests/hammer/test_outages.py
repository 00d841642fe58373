"""Runs outlive minutes without their database, and a disk that is really full."""

import os
import subprocess
from contextlib import suppress
from time import sleep

import pytest
from real_runs import assert_same_results, kill_all, queue, wait
from store_integrity import integrity

from core.runs import worker
from core.store import RunState, Workspace

pytestmark = pytest.mark.hammer

AWAY_SECONDS = float(os.environ.get("PLAIN_HAMMER_AWAY", 150))
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
    wait(lambda: space.runs.get(cut_off.id).state.is_ended)
    ended = space.runs.get(cut_off.id)
    assert (ended.state, ended.claim) == (RunState.FINISHED, claimed.claim)
    seqs = [seq for seq, _ in space.runs.events_after(cut_off.id)]
    assert seqs == list(range(SETTINGS["epochs"] + 3))
    assert_same_results(space, whole, cut_off)


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
