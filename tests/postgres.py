"""A PostgreSQL server of our own for the tests, started from whatever Debian or the PATH offers."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import pytest


def find(program: str) -> str | None:
    packaged = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{program}"), reverse=True)
    return shutil.which(program) or next((str(path) for path in packaged), None)


class Server:
    """A server that can be stopped and started again."""

    def __init__(self, folder: Path, user: str | None) -> None:
        self._data, self._log, self._user = folder / "data", folder / "log", user
        # Without fsync: what a test stops is the server, never the machine.
        self._options = f"-c listen_addresses='' -k {folder} -c max_connections=60 -c fsync=off"
        self.address = f"postgresql+psycopg://plain@/{{}}?host={folder}"

    def make(self) -> None:
        options = ("-U", "plain", "-A", "trust", "-E", "UTF8", "--no-sync")
        run(self._user, "initdb", "-D", self._data, *options)

    def start(self) -> None:
        options = ("-w", "-t", "240", "-l", self._log, "-o", self._options)
        run(self._user, "pg_ctl", "-D", self._data, *options, "start")

    def stop(self) -> None:
        """Cut all connections at once; what was committed is kept."""
        if (self._data / "postmaster.pid").exists():
            run(self._user, "pg_ctl", "-D", self._data, "-m", "immediate", "-w", "stop")

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Stop its processes as they are: connections stay, new ones too, nothing is answered."""
        first = psutil.Process(int((self._data / "postmaster.pid").read_text().split()[0]))
        first.suspend()  # it starts no more of them
        family = [first, *first.children()]
        try:
            for process in family:
                process.suspend()
            yield
        finally:
            for process in family:
                with suppress(psutil.NoSuchProcess):
                    process.resume()


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """A running server."""
    if not (find("initdb") and find("pg_ctl")):
        pytest.skip("no initdb and pg_ctl on the PATH or under /usr/lib/postgresql")
    pytest.importorskip("psycopg", reason="psycopg is not installed")
    # A socket's path must be short, and the folder open to the server's user: not tmp_path.
    folder = Path(tempfile.mkdtemp(prefix="pg-"))
    user = None
    if os.geteuid() == 0:  # initdb refuses root
        user = "nobody"
        shutil.chown(folder, user)
    server = Server(folder, user)
    try:
        server.make()
        server.start()
        yield server
    finally:
        server.stop()
        shutil.rmtree(folder)


@pytest.fixture(scope="session")
def postgres_server(postgres: Server) -> str:
    """The address of a running server, with a place for the name of a database."""
    return postgres.address


def run(user: str | None, program: str, *arguments: object) -> None:
    command = [str(find(program)), *map(str, arguments)]
    subprocess.run(
        command, user=user, cwd="/", check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL
    )


@pytest.fixture
def postgres_url(postgres_server: str) -> str:
    """The address of an empty database: a schema of its own, which is made faster than one."""
    import psycopg

    name, address = f"test_{os.urandom(6).hex()}", postgres_server.format("postgres")
    with psycopg.connect(address.replace("+psycopg", ""), autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {name}")
    return f"{address}&options=-csearch_path%3D{name}"
