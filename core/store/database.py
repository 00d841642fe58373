"""One database: SQLite in the workspace's folder, or PostgreSQL by its address.

What holds on both:

- Every `write()` is one transaction, and writes come one after another: SQLite's BEGIN IMMEDIATE,
  an advisory lock on PostgreSQL. What a write reads is still so when it commits, and rows become
  visible in the order of their ids. So keep writes short.
- `read()` sees one moment of the database and never waits for a writer.
- A `Database` may be used from many threads; each process opens its own.
- What a user can cause (disk full, read-only, damaged, locked, unreachable) is a `StoreError`.
  Any other error of the driver is a bug and raised as it is.

On SQLite a write is on the disk when it returns, unless it says that losing the last moments to a
power cut is harmless (`durable=False`, several times faster). A killed process loses neither.
"""

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from random import uniform
from time import monotonic, sleep
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection, Engine
from sqlalchemy.engine import URL, make_url

from core.errors import DatabaseUnreachable, StoreError, StoreUnavailable
from core.failpoints import failpoint
from core.store import schema
from core.store.files import disk_errors
from core.store.permissions import create_private
from core.store.stalled import StallGuard

URL_VARIABLE = "PLAIN_DATABASE_URL"
BUSY_SECONDS = 30.0
WRITE_LOCK = 0x504C41494E  # "PLAIN": the key of the advisory lock on PostgreSQL


# Of libpq: a server that is gone without a word is noticed within half a minute, not two hours.
_PATIENCE = {
    "connect_timeout": 10,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
}


class Database:
    """The tables of `core.store.schema` at one address, brought up to date when opened.

    Parameters
    ----------
    url : ``sqlite:///<file>`` or ``postgresql+psycopg://user:password@host/name``
    before_migration : called with this database before tables of an older version are changed

    Raises
    ------
    StoreError
        The database is newer than this program, not ours, damaged, or cannot be reached.
    """

    def __init__(
        self, url: str | URL, *, before_migration: Callable[["Database"], object] | None = None
    ) -> None:
        self.url = _checked_url(url)
        self._before_migration = before_migration
        self._engine = _make_engine(self.url)
        self._watched: Callable[[], AbstractContextManager[None]] = nullcontext
        if not self.is_sqlite:
            self._watched = StallGuard(self._engine, _PATIENCE).watching
        # A snapshot for the whole block; SQLite has no other kind.
        level = {} if self.is_sqlite else {"isolation_level": "REPEATABLE READ"}
        self._reader = self._engine.execution_options(**level)
        self._writer = self._engine.execution_options(plain_writes=True)
        try:
            self._open()
        except BaseException:
            self.close()
            raise

    @classmethod
    def for_folder(
        cls, folder: Path, *, before_migration: Callable[["Database"], object] | None = None
    ) -> "Database":
        """Open the database that PLAIN_DATABASE_URL names, else `plain.db` in the folder."""
        return cls(folder_url(folder), before_migration=before_migration)

    @property
    def path(self) -> Path | None:
        """The file of an SQLite database; none on PostgreSQL."""
        return Path(self.url.database or "") if self.is_sqlite else None

    @property
    def is_sqlite(self) -> bool:
        return self.url.get_backend_name() == "sqlite"

    @property
    def place(self) -> str:
        """Where it is, fit to be shown: the password is hidden."""
        return str(self.path or self.url.render_as_string(hide_password=True))

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """Read one consistent moment of the database."""
        with self._errors(), self._watched(), self._reader.begin() as connection:
            yield connection

    @contextmanager
    def write(self, *, durable: bool = True) -> Iterator[Connection]:
        """Change the database: all of the block is committed, or nothing when it raises.

        Should the disk fail in the sync that follows, the change is visible but may not last, and
        the caller is told: writing it again is safe wherever rows carry keys of their own.
        """
        with self._errors(), self._watched(), self._writer.begin() as connection:
            if not self.is_sqlite:
                connection.execute(sa.select(sa.func.pg_advisory_xact_lock(WRITE_LOCK)))
            yield connection
            failpoint("store.before_commit")
        failpoint("store.committed")
        if durable and self.path:
            _sync_write_ahead_log(self.path)

    def insert_new(self, connection: Connection, table: sa.Table, rows: list[Any]) -> int:
        """Insert rows; those whose key is already there are ignored. Return how many were new."""
        if not rows:
            return 0
        if self.is_sqlite:
            from sqlalchemy.dialects.sqlite import insert
        else:
            from sqlalchemy.dialects.postgresql import insert  # type: ignore[assignment]
        statement = insert(table).on_conflict_do_nothing().returning(*table.primary_key)
        return len(connection.execute(statement, rows).all())

    def close(self) -> None:
        """Let go of all connections; the next use opens new ones."""
        self._engine.dispose()

    def _open(self) -> None:
        if self.path:
            create_private(self.path)
        with self.read() as connection:  # refuses before anything is written
            version = schema.stored_version(connection)
        if self.is_sqlite:
            with self._errors():
                self._use_write_ahead_log()
        if version < schema.latest_version():
            self._migrate()

    def _migrate(self) -> None:
        with self.write() as connection:
            version = schema.stored_version(connection)  # another process may have been first
            if version == schema.latest_version():
                return
            if version and self._before_migration:
                self._before_migration(self)
            failpoint("migration.copy_kept")
            schema.migrate(connection, version)
            failpoint("migration.before_commit")

    def _use_write_ahead_log(self) -> None:
        """Switch once; the file remembers. SQLite does not wait for others here, so we do."""
        connection = self._engine.raw_connection()
        try:
            (mode,) = _execute_when_free(connection.driver_connection, "PRAGMA journal_mode=WAL")
        finally:
            connection.close()
        if mode != "wal":
            hint = "Choose a workspace on a local disk."
            raise StoreError("This folder cannot hold a database.", self.place, hint)

    @contextmanager
    def _errors(self) -> Iterator[None]:
        with database_errors(self.place):
            yield


