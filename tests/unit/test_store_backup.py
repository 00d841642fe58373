import sqlite3
from contextlib import closing
from importlib import import_module

import pytest
from store_actors import small_data, start
from store_integrity import integrity

from core.engine.config import PlainConfig
from core.errors import StoreError
from core.store import (
    Decision,
    RunState,
    Workspace,
    automatic_backup,
    backup,
    backups,
    restore,
    schema,
)


@pytest.fixture
def workspace(tmp_path, monkeypatch):
    monkeypatch.delenv("PLAIN_DATABASE_URL", raising=False)
    workspace = Workspace(tmp_path)
    workspace.add_dataset(small_data(), "small")
    yield workspace
    workspace.close()


def decide(workspace, uid):
    cell = {"fingerprint": small_data().fingerprint, "instance_id": "1", "label": "label0"}
    workspace.decisions.add(Decision(uid=uid, verdict="keep", annotator="a", **cell))


def uids(workspace):
    return [decision.uid for decision in workspace.decisions.history(small_data().fingerprint)]


def test_a_restored_backup_is_what_was_and_what_is_stays_kept(workspace):
    decide(workspace, "one")
    copy = backup(workspace)
    decide(workspace, "two")
    kept = restore(workspace.folder, copy)
    assert uids(workspace) == ["one"]  # seen by whoever has the workspace open
    assert integrity(workspace.database) == []
    restore(workspace.folder, kept)
    assert uids(workspace) == ["one", "two"]
    decide(workspace, "three")
    assert uids(Workspace(workspace.folder)) == ["one", "two", "three"]


def test_a_backup_is_one_file_that_is_a_database(workspace):
    copy = backup(workspace)
    assert [path.name for path in copy.parent.iterdir()] == [copy.name]
    with closing(sqlite3.connect(copy)) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("delete",)
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_backups_are_whole_while_others_write(workspace):
    writer = start("decide_aloud", workspace.folder)
    writer.stdout.readline()
    counts = []
    for _ in range(5):
        with closing(sqlite3.connect(backup(workspace))) as connection:
            counts.append(connection.execute("SELECT count(*) FROM decisions").fetchone()[0])
    writer.kill()
    writer.communicate()
    assert counts == sorted(counts)
    assert counts[-1] > 0


def test_the_last_fourteen_are_kept(workspace):
    made = [backup(workspace) for _ in range(16)]
    assert backups(workspace) == made[:1:-1]


def test_restoring_the_oldest_does_not_lose_it(workspace):
    made = [backup(workspace) for _ in range(14)]
    restore(workspace.folder, made[0])
    assert made[0].exists()


def test_an_automatic_backup_is_made_once_a_day(workspace, monkeypatch):
    first = automatic_backup(workspace)
    assert first is not None
    assert automatic_backup(workspace) is None
    first.rename(first.with_name("plain-20200101T000000.000000Z.db"))
    assert automatic_backup(workspace) is not None
    assert len(backups(workspace)) == 2


def test_restore_waits_for_no_run_but_refuses(workspace, monkeypatch):
    copy = backup(workspace)
    run = workspace.runs.create(small_data().fingerprint, PlainConfig())
    workspace.runs.claim(run.id, 1, 1.0)
    with pytest.raises(StoreError, match="at work"):
        restore(workspace.folder, copy)
    assert workspace.runs.get(run.id).state is RunState.RUNNING
    module = import_module("core.store.backup")
    monkeypatch.setattr(module, "ALIVE_SECONDS", -1.0)  # a dead run is no reason to refuse
    restore(workspace.folder, copy)
    assert workspace.runs.list() == []


def test_restore_works_where_the_database_is_damaged(workspace):
    decide(workspace, "one")
    copy = backup(workspace)
    workspace.close()
    for path in workspace.folder.glob("plain.db*"):
        path.unlink()
    damaged = b"garbage" * 1000
    (workspace.folder / "plain.db").write_bytes(damaged)
    kept = restore(workspace.folder, copy)
    assert kept.read_bytes() == damaged
    assert uids(Workspace(workspace.folder)) == ["one"]


def test_restore_works_where_the_database_is_gone(workspace, tmp_path):
    decide(workspace, "one")
    copy = backup(workspace)
    (tmp_path / "other").mkdir()
    restore(tmp_path / "other", copy)
    assert uids(Workspace(tmp_path / "other")) == ["one"]


@pytest.mark.parametrize("kind", ["missing", "garbage", "foreign", "newer", "torn"])
def test_what_is_no_backup_is_refused_and_nothing_changes(workspace, tmp_path, kind):
    decide(workspace, "one")
    copy = tmp_path / "copy.db"
    if kind == "garbage":
        copy.write_bytes(b"garbage" * 1000)
    elif kind == "foreign":
        with closing(sqlite3.connect(copy)) as connection:
            connection.execute("CREATE TABLE songs (title TEXT)")
    elif kind == "newer":
        backup(workspace).rename(copy)
        with closing(sqlite3.connect(copy)) as connection:
            newer = schema.latest_version() + 1
            connection.execute("INSERT INTO schema_version VALUES (?, 'now')", (newer,))
            connection.commit()
    elif kind == "torn":
        content = backup(workspace).read_bytes()
        copy.write_bytes(content[: len(content) // 2])
    with pytest.raises(StoreError):
        restore(workspace.folder, copy)
    assert uids(workspace) == ["one"]


def test_postgres_has_its_own_tools(tmp_path, postgres_url, monkeypatch):
    monkeypatch.setenv("PLAIN_DATABASE_URL", postgres_url)
    workspace = Workspace(tmp_path)
    with pytest.raises(StoreError, match="pg_dump"):
        backup(workspace)
    with pytest.raises(StoreError, match="pg_restore"):
        restore(tmp_path, "any.db")
    assert automatic_backup(workspace) is None
