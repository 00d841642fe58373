"""A workspace from a full backup: into nothing, on any machine, SQLite or PostgreSQL.

`.restoring` is written first and the database last. Until the restore has ended the workspace
cannot be opened, and the same restore again goes on where it stopped.
"""

import os
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from core.errors import StoreError
from core.failpoints import failpoint
from core.paths import full_path, sync_folder
from core.store.backup import check_copy
from core.store.database import Database, folder_url, sqlite_url
from core.store.files import disk_errors, remove_leftovers, replacing
from core.store.full_backup import Progress
from core.store.manifest import (
    DATABASE,
    FileEntry,
    Manifest,
    checksum,
    copy_blocks,
    manifests,
    object_path,
    read_manifest,
)
from core.store.permissions import make_private_folder
from core.store.transfer import copy_tables, count_rows

MARKER = ".restoring"
"""Names the backup from which a workspace is being restored, while it is."""

_SHOWN = 20


class Restored(NamedTuple):
    """What a restore brought back, and the files it could not."""

    n_files: int
    n_bytes: int
    damaged: list[str]


def is_full_backup(path: Path) -> bool:
    """Whether this is a folder of full backups, or the manifest of one."""
    return (path / "manifests").is_dir() or path.suffix == ".json"


def check_full_backup(source: Path, on_progress: Progress = lambda *_: None) -> Restored:
    """Read all of a backup; `damaged` are files that are not what was written, and where."""
    folder, _, manifest = _open_backup(source)
    done, damaged = 0, []
    for entry in manifest.files:
        path = object_path(folder, entry.sha256)
        if checksum(path) != entry.sha256:
            damaged.append(f"{entry.path}, kept as {path}")
        done += entry.size
        on_progress(done, manifest.n_bytes)
    return Restored(len(manifest.files), manifest.n_bytes, damaged)


def restore_full(
    source: Path,
    folder: Path,
    *,
    without_damaged: bool = False,
    on_progress: Progress = lambda *_: None,
) -> Restored:
    """Make a workspace from a backup, in a folder that does not exist or is empty.

    Parameters
    ----------
    source : a folder of full backups, whose newest is taken, or the manifest of one
    without_damaged : leave out files that are damaged instead of refusing

    Raises
    ------
    StoreError
        The folder or the database is not empty, or the backup is damaged.
    """
    kept, name, manifest = _open_backup(source)
    folder = full_path(folder)
    database = next(one for one in manifest.files if one.path == DATABASE)
    _begin(folder, name)
    done, damaged = database.size, list[str]()
    for entry in manifest.files:
        if entry is not database:
            if not _put_back(object_path(kept, entry.sha256), folder / entry.path, entry):
                damaged.append(entry.path)
            failpoint("restore.file_written")
            done += entry.size
            on_progress(done, manifest.n_bytes)
    if damaged and not without_damaged:
        raise _damaged(damaged, "Restore --without-damaged, or from an older backup.")
    _restore_database(object_path(kept, database.sha256), folder, database)
    failpoint("restore.before_end")
    with disk_errors(folder):
        (folder / MARKER).unlink()
        sync_folder(folder)
    return Restored(len(manifest.files) - len(damaged), manifest.n_bytes, damaged)


def refuse_half_restored(folder: Path) -> None:
    """Raise `StoreError` where a restore did not end."""
    if os.path.exists(folder / MARKER):
        hint = "Run plain restore again with the same backup: it goes on where it stopped."
        raise StoreError("A restore into this folder did not end.", str(folder), hint)


def _open_backup(source: Path) -> tuple[Path, str, Manifest]:
    """Return the backup folder, the manifest's name and the manifest."""
    if not source.exists():
        raise StoreError("There is no such backup.", str(source), "Check its path.")
    found = [source] if source.suffix == ".json" else manifests(source)[:1]
    if not found:
        hint = "Give the folder that was given to plain backup --full."
        raise StoreError("There is no whole backup in this folder.", str(source), hint)
    path = found[0].absolute()
    manifest = read_manifest(path)
    if not any(one.path == DATABASE for one in manifest.files):
        raise StoreError("This backup has no database.", str(path), "Choose another.")
    return path.parents[1], path.name, manifest


def _begin(folder: Path, name: str) -> None:
    """Mark the folder, which must be empty or marked by the same restore."""
    marker = folder / MARKER
    half = marker.read_text() if marker.exists() else None
    if half is None and folder.exists() and any(folder.iterdir()):
        hint = "Name a new folder with --workspace, or move this one away."
        raise StoreError("A full backup is restored into an empty folder.", str(folder), hint)
    if half not in (None, name):
        detail, hint = f"{folder}: from {half}.", "Empty the folder, or choose another."
        raise StoreError("This folder holds half of another backup.", detail, hint)
    url = folder_url(folder)
    if half is None and url != sqlite_url(folder / DATABASE):
        with closing(Database(url)) as target:
            if any(count_rows(target).values()):
                raise _not_empty(target)
    with disk_errors(folder):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        marker.write_text(name)
        sync_folder(folder)
    failpoint("restore.begun")


def _put_back(source: Path, target: Path, entry: FileEntry) -> bool:
    """Write one file unless it is there; false where the backup's copy is damaged."""
    if checksum(target) == entry.sha256:
        return True
    if not source.is_file():
        return False
    with disk_errors(target):
        make_private_folder(target.parent)
        remove_leftovers(target.parent)
    try:
        with replacing(target) as copy, open(source, "rb") as file:
            if copy_blocks(file, copy) != (entry.size, entry.sha256):
                raise _DamagedObject
    except _DamagedObject:
        return False
    os.utime(target, ns=(entry.mtime_ns, entry.mtime_ns))
    return True


def _restore_database(source: Path, folder: Path, entry: FileEntry) -> None:
    """Fill the database of the workspace, which must be empty, with the rows of the copy."""
    staged = folder / f".{DATABASE}.tmp"
    if not _put_back(source, staged, entry):
        raise _damaged([DATABASE], "Restore from an older backup of the same folder.")
    check_copy(staged)
    with (
        closing(Database(sqlite_url(staged))) as copy,
        closing(Database(folder_url(folder))) as target,
    ):
        there = count_rows(target)
        if there != count_rows(copy):  # else a restore that was killed had come to here
            if any(there.values()):
                raise _not_empty(target)
            copy_tables(copy, target)
    failpoint("restore.database_filled")
    remove_leftovers(folder)


class _DamagedObject(Exception):  # noqa: N818 - never leaves this module
    pass


def _damaged(paths: list[str], hint: str) -> StoreError:
    shown = [*paths[:_SHOWN], f"and {len(paths) - _SHOWN} more"] if len(paths) > _SHOWN else paths
    return StoreError("Files of this backup are damaged.", "\n".join(shown), hint)


def _not_empty(database: Database) -> StoreError:
    hint = "Name another with PLAIN_DATABASE_URL, or unset it."
    return StoreError("A full backup is restored into an empty database.", database.place, hint)
