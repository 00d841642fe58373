"""400 wrong passwords at once, again and again: few are tried; who is inside notices nothing."""

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from time import monotonic, sleep

import numpy as np
import pytest
from app_server import Server
from desk_driver import make_run

from core.data.demo import load_demo
from plain_app.server import tokens
from plain_app.server.password import write_password

pytestmark = pytest.mark.hammer
N, WAVES, PAUSE = 400, 8, 5.0
SECRET = "correct horse"
FLOOD = Path(__file__).parents[1] / "login_flood.py"


class Person:
    """Somebody with a browser of their own, who looks at pages and reviews."""

    def __init__(self, server: Server) -> None:
        self._port, self.cookie = int(server.port), ""

    def ask(self, path: str, body: str | None = None, **headers: str) -> tuple[int, float]:
        """Return the status and the seconds it took; keep what cookies come."""
        connection = HTTPConnection("127.0.0.1", self._port, timeout=60)
        sent = {"cookie": self.cookie, "origin": f"http://127.0.0.1:{self._port}", **headers}
        start = monotonic()
        connection.request("GET" if body is None else "POST", path, body, sent)
        answer = connection.getresponse()
        answer.read()
        took = monotonic() - start
        given = [one.split(";")[0] for one in answer.headers.get_all("set-cookie") or []]
        self.cookie = "; ".join(filter(None, [self.cookie, *given]))
        connection.close()
        return answer.status, took

    def log_in(self) -> int:
        return self.ask("/login", f"password={SECRET.replace(' ', '+')}")[0]


@pytest.fixture
def served(tmp_path) -> Iterator[tuple[Server, str]]:
    write_password(tmp_path / "password", SECRET)
    run_id = make_run(tmp_path / "space", load_demo(n_instances=400))
    server = Server(tmp_path / "space", "--password-file", str(tmp_path / "password")).start()
    yield server, run_id
    server.stop()
    server.log.close()


def test_a_flood_of_wrong_passwords(served, tmp_path, monkeypatch, capsys):
    server, run_id = served
    ann = Person(server)
    assert ann.log_in() == 303
    browser = next(one for one in ann.cookie.split("; ") if one.startswith("plain_browser"))
    monkeypatch.setenv("PLAIN_WORKSPACE", str(server.workspace))
    data = tokens.workspace().datasets()[0].fingerprint
    claims = tokens.Claims(data, run_id, "ann")
    desk = {
        "x-plain-token": tokens.issue(claims, browser.partition("=")[2]),
        "content-type": "application/json",
    }
    assert ann.ask("/api/questions", "{}", **desk)[0] == 200
    start = monotonic()
    command = [sys.executable, FLOOD, server.port, str(N), str(WAVES), str(PAUSE)]
    told = tmp_path / "answers.json"
    with told.open("w") as file:
        flood = subprocess.Popen(command, stdout=file)
    took = []
    while flood.poll() is None:
        for path, body in (("/", None), ("/api/questions", "{}"), ("/api/progress", "{}")):
            status, seconds = ann.ask(path, body, **desk)
            assert status == 200
            took.append(seconds)
        sleep(0.05)
    minutes = (monotonic() - start) / 60
    # Meanwhile strangers are refused, but not a browser that was inside before.
    assert Person(server).log_in() == 429
    ann.cookie = "; ".join(one for one in ann.cookie.split("; ") if "plain_login" not in one)
    assert ann.log_in() == 303
    answers = json.loads(told.read_text())
    statuses = Counter(status for status, *_ in answers)
    p50, p95, most = (1000 * float(np.quantile(took, one)) for one in (0.5, 0.95, 1))
    refused = [seconds for status, _, seconds in answers if status == 429]
    with capsys.disabled():
        print(
            f"\n{N} logins at once, {WAVES} times in {60 * minutes:.0f} s: {dict(statuses)};"
            f" refused within {np.quantile(refused, 0.95):.2f} s (p95); meanwhile somebody inside:"
            f" {len(took)} requests, p50 {p50:.0f}, p95 {p95:.0f}, most {most:.0f} ms"
        )
    assert set(statuses) == {401, 429}
    assert statuses[401] <= 5 * np.ceil(minutes)
    assert all(says_when for status, says_when, _ in answers if status == 429)
    assert p95 < 500
