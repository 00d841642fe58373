"""A working day in short: tabs, annotators and runs come and go; memory and descriptors stay flat.

PLAIN_SOAK_SECONDS says for how long; before a release 1800. The first sixth is the warm-up, but at
least the time for which Streamlit keeps closed sessions, three descriptors each. What counts is the
server's own process: the runs are processes of their own, which come and go.
"""

import json
import os
import threading
from contextlib import closing, suppress
from http.client import HTTPConnection
from statistics import median
from time import monotonic
from typing import NamedTuple
from uuid import uuid4

import psutil
import pytest
from app_server import CHROMIUM, FLAGS, Server, end_runs
from desk_driver import make_run, stored

from core.data.demo import load_demo
from core.engine.config import PlainConfig
from core.store import Workspace

pytestmark = pytest.mark.hammer

SECONDS = float(os.environ.get("PLAIN_SOAK_SECONDS", "300"))
WARM_UP = max(SECONDS / 6, 180)
TOLERANCE = 0.05 if SECONDS >= 1200 else 0.25  # a short soak is mostly warm-up
SAMPLE_SECONDS = 5.0
RUN_SECONDS = 40.0
STEP_SECONDS = 2.0
ANSWER_SECONDS = 2.0
PAGES = ("train", "explore", "review", "tune", "compare", "export", "data")
N_TABS, ANNOTATORS = 5, ("ann", "bea", "cem")


class Sample(NamedTuple):
    """The server at one moment: its own process, and the processes it started."""

    at: float
    rss: float  # MB
    uss: float
    descriptors: int
    threads: int
    children: int
    children_rss: float


class Annotator(threading.Thread):
    """Asks and answers as the desk does, until told to stop; counts what was acknowledged."""

    def __init__(self, port: str, token: str, stop: threading.Event) -> None:
        super().__init__(daemon=True)
        self._port, self._token, self._stop_asked = int(port), token, stop
        self.saved, self.errors = set[str](), list[str]()

    def run(self) -> None:
        waiting: list[dict] = []
        while not self._stop_asked.wait(ANSWER_SECONDS):
            try:
                if not waiting:
                    waiting = self._post("questions", {"order": "audit"})["items"]
                if waiting:
                    self._answer(waiting.pop(0))
            except (OSError, ValueError) as error:
                self.errors.append(repr(error))

    def _answer(self, item: dict) -> None:
        batch = uuid4().hex
        decisions = [
            {
                "uid": uuid4().hex,
                "instance_id": cell["id"],
                "label": cell["label"],
                "verdict": cell["proposed"],
                "batch": batch,
            }
            for cell in item["cells"]
            if cell["asked"]
        ]
        self.saved.update(self._post("decisions", {"decisions": decisions})["saved"])

    def _post(self, name: str, body: dict) -> dict:
        host = f"127.0.0.1:{self._port}"
        headers = {
            "content-type": "application/json",
            "origin": f"http://{host}",
            "x-plain-token": self._token,
        }
        with closing(HTTPConnection(host, timeout=60)) as connection:
            connection.request("POST", f"/api/{name}", json.dumps(body), headers)
            answer = connection.getresponse()
            content = answer.read()
        if answer.status != 200:
            raise ValueError(f"{answer.status} {content[:200]!r}")
        return json.loads(content)


class Sampler(threading.Thread):
    """Looks at the server every few seconds."""

    def __init__(self, pid: int, stop: threading.Event) -> None:
        super().__init__(daemon=True)
        self._process, self._stop_asked = psutil.Process(pid), stop
        self.samples: list[Sample] = []

    def run(self) -> None:
        begin = monotonic()
        while not self._stop_asked.wait(SAMPLE_SECONDS):
            self.samples.append(self._look(monotonic() - begin))

    def _look(self, at: float) -> Sample:
        memory, children = self._process.memory_full_info(), 0.0
        family = self._process.children(recursive=True)
        for child in family:
            try:
                children += child.memory_info().rss
            except psutil.NoSuchProcess:
                continue
        return Sample(
            at,
            memory.rss / 1e6,
            memory.uss / 1e6,
            self._process.num_fds(),
            self._process.num_threads(),
            len(family),
            children / 1e6,
        )


@pytest.fixture
def server(tmp_path):
    folder = tmp_path / "space"
    run_id = make_run(folder, load_demo())
    started = Server(folder).start()
    yield started, run_id
    children = psutil.Process(started.process.pid).children(recursive=True)
    started.stop()
    started.log.close()
    end_runs(folder)
    for child in children:  # also one that has not claimed its run yet
        with suppress(psutil.NoSuchProcess):
            child.kill()


