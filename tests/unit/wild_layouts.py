"""More files as people have them: made small after data sets and tools that are in wide use.

Each is named like the file it stands for; `layouts` says what a reader must find.
"""

import json
import random
from collections.abc import Callable, Iterator
from typing import Any

from layouts import LABELS, RATERS, WORDS, Item, Layout, N, crowd, lines, table

NLI = ("neutral", "contradiction", "entailment")
TAGS = ("1girl", "solo", "long_hair", "blue_eyes", "smile", "hat")
KINDS = ("/m/01g317", "/m/09j2d", "/m/0dzct", "/m/07yv9")


def text(rng: random.Random) -> str:
    return " ".join(rng.choices(WORDS, k=9))


def views(single: bool = False) -> Iterator[tuple[int, Item, str, list[str]]]:
    """Every answer: the number of the item, the item, who, and the labels."""
    for k, item in enumerate(crowd(single=single)):
        for who, said in item.answers.items():
            yield k, item, who, said


def labelme_answers(rng: random.Random) -> Layout:
    rows = [
        " ".join(
            str(LABELS.index(item.answers[who][0]) if who in item.answers else -1) for who in RATERS
        )
        for item in crowd(single=True)
    ]
    return Layout("answers.txt", "\n".join(rows) + "\n", N, 5, 4, has_features=False)


def cifar10h(rng: random.Random) -> Layout:
    header = "annotator_id,trial_index,is_attn_check,true_category,chosen_category,true_label,"
    rows: list[list[Any]] = [
        [*header.split(",")[:-1], "chosen_label", "correct_guess", "test_idx", "image_filename"]
    ]
    for k, _, who, (said, *_) in views(single=True):
        true = LABELS[k % 5]
        numbers = [k % 5, LABELS.index(said), int(true == said), k, f"{true}_{k}.png"]
        rows.append([int(who[1:]), rng.randint(0, 200), 0, true, said, *numbers])
    return Layout("cifar10h-raw.csv", table(rows), N, 5, 4, has_features=False)


def wrench(rng: random.Random) -> Layout:
    items = {
        str(k): {
            "label": k % 3,
            "weak_labels": [rng.choice([-1, -1, k % 3, rng.randint(0, 2)]) for _ in range(6)],
            "data": {"text": text(rng)},
        }
        for k in range(N)
    }
    return Layout("train.json", json.dumps(items), N, 3, 6)


def labeling_functions(rng: random.Random) -> Layout:
    rows: list[list[Any]] = [["id", "text", "lf_keyword", "lf_regex", "lf_model"]]
    rows += [[k, text(rng), *rng.choices([-1, 0, 1], k=3)] for k in range(N)]
    return Layout("functions.csv", table(rows), N, 2, 3)


def label_matrix(rng: random.Random) -> Layout:
    rows = [[rng.choice([-1, 0, 1]) for _ in range(5)] for _ in range(N)]
    return Layout("L_train.csv", table(rows), N, 2, 5, has_features=False)


def social_bias(rng: random.Random) -> Layout:
    rows: list[list[Any]] = [
        ["whoTarget", "intentYN", "sexReason", "offensiveYN", "WorkerId", "HITId", "post"]
    ]
    for k, item, who, _ in views():
        steps = [rng.choice([0.0, 1.0, ""]), rng.choice([0.0, 0.33, 0.66, 1.0])]
        about = [rng.choice([0.0, 0.5, 1.0]), f"A{who}X", f"3H{k}", item.text]
        rows.append([*steps, "", *about])
    return Layout("SBIC.v2.trn.csv", table(rows), N, 3, 4)


def shares_of_raters(rng: random.Random) -> Layout:
    header = "id,target,comment_text,obscene,insult,asian,created_date,rating,likes,"
    rows: list[list[Any]] = [f"{header}toxicity_annotator_count".split(",")]
    for k in range(N):
        share = [rng.randint(0, 10) / 10 for _ in range(3)]
        asian = "" if k % 3 else 0.5
        about = ["2015-09-29", rng.choice(["rejected", "approved"]), rng.randint(0, 9), 10]
        rows.append([59848 + k, share[0], text(rng), *share[1:], asian, *about])
    return Layout("unintended_bias.csv", table(rows), N, 4, 10)


