"""Files of public sets where each item was labelled by several people, made small."""

import json
import random
from collections.abc import Callable
from typing import Any

from layouts import LABELS, Layout, N, crowd, table
from wild_layouts import views

Rows = list[list[Any]]


def snow_answers(rng: random.Random) -> Layout:
    """Snow et al.: tables of Mechanical Turk, names begin with !."""
    rows: Rows = [["!amt_annotation_ids", "!amt_worker_ids", "orig_id", "response", "gold"]]
    for k, _, w, s in views(single=True):
        rows.append([f"AN{len(rows)}", f"A{w}WK", k, LABELS.index(s[0]), k % 5])
    return Layout("rte.tsv", table(rows, "\t"), N, 5, 4, has_features=False)


def crowdflower_multi(rng: random.Random) -> Layout:
    """Figure Eight's aggregated report of several choices, with a confidence for each."""
    rows: Rows = [
        [
            "_unit_id",
            "_golden",
            "_unit_state",
            "_trusted_judgments",
            "_last_judgment_at",
            "emotions",
            "emotions:confidence",
            "orig__golden",
            "emotions_gold",
            "tweet",
        ]
    ]
    for k, i in enumerate(crowd()):
        rows.append(
            [
                7000 + k,
                "FALSE",
                "finalized",
                3,
                "3/1/2020 10:00",
                "\n".join(i.labels),
                "\n".join(str(round(rng.uniform(0.3, 1), 4)) for _ in i.labels),
                "",
                "",
                i.text,
            ]
        )
    return Layout("a4321.csv", table(rows), N, 5, 0)


def moral_foundations(rng: random.Random) -> Layout:
    """MFTC: corpora, each with a list of tweets, each with a list of annotations."""
    tweets = [
        {
            "tweet_id": str(10**17 + k),
            "tweet_text": i.text,
            "annotations": [
                {"annotator": f"annotator0{w[1:]}", "annotation": ",".join(s)}
                for w, s in i.answers.items()
            ],
        }
        for k, i in enumerate(crowd())
    ]
    doc = [{"Corpus": "ALM", "Tweets": tweets[:25]}, {"Corpus": "Davidson", "Tweets": tweets[25:]}]
    return Layout("MFTC.json", json.dumps(doc), N, 5, 4)


def goemotions_raw(rng: random.Random) -> Layout:
    rows: Rows = [
        [
            "text",
            "id",
            "author",
            "subreddit",
            "link_id",
            "parent_id",
            "created_utc",
            "rater_id",
            "example_very_unclear",
            *LABELS,
        ]
    ]
    for k, i, w, s in views():
        unclear = rng.random() < 0.1
        rows.append(
            [
                i.text,
                f"ee{k:04x}",
                f"user{k % 9}",
                "aww",
                f"t3_{k}",
                f"t1_{k}",
                1.5e9 + k,
                int(w[1:]),
                unclear,
                *(int(x in s and not unclear) for x in LABELS),
            ]
        )
    return Layout("goemotions_1.csv", table(rows), N, 5, 4)


def gab_rows(rng: random.Random) -> Layout:
    rows: Rows = [["ID", "Annotator", "Text", "Hate", "HD", "CV", "VO", "REL"]]
    for k, i, w, _ in views():
        said = [rng.choice([0, 1]) for _ in range(5)]
        rows.append([27000 + k, int(w[1:]), i.text, *said[:3], *(x if x else "" for x in said[3:])])
    return Layout("GabHateCorpus_annotations.tsv", table(rows, "\t"), N, 5, 4)


def vqa_answers(rng: random.Random) -> Layout:
    notes = [
        {
            "question_type": "what",
            "multiple_choice_answer": "joy",
            "image_id": 400 + k,
            "answer_type": "other",
            "question_id": 400000 + k,
            "answers": [
                {
                    "answer": s[0],
                    "answer_confidence": rng.choice(["yes", "maybe"]),
                    "answer_id": n + 1,
                }
                for n, s in enumerate(i.answers.values())
            ],
        }
        for k, i in enumerate(crowd(single=True))
    ]
    doc = {
        "info": {"year": 2017},
        "license": {"url": "x"},
        "data_subtype": "val2014",
        "annotations": notes,
        "data_type": "mscoco",
    }
    return Layout("v2_annotations.json", json.dumps(doc), N, 5, 3, has_features=False)


