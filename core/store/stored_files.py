"""Files of data sets and runs in object storage, and the local copies of those made elsewhere.

An owner is a folder: `datasets/<fingerprint>`, `runs/<id>`, `pictures/<2 hex>` with small pictures,
`selections`; of the last two only files that are asked for are fetched. Files are uploaded by
whoever wrote them; the rows of `stored_files` come last, in one transaction, so what they name is
whole. Other servers fetch it into `cache/<owner>`, checked by size and checksum. Of a folder
`.storage.json` says which of its files are in the storage; when it was touched last is when the
folder was used.

A copy that was not used for long is removed when the cache gets larger than PLAIN_CACHE_GB; never
one with files that are not in the storage yet, nor one in use. Files made here are not copies:
they stay.
"""

import hashlib
import os
import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from time import monotonic, time
from typing import NamedTuple
from uuid import uuid4

import filelock
import sqlalchemy as sa
from pydantic import ValidationError

from core.errors import StoreError
from core.failpoints import failpoint
from core.store import files
from core.store.database import Database
from core.store.manifest import FileEntry, checksum
from core.store.object_storage import ObjectStorage
from core.store.permissions import make_private_folder
from core.store.schema import stored_files

Progress = Callable[[int, int], None]
"""Called with how many bytes are done, of how many."""

RECORD = ".storage.json"
DEFAULT_CACHE_GB = 20.0
RECHECK_SECONDS = 1.0
"""How old may be what is known of the storage: pages ask dozens of times per rerun."""

IN_USE_SECONDS = 10.0
"""A copy that was used within this time is not removed."""

N_UPLOADS = 4
"""Files on their way at once: thousands of small pictures mostly wait."""

_SKIPPED_ENDINGS = (".log", ".lock")  # of processes on one machine


class CacheUse(NamedTuple):
    """How many bytes the local copies have, of how many they may."""

    n_bytes: int
    limit: int


