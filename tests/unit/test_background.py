"""A run rests while somebody waits for a screen, and works between."""

import json
import os
import subprocess
import sys
from time import perf_counter, time

import pytest

from core import background


@pytest.fixture
def rests(monkeypatch):
    """How often a run looked whether to go on; sleeping makes the clock go, nothing else does."""
    clock = [1000.0]
    monkeypatch.setattr(background, "time", lambda: clock[0])
    monkeypatch.setattr(
        background, "sleep", lambda seconds: clock.__setitem__(0, clock[0] + seconds)
    )
    return clock


def asked(folder, at: float) -> None:
    background.ask_for_quiet(folder)
    os.utime(folder / "quiet", (at, at))


def test_a_run_rests_until_the_moment_is_over(tmp_path, rests):
    asked(tmp_path, 999.9)
    background.Rest(tmp_path).take()
    assert rests[0] == pytest.approx(999.9 + background.QUIET_SECONDS, abs=0.03)


@pytest.mark.parametrize("at", [None, 900.0, 1100.0], ids=["never", "long ago", "another clock"])
def test_a_run_goes_on_at_once_when_nobody_waits(tmp_path, rests, at):
    if at is not None:
        asked(tmp_path, at)
    background.Rest(tmp_path).take()
    assert rests[0] == 1000


def test_a_run_works_between_its_rests_however_often_it_is_asked(tmp_path, rests):
    rest, worked = background.Rest(tmp_path), 0.0
    while rests[0] < 1010:
        asked(tmp_path, rests[0])
        before = rests[0]
        rest.take()
        if rests[0] == before:
            rests[0] += 0.01
            worked += 0.01
    assert 0.2 < worked / 10 < 0.4


def test_what_is_asked_now_is_heard_now(tmp_path, monkeypatch):
    monkeypatch.setattr(background, "QUIET_SECONDS", 0.1)
    background.ask_for_quiet(tmp_path)
    begin = perf_counter()
    background.Rest(tmp_path).take()
    assert perf_counter() - begin > 0.05
    assert abs((tmp_path / "quiet").stat().st_mtime - time()) < 5


def test_a_folder_that_is_gone_is_no_error(tmp_path):
    background.ask_for_quiet(tmp_path / "gone")
    background.Rest(tmp_path / "gone").take()


@pytest.mark.parametrize("own_session", [True, False])
def test_background_work_gives_way_and_leaves_a_shared_session_alone(own_session):
    code = """if True:
        import json, os, pathlib
        from core import background

        def nicenesses():  # of the process; of its session, where the system groups by sessions
            group = pathlib.Path("/proc/self/autogroup")
            return os.nice(0), (group.read_text().split() if group.exists() else [])[-1:]

        before = nicenesses()
        background.give_way()
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
