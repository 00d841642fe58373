"""Files of marks, and of numbers per label: VIA, item and label in one name, counts, ratings.

As in `wild_layouts`, each is named like the file it stands for.
"""

import json
import random
from collections.abc import Callable
from typing import Any

from layouts import LABELS, Layout, N, crowd, lines, table
from wild_layouts import views

Rows = list[list[Any]]


def via_regions(rng: random.Random) -> Layout:
    """VIA's CSV: a row per region, what it is in `region_attributes`; a picture without any."""
    header = "#filename,file_size,file_attributes,region_count,region_id,region_shape_attributes"
    rows: Rows = [[*header.split(","), "region_attributes"]]
    for k, item in enumerate(crowd()):
        about = [f"{k:03d}.jpg", 1000 + k, "{}", len(item.labels)]
        for j, name in enumerate(item.labels):
            box = json.dumps({"name": "rect", "x": rng.randint(0, 99), "y": 5, "width": 9})
            rows.append([*about, j, box, json.dumps({"kind": name})])
        if not item.labels:
            rows.append([*about, 0, "{}", "{}"])
    return Layout("via_export_csv.csv", table(rows), N, 5, 0, has_features=False)


def via_ticks(rng: random.Random) -> Layout:
    """VIA 2's CSV without regions: ticked options of the whole picture."""
    header = "filename,file_size,file_attributes,region_count,region_id,region_shape_attributes"
    rows: Rows = [[*header.split(","), "region_attributes"]]
    for k, item in enumerate(crowd()):
        ticked = {"seen": dict.fromkeys(item.labels, True), "caption": item.text}
        rows.append([f"{k:03d}.jpg", 1000 + k, json.dumps(ticked), 0, 0, "{}", "{}"])
    return Layout("via_files.csv", table(rows), N, 5, 0, has_features=False)


def via_project(rng: random.Random) -> Layout:
    """VIA 2's project: pictures by name and size, regions with shapes and attributes."""
    pictures = {}
    for k, item in enumerate(crowd()):
        regions = [
            {
                "shape_attributes": {"name": "circle", "cx": rng.randint(0, 99), "cy": 4, "r": 2},
                "region_attributes": {"kind": name},
            }
            for name in item.labels
        ]
        about = {"filename": f"{k:03d}.jpg", "size": 1000 + k, "regions": regions}
        pictures[f"{k:03d}.jpg{1000 + k}"] = {**about, "file_attributes": {}}
    document = {
        "_via_settings": {"ui": {"image": {"on_image_annotation_editor_placement": "NEAR_REGION"}}},
        "_via_img_metadata": pictures,
        "_via_attributes": {"region": {"kind": {"type": "dropdown"}}, "file": {}},
        "_via_data_format_version": "2.0.10",
    }
    return Layout("via_project.json", json.dumps(document), N, 5, 0, has_features=False)


def composite_ids(rng: random.Random) -> Layout:
    """Kaggle's RSNA haemorrhages: the id of a row is the picture's and the label's."""
    rows: Rows = [["ID", "Label"]]
    for k, item in enumerate(crowd()):
        rows += [[f"ID_{k * 7919:09x}_{name}", int(name in item.labels)] for name in LABELS]
    rows += rows[1:4]  # as there, some come twice
    return Layout("stage_2_train.csv", table(rows), N, 5, 0, has_features=False)


def model_probabilities(rng: random.Random) -> Layout:
    """What `predict_proba` gave for each label, in columns of their own."""
    rows: Rows = [["id", "text", *(f"prob_{name}" for name in LABELS)]]
    for item in crowd():
        rows.append([item.id, item.text, *(round(rng.random(), 3) for _ in LABELS)])
    return Layout("predictions.csv", table(rows), N, 5, 1)


def two_labels_per_view(rng: random.Random) -> Layout:
    """A first and a second label of every worker."""
    rows: Rows = [["item_id", "worker_id", "text", "primary_label", "secondary_label"]]
    for _, item, who, said in views():
        rows.append([item.id, who, item.text, *[*said, "", ""][:2]])
    names = {name for _, _, _, said in views() for name in said[:2]}
    return Layout("two_labels.csv", table(rows), N, len(names), 4)


def counts_of_three(rng: random.Random) -> Layout:
    """ToLD-Br: how many of three people said each label."""
    rows: Rows = [["text", "homophobia", "obscene", "insult", "racism"]]
    for item in crowd():
        counts = [float(rng.choice((0, 0, 0, 1, 2, 3))) for _ in range(3)]
        rows.append([item.text, *counts, float(rng.random() < 0.1)])  # one that is rare
    return Layout("ToLD-BR.csv", table(rows), N, 4, 3)


def soft_labels(rng: random.Random) -> Layout:
    """A share per label, which add up to one, and nothing about who they are."""
    rows: Rows = [["text", "joy", "anger", "fear"]]
    for item in crowd():
        first = rng.randint(0, 10)
        second = rng.randint(0, 10 - first)
        rows.append([item.text, first / 10, second / 10, round((10 - first - second) / 10, 1)])
    return Layout("soft.csv", table(rows), N, 3, 10)


def soft_objects(rng: random.Random) -> Layout:
    """Shares of labels as an object, and nothing about who they are."""
    shares = [rng.choice((0.0, 0.2, 0.7, 1.0)) for _ in range(N)]
    items = [
        {"id": k, "text": item.text, "soft_label": {"joy": share, "fear": round(1 - share, 1)}}
        for k, (item, share) in enumerate(zip(crowd(), shares, strict=True))
    ]
    return Layout("soft.jsonl", lines(items), N, 2, 10)


