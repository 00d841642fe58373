"""A server that speaks S3, for the tests: moto's, in a process and environment of its own.

`make s3-server` installs it; `PLAIN_S3_SERVER` names another `moto_server`.
"""

import http.client
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from time import monotonic, sleep

import pytest

ROOT = Path(__file__).parents[1]
ADDRESS = re.compile(r"Running on http://127\.0\.0\.1:(\d+)\s")


def find_server() -> str | None:
    installed = ROOT / ".s3" / "bin" / "moto_server"
    found = os.environ.get("PLAIN_S3_SERVER") or shutil.which("moto_server")
    return found or (str(installed) if installed.exists() else None)


def request(port: int, method: str, path: str) -> int:
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60)) as connection:
        connection.request(method, path, headers={"Content-Length": "0"})
        return connection.getresponse().status


@pytest.fixture(scope="session")
def s3_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The port of a running server: one that was free when it began, which it tells in its log."""
    program = find_server()
    if program is None:
        pytest.skip("no moto_server: make s3-server installs it")
    # Of another environment: what this one's Python is told is not for it.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    path = tmp_path_factory.mktemp("s3") / "log"
    with path.open("wb") as log:
        command = [program, "-H", "127.0.0.1", "-p", "0"]
        process = subprocess.Popen(command, cwd="/", env=environment, stdout=log, stderr=log)
    try:
        end = monotonic() + 240
        while not (told := ADDRESS.search(path.read_text())):
            ended = process.poll() is not None or monotonic() > end
            assert not ended, path.read_text()
            sleep(0.1)
        yield int(told[1])
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
