"""How much one reading may unpack: judged before anything is allocated, by the memory there is.

A small file can hold, or claim, huge arrays. Nobody can tell a bomb from an honest file that packs
well by the ratio of the two, so sizes are compared with free memory: any file may unpack to a
sixteenth of it, a large one up to a quarter, because a reading, its checks and a training hold up
to four copies. Sizes are those of the data in memory, not of the Python objects on the way.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

import psutil

from core.formats.shared.findings import refuse

MAX_INSTANCES = 10_000_000
MAX_FEATURES = 1_000_000
MAX_LABELS = 100_000
MAX_CELLS = 2**30  # of a table, however little memory each takes: every one is looked at

ANY_FILE = 512 * 2**20  # bytes that any file may unpack to, however little memory is free
SHARE, LARGE_SHARE = 16, 4  # of free memory, for any file and for a large one
LARGE = 16  # times its size is what a file may unpack to before the larger share counts
CELL = 4  # bytes of one (instance, label) cell: a confidence

SMALLER = "Check that the file is not damaged; otherwise split it, or drop columns."
MEMORY = "Check the file; if it is sound, free memory, split it or drop columns."

_limit: ContextVar[int | None] = ContextVar("limit", default=None)


@contextmanager
def limited(path: Path) -> Iterator[None]:
    """Judge all that is read meanwhile by this file's size and the memory free now."""
    token = _limit.set(_limit_for(path.stat().st_size if path.is_file() else 0))
    try:
        yield
    finally:
        _limit.reset(token)


def size_limit() -> int:
    """Return how many bytes the file being read may unpack to."""
    limit = _limit.get()
    return _limit_for(0) if limit is None else limit


def check_size(n_bytes: int, what: str = "the data", fix: str = MEMORY) -> None:
    """Refuse what would take more than there is room for."""
    if n_bytes > ANY_FILE and n_bytes > (limit := size_limit()):
        rule = f"{what} may unpack to {_shown(limit)} with the memory that is free"
        refuse(rule, fix, value=_shown(n_bytes))


def check_rows(n: int) -> None:
    """Refuse more rows than a data set can have instances."""
    if n > MAX_INSTANCES:
        rule = f"a data set has at most {MAX_INSTANCES:,} instances"
        refuse(rule, "Take a sample, or split the file.", value=f"{n:,}")


def check_cells(n: int) -> None:
    """Refuse a table that nobody could wait for."""
    if n > MAX_CELLS:
        refuse(f"a table has at most {MAX_CELLS:,} cells", SMALLER, value=f"{n:,}")


def check_shape(n: int, n_features: int, n_labels: int) -> None:
    """Refuse a table whose names and label matrix alone would not fit in memory."""
    check_rows(n)
    if n_features > MAX_FEATURES:
        rule = f"a data set has at most {MAX_FEATURES:,} features"
        refuse(rule, SMALLER, value=f"{n_features:,}")
    if n_labels > MAX_LABELS:
        refuse(f"a data set has at most {MAX_LABELS:,} labels", SMALLER, value=f"{n_labels:,}")
    check_size(CELL * n * n_labels, f"the table of {n:,} instances and {n_labels:,} labels")


def free_memory() -> int:
    """Return what this process can still take, by the machine, its container and its own limit."""
    machine = int(psutil.virtual_memory().available)
    return max(0, min(machine, *_container_free(), *_process_free()))


def _limit_for(file_size: int) -> int:
    free = free_memory()
    return max(ANY_FILE, free // SHARE, min(free // LARGE_SHARE, LARGE * file_size))


def _container_free() -> Iterator[int]:
    """Give what a control group (version 2, then 1) leaves, where there is one."""
    root = Path("/sys/fs/cgroup")
    for limit, used in (
        (root / "memory.max", root / "memory.current"),
        (root / "memory/memory.limit_in_bytes", root / "memory/memory.usage_in_bytes"),
    ):
        try:
            yield int(limit.read_text()) - int(used.read_text())
        except (OSError, ValueError):  # no such group, or "max": no limit
            continue


def _process_free() -> Iterator[int]:
    if os.name != "posix":
        return
    import resource

    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit != resource.RLIM_INFINITY:
        yield limit - psutil.Process().memory_info().vms


def _shown(n_bytes: int) -> str:
    return f"{n_bytes / 2**20:,.0f} MB"
