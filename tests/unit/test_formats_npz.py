"""NumPy archives: exact round trips; pickles, bombs and broken CSR arrays are refused."""

import io
import zipfile
from pathlib import Path
from typing import Any

import format_cases as cases
import fuzzing_binary
import numpy as np
import pytest
from hypothesis import given, settings

from core import formats
from core.data.dataset import CandidateDataset
from core.errors import DatasetError, ExportError
from core.formats.readers import npz


@pytest.mark.parametrize("sparse", [True, False])
def test_everything_survives_a_round_trip(tmp_path: Path, sparse: bool) -> None:
    data = cases.small_dataset(sparse)
    read = cases.assert_round_trip(npz, data, tmp_path / "data.npz")
    cases.assert_same_display(read, data)
    assert read.feature_names == data.feature_names
    assert read.fingerprint == data.fingerprint


@given(cases.datasets())
@settings(max_examples=100, deadline=None)
def test_odd_names_survive(
    tmp_path_factory: pytest.TempPathFactory, data: CandidateDataset
) -> None:
    cases.assert_round_trip(npz, data, tmp_path_factory.mktemp("npz") / "data.npz")


@cases.each_shared_file
def test_shared_data_round_trip(tmp_path: Path, shared_file: Path) -> None:
    data = cases.shared(shared_file)
    read = cases.assert_round_trip(npz, data, tmp_path / "data.npz")
    assert read.fingerprint == data.fingerprint


def test_resolution_is_written_beside_the_candidates(tmp_path: Path) -> None:
    data = cases.small_dataset()
    resolution = cases.resolution_of(data)
    npz.write(data, tmp_path / "data.npz", resolution=resolution)
    with np.load(tmp_path / "data.npz", allow_pickle=False) as arrays:
        np.testing.assert_array_equal(arrays["resolved"], resolution.labels)
        np.testing.assert_array_equal(arrays["confidences"], resolution.confidences)
        np.testing.assert_array_equal(arrays["reasons"], resolution.reasons)
        assert tuple(arrays["reason_texts"]) == resolution.reason_texts
    result = npz.read(tmp_path / "data.npz")
    cases.assert_same(result.dataset, data)
    assert ["export" in problem.message for problem in result.problems] == [True]


def test_clean_labels_are_candidates_and_truth_and_that_is_said(tmp_path: Path) -> None:
    np.savez(tmp_path / "clean.npz", X=np.eye(3, dtype="f4"), Y=np.eye(3, dtype="u1"))
    result = npz.read(tmp_path / "clean.npz")
    np.testing.assert_array_equal(result.dataset.candidates, np.eye(3))
    np.testing.assert_array_equal(result.dataset.truth, np.eye(3))
    assert "only one set of labels" in result.problems[0].message


def test_pickled_object_is_refused_and_never_run(tmp_path: Path) -> None:
    class Trap:
        def __reduce__(self) -> Any:
            return (Path.touch, (tmp_path / "sprung",))

    objects = np.array([Trap(), Trap()], dtype=object)
    np.savez(tmp_path / "trap.npz", X=np.eye(3), Y=np.eye(3), extra=objects)
    with pytest.raises(DatasetError, match="pickled objects are refused"):
        npz.read(tmp_path / "trap.npz")
    assert not (tmp_path / "sprung").exists()


def archive(path: Path, **members: bytes) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, raw in members.items():
            file.writestr(f"{name}.npy", raw)
    return path


def array_bytes(shape: Any, descr: str = "<f4", body: bytes = b"") -> bytes:
    stream = io.BytesIO()
    header = {"descr": descr, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(stream, header)
    return stream.getvalue() + body


@pytest.mark.parametrize(
    "raw",
    [
        array_bytes((10**6, 10**6)),
        array_bytes((2**62, 2**62)),
        array_bytes((-1, 3)),
        array_bytes((0, 10**9), "<U900000000"),
        b"\x93NUMPY\x01\x00\xff\xff" + b"(" * 9000,
        b"\x93NUMPY\x09\x00",
        b"",
        bytes(300 * 2**20),
    ],
    ids=["huge", "overflow", "negative", "wide", "deep", "version", "empty", "bomb"],
)
def test_array_that_lies_about_its_size_is_refused(tmp_path: Path, raw: bytes) -> None:
    with pytest.raises(DatasetError):
        npz.read(archive(tmp_path / "lie.npz", X=raw, Y=array_bytes((3, 1), body=bytes(12))))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("X_indices", [0, 9]),
        ("X_indices", [0, -1]),
        ("X_indptr", [0, 2, 1, 2]),
        ("X_indptr", [0, 1, 2]),
        ("X_indptr", [0, 1, 2, 9]),
        ("X_shape", [3, 10**9]),
        ("X_shape", [3]),
        ("X_data", ["a", "b"]),
    ],
)
def test_csr_arrays_that_describe_no_matrix_are_refused(
    tmp_path: Path, key: str, value: list[Any]
) -> None:
    arrays: dict[str, Any] = {"X_data": [1.0, 2.0], "X_indices": [0, 1], "X_indptr": [0, 1, 2, 2]}
    arrays |= {"X_shape": [3, 2], "Y": np.eye(3)}
    np.savez(tmp_path / "good.npz", **arrays)
    assert npz.read(tmp_path / "good.npz").dataset.n_features == 2
    np.savez(tmp_path / "bad.npz", **{**arrays, key: np.asarray(value)})
    with pytest.raises(DatasetError):
        npz.read(tmp_path / "bad.npz")