def folder_url(folder: Path) -> URL:
    """Return the address of a workspace's database."""
    named = os.environ.get(URL_VARIABLE)
    return _checked_url(named) if named else sqlite_url(Path(folder) / "plain.db")


def sqlite_url(path: Path) -> URL:
    """Return the address of an SQLite file, whatever characters its path has."""
    return URL.create("sqlite", database=str(path))


@contextmanager
def database_errors(place: str) -> Iterator[None]:
    """Raise as `StoreError` what went wrong with the database and a user can do something about."""
    try:
        yield
    except (sa.exc.DBAPIError, sqlite3.Error) as error:
        cause = error.orig if isinstance(error, sa.exc.DBAPIError) else error
        is_cut = isinstance(error, sa.exc.DBAPIError) and error.connection_invalidated
        known = _explain(cause, is_cut)
        if known is None:
            raise
        kind, title, hint = known
        raise kind(title, f"{place}: {str(cause).strip()}", hint) from error
    except sa.exc.TimeoutError as error:
        title = "The database has no free connection."
        raise DatabaseUnreachable(title, place, "Try again.") from error


def _checked_url(given: str | URL) -> URL:
    try:
        url = make_url(given)
    except (sa.exc.ArgumentError, ValueError):
        raise _bad_url("it cannot be read") from None
    if url.drivername in ("postgres", "postgresql"):
        url = url.set(drivername="postgresql+psycopg")
    if url.drivername not in ("sqlite", "postgresql+psycopg"):
        raise _bad_url(f"it begins with {url.drivername!r}")
    if url.drivername == "sqlite":
        if url.database in (None, "", ":memory:"):
            raise _bad_url("it names no file")
        url = url.set(database=os.path.abspath(str(url.database)))
    return url


def _bad_url(found: str) -> StoreError:
    hint = f"Correct {URL_VARIABLE}, or unset it to use SQLite in the workspace."
    rule = "Must read postgresql+psycopg://user:password@host/name or sqlite:///file"
    return StoreError("This is no address of a database.", f"{rule}; {found}.", hint)


def _make_engine(url: URL) -> Engine:
    if url.get_backend_name() == "sqlite":
        options: dict[str, Any] = {"timeout": BUSY_SECONDS}
        engine = sa.create_engine(url, connect_args=options, max_overflow=-1)
        sa.event.listen(engine, "connect", _prepare_sqlite)
        sa.event.listen(engine, "begin", _begin_sqlite)
        return engine
    try:
        engine = sa.create_engine(url, connect_args=_PATIENCE, pool_pre_ping=True)
    except ModuleNotFoundError as error:
        hint = 'Install it with: pip install "plain-studio[postgres]"'
        raise StoreError("The driver for PostgreSQL is missing.", str(error), hint) from None
    sa.event.listen(engine, "connect", _prepare_postgres)
    return engine


def _prepare_sqlite(connection: Any, _record: object) -> None:
    connection.isolation_level = None  # the driver must not begin transactions; we do
    connection.execute("PRAGMA foreign_keys=ON")
    connection.execute("PRAGMA synchronous=NORMAL")


def _sync_write_ahead_log(database: Path) -> None:
    """Bring what was committed to the disk, without the lock, so that writers wait together.

    With synchronous=FULL SQLite would do it under the lock: four writers then wait in a row.
    A log that is not there was just brought into the database, and synced, by SQLite.
    """
    log = database.with_name(f"{database.name}-wal")
    with disk_errors(log), suppress(FileNotFoundError), open(log, "rb+") as file:
        os.fsync(file.fileno())


