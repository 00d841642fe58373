"""Label Studio tasks: whose choices count, JSON_MIN's two spellings, exact import JSON."""

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import format_cases as cases
import fuzzing_binary
import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from vote_table import vote_table

from core import formats
from core.data.dataset import CandidateDataset
from core.errors import DatasetError, ExportError
from core.formats.readers import labelstudio
from core.formats.shared.mapping import ReadDecision
from core.review import resolve
from core.store import Decision, Workspace
from core.store.decision_import import take_decisions


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
    model = [n for n, c in zip(data.label_names, resolution.confidences[0], strict=True) if c > 0.5]
    assert first["predictions"][0]["result"][0]["value"] == {"choices": model}  # not the person's
    assert 0 <= first["predictions"][0]["score"] <= 1
    assert first["annotations"][0]["result"][0]["value"] == {"choices": [sea]}
    assert first["annotations"][0]["was_cancelled"] is False
    assert first["data"]["candidates"] == list(data.label_names)
    assert first["data"]["conf_sea_deep"] == pytest.approx(float(resolution.confidences[0, 0]))
    assert "completed_by" not in first["annotations"][0]  # its users are not ours
    assert tasks[1]["annotations"] == tasks[1]["predictions"] == []  # nothing offered, no score
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


def annotated(folder: Path, demo: CandidateDataset) -> list[dict[str, Any]]:
    """Return tasks of ours as Label Studio exports them after two people worked on some."""
    formats.write(demo, folder / "tasks.json", format="labelstudio")
    tasks = json.loads((folder / "tasks.json").read_text("utf-8"))[:3]
    for who, task in ((1, tasks[0]), (2, tasks[0]), (2, tasks[1]), (3, tasks[2])):
        chosen = task["data"]["candidates"][:who]
        more = {"id": 10 * task["id"] + who, "completed_by": who, "lead_time": 3.5}
        made = answer(*chosen, updated_at="2026-03-01T10:00:00Z", **more)
        task["annotations"].append(made)
    return tasks