class StoredFiles:
    """What of one workspace is in object storage; without storage, nothing is."""

    def __init__(self, database: Database, folder: Path, storage: ObjectStorage | None) -> None:
        self.storage, self._place = storage, "" if storage is None else storage.place
        self._database, self._folder, self._cache = database, folder, folder / "cache"
        self._owners, self._asked = set[str](), float("-inf")
        self._checked = dict[str, float]()
        self._failed = dict[str, tuple[float, StoreError]]()

    def local(self, owner: str) -> Path:
        """Return where an owner's files are on this machine, if they are."""
        own = self._folder / owner
        return own if own.is_dir() else self._cache / owner

    def is_stored(self, owner: str) -> bool:
        """Whether somebody uploaded the files of an owner."""
        if owner not in self._owners and monotonic() - self._asked >= RECHECK_SECONDS:
            query = sa.select(stored_files.c.owner).distinct()
            with self._database.read() as connection:
                self._owners = set(connection.scalars(query))
            self._asked = monotonic()
        return owner in self._owners

    def names(self, owner: str) -> list[str]:
        """Return the names of an owner's files that `fetch` brings."""
        return [] if self.storage is None else [one.path for one in self._entries(owner)]

    def can_fetch(self, owner: str) -> bool:
        """Whether `fetch` finds the files of an owner."""
        return self.storage is not None and self.is_stored(owner)

    def is_to_fetch(self, owner: str) -> bool:
        """Whether none of an owner's files are here, but can be."""
        is_here = (self._folder / owner).is_dir() or (self._cache / owner / RECORD).exists()
        return not is_here and self.can_fetch(owner) and self.failure(owner) is None

    def failure(self, owner: str) -> StoreError | None:
        """Return why the files of an owner could not be fetched a moment ago."""
        failed = self._failed.get(owner)
        if failed is None or monotonic() - failed[0] >= 10 * RECHECK_SECONDS:
            return None
        return failed[1]

    def fetch(self, owner: str, on_progress: Progress = lambda *_: None) -> Path:
        """Return the folder with an owner's files, fetching those that are not here yet."""
        folder = self._cache / owner
        checked = self._checked.get(owner, float("-inf"))
        if monotonic() - checked < RECHECK_SECONDS and (folder / RECORD).exists():
            return folder
        if (recent := self.failure(owner)) is not None:
            raise recent
        try:
            with self._locked(owner):
                self._update(self._entries(owner), owner, folder, on_progress)
        except StoreError as error:
            self._failed[owner] = (monotonic(), error)
            raise
        self._checked[owner] = monotonic()
        return folder

    def fetch_file(self, owner: str, name: str) -> Path | None:
        """Return one file of an owner, fetched if need be; none where there is no such file."""
        for folder in (self._folder / owner, self._cache / owner):
            if (folder / name).exists():
                return folder / name
        if not self.can_fetch(owner):
            return None
        with self._locked(owner):
            wanted = [one for one in self._entries(owner) if one.path == name]
            self._update(wanted, owner, folder, lambda *_: None)
        return folder / name if wanted else None

    def upload(self, owner: str, *, verify: bool = False) -> int:
        """Upload what of an owner's folder is new here; return how many files were.

        With `verify` all files are looked for in the storage, and sent again where one is gone.
        """
        folder = self.local(owner)
        if self.storage is None or not folder.is_dir() or not (verify or _pending(folder)):
            return 0
        with self._locked(owner):
            return self._upload(self.storage, owner, folder)

    def remove(self, owner: str) -> None:
        """Remove an owner's files from the storage, and the local copy."""
        if self.storage is not None:
            self.storage.remove(owner)
        with self._database.write() as connection:
            connection.execute(sa.delete(stored_files).where(stored_files.c.owner == owner))
        self._owners.discard(owner)
        _remove_folder(self._cache / owner)

    def cache_use(self) -> CacheUse:
        """Return how large the cache is."""
        return CacheUse(sum(_size(one) for one in self._copies()), _cache_limit())

    def _entries(self, owner: str) -> list[FileEntry]:
        query = sa.select(stored_files).where(stored_files.c.owner == owner)
        with self._database.read() as connection:
            rows = connection.execute(query.order_by(stored_files.c.path)).all()
        return [
            FileEntry(path=row.path, size=row.size, mtime_ns=0, sha256=row.sha256) for row in rows
        ]

    def _update(
        self, wanted: list[FileEntry], owner: str, folder: Path, on_progress: Progress
    ) -> None:
        """Fetch what is not here, or was changed since."""
        here = _read_record(folder)
        missing = [
            one
            for one in wanted
            if one.path not in here
            or here[one.path].sha256 != one.sha256
            or not (folder / one.path).exists()
        ]
        if missing:
            total, done = sum(one.size for one in missing), 0

            def on_block(n_bytes: int) -> None:
                nonlocal done
                done += n_bytes
                on_progress(done, total)

            self._make_room(total, folder)
            with files.disk_errors(folder):
                make_private_folder(folder)
            for one in missing:
                self._fetch_file(owner, one, folder, on_block)
                failpoint("storage.file_fetched")
                here[one.path] = _entry(folder / one.path, one.sha256)
        with files.disk_errors(folder):
            if missing:
                _write_record(folder, here)
            elif here:
                os.utime(folder / RECORD)

    def _fetch_file(
        self, owner: str, one: FileEntry, folder: Path, on_block: Callable[[int], None]
    ) -> None:
        digest, size, name = hashlib.sha256(), 0, _object_name(owner, one)
        with files.replacing(folder / one.path) as file:
            for block in self._blocks(name):
                digest.update(block)
                size += file.write(block)
                on_block(len(block))
            if (size, digest.hexdigest()) != (one.size, one.sha256):
                raise _unfit("is not what was uploaded", name, self._place)

    def _blocks(self, name: str) -> Iterator[bytes]:
        assert self.storage is not None
        try:
            yield from self.storage.blocks(name)
        except FileNotFoundError:
            raise _unfit("is missing", name, self._place) from None

    def _upload(self, storage: ObjectStorage, owner: str, folder: Path) -> int:
        known = _read_record(folder)
        found = [_current(path, known) for path in _files(folder)]
        if not found:
            return 0
        there = storage.sizes(owner)
        names = {one.path: _object_name(owner, one) for one in found}
        new = [one.path for one in found if there.get(Path(names[one.path]).name) != one.size]

        def send(path: str) -> None:
            storage.put(folder / path, names[path])
            failpoint("storage.object_uploaded")

        with ThreadPoolExecutor(N_UPLOADS) as threads:
            list(threads.map(send, new))
        # What changed on its way up is not recorded, and goes again with the next upload.
        sent = {one.path: one for one in found if _is_same(folder / one.path, one)}
        failpoint("storage.before_recording")
        self._record(owner, [one for one in sent.values() if known.get(one.path) != one], sent)
        failpoint("storage.recorded")
        _write_record(folder, known | sent)
        for path, one in sent.items():
            if path in known and known[path].sha256 != one.sha256:
                storage.remove_file(_object_name(owner, known[path]))
        return len(new)

    def _record(self, owner: str, changed: list[FileEntry], sent: dict[str, FileEntry]) -> None:
        """Name in the database what was changed here, and what it does not know.

        What it knows otherwise was changed on another server since.
        """
        known = {one.path for one in self._entries(owner)}
        unknown = [one for path, one in sent.items() if path not in known and one not in changed]
        rows = [
            {"owner": owner, "path": one.path, "size": one.size, "sha256": one.sha256}
            for one in (*changed, *unknown)
        ]
        replaced = stored_files.c.path.in_([row["path"] for row in rows])
        if rows:
            with self._database.write() as connection:
                connection.execute(
                    sa.delete(stored_files).where(stored_files.c.owner == owner, replaced)
                )
                connection.execute(sa.insert(stored_files), rows)

    def _make_room(self, n_bytes: int, wanted: Path) -> None:
        """Remove copies that were not used for long until so many bytes more fit."""
        copies = {one: _size(one) for one in self._copies()}
        used, limit = sum(copies.values()), _cache_limit()
        for folder in sorted(copies, key=_used_at):
            if used + n_bytes <= limit:
                return
            in_use = folder == wanted or time() - _used_at(folder) < IN_USE_SECONDS
            if not in_use and not _pending(folder):
                _remove_folder(folder)
                failpoint("storage.copy_removed")
                used -= copies[folder]

    def _copies(self) -> list[Path]:
        return [record.parent for record in self._cache.glob(f"*/*/{RECORD}")]

    @contextmanager
    def _locked(self, owner: str) -> Iterator[None]:
        """Keep others, in whatever thread or process, from the same work."""
        path = self._cache / f"{owner}.lock"
        with files.disk_errors(path):
            make_private_folder(path.parent)
        with filelock.FileLock(path, mode=0o600):
            yield


