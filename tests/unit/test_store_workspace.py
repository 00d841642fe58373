import json
import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Barrier, BrokenBarrierError

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from store_actors import small_data

from core.data.dataset import CandidateDataset
from core.engine.config import PlainConfig
from core.errors import DatasetMismatch, DatasetNotFound, PlainError, StoreError
from core.store import Workspace

SPARSE = CandidateDataset(sp.random_array((6, 5), density=0.5, rng=1), np.eye(6, 4))


@pytest.fixture
def workspace(tmp_path, monkeypatch):
    monkeypatch.delenv("PLAIN_DATABASE_URL", raising=False)
    workspace = Workspace(tmp_path / "work space")
    yield workspace
    workspace.close()


def folder_of(workspace, fingerprint):
    return workspace.folder / "datasets" / fingerprint


def full_data(**changes) -> CandidateDataset:
    given = {
        "label_names": ["cat", "naïve '"],
        "ids": ["a", "\ud800", "c\0", "d"],
        "feature_names": ["f", "g", "h"],
        "truth": np.array([[1, 0], [0, 1], [0, 1], [1, 0]]),
        "display": pd.DataFrame({"text": list("wxyz"), "n": [1, 2, 3, None], "b": [b"\0"] * 4}),
    }
    return small_data(**{**given, **changes})


def test_a_data_set_comes_back_as_it_was(workspace):
    data = full_data()
    fingerprint = workspace.add_dataset(data, "mine")
    found = workspace.load_dataset(fingerprint, verify=True)
    for name in ("features", "candidates", "truth"):
        np.testing.assert_array_equal(getattr(found, name), getattr(data, name))
    for name in ("label_names", "ids", "feature_names", "fingerprint"):
        assert getattr(found, name) == getattr(data, name)
    pd.testing.assert_frame_equal(found.display, data.display)
    assert isinstance(mapped(found.features), np.memmap)


def mapped(array):
    while isinstance(array.base, np.ndarray) and not isinstance(array, np.memmap):
        array = array.base
    return array


def test_sparse_features_come_back_sparse(workspace):
    found = workspace.load_dataset(workspace.add_dataset(SPARSE, "sparse"), verify=True)
    assert sp.issparse(found.features)
    assert (found.features != SPARSE.features).nnz == 0
    assert found.truth is None
    assert found.display is None
    assert workspace.datasets()[0].is_sparse


def test_the_fingerprint_is_not_computed_again_when_loading(workspace):
    fingerprint = workspace.add_dataset(small_data(), "x")
    assert vars(workspace.load_dataset(fingerprint))["fingerprint"] == fingerprint


def test_columns_of_mixed_types_are_shown_as_text(workspace):
    display = pd.DataFrame({"mixed": [1, "two", None, {"a": 1}], 7: [1, 2, 3, 4]}, dtype=object)
    fingerprint = workspace.add_dataset(small_data(display=display), "mixed")
    found = workspace.load_dataset(fingerprint).display
    assert found.iloc[:, 0].tolist()[:2] == ["1", "two"]
    assert len(found.columns) == 2


def test_adding_again_changes_nothing_but_brings_what_is_new(workspace):
    first = workspace.add_dataset(small_data(), "first")
    stored = folder_of(workspace, first) / "features.npy"
    inode = stored.stat().st_ino
    truth = np.array([[1, 0], [0, 1], [0, 1], [1, 0]])
    assert workspace.add_dataset(small_data(truth=truth), "second") == first
    (row,) = workspace.datasets()
    assert (row.name, row.has_truth, row.n_candidates) == ("first", True, 5)
    assert workspace.load_dataset(first).truth is not None
    assert stored.stat().st_ino == inode


def test_unknown_data_is_told(workspace):
    with pytest.raises(DatasetNotFound):
        workspace.load_dataset("0" * 64)


def damage_shape(folder):
    np.save(folder / "features.npy", np.zeros((4, 2), np.float32))


