"""Full backups: all that a workspace holds, copied into a folder that keeps several of them.

The manifest is written last, when everything it names is on the disk: what has no manifest is no
backup, and a killed one changes none of those before it. A file whose size and time are those of
the last manifest is not read again.

Runs may work and people may answer meanwhile. What the database tells of must be in the files, so
they are copied after it; only the checkpoints of runs at work come before: one that knows more
than the database could not be resumed from. Left out are the dated copies in `backups`, locks,
copies of other machines' files, what is on its way in or out, and temporary files.
"""

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from functools import partial
from pathlib import Path
from time import time_ns
from typing import IO, TYPE_CHECKING, NamedTuple
from uuid import uuid4

import filelock

from core.errors import StoreError
from core.failpoints import failpoint
from core.paths import full_path, sync_folder
from core.store.backup import KEEP, copy_sqlite, make_single_file
from core.store.database import Database, sqlite_url
from core.store.files import disk_errors, remove_leftovers
from core.store.manifest import (
    DATABASE,
    FileEntry,
    Manifest,
    copy_blocks,
    manifests,
    object_path,
    read_manifest,
    write_manifest,
)
from core.store.permissions import make_private_folder, open_private
from core.store.transfer import copy_tables

if TYPE_CHECKING:
    from core.store.workspace import Workspace

Progress = Callable[[int, int], None]
"""Called with how many bytes are done, of how many."""

_SKIPPED_AT_THE_TOP = {"backups", "incoming", "exports", "cache", DATABASE}
_SKIPPED_ENDINGS = (".lock", "-wal", "-shm", "-journal")
_SAME_MOMENT_NS = 2_000_000_000  # a file changed this shortly before a backup is read again


class FullBackup(NamedTuple):
    """What a backup holds, and how many of its files were new."""

    manifest: Path
    n_files: int
    n_bytes: int
    n_copied: int


def full_backup(
    workspace: "Workspace", folder: Path | str, on_progress: Progress = lambda *_: None
) -> FullBackup:
    """Copy what of a workspace is not yet in the backup folder; the last 14 backups are kept.

    Raises
    ------
    StoreError
        The folder is in the workspace, in use by another backup, or cannot be written.
    """
    folder = full_path(folder)
    if folder.resolve().is_relative_to(workspace.folder.resolve()):
        hint = "Choose a folder outside, best on another disk."
        raise StoreError("A backup must not lie in the workspace.", str(folder), hint)
    with _locked(folder):
        copier = _Copier(folder, workspace.folder)
        entries = _copy_all(workspace, copier, on_progress)
        with disk_errors(folder):
            for part in (folder / "objects", *(folder / "objects").iterdir()):
                sync_folder(part)
        failpoint("backup.before_manifest")
        manifest = Manifest(started=copier.started, files=entries)
        path = write_manifest(folder, manifest)
        failpoint("backup.manifest_written")
        _prune(folder)
    return FullBackup(path, len(entries), manifest.n_bytes, copier.n_copied)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    with disk_errors(folder):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for name in ("objects", "manifests"):
            make_private_folder(folder / name)
        lock = filelock.FileLock(folder / "backup.lock", mode=0o600)
        try:
            lock.acquire(timeout=0)
        except filelock.Timeout:
            hint = "Wait until it has ended."
            raise StoreError("Another backup is being made here.", str(folder), hint) from None
    try:
        for name in ("objects", "manifests"):
            remove_leftovers(folder / name)
        yield
    finally:
        lock.release()


class _Copier:
    """Brings files of a workspace into the objects of a backup folder."""

    def __init__(self, folder: Path, workspace: Path) -> None:
        self.started, self.n_copied = time_ns(), 0
        self._folder, self._workspace = folder, workspace
        self._known: dict[str, FileEntry] = {}
        for path in manifests(folder)[:1]:
            with suppress(StoreError):  # without the last manifest all files are read again
                last = read_manifest(path)
                long_ago = last.started - _SAME_MOMENT_NS
                self._known = {one.path: one for one in last.files if one.mtime_ns < long_ago}

    def copy(self, path: Path) -> FileEntry | None:
        """Return the entry of a file, copied unless it is unchanged; none if it is gone."""
        name = path.relative_to(self._workspace).as_posix()
        if _is_sqlite(path):
            return self.copy_database(name, partial(copy_sqlite, path))
        try:
            with open(path, "rb") as file:
                found = os.fstat(file.fileno())
                known = self._known.get(name)
                if known and _is_unchanged(known, found) and self._has(known):
                    return known
                return self._keep(name, file, found.st_mtime_ns)
        except FileNotFoundError:
            return None
        except PermissionError as error:
            hint = "Check that it is yours to read."
            raise StoreError("A file of the workspace cannot be read.", str(path), hint) from error

    def copy_database(self, name: str, make: Callable[[Path], None]) -> FileEntry:
        """Return the entry of a database, of which `make` writes a copy."""
        temporary = self._temporary()
        try:
            make(temporary)
            failpoint("backup.database_copied")
            with open(temporary, "rb") as file:
                return self._keep(name, file, 0)
        finally:
            temporary.unlink(missing_ok=True)

    def _has(self, entry: FileEntry) -> bool:
        try:
            return object_path(self._folder, entry.sha256).stat().st_size == entry.size
        except OSError:
            return False

    def _keep(self, name: str, source: IO[bytes], mtime_ns: int) -> FileEntry:
        temporary = self._temporary()
        try:
            with disk_errors(self._folder):
                with open_private(temporary) as file:
                    size, sha256 = copy_blocks(source, file)
                failpoint("backup.object_written")
                target = object_path(self._folder, sha256)
                make_private_folder(target.parent)
                os.replace(temporary, target)
        finally:
            temporary.unlink(missing_ok=True)
        self.n_copied += 1
        failpoint("backup.object_in_place")
        return FileEntry(path=name, size=size, mtime_ns=mtime_ns, sha256=sha256)

    def _temporary(self) -> Path:
        return self._folder / "objects" / f".{uuid4().hex}.tmp"