def lewidi_2023(rng: random.Random) -> Layout:
    doc = {
        str(k + 1): {
            "annotation task": "hate speech detection",
            "text": i.text,
            "number of annotations": 3,
            "number of annotators": 3,
            "annotators": ",".join(f"Ann{w[1:]}" for w in i.answers),
            "annotations": ",".join("1" if s == ["joy"] else "0" for s in i.answers.values()),
            "lang": "en",
            "hard_label": "0",
            "soft_label": {"0": 0.67, "1": 0.33},
            "split": "train",
            "other_info": {"other annotations": "0,0,0"},
        }
        for k, i in enumerate(crowd(single=True))
    }
    return Layout("HS-Brexit_train.json", json.dumps(doc), N, 2, 4)


def gender_votes(rng: random.Random) -> Layout:
    """EXIST: parallel lists of annotators, their facts and their labels."""
    doc = {
        str(100 + k): {
            "id_EXIST": str(100 + k),
            "lang": "en",
            "tweet": i.text,
            "number_annotators": 3,
            "annotators": [f"Annotator_{w[1:]}" for w in i.answers],
            "gender_annotators": ["F", "M", "F"],
            "age_annotators": ["18-22", "23-45", "46+"],
            "labels_task1": [("YES", "NO")[w == "r1"] for w in i.answers],
            "labels_task3": [s for s in i.answers.values()],
            "split": "TRAIN_EN",
        }
        for k, i in enumerate(crowd())
    }
    return Layout("EXIST2023_training.json", json.dumps(doc), N, 5, 4)


def contributor(rng: random.Random) -> Layout:
    rows: Rows = [
        [
            "id",
            "comment_text",
            "unique_contributor_id",
            "gender",
            "identity_attack",
            "insult",
            "obscene",
        ]
    ]
    for k, i, w, _ in views():
        rows.append([f"{k:x}a", i.text, 900 + int(w[1:]), "f", *rng.choices([0, 1], k=3)])
    return Layout("raters.csv", table(rows), N, 3, 4)


def lists_of_annotators(rng: random.Random) -> Layout:
    """A list of items, each a list of answers."""
    return Layout(
        "lol.json",
        json.dumps([[s for s in i.answers.values()] for i in crowd()]),
        N,
        5,
        3,
        has_features=False,
    )


def measuring(rng: random.Random) -> Layout:
    rows: Rows = [
        [
            "comment_id",
            "annotator_id",
            "platform",
            "sentiment",
            "respect",
            "hatespeech",
            "hate_speech_score",
            "text",
            "infitms",
            "annotator_severity",
            "target_race_asian",
            "target_race_black",
            "target_gender_men",
            "annotator_gender",
            "annotator_age",
            "annotator_race_asian",
        ]
    ]
    for k, i, w, _ in views():
        rows.append(
            [
                k,
                int(w[1:]),
                k % 3,
                float(rng.randint(0, 4)),
                float(rng.randint(0, 4)),
                rng.choice([0.0, 1.0, 2.0]),
                round((k - 20) / 7, 3),
                i.text,
                0.81,
                0.3,
                *[rng.random() < 0.4 for _ in range(3)],
                "female",
                33.0,
                False,
            ]
        )
    return Layout("measuring-hate-speech.csv", table(rows), N, 3, 4)


RATED_SETS: tuple[Callable[[random.Random], Layout], ...] = (
    *(snow_answers, crowdflower_multi, moral_foundations, goemotions_raw, gab_rows, vqa_answers),
    *(lewidi_2023, gender_votes, contributor, lists_of_annotators, measuring),
)
