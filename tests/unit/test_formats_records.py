"""Records for Argilla, FiftyOne and Hugging Face: the keys those programs look for."""

import base64
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import format_cases as cases
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from core.data.dataset import CandidateDataset
from core.formats.readers import records


@pytest.fixture
def data() -> CandidateDataset:
    candidates = np.array([[1, 1, 0], [0, 0, 0], [0, 1, 1]], np.uint8)
    display = pd.DataFrame({"text": ["a", "b", "c"], "image": ["1.png", "2.png", "3.png"]})
    return CandidateDataset(np.eye(3), candidates, ["sea", "dog", "ü"], display=display)


@pytest.fixture
def resolution(data: CandidateDataset) -> cases.Resolution:
    base = cases.resolution_of(data)
    confidences = np.array([[0.75, 0.25, 0], [0, 0, 0], [0, 1, 0.5]], np.float32)
    texts = (*base.reason_texts, "decided by ann on 2026-01-01")
    reasons = np.array([[1, 2, 0], [0, 0, 0], [0, 3, 3]], np.uint8)
    labels = np.array([[1, 0, 0], [0, 0, 0], [0, 1, 0]], np.uint8)
    return replace(
        base, labels=labels, confidences=confidences, reasons=reasons, reason_texts=texts
    )


def lines(folder: Path, name: str, data: CandidateDataset, resolution: Any) -> list[Any]:
    records.write(data, folder / "out", resolution=resolution, name=name)
    text = (folder / "out").read_text("utf-8")
    if records.EXTENSIONS[name] == ".json":
        return json.loads(text)
    return [json.loads(line) for line in text.removesuffix("\n").split("\n")]


def test_argilla_gets_suggestions_with_scores_and_who_decided(
    tmp_path: Path, data: CandidateDataset, resolution: cases.Resolution
) -> None:
    first, second, third = lines(tmp_path, "argilla", data, resolution)
    keys = {"id", "fields", "metadata", "suggestions", "responses", "vectors"}
    assert set(first) == keys
    assert first["fields"] == {"text": "a", "image": "1.png"}
    assert first["metadata"] == {"candidates": ["sea", "dog"]}
    suggestion = {"value": ["sea"], "score": [0.75], "agent": "plain", "type": "model"}
    assert first["suggestions"] == {"labels": suggestion}
    assert second["suggestions"] == {}  # an empty one is refused there
    assert third["metadata"] == {"candidates": ["dog", "ü"], "decided_by": ["ann"]}
    assert first["responses"] == third["responses"] == {}  # of users that we do not know


def test_fiftyone_gets_a_folder_of_samples_with_their_classes(
    tmp_path: Path, data: CandidateDataset, resolution: cases.Resolution
) -> None:
    records.write(data, tmp_path / "out", resolution=resolution, name="fiftyone")
    about = json.loads((tmp_path / "out" / "metadata.json").read_text("utf-8"))
    assert {"labels", "candidate_labels", "instance_id", "text"} <= {
        field["name"] for field in about["sample_fields"]
    }
    first = json.loads((tmp_path / "out" / "samples.json").read_text("utf-8"))["samples"][0]
    assert first["filepath"] == "1.png"  # there is no such file to copy
    assert first["instance_id"] == "0"
    found = first["candidate_labels"]
    assert found["_cls"] == "Classifications"
    told = [(one["_cls"], one["label"], one["confidence"]) for one in found["classifications"]]
    assert told == [("Classification", "sea", 0.75), ("Classification", "dog", 0.25)]


def test_pictures_are_files_of_the_folder(tmp_path: Path) -> None:
    url = "data:image/png;base64," + base64.b64encode(b"\x89PNG fake").decode()
    display = pd.DataFrame({"image": [url] * 3})
    data = CandidateDataset(np.eye(3), np.eye(3, dtype=np.uint8), display=display)
    records.write(data, tmp_path / "out", name="fiftyone")
    assert (tmp_path / "out" / "data" / "000001.png").read_bytes() == b"\x89PNG fake"


def test_excel_gets_a_byte_order_mark_and_programs_get_text_as_it_is(tmp_path: Path) -> None:
    data = CandidateDataset(np.eye(3), np.eye(3, dtype=np.uint8), ids=["-ve", "b", "=c"])
    for name in ("csv-excel", "csv-raw"):
        records.write(data, tmp_path / name, name=name)
    assert (tmp_path / "csv-excel").read_bytes().startswith(b"\xef\xbb\xbfid,")
    assert b"\n'-ve," in (tmp_path / "csv-excel").read_bytes()
    assert b"\n-ve," in (tmp_path / "csv-raw").read_bytes()


def test_huggingface_confidences_follow_the_candidates(
    tmp_path: Path, data: CandidateDataset, resolution: cases.Resolution
) -> None:
    third = lines(tmp_path, "huggingface", data, resolution)[2]
    assert third["labels"] == ["dog"]
    assert third["candidate_labels"] == ["dog", "ü"]
    assert third["confidence"] == [1.0, 0.5]
    assert third["text"] == "c"


def test_huggingface_is_told_types_and_class_names_by_the_schema(
    tmp_path: Path, data: CandidateDataset, resolution: cases.Resolution
) -> None:
    nothing = replace(resolution, confidences=np.zeros_like(resolution.confidences))
    lines(tmp_path, "huggingface", data, nothing)
    assert '"confidence": [0.0, 0.0]' in (tmp_path / "out").read_text("utf-8")  # no whole numbers
    records.write(data, tmp_path / "out", resolution=nothing, name="huggingface-parquet")
    schema = pq.read_schema(tmp_path / "out")
    told = json.loads(schema.metadata[b"huggingface"])["info"]["features"]
    names = {"feature": {"names": ["sea", "dog", "ü"], "_type": "ClassLabel"}, "_type": "Sequence"}
    assert told["labels"] == told["candidate_labels"] == names
    assert schema.field("candidate_labels").type == pa.list_(pa.int64())
    assert schema.field("confidence").type == pa.list_(pa.float32())
    assert pq.read_table(tmp_path / "out")["candidate_labels"].to_pylist() == [[0, 1], [], [1, 2]]


@pytest.mark.parametrize("name", list(records.FLAVOURS))
def test_unresolved_data_is_written_without_confidences(
    tmp_path: Path, data: CandidateDataset, name: str
) -> None:
    first = lines(tmp_path, name, data, None)[0]
    assert "confidence" not in json.dumps(first)
    assert "score" not in json.dumps(first)
    assert "sea" in json.dumps(first)


@pytest.mark.parametrize("name", list(records.FLAVOURS))
def test_odd_names_stay_one_record_per_line(tmp_path: Path, name: str) -> None:
    data = cases.small_dataset()
    written = lines(tmp_path, name, data, cases.resolution_of(data))
    assert [record["id"] for record in written] == list(data.ids)


@cases.each_shared_file
def test_shared_data_can_be_written(tmp_path: Path, shared_file: Path) -> None:
    data = cases.shared(shared_file)
    written = lines(tmp_path, "huggingface", data, cases.resolution_of(data))
    offered = [len(record["candidate_labels"]) for record in written]
    assert offered == data.candidates.sum(axis=1).tolist()
