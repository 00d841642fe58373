"""A failpoint kills its process when it is named, at the time asked for, and never else."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("wanted", "lines", "code"),
    [
        (None, 3, 0),
        ("elsewhere", 3, 0),
        ("here", 0, -signal.SIGKILL),
        ("here:3", 2, -signal.SIGKILL),
        ("here:4", 3, 0),
    ],
)
def test_a_failpoint_kills_where_and_when_it_was_asked_to(wanted, lines, code):
    script = """
from core.failpoints import failpoint
for _ in range(3):
    failpoint("here")
    print("x", flush=True)
"""
    env = {**os.environ, **({"PLAIN_FAILPOINT": wanted} if wanted else {})}
    done = subprocess.run([sys.executable, "-c", script], env=env, capture_output=True, text=True)
    assert (len(done.stdout.split()), done.returncode) == (lines, code)


def test_every_named_point_is_one_at_which_some_test_kills():
    called = re.compile(r'failpoint\("([\w.]+)"\)')
    code = [path for part in ("core", "plain_app") for path in (ROOT / part).rglob("*.py")]
    named = {name for path in code for name in called.findall(path.read_text("utf-8"))}
    tests = "".join(path.read_text("utf-8") for path in (ROOT / "tests").rglob("test_*.py"))
    assert len(named) >= 25
    assert {name for name in named if not re.search(rf'"{re.escape(name)}[:"]', tests)} == set()
    table = (ROOT / "docs" / "hammer.md").read_text("utf-8")
    assert {name for name in named if f"`{name}`" not in table} == set()
