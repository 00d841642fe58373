"""A backup or a restore that is killed at any of its named points loses nothing."""

import hashlib

import pytest
from finished_run import finished_run
from store_actors import killed_at, small_data

from core.data.demo import load_demo
from core.errors import StoreError
from core.store import (
    Decision,
    Workspace,
    backup,
    backups,
    check_full_backup,
    full_backup,
    restore,
    restore_full,
)
from core.store.manifest import manifests, read_manifest, write_manifest

pytestmark = pytest.mark.hammer

DATABASE_COPY = ["backup.copy_made"]
DATABASE_RESTORE = ["restore.present_kept"]
BACKUP = [
    "backup.object_written",
    "backup.object_written:5",
    "backup.object_in_place",
    "backup.object_in_place:5",
    "backup.database_copied",
    "backup.before_manifest",
    "backup.manifest_written",
    "backup.manifest_removed",
    "backup.object_removed",
]
RESTORE = [
    "restore.begun",
    "restore.file_written",
    "restore.file_written:7",
    "transfer.rows_written",
    "restore.database_filled",
    "restore.before_end",
]


@pytest.fixture
def workspace(tmp_path, monkeypatch):
    monkeypatch.delenv("PLAIN_DATABASE_URL", raising=False)
    workspace = Workspace(tmp_path / "here")
    finished_run(workspace, load_demo(n_instances=60))
    yield workspace
    workspace.close()


def decide(workspace, uid):
    fingerprint = workspace.add_dataset(small_data(), "small")
    cell = {"fingerprint": fingerprint, "instance_id": "1", "label": "label0"}
    workspace.decisions.add(Decision(uid=uid, verdict="keep", annotator="ann", **cell))


def decided(workspace):
    history = workspace.decisions.history(small_data().fingerprint)
    return [one.uid for one in history]


def contents(folder):
    """Return the checksums of all files of a workspace but its database."""
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file() and not path.name.startswith("plain.db")
    }


def leftovers(folder):
    return [path for path in folder.rglob(".*") if path.name != ".restoring"]


@pytest.mark.parametrize("point", DATABASE_COPY)
def test_a_killed_copy_of_the_database_is_no_copy(workspace, point):
    decide(workspace, "one")
    before = backups(workspace)
    killed_at(point, "copy_database", workspace.folder)
    assert backups(workspace) == before
    assert decided(workspace) == ["one"]
    restore(workspace.folder, backup(workspace))


@pytest.mark.parametrize("point", DATABASE_RESTORE)
def test_a_killed_restore_of_the_database_has_kept_the_present_one(workspace, point):
    decide(workspace, "one")
    copy = backup(workspace)
    decide(workspace, "two")
    killed_at(point, "restore_database", workspace.folder, copy)
    assert decided(workspace) == ["one", "two"]
    restore(workspace.folder, copy)
    assert decided(workspace) == ["one"]


@pytest.mark.parametrize("point", BACKUP)
def test_a_killed_backup_leaves_those_before_it_whole(workspace, tmp_path, point):
    kept = tmp_path / "kept"
    decide(workspace, "one")
    first = full_backup(workspace, kept).manifest
    if point == "backup.manifest_removed":
        fill_with_old_backups(kept, first)
    orphan = kept / "objects" / "00" / ("0" * 64)
    orphan.parent.mkdir(exist_ok=True)
    orphan.touch()
    (workspace.folder / "note.txt").write_text("new")
    decide(workspace, "two")
    before = contents(workspace.folder)

    killed_at(point, "back_up", workspace.folder, kept)
    assert contents(workspace.folder) == before
    assert decided(workspace) == ["one", "two"]
    for at, path in enumerate(manifests(kept)):  # whatever has a manifest is whole
        assert check_full_backup(path).damaged == []
        if at < 2:
            restore_full(path, tmp_path / f"there-{at}")
            whole = Workspace(tmp_path / f"there-{at}")
            assert decided(whole) == (["one", "two"] if path != first else ["one"])
            whole.close()

    last = full_backup(workspace, kept).manifest
    assert leftovers(kept) == []
    assert not orphan.exists()
    restore_full(last, tmp_path / "last")
    assert contents(tmp_path / "last").items() <= before.items()


def fill_with_old_backups(kept, first):
    manifest = read_manifest(first)
    for age in range(1, 15):
        started = manifest.started - age * 10**9
        write_manifest(kept, manifest.model_copy(update={"started": started}))


@pytest.mark.parametrize("point", RESTORE)
def test_a_killed_restore_is_never_taken_for_a_workspace_and_goes_on(workspace, tmp_path, point):
    decide(workspace, "one")
    full_backup(workspace, tmp_path / "kept")
    killed_and_restored(workspace, tmp_path, point)


@pytest.mark.parametrize("point", ["transfer.rows_written", "restore.database_filled"])
def test_the_same_with_postgres(workspace, tmp_path, point, postgres_url, monkeypatch):
    decide(workspace, "one")
    full_backup(workspace, tmp_path / "kept")
    monkeypatch.setenv("PLAIN_DATABASE_URL", postgres_url)
    killed_and_restored(workspace, tmp_path, point)


def killed_and_restored(workspace, tmp_path, point):
    kept, there = tmp_path / "kept", tmp_path / "there"
    killed_at(point, "put_back", kept, there)
    with pytest.raises(StoreError, match="did not end"):
        Workspace(there)
    restore_full(kept, there)
    restored = Workspace(there)
    assert decided(restored) == ["one"]
    assert [run.state for run in restored.runs.list()] == ["finished"]
    assert contents(there) == contents(workspace.folder)
    assert leftovers(there) == []
    decide(restored, "two")
    restored.close()
