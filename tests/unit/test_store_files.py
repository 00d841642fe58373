import resource
import subprocess
import sys

import numpy as np
import pytest

from core.errors import StoreError
from core.store import files

ARRAYS = {"file": np.arange(6, dtype=np.float32).reshape(2, 3), "path": np.array(["a", "b"])}


def test_arrays_come_back_as_they_were(tmp_path):
    path = tmp_path / "some.npz"
    files.write_arrays(path, **ARRAYS, empty=np.zeros((0, 2), np.uint8))
    found = files.read_arrays(path)
    assert list(found) == ["file", "path", "empty"]
    for name, array in ARRAYS.items():
        np.testing.assert_array_equal(found[name], array)
        assert found[name].dtype == array.dtype
    with np.load(path, allow_pickle=False) as plain:
        np.testing.assert_array_equal(plain["path"], ARRAYS["path"])


@pytest.mark.parametrize("mmap", [True, False])
def test_one_array_comes_back_and_may_stay_on_the_disk(tmp_path, mmap):
    files.write_array(tmp_path / "one.npy", ARRAYS["file"])
    found = files.read_array(tmp_path / "one.npy", mmap=mmap)
    np.testing.assert_array_equal(found, ARRAYS["file"])
    assert isinstance(found, np.memmap) == mmap


def test_json_comes_back_whatever_the_text(tmp_path):
    value = {"ids": ["naïve", "\ud800", "\0"], "n": 0.1 + 0.2, "none": None}
    files.write_json(tmp_path / "a.json", value)
    assert files.read_json(tmp_path / "a.json") == value


def test_objects_are_refused_and_nothing_is_left(tmp_path):
    for write in (files.write_array, lambda path, array: files.write_arrays(path, a=array)):
        with pytest.raises(ValueError, match="allow_pickle"):
            write(tmp_path / "x", np.array([object()]))
    assert list(tmp_path.iterdir()) == []


def test_a_pickle_is_not_opened(tmp_path):
    path = tmp_path / "evil.npy"
    with open(path, "wb") as file:
        np.save(file, np.array([print]), allow_pickle=True)
    with pytest.raises(StoreError, match=r"evil\.npy"):
        files.read_array(path)


@pytest.mark.parametrize(
    ("name", "write", "read"),
    [
        ("a.npz", lambda path: files.write_arrays(path, **ARRAYS), files.read_arrays),
        ("a.npy", lambda path: files.write_array(path, ARRAYS["file"]), files.read_array),
        ("b.npy", lambda path: files.write_array(path, ARRAYS["file"]), "mmap"),
        ("a.json", lambda path: files.write_json(path, {"a": [1, 2]}), files.read_json),
    ],
)
def test_a_file_cut_short_at_any_place_is_named(tmp_path, name, write, read):
    path = tmp_path / name
    write(path)
    content = path.read_bytes()
    reader = (lambda p: files.read_array(p, mmap=True)) if read == "mmap" else read
    for length in range(len(content)):
        path.write_bytes(content[:length])
        with pytest.raises(StoreError, match="damaged") as error:
            reader(path)
        assert name in error.value.detail
        assert error.value.hint
    path.unlink()
    with pytest.raises(StoreError, match="missing"):
        reader(path)


def test_a_changed_byte_of_an_archive_is_found_or_harmless(tmp_path):
    path = tmp_path / "a.npz"
    files.write_arrays(path, **ARRAYS)
    content = path.read_bytes()
    for place in range(len(content)):
        path.write_bytes(content[:place] + bytes([content[place] ^ 0x41]) + content[place + 1 :])
        try:
            found = files.read_arrays(path)
        except StoreError:
            continue
        for name, array in found.items():
            if name in ARRAYS:
                np.testing.assert_array_equal(array, ARRAYS[name])


def test_a_full_disk_is_told_and_the_old_file_stays(tmp_path):
    for name in ("a.npz", "a.npy", "a.json"):
        (tmp_path / name).write_bytes(b"old")
    code = """
import sys, numpy as np
from pathlib import Path
from core.errors import StoreError
from core.store import files
folder, big = Path(sys.argv[1]), np.zeros(200_000)
for write in (
    lambda: files.write_arrays(folder / "a.npz", a=big),
    lambda: files.write_array(folder / "a.npy", big),
    lambda: files.write_json(folder / "a.json", "x" * 500_000),
):
    try:
        write()
    except StoreError as error:
        print(error.title)
"""
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)],
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000)),
        capture_output=True,
        text=True,
        check=True,
        cwd=files.__file__.rsplit("/core/", 1)[0],
    )
    assert done.stdout.split("\n")[:3] == ["The disk is full."] * 3
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == dict.fromkeys(
        ("a.npz", "a.npy", "a.json"), b"old"
    )


def test_a_folder_that_is_not_there_is_told(tmp_path):
    with pytest.raises(StoreError, match="exists and is yours"):
        files.write_json(tmp_path / "none" / "a.json", 1)


def test_a_failed_write_leaves_the_old_file(tmp_path):
    path = tmp_path / "a.json"
    files.write_json(path, 1)
    with pytest.raises(TypeError), files.replacing(path) as file:
        file.writelines([b"half", None])
    assert files.read_json(path) == 1
    assert [one.name for one in tmp_path.iterdir()] == ["a.json"]


def test_what_killed_writers_left_is_removed_by_age(tmp_path):
    (tmp_path / ".a.npz.1234.tmp").write_bytes(b"")
    (tmp_path / ".folder.1234.tmp").mkdir()
    (tmp_path / "a.npz").write_bytes(b"")
    files.remove_leftovers(tmp_path, older_than=60)
    assert len(list(tmp_path.iterdir())) == 3
    files.remove_leftovers(tmp_path)
    files.remove_leftovers(tmp_path / "none")
    assert [path.name for path in tmp_path.iterdir()] == ["a.npz"]
