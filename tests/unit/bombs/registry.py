"""The files by name."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

MB = 2**20
MAX_MEMORY = 2 * 1024 * MB  # what reading a bomb may take
Make = Callable[[Path], Any]
BOMBS: dict[str, tuple[str, Make]] = {}  # by name: the file's name and what writes it


def bomb(file_name: str) -> Callable[[Make], Make]:
    def register(make: Make) -> Make:
        name = make.__name__.replace("_", " ")
        BOMBS[name] = (file_name, make)
        return make

    return register
