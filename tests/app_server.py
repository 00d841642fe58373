"""The real program on a free port, and the browser that is there to look at it."""

import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from time import monotonic, sleep

ROOT = Path(__file__).parents[1]
LONG = 120_000  # milliseconds, for what a busy machine may take
CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
# WebGL is drawn in software, and so is the page: with the page in SwiftShader too, all is slow.
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--enable-unsafe-swiftshader",
    "--disable-background-networking",
]
ADDRESS = re.compile(r"http://127\.0\.0\.1:\d+/\S*")


class Server:
    """The program, started by its own command."""

    def __init__(self, workspace: Path, *arguments: str) -> None:
        self.workspace, self.arguments, self.port = workspace, arguments, ""
        self.url = ""

    def start(self) -> "Server":
        """Start it on the port it had, else on a free one: another if that is taken meanwhile."""
        for port in (self.port,) if self.port else (free_port() for _ in range(3)):
            self._launch(port)
            if is_served(port, self.process):
                self.port = port
                return self
        raise AssertionError(f"the server did not start: {self.errors()}")

    def _launch(self, port: str) -> None:
        command = [sys.executable, "-m", "plain_app", "app", "--no-browser", "--port", port]
        command += [*self.arguments, "--workspace", str(self.workspace)]
        self.log = (self.workspace.parent / f"server-{port}.log").open("a+")
        self.process = subprocess.Popen(
            command, cwd=ROOT, stdout=subprocess.PIPE, stderr=self.log, text=True
        )
        for line in self.process.stdout:
            found = ADDRESS.search(line)
            if found:
                self.url = found[0]
                break

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self) -> None:
        self.process.send_signal(signal.SIGINT)
        try:
            self.process.wait(60)
        finally:
            if self.process.poll() is None:
                self.kill()

    def errors(self) -> str:
        self.log.flush()
        return Path(self.log.name).read_text()


@contextlib.contextmanager
def serving(workspace: Path, *arguments: str) -> Iterator[Server]:
    """Serve a workspace as long as the context lasts; then its runs end, too."""
    server = Server(workspace, *arguments).start()
    try:
        yield server
    finally:
        server.stop()
        server.log.close()
        end_runs(workspace)


def free_port() -> str:
    with contextlib.closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        return str(probe.getsockname()[1])


def is_served(
    port: str, process: "subprocess.Popen[str]", path: str = "/_stcore/health", seconds: float = 120
) -> bool:
    """Wait until a process answers on its port; false where it ends before it does."""
    end = monotonic() + seconds
    while process.poll() is None and monotonic() < end:
        with (
            contextlib.suppress(OSError, HTTPException),
            contextlib.closing(HTTPConnection("127.0.0.1", int(port), timeout=1)) as connection,
        ):
            connection.request("GET", path)
            if connection.getresponse().status == 200 and process.poll() is None:
                return True
        sleep(0.1)
    return False


def end_runs(workspace: Path) -> None:
    """End the training processes that a test left, by their ids."""
    from core.store import Workspace

    space = Workspace(workspace)
    for run in space.runs.list(include_deleted=True):
        if run.pid not in (None, os.getpid()) and not run.state.is_ended:
            with contextlib.suppress(ProcessLookupError):
                os.kill(run.pid, signal.SIGKILL)
    space.close()
