"""The files of one export get their names together: a crash leaves the old ones or the new ones.

They are written into a folder `.plain-<random>` beside the target. A plan, put there when all is
on the disk, is the point of no return: before it nothing of the target is touched, after it
`recover` finishes what a killed process began, unless somebody changed the target since. A lock
says that a writer is alive. The old record goes first and the new one comes last, so no file lies
beside the record of another. Only files are replaced, and folders of which the record names all.
"""

import hashlib
import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from core.errors import ExportError
from core.failpoints import failpoint
from core.paths import sync_folder

try:
    import fcntl
except ImportError:  # Windows: leftovers stay until they are deleted by hand
    fcntl = None  # type: ignore[assignment]

RECORD = ".provenance.json"
STAGING = re.compile(r"\.plain-[a-z0-9_]{8}")
LOCK, NEW, OLD, PLAN = "lock", "new", "old", "plan.json"

Plan = dict[str, Any]


def record_of(path: Path) -> Path:
    """Return where the record of an export lies."""
    return path.with_name(path.name + RECORD)


@contextmanager
def placing(path: Path, siblings: Sequence[Path] = (), *, force: bool = False) -> Iterator[Path]:
    """Give a folder to write into; when the block ends well its files take their names.

    `siblings` are the other files that may belong to `path`: those that are not written anew
    would be read with the new file, so they are removed if the old record names them.

    Raises
    ------
    ExportError
        When a target exists (unless `force`), or is not ours to replace.
    """
    recover(path.parent)
    check_free(path, siblings, force=force)
    with _staging(path.parent) as staging:
        failpoint("export.staged")
        yield staging / NEW
        _sync(staging / NEW)
        failpoint("export.synced")
        check_free(path, siblings, force=force)  # writing took its time
        plan = _plan(path, siblings, staging / NEW)
        _write_plan(staging, plan)
        failpoint("export.planned")
        try:
            _carry_out(staging, plan)
        except OSError:
            _undo(staging, plan)
            raise
        failpoint("export.placed_all")


def check_free(path: Path, siblings: Sequence[Path] = (), *, force: bool = False) -> None:
    """Refuse targets that exist unless `force`, and always what is not a file or our own folder."""
    taken = [one for one in (path, record_of(path), *siblings) if os.path.lexists(one)]
    if taken and not force:
        names = ", ".join(one.name for one in taken)
        raise ExportError("A file exists already.", names, "Choose another name, or force.")
    for one in taken:
        if one.is_dir():
            _check_folder(one, _recorded(path) if one == path else {})


def _check_folder(folder: Path, recorded: dict[str, str]) -> None:
    """Refuse to replace a folder that holds anything but what its record says we wrote."""
    hint = "Choose another name, or remove the folder yourself."
    if folder.is_symlink() or not recorded:
        title = "This is a folder, and not an export of this program."
        raise ExportError(title, f"{folder.name}. Nothing was written.", hint)
    known = {name for name, digest in recorded.items() if _digest(folder.parent / name) == digest}
    held = [one for one in folder.rglob("*") if one.is_symlink() or not one.is_dir()]
    foreign = sorted(
        name for one in held if (name := one.relative_to(folder.parent).as_posix()) not in known
    )
    if foreign:
        title = "This folder holds files that are not of its export, or were changed since."
        raise ExportError(title, ", ".join(foreign[:10]), hint)


