"""Paths that a person typed, what may be written there, and renames brought to the disk."""

import os
from pathlib import Path

from core.errors import ExportError, PlainError

REPORT = "<!doctype html><!-- PLAIN Studio -->"
"""How a report of ours begins."""


def full_path(path: Path | str) -> Path:
    """Return a path as the system needs it: `~` and `~name` are home folders.

    Raises
    ------
    PlainError
        Nobody of this name has a home folder here.
    """
    try:
        return Path(path).expanduser().absolute()
    except RuntimeError as error:
        hint = "Write the path in full."
        raise PlainError("There is no such home folder.", f"{path}: {error}", hint) from error


def require_replaceable(path: Path, beginning: str) -> None:
    """Refuse to write over anything but an empty file, or one that begins as ours of its kind do.

    Raises
    ------
    ExportError
        There is something else.
    """
    if not os.path.lexists(path):
        return
    try:
        with path.open("rb") as file:
            head = file.read(len(beginning))
    except OSError:  # a folder, or what cannot be looked at
        head = b"?"
    if head not in (b"", beginning.encode()):
        hint = "Choose another name, or remove it yourself."
        raise ExportError("Something else has this name already.", str(path), hint)


def sync_folder(folder: Path) -> None:
    """Bring a rename in this folder to the disk, where the system knows how."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
