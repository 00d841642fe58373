"""A full backup holds all of a workspace; restored elsewhere, every run opens and exports alike."""

import os
import shutil
import sqlite3
import sys
import threading
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from finished_run import finished_run
from store_actors import killed_at, small_data, start
from store_integrity import integrity
from typer.testing import CliRunner

from core import cli
from core.data.demo import load_demo
from core.engine.config import PlainConfig
from core.errors import StoreError
from core.export import provenance, run_results
from core.formats import write
from core.review import Threshold, resolve
from core.store import (
    Decision,
    Workspace,
    check_full_backup,
    files,
    full_backup,
    restore,
    restore_full,
)
from core.store.backup import backup
from core.store.manifest import manifests, read_manifest, write_manifest

RUNNER = CliRunner()


@pytest.fixture
def workspace(tmp_path, monkeypatch):
    monkeypatch.delenv("PLAIN_DATABASE_URL", raising=False)
    workspace = Workspace(tmp_path / "here")
    yield workspace
    workspace.close()


def decide(workspace, dataset, uid, row=0):
    label = dataset.label_names[int(np.flatnonzero(dataset.candidates[row])[0])]
    workspace.decisions.add(
        Decision(
            uid=uid,
            fingerprint=dataset.fingerprint,
            instance_id=dataset.ids[row],
            label=label,
            verdict="reject",
            annotator="ann",
        )
    )


def exported(workspace, folder):
    """Export every run and return the files' bytes by run."""
    folder.mkdir()
    found = {}
    for run in workspace.runs.list():
        results = run_results(workspace, run)
        threshold = Threshold()
        resolution = resolve(
            results.dataset, results.confidences, threshold, decisions=results.decisions
        )
        about = provenance(results.dataset, resolution, threshold=threshold, config={})
        target = folder / f"{run.id}.csv"
        path = write(results.dataset, target, resolution=resolution, record=about)
        found[run.id] = path.read_bytes()
    return found


def test_the_folder_is_deleted_and_comes_back_elsewhere(workspace, tmp_path):
    dataset = load_demo(n_instances=60)
    for seed in range(2):
        finished_run(workspace, dataset, seed=seed)
    decide(workspace, dataset, "one")
    workspace.max_running = 3
    workspace.save_preset("mine", PlainConfig(epochs=7))
    before = exported(workspace, tmp_path / "before")
    full_backup(workspace, tmp_path / "kept")
    workspace.close()
    shutil.rmtree(workspace.folder)
    shutil.move(tmp_path / "kept", tmp_path / "carried")

    restore_full(tmp_path / "carried", tmp_path / "another" / "place")
    there = Workspace(tmp_path / "another" / "place")
    assert exported(there, tmp_path / "after") == before
    assert len(before) == 2
    assert integrity(there.database) == []
    assert there.max_running == 3
    assert there.preset("mine").epochs == 7
    decide(there, dataset, "two")
    assert [one.uid for one in there.decisions.history(dataset.fingerprint)] == ["one", "two"]


def test_only_what_is_new_is_copied(workspace, tmp_path):
    dataset = load_demo(n_instances=60)
    run_id = finished_run(workspace, dataset)
    for path in workspace.folder.rglob("*"):
        os.utime(path, (1e9, 1e9))  # a file changed a moment ago is read again
    first = full_backup(workspace, tmp_path / "kept")
    assert first.n_copied == first.n_files > 8
    assert full_backup(workspace, tmp_path / "kept").n_copied == 1  # the database
    (workspace.runs.folder(run_id) / "worker.log").write_text("more")
    third = full_backup(workspace, tmp_path / "kept")
    assert third.n_copied == 2
    assert third.n_files == first.n_files + 1


def test_what_only_lives_for_a_moment_is_left_out(workspace, tmp_path):
    run = workspace.runs.create(workspace.add_dataset(small_data(), "small"), PlainConfig())
    for name in ("worker.lock", ".checkpoint.npz.1a2b.tmp"):
        (workspace.runs.folder(run.id) / name).touch()
    for name in ("incoming", "exports"):
        (workspace.folder / name).mkdir(exist_ok=True)
        (workspace.folder / name / "one.json").touch()
    backup(workspace)
    made = full_backup(workspace, tmp_path / "kept")
    names = {one.path.split("/")[-1] for one in read_manifest(made.manifest).files}
    kept = {"plain.db", "machine.json", "config.json"}
    assert names == kept | {"features.npy", "candidates.npy", "meta.json"}


def test_the_trials_of_studies_are_copied_while_they_are_written(workspace, tmp_path):
    with closing(sqlite3.connect(workspace.folder / "studies.db")) as studies:
        studies.execute("PRAGMA journal_mode=WAL")
        studies.execute("CREATE TABLE trials (number INTEGER)")
        studies.execute("INSERT INTO trials VALUES (7)")
        studies.commit()  # it is still in studies.db-wal
        full_backup(workspace, tmp_path / "kept")
    restore_full(tmp_path / "kept", tmp_path / "there")
    with closing(sqlite3.connect(tmp_path / "there" / "studies.db")) as studies:
        assert studies.execute("SELECT number FROM trials").fetchall() == [(7,)]


