"""Arrays as .npy files in a folder that all workers see: written whole, mapped by who reads them.

A task that runs again writes the same file again; whoever has it mapped keeps what it mapped.
"""

import os
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


def save(path: Path | str, array: Array) -> str:
    """Write an array under its whole name at once; return the path, for a task's item."""
    path = Path(path)
    temporary = path.with_name(f".{path.name}.{uuid4().hex[:8]}")
    try:
        with temporary.open("xb") as file:
            np.save(file, array, allow_pickle=False)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
    return str(path)


def save_parts(path: Path | str, shape: tuple[int, ...], parts: Iterable[Array]) -> str:
    """Write an array's rows as they come, float32; a disk without room is told, as by `save`."""
    header = {"descr": "<f4", "fortran_order": False, "shape": shape}
    with open(path, "wb") as file:
        np.lib.format.write_array_header_1_0(file, header)
        for part in parts:
            file.write(np.ascontiguousarray(part, "<f4").data)
    return str(path)


def load(path: Path | str) -> Array:
    """Map an array into memory; what is changed there never reaches the file."""
    mapped: Array = np.load(path, mmap_mode="c", allow_pickle=False)
    return mapped


def remove(paths: list[str]) -> None:
    """Remove files that no task needs any more."""
    for path in paths:
        Path(path).unlink(missing_ok=True)


def blocks(n: int, n_blocks: int) -> list[tuple[int, int]]:
    """Return n places as so many ranges of nearly equal length, none empty."""
    ends = np.linspace(0, n, min(n_blocks, n) + 1).round().astype(int).tolist()
    return list(pairwise(ends))
