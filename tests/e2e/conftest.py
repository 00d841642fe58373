"""A real server on a free port, a temporary workspace, a real browser."""

import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from http.client import HTTPConnection
from pathlib import Path
from time import monotonic, sleep

import pytest

ROOT = Path(__file__).parents[2]
CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
REQUIRED = os.environ.get("PLAIN_BROWSER_TESTS") == "required"
ADDRESS = re.compile(r"http://127\.0\.0\.1:\d+/\S*")


class Server:
    """The program, started by its own command."""

    def __init__(self, workspace: Path, *arguments: str) -> None:
        self.workspace, self.arguments, self.port = workspace, arguments, ""
        self.url = ""

    def start(self) -> "Server":
        port = ["--port", self.port] if self.port else ["--port", free_port()]
        command = [sys.executable, "-m", "core", "app", "--no-browser", *port, *self.arguments]
        command += ["--workspace", str(self.workspace)]
        self.port = port[1]
        self.log = (self.workspace.parent / f"server-{self.port}.log").open("a+")
        self.process = subprocess.Popen(
            command, cwd=ROOT, stdout=subprocess.PIPE, stderr=self.log, text=True
        )
        for line in self.process.stdout:
            found = ADDRESS.search(line)
            if found:
                self.url = found[0]
                break
        wait_for_health(self.port)
        return self

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self) -> None:
        self.process.send_signal(signal.SIGINT)
        try:
            self.process.wait(15)
        finally:
            if self.process.poll() is None:
                self.kill()

    def errors(self) -> str:
        self.log.flush()
        return Path(self.log.name).read_text()


def free_port() -> str:
    with contextlib.closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        return str(probe.getsockname()[1])


def wait_for_health(port: str, seconds: float = 40) -> None:
    end = monotonic() + seconds
    while monotonic() < end:
        with (
            contextlib.suppress(OSError),
            contextlib.closing(HTTPConnection("127.0.0.1", int(port), timeout=1)) as connection,
        ):
            connection.request("GET", "/_stcore/health")
            if connection.getresponse().status == 200:
                return
        sleep(0.1)
    raise AssertionError("the server did not start")


def end_runs(workspace: Path) -> None:
    """End the training processes that a test left, by their ids."""
    from core.store import Workspace

    space = Workspace(workspace)
    for run in space.runs.list(include_deleted=True):
        if run.pid is not None and not run.state.is_ended:
            with contextlib.suppress(ProcessLookupError):
                os.kill(run.pid, signal.SIGKILL)
    space.close()


@pytest.fixture(scope="session")
def browser() -> Iterator[object]:
    if CHROMIUM is None:
        if REQUIRED:
            pytest.fail("no Chromium was found, and PLAIN_BROWSER_TESTS is required")
        pytest.skip("no Chromium was found")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield opened
        opened.close()


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[..., Server]]:
    """Start servers on a temporary workspace; all end with the test."""
    started: list[Server] = []

    def start(*arguments: str) -> Server:
        started.append(Server(tmp_path / "space", *arguments))
        return started[-1].start()

    yield start
    for server in started:
        server.stop()
        server.log.close()
    if (tmp_path / "space").exists():
        end_runs(tmp_path / "space")


@pytest.fixture
def open_page(browser) -> Iterator[Callable[..., object]]:
    """Open pages that must not ask another host for anything, nor raise in the browser."""
    opened, strangers, errors = [], [], []

    def open_one(url: str, width: int = 1440, height: int = 900, dark: bool = False) -> object:
        scheme = "dark" if dark else "light"
        page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
        page.on("request", lambda one: strangers.append(one.url) if is_strange(one.url) else None)
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("console", lambda one: errors.append(one.text) if "Policy" in one.text else None)
        page.goto(url)
        opened.append(page)
        return page

    yield open_one
    for page in opened:
        page.close()  # also when the test closed it
    assert strangers == []
    assert errors == []


def is_strange(url: str) -> bool:
    return not url.startswith(("http://127.0.0.1:", "ws://127.0.0.1:", "data:", "blob:"))


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    """Where screenshots go: a folder named by PLAIN_SCREENSHOTS, or a temporary one."""
    folder = Path(os.environ.get("PLAIN_SCREENSHOTS") or tmp_path / "screenshots")
    folder.mkdir(parents=True, exist_ok=True)
    return folder