def test_it_is_whole_while_people_answer(workspace, tmp_path):
    fingerprint = workspace.add_dataset(small_data(), "small")
    writer = start("decide_aloud", workspace.folder)
    told = [writer.stdout.readline().strip()]
    made = full_backup(workspace, tmp_path / "kept")
    writer.kill()
    writer.communicate()
    restore_full(made.manifest, tmp_path / "there")
    history = Workspace(tmp_path / "there").decisions.history(fingerprint)
    assert {*told} <= {one.uid for one in history}
    assert [one.uid for one in history] == [f"u{i}" for i in range(len(history))]


def test_a_checkpoint_never_knows_more_than_the_database(workspace, tmp_path, monkeypatch):
    """Else the restored run would begin anew: it is copied before the database."""
    from core.store import full_backup as module  # the function

    run = workspace.runs.create(workspace.add_dataset(small_data(), "small"), PlainConfig())
    path = workspace.runs.folder(run.id) / "checkpoint.npz"
    files.write_arrays(path, epoch=np.array(0))
    copy = sys.modules[module.__module__]._copy_database

    def copy_and_train_on(database, target):
        copy(database, target)
        files.write_arrays(path, epoch=np.array(5))

    monkeypatch.setattr(sys.modules[module.__module__], "_copy_database", copy_and_train_on)
    full_backup(workspace, tmp_path / "kept")
    restore_full(tmp_path / "kept", tmp_path / "there")
    kept = files.read_arrays(tmp_path / "there" / "runs" / run.id / "checkpoint.npz")
    assert int(kept["epoch"]) == 0


def test_the_last_fourteen_are_kept_and_nothing_they_do_not_need(workspace, tmp_path):
    note = workspace.folder / "note.txt"
    for i in range(16):
        note.write_text(f"version {i}")
        full_backup(workspace, tmp_path / "kept")
    kept = manifests(tmp_path / "kept")
    assert len(kept) == 14
    needed = {one.sha256 for path in kept for one in read_manifest(path).files}
    assert {path.name for path in (tmp_path / "kept" / "objects").glob("??/*")} == needed
    restore_full(kept[-1], tmp_path / "oldest")
    assert (tmp_path / "oldest" / "note.txt").read_text() == "version 2"


def object_of(kept, name):
    entry = next(one for one in read_manifest(manifests(kept)[0]).files if one.path.endswith(name))
    return kept / "objects" / entry.sha256[:2] / entry.sha256


def test_damage_is_named_and_the_rest_can_be_had(workspace, tmp_path):
    run_id = finished_run(workspace, load_demo(n_instances=60))
    full_backup(workspace, tmp_path / "kept")
    broken = object_of(tmp_path / "kept", "predictions.npy")
    content = bytearray(broken.read_bytes())
    content[-1] ^= 1
    broken.write_bytes(content)
    object_of(tmp_path / "kept", "layout_pca.npy").unlink()

    damaged = check_full_backup(tmp_path / "kept").damaged
    assert [one.split(",")[0].split("/")[-1] for one in damaged] == [
        "layout_pca.npy",
        "predictions.npy",
    ]
    there = tmp_path / "there"
    with pytest.raises(StoreError, match=r"(?s)damaged.*layout_pca.*predictions"):
        restore_full(tmp_path / "kept", there)
    with pytest.raises(StoreError, match="did not end"):
        Workspace(there)
    done = restore_full(tmp_path / "kept", there, without_damaged=True)
    assert len(done.damaged) == 2
    assert Workspace(there).runs.get(run_id).state == "finished"
    assert not (there / "runs" / run_id / "predictions.npy").exists()

    broken.unlink()  # as the message says: the next backup has it again
    full_backup(workspace, tmp_path / "kept")
    assert check_full_backup(tmp_path / "kept").damaged == []


def test_a_damaged_manifest_is_refused_and_the_older_one_serves(workspace, tmp_path):
    for _ in range(2):
        full_backup(workspace, tmp_path / "kept")
    newest, older = manifests(tmp_path / "kept")
    newest.write_bytes(newest.read_bytes().replace(b"plain.db", b"plain.da"))
    with pytest.raises(StoreError, match="older"):
        restore_full(tmp_path / "kept", tmp_path / "there")
    assert not (tmp_path / "there").exists()
    restore_full(older, tmp_path / "there")
    full_backup(workspace, tmp_path / "kept")  # nothing that the damaged one may need is removed


def test_a_backup_that_is_not_there_is_not_called_damaged(tmp_path):
    for read in (check_full_backup, lambda path: restore_full(path, tmp_path / "there")):
        with pytest.raises(StoreError, match="no such backup"):
            read(tmp_path / "20260101T000000.000000Z-0123456789abcdef.json")
    assert not (tmp_path / "there").exists()


