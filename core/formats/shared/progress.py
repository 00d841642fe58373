"""How far a reading has come: reported by readers of large files to whoever asked for it."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from typing import TypeVar

T = TypeVar("T")

Progress = Callable[[int, int], None]
"""Called with how many bytes are read, of how many."""

_listener: ContextVar[Progress | None] = ContextVar("reading", default=None)


@contextmanager
def reporting_to(progress: Progress | None) -> Iterator[None]:
    """Have what is read in this block reported."""
    before = _listener.set(progress)
    try:
        yield
    finally:
        _listener.reset(before)


def report(done: int, total: int) -> None:
    """Say how many bytes of the file are read; nothing happens where nobody asked."""
    progress = _listener.get()
    if progress is not None:
        progress(done, total)


def ahead(items: Iterator[T]) -> Iterator[T]:
    """Give the same items, the next one made by another thread meanwhile; it reports as well."""
    here = copy_context()

    def following() -> T | None:
        return here.run(lambda: next(items, None))

    with ThreadPoolExecutor(1) as pool:
        coming = pool.submit(following)
        while (item := coming.result()) is not None:
            coming = pool.submit(following)
            yield item
