"""cleanlab's lists both ways, its issues table out; Hugging Face folders."""

import csv
import json
from pathlib import Path

import format_cases as cases
import fuzzing_binary
import numpy as np
import pytest
from hypothesis import given, settings

from core.data.dataset import CandidateDataset
from core.errors import DatasetError
from core.formats.readers import cleanlab, huggingface, records
from core.methods import PlainClassifier
from core.review import resolve


def test_bare_lists_are_enough(tmp_path: Path) -> None:
    content = {"labels": [[0, 2], [], [1]], "features": [[1, 2], [3, 4], [5, 6]]}
    (tmp_path / "a.json").write_text(json.dumps(content), "utf-8")
    data = cleanlab.read(tmp_path / "a.json").dataset
    np.testing.assert_array_equal(data.candidates, [[1, 0, 1], [0, 0, 0], [0, 1, 0]])
    assert data.label_names == ("label0", "label1", "label2")


@pytest.mark.parametrize("sparse", [True, False])
def test_export_with_resolution_reads_back_as_the_same_candidates(
    tmp_path: Path, sparse: bool
) -> None:
    data = cases.small_dataset(sparse)
    resolution = cases.resolution_of(data)
    cleanlab.write(data, tmp_path / "a.json", resolution=resolution)
    result = cleanlab.read(tmp_path / "a.json")
    cases.assert_same(result.dataset, data)
    cases.assert_same_display(result.dataset, data)
    content = json.loads((tmp_path / "a.json").read_text("utf-8"))
    np.testing.assert_allclose(content["confidences"], resolution.confidences)
    np.testing.assert_allclose(content["pred_probs"], resolution.predictions)
    assert any("export" in problem.message for problem in result.problems)


@given(cases.datasets())
@settings(max_examples=80, deadline=None)
def test_odd_names_survive(
    tmp_path_factory: pytest.TempPathFactory, data: CandidateDataset
) -> None:
    path = tmp_path_factory.mktemp("cleanlab") / "a.json"
    read = cases.assert_round_trip(cleanlab, data, path)
    assert read.feature_names == data.feature_names


@cases.each_shared_file
def test_shared_data_round_trip(tmp_path: Path, shared_file: Path) -> None:
    cases.assert_round_trip(cleanlab, cases.shared(shared_file), tmp_path / "data.json")


def test_issues_table_has_cleanlabs_columns_and_low_is_bad(tmp_path: Path) -> None:
    data = cases.small_dataset()
    resolution = cases.resolution_of(data)
    records.write(data, tmp_path / "issues.csv", resolution=resolution, name="cleanlab-issues")
    with (tmp_path / "issues.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    columns = ["", "is_label_issue", "label_score", "given_label", "predicted_label"]
    assert list(rows[0]) == columns
    assert rows[0]["given_label"] == "[0, 1]"
    assert rows[1] == dict(zip(columns, ["ü 1", "False", "1.0", "[]", "[]"], strict=True))
    assert rows[2][""] == "'=x"
    worst = float(np.min(resolution.confidences[0]))
    assert float(rows[0]["label_score"]) == pytest.approx(worst, abs=1e-5)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        '{"labels": [[0]]}',
        '{"labels": 3, "features": [[1]]}',
        '{"labels": [[0], [-1], [true]], "features": [[1], [2], [3]]}',
        '{"labels": [[99999999999], [], []], "features": [[1], [2], [3]]}',
        '{"labels": [[1], [], []], "features": [[1], [2], [3]], "label_names": ["a"]}',
        '{"labels": [[0], [], []], "features": [[1], [2, 3], [3]]}',
        '{"labels": [[0], [], []], "features": [["x"], [2], [3]]}',
        '{"labels": [[0], [], []], "features": {"data": [1]}}',
        '{"labels": [[0], [], []], "features": '
        '{"data": [1], "indices": [7], "indptr": [0, 1, 1, 1], "shape": [3, 2]}}',
        '{"labels": [[0]], "features": ' + "[" * 100_000,
        '{"labels": [[0], [], []], "features": [[1e999], [2], [3]]}',
        '{"labels": [[0], [], []], "features": [[' + "9" * 6000 + "], [2], [3]]}",
    ],
)
def test_hostile_json_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.json").write_text(text, "utf-8")
    with pytest.raises(DatasetError):
        cleanlab.read(tmp_path / "a.json")


def test_damaged_files_are_refused(tmp_path: Path) -> None:
    assert set(fuzzing_binary.fuzz("cleanlab", 60, tmp_path)) <= {"read", "refused"}


def test_sniffs_by_content() -> None:
    assert cleanlab.sniff(b' {"labels": [[0, 2], []]}', Path("a.json"))
    assert not cleanlab.sniff(b'{"labels": ["a"], "text": "b"}', Path("a.json"))
    assert not cleanlab.sniff(b'[{"labels": [[0]]}]', Path("a.json"))


@pytest.mark.parametrize("sparse", [True, False])
def test_folder_round_trip(tmp_path: Path, sparse: bool) -> None:
    data = cases.small_dataset(sparse)
    huggingface.write(data, tmp_path / "folder", resolution=cases.resolution_of(data))
    assert huggingface.sniff(b"", tmp_path / "folder")
    read = huggingface.read(tmp_path / "folder").dataset
    cases.assert_same(read, data)
    cases.assert_same_display(read, data)


def test_cleanlab_finds_the_same_issues_in_the_file_as_when_fed_by_hand(tmp_path, demo):
    filters = pytest.importorskip("cleanlab.multilabel_classification.filter")
    model = PlainClassifier(epochs=2).fit(demo.features, demo.candidates)
    predictions = model._trainer.predictions
    resolution = resolve(demo, model.confidences_, predictions=predictions)
    cleanlab.write(demo, tmp_path / "a.json", resolution=resolution)
    content = json.loads((tmp_path / "a.json").read_text("utf-8"))
    found = filters.find_label_issues(content["labels"], np.array(content["pred_probs"]))
    given = [np.flatnonzero(row).tolist() for row in demo.candidates]
    assert found.any()
    assert np.array_equal(found, filters.find_label_issues(given, predictions.astype(float)))
