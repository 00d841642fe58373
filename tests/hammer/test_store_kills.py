"""The store killed at every named point: what was acknowledged is there, nothing is half."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from store_actors import killed_at, small_data, start
from store_integrity import integrity

from core.store import RunState, Workspace, schema

pytestmark = pytest.mark.hammer

OLD = sorted((Path(__file__).parents[1] / "data").glob("store-version-*.sql"))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.delenv("PLAIN_DATABASE_URL", raising=False)
    return tmp_path / "space"


def version(folder):
    with closing(sqlite3.connect(folder / "plain.db")) as connection:
        return connection.execute("SELECT max(version) FROM schema_version").fetchone()[0]


@pytest.mark.parametrize("old", OLD, ids=lambda path: path.stem)
@pytest.mark.parametrize(
    "point", ["migration.copy_kept", "migration.step_done", "migration.before_commit"]
)
def test_a_killed_migration_changed_nothing_and_is_made_at_the_next_start(folder, old, point):
    folder.mkdir()
    with closing(sqlite3.connect(folder / "plain.db")) as connection:
        connection.executescript(old.read_text(encoding="utf-8"))
    before = version(folder)
    killed_at(point, "open_only", folder)
    assert version(folder) == before
    space = Workspace(folder)
    assert version(folder) == schema.latest_version()
    (run,) = space.runs.list()
    assert (run.state, run.epoch) == (RunState.FINISHED, 2)
    assert [one.verdict for one in space.decisions.latest(run.fingerprint)] == ["keep"]
    assert integrity(space.database) == []
    space.close()


@pytest.mark.parametrize("times", [1, 7, 30])
@pytest.mark.parametrize(
    ("point", "is_kept"),
    [("store.before_commit", False), ("store.committed", True), ("decisions.inserted", False)],
)
def test_every_acknowledged_decision_is_there_and_none_is_half(folder, point, is_kept, times):
    space = Workspace(folder)
    fingerprint = space.add_dataset(small_data(), "small")
    writer = start("decide_aloud", folder, PLAIN_FAILPOINT=f"{point}:{times}")
    told = writer.communicate(timeout=120)[0].split()
    stored = [one.uid for one in space.decisions.history(fingerprint)]
    assert stored[: len(told)] == told
    assert len(stored) == len(told) + is_kept  # the last was on its way
    assert integrity(space.database) == []
    space.close()


@pytest.mark.parametrize(
    "point", ["dataset.before_rename", "dataset.in_place", "files.before_rename", "files.renamed"]
)
def test_a_data_set_is_whole_or_absent(folder, point):
    Workspace(folder).close()
    killed_at(point, "load", folder)
    space = Workspace(folder)
    assert space.datasets() == []
    fingerprint = space.add_dataset(small_data(), "small")
    assert space.load_dataset(fingerprint, verify=True).fingerprint == fingerprint
    space.close()


def test_a_damaged_data_set_is_repaired_also_when_that_is_killed(folder):
    space = Workspace(folder)
    fingerprint = space.add_dataset(small_data(), "small")
    (folder / "datasets" / fingerprint / "features.npy").write_bytes(b"damaged")
    killed_at("dataset.taken_away", "load", folder)
    space.add_dataset(small_data(), "small")
    assert space.load_dataset(fingerprint, verify=True).fingerprint == fingerprint
    space.close()


@pytest.mark.parametrize(
    ("point", "names"), [("files.before_rename", ["a"]), ("files.renamed", ["a", "b"])]
)
def test_settings_are_the_old_ones_or_the_new_ones(folder, point, names):
    start("save_preset", folder, "a").communicate(timeout=60)
    killed_at(point, "save_preset", folder, "b")
    space = Workspace(folder)
    assert list(space.presets()) == names
    space.close()