def snli_table(rng: random.Random) -> Layout:
    labels = [f"label{j}" for j in range(1, 6)]
    header = ["gold_label", "sentence1_parse", "sentence1", "sentence2", "captionID", "pairID"]
    rows: list[list[Any]] = [[*header, *labels]]
    for k in range(N):
        true = NLI[k % 3]
        others = [rng.choice([true, true, rng.choice(NLI)]) if k % 4 else "" for _ in range(4)]
        about = [f"( {text(rng)} )", text(rng), text(rng), f"{k // 3}.jpg#4", f"{k}.jpg#4r"]
        rows.append([true if k % 9 else "-", *about, true, *others])
    return Layout("snli_1.0_dev.txt", table(rows, "\t"), N, 3, 5)


def coco(rng: random.Random) -> Layout:
    document = {
        "info": {"year": 2017},
        "images": [{"id": 100 + k, "file_name": f"{k:012d}.jpg", "width": 640} for k in range(N)],
        "annotations": [
            {"id": k * 5 + j, "image_id": 100 + k, "category_id": 1 + (k + j * j) % 5, "area": 1.5}
            for k in range(N)
            for j in range(1 + k % 3)
        ],
        "categories": [{"id": 1 + j, "name": name} for j, name in enumerate(LABELS)],
    }
    return Layout("instances_val.json", json.dumps(document), N, 5, 0, has_features=False)


def danbooru_table(rng: random.Random) -> Layout:
    rows: list[list[Any]] = [["id", "md5", "rating", "tag_string"]]
    rows += [[k, f"{k * 7919:032x}", "s", " ".join(rng.sample(TAGS, 3))] for k in range(N)]
    return Layout("danbooru.csv", table(rows), N, 6, 0, has_features=False)


def tags_as_objects(rng: random.Random) -> Layout:
    items = [
        {
            "id": str(k),
            "tags": [
                {"id": str(j), "name": TAGS[j], "category": "0"} for j in rng.sample(range(6), 3)
            ],
        }
        for k in range(N)
    ]
    return Layout("danbooru.jsonl", lines(items), N, 6, 0, has_features=False)


def open_images(rng: random.Random) -> Layout:
    rows: list[list[Any]] = [["ImageID", "Source", "LabelName", "Confidence"]]
    for k in range(N):
        for kind in rng.sample(KINDS, 2):
            rows.append([f"{k * 104729:016x}", "verification", kind, rng.choice([0, 1])])
    return Layout("oidv7-labels.csv", table(rows), N, 4, 0, has_features=False)


def open_images_machine(rng: random.Random) -> Layout:
    rows: list[list[Any]] = [["ImageID", "Source", "LabelName", "Confidence"]]
    for k in range(N):
        for kind in rng.sample(KINDS, 2):
            who = rng.choice(["machine", "verification"])
            rows.append([f"{k * 104729:016x}", who, kind, round(rng.random(), 1)])
    return Layout("oid-machine.csv", table(rows), N, 4, 2, has_features=False)


def stack_overflow(rng: random.Random) -> Layout:
    known = ["python", "pandas", "c#", "numpy"]
    rows: list[list[Any]] = [["Id", "Title", "Body", "Tags"]]
    for k in range(N):
        tags = "".join(f"<{tag}>" for tag in rng.sample(known, 2))
        rows.append([k, text(rng), f"<p>{text(rng)}</p>", tags])
    return Layout("posts.csv", table(rows), N, 4, 0)


def zooniverse(rng: random.Random) -> Layout:
    rows: list[list[Any]] = [
        [
            "classification_id",
            "user_name",
            "created_at",
            "annotations",
            "subject_data",
            "subject_ids",
        ]
    ]
    for k, _, who, said in views(single=True):
        task = json.dumps([{"task": "T0", "task_label": "What is it?", "value": said[0]}])
        about = json.dumps({str(k): {"filename": f"{k}.jpg"}})
        rows.append([rng.randint(1, 10**9), who, "2020-01-01 00:00:00 UTC", task, about, 9000 + k])
    return Layout("classifications.csv", table(rows), N, 5, 4, has_features=False)


def toloka(rng: random.Random) -> Layout:
    parts = ["link", "task_id", "assignment_id", "worker_id", "status"]
    rows: list[list[Any]] = [
        ["INPUT:image", "OUTPUT:result", "GOLDEN:result", *(f"ASSIGNMENT:{one}" for one in parts)]
    ]
    for k, _, who, said in views(single=True):
        about = ["https://x", f"t{k}--5e", f"a{rng.randint(0, 10**6)}", f"w{who}0af3", "APPROVED"]
        rows.append([f"/img/{k}.jpg", said[0], "", *about])
    return Layout("assignments.tsv", table(rows, "\t"), N, 5, 4, has_features=False)


