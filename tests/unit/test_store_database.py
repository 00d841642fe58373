"""What goes wrong with a database, and what the user is told. SQLite unless said otherwise."""

import json
import os
import signal
import sqlite3
import threading
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
import sqlalchemy as sa
from store_actors import PATIENCE, small_data, start
from store_integrity import integrity

from core.engine.config import PlainConfig
from core.errors import StoreError
from core.store import Database, RunState, Workspace, schema, stalled
from core.store import database as module

OLD = Path(__file__).parents[1] / "data"


@pytest.fixture(autouse=True)
def sqlite_only(monkeypatch):
    monkeypatch.delenv("PLAIN_DATABASE_URL", raising=False)


@contextmanager
def unprivileged():
    """Lose root's right to write everywhere, for a while."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def files_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def test_the_promised_settings_are_in_force(tmp_path):
    database = Workspace(tmp_path).database

    def pragma(connection, name):
        return connection.exec_driver_sql(f"PRAGMA {name}").scalar()

    with database.read() as connection:
        assert pragma(connection, "journal_mode") == "wal"
        assert pragma(connection, "foreign_keys") == 1
        assert pragma(connection, "busy_timeout") == 30_000
        assert pragma(connection, "synchronous") == 1
    with database.write() as connection:
        assert pragma(connection, "busy_timeout") == 30_000


def test_a_durable_write_is_brought_to_the_disk(tmp_path, monkeypatch):
    workspace, synced = Workspace(tmp_path), []
    monkeypatch.setattr(
        module.os, "fsync", lambda file: synced.append(os.readlink(f"/proc/self/fd/{file}"))
    )
    with workspace.database.write(durable=False):
        pass
    assert synced == []
    with workspace.database.write():
        pass
    assert synced == [str(tmp_path / "plain.db-wal")]


def test_a_write_takes_the_lock_when_it_begins(tmp_path):
    """Not at its first change: what it has read by then could be out of date."""
    database = Workspace(tmp_path).database
    with closing(sqlite3.connect(tmp_path / "plain.db", timeout=0)) as other:
        with database.write(), pytest.raises(sqlite3.OperationalError, match="locked"):
            other.execute("BEGIN IMMEDIATE")
        other.execute("BEGIN IMMEDIATE")


def test_threads_may_share_a_workspace(tmp_path):
    workspace = Workspace(tmp_path)
    data = workspace.add_dataset(small_data(), "small")
    run = workspace.runs.create(data, PlainConfig())
    workspace.runs.claim(run.id, 1, 1.0)
    errors = []

    def work():
        try:
            for _ in range(20):
                workspace.runs.heartbeat(run.id)
                workspace.runs.pending_command(run.id)
                workspace.runs.create(data, PlainConfig())
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert len(workspace.runs.list()) == 161


def test_a_newer_database_is_refused_and_not_touched(tmp_path):
    workspace = Workspace(tmp_path)
    with workspace.database.write() as connection:
        newer = {"version": schema.latest_version() + 1, "applied": schema.now()}
        connection.execute(sa.insert(schema.schema_version).values(newer))
    workspace.close()
    before = files_of(tmp_path)
    with pytest.raises(StoreError, match="newer version") as error:
        Workspace(tmp_path)
    assert "Update" in error.value.hint
    assert files_of(tmp_path) == before


def test_a_copy_is_kept_before_an_older_database_is_changed(tmp_path, monkeypatch):
    workspace = Workspace(tmp_path)
    workspace.add_dataset(small_data(), "small")
    workspace.close()
    add = "ALTER TABLE datasets ADD COLUMN colour TEXT"
    steps = [*schema.MIGRATIONS, lambda connection: connection.execute(sa.text(add))]
    old = schema.latest_version()
    monkeypatch.setattr(schema, "MIGRATIONS", steps)
    Workspace(tmp_path).close()
    Workspace(tmp_path).close()
    (copy,) = (tmp_path / "backups").iterdir()
    with closing(sqlite3.connect(copy)) as connection:
        assert connection.execute("SELECT max(version) FROM schema_version").fetchone() == (old,)
        assert connection.execute("SELECT name FROM datasets").fetchall() == [("small",)]


@pytest.mark.parametrize("old", sorted(OLD.glob("store-version-*.sql")), ids=lambda path: path.stem)
def test_databases_of_earlier_versions_still_open(tmp_path, old):
    with closing(sqlite3.connect(tmp_path / "plain.db")) as connection:
        connection.executescript(old.read_text(encoding="utf-8"))
    workspace = Workspace(tmp_path)
    (run,) = workspace.runs.list()
    assert (run.state, run.epoch, run.config.alpha) == (RunState.FINISHED, 2, 0.25)
    assert [event.kind for _, event in workspace.runs.events_after(run.id)] == [
        "run_started",
        "graphs_built",
        "epoch",
        "epoch",
        "run_ended",
    ]
    assert [d.verdict for d in workspace.decisions.latest(run.fingerprint)] == ["keep"]
    assert integrity(workspace.database) == []


@pytest.mark.parametrize("damage", ["garbage", "header", "pages", "short"])
def test_a_damaged_database_is_told_and_not_touched(tmp_path, damage):
    workspace = Workspace(tmp_path)
    workspace.add_dataset(small_data(), "small")
    workspace.close()
    path = tmp_path / "plain.db"
    content = bytearray(path.read_bytes())
    if damage == "garbage":
        content = bytearray(b"not a database, but long enough to look like one" * 100)
    elif damage == "header":
        content[:16] = bytes(16)
    elif damage == "pages":
        content[100:4096] = b"\xff" * 3996
    else:
        del content[3000:]
    path.write_bytes(content)
    with pytest.raises(StoreError, match="damaged") as error:
        Workspace(tmp_path)
    assert "plain restore" in error.value.hint
    assert path.read_bytes() == content


def test_damage_inside_is_found_by_the_integrity_check(tmp_path):
    workspace = Workspace(tmp_path)
    data = workspace.add_dataset(small_data(), "small")
    for _ in range(50):
        workspace.runs.create(data, PlainConfig())
    workspace.close()
    path = tmp_path / "plain.db"
    content = bytearray(path.read_bytes())
    content[-8192:-4096] = b"\xff" * 4096
    path.write_bytes(content)
    assert integrity(Workspace(tmp_path).database) != []


def test_rows_that_refer_to_nothing_are_found_by_the_integrity_check(tmp_path):
    workspace = Workspace(tmp_path)
    with closing(sqlite3.connect(tmp_path / "plain.db")) as connection:
        connection.execute("INSERT INTO events VALUES ('none', 0, 't', 'epoch', '{}')")
        connection.commit()
    assert "events" in integrity(workspace.database)[0]


@pytest.mark.parametrize("state", ["folder", "database"])
def test_a_read_only_workspace_is_told(tmp_path_factory, state):
    folder = tmp_path_factory.mktemp("locked")
    Workspace(folder).close()
    for parent in (folder, *folder.parents[:2]):
        os.chmod(parent, 0o755)
    os.chmod(folder, 0o555 if state == "folder" else 0o777)
    for name in ("plain.db", "machine.json"):
        os.chmod(folder / name, 0o444)
    try:
        with unprivileged(), pytest.raises(StoreError, match="yours to write"):
            Workspace(folder).add_dataset(small_data(), "small")
    finally:
        os.chmod(folder, 0o755)


def test_a_folder_that_cannot_be_made_is_told(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="yours to write"):
        Workspace(tmp_path / "file")
    with pytest.raises(StoreError, match="yours to write"):
        Workspace(tmp_path / "file" / "inside")


def test_a_lock_held_too_long_is_told(tmp_path, monkeypatch):
    workspace = Workspace(tmp_path)
    monkeypatch.setattr(module, "BUSY_SECONDS", 0.2)
    with closing(sqlite3.connect(tmp_path / "plain.db")) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError, match="locked"):
            workspace.add_dataset(small_data(), "small")
        assert workspace.datasets() == []  # readers do not mind
    workspace.add_dataset(small_data(), "small")


def test_a_full_disk_is_told_and_nothing_stored_is_harmed(tmp_path):
    """On a real disk of one megabyte."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = os.geteuid() == 0 and os.system(f"mount -t tmpfs -o size=1m none {disk}") == 0
    if not mounted:
        pytest.skip("only root can mount a small disk")
    try:
        actor = start("fill", disk)
        out, complaint = actor.communicate(timeout=PATIENCE)
        assert actor.returncode == 0, complaint
        name, title, stored = json.loads(out)
        assert (name, title) == ("StoreUnavailable", "The disk is full.")
        os.system(f"mount -o remount,size=4m {disk}")
        workspace = Workspace(disk)
        assert integrity(workspace.database) == []
        assert workspace.decisions.count(small_data().fingerprint) == stored > 10
        workspace.close()
    finally:
        os.system(f"umount {disk}")