def _begin_sqlite(connection: Connection) -> None:
    driver: Any = connection.connection.driver_connection
    if connection.get_execution_options().get("plain_writes"):
        _begin_immediate(driver)
    else:
        driver.execute("BEGIN")


def _begin_immediate(driver: sqlite3.Connection) -> None:
    """Begin to write, asking for the lock every few milliseconds.

    SQLite itself asks less and less often: measured with four busy writers, some waited seconds.
    """
    driver.execute("PRAGMA busy_timeout=0")
    try:
        _execute_when_free(driver, "BEGIN IMMEDIATE")
    finally:
        driver.execute(f"PRAGMA busy_timeout={BUSY_SECONDS * 1000:.0f}")


def _execute_when_free(driver: Any, statement: str) -> Any:
    """Execute a statement again and again while the database is busy; return its first row."""
    give_up = monotonic() + BUSY_SECONDS
    while True:
        try:
            return driver.execute(statement).fetchone()
        except sqlite3.OperationalError as error:
            if not _is_busy(error) or monotonic() > give_up:
                raise
        sleep(uniform(0.0005, 0.003))


def _prepare_postgres(connection: Any, _record: object) -> None:
    with connection.cursor() as cursor:
        cursor.execute(f"SET lock_timeout = '{BUSY_SECONDS:.0f}s'")
        # A process that is stopped in the middle of a write must not hold up all others.
        cursor.execute(f"SET idle_in_transaction_session_timeout = '{BUSY_SECONDS:.0f}s'")
    connection.commit()


def _is_busy(error: sqlite3.Error) -> bool:
    return getattr(error, "sqlite_errorname", "").startswith(("SQLITE_BUSY", "SQLITE_LOCKED"))


_SAFE = "What was stored before is unharmed."
_FULL = (StoreUnavailable, "The disk is full.", f"Free some space and try again. {_SAFE}")
_READ_ONLY = (
    StoreUnavailable,
    "The database cannot be written.",
    "Check that the workspace is yours to write.",
)
_LOCKED = (
    DatabaseUnreachable,
    f"The database was locked for more than {BUSY_SECONDS:.0f} seconds.",
    f"Another program holds it; close that program and try again. {_SAFE}",
)
_DAMAGED = "Restore a backup of this workspace: plain restore."

_Known = tuple[type[StoreError], str, str]
_SQLITE_ERRORS: dict[str, _Known] = {
    "SQLITE_FULL": _FULL,
    "SQLITE_READONLY": _READ_ONLY,
    "SQLITE_PERM": _READ_ONLY,
    "SQLITE_BUSY": _LOCKED,
    "SQLITE_LOCKED": _LOCKED,
    "SQLITE_CORRUPT": (StoreError, "The database is damaged.", _DAMAGED),
    "SQLITE_NOTADB": (StoreError, "This file is not a database, or it is damaged.", _DAMAGED),
    "SQLITE_CANTOPEN": (StoreUnavailable, "The database cannot be opened.", _READ_ONLY[2]),
    "SQLITE_IOERR": (
        StoreUnavailable,
        "The disk refused to read or write.",
        f"Check disk and space. {_SAFE}",
    ),
}

_POSTGRES_ERRORS: dict[str, _Known] = {
    "53100": _FULL,
    "53": (
        DatabaseUnreachable,
        "The database server is out of resources.",
        f"Try again later. {_SAFE}",
    ),
    "25006": _READ_ONLY,
    "25P03": _LOCKED,
    "42501": (
        StoreError,
        "The database refuses this user.",
        "Ask its owner for the right to write.",
    ),
    "55P03": _LOCKED,
    "57": (
        DatabaseUnreachable,
        "The database server shut down.",
        f"Start it and try again. {_SAFE}",
    ),
    "08": (
        DatabaseUnreachable,
        "The database cannot be reached.",
        f"Check that its server runs, that user and database exist, and {URL_VARIABLE}.",
    ),
}


def _explain(error: BaseException | None, is_cut: bool) -> _Known | None:
    """Return class, title and hint for an error of a driver; none for one that is a bug."""
    if isinstance(error, sqlite3.Error):
        name, table = getattr(error, "sqlite_errorname", "") or "", _SQLITE_ERRORS
    else:
        table, name = _POSTGRES_ERRORS, getattr(error, "sqlstate", "") or ""
        if not name and (
            is_cut or type(error).__name__ in ("OperationalError", "ConnectionTimeout")
        ):
            name = "08"  # psycopg has no state where there is no connection
    return next((known for start, known in table.items() if name.startswith(start)), None)
