"""Label Studio tasks: whose choices count, JSON_MIN's two spellings, exact import JSON."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import format_cases as cases
import fuzzing_binary
import numpy as np
import pytest
from hypothesis import assume, given, settings

from core.data.dataset import CandidateDataset
from core.errors import DatasetError, ExportError
from core.formats.readers import labelstudio


def answer(*choices: str, kind: str = "choices", **more: Any) -> dict[str, Any]:
    result = {
        "from_name": "labels",
        "to_name": "text",
        "type": kind,
        "value": {kind: list(choices)},
    }
    return {"result": [result], **more}


def task(number: int, text: str, **more: Any) -> dict[str, Any]:
    return {"id": number, "data": {"text": text}, **more}


def saved(folder: Path, tasks: Any) -> Path:
    path = folder / "tasks.json"
    path.write_text(json.dumps(tasks), "utf-8")
    return path


TASKS = [
    task(7, "waves at the beach", annotations=[answer("sea"), answer("dog", "sea")]),
    task(8, "a cat", annotations=[answer("dog", was_cancelled=True), answer("cat")]),
    task(9, "a dog barks", predictions=[answer("dog", model_version="m1")]),
    task(10, "nothing here at all", annotations=[answer()], predictions=[answer("cat")]),
]


def test_annotators_together_make_the_candidates(tmp_path: Path) -> None:
    result = labelstudio.read(saved(tmp_path, TASKS))
    data = result.dataset
    assert data.label_names == ("cat", "dog", "sea")
    assert data.ids == ("7", "8", "9", "10")
    np.testing.assert_array_equal(data.candidates, [[0, 1, 1], [1, 0, 0], [0, 1, 0], [0, 0, 0]])
    messages = " ".join(problem.message for problem in result.problems)
    assert "cancelled" in messages
    assert "predictions are its candidates" in messages


def test_features_come_from_text_when_there_are_no_others(tmp_path: Path) -> None:
    data = labelstudio.read(saved(tmp_path, TASKS)).dataset
    assert "beach" in data.feature_names
    assert data.features.nnz > 0
    assert data.display is not None
    assert data.display["text"][1] == "a cat"


def test_embedding_in_data_is_the_features(tmp_path: Path) -> None:
    tasks = [{**t, "data": {**t["data"], "embedding": [i, 0.5]}} for i, t in enumerate(TASKS)]
    data = labelstudio.read(saved(tmp_path, tasks)).dataset
    np.testing.assert_array_equal(data.features, [[0, 0.5], [1, 0.5], [2, 0.5], [3, 0.5]])
    assert data.display is not None
    assert list(data.display) == ["text"]


@pytest.mark.parametrize("several", [True, False])
def test_json_min_spells_one_and_several_choices_differently(tmp_path: Path, several: bool) -> None:
    both: Any = {"choices": ["sea", "dog"]} if several else "dog"
    rows = [(1, "one", "sea", 1), (1, "one", both, 2), (2, "two", "sea", 1), (3, "six", "cat", 1)]
    records = [
        {"id": i, "body": text, "labels": label, "annotator": who, "annotation_id": 10 + n}
        for n, (i, text, label, who) in enumerate(rows)
    ]
    data = labelstudio.read(saved(tmp_path, records)).dataset
    assert data.ids == ("1", "2", "3")
    np.testing.assert_array_equal(data.candidates, [[0, 1, 1], [0, 0, 1], [1, 0, 0]])


def test_labelling_config_beside_the_file_names_all_labels(tmp_path: Path) -> None:
    path = saved(tmp_path, TASKS)
    config = '<View><Choices name="c"><Choice value="sea"/><Choice value="bird"/></Choices></View>'
    path.with_suffix(".config.xml").write_text(config, "utf-8")
    assert labelstudio.read(path).dataset.label_names == ("sea", "bird", "cat", "dog")


def test_resolution_becomes_predictions_and_decisions_annotations(tmp_path: Path) -> None:
    data = cases.small_dataset()
    resolution = cases.resolution_of(data)
    reasons = resolution.reasons.copy()
    reasons[0] = 3
    labels = resolution.labels.copy()
    labels[0] = [1, 0]
    texts = (*resolution.reason_texts, "decided by ann on 2026-01-01")
    resolution = replace(resolution, labels=labels, reasons=reasons, reason_texts=texts)
    labelstudio.write(data, tmp_path / "out.json", resolution=resolution)
    tasks = json.loads((tmp_path / "out.json").read_text("utf-8"))
    first, sea = tasks[0], data.label_names[0]
    assert first["predictions"][0]["result"][0]["value"] == {"choices": [sea]}
    assert 0 <= first["predictions"][0]["score"] <= 1
    assert first["annotations"][0]["result"][0]["value"] == {"choices": [sea]}
    assert first["annotations"][0]["was_cancelled"] is False
    assert first["data"]["candidates"] == list(data.label_names)
    assert first["data"][f"conf_{sea}"] == pytest.approx(float(resolution.confidences[0, 0]))
    assert tasks[1]["annotations"] == []
    cases.assert_same(labelstudio.read(tmp_path / "out.json").dataset, data)


@pytest.mark.parametrize("sparse", [True, False])
def test_import_json_reads_back(tmp_path: Path, sparse: bool) -> None:
    data = cases.small_dataset(sparse)
    read = cases.assert_round_trip(labelstudio, data, tmp_path / "out.json")
    cases.assert_same_display(read, data)


@given(cases.datasets())
@settings(max_examples=80, deadline=None)
def test_odd_names_survive(
    tmp_path_factory: pytest.TempPathFactory, data: CandidateDataset
) -> None:
    try:
        cases.assert_round_trip(labelstudio, data, tmp_path_factory.mktemp("ls") / "out.json")
    except ExportError:  # a control character, which the config's XML cannot hold
        assume(False)


@cases.each_shared_file
def test_shared_data_round_trip(tmp_path: Path, shared_file: Path) -> None:
    cases.assert_round_trip(labelstudio, cases.shared(shared_file), tmp_path / "data.json")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "[]",
        "[1, 2]",
        "[" * 100_000,
        '[{"id": ' + '{"a": ' * 50_000,
        '[{"id": 1, "data": 3, "annotations": []}]',
        '[{"id": 1, "data": {"embedding": [1]}, "annotations": []}]',
        json.dumps([task(i, "!") for i in range(4)]),
        json.dumps(
            [{"id": i, "data": {"features": [0] * i, "candidates": ["a"]}} for i in range(4)]
        ),
        json.dumps([{"id": 1, "data": {"text": "a b", "candidates": ["a"]}}] * 4),
        json.dumps(
            [{"id": i, "data": {str(i * 999 + k): 1 for k in range(999)}} for i in range(4)]
        ),
        '[{"data": {"features": {"indices": [5], "values": [1], "size": 2}}}]',
        '[{"data": {"features": {"indices": [0], "values": [1], "size": 99999999999}}}]',
        '[{"data": {"features": {"indices": ["x"], "values": [{}], "size": 2}}}]',
    ],
)
def test_hostile_json_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.json").write_text(text, "utf-8")
    with pytest.raises(DatasetError):
        labelstudio.read(tmp_path / "a.json")


def test_damaged_files_are_refused(tmp_path: Path) -> None:
    assert set(fuzzing_binary.fuzz("labelstudio", 60, tmp_path)) <= {"read", "refused"}


@pytest.mark.parametrize(
    ("head", "is_task_list"),
    [
        (json.dumps(TASKS).encode(), True),
        (b'[{"id": 1, "text": "a", "labels": "x", "annotator": 1, "annotation_id": 4}]', True),
        (b'[{"id": 1, "text": "a", "labels": ["x"]}]', False),
        (b'[{"data": 1, "label": 2}]', False),
        (b'{"annotations": [], "data": {}}', False),
    ],
)
def test_tasks_are_told_from_plain_records(head: bytes, is_task_list: bool) -> None:
    assert labelstudio.sniff(head, Path("a.json")) is is_task_list