@pytest.mark.parametrize("path", ["../out", "/etc/out", "a/../../out", "C:/out", "a\\..\\out"])
def test_a_manifest_cannot_lead_out_of_the_workspace(workspace, tmp_path, path):
    made = full_backup(workspace, tmp_path / "kept").manifest
    manifest = read_manifest(made)
    evil = manifest.files[0].model_copy(update={"path": path})
    made = write_manifest(
        tmp_path / "kept", manifest.model_copy(update={"files": [*manifest.files, evil]})
    )
    with pytest.raises(StoreError, match="damaged"):
        restore_full(made, tmp_path / "there")
    assert not list(tmp_path.rglob("out"))


def test_a_restore_never_writes_over_anything(workspace, tmp_path):
    full_backup(workspace, tmp_path / "kept")
    mine = tmp_path / "mine" / "letter.txt"
    mine.parent.mkdir()
    mine.write_text("dear")
    with pytest.raises(StoreError, match="empty folder"):
        restore_full(tmp_path / "kept", mine.parent)
    assert [path.name for path in mine.parent.iterdir()] == ["letter.txt"]
    with pytest.raises(StoreError, match="no whole backup"):
        restore_full(tmp_path / "mine", tmp_path / "there")
    with pytest.raises(StoreError, match="not lie in"):
        full_backup(workspace, workspace.folder / "kept")


def test_two_backups_into_one_folder_at_once_are_refused(workspace, tmp_path):
    held, errors = threading.Event(), []

    def wait(*_):
        held.set()
        try:
            full_backup(workspace, tmp_path / "kept")
        except StoreError as error:
            errors.append(error.title)

    (workspace.folder / "note.txt").write_text("x")
    full_backup(workspace, tmp_path / "kept", wait)
    assert set(errors) == {"Another backup is being made here."}


def test_from_sqlite_to_postgres_and_back(workspace, tmp_path, postgres_url, monkeypatch):
    dataset = load_demo(n_instances=60)
    finished_run(workspace, dataset)
    decide(workspace, dataset, "one")
    before = exported(workspace, tmp_path / "before")
    full_backup(workspace, tmp_path / "kept")

    monkeypatch.setenv("PLAIN_DATABASE_URL", postgres_url)
    Workspace(tmp_path / "looked in").close()
    restore_full(tmp_path / "kept", tmp_path / "team")
    team = Workspace(tmp_path / "team")
    assert [team.runs.elsewhere(run) for run in team.runs.list()] == [None]  # its files are here
    assert exported(team, tmp_path / "there") == before
    decide(team, dataset, "two", row=1)  # numbered after the one that came
    with pytest.raises(StoreError, match="empty database"):
        restore_full(tmp_path / "kept", tmp_path / "second")
    assert not (tmp_path / "second").exists()
    full_backup(team, tmp_path / "kept")
    team.close()

    monkeypatch.delenv("PLAIN_DATABASE_URL")
    restore_full(tmp_path / "kept", tmp_path / "back")
    back = Workspace(tmp_path / "back")
    assert [one.uid for one in back.decisions.history(dataset.fingerprint)] == ["one", "two"]


def test_the_commands(workspace, tmp_path):
    finished_run(workspace, load_demo(n_instances=60))
    here, kept, there = (str(tmp_path / name) for name in ("here", "kept", "there"))
    for arguments in (
        ["backup", "--full", kept, "--workspace", here],
        ["restore", kept, "--check"],
        ["restore", kept, "--workspace", there],
    ):
        done = RUNNER.invoke(cli.app, arguments)
        assert done.exit_code == 0, done.output
    assert len(Workspace(Path(there)).runs.list()) == 1
    assert restore(Path(there), backup(workspace)).exists()


def test_a_killed_backup_is_no_backup_and_changes_none(workspace, tmp_path):
    """All points are in tests/hammer."""
    first = full_backup(workspace, tmp_path / "kept").manifest
    killed_at("backup.before_manifest", "back_up", workspace.folder, tmp_path / "kept")
    assert manifests(tmp_path / "kept") == [first]
    assert check_full_backup(tmp_path / "kept").damaged == []
    full_backup(workspace, tmp_path / "kept")
    assert len(manifests(tmp_path / "kept")) == 2


def test_a_killed_restore_goes_on_where_it_stopped(workspace, tmp_path):
    workspace.add_dataset(small_data(), "small")
    full_backup(workspace, tmp_path / "kept")
    killed_at("restore.file_written:2", "put_back", tmp_path / "kept", tmp_path / "there")
    with pytest.raises(StoreError, match="did not end"):
        Workspace(tmp_path / "there")
    restore_full(tmp_path / "kept", tmp_path / "there")
    loaded = Workspace(tmp_path / "there").load_dataset(small_data().fingerprint, verify=True)
    assert loaded.fingerprint == small_data().fingerprint