def _is_unchanged(known: FileEntry, found: os.stat_result) -> bool:
    return (known.size, known.mtime_ns) == (found.st_size, found.st_mtime_ns)


def _copy_all(workspace: "Workspace", copier: _Copier, on_progress: Progress) -> list[FileEntry]:
    """Copy checkpoints of runs at work, databases, then all files; return the entries by path."""
    early = _copy_checkpoints(workspace, copier)
    at_work: set[str] = set()

    def copy_ours(target: Path) -> None:
        _copy_database(workspace.database, target)
        at_work.update(_runs_at_work(target))

    entries = {DATABASE: copier.copy_database(DATABASE, copy_ours)}
    paths = list(_files(workspace.folder))
    paths.sort(key=lambda one: not _is_sqlite(one[0]))  # the trials of studies first
    done, total = 0, sum(size for _, size in paths)
    for path, size in paths:
        entry = copier.copy(path)
        if entry is not None:
            entries[entry.path] = entry
        done += size
        on_progress(done, total)
    entries |= {entry.path: entry for run_id, entry in early.items() if run_id in at_work}
    return sorted(entries.values(), key=lambda one: one.path)


def _copy_checkpoints(workspace: "Workspace", copier: _Copier) -> dict[str, FileEntry]:
    """Return the checkpoints of runs that have not ended, by run."""
    runs = [run.id for run in workspace.runs.list(include_deleted=True) if not run.state.is_ended]
    folder = workspace.folder / "runs"
    found = {run_id: copier.copy(folder / run_id / "checkpoint.npz") for run_id in runs}
    return {run_id: entry for run_id, entry in found.items() if entry is not None}


def _copy_database(database: Database, target: Path) -> None:
    if database.path is not None:
        copy_sqlite(database.path, target)
        return
    with closing(Database(sqlite_url(target))) as copy:
        copy_tables(database, copy)
    make_single_file(target)


def _runs_at_work(database: Path) -> list[str]:
    query = "SELECT id FROM runs WHERE state IN ('queued', 'running', 'paused')"
    with closing(sqlite3.connect(database)) as connection:
        return [run_id for (run_id,) in connection.execute(query)]


def _is_sqlite(path: Path) -> bool:
    with suppress(OSError), open(path, "rb") as file:
        return path.suffix == ".db" and file.read(16) == b"SQLite format 3\0"
    return False


def _files(folder: Path) -> Iterator[tuple[Path, int]]:
    """Walk through the files to be copied, with their sizes; links are followed."""
    been: set[str] = set()
    for place, folders, names in os.walk(folder, followlinks=True):
        at_the_top = place == str(folder)
        been.add(os.path.realpath(place))
        folders[:] = [
            one
            for one in folders
            if not _is_skipped(one, at_the_top)
            and os.path.realpath(os.path.join(place, one)) not in been
        ]
        for name in names:
            path = Path(place, name)
            if not _is_skipped(name, at_the_top):
                with suppress(OSError):
                    yield path, path.stat().st_size


def _is_skipped(name: str, at_the_top: bool) -> bool:
    is_temporary = name.startswith(".") and ".tmp" in name
    return (
        is_temporary
        or name.endswith(_SKIPPED_ENDINGS)
        or (at_the_top and name in _SKIPPED_AT_THE_TOP)
    )


def _prune(folder: Path) -> None:
    """Remove all but the last backups, and the contents that none of them has."""
    paths = manifests(folder)
    try:
        needed = {one.sha256 for path in paths[:KEEP] for one in read_manifest(path).files}
    except StoreError:  # what a damaged manifest needs is not known
        return
    for path in paths[KEEP:]:
        path.unlink(missing_ok=True)
        failpoint("backup.manifest_removed")
    for path in (folder / "objects").glob("??/*"):
        if path.name not in needed:
            path.unlink(missing_ok=True)
            failpoint("backup.object_removed")
