"""Files of challenges and corpora: class numbers in places, bare 0/1, ids with their labels."""

import random
from collections.abc import Callable
from typing import Any

from layouts import LABELS, Layout, N, crowd, lines, table

NAMES = {"label_names.txt": "\n".join(LABELS) + "\n"}


def _placed(header: list[str], **more: Any) -> Layout:
    rows: list[list[Any]] = [header]
    for k, item in enumerate(crowd()):
        numbers = [LABELS.index(name) + 1 for name in item.labels[:3]]
        rows.append([f"A{k:04d}", *[*numbers, "", ""][:3]])
    n_labels = len({name for item in crowd() for name in item.labels[:3]})
    return Layout("REFERENCE.csv", table(rows), N, n_labels, 0, has_features=False, **more)


def class_numbers_in_places(rng: random.Random) -> Layout:
    """CPSC2018: one class number in each column, none behind the last."""
    return _placed(["Recording", "First_label", "Second_label", "Third_label"])


def named_numbers_in_places(rng: random.Random) -> Layout:
    return _placed(["Recording", "label1", "label2", "label3"], beside=NAMES)


def codes_in_places(rng: random.Random) -> Layout:
    return _placed(["Recording", "main", "more", "most"])


def bare_flags(rng: random.Random) -> Layout:
    """NUS-WIDE: an item per line, 0 or 1 per label with a space behind each."""
    rows = ["".join(f"{int(name in i.labels)} " for name in LABELS) for i in crowd()]
    return Layout("Train_Tags.txt", "\n".join(rows) + "\n", N, 5, 0, has_features=False)


def named_flags(rng: random.Random) -> Layout:
    rows = ["\t".join(str(int(name in i.labels)) for name in LABELS) for i in crowd()]
    text = "\n".join(rows) + "\n"
    return Layout("Train_Tags.txt", text, N, 5, 0, {"Tags.txt": NAMES["label_names.txt"]}, False)


def ids_with_names(rng: random.Random) -> Layout:
    """Reuters-21578 in NLTK: an id and its labels on a line."""
    rows = [f"training/{7 * k + 1} {' '.join(i.labels)}" for k, i in enumerate(crowd())]
    return Layout("cats.txt", "\n".join(rows) + "\n", N, 5, 0, has_features=False)


def relevant_items(rng: random.Random) -> Layout:
    """RCV1: a label, an item that has it, and 1."""
    rows = [f"{name} {2286 + k} 1" for k, i in enumerate(crowd()) for name in i.labels]
    return Layout("topics.qrels", "\n".join(rows) + "\n", N, 5, 0, has_features=False)


def names_with_boxes(rng: random.Random) -> Layout:
    """ImageNet's localization: a class and the four sides of its box, again and again."""
    rows: list[list[Any]] = [["ImageId", "PredictionString"]]
    for k, item in enumerate(crowd()):
        boxes = (f"n{LABELS.index(x):08d} 85 1 {rng.randrange(499)} 272 " for x in item.labels)
        rows.append([f"val_{k:08d}", "".join(boxes)])
    return Layout("LOC_val_solution.csv", table(rows), N, 5, 0, has_features=False)


def places_in_texts(rng: random.Random) -> Layout:
    """DynaSent: where a sentence begins and ends in its review is no feature of it."""
    rows = []
    for k, item in enumerate(crowd()):
        where = {"indices_into_review_text": [k, k + len(item.text)], "tokens": [k] * (1 + k % 3)}
        rows.append({"sentence": item.text, **where, "label_distribution": {}})
        rows[-1]["label_distribution"] = {
            name: [who for who, said in item.answers.items() if name in said] for name in LABELS
        }
    return Layout("dynasent.jsonl", lines(rows), N, 5, 4)


CHALLENGES: tuple[Callable[[random.Random], Layout], ...] = (
    *(class_numbers_in_places, named_numbers_in_places, codes_in_places, bare_flags, named_flags),
    *(ids_with_names, relevant_items, names_with_boxes, places_in_texts),
)
