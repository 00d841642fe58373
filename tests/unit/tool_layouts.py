"""Files as labelling tools and surveys write them, made small: what their readers must find.

As in `wild_layouts`, each is named like the file it stands for.
"""

import json
import random
from collections.abc import Callable
from typing import Any

from layouts import LABELS, Layout, N, crowd, lines, table
from wild_layouts import views

Rows = list[list[Any]]


def fasttext(rng: random.Random) -> Layout:
    rows = [" ".join([*(f"__label__{name}" for name in i.labels), i.text]) for i in crowd()]
    return Layout("train.txt", "\n".join(rows) + "\n", N, 5, 0)


def spacy_cats(rng: random.Random) -> Layout:
    items = [{"text": i.text, "cats": {x: float(x in i.labels) for x in LABELS}} for i in crowd()]
    return Layout("textcat.jsonl", lines(items), N, 5, 0)


def dataturks(rng: random.Random) -> Layout:
    items = [
        {"content": i.text, "annotation": {"labels": i.labels, "note": ""}, "extras": None}
        for i in crowd()
    ]
    return Layout("dataturks.json", lines(items), N, 5, 0)


def lighttag(rng: random.Random) -> Layout:
    items = [
        {
            "example_id": f"{k:032x}",
            "content": i.text,
            "metadata": {},
            "annotations": [],
            "classifications": [
                {
                    "classname": x,
                    "classification_id": f"c{k}{w}{x}",
                    "annotator_id": int(w[1:]),
                    "annotator": f"{w}@x.io",
                }
                for w, s in i.answers.items()
                for x in s
            ],
        }
        for k, i in enumerate(crowd())
    ]
    doc = {
        "dataset": {"name": "a", "id": "1"},
        "schema": {"id": "3", "name": "b"},
        "examples": items,
        "annotators": [{"id": 1}],
    }
    return Layout("lighttag.json", json.dumps(doc), N, 5, 4)


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


def labelbox(rng: random.Random) -> Layout:
    items = []
    for k, i in enumerate(crowd()):
        labels = [
            {
                "id": f"l{k}{w}",
                "label_details": {"created_by": f"{w}@x.io"},
                "annotations": {
                    "objects": [],
                    "relationships": [],
                    "classifications": [
                        {
                            "feature_id": "a",
                            "name": "Emotion",
                            "value": "emotion",
                            "checklist_answers": [
                                {"feature_id": "b", "name": x, "value": x} for x in s
                            ],
                        }
                    ],
                },
            }
            for w, s in i.answers.items()
        ]
        items.append(
            {
                "data_row": {"id": f"cl{k}", "external_id": f"{k}.txt", "row_data": i.text},
                "media_attributes": {"asset_type": "text"},
                "projects": {"clp1": {"name": "Tags", "labels": labels}},
            }
        )
    return Layout("labelbox.ndjson", lines(items), N, 5, 4)


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


def google_form(rng: random.Random) -> Layout:
    """Google Forms: a row per answer, boxes ticked joined by commas."""
    rows: Rows = [
        [
            "Timestamp",
            "Email Address",
            "Text number",
            "What is in this text? (select all that apply)",
        ]
    ]
    for k, _, w, s in views():
        rows.append(["2024/01/05 10:00:00 AM GMT+1", f"{w}@uni.de", k + 1, ", ".join(s)])
    return Layout("Form Responses 1.csv", table(rows), N, 5, 4, has_features=False)


def ms_form(rng: random.Random) -> Layout:
    """Microsoft Forms: each choice ends with a semicolon."""
    rows: Rows = [
        ["ID", "Start time", "Completion time", "Email", "Name", "Text", "Which emotions?"]
    ]
    for k, i in enumerate(crowd()):
        rows.append(
            [
                k + 1,
                "1/5/24 10:00:00",
                "1/5/24 10:01:00",
                "anonymous",
                "",
                i.text,
                "".join(f"{x};" for x in i.labels),
            ]
        )
    return Layout("forms.csv", table(rows), N, 5, 0)


