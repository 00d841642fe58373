"""Files as people have them: one small made file of every layout, and what must come out of it.

The same little crowd in all of them: items with a text, five labels, raters of different care. A
layout states how many instances, labels and sources a reader must find.
"""

import csv
import io
import json
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

LABELS = ("anger", "fear", "joy", "love", "surprise")
RATERS = ("r1", "r2", "r3", "r4")
WORDS = (
    "the of a boat sea rain wind light house dog old red cold song night river stone bread".split()
)
N = 40


@dataclass(frozen=True)
class Layout:
    """A file's name, its text, and what is in it."""

    name: str
    text: str
    n_instances: int
    n_labels: int
    n_sources: int
    beside: dict[str, str] = field(default_factory=dict)
    has_features: bool = True

    def write(self, folder: Path) -> Path:
        for name, text in self.beside.items():
            (folder / name).write_text(text, encoding="utf-8")
        path = folder / self.name
        path.write_text(self.text, encoding="utf-8")
        return path


@dataclass(frozen=True)
class Item:
    id: str
    text: str
    answers: dict[str, list[str]]  # by rater; who is missing was not asked

    @property
    def labels(self) -> list[str]:
        return sorted({name for said in self.answers.values() for name in said})


def crowd(
    n: int = N, seed: int = 0, raters: tuple[str, ...] = RATERS, single: bool = False
) -> list[Item]:
    """Return items judged by some of the raters; every label and rater occurs."""
    rng = random.Random(seed)
    items = []
    for i in range(n):
        text = " ".join(rng.choices(WORDS, k=rng.randint(6, 12)))
        asked = sorted(rng.sample(raters, 3))
        true = LABELS[i % len(LABELS)]
        answers = {}
        for who in asked:
            said = {true} if rng.random() < 0.8 else {rng.choice(LABELS)}
            if not single and rng.random() < 0.3:
                said.add(rng.choice(LABELS))
            answers[who] = sorted(said)
        items.append(Item(f"i{i:03d}", text, answers))
    return items


def table(rows: list[list[Any]], separator: str = ",") -> str:
    out = io.StringIO()
    csv.writer(out, delimiter=separator, lineterminator="\n").writerows(rows)
    return out.getvalue()


def lines(records: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(one) + "\n" for one in records)


def rater_rows_one_hot() -> Layout:
    """As GoEmotions' raw files: a row per rater, 0/1 per label, ids that are no features."""
    rows: list[list[Any]] = [
        ["text", "id", "author", "link_id", "created_utc", "rater_id", "very_unclear", *LABELS]
    ]
    for k, item in enumerate(crowd()):
        for who, said in item.answers.items():
            flags = [int(name in said) for name in LABELS]
            about = [item.text, item.id, f"u{k % 7}", f"t3_{k % 5}", 1.5e9 + k, int(who[1:])]
            rows.append([*about, k % 9 == 0, *flags])
    random.Random(1).shuffle(body := rows[1:])
    return Layout("rater_rows.csv", table([rows[0], *body]), N, 5, 4)


def rater_rows_sets() -> Layout:
    rows: list[list[Any]] = [["item_id", "text", "annotator", "labels", "seconds"]]
    for item in crowd():
        for who, said in item.answers.items():
            rows.append([item.id, item.text, who, ";".join(said), len(rows) * 3 % 17])
    return Layout("rater_sets.csv", table(rows), N, 5, 4)


def worker_task_label() -> Layout:
    """As crowd-kit has it: task, worker, label; several rows where somebody named several."""
    rows: list[list[Any]] = [["task", "worker", "label"]]
    rows += [[i.id, who, name] for i in crowd() for who, said in i.answers.items() for name in said]
    return Layout("crowd.tsv", table(rows, "\t"), N, 5, 4, has_features=False)


