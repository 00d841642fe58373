"""libsvm multi-label lines: numbering that is guessed and said, exact side files."""

from pathlib import Path

import format_cases as cases
import fuzzing_binary
import numpy as np
import pytest
from hypothesis import given, settings
from sklearn.datasets import load_svmlight_file

from core import formats
from core.data.dataset import CandidateDataset
from core.errors import DatasetError
from core.formats.readers import svmlight


def written(folder: Path, text: str, names: str | None = None) -> Path:
    path = folder / "data.svm"
    path.write_text(text, "utf-8")
    if names is not None:
        (folder / "data.labels.txt").write_text(names, "utf-8")
    return path


def test_empty_label_sets_comments_and_query_ids_are_read(tmp_path: Path) -> None:
    text = "0,2 1:0.5 3:1.5 # note\n 2:1\n\n1 qid:3 1:-2e-3\n2\n"
    data = svmlight.read(written(tmp_path, text)).dataset
    np.testing.assert_array_equal(data.candidates, [[1, 0, 1], [0, 0, 0], [0, 1, 0], [0, 0, 1]])
    expected = np.array([[0.5, 0, 1.5], [0, 1, 0], [-2e-3, 0, 0], [0, 0, 0]], np.float32)
    np.testing.assert_array_equal(data.features.toarray(), expected)


def test_a_name_that_says_nothing_leaves_it_to_the_content(tmp_path: Path) -> None:
    path = tmp_path / "data.txt"
    lines = (f"{i % 3},{3 + i % 2} 1:{i / 7:.2f} {2 + i % 5}:1\n" for i in range(20))
    path.write_text("".join(lines))
    found = formats.read(path)
    assert (found.format, found.dataset.n_labels, found.dataset.n_features) == ("svmlight", 5, 6)


@pytest.mark.parametrize(("line", "first"), [("0:1", 0), ("1:1", 1)])
def test_numbering_of_features_is_guessed_and_said(tmp_path: Path, line: str, first: int) -> None:
    result = svmlight.read(written(tmp_path, f"0 {line}\n1 3:1\n0 2:1\n"))
    assert result.dataset.n_features == 4 - first
    assert any(f"numbered from {first}" in problem.message for problem in result.problems)


def test_labels_that_count_from_one_meet_their_names(tmp_path: Path) -> None:
    result = svmlight.read(written(tmp_path, "1 1:1\n2 2:1\n1,2 1:3\n", "sea\ndog\n"))
    assert result.dataset.label_names == ("sea", "dog")
    np.testing.assert_array_equal(result.dataset.candidates, [[1, 0], [0, 1], [1, 1]])


def test_every_bad_token_is_named_by_line(tmp_path: Path) -> None:
    text = "0, 2 1:1\n-1 1:1\na 1:1\n0 1:x\n0 y:1 2:2:2\n0 1:1\n"
    with pytest.raises(DatasetError) as caught:
        svmlight.read(written(tmp_path, text))
    found = {(problem.row, problem.value) for problem in caught.value.problems}
    bad = {(1, "0,"), (1, "2"), (2, "-1"), (3, "a"), (4, "1:x"), (5, "y:1"), (5, "2:2:2")}
    assert found == bad


@pytest.mark.parametrize(
    "line", ["99999999999 1:1", "0 99999999999:1", "0 2000000000:1", "200000 1:1", "0 1:1e999"]
)
def test_huge_numbers_are_refused(tmp_path: Path, line: str) -> None:
    with pytest.raises(DatasetError):
        svmlight.read(written(tmp_path, f"0 1:1\n1 2:1\n{line}\n"))


@given(cases.datasets())
@settings(max_examples=100, deadline=None)
def test_round_trip_is_exact(
    tmp_path_factory: pytest.TempPathFactory, data: CandidateDataset
) -> None:
    path = tmp_path_factory.mktemp("svm") / "data.svm"
    read = cases.assert_round_trip(svmlight, data, path)
    assert read.feature_names == data.feature_names


@pytest.mark.parametrize("sparse", [True, False])
def test_export_with_resolution_reads_back_as_the_same_candidates(
    tmp_path: Path, sparse: bool
) -> None:
    data = cases.small_dataset(sparse)
    resolution = cases.resolution_of(data)
    svmlight.write(data, tmp_path / "data.svm", resolution=resolution)
    result = svmlight.read(tmp_path / "data.svm")
    cases.assert_same(result.dataset, data)
    cases.assert_same_display(result.dataset, data)
    assert any("export" in problem.message for problem in result.problems)


def test_side_files_of_an_earlier_export_are_left_alone(tmp_path: Path) -> None:
    data = cases.small_dataset()
    svmlight.write(data, tmp_path / "data.svm", resolution=cases.resolution_of(data))
    cases.assert_round_trip(svmlight, cases.small_dataset(truth=False), tmp_path / "data.svm")


@cases.each_shared_file
def test_shared_data_round_trip(tmp_path: Path, shared_file: Path) -> None:
    cases.assert_round_trip(svmlight, cases.shared(shared_file), tmp_path / "data.svm")


def test_scikit_learn_reads_what_is_written(tmp_path: Path) -> None:
    data = cases.small_dataset()
    svmlight.write(data, tmp_path / "data.svm")
    features, labels = load_svmlight_file(str(tmp_path / "data.svm"), multilabel=True)
    np.testing.assert_array_equal(features.toarray().astype(np.float32), data.features)
    assert [len(members) for members in labels] == data.candidates.sum(axis=1).tolist()


def test_damaged_files_are_refused(tmp_path: Path) -> None:
    assert set(fuzzing_binary.fuzz("svmlight", 60, tmp_path)) <= {"read", "refused"}


@pytest.mark.parametrize(
    ("head", "answer"),
    [
        (b"0,2 1:0.5 7:1.2\n 3:1\n", True),
        (b"1 qid:2 1:0.5\n", True),
        (b"a,b,c\n1,2,3\n", False),
        (b'{"a": 1}\n', False),
        (b"1,2,3\n4,5,6\n", False),
        (b"time,10:30\n", False),
    ],
)
def test_sniffs_by_content(head: bytes, answer: bool) -> None:
    assert svmlight.sniff(head, Path("data.txt")) is answer
