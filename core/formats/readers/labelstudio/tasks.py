"""Label Studio: tasks out. The file's own tasks with ours added, or import JSON made anew."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from core.data.dataset import CandidateDataset
from core.errors import ExportError
from core.formats.readers.labelstudio.words import (
    CHOICES,
    CONFIDENCE,
    MODEL,
    NAME,
    OWN_KEYS,
    is_ours,
    siblings,
)
from core.formats.shared.findings import Findings
from core.formats.shared.json_text import load_json, objects, record_features, write_json_list
from core.formats.shared.label_sets import decided_labels, display_texts, image_column, sets_of
from core.formats.shared.mapping import ColumnMapping
from core.formats.shared.xml_text import quoted_attribute


def write(
    dataset: CandidateDataset,
    path: Path,
    mapping: ColumnMapping | None = None,
    resolution: Any = None,
) -> None:
    """Write import JSON, and the labelling config the project needs to show it."""
    if dataset.original is not None and dataset.original.format == NAME:
        write_json_list(path, _given_tasks(dataset, resolution))
        return
    display = display_texts(dataset)
    own = [key for key in display if key in OWN_KEYS or key.startswith(CONFIDENCE)]
    if own:
        raise ExportError("These columns clash with fields of this program.", repr(own), "Rename.")
    to_name, tag = _shown_field(display)
    siblings(path)[0].write_text(_config(dataset.label_names, to_name, tag), "utf-8")
    write_json_list(path, _tasks(dataset, display, to_name, resolution))


def _given_tasks(dataset: CandidateDataset, resolution: Any) -> Iterator[dict[str, Any]]:
    """Give the tasks of the file as they came, each with what was resolved as a prediction."""
    assert dataset.original is not None
    with dataset.original.opened() as path:
        tasks = load_json(path, Findings())
    is_min = "annotation_id" in tasks[0] and "data" not in tasks[0]
    rows = dataset.row_of
    for i, task in enumerate(tasks):
        row = rows.get(str(task.get("id", i)), -1) if is_min else i
        if resolution is None or not 0 <= row < dataset.n_instances:
            yield task
        elif is_min:
            names = sets_of(resolution.labels[row : row + 1], dataset.label_names)[0]
            yield {**task, "resolved": names, **_confidences(dataset, resolution, row)}
        else:
            yield _extended(task, dataset, resolution, row)


def _extended(
    task: dict[str, Any], dataset: CandidateDataset, resolution: Any, row: int
) -> dict[str, Any]:
    given = objects(task.get("annotations", task.get("completions")))
    results = [one for answer in given for one in objects(answer.get("result"))]
    shown = str(results[0].get("to_name", "text")) if results else "text"
    key = "completions" if "completions" in task else "annotations"
    return {
        **task,
        key: [*(task.get(key) or []), *_annotations(dataset, resolution, row, shown)],
        "predictions": [
            *(one for one in objects(task.get("predictions")) if not is_ours(one, task)),
            *_predictions(dataset, resolution, row, shown),
        ],
        "data": {**task["data"], **_confidences(dataset, resolution, row)},
    }


def _shown_field(display: dict[str, list[str]]) -> tuple[str, str]:
    image = image_column(display)
    texts = [key for key in ("text", *display) if key in display]
    return (image, "Image") if image is not None else ([*texts, "instance_id"][0], "Text")


def _config(label_names: Sequence[str], shown: str, tag: str) -> str:
    field_name = quoted_attribute(shown)
    choices = "".join(f"    <Choice value={quoted_attribute(name)}/>\n" for name in label_names)
    return (
        f"<View>\n  <{tag} name={field_name} value={quoted_attribute('$' + shown)}/>\n"
        f'  <Choices name="{CHOICES}" toName={field_name} choice="multiple">\n'
        f"{choices}  </Choices>\n</View>\n"
    )


def _tasks(
    dataset: CandidateDataset, display: dict[str, list[str]], to_name: str, resolution: Any
) -> Iterator[dict[str, Any]]:
    candidates = sets_of(dataset.candidates, dataset.label_names)
    truth = None if dataset.truth is None else sets_of(dataset.truth, dataset.label_names)
    for i, instance in enumerate(dataset.ids):
        data: dict[str, Any] = {"instance_id": instance}
        data |= {key: texts[i] for key, texts in display.items()}
        data |= {"candidates": candidates[i], **_confidences(dataset, resolution, i)}
        if truth is not None:
            data["truth"] = truth[i]
        data["features"] = record_features(dataset.features, i)
        # Data last: whoever looks at the beginning of the file sees that these are tasks.
        yield {
            "id": i + 1,
            "annotations": _annotations(dataset, resolution, i, to_name),
            "predictions": _predictions(dataset, resolution, i, to_name),
            "data": data,
        }


def _confidences(dataset: CandidateDataset, resolution: Any, row: int) -> dict[str, float]:
    if resolution is None:
        return {}
    return {
        f"{CONFIDENCE}{dataset.label_names[j]}": float(resolution.confidences[row, j])
        for j in np.flatnonzero(dataset.candidates[row]).tolist()
    }


def _predictions(
    dataset: CandidateDataset, resolution: Any, row: int, to_name: str
) -> list[dict[str, Any]]:
    """Return what the model resolved, and how sure it is of its verdicts on the candidates."""
    if resolution is None:
        return []
    labels, offered = resolution.labels[row] > 0, dataset.candidates[row] > 0
    sure = np.where(labels, resolution.confidences[row], 1 - resolution.confidences[row])[offered]
    names = [dataset.label_names[j] for j in np.flatnonzero(labels).tolist()]
    certainty = float(sure.mean()) if len(sure) else 1.0
    return [
        {"model_version": MODEL, "score": certainty, "result": [_result(names, to_name)]},
    ]


def _annotations(
    dataset: CandidateDataset, resolution: Any, row: int, to_name: str
) -> list[dict[str, Any]]:
    """Return one annotation per annotator and day: the labels decided to be true."""
    decided = decided_labels(dataset, resolution, row)
    return [_annotation(who, when, names, to_name) for (who, when), names in decided.items()]


def _annotation(annotator: str, date: str, names: list[str], to_name: str) -> dict[str, Any]:
    # Label Studio knows its users by number; any other name is kept as a remark.
    who = {"completed_by": int(annotator)} if annotator.isdecimal() else {}
    remark = {"meta": {"text": [f"decided by {annotator} on {date}"]}}
    flags = {"was_cancelled": False, "ground_truth": False}
    dates = {"created_at": date, "updated_at": date}
    return {**who, **flags, **dates, "result": [{**_result(names, to_name), **remark}]}


def _result(names: list[str], to_name: str) -> dict[str, Any]:
    where = {"id": "r1", "from_name": CHOICES, "to_name": to_name, "type": "choices"}
    return {**where, "value": {"choices": names}}
