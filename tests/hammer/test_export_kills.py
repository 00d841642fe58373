"""`plain export` killed at every named point: the file is the old one or the new one, and so is
the record beside it; nothing else in the folder is touched."""

import hashlib
import json
import os
import signal
import subprocess
import sys

import pytest
from finished_run import finished_run

from core.data.demo import load_demo
from core.store import Workspace

pytestmark = pytest.mark.hammer

POINTS = [
    "export.staged",
    "export.writing",
    "export.written",
    "export.recorded",
    "export.synced",
    "export.planned",
    "export.taken",
    "export.placed",
    "export.placed:2",
    "export.placed_all",
]


def plain(*arguments: object, **environment: str) -> int:
    command = [sys.executable, "-m", "core", *map(str, arguments)]
    return subprocess.run(command, env={**os.environ, **environment}).returncode


@pytest.mark.parametrize("point", POINTS)
def test_a_killed_export_is_the_old_one_or_the_new_one(tmp_path, monkeypatch, point):
    monkeypatch.delenv("PLAIN_DATABASE_URL", raising=False)
    space, out, name = Workspace(tmp_path / "space"), tmp_path / "out", "clean.csv"
    run_id = finished_run(space, load_demo(n_instances=60))
    space.close()
    out.mkdir()
    (out / "mine.txt").write_text("mine")
    order = ["export", run_id, out / name, "--workspace", space.folder, "--force"]
    assert plain(*order) == 0
    old = contents(out)
    assert plain(*order, "--threshold", "0.9", PLAIN_FAILPOINT=point) == -signal.SIGKILL

    Workspace(space.folder).close()  # the next start clears up
    found = contents(out)
    assert found.keys() == old.keys()
    assert found["mine.txt"] == b"mine"
    record = json.loads(found[f"{name}.provenance.json"])
    assert record["sha256"] == hashlib.sha256(found[name]).hexdigest()
    is_new = found[name] != old[name]
    assert record["threshold"] == ({"value": 0.9} if is_new else {"value": 0.5})
    assert plain(*order, "--threshold", "0.9") == 0
    assert contents(out).keys() == old.keys()


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}
