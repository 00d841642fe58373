"""Paths that a person typed."""

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