def toxic_annotations() -> Layout:
    """As the Wikipedia comments: rev_id, worker_id, floats of 0 and 1; no text in the file."""
    rows: list[list[Any]] = [["rev_id", "worker_id", *(f"{name}_attack" for name in LABELS)]]
    for k, item in enumerate(crowd()):
        for who, said in item.answers.items():
            rows.append([37675 + 13 * k, int(who[1:]) + 1000, *(float(x in said) for x in LABELS)])
    return Layout("attack_annotations.tsv", table(rows, "\t"), N, 5, 4, has_features=False)


def long_with_value() -> Layout:
    rows: list[list[Any]] = [["id", "rater", "label", "value", "text"]]
    for item in crowd():
        for who, said in item.answers.items():
            rows += [[item.id, who, name, int(name in said), item.text] for name in LABELS]
    return Layout("long.csv", table(rows), N, 5, 4)


def wide_columns() -> Layout:
    """As ConvAbuse: a column per annotator and label; empty was not asked, `0, 1` asked twice."""
    header = ["example_id", "text", *(f"Annotator{k}_{x}" for k in range(1, 5) for x in LABELS)]
    rows: list[list[Any]] = [header]
    for k, item in enumerate(crowd()):
        cells = []
        for who in RATERS:
            said = item.answers.get(who)
            cells += ["" if said is None else int(name in said) for name in LABELS]
        if k == 3:
            cells = ["0, 1" if cell == 1 else cell for cell in cells]
        rows.append([f"{k}.0", item.text, *cells])
    return Layout("wide.csv", table(rows), N, 5, 4)


def annotator_columns() -> Layout:
    rows: list[list[Any]] = [["id", "text", *(f"annotator_{who[1:]}" for who in RATERS)]]
    for item in crowd():
        cells = [",".join(item.answers[w]) if w in item.answers else "" for w in RATERS]
        rows.append([item.id, item.text, *cells])
    return Layout("annotators.csv", table(rows), N, 5, 4)


def model_lists() -> Layout:
    """Labels of several models beside each other, as lists."""
    records = [
        {
            "id": i.id,
            "text": i.text,
            **{f"model_{'abcd'[k]}": i.answers.get(who, []) for k, who in enumerate(RATERS)},
        }
        for i in crowd()
    ]
    return Layout("models.jsonl", lines(records), N, 5, 4)


def model_probabilities() -> Layout:
    rng = random.Random(2)
    models = ("model_a", "model_b", "model_c")
    rows: list[list[Any]] = [["id", "text", *(f"{m}_{x}" for m in models for x in LABELS)]]
    for item in crowd():
        cells = []
        for who in RATERS[:3]:
            said = item.answers.get(who, item.labels)
            cells += [
                round(rng.uniform(0.5, 1) if x in said else rng.uniform(0, 0.49), 3) for x in LABELS
            ]
        rows.append([item.id, item.text, *cells])
    return Layout("probabilities.csv", table(rows), N, 5, 3)


def lists_of_lists() -> Layout:
    records = [{"id": i.id, "text": i.text, "labels": list(i.answers.values())} for i in crowd()]
    return Layout("lists.jsonl", lines(records), N, 5, 3)


def one_label_each() -> Layout:
    """As SNLI: a list with one label per annotator, who have no names."""
    items = crowd(single=True)
    records = [
        {
            "pairID": i.id,
            "sentence1": i.text,
            "sentence2": i.text[::-1],
            "annotator_labels": [s[0] for s in i.answers.values()],
        }
        for i in items
    ]
    return Layout("snli.jsonl", lines(records), N, 5, 3)


def parallel_lists() -> Layout:
    """As Le-Wi-Di: `annotations` and `annotators`, comma lists of one length."""
    found = {
        str(k): {
            "text": i.text,
            "annotators": ",".join(f"Ann{w[1:]}" for w in i.answers),
            "annotations": ",".join(said[0] for said in i.answers.values()),
            "number of annotations": len(i.answers),
            "lang": "en",
        }
        for k, i in enumerate(crowd(single=True))
    }
    return Layout("md.json", json.dumps(found, indent=1), N, 5, 4)


