"""Files as cloud services and picture tools write them, made small."""

import json
import random
from collections.abc import Callable
from typing import Any

from layouts import LABELS, Layout, N, crowd, lines, table
from wild_layouts import views

Rows = list[list[Any]]


def vertex_images(rng: random.Random) -> Layout:
    items = [
        {
            "imageGcsUri": f"gs://bucket/{k}.jpg",
            "classificationAnnotations": [
                {
                    "displayName": x,
                    "annotationResourceLabels": {
                        "aiplatform.googleapis.com/annotation_set_name": "1"
                    },
                }
                for x in i.labels
            ],
            "dataItemResourceLabels": {"aiplatform.googleapis.com/ml_use": "training"},
        }
        for k, i in enumerate(crowd())
    ]
    return Layout("vertex.jsonl", lines(items), N, 5, 0, has_features=False)


def automl_table(rng: random.Random) -> Layout:
    """AutoML's import table: no header, the split, the picture, one cell per label."""
    rows = [
        [("TRAIN", "TEST", "VALIDATION")[k % 3], f"gs://bucket/{k}.jpg", *i.labels]
        for k, i in enumerate(crowd())
    ]
    return Layout("automl.csv", table(rows), N, 5, 0, has_features=False)


def comprehend(rng: random.Random) -> Layout:
    """Amazon Comprehend's multi-label table: no header, labels first."""
    return Layout("comprehend.csv", table([["|".join(i.labels), i.text] for i in crowd()]), N, 5, 0)


def roboflow(rng: random.Random) -> Layout:
    """Roboflow's multi-class table: spaces behind the commas."""
    rows = [", ".join(["filename", *LABELS])]
    rows += [
        ", ".join([f"{k}_jpg.rf.{k * 7919:08x}.jpg", *(str(int(x in i.labels)) for x in LABELS)])
        for k, i in enumerate(crowd())
    ]
    return Layout("_classes.csv", "\n".join(rows) + "\n", N, 5, 0, has_features=False)


def sagemaker_workers(rng: random.Random) -> Layout:
    """Ground Truth's consolidation request: JSON of every worker inside the JSON."""
    items = [
        {
            "datasetObjectId": str(k),
            "dataObject": {"content": i.text},
            "annotations": [
                {
                    "workerId": f"private.us-east-1.{w}",
                    "annotationData": {
                        "content": json.dumps({"crowd-classifier-multi-select": {"labels": s}})
                    },
                }
                for w, s in i.answers.items()
            ],
        }
        for k, i in enumerate(crowd())
    ]
    return Layout("consolidation.json", json.dumps(items), N, 5, 4)


def ground_truth_single(rng: random.Random) -> Layout:
    items = []
    for k, i in enumerate(crowd(single=True)):
        x = i.labels[0]
        items.append(
            {
                "source-ref": f"s3://bucket/{k}.jpg",
                "job": LABELS.index(x),
                "job-metadata": {
                    "confidence": 0.94,
                    "job-name": "labeling-job/job",
                    "class-name": x,
                    "human-annotated": "yes",
                    "creation-date": "2020",
                    "type": "groundtruth/image-classification",
                },
            }
        )
    return Layout(
        "single.manifest",
        lines(items),
        N,
        len({i.labels[0] for i in crowd(single=True)}),
        0,
        has_features=False,
    )


def scale_tasks(rng: random.Random) -> Layout:
    items = [
        {
            "task_id": f"5f{k:04x}",
            "type": "categorization",
            "status": "completed",
            "params": {"attachment": i.text, "attachment_type": "text", "categories": list(LABELS)},
            "response": {"category": i.labels},
        }
        for k, i in enumerate(crowd())
    ]
    return Layout("scale.json", json.dumps(items), N, 5, 0)


def yolo_like(rng: random.Random) -> Layout:
    """A row per box in a picture."""
    rows: Rows = [["image_path", "x1", "y1", "x2", "y2", "class_name"]]
    for k, i in enumerate(crowd()):
        for x in i.labels:
            rows.append([f"{k}.jpg", *rng.choices(range(100), k=4), x])
    return Layout("retina.csv", table(rows), N, 5, 0, has_features=False)


def vindr(rng: random.Random) -> Layout:
    """VinDr's chest X-rays: a row per radiologist and finding."""
    rows: Rows = [["image_id", "class_name", "class_id", "rad_id", "x_min", "y_min"]]
    for k, _, w, s in views():
        for x in s:
            rows.append(
                [f"{k * 7919:016x}", x, LABELS.index(x), f"R{w[1:]}", rng.random(), rng.random()]
            )
    return Layout("vindr.csv", table(rows), N, 5, 4, has_features=False)


def label_names_beside_csv(rng: random.Random) -> Layout:
    """Open Images: a row per picture and label, without a value."""
    rows: Rows = [["ImageID", "LabelName"]]
    for k, i in enumerate(crowd()):
        for x in i.labels:
            rows.append([f"{k:08x}", f"/m/0{LABELS.index(x)}"])
    return Layout("oi.csv", table(rows), N, 5, 0, has_features=False)


def kili(rng: random.Random) -> Layout:
    items: list[dict[str, Any]] = []
    for i in crowd():
        said = [
            {
                "author": {"email": f"{who}@example.org", "id": f"user-{who}"},
                "jsonResponse": {"JOB_0": {"categories": [{"name": x} for x in labels]}},
                "labelType": "DEFAULT",
            }
            for who, labels in i.answers.items()
        ]
        items.append({"id": f"ck{i.id}", "content": i.text, "labels": said})
    return Layout("kili.json", json.dumps(items), N, 5, 4)


def supervisely(rng: random.Random) -> Layout:
    items = [
        {
            "name": f"{i.id}.jpg",
            "tags": [{"name": x, "value": None, "labelerLogin": "max"} for x in i.labels],
            "objects": [],
        }
        for i in crowd()
    ]
    return Layout("supervisely.json", json.dumps(items), N, 5, 0, has_features=False)


def superannotate(rng: random.Random) -> Layout:
    items = [
        {
            "metadata": {"name": f"{i.id}.jpg", "width": 640, "status": "Completed"},
            "instances": [{"type": "tag", "className": x} for x in i.labels],
            "tags": [],
        }
        for i in crowd()
    ]
    return Layout("superannotate.json", json.dumps(items), N, 5, 0, has_features=False)


def tags_with_strength(rng: random.Random) -> Layout:
    """Last.fm: pairs of a tag and how strong it is, as text."""
    items: list[dict[str, Any]] = []
    for i in crowd():
        tags = [[x, str(rng.randint(40, 100))] for x in i.labels]
        items.append({"track_id": f"TR{i.id}", "title": i.text, "tags": tags, "similars": []})
    return Layout("lastfm.jsonl", lines(items), N, 5, 0)


CLOUD: tuple[Callable[[random.Random], Layout], ...] = (
    *(vertex_images, automl_table, comprehend, roboflow, sagemaker_workers, ground_truth_single),
    *(scale_tasks, yolo_like, vindr, label_names_beside_csv, kili, supervisely, superannotate),
    tags_with_strength,
)
