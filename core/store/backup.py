"""Dated copies of the database, and the way back.

A copy is made by SQLite while others read and write, checked, and only then given its name. Files
of data and runs are not in it: `core.store.full_backup` has them, and PostgreSQL too.
"""

import os
import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import monotonic, time
from typing import TYPE_CHECKING
from uuid import uuid4

import sqlalchemy as sa
from sqlalchemy.engine import URL

from core.errors import StoreError
from core.failpoints import failpoint
from core.paths import full_path, sync_folder
from core.store.database import BUSY_SECONDS, Database, database_errors, folder_url, sqlite_url
from core.store.files import disk_errors
from core.store.permissions import create_private, make_private_folder
from core.store.schema import check_version, runs

if TYPE_CHECKING:
    from core.store.workspace import Workspace

KEEP = 14
ALIVE_SECONDS = 60.0
_STAMP = "plain-%Y%m%dT%H%M%S.%fZ.db"


def backup(workspace: "Workspace") -> Path:
    """Copy the database into `backups/`, keeping the last 14 copies; return the new one."""
    copy = copy_database(workspace.database, workspace.folder / "backups")
    for old in backups(workspace)[KEEP:]:
        old.unlink(missing_ok=True)
    return copy


def backups(workspace: "Workspace") -> list[Path]:
    """Return the copies there are, the newest first."""
    return sorted((workspace.folder / "backups").glob("plain-*.db"), reverse=True)


def automatic_backup(workspace: "Workspace") -> Path | None:
    """Make a copy unless one was made within a day. Nothing on PostgreSQL."""
    if not workspace.database.is_sqlite:
        return None
    recent = (datetime.now(UTC) - timedelta(days=1)).strftime(_STAMP)
    if any(path.name > recent for path in backups(workspace)):
        return None
    return backup(workspace)


def restore(folder: Path | str, copy: Path | str) -> Path:
    """Put a copy in place of the workspace's database; return where the present one is kept.

    Works also where the present database is damaged, so it takes the folder of the workspace.
    Other programs may have the workspace open: they see the old database, then the restored one.

    Raises
    ------
    StoreError
        The copy is not a sound database of a known version, or a run is at work.
    """
    folder, copy = full_path(folder), Path(copy)
    path = _sqlite_file(folder_url(folder))
    check_copy(copy)
    if path.exists() and _is_damaged(path):
        kept = _set_aside(path)
    else:
        kept = _keep_present(path, folder / "backups")
    failpoint("restore.present_kept")
    with database_errors(str(path)):
        _copy(copy, path)
    Database(sqlite_url(path)).close()  # brings an older copy up to date
    return kept


def _keep_present(path: Path, folder: Path) -> Path:
    url = sqlite_url(path)
    with closing(Database(url, before_migration=lambda old: copy_database(old, folder))) as present:
        _refuse_while_running(present)
        return copy_database(present, folder)


def copy_database(database: Database, folder: Path) -> Path:
    """Copy an SQLite database to a dated file in the folder; the copy is checked."""
    source = _sqlite_file(database.url)
    target = folder / datetime.now(UTC).strftime(_STAMP)
    temporary = folder / f".{target.name}.{uuid4().hex[:8]}.tmp"
    with disk_errors(target):
        make_private_folder(folder)
    try:
        copy_sqlite(source, temporary)
        check_copy(temporary)
        failpoint("backup.copy_made")
        with disk_errors(target):
            os.replace(temporary, target)
            sync_folder(folder)
    finally:
        temporary.unlink(missing_ok=True)
    return target


def copy_sqlite(source: Path, target: Path) -> None:
    """Copy an SQLite database, which may be in use, to one file."""
    with database_errors(str(target)):
        _copy(source, target)
        make_single_file(target)


def _sqlite_file(url: URL) -> Path:
    if url.get_backend_name() != "sqlite":
        place = url.render_as_string(hide_password=True)
        hint = "Use PostgreSQL's own tools, pg_dump and pg_restore."
        raise StoreError("Only SQLite databases are copied and restored here.", place, hint)
    return Path(url.database or "")


def _copy(source: Path, target: Path) -> None:
    give_up = monotonic() + BUSY_SECONDS

    def check_time(status: int, *_progress: int) -> None:
        if status in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED) and monotonic() > give_up:
            raise StoreError("The database is in use.", str(target), "Close other programs.")

    with closing(_connect(source, "ro")) as reader, closing(_connect(target)) as writer:
        reader.backup(writer, progress=check_time)


def make_single_file(path: Path) -> None:
    """Leave the write-ahead log, so that the copy has no companion files."""
    with closing(_connect(path)) as connection:
        connection.execute("PRAGMA journal_mode=DELETE")


def _connect(path: Path, mode: str = "rwc") -> sqlite3.Connection:
    if mode == "rwc":
        create_private(path)
    uri = f"{path.absolute().as_uri()}?mode={mode}"
    return sqlite3.connect(uri, uri=True, timeout=BUSY_SECONDS, isolation_level=None)


def check_copy(copy: Path) -> None:
    """Refuse a file that is not a sound database of a version this program knows."""
    if not copy.is_file():
        raise StoreError("There is no such backup.", str(copy), "Look into the folder backups.")
    with database_errors(str(copy)), closing(_connect(copy, "ro")) as connection:
        found = connection.execute("PRAGMA integrity_check").fetchone()[0]
        if found != "ok":
            raise StoreError("This backup is damaged.", f"{copy}: {found}", "Choose another one.")
        known = "SELECT count(*) FROM sqlite_master WHERE name = 'schema_version'"
        ours = connection.execute(known).fetchone()[0]
        stored = "SELECT max(version) FROM schema_version"
        check_version(connection.execute(stored).fetchone()[0] if ours else None)


def _refuse_while_running(database: Database) -> None:
    alive = runs.c.state.in_(["running", "paused"]) & (runs.c.heartbeat > time() - ALIVE_SECONDS)
    with database.read() as connection:
        at_work = connection.scalars(sa.select(runs.c.id).where(alive)).all()
    if at_work:
        raise StoreError("A run is at work.", f"Run {', '.join(at_work)}.", "Stop it first.")


def _is_damaged(path: Path) -> bool:
    try:
        with closing(_connect(path)) as connection:
            return bool(connection.execute("PRAGMA integrity_check").fetchone()[0] != "ok")
    except sqlite3.DatabaseError as error:
        return error.sqlite_errorname.startswith(("SQLITE_NOTADB", "SQLITE_CORRUPT"))


def _set_aside(path: Path) -> Path:
    """Move a damaged database, with SQLite's companion files, out of the way."""
    name = datetime.now(UTC).strftime(_STAMP).replace("plain-", "damaged-")
    kept = path.parent / "backups" / name
    with disk_errors(kept):
        make_private_folder(kept.parent)
        for ending in ("-wal", "-shm", ""):
            companion = path.with_name(path.name + ending)
            if companion.exists():
                os.replace(companion, kept.with_name(kept.name + ending))
    return kept
