"""Paths that a person typed, and what is renamed in a folder brought to the disk."""

import os
from pathlib import Path

from core.errors import PlainError


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


def sync_folder(folder: Path) -> None:
    """Bring a rename in this folder to the disk, where the system knows how."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
