"""A server that speaks S3, for the tests: moto's, in a process and environment of its own.

`make s3-server` installs it; `PLAIN_S3_SERVER` names another `moto_server`.
"""

import http.client
import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from time import monotonic, sleep

import pytest

ROOT = Path(__file__).parents[1]


def find_server() -> str | None:
    installed = ROOT / ".s3" / "bin" / "moto_server"
    found = os.environ.get("PLAIN_S3_SERVER") or shutil.which("moto_server")
    return found or (str(installed) if installed.exists() else None)


def request(port: int, method: str, path: str) -> int:
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=5)) as connection:
        connection.request(method, path, headers={"Content-Length": "0"})
        return connection.getresponse().status


@pytest.fixture(scope="session")
def s3_server() -> Iterator[int]:
    """The port of a running server."""
    program = find_server()
    if program is None:
        pytest.skip("no moto_server: make s3-server installs it")
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [program, "-H", "127.0.0.1", "-p", str(port)]
    # Of another environment: what this one's Python is told is not for it.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen(command, cwd="/", env=environment, **quiet)
    try:
        end = monotonic() + 60
        while monotonic() < end:
            with suppress(OSError):
                if request(port, "GET", "/moto-api/") == 200:
                    break
            sleep(0.1)
        yield port
    finally:
        process.kill()
        process.wait()


@pytest.fixture
def s3_url(s3_server: int, monkeypatch: pytest.MonkeyPatch) -> str:
    """The address of an empty bucket; the environment says how it is reached."""
    bucket = f"team-{os.urandom(6).hex()}"
    assert request(s3_server, "PUT", f"/{bucket}") == 200
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{s3_server}")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "plain")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "not-a-secret")
    return f"s3://{bucket}/studio"
