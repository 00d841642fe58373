"""A value that is costly to make and goes out of date: made once, shared by everyone who asks."""

import math
import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future, wait
from time import monotonic
from typing import Generic, NamedTuple, TypeVar

T = TypeVar("T")

RENEW_SECONDS, RENEW_AFTER = 2.0, 4.0
"""A value younger than this, or than so many times what it took to make, is not made anew."""

PATIENCE_SECONDS = 0.5
"""How long the next value is waited for before the last one must do."""

MAX_SECONDS = 30.0
"""A value that is due and older than this is given to nobody: whoever asks waits for the next."""


class _Made(NamedTuple, Generic[T]):
    begun: float
    seconds: float  # it took
    value: T


class Shared(Generic[T]):
    """Makes a value in a thread of its own, once for all who ask meanwhile.

    Whoever has the next value made waits a moment for it and else gets the last one, as all do who
    ask meanwhile, so nobody queues up behind the work; only the first value, or one older than
    `MAX_SECONDS`, is waited for however long it takes. Values with the same `thread`, an executor
    of one, are made one after another.
    """

    def __init__(self, make: Callable[[], T], thread: Executor) -> None:
        self._make, self._thread = make, thread
        self._lock = threading.Lock()
        self._made: _Made[T] | None = None
        self._next: Future[T] | None = None  # that is being made for those who ask

    def get(self) -> T:
        """Return a value that may be a little out of date."""
        with self._lock:  # read under the lock: a value that came meanwhile is not made again
            made, patience = self._made, 0.0
            age = math.inf if made is None else monotonic() - made.begun
            if made is not None and age < max(RENEW_SECONDS, RENEW_AFTER * made.seconds):
                return made.value
            if self._next is None or self._next.done():
                self._next, patience = self._thread.submit(self._renew), PATIENCE_SECONDS
            following = self._next
        if made is None or age >= MAX_SECONDS or wait([following], patience).done:
            return following.result()
        return made.value

    def newest(self) -> T:
        """Return a value made after this call began."""
        return self._thread.submit(self._renew).result()

    def _renew(self) -> T:
        begin = monotonic()
        value = self._make()
        self._made = _Made(begin, monotonic() - begin, value)
        return value