def keyed_by_source() -> Layout:
    found = {
        str(k * 31 + 9): {
            "text": {"context": i.text, "statement": " ".join(i.text.split()[:4]) + " or not"},
            "annotations": {w: ",".join(said) for w, said in i.answers.items()},
            "soft_label": {name: {"0": 0.5, "1": 0.5} for name in LABELS},
            "split": "dev",
        }
        for k, i in enumerate(crowd())
    }
    return Layout("varierr.json", json.dumps(found), N, 5, 4)


def keyed_annotators() -> Layout:
    """As HateXplain: objects by id, each with a list of annotators who have a label."""
    found = {
        f"{k}_gab": {
            "post_id": f"{k}_gab",
            "annotators": [
                {"label": said[0], "annotator_id": int(w[1:]), "target": ["None"]}
                for w, said in i.answers.items()
            ],
            "rationales": [[0, 1, 0]],
            "post_tokens": i.text.split(),
        }
        for k, i in enumerate(crowd(single=True))
    }
    return Layout("hate.json", json.dumps(found), N, 5, 4)


def objects_of_lists() -> Layout:
    """As the same set is on the hub: one object with a list per field."""
    records = [
        {
            "id": i.id,
            "annotators": {
                "label": [said[0] for said in i.answers.values()],
                "annotator_id": [int(w[1:]) for w in i.answers],
                "target": [["None"] for _ in i.answers],
            },
            "post_tokens": i.text.split(),
        }
        for i in crowd(single=True)
    ]
    return Layout("hub.jsonl", lines(records), N, 5, 4)


def lists_in_a_table() -> Layout:
    """Lists of lists as Python writes them into a CSV file."""
    rows: list[list[Any]] = [["id", "text", "labels"]]
    rows += [[i.id, i.text, str(list(i.answers.values()))] for i in crowd()]
    return Layout("python_lists.csv", table(rows), N, 5, 3)


def yes_or_no_of_annotators() -> Layout:
    """As Le-Wi-Di's agreement sets: 1 or 0 of each annotator, in lists of one length."""
    found = {
        str(k): {
            "annotation task": "offence",
            "text": i.text,
            "hard_label": "0",
            "annotations": ",".join(str(int("anger" in s)) for s in i.answers.values()),
            "annotators": ",".join(f"Ann{w[1:]}" for w in i.answers),
        }
        for k, i in enumerate(crowd())
    }
    return Layout("agreement.json", json.dumps(found), N, 2, 4)


def label_counts() -> Layout:
    """As ChaosNLI: how many of a hundred chose each label."""
    rng = random.Random(3)
    records = []
    for k in range(N):
        counts = dict.fromkeys(rng.sample("enc", rng.choice((2, 3))), 0)
        for _ in range(20):
            counts[rng.choice(list(counts))] += 1
        text = " ".join(rng.choices(WORDS, k=8))
        example = {"premise": text, "hypothesis": text + " too", "source": "snli"}
        about = {"uid": f"x{k}", "label_counter": counts, "majority_label": "e", "entropy": 0.3}
        records.append({**about, "label_dist": [0.2, 0.8, 0.0], "example": example})
    return Layout("chaos.jsonl", lines(records), N, 3, 20)


def headerless_numbers() -> Layout:
    """As GoEmotions: no header; text, class numbers, id; the names in a file beside it."""
    rows = [
        [i.text, ",".join(str(LABELS.index(x)) for x in i.labels), f"e{k:05x}z"]
        for k, i in enumerate(crowd())
    ]
    names = {"emotions.txt": "\n".join(LABELS) + "\n", "notes.txt": "made by hand\n"}
    return Layout("dev.tsv", table(rows, "\t"), N, 5, 0, names)


def headerless_tags() -> Layout:
    rows = [[f"{k:04d}.wav", ",".join(i.labels)] for k, i in enumerate(crowd())]
    return Layout("clips.csv", table(rows), N, 5, 0, has_features=False)