def test_memory_and_descriptors_stay_flat(server, monkeypatch, capsys):
    program, run_id = server
    if CHROMIUM is None:
        pytest.skip("no Chromium was found")
    stop = threading.Event()
    sampler = Sampler(program.process.pid, stop)
    people = annotators(program, run_id, stop, monkeypatch)
    for thread in (sampler, *people):
        thread.start()
    begun = browse(program, run_id)
    stop.set()
    for thread in (sampler, *people):
        thread.join()

    with capsys.disabled():
        print(f"\n{len(begun)} runs, {sum(len(one.saved) for one in people)} decisions")
        print(table(sampler.samples))
    assert [one.errors for one in people] == [[], [], []]
    assert {one for person in people for one in person.saved} == {
        one.uid for one in stored(program.workspace, *ANNOTATORS)
    }
    assert "Traceback" not in program.errors(), program.errors()[-3000:]
    check_runs(program, begun)
    check_flat(sampler.samples)


def annotators(program, run_id, stop, monkeypatch):
    monkeypatch.setenv("PLAIN_WORKSPACE", str(program.workspace))
    from plain_app.server import tokens

    space = Workspace(program.workspace)
    fingerprint = space.runs.get(run_id).fingerprint
    space.close()
    claims = [tokens.Claims(fingerprint, run_id, name) for name in ANNOTATORS]
    return [Annotator(program.port, tokens.issue(one), stop) for one in claims]


def browse(program, run_id):
    """Open one page after another in five tabs, and a new run every so often; return the runs."""
    from playwright.sync_api import sync_playwright

    space, begun, next_run = Workspace(program.workspace), [run_id], 0.0
    fingerprint, end, step = space.runs.get(run_id).fingerprint, monotonic() + SECONDS, 0
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        tabs = [browser.new_page(viewport={"width": 1280, "height": 800}) for _ in range(N_TABS)]
        while monotonic() < end:
            page, chosen = PAGES[step % len(PAGES)], begun[-1 - step % min(3, len(begun))]
            if monotonic() > next_run:
                config = PlainConfig.preset("studio", epochs=4)
                begun.append(space.runs.create(fingerprint, config, f"run {len(begun)}").id)
                page, chosen = "train", begun[-1]  # a page that shows a queued run starts it
                next_run = monotonic() + RUN_SECONDS
            tab = tabs[step % N_TABS]
            tab.goto(
                f"http://127.0.0.1:{program.port}/{page}?run={chosen}&annotator=tab",
                wait_until="domcontentloaded",
                timeout=120_000,
            )
            tab.wait_for_timeout(1000 * STEP_SECONDS)
            step += 1
        browser.close()
    space.close()
    return begun


def table(samples):
    lines = ["minute  RSS MB  USS MB  descriptors  threads  children  their RSS MB"]
    for minute, part in by_minute(samples).items():
        middle = [median(column) for column in zip(*part, strict=True)]
        lines.append(
            f"{minute:6}  {middle[1]:6.0f}  {middle[2]:6.0f}  {middle[3]:11.0f}  "
            f"{middle[4]:7.0f}  {middle[5]:8.0f}  {middle[6]:12.0f}"
        )
    return "\n".join(lines)


def by_minute(samples):
    found: dict[int, list[Sample]] = {}
    for one in samples:
        found.setdefault(int(one.at // 60), []).append(one)
    return found


def check_runs(program, begun):
    """Every run has ended well, but the last ones, which may still be at work."""
    space = Workspace(program.workspace)
    states = {run.id: str(run.state) for run in space.runs.list()}
    space.close()
    assert {states[one] for one in begun[:-2]} == {"finished"}


def check_flat(samples):
    warm = [one for one in samples if WARM_UP <= one.at < SECONDS]  # then the tabs are closed
    minutes = list(by_minute(warm).values())
    memory = [median(one.rss for one in part) for part in minutes]
    assert max(memory) <= (1 + TOLERANCE) * median(memory)
    assert min(memory) >= (1 - TOLERANCE) * median(memory)
    third = len(warm) // 3
    early, late = (max(one.descriptors for one in part) for part in (warm[:third], warm[-third:]))
    assert late <= (1 + TOLERANCE) * early + 5