def _object_name(owner: str, one: FileEntry) -> str:
    return f"{owner}/{one.path}.{one.sha256}"


def _files(folder: Path) -> list[Path]:
    """Return the files of a folder that others need."""
    return sorted(
        path
        for path in folder.iterdir()
        if path.is_file()
        and not path.name.startswith(".")
        and not path.name.endswith(_SKIPPED_ENDINGS)
    )


def _current(path: Path, known: dict[str, FileEntry]) -> FileEntry:
    one = known.get(path.name)
    return one if one is not None and _is_same(path, one) else _entry(path)


def _entry(path: Path, sha256: str | None = None) -> FileEntry:
    with files.disk_errors(path):
        found = path.stat()
    sha256 = sha256 or checksum(path)
    if sha256 is None:
        raise StoreError("A file of the workspace cannot be read.", str(path))
    return FileEntry(path=path.name, size=found.st_size, mtime_ns=found.st_mtime_ns, sha256=sha256)


def _is_same(path: Path, one: FileEntry) -> bool:
    with suppress(OSError):
        found = path.stat()
        return (found.st_size, found.st_mtime_ns) == (one.size, one.mtime_ns)
    return False


def _pending(folder: Path) -> bool:
    """Whether a folder has files that are not in the storage."""
    known = _read_record(folder)
    return any(
        path.name not in known or not _is_same(path, known[path.name]) for path in _files(folder)
    )


def _read_record(folder: Path) -> dict[str, FileEntry]:
    """Return which files of a folder are in the storage; without a sound record, none."""
    with suppress(StoreError, ValidationError, TypeError):
        if (folder / RECORD).exists():
            return {one["path"]: FileEntry(**one) for one in files.read_json(folder / RECORD)}
    return {}


def _write_record(folder: Path, entries: dict[str, FileEntry]) -> None:
    files.write_json(folder / RECORD, [one.model_dump() for one in entries.values()])


def _used_at(folder: Path) -> float:
    with suppress(OSError):
        return (folder / RECORD).stat().st_mtime
    return 0.0


def _size(folder: Path) -> int:
    with suppress(OSError):
        return sum(path.stat().st_size for path in folder.iterdir())
    return 0


def _cache_limit() -> int:
    given = os.environ.get("PLAIN_CACHE_GB", "")
    try:
        return int((float(given) if given else DEFAULT_CACHE_GB) * 1e9)
    except ValueError:
        hint = "Give gigabytes, such as PLAIN_CACHE_GB=50, or unset it."
        raise StoreError(
            "The size of the cache must be a number.", f"Got {given!r}.", hint
        ) from None


def _remove_folder(folder: Path) -> None:
    """Take a copy away in one step, then delete it."""
    doomed = folder.with_name(f".{folder.name[:12]}.{uuid4().hex[:8]}.tmp")
    with files.disk_errors(folder), suppress(FileNotFoundError):
        os.rename(folder, doomed)
        shutil.rmtree(doomed)


def _unfit(what: str, name: str, place: str) -> StoreError:
    hint = (
        "Start PLAIN Studio again on the machine that has the files: it uploads what is missing. "
        "Or load the data here and train again."
    )
    return StoreError(f"A file {what} in the object storage.", f"{place}/{name}", hint)