def test_kill_in_mid_burst_keeps_what_was_acknowledged(tmp_path):
    workspace = Workspace(tmp_path)
    data = workspace.add_dataset(small_data(), "small")
    told = 0
    for _ in range(3):
        writer = start("decide_aloud", tmp_path)
        acknowledged = [writer.stdout.readline().strip() for _ in range(told, told + 40)]
        writer.send_signal(signal.SIGKILL)
        acknowledged += writer.communicate()[0].split()
        stored = {decision.uid for decision in workspace.decisions.history(data)}
        assert set(acknowledged[:-1]) <= stored  # the last line may be torn
        assert len(stored) == workspace.decisions.count(data)
        assert integrity(workspace.database) == []


@pytest.mark.parametrize(
    "url",
    [
        "mysql://x/y",
        "nonsense",
        "sqlite://",
        "sqlite:///:memory:",
        "postgresql+psycopg2://x/y",
        "postgresql://h:x/",
    ],
)
def test_an_address_that_is_none_is_told(tmp_path, monkeypatch, url):
    monkeypatch.setenv("PLAIN_DATABASE_URL", url)
    with pytest.raises(StoreError, match="address") as error:
        Workspace(tmp_path)
    assert "PLAIN_DATABASE_URL" in error.value.hint


def test_a_server_that_does_not_answer_is_told_without_the_password():
    with pytest.raises(StoreError, match="reached") as error:
        Database("postgresql+psycopg://me:secret@127.0.0.1:1/plain")
    assert "secret" not in str(error.value)
    assert "127.0.0.1" in error.value.detail


def test_a_missing_postgres_database_or_user_is_told(postgres_server):
    with pytest.raises(StoreError, match="nowhere"):
        Database(postgres_server.format("nowhere"))
    with pytest.raises(StoreError, match="stranger"):
        Database(postgres_server.format("postgres").replace("plain@", "stranger@"))


def test_postgres_addresses_may_be_short(postgres_url):
    assert not Database(postgres_url.replace("+psycopg", "")).is_sqlite


def test_a_postgres_connection_that_was_cut_is_replaced(postgres_url):
    database = Database(postgres_url)
    cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
    other = Database(postgres_url)
    with other.read() as connection:
        connection.execute(sa.text(f"{cut} AND datname = current_database()"))
    assert integrity(database) == []


def test_a_statement_of_postgres_that_takes_its_time_is_not_cut(monkeypatch, postgres_url):
    """The server is asked whether it still answers others, several times meanwhile."""
    monkeypatch.setattr(stalled, "PATIENCE_SECONDS", 0.05)
    monkeypatch.setattr(stalled, "LOOK_SECONDS", 0.02)
    database = Database(postgres_url)
    with database.read() as connection:
        assert connection.scalar(sa.text("SELECT 7 FROM pg_sleep(0.4)")) == 7
    database.close()
