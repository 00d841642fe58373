"""Label Studio: tasks out. The file's own tasks with ours added, or import JSON made anew."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np

from core.data.dataset import CandidateDataset
from core.formats.readers.labelstudio.words import (
    CHOICES,
    CONFIDENCE,
    DATA,
    MODEL,
    NAME,
    OWN_KEYS,
    is_ours,
    siblings,
)
from core.formats.shared.findings import Findings
from core.formats.shared.json_text import load_json, objects, record_features, write_json_list
from core.formats.shared.label_sets import (
    decided_columns,
    decided_labels,
    display_texts,
    image_column,
    safe_keys,
    sets_of,
)
from core.formats.shared.mapping import ColumnMapping
from core.formats.shared.xml_text import quoted_attribute

LOCAL = "/data/local-files/?d="  # what its server makes of a path below its document root
ADDRESS = re.compile(r"\A([a-z][a-z0-9+.-]*:|/data/)", re.IGNORECASE)
HALF = 0.5

Users = Mapping[str, int | str]
"""Who annotators are there, by number or e-mail address; who is not in it stays a remark."""


def write(
    dataset: CandidateDataset,
    path: Path,
    mapping: ColumnMapping | None = None,
    resolution: Any = None,
    *,
    local_files: bool = False,
    users: Users | None = None,
) -> None:
    """Write import JSON, and the labelling config the project needs to show it."""
    if dataset.original is not None and dataset.original.holds(NAME, ".json"):
        write_json_list(path, _given_tasks(dataset, resolution, users or {}))
        return
    shown = display_texts(dataset)
    image = image_column(shown)
    if local_files and image is not None:
        shown[image] = [
            text if ADDRESS.match(text) else LOCAL + quote(text) for text in shown[image]
        ]
    keys = safe_keys(shown, {*OWN_KEYS, *_confidence_keys(tuple(dataset.label_names))})
    display = {keys[name]: texts for name, texts in shown.items()}
    to_name, tag = _shown_field(display, None if image is None else keys[image])
    siblings(path)[0].write_text(_config(dataset.label_names, to_name, tag), "utf-8")
    write_json_list(path, _tasks(dataset, display, to_name, resolution, users or {}))


write_local_files = partial(write, local_files=True)
"""For pictures that a server of Label Studio reads from its own disk."""


def _given_tasks(
    dataset: CandidateDataset, resolution: Any, users: Users
) -> Iterator[dict[str, Any]]:
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
            yield _extended(task, dataset, resolution, row, users)


def _extended(
    task: dict[str, Any], dataset: CandidateDataset, resolution: Any, row: int, users: Users
) -> dict[str, Any]:
    given = objects(task.get("annotations", task.get("completions")))
    results = [one for answer in given for one in objects(answer.get("result"))]
    shown = str(results[0].get("to_name", "text")) if results else "text"
    key = "completions" if "completions" in task else "annotations"
    return {
        **task,
        key: [*(task.get(key) or []), *_annotations(dataset, resolution, row, shown, users)],
        "predictions": [
            *(one for one in objects(task.get("predictions")) if not is_ours(one, task)),
            *_predictions(dataset, resolution, row, shown),
        ],
        "data": {**task["data"], **_confidences(dataset, resolution, row)},
    }


def _shown_field(display: dict[str, list[str]], image: str | None) -> tuple[str, str]:
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
    dataset: CandidateDataset,
    display: dict[str, list[str]],
    to_name: str,
    resolution: Any,
    users: Users,
) -> Iterator[dict[str, Any]]:
    candidates = sets_of(dataset.candidates, dataset.label_names)
    truth = None if dataset.truth is None else sets_of(dataset.truth, dataset.label_names)
    for i, instance in enumerate(dataset.ids):
        data: dict[str, Any] = {"instance_id": instance, DATA: dataset.fingerprint}
        data |= {key: texts[i] for key, texts in display.items()}
        data |= {"candidates": candidates[i], **_confidences(dataset, resolution, i)}
        if truth is not None:
            data["truth"] = truth[i]
        data["features"] = record_features(dataset.features, i)
        # Data last: whoever looks at the beginning of the file sees that these are tasks.
        yield {
            "id": i + 1,
            "annotations": _annotations(dataset, resolution, i, to_name, users),
            "predictions": _predictions(dataset, resolution, i, to_name),
            "data": data,
        }


def _confidences(dataset: CandidateDataset, resolution: Any, row: int) -> dict[str, float]:
    if resolution is None:
        return {}
    keys = _confidence_keys(tuple(dataset.label_names))
    return {
        keys[j]: float(resolution.confidences[row, j])
        for j in np.flatnonzero(dataset.candidates[row]).tolist()
    }


@lru_cache(8)
def _confidence_keys(label_names: tuple[str, ...]) -> list[str]:
    return list(safe_keys(CONFIDENCE + name for name in label_names).values())


def _predictions(
    dataset: CandidateDataset, resolution: Any, row: int, to_name: str
) -> list[dict[str, Any]]:
    """Return what the model says, not what people decided, and how sure it is of the candidates."""
    offered = dataset.candidates[row] > 0
    if resolution is None or not offered.any():
        return []
    labels, decided = resolution.labels[row] > 0, decided_columns(resolution, row)
    labels[decided] = resolution.confidences[row, decided] >= HALF
    sure = np.where(labels, resolution.confidences[row], 1 - resolution.confidences[row])[offered]
    names = [dataset.label_names[j] for j in np.flatnonzero(labels).tolist()]
    result = [_result(names, to_name)] if names else []
    return [{"model_version": MODEL, "score": float(sure.mean()), "result": result}]


def _annotations(
    dataset: CandidateDataset, resolution: Any, row: int, to_name: str, users: Users
) -> list[dict[str, Any]]:
    """Return one annotation per annotator and day: the labels decided to be true."""
    decided = decided_labels(dataset, resolution, row)
    return [
        {**_annotation(who, when, names, to_name), **_completed_by(users.get(who))}
        for (who, when), names in decided.items()
    ]


def _completed_by(user: int | str | None) -> dict[str, Any]:
    """Name the user; a person who is none there must not be named, or nothing is imported."""
    if user is None:
        return {}
    return {"completed_by": {"email": user} if isinstance(user, str) else user}


def _annotation(annotator: str, date: str, names: list[str], to_name: str) -> dict[str, Any]:
    # Its users are numbers that we do not know: who decided is kept as a remark.
    said = json.dumps(sorted(names), ensure_ascii=False)
    remark = {"meta": {"text": [f"decided by {annotator} on {date}", said]}}
    flags = {"was_cancelled": False, "ground_truth": False}
    dates = {"created_at": date, "updated_at": date}
    return {**flags, **dates, "result": [{**_result(names, to_name), **remark}]}


def _result(names: list[str], to_name: str) -> dict[str, Any]:
    where = {"id": "r1", "from_name": CHOICES, "to_name": to_name, "type": "choices"}
    return {**where, "value": {"choices": names}}
