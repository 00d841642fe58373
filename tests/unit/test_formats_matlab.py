"""MATLAB files, v5 and 7.3: shapes either way round, refusals, and decoders that may crash."""

import itertools
import pickle
import signal
import struct
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import format_cases as cases
import fuzzing_binary
import h5py
import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp
from hypothesis import given, settings

from core.data.dataset import CandidateDataset
from core.errors import DatasetError
from core.formats.readers import matlab
from core.formats.readers.matlab import decoding

X = np.arange(15, dtype=float).reshape(5, 3)  # N = 5, D = 3
Y = np.array([[1, 0], [1, 1], [0, 0], [0, 1], [1, 1]])  # N x L
VIEWS = np.empty((1, 2), dtype=object)
VIEWS[0, 0], VIEWS[0, 1] = X[:, :1], X[:, 1:]
CELLS = np.array([["sea"], ["dog"]], dtype=object)


@contextmanager
def decoding_here() -> Iterator[None]:
    """Decode in this process what cannot crash it: starting a child each time is slow."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(decoding, "_decode", fuzzing_binary.decode_here)
        yield


@pytest.fixture
def here() -> Iterator[None]:
    with decoding_here():
        yield


def saved(path: Path, **variables: Any) -> Path:
    scipy.io.savemat(path, variables)
    return path


@pytest.mark.parametrize(
    "variables",
    [
        {"data": X, "target": Y.T, "partial_labels": Y.T},
        {"data": X, "target": Y.T, "candidate_labels": Y},
        {"data": X.T, "target": Y.T, "train_p_target": Y.T},
        {"data": X, "target": Y * 2 - 1, "partial_labels": Y.T * 2.0 - 1},
        {"Data": X, "Target": Y.T, "Partial_Target": Y.T},
        {"X": X, "Y": Y, "Y_P": Y},
        {"features": X, "trueLabel": Y.T, "logicalLabel": Y.T},
        {"dataset": {"data": X, "target": Y.T, "partial_target": Y.T}},
        {"data": VIEWS, "target": Y.T, "partial_labels": Y.T},
        {"data": sp.csc_array(X), "target": sp.csc_array(Y.T), "partial_labels": Y.astype(bool)},
    ],
    ids=[
        *("convention", "mixed", "data D x N", "minus one", "spelling", "Y_P", "logical labels"),
        *("struct", "views", "sparse and logical"),
    ],
)
@pytest.mark.usefixtures("here")
def test_tables_are_turned_by_their_shapes(tmp_path: Path, variables: dict[str, Any]) -> None:
    data = matlab.read(saved(tmp_path / "a.mat", **variables)).dataset
    np.testing.assert_array_equal(cases.dense(data.features), X)
    np.testing.assert_array_equal(data.candidates, Y)
    np.testing.assert_array_equal(data.truth, Y)


@pytest.mark.usefixtures("here")
def test_ambiguous_shapes_follow_the_convention_and_say_so(tmp_path: Path) -> None:
    square, labels = np.arange(9.0).reshape(3, 3), np.array([[1, 0, 0], [1, 1, 0], [0, 0, 1]])
    result = matlab.read(saved(tmp_path / "a.mat", data=square, partial_labels=labels))
    np.testing.assert_array_equal(result.dataset.features, square)
    np.testing.assert_array_equal(result.dataset.candidates, labels.T)
    assert any("allow 4 readings" in problem.message for problem in result.problems)


@pytest.mark.usefixtures("here")
def test_label_names_settle_which_side_labels_are_on(tmp_path: Path) -> None:
    data, labels = np.arange(12.0).reshape(4, 3), np.array([[1, 0, 1, 1], [0, 1, 0, 1], [1] * 4])
    names = np.array([["a"], ["b"], ["c"]], dtype=object)
    result = matlab.read(
        saved(tmp_path / "a.mat", data=data.T, partial_labels=labels.T, label_names=names)
    )
    assert result.dataset.label_names == ("a", "b", "c")
    np.testing.assert_array_equal(result.dataset.candidates, labels.T)


@pytest.mark.usefixtures("here")
def test_target_alone_is_candidates_and_truth_and_that_is_said(tmp_path: Path) -> None:
    result = matlab.read(saved(tmp_path / "a.mat", data=X, target=Y.T, label_names=CELLS))
    np.testing.assert_array_equal(result.dataset.candidates, Y)
    np.testing.assert_array_equal(result.dataset.truth, Y)
    assert any("only one set of labels" in problem.message for problem in result.problems)


@pytest.mark.parametrize("sparse", [True, False])
def test_v73_is_read_like_v5(tmp_path: Path, sparse: bool) -> None:
    fuzzing_binary.write_v73(tmp_path / "a.mat", sparse)
    expected = cases.small_dataset(sparse)
    data = matlab.read(tmp_path / "a.mat").dataset
    np.testing.assert_array_equal(cases.dense(data.features), cases.dense(expected.features))
    np.testing.assert_array_equal(data.candidates, expected.candidates)
    assert data.label_names == expected.label_names


@pytest.mark.parametrize("sparse", [True, False])
def test_everything_survives_a_round_trip(tmp_path: Path, sparse: bool) -> None:
    data = cases.small_dataset(sparse)
    resolution = cases.resolution_of(data)
    matlab.write(data, tmp_path / "a.mat", resolution=resolution)
    result = matlab.read(tmp_path / "a.mat")
    cases.assert_same(result.dataset, data)
    cases.assert_same_display(result.dataset, data)
    assert result.dataset.feature_names == data.feature_names
    variables = scipy.io.loadmat(tmp_path / "a.mat")
    np.testing.assert_array_equal(variables["resolved_labels"], resolution.labels.T)
    np.testing.assert_array_equal(variables["confidences"], resolution.confidences.T)


@given(cases.datasets())
@settings(max_examples=60, deadline=None)
def test_odd_names_survive(
    tmp_path_factory: pytest.TempPathFactory, data: CandidateDataset
) -> None:
    with decoding_here():
        path = tmp_path_factory.mktemp("mat") / "a.mat"
        read = cases.assert_round_trip(matlab, data, path)
    assert read.feature_names == data.feature_names


@cases.each_shared_file
@pytest.mark.usefixtures("here")
def test_shared_data_round_trip(tmp_path: Path, shared_file: Path) -> None:
    cases.assert_round_trip(matlab, cases.shared(shared_file), tmp_path / "data.mat")


@pytest.mark.parametrize(
    "variables",
    [
        {"data": X},
        {"target": Y},
        {"data": X, "target": Y[:4]},
        {"data": X, "target": Y + 3},
        {"data": X + 1j, "target": Y.T},
        {"data": {"a": 1}, "target": Y.T},
        {"data": X, "target": Y.T, "label_names": np.array([[1, "b"]], dtype=object)},
    ],
    ids=["no labels", "no data", "counts", "values", "complex", "struct", "cells"],
)
@pytest.mark.usefixtures("here")
def test_unusable_variables_are_refused(tmp_path: Path, variables: dict[str, Any]) -> None:
    with pytest.raises(DatasetError):
        matlab.read(saved(tmp_path / "a.mat", **variables))


def test_pickle_named_mat_is_refused_and_never_run(tmp_path: Path) -> None:
    class Trap:
        def __reduce__(self) -> Any:
            return (Path.touch, (tmp_path / "sprung",))

    (tmp_path / "a.mat").write_bytes(pickle.dumps({"data": Trap(), "target": Trap()}))
    with pytest.raises(DatasetError):
        matlab.read(tmp_path / "a.mat")
    assert not (tmp_path / "sprung").exists()


def test_huge_declared_shape_is_refused(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.mat", "w") as file:  # never written: takes no room in the file
        file.create_dataset("data", (10**6, 10**6), "f8", chunks=(1000, 1000))
        file["target"] = Y
    with pytest.raises(DatasetError, match="unpacks to"):
        matlab.read(tmp_path / "a.mat")


def test_an_unknown_encoding_of_a_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.mat"
    fuzzing_binary.write_v73(path, sparse=False)
    text = b"\x13\x01\x00\x00\x04\x00\x00\x00"  # HDF5's type of a text of four bytes
    path.write_bytes(path.read_bytes().replace(text, text.replace(b"\x01", b"\x21")))
    with pytest.raises(DatasetError, match="encoding"):
        matlab.read(path)


@pytest.mark.parametrize("kind", ["soft", "external link", "external storage"])
def test_links_out_of_the_file_are_not_followed(tmp_path: Path, kind: str) -> None:
    with h5py.File(tmp_path / "secret.mat", "w") as file:
        file["data"] = X.T
    (tmp_path / "raw").write_bytes(X.T.tobytes())
    with h5py.File(tmp_path / "a.mat", "w") as file:
        file["target"], file["#refs#/elsewhere"] = Y, X.T
        if kind == "soft":
            file["data"] = h5py.SoftLink("/#refs#/elsewhere")
        elif kind == "external link":
            file["data"] = h5py.ExternalLink(str(tmp_path / "secret.mat"), "/data")
        else:
            external = [(str(tmp_path / "raw"), 0, h5py.h5f.UNLIMITED)]
            file.create_dataset("data", X.T.shape, "f8", external=external)
    with pytest.raises(DatasetError):
        matlab.read(tmp_path / "a.mat")


def nested_cells(name: str, depth: int) -> bytes:
    """Return a v5 variable of cells within cells: its reader recurses without a limit."""
    head = struct.pack("<12I", 6, 8, 1, 0, 5, 8, 1, 1, 1, 0, 0, 0)[:40]
    body = struct.pack("<12I", 6, 8, 6, 0, 5, 8, 0, 0, 1, 0, 9, 0)
    sizes = itertools.accumulate(range(depth), lambda size, _: size + 48, initial=len(body) + 8)
    levels = [struct.pack("<II", 14, size + 40) + head for size in list(sizes)[:depth]]
    inner = b"".join(reversed(levels)) + struct.pack("<II", 14, len(body)) + body
    padded = name.encode().ljust(-(-len(name) // 8) * 8, b"\0")
    outer = head[:32] + struct.pack("<II", 1, len(name)) + padded + inner
    return struct.pack("<II", 14, len(outer)) + outer


@pytest.mark.parametrize("depth", [1, 200_000])
def test_cells_nested_without_end_are_refused(tmp_path: Path, depth: int) -> None:
    path = saved(tmp_path / "a.mat", data=X, target=Y.T)
    path.write_bytes(path.read_bytes() + nested_cells("label_names", depth))
    message = "one text per cell" if depth == 1 else "breaks its decoder"
    with pytest.raises(DatasetError, match=message):
        matlab.read(path)


@pytest.mark.parametrize("answer", [-signal.SIGSEGV, "hang"])
def test_crash_or_hang_of_the_decoder_is_a_refusal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: int | str
) -> None:
    def run(command: list[str], **options: Any) -> Any:
        if answer == "hang":
            raise subprocess.TimeoutExpired(command, options["timeout"])
        return subprocess.CompletedProcess(command, answer, b"", b"")

    monkeypatch.setattr(subprocess, "run", run)
    with pytest.raises(DatasetError):
        matlab.read(saved(tmp_path / "a.mat", data=X, target=Y.T))


@pytest.mark.parametrize("name", ["matlab", "matlab73"])
def test_damaged_files_do_not_hang_the_decoder(tmp_path: Path, name: str) -> None:
    counts = fuzzing_binary.fuzz(name, 60, tmp_path)
    assert not {"hung", "bug"} & set(counts), counts


@pytest.mark.parametrize("name", ["matlab", "matlab73"])
def test_damaged_files_are_refused(tmp_path: Path, name: str) -> None:
    for path in fuzzing_binary.damaged_files(name, 5, tmp_path, seed=7):
        assert fuzzing_binary.outcome(matlab.read, path) in ("read", "refused")


def test_sniffs_by_content(tmp_path: Path) -> None:
    head = saved(tmp_path / "a.mat", data=X).read_bytes()
    assert matlab.sniff(head, Path("anything"))
    assert not matlab.sniff(b"MATLAB is a program", Path("a.mat"))


def test_tables_are_double_and_names_survive_as_bytes(tmp_path: Path) -> None:
    data = CandidateDataset(X, Y, ["Übung", "日本"])
    matlab.write(data, tmp_path / "a.mat", resolution=cases.resolution_of(data))
    found = scipy.io.loadmat(tmp_path / "a.mat")
    tables = ("data", "partial_labels", "resolved_labels", "confidences")
    assert {name: found[name].dtype for name in tables} == dict.fromkeys(tables, np.float64)
    names = [bytes(one.ravel()).decode() for one in found["label_names_utf8"].ravel()]
    assert names == ["Übung", "日本"]


def test_class_numbers_become_tables(tmp_path: Path) -> None:
    """A truth as a vector, candidates as lists in cells, both counted from 1."""
    sets = [[1, 2], [2], [1, 3], [3], [1, 2, 3]]
    cells = np.empty((5, 1), dtype=object)
    for row, one in zip(cells, sets, strict=True):
        row[0] = one
    path = saved(tmp_path / "a.mat", data=X, partial_target=cells, target=[[1], [2], [3], [3], [1]])
    data = matlab.read(path).dataset
    assert data.truth is not None
    assert [(np.flatnonzero(row) + 1).tolist() for row in data.candidates] == sets
    assert data.truth.argmax(axis=1).tolist() == [0, 1, 2, 2, 0]


def test_answers_of_people_are_votes(tmp_path: Path) -> None:
    answers = np.array([[1, 2, 0], [0, 2, 2], [3, 3, 1], [1, 0, 0], [2, 2, 2]])
    data = matlab.read(saved(tmp_path / "a.mat", answers=answers)).dataset
    assert data.votes is not None
    assert (data.votes.n_sources, data.label_names) == (3, ("1", "2", "3"))
    assert len(data.votes.answered) == 11
    assert [(np.flatnonzero(row) + 1).tolist() for row in data.candidates] == [
        *([1, 2], [2], [1, 3], [1], [2])
    ]


def test_variables_of_unknown_names_are_asked_about(tmp_path: Path) -> None:
    noisy = np.maximum(Y, np.eye(5, 2))
    result = matlab.read(saved(tmp_path / "a.mat", first=X, second=Y.T, third=noisy.T))
    assert any(problem.message.startswith("which variables") for problem in result.problems)
    np.testing.assert_array_equal(result.dataset.candidates, noisy)
    np.testing.assert_array_equal(result.dataset.truth, Y)
