"""Documents of JSON and ARFF as people and their tools write them, beside those of the others."""

import json
import random
from collections.abc import Callable
from typing import Any

from layouts import LABELS, RATERS, Item, Layout, N, crowd, lines, table
from wild_layouts import text

NUMBER = {name: k for k, name in enumerate(LABELS)}


def _document(name: str, found: Any, sources: int = 0, **more: Any) -> Layout:
    return Layout(name, json.dumps(found), N, len(LABELS), sources, **more)


def _plain(item: Item) -> dict[str, Any]:
    return {"id": item.id, "text": item.text}


def wrench_named(rng: random.Random) -> Layout:
    """WRENCH: a class number per rule, -1 where it is silent; names in `label.json`."""
    found = {}
    for k, item in enumerate(crowd(single=True)):
        said = [NUMBER[item.answers[w][0]] if w in item.answers else -1 for w in RATERS]
        found[str(k)] = {"label": k % 5, "weak_labels": said, "data": {"text": item.text}}
    names = json.dumps({str(k): name for name, k in NUMBER.items()})
    return _document("valid.json", found, 4, beside={"label.json": names})


def people_and_labels(rng: random.Random) -> Layout:
    """Pairs of a person and what this person chose."""
    rows = [{**_plain(i), "annotations": [[w, s] for w, s in i.answers.items()]} for i in crowd()]
    return Layout("pairs.jsonl", lines(rows), N, 5, 4)


def people_of_labels(rng: random.Random) -> Layout:
    """Of each label, who chose it."""
    rows = []
    for item in crowd():
        chose = {x: [f"{w}@x.org" for w, s in item.answers.items() if x in s] for x in LABELS}
        rows.append({**_plain(item), "labels": chose})
    return Layout("by_label.jsonl", lines(rows), N, 5, 4)


def annotated_by(rng: random.Random) -> Layout:
    """LightTag: classes of an example, each with who chose it."""
    rows = []
    for item in crowd():
        told = [
            {
                "classname": x,
                "annotated_by": [
                    {"annotator": f"{w}@x.org", "annotator_id": int(w[1:])}
                    for w, s in item.answers.items()
                    if x in s
                ],
            }
            for x in item.labels
        ]
        rows.append({"example_id": item.id, "content": item.text, "classifications": told})
    return _document("lighttag.json", {"examples": rows}, 4)


def views_by_person(rng: random.Random) -> Layout:
    """An object by person, each with an object by item."""
    found = {w: {i.id: i.answers[w] for i in crowd() if w in i.answers} for w in RATERS}
    return _document("by_person.json", found, 4, has_features=False)


def answers_with_remarks(rng: random.Random) -> Layout:
    found = [
        {
            **_plain(i),
            "annotations": {
                w: {"labels": s, "seconds": 3.5, "comment": ""} for w, s in i.answers.items()
            },
        }
        for i in crowd()
    ]
    return _document("remarks.json", found, 4)


def classes_in_document(rng: random.Random) -> Layout:
    """Class numbers, and beside the items what they are called."""
    rows = [{**_plain(i), "labels": [NUMBER[x] for x in i.labels]} for i in crowd()]
    names = [{"id": k, "name": name} for name, k in NUMBER.items()]
    return _document("classes.json", {"labels": names, "items": rows})


def splits_in_document(rng: random.Random) -> Layout:
    rows = [{**_plain(i), "labels": i.labels} for i in crowd()]
    return _document("splits.json", {"train": rows[:20], "dev": rows[20:30], "test": rows[30:]})


def paragraphs(rng: random.Random) -> Layout:
    """SQuAD's nesting: articles with paragraphs."""
    rows = [{"context": i.text, "labels": i.labels} for i in crowd()]
    found = [{"title": f"t{k}", "paragraphs": rows[10 * k : 10 * k + 10]} for k in range(4)]
    return _document("articles.json", {"data": found})