def no_label_words() -> Layout:
    words = ("-", "none", "UNKNOWN", "")
    rows: list[list[Any]] = [["file", "tags"]]
    rows += [
        [f"{k}.jpg", words[k % 4] if k < 8 else "|".join(i.labels)] for k, i in enumerate(crowd())
    ]
    return Layout("tags.csv", table(rows), N, 5, 0, has_features=False)


def ragged_tags() -> Layout:
    text = "file,text,tags\n"
    text += "".join(",".join([f"{k}.jpg", i.text, *i.labels]) + "\n" for k, i in enumerate(crowd()))
    return Layout("ragged.csv", text, N, 5, 0)


def numbered_tags() -> Layout:
    """A column per place in the list, not per person."""
    rows: list[list[Any]] = [["id", "text", "label_1", "label_2", "label_3"]]
    rows += [[i.id, i.text, *[*i.labels, "", "", ""][:3]] for i in crowd()]
    names = {name for i in crowd() for name in i.labels[:3]}
    return Layout("places.csv", table(rows), N, len(names), 0)


def count_columns() -> Layout:
    """As FER+: how many of ten chose each label, a column per label."""
    rng = random.Random(4)
    rows: list[list[Any]] = [["Usage", "Image name", *LABELS]]
    for k in range(N):
        counts = [0] * len(LABELS)
        for _ in range(10):
            counts[rng.choice((k % 5, k % 5, rng.randrange(5)))] += 1
        rows.append(["Training", f"fer{k:07d}.png", *counts])
    return Layout("ferplus.csv", table(rows), N, 5, 10, has_features=False)


def columns_of_names() -> Layout:
    """A column per person, called by name."""
    people = ("anna", "bob", "chen", "dora")
    rows: list[list[Any]] = [["sentence", *people]]
    for item in crowd(single=True):
        rows.append([item.text, *(item.answers.get(w, [""])[0] for w in RATERS)])
    return Layout("names.csv", table(rows), N, 5, 4)


def label_then_annotator() -> Layout:
    header = ["uid", "comment", *(f"{x}_rater{k}" for x in LABELS for k in range(1, 5))]
    rows: list[list[Any]] = [header]
    for item in crowd():
        cells = [
            int(x in item.answers[w]) if w in item.answers else "" for x in LABELS for w in RATERS
        ]
        rows.append([item.id, item.text, *cells])
    return Layout("suffixes.csv", table(rows), N, 5, 4)


def unnamed_category() -> Layout:
    """Rater rows whose label column has a name of its own."""
    rows: list[list[Any]] = [["post_id", "coder", "post", "stance_final"]]
    for item in crowd(single=True):
        rows += [[item.id, who, item.text, said[0]] for who, said in item.answers.items()]
    return Layout("stance.csv", table(rows), N, 5, 4)


def class_numbers_per_rater() -> Layout:
    rows: list[list[Any]] = [["text_id", "text", "user_id", "label"]]
    for item in crowd(single=True):
        rows += [[item.id, item.text, w, LABELS.index(s[0])] for w, s in item.answers.items()]
    return Layout("numbers.csv", table(rows), N, 5, 4, {"label_names.txt": "\n".join(LABELS)})


MADE: tuple[Callable[[], Layout], ...] = (
    *(rater_rows_one_hot, rater_rows_sets, worker_task_label, toxic_annotations, long_with_value),
    *(wide_columns, annotator_columns, model_lists, model_probabilities, lists_of_lists),
    *(one_label_each, parallel_lists, keyed_by_source, keyed_annotators, label_counts),
    *(headerless_numbers, headerless_tags, no_label_words, ragged_tags, numbered_tags),
    *(count_columns, columns_of_names, label_then_annotator, unnamed_category),
    *(class_numbers_per_rater, objects_of_lists, lists_in_a_table, yes_or_no_of_annotators),
)
