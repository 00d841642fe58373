"""Who may read a workspace: its owner, whatever the umask.

Decisions carry names and data may be confidential; a shared machine has other people. SQLite gives
its companion files the mode of the database, so it is enough to make that file first.
"""

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

FOLDER, FILE = 0o700, 0o600
_OTHERS = 0o077
_ID = r"[0-9a-z]{13}"

# What a workspace holds, by name: a person may have put it into a folder with other things.
_FILES = re.compile(
    r"(plain|studies)\.db(-wal|-shm|-journal)?|"
    r"(settings|presets|review|machine|opened)\.json|secret\.key|layout\.lock"
)
_FOLDERS = {
    "datasets": r"[0-9a-f]{64}",
    "runs": _ID,
    "studies": _ID,
    "backups": r"(plain|damaged)-.*\.db.*",
    "selections": r"[0-9a-f]{16}\.json",
    "exports": r"[0-9a-f]{32}\.json",
    "incoming": "",
    "encodings": r"[\w.-]+",
    "pictures": r"[0-9a-f]{2}",
    "cache": r"datasets|runs|pictures|selections|selections\.lock",
}
_LEFTOVER = r"\..*\.tmp.*"


def open_private(path: Path, mode: str = "xb") -> IO[Any]:
    """Open a file; one that is made thereby is its owner's only."""
    return open(path, mode, opener=lambda name, flags: os.open(name, flags, FILE))


def create_private(path: Path) -> None:
    """Make an empty file for what opens it next, unless there is one, or none can be made."""
    with suppress(OSError):
        open_private(path).close()


def make_private_folder(path: Path) -> None:
    """Make a folder for its owner only, and those above it that are missing."""
    for folder in (*reversed(path.parents), path):
        if not folder.exists():
            folder.mkdir(mode=FOLDER, exist_ok=True)


def restrict_permissions(workspace: Path) -> None:
    """Take away what others may read of a workspace; its folder too if it holds nothing else."""
    if os.name != "posix":
        return
    is_ours = True
    for path in list(workspace.iterdir()):
        if path.name in _FOLDERS:
            is_ours &= _tighten_folder(path, f"{_FOLDERS[path.name]}|{_LEFTOVER}")
        elif _FILES.fullmatch(path.name) or re.fullmatch(_LEFTOVER, path.name):
            _close(path)
        else:
            is_ours = False
    if is_ours:
        _close(workspace)


def _tighten_folder(folder: Path, names: str) -> bool:
    """Close what is ours in a folder, and the folder; return whether all of it is ours."""
    if not _is_open(folder):
        return True
    inside = list(folder.iterdir()) if folder.is_dir() else []
    ours = [path for path in inside if re.fullmatch(names, path.name)]
    for path in ours:
        for one in _tree(path):
            _close(one)
    if len(ours) == len(inside):
        _close(folder)
    return len(ours) == len(inside)


def _tree(path: Path) -> Iterator[Path]:
    """Return a path and all beneath it; links are not followed."""
    yield path
    for at, folders, files in os.walk(path):
        yield from (Path(at, name) for name in (*folders, *files))


def _is_open(path: Path) -> bool:
    with suppress(OSError):
        return bool(path.stat().st_mode & _OTHERS)
    return False


def _close(path: Path) -> None:
    with suppress(OSError):  # it is another's, or just gone
        mode = path.lstat().st_mode
        if mode & _OTHERS and not path.is_symlink():
            path.chmod(mode & 0o700)