def kobo(rng: random.Random) -> Layout:
    """KoBo's select_multiple: the choices in one cell, and a column of 0/1 for each."""
    rows: Rows = [["_id", "note", "emotion", *(f"emotion/{x}" for x in LABELS), "_submission_time"]]
    for k, i in enumerate(crowd()):
        rows.append(
            [
                k + 100,
                i.text,
                " ".join(i.labels),
                *(int(x in i.labels) for x in LABELS),
                "2024-01-01T10:00:00",
            ]
        )
    return Layout("kobo.csv", table(rows, ";"), N, 5, 0)


def redcap(rng: random.Random) -> Layout:
    rows: Rows = [["record_id", "note", *(f"emotion___{x}" for x in LABELS), "form_complete"]]
    for k, i in enumerate(crowd()):
        rows.append(
            [
                k + 1,
                i.text,
                *("Checked" if x in i.labels else "Unchecked" for x in LABELS),
                "Complete",
            ]
        )
    return Layout("redcap.csv", table(rows), N, 5, 0)


def limesurvey(rng: random.Random) -> Layout:
    rows: Rows = [["id", "submitdate", "text", *(f"emo[{x}]" for x in LABELS)]]
    for k, i in enumerate(crowd()):
        rows.append(
            [k + 1, "2024-01-01 10:00:00", i.text, *("Y" if x in i.labels else "" for x in LABELS)]
        )
    return Layout("lime.csv", table(rows), N, 5, 0)


def ticked_names(rng: random.Random) -> Layout:
    """SurveyMonkey: a column per option, which repeats its name where it was ticked."""
    rows: Rows = [["Respondent ID", "Open-Ended Response", *LABELS]]
    for k, i in enumerate(crowd()):
        rows.append([11400 + k, i.text, *(x if x in i.labels else "" for x in LABELS)])
    return Layout("monkey.csv", table(rows), N, 5, 0)


def turk_labels(rng: random.Random) -> Layout:
    """Mechanical Turk's crowd-classifier-multi-select."""
    rows: Rows = [
        [
            "HITId",
            "AssignmentId",
            "WorkerId",
            "AssignmentStatus",
            "WorkTimeInSeconds",
            "Input.text",
            "Answer.category.labels",
        ]
    ]
    for k, i, w, s in views():
        rows.append(
            [
                f"3H{k}",
                f"A{len(rows)}",
                f"W{w}",
                "Submitted",
                rng.randint(5, 99),
                i.text,
                json.dumps(s),
            ]
        )
    return Layout("Batch_3.csv", table(rows), N, 5, 4)


def turk_nested(rng: random.Random) -> Layout:
    rows: Rows = [
        [
            "HITId",
            "WorkerId",
            "Input.text",
            "Answer.comment",
            *(f"Answer.emotion.{x}" for x in LABELS),
        ]
    ]
    for k, i, w, s in views():
        rows.append(
            [f"3H{k}", f"W{w}", i.text, "", *("TRUE" if x in s else "FALSE" for x in LABELS)]
        )
    return Layout("Batch_4.csv", table(rows), N, 5, 4)


def turk_sparse(rng: random.Random) -> Layout:
    """Checkboxes that are written only when ticked."""
    rows: Rows = [["HITId", "WorkerId", "Input.text", *(f"Answer.{x}" for x in LABELS)]]
    for k, i, w, s in views():
        rows.append([f"3H{k}", f"W{w}", i.text, *("on" if x in s else "" for x in LABELS)])
    return Layout("Batch_5.csv", table(rows), N, 5, 4)


def argilla_responses(rng: random.Random) -> Layout:
    """Argilla 2: `records.to_json`, responses per question with their users."""
    items = [
        {
            "id": i.id,
            "status": "completed",
            "fields": {"text": i.text},
            "metadata": {},
            "suggestions": {},
            "vectors": {},
            "responses": {
                "emotion": [{"value": s, "user_id": f"8d00-{w}"} for w, s in i.answers.items()]
            },
        }
        for i in crowd()
    ]
    return Layout("argilla2.json", json.dumps(items), N, 5, 4)


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


def per_annotator_objects(rng: random.Random) -> Layout:
    """A JSON line per comment, with what each annotator said of every label."""
    items = [
        {
            "comment_id": k,
            "comment": i.text,
            "annotations": [
                {"worker_id": w, "labels": {x: int(x in s) for x in LABELS}}
                for w, s in i.answers.items()
            ],
        }
        for k, i in enumerate(crowd())
    ]
    return Layout("annotators.jsonl", lines(items), N, 5, 4)