def test_name_numpy_would_shorten_is_not_written(tmp_path: Path) -> None:
    data = CandidateDataset(np.eye(3), np.eye(3), ["a", "b\0", "c"])
    with pytest.raises(ExportError, match="NUL"):
        npz.write(data, tmp_path / "data.npz")


def test_damaged_archives_are_refused(tmp_path: Path) -> None:
    assert set(fuzzing_binary.fuzz("npz", 60, tmp_path)) <= {"read", "refused"}


def test_sniffs_by_content() -> None:
    assert not npz.sniff(b"PK\3\4" + bytes(22) + b"\5\0\0\0a.csv", Path("a.npz"))


@pytest.mark.parametrize("name", ["L.npz", "L_train.npz", "a.npy"])
def test_a_label_matrix_alone_is_votes(tmp_path: Path, name: str) -> None:
    matrix = np.array([[0, -1, 2], [1, 1, -1], [-1, -1, -1], [2, 0, 2]])
    if name.endswith(".npz"):
        np.savez(tmp_path / name, **{name.removesuffix(".npz"): matrix})
    else:
        np.save(tmp_path / name, matrix)
    data = formats.read(tmp_path / name).dataset
    assert data.votes is not None
    assert not data.has_features
    assert (data.label_names, data.votes.n_sources) == (("0", "1", "2"), 3)
    assert data.candidates.tolist() == [[1, 0, 1], [0, 1, 0], [0, 0, 0], [1, 0, 1]]
    assert data.votes.offered_by(0, 2) == (["source 3"], ["source 1"])


def test_labels_alone_are_enough(tmp_path: Path) -> None:
    labels = np.array([[1, 0], [0, 1], [1, 1]])
    np.savez(tmp_path / "a.npz", labels=labels)
    result = formats.read(tmp_path / "a.npz")
    np.testing.assert_array_equal(result.dataset.candidates, labels)
    assert any("no features" in one.message for one in result.problems)
    np.savez(tmp_path / "b.npz", X=np.eye(3), y=np.array([2, 0, 1]))
    single = formats.read(tmp_path / "b.npz").dataset
    np.testing.assert_array_equal(single.candidates, [[0, 0, 1], [1, 0, 0], [0, 1, 0]])
    assert single.n_features == 3


ANSWERS = np.array([[0, 2, -1], [-1, 1, 1], [2, 2, 0], [0, -1, -1]])
UNSURE = np.where(ANSWERS < 0, np.nan, ANSWERS)
SETS = [[0, 2], [1], [0, 2], [0]]


@pytest.mark.parametrize(
    "arrays",
    [
        {"answers": ANSWERS, "truth": np.array([0, 1, 2, 0])},
        {"annotations": UNSURE, "y_true": np.array([0, 1, 2, 0])},
        {"arr_0": ANSWERS},
        {"crowd_labels": ANSWERS, "embeddings": np.eye(4)},
        {"votes": (ANSWERS[:, :, None] == np.arange(3)) * 1.0 - (ANSWERS < 0)[:, :, None]},
    ],
)
def test_answers_of_people_are_votes(tmp_path: Path, arrays: dict[str, Any]) -> None:
    np.savez(tmp_path / "a.npz", **arrays)
    data = formats.read(tmp_path / "a.npz").dataset
    assert data.votes is not None
    assert data.votes.n_sources == 3
    assert len(data.votes.answered) == 8
    assert [np.flatnonzero(row).tolist() for row in data.candidates] == SETS
    again = formats.read(formats.write(data, tmp_path / "b.npz")).dataset
    np.testing.assert_array_equal(again.votes.yes, data.votes.yes)


def test_candidates_are_found_beside_labels(tmp_path: Path) -> None:
    labels = np.eye(4, 3, dtype=np.uint8)
    given = {"x_train": np.eye(4), "labels": labels, "partial_labels": np.ones((4, 3))}
    np.savez(tmp_path / "a.npz", **given, classes=np.array(["sea", "sun", "sky"]))
    data = formats.read(tmp_path / "a.npz").dataset
    assert (data.label_names, data.has_features) == (("sea", "sun", "sky"), True)
    np.testing.assert_array_equal(data.candidates, np.ones((4, 3)))
    np.testing.assert_array_equal(data.truth, labels)


def test_probabilities_alone_are_what_models_say(tmp_path: Path) -> None:
    first = np.array([[0.9, 0.2], [0.4, 0.6], [0.1, 0.7]])
    np.savez(tmp_path / "a.npz", probs_a=first, probs_b=1 - first)
    data = formats.read(tmp_path / "a.npz").dataset
    assert data.votes is not None
    assert data.votes.n_sources == 2
    np.testing.assert_array_equal(data.candidates, np.ones((3, 2)))