def damage_type(folder):
    np.save(folder / "candidates.npy", np.zeros((4, 2), np.int64))


def damage_values(folder):
    np.save(folder / "features.npy", np.full((4, 3), np.nan, np.float32))


def damage_meta(folder):
    (folder / "meta.json").write_text(json.dumps({"shape": [4, 3]}))


def damage_display(folder):
    (folder / "display.parquet").write_bytes(b"PAR1")


def damage_end(folder):
    with open(folder / "features.npy", "r+b") as file:
        file.truncate(130)


def damage_missing(folder):
    (folder / "candidates.npy").unlink()


@pytest.mark.parametrize(
    "damage",
    [
        damage_shape,
        damage_type,
        damage_values,
        damage_meta,
        damage_display,
        damage_end,
        damage_missing,
    ],
)
def test_damaged_files_are_told_and_adding_again_repairs_them(workspace, damage):
    fingerprint = workspace.add_dataset(full_data(), "mine")
    damage(folder_of(workspace, fingerprint))
    with pytest.raises(StoreError, match="damaged") as error:
        workspace.load_dataset(fingerprint)
    assert str(workspace.folder) in error.value.detail
    workspace.add_dataset(full_data(), "mine")
    assert workspace.load_dataset(fingerprint, verify=True).truth is not None
    assert os.listdir(workspace.folder / "datasets") == [fingerprint]


def test_changed_values_are_found_when_asked_to_verify(workspace):
    fingerprint = workspace.add_dataset(small_data(), "x")
    np.save(folder_of(workspace, fingerprint) / "features.npy", np.ones((4, 3), np.float32))
    workspace.load_dataset(fingerprint)
    with pytest.raises(DatasetMismatch):
        workspace.load_dataset(fingerprint, verify=True)


def test_data_that_cannot_be_written_leaves_nothing(workspace, monkeypatch):
    def full(*_):
        raise StoreError("The disk is full.")

    monkeypatch.setattr("core.store.files.write_json", full)
    with pytest.raises(PlainError, match="full"):
        workspace.add_dataset(small_data(), "x")
    assert os.listdir(workspace.folder / "datasets") == []
    assert workspace.datasets() == []


def test_how_many_runs_may_be_at_work_is_remembered(workspace):
    assert workspace.max_running == 1
    workspace.max_running = 3
    assert Workspace(workspace.folder).max_running == 3
    with pytest.raises(StoreError, match="At least one"):
        workspace.max_running = 0


def test_a_home_folder_may_be_written_short(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert Workspace("~/space").folder == tmp_path / "space"


def test_a_loaded_data_set_is_shared_while_somebody_has_it(tmp_path):
    workspace = Workspace(tmp_path)
    fingerprint = workspace.add_dataset(small_data(), "small")
    first = workspace.load_dataset(fingerprint)
    assert workspace.load_dataset(fingerprint) is first
    assert workspace.load_dataset(fingerprint, verify=True) is not first
    truth = first.candidates.copy()
    Workspace(tmp_path).add_dataset(small_data(truth=truth), "small")  # by another process
    assert workspace.load_dataset(fingerprint).truth is not None
    folder = tmp_path / "datasets" / fingerprint
    (folder / "features.npy").rename(folder / "gone.npy")
    with pytest.raises(StoreError):
        workspace.load_dataset(fingerprint)


def test_presets_that_two_people_save_at_once_are_both_kept(workspace, monkeypatch):
    both, presets = Barrier(2), workspace.presets

    def meet():
        found = presets()
        with suppress(BrokenBarrierError):  # where the other has to wait for its turn
            both.wait(0.2)
        return found

    monkeypatch.setattr(workspace, "presets", meet)
    with ThreadPoolExecutor(2) as threads:
        list(threads.map(lambda name: workspace.save_preset(name, PlainConfig()), ("one", "two")))
    assert sorted(presets()) == ["one", "two"]