def flat_annotator_objects(rng: random.Random) -> Layout:
    items = [
        {
            "comment_id": k,
            "comment_text": i.text,
            "annotations": [
                {"worker_id": w, **{x: int(x in s) for x in LABELS}} for w, s in i.answers.items()
            ],
        }
        for k, i in enumerate(crowd())
    ]
    return Layout("flat_annotators.jsonl", lines(items), N, 5, 4)


def brat_table(rng: random.Random) -> Layout:
    """Spans of documents, as brat's are when they are put into a table."""
    rows: Rows = [["doc_id", "annotator", "span_id", "label", "start", "end", "span_text"]]
    for k, i, w, s in views():
        for n, x in enumerate(s):
            rows.append([f"doc{k:03d}", w, f"T{n + 1}", x, 5 * n, 5 * n + 4, i.text.split()[n]])
    return Layout("spans.csv", table(rows), N, 5, 4, has_features=False)


def ner_spans(rng: random.Random) -> Layout:
    """What is marked in a text is nobody's answer about it."""
    items = [
        {
            "id": k,
            "text": i.text,
            "entities": [
                {"id": n, "label": x, "start_offset": n, "end_offset": n + 3}
                for n, x in enumerate(i.labels * 2)
            ],
        }
        for k, i in enumerate(crowd())
    ]
    return Layout("spans.jsonl", lines(items), N, 5, 0)


def doccano_seq(rng: random.Random) -> Layout:
    """doccano's spans as lists: where they begin and end, and their label."""
    items = [
        {"id": k, "text": i.text, "label": [[0, 3, x] for x in i.labels]}
        for k, i in enumerate(crowd())
    ]
    return Layout("seq.jsonl", lines(items), N, 5, 0)


def flags_and_meta(rng: random.Random) -> Layout:
    """An object beside 0/1 columns is no set of labels."""
    items = [
        {
            "text": i.text,
            "meta": {f"m{rng.randint(0, 4)}": rng.randint(0, 9), "z": 1},
            **{x: int(x in i.labels) for x in LABELS},
        }
        for i in crowd()
    ]
    return Layout("flags.jsonl", lines(items), N, 5, 0)


def labels_and_marks(rng: random.Random) -> Layout:
    """Ticks beside a column of labels are none."""
    rows: Rows = [["id", "text", "labels", "reviewed", "starred"]] + [
        [i.id, i.text, "|".join(i.labels), "x" if k % 3 else "", "x" if k % 2 else ""]
        for k, i in enumerate(crowd())
    ]
    return Layout("marks.csv", table(rows), N, 5, 0)


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


def toxic_jsonl(rng: random.Random) -> Layout:
    """Answers of workers in a list, with an object about each of them."""
    items = [
        {
            "id": k,
            "comment_text": i.text,
            "annotators": [
                {
                    "worker_id": w,
                    "toxic": int("anger" in s),
                    "obscene": int("fear" in s),
                    "demographics": {"gender": "f"},
                }
                for w, s in i.answers.items()
            ],
        }
        for k, i in enumerate(crowd())
    ]
    return Layout("tox.jsonl", lines(items), N, 2, 4)


def label_names_beside_csv(rng: random.Random) -> Layout:
    """Open Images: a row per picture and label, without a value."""
    rows: Rows = [["ImageID", "LabelName"]]
    for k, i in enumerate(crowd()):
        for x in i.labels:
            rows.append([f"{k:08x}", f"/m/0{LABELS.index(x)}"])
    return Layout("oi.csv", table(rows), N, 5, 0, has_features=False)


TOOLS: tuple[Callable[[random.Random], Layout], ...] = (
    fasttext,
    spacy_cats,
    dataturks,
    lighttag,
    vertex_images,
    automl_table,
    comprehend,
    roboflow,
    labelbox,
    sagemaker_workers,
    ground_truth_single,
    google_form,
    ms_form,
    kobo,
    redcap,
    limesurvey,
    ticked_names,
    turk_labels,
    turk_nested,
    turk_sparse,
    argilla_responses,
    scale_tasks,
    per_annotator_objects,
    flat_annotator_objects,
    brat_table,
    ner_spans,
    doccano_seq,
    flags_and_meta,
    labels_and_marks,
    yolo_like,
    vindr,
    toxic_jsonl,
    label_names_beside_csv,
)