def scores_in_lists(rng: random.Random) -> Layout:
    """A pipeline of transformers: every label with its score, the highest first."""
    rows = []
    for item in crowd():
        given = [(round(rng.random() / 2 + (x in item.labels) / 2, 3), x) for x in LABELS]
        told = [{"label": x, "score": score} for score, x in sorted(given, reverse=True)]
        rows.append({"text": item.text, "scores": told})
    return Layout("pipeline.jsonl", lines(rows), N, 5, 1)


def zero_shot(rng: random.Random) -> Layout:
    """Zero-shot classification: all labels, sorted, and their scores in another list."""
    rows = []
    for item in crowd():
        given = [(round(rng.random() / 2 + (x in item.labels) / 2, 3), x) for x in LABELS]
        scores, labels = zip(*sorted(given, reverse=True), strict=True)
        rows.append({"sequence": item.text, "labels": labels, "scores": scores})
    return _document("zero_shot.json", rows, 1)


def soft_vectors(rng: random.Random) -> Layout:
    """Shares of the classes as a list that adds up to one."""
    rows = []
    for item in crowd():
        chosen = [rng.randrange(5) for _ in range(3)]
        shares = [round(chosen.count(k) / 3, 4) for k in range(5)]
        rows.append({**_plain(item), "soft_label": shares})
    return Layout("soft.jsonl", lines(rows), N, 5, 10)


def prodigy_sessions(rng: random.Random) -> Layout:
    """Prodigy: a row per session; the task of every label has a number of its own."""
    rows = [
        {
            "text": item.text,
            "label": x,
            "_input_hash": 1000 + k,
            "_task_hash": 10 * k + NUMBER[x],
            "answer": "accept" if x in said else "reject",
            "_session_id": f"set-{who}",
        }
        for k, item in enumerate(crowd())
        for who, said in item.answers.items()
        for x in LABELS
    ]
    return Layout("sessions.jsonl", lines(rows), N, 5, 4)


def labelbox_before(rng: random.Random) -> Layout:
    """Labelbox' first export: one row per label, its answers deep inside."""
    rows = []
    for item in crowd():
        answers = [{"featureId": "q", "title": x.title(), "value": x} for x in item.labels]
        said = {"objects": [], "classifications": [{"title": "emotion", "answers": answers}]}
        about = {"DataRow ID": item.id, "Labeled Data": item.text, "Dataset Name": "d"}
        rows.append({"ID": f"l{item.id}", **about, "Label": said, "Skipped": False})
    return _document("labelbox.json", rows)


def text_and_cats(rng: random.Random) -> Layout:
    """spaCy's training data."""
    rows = [[i.text, {"cats": {x: float(x in i.labels) for x in LABELS}}] for i in crowd()]
    return _document("train.json", rows)


def label_of_picture(rng: random.Random) -> Layout:
    """One label by picture, and nothing else."""
    found = {f"{k}.jpg": LABELS[k % 5] for k in range(N)}
    return _document("labels.json", found, has_features=False)


def candidates_and_label(rng: random.Random) -> Layout:
    """Partial labels: what may be true, and what is."""
    rows = [{**_plain(i), "candidates": i.labels, "label": i.labels[0]} for i in crowd()]
    return Layout("partial.jsonl", lines(rows), N, 5, 0)


def marked_tasks(rng: random.Random) -> Layout:
    """Label Studio, where nobody chose for a whole text: what is marked in it."""
    tasks = []
    for k, item in enumerate(crowd()):
        said = [
            {
                "completed_by": int(w[1:]),
                "result": [
                    {"type": "labels", "value": {"start": 0, "end": 3, "labels": [x]}} for x in s
                ],
            }
            for w, s in item.answers.items()
        ]
        tasks.append({"id": k, "annotations": said, "data": {"text": item.text}})
    return _document("marked.json", tasks, 4)


def _arff(head: str, attribute: str, foot: str, rng: random.Random) -> str:
    text = f"@relation {head}\n" + "".join(f"@attribute att{j} {attribute}\n" for j in range(4))
    text += "".join(f"@attribute {name} {{0, 1}}\n" for name in LABELS) + foot + "@data\n"
    for item in crowd():
        cells = [f"{rng.random():.3f}" for _ in range(4)]
        text += ", ".join([*cells, *(str(int(name in item.labels)) for name in LABELS)]) + "\n"
    return text


