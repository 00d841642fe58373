"""A team's workspace: one database, object storage, and servers with folders of their own."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from finished_run import finished_run
from PIL import Image
from real_runs import assert_same_results
from store_actors import killed_at, small_data
from typer.testing import CliRunner

from core import cli
from core.data.demo import load_demo
from core.encoders.thumbnails import SMALL, Thumbnails, picture_file
from core.engine.config import PlainConfig
from core.errors import FilesElsewhere, PlainError, StoreError, StoreUnavailable
from core.export import run_results
from core.review import beginning
from core.review.load import load_reviewer
from core.runs import takeover, worker
from core.runs.results import load_results, lost_files
from core.store import CurrentDecisions, Decision, Workspace, files, review_files, stored_files
from core.store.object_storage import ObjectStorage

RESULTS = ("predictions.npy", "confidences.npy", "instance_graph.npz", "confidences.f16")


@pytest.fixture
def storage(tmp_path, monkeypatch):
    """A folder that both servers see, and a database in none of their folders."""
    monkeypatch.setenv("PLAIN_DATABASE_URL", f"sqlite:///{tmp_path / 'shared.db'}")
    monkeypatch.setenv("PLAIN_STORAGE_URL", (tmp_path / "storage").as_uri())
    monkeypatch.setattr(stored_files, "RECHECK_SECONDS", 0.0)
    return tmp_path / "storage"


@pytest.fixture
def anna(storage, open_on):
    return open_on("anna")


@pytest.fixture
def lab(storage, anna, open_on):
    return open_on("lab")


def made_run(workspace, n_instances=60):
    """Return an ended run whose files are in the storage, as the worker leaves it."""
    run_id = finished_run(workspace, load_demo(n_instances=n_instances))
    workspace.share(f"runs/{run_id}")
    return workspace.runs.get(run_id)


def exported(workspace, run, path):
    arguments = ["export", run.id, str(path), "--workspace", str(workspace.folder)]
    done = CliRunner().invoke(cli.app, arguments, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return path.read_bytes()


def test_two_servers_open_review_and_export_the_same_run(
    open_on, postgres_url, s3_url, tmp_path, monkeypatch
):
    monkeypatch.setenv("PLAIN_DATABASE_URL", postgres_url)
    monkeypatch.setenv("PLAIN_STORAGE_URL", s3_url)
    anna, lab = open_on("anna"), open_on("lab")
    run = made_run(anna)
    assert lab.runs.elsewhere(run) is None
    assert lost_files(lab, run) is None
    here, there = load_results(anna, run), load_results(lab, run)
    assert not (lab.folder / "runs").exists()
    for name in RESULTS:
        assert (there.folder / name).read_bytes() == (here.folder / name).read_bytes()
    assert np.array_equal(there.dataset.features, here.dataset.features)

    seen = CurrentDecisions(lab.decisions, run.fingerprint)
    assert seen.refresh().by_annotator == {}
    cell = {"instance_id": here.dataset.ids[0], "label": here.dataset.label_names[0]}
    made = Decision(fingerprint=run.fingerprint, verdict="keep", annotator="anna", **cell)
    anna.decisions.add(made)
    assert set(seen.refresh().by_annotator) == {"anna"}  # at the next look
    assert np.array_equal(load_reviewer(anna, run).confidences, load_reviewer(lab, run).confidences)
    assert np.array_equal(run_results(anna, run).confidences, run_results(lab, run).confidences)
    assert exported(anna, run, tmp_path / "a.csv") == exported(lab, run, tmp_path / "b.csv")


def test_data_loaded_on_one_server_is_trained_on_another(anna, lab):
    data = anna.add_dataset(small_data(), "small")
    assert lab.lost_data(data) is None
    assert lab.runs.create(data, PlainConfig()).machine == lab.machines.here
    assert lab.load_dataset(data, verify=True).fingerprint == data
    lab.add_dataset(small_data(truth=np.ones((4, 2), np.uint8)), "with truth")
    assert not (lab.folder / "datasets").exists()  # the copy is what was added to
    assert lab.load_dataset(data).truth is not None
    assert anna.load_dataset(data).truth is None  # its own files are as it wrote them
    lab.add_dataset(small_data(feature_names=["a", "b", "c"]), "with names")
    anna.share_all()  # has older files, which replace no newer ones
    third = Workspace(lab.folder.with_name("third"))
    assert third.load_dataset(data).truth is not None
    assert list(third.load_dataset(data).feature_names) == ["a", "b", "c"]
    third.close()


def test_a_trained_run_is_uploaded_when_it_ends_and_goes_on_from_another_server(
    anna, lab, monkeypatch
):
    monkeypatch.setattr(beginning, "LARGE", 10)
    data = anna.add_dataset(load_demo(n_instances=60), "demo")
    run = anna.runs.create(data, PlainConfig(epochs=1, members=1))
    worker.run_training(anna, run.id)
    ended = lab.runs.get(run.id)
    assert lab.runs.elsewhere(ended) is None
    assert load_results(lab, ended).predictions.shape[0] == 60
    assert (lab.runs.folder(run.id) / "review_start.npz").exists()  # large data: Review begins so
    assert worker.retrain(lab, run.id).machine == lab.machines.here  # from its checkpoint


def test_a_run_whose_machine_fell_silent_goes_on_at_another_to_the_same_bits(
    anna, lab, storage, monkeypatch
):
    data, config = anna.add_dataset(load_demo(n_instances=60), "demo"), PlainConfig(epochs=5)
    whole, run = (anna.runs.create(data, config) for _ in range(2))
    worker.run_training(anna, whole.id)
    # Killed when the third checkpoint is in the storage, one of every epoch.
    killed = {"PLAIN_CHECKPOINT_SECONDS": "0", "PLAIN_FAILPOINT": "storage.recorded:3"}
    work = [sys.executable, "-m", "core", "work", run.id, "--workspace", str(anna.folder)]
    root = Path(__file__).parents[2]
    done = subprocess.run(work, env={**os.environ, **killed}, cwd=root, check=False)
    assert done.returncode == -signal.SIGKILL
    kept = [name for name in objects_of(storage, f"runs/{run.id}") if "checkpoint" in str(name)]
    assert len(kept) == 2  # the last, and the one before it that it was about to remove
    with pytest.raises(StoreError, match="cannot go on here"):  # heard from a moment ago
        takeover.continue_here(lab, run.id)
    monkeypatch.setattr(worker, "SILENT_SECONDS", 0.0)
    assert not takeover.can_continue_here(anna, anna.runs.get(run.id))  # its own: resumed
    new = takeover.continue_here(lab, run.id)
    assert lab.runs.get(new.id).epoch == 3
    worker.run_training(lab, new.id)
    assert_same_results(lab, new, whole, anna)
    losses = [
        [event.loss for _, event in lab.runs.events_after(one.id) if event.kind == "epoch"]
        for one in (whole, new)
    ]
    assert losses[0] == losses[1]
    assert anna.runs.get(run.id).state == "running"  # it can still be resumed where it was


def test_what_one_server_adds_to_a_run_the_others_get(anna, lab, open_on):
    run, third = made_run(anna), open_on("third")
    for space in (lab, third):
        load_results(space, run)
    assert not (third.runs.folder(run.id) / "layout_umap.npy").exists()
    files.write_array(lab.runs.folder(run.id) / "layout_umap.npy", np.ones((60, 2)))
    lab.share(f"runs/{run.id}")
    assert (third.runs.folder(run.id) / "layout_umap.npy").exists()


def test_small_pictures_and_selections_are_fetched_one_by_one(anna, lab):
    data = anna.add_dataset(small_data(), "small")
    keys = [bytes([at] * 32) for at in (1, 2, 3, 4)]
    for key in keys:
        Thumbnails(anna.folder).add(key, Image.new("RGB", (40, 30), "red"))
    Thumbnails(anna.folder).remember(data, {"picture": keys})
    chosen = review_files.write_selection(anna.folder, ["1", "3"])
    anna.share_all()
    lab.load_dataset(data)
    assert [row.tobytes() for row in Thumbnails(lab.folder).rows(data)["picture"]] == keys
    found = lab.stored.fetch_file(*picture_file(keys[2], SMALL))
    assert found.read_bytes() == Thumbnails(anna.folder).jpeg(keys[2], SMALL)
    assert len(list((lab.folder / "cache" / "pictures").glob("*/*.jpg"))) == 1
    assert lab.stored.fetch_file(*picture_file(bytes(32), SMALL)) is None
    assert review_files.read_selection(lab.stored, chosen) == ["1", "3"]
    with pytest.raises(PlainError, match="selection is gone"):
        review_files.read_selection(lab.stored, "0" * 16)
    Thumbnails(lab.folder).remember(data, {"picture": keys[::-1]})  # into the copy


def test_the_cache_keeps_to_its_limit_and_drops_what_was_not_used_for_long(anna, lab, monkeypatch):
    runs = [made_run(anna, n) for n in (60, 61, 62)]
    load_results(lab, runs[0])
    one = lab.stored.cache_use().n_bytes
    monkeypatch.setenv("PLAIN_CACHE_GB", str(2.05 * one / 1e9))
    load_results(lab, runs[1])
    copies = [lab.stored.local(f"runs/{run.id}") for run in runs]
    for age, run in ((200, runs[0]), (100, runs[1])):
        make_old(lab, f"runs/{run.id}", age + 1)
        make_old(lab, f"datasets/{run.fingerprint}", age)
    load_results(lab, runs[2])
    assert [path.exists() for path in copies] == [False, True, True]
    assert lab.stored.cache_use().n_bytes <= lab.stored.cache_use().limit
    assert load_results(lab, runs[0]).predictions.shape[0] == 60  # fetched again
    monkeypatch.setenv("PLAIN_CACHE_GB", "much")
    with pytest.raises(StoreError, match="must be a number"):
        lab.stored.cache_use()


def make_old(workspace, owner, seconds):
    path = workspace.stored.local(owner) / stored_files.RECORD
    then = path.stat().st_mtime - seconds
    os.utime(path, (then, then))


def test_a_copy_with_files_that_are_not_uploaded_yet_stays(anna, lab, monkeypatch):
    first, second = made_run(anna, 60), made_run(anna, 61)
    copy = lab.runs.folder(first.id)
    (copy / "layout_umap.npy").write_bytes(b"made here")
    make_old(lab, f"runs/{first.id}", 100)
    monkeypatch.setenv("PLAIN_CACHE_GB", "0")
    lab.runs.folder(second.id)
    assert (copy / "layout_umap.npy").exists()
    lab.share_all()
    make_old(lab, f"runs/{first.id}", 100)
    lab.load_dataset(second.fingerprint)
    assert not copy.exists()


def objects_of(storage, owner):
    return sorted((storage / owner).iterdir())


def test_a_missing_object_is_told_and_sent_again_by_who_has_the_file(anna, lab, storage):
    run = made_run(anna)
    gone = next(
        path for path in objects_of(storage, f"runs/{run.id}") if "predictions" in path.name
    )
    gone.unlink()
    with pytest.raises(StoreError, match="missing in the object storage") as refused:
        load_results(lab, run)
    assert "uploads what is missing" in refused.value.hint
    assert lost_files(lab, run) is None  # a moment later it may be there
    assert anna.share_all() == 1
    assert load_results(lab, run).predictions.shape == (60, load_demo(60).n_labels)


def test_the_pages_are_told_why_files_could_not_be_fetched(anna, lab, storage, monkeypatch):
    run = made_run(anna)
    for path in objects_of(storage, f"runs/{run.id}"):
        path.write_bytes(path.read_bytes() + b"changed")
    monkeypatch.setattr(stored_files, "RECHECK_SECONDS", 60.0)
    with pytest.raises(StoreError, match="not what was uploaded"):
        lab.runs.folder(run.id)
    assert lost_files(lab, run).title == "A file is not what was uploaded in the object storage."
    assert not list(lab.stored.local(f"runs/{run.id}").glob("*.npy"))


def test_without_the_storage_work_goes_on_and_is_uploaded_later(
    anna, lab, storage, tmp_path, capsys
):
    storage.write_text("a file where the folder should be")
    data = anna.add_dataset(small_data(), "small")
    assert "uploaded later" in capsys.readouterr().err
    assert anna.load_dataset(data).n_instances == 4
    with pytest.raises(StoreUnavailable, match="cannot be used"):
        anna.share_all()
    with pytest.raises(FilesElsewhere, match="The files are on anna") as refused:
        lab.load_dataset(data)
    assert "once anna has uploaded them" in refused.value.hint
    storage.unlink()
    assert anna.share_all() > 0
    assert lab.load_dataset(data).n_instances == 4


def test_a_run_at_work_elsewhere_is_not_opened_but_its_events_are_read(anna, lab):
    run = anna.runs.create(anna.add_dataset(small_data(), "small"), PlainConfig())
    anna.runs.claim(run.id, 1, 1.0)
    assert lab.runs.elsewhere(lab.runs.get(run.id)) == "anna"
    with pytest.raises(FilesElsewhere):
        lab.runs.folder(run.id)
    assert lab.runs.events_after(run.id) == []


def test_a_server_without_the_address_says_what_is_to_be_set(anna, open_on, monkeypatch):
    run = made_run(anna)
    monkeypatch.delenv("PLAIN_STORAGE_URL")
    lost = lost_files(open_on("lab"), run)
    assert isinstance(lost, FilesElsewhere)
    assert "set PLAIN_STORAGE_URL" in lost.hint


def test_lost_files_of_ones_own_come_back_from_the_storage(anna, open_on, storage):
    run = made_run(anna)
    os.rename(anna.folder / "runs" / run.id, anna.folder / "away")
    again = open_on("anna")
    assert lost_files(again, run) is None
    assert load_results(again, run).predictions.shape[0] == 60


def test_a_purged_run_is_gone_from_the_storage(anna, lab, storage):
    run = made_run(anna)
    assert objects_of(storage, f"runs/{run.id}")
    anna.runs.delete(run.id)
    anna.runs.purge(run.id)
    assert not (storage / "runs" / run.id).exists()
    assert not lab.stored.is_stored(f"runs/{run.id}")


def test_a_killed_upload_is_no_upload_and_is_completed_by_the_next_start(anna, lab, storage):
    run_id = finished_run(anna, load_demo(n_instances=60))
    killed_at("storage.object_uploaded:3", "share", anna.folder)
    assert 3 <= len(objects_of(storage, f"runs/{run_id}")) < 8
    assert not lab.stored.is_stored(f"runs/{run_id}")
    assert anna.share_all() > 0
    assert load_results(lab, lab.runs.get(run_id)).dataset.n_instances == 60


def test_the_command_uploads_what_is_left_and_says_where_there_is_no_storage(anna, monkeypatch):
    finished_run(anna, load_demo(n_instances=60))
    command = ["upload", "--json", "--workspace", str(anna.folder)]
    done = CliRunner().invoke(cli.app, command, catch_exceptions=False)
    assert json.loads(done.stdout)["uploaded"] == 8
    monkeypatch.delenv("PLAIN_STORAGE_URL")
    refused = CliRunner().invoke(cli.app, command).exception
    assert refused.title == "There is no object storage."


@pytest.mark.parametrize("url", ["bucket/prefix", "s3:///prefix", "ftp://host/x", "http://x"])
def test_what_is_no_address_of_a_storage_is_refused(url):
    with pytest.raises(StoreError, match="no address of object storage"):
        ObjectStorage(url)


def test_files_are_private_and_backups_leave_copies_out(anna, lab, tmp_path):
    from core.store import full_backup
    from core.store.manifest import read_manifest

    run = made_run(anna)
    load_results(lab, run)
    assert all(path.stat().st_mode & 0o077 == 0 for path in (lab.folder / "cache").rglob("*"))
    kept = read_manifest(full_backup(lab, tmp_path / "kept").manifest)
    assert not [one.path for one in kept.files if Path(one.path).parts[0] == "cache"]