def _recorded(path: Path) -> dict[str, str]:
    """Return the checksums of the files that the record beside `path` names; none without one."""
    try:
        record = json.loads(record_of(path).read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    if not isinstance(record, dict) or record.get("file") != path.name:
        return {}
    files = record.get("files")  # an earlier version's records did not name them
    return {name: str(digest) for name, digest in files.items()} if isinstance(files, dict) else {}


def checksums(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of every file below a folder by its path within it."""
    found = sorted(one for one in folder.rglob("*") if one.is_file())
    return {one.relative_to(folder).as_posix(): _digest(one) for one in found}


def _digest(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return ""


# ------------------------------------------------------------------------------------ the plan


def _plan(path: Path, siblings: Sequence[Path], new: Path) -> Plan:
    """Return which names are taken away, which are put, and what was there when this was made."""
    record, made = record_of(path).name, {one.name for one in new.iterdir()}
    put = sorted(made, key=lambda name: (name == record, name == path.name, name))
    ours = _recorded(path)
    stale = [one.name for one in siblings if one.name not in made and os.path.lexists(one)]
    for name in stale:
        if name not in ours:
            title = f"{name} would be read with the new file, and is not of its export."
            raise ExportError(title, "Nothing was written.", "Choose another name, or move it.")
    take = [record] if ours or record in made else []
    take += [*stale, *([path.name] if path.is_dir() else [])]
    there = {name: _stamp(path.with_name(name)) for name in {*take, *put}}
    return {"take": [name for name in take if there[name]], "put": put, "there": there}


def _stamp(path: Path) -> list[int] | None:
    """Return what tells whether a file is still the same one; none if it is not there."""
    try:
        found = path.lstat()
    except OSError:
        return None
    return [found.st_ino, found.st_size, found.st_mtime_ns]


def _write_plan(staging: Path, plan: Plan) -> None:
    temporary = staging / f"{PLAN}.tmp"
    with temporary.open("w", encoding="utf-8") as file:
        json.dump(plan, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, staging / PLAN)
    sync_folder(staging)


def _carry_out(staging: Path, plan: Plan) -> None:
    """Take the old away and put the new; what is done already is passed over."""
    folder, new, old = staging.parent, staging / NEW, staging / OLD
    for name in plan["take"]:
        if _stamp(folder / name) == plan["there"][name]:
            os.rename(folder / name, old / name)
            failpoint("export.taken")
    for name in plan["put"]:
        if os.path.lexists(new / name):
            _keep(folder / name, old / name)
            os.replace(new / name, folder / name)
            failpoint("export.placed")
    sync_folder(folder)


def _keep(path: Path, kept: Path) -> None:
    """Hold on to a file that is about to be replaced, where the file system has links."""
    with suppress(OSError):
        os.link(path, kept, follow_symlinks=False)


def _undo(staging: Path, plan: Plan) -> None:
    """Give the old files their names back after a step failed."""
    folder, new, old = staging.parent, staging / NEW, staging / OLD
    for name in plan["put"]:
        if not os.path.lexists(new / name) and not plan["there"][name]:
            os.rename(folder / name, new / name)
    for one in old.iterdir():
        os.replace(one, folder / one.name)


# ---------------------------------------------------------------------------------- the folder


@contextmanager
def _staging(parent: Path) -> Iterator[Path]:
    staging, lock = _made(parent)
    try:
        with lock:
            (staging / NEW).mkdir()
            (staging / OLD).mkdir()
            yield staging
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _made(parent: Path) -> tuple[Path, IO[str]]:
    """Return a new folder and its lock; again if `recover` took it for a leftover just then."""
    while True:
        staging = Path(tempfile.mkdtemp(dir=parent, prefix=".plain-"))
        try:
            lock = (staging / LOCK).open("w")
        except FileNotFoundError:
            continue
        with suppress(OSError):  # not every file system has locks: then it is never recovered
            _hold(lock)
        if (staging / LOCK).exists():
            return staging, lock
        lock.close()


def recover(folder: Path) -> bool:
    """Finish or clear away what killed exports left in a folder; whether nothing is left there."""
    try:
        found = [one for one in folder.iterdir() if STAGING.fullmatch(one.name)]
        return all([_recover(one) for one in found if one.is_dir() and not one.is_symlink()])
    except OSError:
        return False


def _recover(staging: Path) -> bool:
    held = {one.name for one in staging.iterdir()}
    if not held:
        staging.rmdir()  # killed before it had a lock
        return True
    if LOCK not in held or held - {LOCK, NEW, OLD, PLAN, f"{PLAN}.tmp"}:
        return True  # not of this program
    with (staging / LOCK).open("r+") as lock:
        try:
            _hold(lock)
        except OSError:  # its writer is alive
            return False
        if PLAN in held:
            _finish(staging, json.loads((staging / PLAN).read_bytes()))
        shutil.rmtree(staging)
    return True


def _finish(staging: Path, plan: Plan) -> None:
    """Carry out the rest of a plan; where a target was changed since, only bring back the old."""
    folder, new, old = staging.parent, staging / NEW, staging / OLD
    due = [name for name in plan["put"] if os.path.lexists(new / name)]
    if all(_stamp(folder / name) in (plan["there"][name], None) for name in due):
        _carry_out(staging, plan)
    else:
        for one in old.iterdir():
            if not os.path.lexists(folder / one.name):
                os.rename(one, folder / one.name)


def _hold(lock: IO[str]) -> None:
    """Take a lock that is let go when the process dies; raise OSError if that cannot be."""
    if fcntl is None:
        raise OSError("no locks here")
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _sync(folder: Path) -> None:
    for one in folder.rglob("*"):
        if one.is_file():
            with one.open("rb") as file:
                os.fsync(file.fileno())