def arff_alone(rng: random.Random) -> Layout:
    """Mulan's without its XML: the last attributes are 0 or 1, which is asked about."""
    return Layout("alone.arff", _arff("emotions", "numeric", "", rng), N, 5, 0)


def keel(rng: random.Random) -> Layout:
    """KEEL's: ranges of numbers, and the labels are its outputs."""
    names = ", ".join(LABELS)
    foot = f"@inputs att0, att1, att2, att3\n@outputs {names}\n"
    return Layout("emotions.dat", _arff("emotions", "real [0.0, 1.0]", foot, rng), N, 5, 0)


def codes_by_person(rng: random.Random) -> Layout:
    """Codes of labels look like numbered people, and are none."""
    codes = dict(zip(LABELS, ("E11", "I10", "J45", "K21", "M54"), strict=True))
    rows = []
    for item in crowd():
        three = zip(("anna", "bob", "chen"), item.answers.values(), strict=True)
        said = {who: [codes[x] for x in names] for who, names in three}
        rows.append({**_plain(item), "annotations": said})
    return Layout("codes.jsonl", lines(rows), N, 5, 3)


def conversations(rng: random.Random) -> Layout:
    """What was said in turns is part of an item, which has the labels."""
    rows = [
        {"id": i.id, "turns": [{"speaker": "a", "said": i.text}] * 4, "labels": i.labels}
        for i in crowd()
    ]
    return _document("turns.json", rows, has_features=False)


def radio_beside_checklist(rng: random.Random) -> Layout:
    """Labelbox: two questions, one of which has several answers."""
    rows = []
    for k, item in enumerate(crowd()):
        labels = []
        for who, said in item.answers.items():
            boxes = {"name": "Emotions", "checklist_answers": [{"name": x} for x in said]}
            radio = {"name": "Quality", "radio_answer": {"name": ["good", "bad"][k % 2]}}
            about = {"objects": [], "classifications": [radio, boxes]}
            labels.append({"label_details": {"created_by": f"{who}@x.org"}, "annotations": about})
        row = {"id": item.id, "row_data": item.text}
        rows.append({"data_row": row, "projects": {"p": {"labels": labels}}})
    return Layout("labelbox.ndjson", lines(rows), N, 5, 4)


def _turned(item: Item) -> dict[str, list[str]]:
    return {x: [who for who, said in item.answers.items() if x in said] for x in item.labels}


def names_of_labels(rng: random.Random) -> Layout:
    """Of each label who chose it, spelled as workers are."""
    rows = [{**_plain(i), "annotations": _turned(i)} for i in crowd()]
    return Layout("turned.jsonl", lines(rows), N, 5, 4)


def first_names_of_labels(rng: random.Random) -> Layout:
    """Of each label who chose it, by names that anything may have."""
    people = dict(zip(RATERS, ("anna", "bob", "chen", "dora"), strict=True))
    rows = []
    for item in crowd():
        chosen = {x: [people[who] for who in found] for x, found in _turned(item).items()}
        rows.append({**_plain(item), "votes": {x: chosen.get(x, []) for x in LABELS}})
    return Layout("turned_names.jsonl", lines(rows), N, 5, 4)


def label_distribution(rng: random.Random) -> Layout:
    """DynaSent: every label with the workers who chose it, and no field says so."""
    rows = []
    for k in range(N):
        chosen: dict[str, list[str]] = {x: [] for x in LABELS}
        for worker in rng.sample(range(180, 188), 5):
            chosen[rng.choice(LABELS)].append(f"w{worker}")
        about = {"hit_ids": [f"y{k}"], "sentence": text(rng), "text_id": f"r1-{k:07d}"}
        rows.append({**about, "label_distribution": chosen, "gold_label": LABELS[k % 5]})
    return Layout("dynasent-r01.jsonl", lines(rows), N, 5, 8)


def _likely(rng: random.Random, item: Item) -> tuple[list[str], list[float]]:
    given = [(round(rng.random() / 2 + (x in item.labels) / 2, 3), x) for x in LABELS]
    scores, labels = zip(*sorted(given, reverse=True)[:3], strict=True)
    return list(labels), list(scores)