def as_min(tasks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the same as JSON_MIN has it: a record per annotation, one choice as a plain text."""
    found = []
    for task in tasks:
        for one in task["annotations"]:
            chosen = one["result"][0]["value"]["choices"]
            labels = chosen[0] if len(chosen) == 1 else {"choices": chosen}
            about = {"annotator": one["completed_by"], "annotation_id": one["id"]}
            about |= {"updated_at": one["updated_at"], "lead_time": one["lead_time"]}
            found.append({"id": task["id"], **task["data"], "labels": labels, **about})
    return found


@pytest.mark.parametrize("kind", ["json", "json_min", "csv", "tsv"])
def test_annotations_of_our_tasks_come_back_as_decisions_once(kind, demo, tmp_path: Path) -> None:
    tasks = annotated(tmp_path, demo)
    path = tmp_path / f"back.{kind.removesuffix('_min')}"
    if kind == "json":
        path.write_text(json.dumps(tasks), "utf-8")
    elif kind == "json_min":
        path.write_text(json.dumps(as_min(tasks)), "utf-8")
    else:
        pd.DataFrame(as_min(tasks)).to_csv(path, index=False, sep="\t" if kind == "tsv" else ",")
    back = formats.read(path)
    assert back.format == "labelstudio"
    assert back.fingerprint == demo.fingerprint
    first, second = demo.candidates[:2].sum(axis=1)
    by = Counter(
        (one.annotator, one.verdict) for one in back.decisions if one.annotator != "labelstudio 3"
    )
    assert by == {
        ("labelstudio 1", "keep"): 1,
        ("labelstudio 1", "reject"): first - 1,
        ("labelstudio 2", "keep"): 4,
        ("labelstudio 2", "reject"): first + second - 4,
    }
    space = Workspace(tmp_path / "space")
    space.add_dataset(demo, "demo")
    taken = take_decisions(space, back, demo.fingerprint)
    assert taken == (2 * first + second + demo.candidates[2].sum(), 0, 0)
    assert take_decisions(space, back, demo.fingerprint).n_new == 0
    stored = space.decisions.by_annotator(demo.fingerprint)
    assert len(stored["labelstudio 1"]) == first
    assert len(stored["labelstudio 2"]) == first + second


def test_what_was_decided_here_is_not_somebody_elses_there(demo, tmp_path: Path) -> None:
    label = demo.label_names[int(np.flatnonzero(demo.candidates[0])[0])]
    made = Decision(
        fingerprint=demo.fingerprint,
        instance_id=demo.ids[0],
        label=label,
        verdict="keep",
        annotator="anna",
    )
    resolution = resolve(demo, demo.candidates * np.float32(0.4), decisions=[made])
    formats.write(demo, tmp_path / "tasks.json", format="labelstudio", resolution=resolution)
    tasks = json.loads((tmp_path / "tasks.json").read_text("utf-8"))
    assert tasks[0]["predictions"][0]["result"] == []  # the model kept nothing; anna did
    tasks[0]["annotations"][0]["completed_by"] = 1  # whoever imported them
    back = formats.read(saved(tmp_path / "..", tasks))
    assert [(one.annotator, one.label, one.verdict) for one in back.decisions] == [
        ("anna", label, "keep")
    ]
    space = Workspace(tmp_path / "space")
    space.add_dataset(demo, "demo")
    space.decisions.add(made)
    assert take_decisions(space, back, demo.fingerprint) == (0, 1, 0)


def test_a_decision_on_a_label_that_was_renamed_is_known_as_the_data_calls_it(
    demo, tmp_path: Path
) -> None:
    space = Workspace(tmp_path / "space")
    space.add_dataset(demo, "demo")
    label = demo.label_names[int(np.flatnonzero(demo.candidates[0])[0])]
    space.labels.rename(demo.fingerprint, demo.label_names, label, "nought", "anna")
    read = ReadDecision(demo.ids[0], "nought", "keep", "anna", "2026-01-01T00:00:00+00:00", "u1")
    back = formats.ReadResult(demo, (), None, "labelstudio", decisions=(read,))
    assert take_decisions(space, back, demo.fingerprint) == (1, 0, 0)
    assert take_decisions(space, back, demo.fingerprint) == (0, 1, 0)
    assert [one.label for one in space.decisions.latest(demo.fingerprint)] == [label]


def test_predictions_given_by_number_are_told(tmp_path: Path) -> None:
    tasks = [task(i, f"text {i}", annotations=[answer("sea")], predictions=[i]) for i in range(3)]
    found = labelstudio.read(saved(tmp_path, tasks)).problems
    assert any("by their number only" in problem.message for problem in found)


def test_keys_are_safe_and_local_pictures_are_addresses_of_its_server(tmp_path: Path) -> None:
    display = pd.DataFrame(
        {"my.text": ["a", "b", "c"], "image": ["x y.png", "http://a/b.png", "c"]}
    )
    data = CandidateDataset(np.eye(3), np.eye(3), ["a.b", "a b", "c"], display=display)
    formats.write(data, tmp_path / "out.json", format="labelstudio-local-files")
    shown = json.loads((tmp_path / "out.json").read_text("utf-8"))
    assert shown[0]["data"]["my_text"] == "a"
    assert shown[0]["data"]["image"] == "/data/local-files/?d=x%20y.png"
    assert shown[1]["data"]["image"] == "http://a/b.png"
    assert 'value="$image"' in (tmp_path / "out.config.xml").read_text("utf-8")
    back = formats.read(tmp_path / "out.json").dataset
    assert back.display is not None
    assert list(back.display.columns) == ["my.text", "image"]


def test_annotations_of_other_tasks_are_votes_by_name_and_the_rest_is_counted(
    tmp_path: Path,
) -> None:
    bob = {"id": 2, "email": "bob@uni.de"}
    two = [answer("sea", completed_by=1), answer("sky", completed_by=bob)]
    stars = [answer(kind="rating", completed_by=1)]
    tasks = [task(i, f"text {i}", annotations=two + stars * (i < 2)) for i in range(3)]
    back = labelstudio.read(saved(tmp_path, tasks))
    assert back.dataset.votes is not None
    table = vote_table(back.dataset.votes, back.dataset.ids, back.dataset.label_names)
    assert table.to_numpy().tolist() == [
        [str(i), label, who, int(who == said)]
        for i in range(3)
        for label, said in (("sea", "1"), ("sky", "bob@uni.de"))
        for who in ("1", "bob@uni.de")
    ]
    assert back.decisions == ()
    left_out = [one for one in back.problems if "are no choices were left out" in one.message]
    assert len(left_out) == 2
