"""Folders of the server's disk that are open to people: all on their own machine, else some."""

import json
import os
from pathlib import Path


class NoPathError(ValueError):
    """A text that cannot be a path."""


class NotAllowedError(ValueError):
    """A path that lies elsewhere; says where it may lie."""


def allowed(variable: str) -> list[str] | None:
    """Return the folders that the launcher named in a variable; none where all are open."""
    stated = os.environ.get(variable)
    return None if stated is None else list(json.loads(stated))


def checked(typed: str, variable: str) -> Path:
    """Return the path that somebody typed, if it is open, wherever links and dots in it lead."""
    known = allowed(variable)
    try:
        path = Path(typed).expanduser()
        path = path if known is None else path.resolve()
        path.exists()
    except (OSError, RuntimeError, ValueError) as error:  # no such home, or not a path at all
        raise NoPathError(f"{typed}: {error}") from error
    if known is not None and not any(path.is_relative_to(one) for one in known):
        raise NotAllowedError(", ".join(known) or "none")
    return path
