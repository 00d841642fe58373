"""Two servers with folders of their own, on one PostgreSQL and one S3: a team's workspace.

python -m pytest -m hammer -s tests/hammer/test_two_servers.py
"""

import os
import subprocess
import sys
from time import monotonic, sleep

import pytest
from app_server import ROOT, Server
from desk_clients import Person

from core.store import Workspace
from plain_app.server import tokens

pytestmark = pytest.mark.hammer

N_DECISIONS = 20
SEEN = 2.0
"""Seconds after which a decision is seen on the other server."""


@pytest.fixture
def servers(tmp_path, monkeypatch, postgres_url, s3_url):
    monkeypatch.setenv("PLAIN_DATABASE_URL", postgres_url)
    monkeypatch.setenv("PLAIN_STORAGE_URL", s3_url)
    for host in ("anna", "lab"):
        Workspace(tmp_path / host).close()
    plain(tmp_path / "anna", "train", "demo", "--set", "epochs=3")
    started = [Server(tmp_path / host).start() for host in ("anna", "lab")]
    yield started
    for server in started:
        server.stop()
        server.log.close()


def plain(folder, *arguments):
    command = [sys.executable, "-m", "core", *arguments, "--workspace", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr


def person(server, run, name, monkeypatch):
    monkeypatch.setenv("PLAIN_WORKSPACE", str(server.workspace))
    claims = tokens.Claims(run.fingerprint, run.id, name)
    return Person(server.port, tokens.issue(claims), 1.0, 1.0, 0)


def test_both_open_review_and_export_the_run_that_one_of_them_made(servers, tmp_path, monkeypatch):
    space = Workspace(servers[1].workspace)
    (run,) = space.runs.list()
    anna, lab = (
        person(server, run, name, monkeypatch)
        for server, name in zip(servers, ("anna", "lab"), strict=True)
    )
    begin = monotonic()
    for one in (anna, lab):
        one.fetch(timeout=120)
        assert one.items, one.failures
    print(f"\nload {os.getloadavg()[0]:.1f}; both opened the run in {monotonic() - begin:.1f} s")
    copy = servers[1].workspace / "cache" / "runs" / run.id
    own = servers[0].workspace / "runs" / run.id
    for name in ("predictions.npy", "confidences.npy", "instance_graph.npz", "checkpoint.npz"):
        assert (copy / name).read_bytes() == (own / name).read_bytes()

    delays = [seen_after(anna, lab) for _ in range(N_DECISIONS)]
    print(
        f"seen on the other server after {1000 * sorted(delays)[N_DECISIONS // 2]:.0f} ms, "
        f"at most {1000 * max(delays):.0f} ms, {N_DECISIONS} times"
    )
    assert [*anna.failures, *lab.failures] == []
    files = []
    for server in servers:
        files.append(tmp_path / f"{server.port}.csv")
        plain(server.workspace, "export", run.id, str(files[-1]))
    assert files[0].read_bytes() == files[1].read_bytes()
    assert not (servers[1].workspace / "runs").exists()
    space.close()


def seen_after(writer, reader):
    """Return the seconds from an answer saved on one server to its being counted on the other."""
    while not writer.items:
        writer.fetch()
    before = reader._post("progress", {})["decided"]
    writer._answer(writer.items.pop(0))
    begin = monotonic()
    while reader._post("progress", {})["decided"] <= before:
        assert monotonic() - begin < SEEN
        sleep(0.01)
    return monotonic() - begin
