"""Uploads and fetches killed at every named point: nothing half is ever taken for whole."""

import os
import socket

import pytest
from finished_run import finished_run
from store_actors import killed_at

from core.data.demo import load_demo
from core.runs.results import load_results
from core.store import Workspace, stored_files

pytestmark = pytest.mark.hammer

UPLOAD = [
    "storage.object_uploaded",
    "storage.object_uploaded:7",
    "storage.before_recording",
    "storage.before_recording:2",
    "storage.recorded",
    "storage.recorded:2",
]


@pytest.fixture(params=["file", "s3"])
def servers(request, tmp_path, monkeypatch):
    url = (tmp_path / "storage").as_uri()
    if request.param == "s3":
        url = request.getfixturevalue("s3_url")
    monkeypatch.setenv("PLAIN_DATABASE_URL", f"sqlite:///{tmp_path / 'shared.db'}")
    monkeypatch.setenv("PLAIN_STORAGE_URL", url)
    monkeypatch.setattr(stored_files, "RECHECK_SECONDS", 0.0)
    spaces = []
    for host in ("anna", "lab"):
        monkeypatch.setattr(socket, "gethostname", lambda host=host: host)
        spaces.append(Workspace(tmp_path / host))
    yield spaces
    for space in spaces:
        space.close()


def contents(folder):
    names = ("predictions.npy", "confidences.npy", "instance_graph.npz", "label_graph.npz")
    return [(folder / name).read_bytes() for name in names]


@pytest.mark.parametrize("point", UPLOAD)
def test_a_killed_upload_is_completed_by_the_next_start(servers, monkeypatch, point):
    anna, lab = servers
    with monkeypatch.context() as without:
        without.setattr(anna.stored, "storage", None)  # nothing is uploaded when it is made
        run_id = finished_run(anna, load_demo(n_instances=60))
    killed_at(point, "share", anna.folder)
    owner = f"runs/{run_id}"
    if lab.stored.is_stored(owner):  # then all of it is there
        assert contents(lab.stored.fetch(owner)) == contents(anna.runs.folder(run_id))
    anna.share_all()
    found = load_results(lab, lab.runs.get(run_id))
    assert contents(found.folder) == contents(anna.runs.folder(run_id))
    assert anna.share_all() == 0


@pytest.mark.parametrize("point", ["storage.file_fetched", "storage.file_fetched:4"])
def test_a_killed_fetch_goes_on(servers, point):
    anna, lab = servers
    run_id = finished_run(anna, load_demo(n_instances=60))
    anna.share_all()
    killed_at(point, "fetch", lab.folder, f"runs/{run_id}")
    found = load_results(lab, lab.runs.get(run_id))
    assert contents(found.folder) == contents(anna.runs.folder(run_id))


def test_a_kill_while_room_is_made_leaves_whole_copies_or_none(servers, monkeypatch):
    anna, lab = servers
    first, second = (finished_run(anna, load_demo(n_instances=n)) for n in (60, 61))
    anna.share_all()
    lab.runs.folder(first)
    monkeypatch.setenv("PLAIN_CACHE_GB", "0")
    record = lab.stored.local(f"runs/{first}") / stored_files.RECORD
    os.utime(record, (1, 1))
    killed_at("storage.copy_removed", "fetch", lab.folder, f"runs/{second}")
    for run_id in (first, second):
        found = load_results(lab, lab.runs.get(run_id))
        assert contents(found.folder) == contents(anna.runs.folder(run_id))