def numbered_labels_per_view(rng: random.Random) -> Layout:
    rows: Rows = [["item_id", "worker_id", "label1", "label2", "label3"]]
    for _, item, who, said in views():
        rows.append([item.id, who, *[*said, "", ""][:2], ""])
    names = {name for _, _, _, said in views() for name in said[:2]}
    return Layout("numbered.csv", table(rows), N, len(names), 4, has_features=False)


def ratings_to_100(rng: random.Random) -> Layout:
    """How much of each feeling a text has, from 0 to 100."""
    rows: Rows = [["id", "headline", "anger", "disgust", "fear", "joy"]]
    for item in crowd():
        rows.append([item.id, item.text, *(rng.choice((0, 0, 12, 35, 60, 88)) for _ in range(4))])
    rows[1][2] = 100
    return Layout("affective.csv", table(rows), N, 4, 10)


def counts_in_cells(rng: random.Random) -> Layout:
    """`anger (2), joy`: how many said so behind each label, perhaps not where it is one."""
    rows: Rows = [["id", "text", "emotions"]]
    for item in crowd():
        drawn = [rng.choice(LABELS) for _ in range(3)]
        said = {name: drawn.count(name) for name in LABELS if name in drawn}
        shown = [
            f"{name} ({n})" if n > 1 or rng.random() < 0.7 else name for name, n in said.items()
        ]
        rows.append([item.id, item.text, ", ".join(shown)])
    return Layout("counted.csv", table(rows), N, 5, 3)


def worker_columns(rng: random.Random) -> Layout:
    """Five people's yes and no about one label: w1 to w5, not always asked."""
    rows: Rows = [["id", "text", *(f"w{j}" for j in range(1, 6))]]
    for item in crowd():
        true = rng.random() < 0.5
        said = [int(true != (rng.random() < 0.2)) if rng.random() < 0.8 else "" for _ in range(5)]
        rows.append([item.id, item.text, *said])
    return Layout("workers.csv", table(rows), N, 1, 5)


def galaxies(rng: random.Random) -> Layout:
    """Galaxy Zoo: of every answer counts, fractions and flags."""
    ends = ("count", "weight", "fraction", "debiased", "flag")
    header = [f"t01_a0{j}_{x}_{end}" for j, x in enumerate(LABELS) for end in ends]
    rows: Rows = [["dr7objid", "ra", "sample", "total_votes", *header]]
    for k in range(N):
        cells: list[float] = []
        for _ in LABELS:
            count = rng.randint(0, 45)
            share = round(count / 45, 3)
            cells += [count, round(count * 0.98, 3), share, round(share * 0.95, 3), share > 0.8]
        about = [587732591714893851 + k, round(rng.random(), 4), "original", 45]
        rows.append([*about, *(int(one) if one in (True, False) else one for one in cells)])
    return Layout("gz2.csv", table(rows), N, 5, 10)


def shares_alone(rng: random.Random) -> Layout:
    """Kaggle's Galaxy Zoo: an id, and shares that do not add up to one."""
    rows: Rows = [["GalaxyID", "Class1.1", "Class1.2", "Class2.1", "Class2.2"]]
    rows += [[100008 + k, *(round(rng.random(), 6) for _ in range(4))] for k in range(N)]
    return Layout("solutions.csv", table(rows), N, 4, 10, has_features=False)


def counts_alone(rng: random.Random) -> Layout:
    """Zooniverse's reducer: how many said each answer, empty where nobody did."""
    rows: Rows = [["subject_id", "workflow_id", "task", "data.sea", "data.sun", "data.rain"]]
    known = ["", 1.0, 2.0, 9.0]
    rows += [[4102 + k, 1234, "T0", *rng.choices(known, k=3)] for k in range(N)]
    return Layout("reducer.csv", table(rows), N, 3, 9, has_features=False)


def sums_of_counts(rng: random.Random) -> Layout:
    """How many of ten people said each label, and below them the sums."""
    body = [[f"p{k}", *rng.sample([1, 2, 3, 4, 0], 5)] for k in range(N)]
    rows: Rows = [["item", *LABELS], *body, ["", *(sum(r[1 + j] for r in body) for j in range(5))]]
    return Layout("counted.csv", table(rows), N, 5, 10, has_features=False)


def missing_numbers(rng: random.Random) -> Layout:
    rows: Rows = [["id", "a", "b", "c", *(f"label_{x}" for x in LABELS)]]
    for item in crowd():
        numbers = [round(rng.random(), 3) if rng.random() > 0.1 else "" for _ in range(3)]
        rows.append([item.id, *numbers, *(int(x in item.labels) for x in LABELS)])
    return Layout("missing.csv", table(rows), N, 5, 0)


def missing_in_arff(rng: random.Random) -> Layout:
    head = "@relation 'x: -C 2'\n@attribute sea {0,1}\n@attribute sun {0,1}\n"
    head += "@attribute a numeric\n@attribute b numeric\n@data\n"
    rows = [[k % 2, k % 3 % 2, "?" if k % 7 == 0 else k / 10, rng.random()] for k in range(N)]
    return Layout("missing.arff", head + table(rows), N, 2, 0)


NUMBERS: tuple[Callable[[random.Random], Layout], ...] = (
    via_regions,
    via_ticks,
    via_project,
    composite_ids,
    model_probabilities,
    two_labels_per_view,
    counts_of_three,
    soft_labels,
    soft_objects,
    numbered_labels_per_view,
    ratings_to_100,
    counts_in_cells,
    worker_columns,
    galaxies,
    shares_alone,
    counts_alone,
    sums_of_counts,
    missing_numbers,
    missing_in_arff,
)