def zero_shot_best(rng: random.Random) -> Layout:
    """Zero-shot classification: the three best labels and their scores."""
    rows = []
    for item in crowd():
        labels, scores = _likely(rng, item)
        rows.append({"sequence": item.text, "labels": labels, "scores": scores})
    return Layout("zero_shot.jsonl", lines(rows), N, 5, 1)


def zero_shot_table(rng: random.Random) -> Layout:
    rows = [["sequence", "labels", "scores"]]
    rows += [[i.text, *map(str, _likely(rng, i))] for i in crowd()]
    return Layout("zero_shot.csv", table(rows), N, 5, 1)


def label_weights(rng: random.Random) -> Layout:
    """OASST: of each label its mean and how many said so."""
    rows = []
    for k, item in enumerate(crowd()):
        some = LABELS[: 3 + k % 3]
        told = {x: {"value": rng.choice([0, 0.25, 0.75]), "count": 3} for x in some}
        about = {"user_id": f"{k % 9:08x}-bb", "role": "prompter", "review_count": 3}
        rows.append({"message_id": f"{k:08x}-aa", "text": item.text, **about, "labels": told})
    return Layout("oasst.jsonl", lines(rows), N, 5, 0)


def label_weights_in_lists(rng: random.Random) -> Layout:
    """OASST on the hub: lists of names, values and counts."""
    rows = []
    for k, item in enumerate(crowd()):
        some = LABELS[: 3 + k % 3]
        values = [rng.choice([0, 0.25, 0.75]) for _ in some]
        told = {"name": some, "value": values, "count": [3 for _ in some]}
        rows.append({"message_id": f"{k:08x}-aa", "text": item.text, "labels": told})
    return Layout("oasst_hub.jsonl", lines(rows), N, 5, 0)


def safety_annotations(rng: random.Random) -> Layout:
    """ProsocialDialog: three people's labels and reasons in lists."""
    rows = []
    for k, item in enumerate(crowd(single=True)):
        said = [names[0] for names in item.answers.values()]
        reasons = [text(rng) for _ in said]
        rows.append({"context": item.text, "safety_annotations": said, "reasons": reasons})
        rows[-1] |= {"dialogue_id": k // 2, "episode_done": k % 2 == 1}
    return Layout("prosocial.json", lines(rows), N, 5, 3)


def yes_or_no_by_person(rng: random.Random) -> Layout:
    """Bluebirds: an object by person, each with true or false by picture."""
    found = {f"A{j}XYZ": {str(2340 + k): rng.random() < 0.5 for k in range(N)} for j in range(4)}
    return Layout("labels.json", json.dumps(found), N, 1, 4, has_features=False)


def scene_questions(rng: random.Random) -> Layout:
    """GQA: lists of ids are no labels."""
    found = {
        f"{k:08d}": {
            "equivalent": [f"{k:08d}"],
            "question": text(rng) + "?",
            "imageId": str(2354786 + k),
            "answer": ["yes", "no", "left", "red"][k % 4],
            "annotations": {"answer": {}, "question": {"4": "719"}, "fullAnswer": {}},
            "fullAnswer": text(rng),
        }
        for k in range(N)
    }
    return Layout("val_questions.json", json.dumps(found), N, 4, 0)


DOCUMENTS: tuple[Callable[[random.Random], Layout], ...] = (
    *(wrench_named, people_and_labels, people_of_labels, annotated_by, views_by_person),
    *(answers_with_remarks, classes_in_document, splits_in_document, paragraphs, zero_shot),
    *(scores_in_lists, soft_vectors, prodigy_sessions, labelbox_before, text_and_cats),
    *(label_of_picture, candidates_and_label, marked_tasks, arff_alone, keel, codes_by_person),
    conversations,
    radio_beside_checklist,
    names_of_labels,
    first_names_of_labels,
    label_distribution,
    zero_shot_best,
    zero_shot_table,
    label_weights,
    label_weights_in_lists,
    safety_annotations,
    yes_or_no_by_person,
    scene_questions,
)
