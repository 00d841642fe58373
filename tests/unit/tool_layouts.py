"""Files as labelling tools for texts write them, made small."""

import json
import random
from collections.abc import Callable
from typing import Any

from layouts import LABELS, Layout, N, crowd, lines, table
from wild_layouts import views

Rows = list[list[Any]]


def label_studio(rng: random.Random) -> Layout:
    tasks = []
    for k, item in enumerate(crowd()):
        given = [
            {
                "id": 10 * k + int(w[1:]),
                "completed_by": {"id": int(w[1:]), "email": f"{w}@example.org"},
                "was_cancelled": False,
                "result": [choice(said)],
            }
            for w, said in item.answers.items()
        ]
        given.append(
            {
                "completed_by": {"id": 9, "email": "r9@example.org"},
                "was_cancelled": True,
                "result": [],
            }
        )
        guesses = [
            {"model_version": m, "score": 0.5, "result": [choice(item.labels[:1])]}
            for m in ("m1", "m2")
        ]
        tasks.append(
            {"id": k, "annotations": given, "predictions": guesses, "data": {"text": item.text}}
        )
    return Layout("project.json", json.dumps(tasks), N, 5, 6)


def choice(names: list[str]) -> dict[str, Any]:
    return {"from_name": "c", "to_name": "t", "type": "choices", "value": {"choices": names}}


def label_studio_min(rng: random.Random) -> Layout:
    records: list[dict[str, Any]] = []
    for k, item in enumerate(crowd()):
        for w, said in item.answers.items():
            chosen: Any = {"choices": said} if len(said) > 1 else said[0]
            about = {"annotator": int(w[1:]), "annotation_id": len(records), "lead_time": 2.5}
            records.append({"id": k, "text": item.text, "emotion": chosen, **about})
    return Layout("min.json", json.dumps(records), N, 5, 4)


def label_studio_table(rng: random.Random) -> Layout:
    rows: list[list[Any]] = [["annotation_id", "annotator", "choice", "created_at", "id", "text"]]
    for k, item in enumerate(crowd()):
        for who, said in item.answers.items():
            chosen = json.dumps({"choices": said}) if len(said) > 1 else said[0]
            rows.append([len(rows), int(who[1:]), chosen, "2026-01-01T10:00:00Z", k, item.text])
    return Layout("project.csv", table(rows), N, 5, 4)


def prodigy(rng: random.Random) -> Layout:
    records = []
    for k, item in enumerate(crowd()):
        for who, said in item.answers.items():
            about = {"_input_hash": k * 7919 - 999, "_task_hash": k * 104729, "answer": "accept"}
            options = [{"id": x, "text": x} for x in LABELS]
            records.append(
                {
                    "text": item.text,
                    **about,
                    "options": options,
                    "accept": said,
                    "_annotator_id": f"db-{who}",
                }
            )
    return Layout("prodigy.jsonl", lines(records), N, 5, 4)


def doccano(rng: random.Random) -> Layout:
    records = [
        {
            "id": k,
            "text": i.text,
            "annotations": [
                {"label": x, "user": int(w[1:])} for w, s in i.answers.items() for x in s
            ],
        }
        for k, i in enumerate(crowd())
    ]
    return Layout("doccano.jsonl", lines(records), N, 5, 4)


def argilla(rng: random.Random) -> Layout:
    records = [
        {
            "id": i.id,
            "text": i.text,
            "labels.responses": list(i.answers.values()),
            "labels.responses.users": list(i.answers),
            "labels.responses.status": ["submitted"] * len(i.answers),
        }
        for i in crowd()
    ]
    return Layout("argilla.json", json.dumps(records), N, 5, 4)


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


TOOLS: tuple[Callable[[random.Random], Layout], ...] = (
    *(label_studio, label_studio_min, label_studio_table, prodigy, doccano, argilla, fasttext),
    *(spacy_cats, dataturks, lighttag, labelbox, argilla_responses, per_annotator_objects),
    *(flat_annotator_objects, brat_table, ner_spans, doccano_seq, flags_and_meta),
    *(labels_and_marks, toxic_jsonl),
)
