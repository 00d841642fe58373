"""Background work gives way, ends cleanly and gives memory back."""

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from io import BytesIO
from threading import Barrier, BrokenBarrierError
from time import sleep

import psutil
import pytest

from core.runs import processes as background


@pytest.mark.parametrize("own_session", [True, False])
def test_background_work_gives_way_and_leaves_a_shared_session_alone(own_session):
    code = """if True:
        import json, os, pathlib
        from core.runs import processes as background

        def nicenesses():  # of the process; of its session, where the system groups by sessions
            group = pathlib.Path("/proc/self/autogroup")
            return os.nice(0), (group.read_text().split() if group.exists() else [])[-1:]

        before = nicenesses()
        background.lower_priority()
        print(json.dumps([before, nicenesses()]))
    """
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PLAIN_NICENESS": "7"},
        capture_output=True,
        text=True,
        check=True,
        start_new_session=own_session,
    )
    (nice, session), (nice_now, session_now) = json.loads(done.stdout)
    assert nice_now - nice == 7
    assert session_now == (["7"] if session and own_session else session)


def test_processes_that_ended_leave_the_table_of_processes(tmp_path):
    def start():
        return background.start("no-such-command", log=tmp_path / "words.log")

    first = start()
    process = psutil.Process(first.pid)
    while process.status() != psutil.STATUS_ZOMBIE:
        sleep(0.05)
    last = start()
    assert not psutil.pid_exists(first.pid)
    last.wait()


class Ready:
    """A process that stands by; whoever is about to write to it waits a moment for another."""

    def __init__(self) -> None:
        self._both, self._pipe = Barrier(2), BytesIO()

    def poll(self) -> None:
        return None

    @property
    def stdin(self) -> BytesIO:
        with suppress(BrokenBarrierError):  # nobody came
            self._both.wait(0.2)
        return self._pipe


def test_a_process_that_stands_by_is_given_to_one_of_two_who_ask_at_once(tmp_path, monkeypatch):
    standby, ready = background.Standby(), Ready()
    monkeypatch.setattr(background, "start", lambda *_, **__: ready)
    monkeypatch.delenv("PLAIN_STANDBY", raising=False)
    standby.open(tmp_path)
    with ThreadPoolExecutor(2) as threads:
        given = list(threads.map(lambda run: standby.give(tmp_path, run), ("one", "two")))
    assert sorted(given, key=lambda one: one is None) == [ready, None]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="glibc")
def test_large_arrays_that_were_freed_are_given_back():
    script = """
import sys, numpy, psutil
from core.runs import processes as background
if sys.argv[1] == "returned":
    background.return_memory()
numpy.ones(1 << 19)  # the first that is freed raises the limit of what comes from the heap
before = psutil.Process().memory_info().rss
pairs = [(numpy.ones(1 << 18), bytes(40_000)) for _ in range(100)]  # 2 MB beside something small
kept = [small for _, small in pairs]
del pairs
print((psutil.Process().memory_info().rss - before) / 2e8)
"""
    held = {}
    for case in ("as it is", "returned"):
        command = [sys.executable, "-c", script, case]
        held[case] = float(subprocess.run(command, capture_output=True, text=True).stdout)
    assert held["returned"] < held["as it is"] / 5


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="glibc")
def test_gaps_that_smaller_arrays_leave_are_given_back():
    script = """
import sys, time, numpy, psutil
from core.runs import processes as background
background.TRIM_SECONDS = 0.05
if sys.argv[1] == "returned":
    background.return_memory()
process, n_bytes = psutil.Process(), 120_000
before = process.memory_info().rss
pairs = [(numpy.ones(n_bytes, bool), bytes(1000)) for _ in range(1000)]
kept = [small for _, small in pairs]
del pairs
held, end = 1.0, time.monotonic() + (30 if sys.argv[1] == "returned" else 1)
while held > 0.2 and time.monotonic() < end:
    time.sleep(0.05)
    held = (process.memory_info().rss - before) / (1000 * n_bytes)
print(held)
"""
    held = {}
    for case in ("as it is", "returned"):
        command = [sys.executable, "-c", script, case]
        held[case] = float(subprocess.run(command, capture_output=True, text=True).stdout)
    assert held["returned"] < held["as it is"] / 4
