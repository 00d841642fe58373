"""Exports replace files and folders of their own only, whole or not at all, whenever killed."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from core.errors import ExportError
from core.failpoints import failpoint
from core.formats.shared.placing import checksums, placing, record_of, recover


def export(target: Path, text: str) -> None:
    """Write a file, one beside it, and their record."""
    with placing(target, [target.with_suffix(".xml")], force=True) as folder:
        for path in (folder / target.name, folder / target.with_suffix(".xml").name):
            path.write_text(text)
            failpoint("export.writing")
        about = {"file": target.name, "files": checksums(folder)}
        record_of(folder / target.name).write_text(json.dumps(about))


POINTS = (
    *("export.staged", "export.writing", "export.writing:2", "export.synced", "export.planned"),
    *("export.taken", "export.placed", "export.placed:2", "export.placed:3", "export.placed_all"),
)


def killed_export(target: Path, text: str, point: str) -> int:
    env = {**os.environ, "PLAIN_FAILPOINT": point}
    command = [sys.executable, __file__, str(target), text]
    return subprocess.run(command, env=env).returncode


def texts(folder: Path) -> dict[str, str]:
    return {one.name: one.read_text() for one in folder.iterdir() if one.is_file()}


def write_folder(target: Path, **contents: str) -> None:
    with placing(target, force=True) as folder:
        (folder / target.name / "deep").mkdir(parents=True)
        for name, text in contents.items():
            (folder / target.name / "deep" / name).write_text(text)
        about = {"file": target.name, "files": checksums(folder)}
        record_of(folder / target.name).write_text(json.dumps(about))


@pytest.mark.parametrize("point", POINTS)
def test_a_killed_export_is_the_old_one_or_the_new_one_at_the_next_start(point, tmp_path):
    folder, target = tmp_path / "out", tmp_path / "out" / "a.arff"
    folder.mkdir()
    (folder / "mine.txt").write_text("mine")
    export(target, "old")
    old = texts(folder)
    from core.store import Workspace

    with Workspace(tmp_path / "space").exporting(target):
        assert killed_export(target, "new", point) == -signal.SIGKILL
        left = texts(folder)
        if record_of(target).name in left:  # a file never lies beside the record of another
            recorded = json.loads(left[record_of(target).name])["files"]
            assert recorded == {name: checksums(folder)[name] for name in recorded}
        # As if this process too had been killed: the note of the export is still there.
        Workspace(tmp_path / "space")
    found = texts(folder)
    assert found in (old, {**found, "a.arff": "new", "a.xml": "new"})
    assert json.loads(found[record_of(target).name])["files"].keys() == {"a.arff", "a.xml"}
    assert found["mine.txt"] == "mine"
    assert sorted(os.listdir(folder)) == sorted(old)


def test_what_was_changed_after_a_kill_is_not_overwritten(tmp_path):
    target = tmp_path / "a.arff"
    export(target, "old")
    killed_export(target, "new", "export.taken")
    target.write_text("edited by hand")
    assert recover(tmp_path)
    assert target.read_text() == "edited by hand"
    assert json.loads(record_of(target).read_text())["file"] == "a.arff"
    assert sorted(os.listdir(tmp_path)) == ["a.arff", "a.arff.provenance.json", "a.xml"]


def test_an_export_at_work_and_folders_of_others_are_left_alone(tmp_path):
    theirs = tmp_path / ".plain-notebook"
    theirs.mkdir()
    (theirs / "mine.txt").write_text("mine")
    with placing(tmp_path / "a.csv") as folder:
        assert not recover(tmp_path)
        (folder / "a.csv").write_text("whole")
    assert recover(tmp_path)
    assert sorted(os.listdir(tmp_path)) == [".plain-notebook", "a.csv"]
    assert (theirs / "mine.txt").exists()


@pytest.mark.parametrize("kind", ["files", "empty", "link"])
def test_force_never_replaces_a_folder_that_is_not_our_export(kind, tmp_path):
    target = tmp_path / "a.csv"
    if kind == "link":
        (tmp_path / "far").mkdir()
        (tmp_path / "far" / "mine.txt").write_text("mine")
        target.symlink_to(tmp_path / "far", target_is_directory=True)
    else:
        target.mkdir()
        if kind == "files":
            (target / "mine.txt").write_text("mine")
    with pytest.raises(ExportError, match="folder"), placing(target, force=True) as folder:
        (folder / "a.csv").write_text("new")
    assert target.is_dir()
    assert kind == "empty" or (target / "mine.txt").read_text() == "mine"


def test_our_own_folder_is_replaced_whole(tmp_path):
    target = tmp_path / "made"
    write_folder(target, a="old", b="old")
    write_folder(target, c="new")
    assert texts(target / "deep") == {"c": "new"}
    assert sorted(os.listdir(tmp_path)) == ["made", "made.provenance.json"]


@pytest.mark.parametrize("change", ["added", "edited", "unrecorded"])
def test_our_own_folder_with_anything_of_others_in_it_is_refused(change, tmp_path):
    target = tmp_path / "made"
    write_folder(target, a="old")
    if change == "unrecorded":
        record_of(target).unlink()
    else:
        (target / "deep" / ("a" if change == "edited" else "mine")).write_text("mine")
    before = texts(target / "deep")
    with pytest.raises(ExportError, match="folder"):
        write_folder(target, c="new")
    assert texts(target / "deep") == before
    assert not list(tmp_path.glob(".plain-*"))


def test_a_failed_rename_gives_the_old_files_back(tmp_path, monkeypatch):
    target = tmp_path / "a.arff"
    export(target, "old")
    old, replace = texts(tmp_path), os.replace

    def full(source, to):
        if Path(to) == target and Path(source).parent.name == "new":
            raise OSError("no")
        replace(source, to)

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="no"):
        export(target, "new")
    assert texts(tmp_path) == old


def test_files_beside_the_target_are_removed_only_if_its_record_names_them(tmp_path):
    target, beside = tmp_path / "a.arff", tmp_path / "a.xml"
    export(target, "old")
    with placing(target, [beside], force=True) as folder:
        (folder / "a.arff").write_text("new")
    assert not beside.exists()
    beside.write_text("mine")
    with pytest.raises(ExportError, match=r"a\.xml"), placing(target, [beside], force=True) as new:
        (new / "a.arff").write_text("newer")
    assert (target.read_text(), beside.read_text()) == ("new", "mine")


if __name__ == "__main__":
    export(Path(sys.argv[1]), sys.argv[2])
