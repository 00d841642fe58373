"""A workspace is its owner's: what is made in it, and what earlier versions left open."""

import os
from pathlib import Path

import pytest
from finished_run import finished_run

from core.runs import processes as background
from core.store import Workspace, backup, full_backup, restore, restore_full
from core.store.permissions import make_private_folder, open_private, restrict_permissions
from core.tuning.studies import _storage

pytestmark = pytest.mark.skipif(os.name != "posix", reason="modes are of POSIX")


@pytest.fixture(autouse=True)
def careless():
    """Let every file be read by everybody, unless the program sees to it."""
    before = os.umask(0)
    yield
    os.umask(before)


def open_to_others(folder: Path) -> list[str]:
    every = [folder, *folder.rglob("*")]
    return [str(one.relative_to(folder)) for one in every if one.lstat().st_mode & 0o077]


@pytest.fixture
def space(tmp_path, demo) -> Workspace:
    """A workspace in use: its write-ahead log is there."""
    space = Workspace(tmp_path / "new" / "space")
    run_id = finished_run(space, demo)
    (space.runs.folder(run_id) / "confidences.f16").chmod(0o600)  # that helper's, not a worker's
    space.save_preset("mine", space.preset("studio"))
    backup(space)
    yield space
    space.close()


def test_nothing_in_a_workspace_can_be_read_by_others(space):
    _storage(str(space.folder), space.database.url)
    log = space.folder / "runs" / "worker.log"
    background.start("--help", log=log).wait()
    assert log.stat().st_size
    assert (space.folder / "plain.db-wal").exists()
    assert (space.folder / "studies.db").exists()
    assert open_to_others(space.folder.parent) == []


def test_a_restored_database_is_the_owners(space):
    copy = backup(space)
    space.close()
    (space.folder / "plain.db").unlink()
    restore(space.folder, copy)
    assert open_to_others(space.folder) == []


def test_a_full_backup_and_what_is_restored_from_it_are_the_owners(space, tmp_path):
    full_backup(space, tmp_path / "kept")
    restore_full(tmp_path / "kept", tmp_path / "there")
    Workspace(tmp_path / "there").close()
    assert open_to_others(tmp_path / "kept") == []
    assert open_to_others(tmp_path / "there") == []


def test_a_workspace_of_an_earlier_version_is_tightened_when_opened(space):
    for one in (space.folder, *space.folder.rglob("*")):
        one.chmod(0o777 if one.is_dir() else 0o666)
    again = Workspace(space.folder)
    assert open_to_others(space.folder) == []
    assert again.datasets() == space.datasets()
    again.close()


def test_what_is_not_the_workspaces_is_left_as_it_is(space):
    mine = [space.folder / "notes.txt", space.folder / "datasets" / "photos" / "one.jpg"]
    mine += [space.folder / "runs" / "tensorboard" / "events", space.folder / "paper" / "a.tex"]
    for one in mine:
        one.parent.mkdir(exist_ok=True)
        one.write_text("mine")
    for one in (space.folder, *space.folder.rglob("*")):
        one.chmod(0o777 if one.is_dir() else 0o666)
    (space.folder / "backups" / "plain-link.db").symlink_to(mine[0])
    Workspace(space.folder).close()
    theirs = {one for path in mine for one in (path, *path.parents)} - {*space.folder.parents}
    assert all(one.stat().st_mode & 0o077 for one in theirs)
    names = {str(one.relative_to(space.folder)) for one in theirs}
    others = set(open_to_others(space.folder)) - names
    assert others == {"backups/plain-link.db"}  # a link has no mode


def test_private_files_and_folders(tmp_path):
    make_private_folder(tmp_path / "a" / "b")
    with open_private(tmp_path / "a" / "file") as file:
        file.write(b"x")
    assert open_to_others(tmp_path / "a") == []
    tmp_path.chmod(0o755)
    restrict_permissions(tmp_path)  # holds a folder that is not of a workspace
    assert tmp_path.stat().st_mode & 0o777 == 0o755
