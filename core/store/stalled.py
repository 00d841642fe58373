"""Nobody waits for ever for a PostgreSQL server that is there but answers nobody.

Where a server's processes are stopped, or its machine has no memory left, the kernel goes on
acknowledging for them: keepalives and `tcp_user_timeout` see nothing wrong, `statement_timeout` is
the server's own, and libpq waits for an answer without limit. So whoever has waited for long is
looked after by a thread, which asks the server for a new connection. If that is not given in time
either, the connections there are, are cut, and those who wait get the driver's error. A statement
that is merely slow goes on.
"""

import os
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from threading import Lock, Thread
from time import monotonic, sleep
from typing import Any
from weakref import WeakSet

import sqlalchemy as sa
from sqlalchemy import Engine

PATIENCE_SECONDS = 10.0  # how long is waited before the server is asked, and asked again
LOOK_SECONDS = 1.0


class StallGuard:
    """Cuts the connections of an engine when its server no longer gives any."""

    def __init__(self, engine: Engine, connect_args: Mapping[str, Any]) -> None:
        self._engine, self._connect_args = engine, dict(connect_args)
        self._connections: WeakSet[Any] = WeakSet()
        self._begun: dict[object, float] = {}  # when each block began that has not ended
        self._lock = Lock()
        self._thread: Thread | None = None  # runs while there are blocks
        sa.event.listen(engine, "connect", self._opened, insert=True)  # before it is first asked

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Look after whoever waits for the server in this block."""
        block = object()
        with self._lock:
            self._begun[block] = monotonic()
            if self._thread is None:
                self._thread = Thread(target=self._watch, name="stalled-server", daemon=True)
                self._thread.start()
        try:
            yield
        finally:
            with self._lock:
                del self._begun[block]

    def _opened(self, connection: Any, _record: object) -> None:
        with self._lock:
            self._connections.add(connection)

    def _watch(self) -> None:
        asked = 0.0
        while True:
            sleep(LOOK_SECONDS)
            with self._lock:
                if not self._begun:
                    self._thread = None
                    return
                since = max(asked, min(self._begun.values()))
            if monotonic() - since > PATIENCE_SECONDS:
                if not self._is_answered():
                    self._cut()
                asked = monotonic()

    def _is_answered(self) -> bool:
        """Whether the server says anything to somebody new, if only that it has no room."""
        import psycopg

        positional, named = self._engine.dialect.create_connect_args(self._engine.url)
        try:
            psycopg.connect(*positional, **{**named, **self._connect_args}).close()
        except psycopg.errors.ConnectionTimeout:
            return False
        except (psycopg.Error, OSError):  # also where this process has no descriptor left
            pass
        return True

    def _cut(self) -> None:
        with self._lock:
            connections = list(self._connections)
        for connection in connections:
            with suppress(sa.exc.SQLAlchemyError, OSError, self._engine.dialect.loaded_dbapi.Error):
                with socket.socket(fileno=os.dup(connection.fileno())) as same:
                    same.shutdown(socket.SHUT_RDWR)