def chest_findings(rng: random.Random) -> Layout:
    rows: list[list[Any]] = [["Image Index", "Finding Labels", "Patient ID", "Patient Age"]]
    for k in range(N):
        found = rng.sample(["Cardiomegaly", "Emphysema", "Effusion"], rng.randint(1, 2))
        names = "|".join(found) if k % 3 else "No Finding"
        rows.append([f"{k:08d}_000.png", names, k // 3, rng.randint(20, 80)])
    return Layout("Data_Entry_2017.csv", table(rows), N, 4, 0)


def uncertain_findings(rng: random.Random) -> Layout:
    names = ["No Finding", "Cardiomegaly", "Edema", "Pneumonia"]
    rows: list[list[Any]] = [["Path", "Sex", "Age", *names]]
    for k in range(N):
        marks = rng.choices(["1.0", "0.0", "-1.0", ""], k=4)
        about = [f"train/patient{k:05d}/view1_frontal.jpg", rng.choice(["Male", "Female"])]
        rows.append([*about, rng.randint(20, 90), *marks])
    return Layout("chexpert.csv", table(rows), N, 4, 0)


def yes_no_unsure(rng: random.Random) -> Layout:
    rows: list[list[Any]] = [
        ["item_id", "rater_id", "rater_age", "context", "answer_time_ms", "Q1_harm", "Q2_bias"]
    ]
    for k, item, who, _ in views():
        said = [rng.choice(["Yes", "No", "Unsure"]), rng.choice(["Yes", "No"])]
        rows.append([k, int(who[1:]) + 29670, "gen z", item.text, rng.randint(9999, 99999), *said])
    return Layout("diverse_safety.csv", table(rows), N, 2, 4)


def turk_checkboxes(rng: random.Random) -> Layout:
    boxes = [f"Answer.{name}.{name}" for name in LABELS]
    rows: list[list[Any]] = [["HITId", "AssignmentId", "WorkerId", "Title", "Input.text", *boxes]]
    for k, item, who, said in views():
        marks = [str(name in said).lower() for name in LABELS]
        about = [f"3HIT{k}", f"3A{rng.randint(0, 10**8)}", f"A{who}WK", "Tag", item.text]
        rows.append([*about, *marks])
    return Layout("Batch_1.csv", table(rows), N, 5, 4)


def turk_task_answers(rng: random.Random) -> Layout:
    rows: list[list[Any]] = [["HITId", "WorkerId", "Input.text", "Answer.taskAnswers"]]
    for k, item, who, said in views(single=True):
        answer = json.dumps([{"category": {"label": said[0]}}])
        rows.append([f"3HIT{k}", f"A{who}WK", item.text, answer])
    return Layout("Batch_2.csv", table(rows), N, 5, 4)


def lists_of_numbers(rng: random.Random) -> Layout:
    rows: list[list[Any]] = [["id", "text", "emotion_ids"]]
    for item in crowd():
        numbers = " ".join(str(LABELS.index(name)) for name in item.labels)
        rows.append([item.id, item.text, f"[{numbers}]"])
    return Layout("emotion_ids.csv", table(rows), N, 5, 0)


def steps_of_a_scale(rng: random.Random) -> Layout:
    rows: list[list[Any]] = [["instance_id", "user_id", "offensiveness", "text"]]
    rows += [[k, int(who[1:]), rng.randint(1, 5), item.text] for k, item, who, _ in views()]
    return Layout("offensiveness.csv", table(rows), N, 5, 4)


def nested_predictions(rng: random.Random) -> Layout:
    models = ("gpt", "claude", "llama")
    items = [
        {
            "id": item.id,
            "text": item.text,
            "predictions": {m: {x: round(rng.random(), 3) for x in LABELS} for m in models},
        }
        for item in crowd()
    ]
    return Layout("models.jsonl", lines(items), N, 5, 3)


WILD: tuple[Callable[[random.Random], Layout], ...] = (
    *(labelme_answers, cifar10h, wrench, labeling_functions, label_matrix, social_bias),
    *(shares_of_raters, snli_table, coco, danbooru_table, tags_as_objects, open_images),
    *(open_images_machine, stack_overflow, zooniverse, toloka, chest_findings),
    *(uncertain_findings, yes_no_unsure, turk_checkboxes, turk_task_answers, lists_of_numbers),
    *(steps_of_a_scale, nested_predictions),
)
