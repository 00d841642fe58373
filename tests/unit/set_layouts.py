"""Files of more public sets, made small: what their readers must find.

As in `wild_layouts`, each is named like the file it stands for.
"""

import json
import random
from collections.abc import Callable
from typing import Any

from layouts import LABELS, Layout, N, crowd, lines, table
from wild_layouts import text, views

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


def magnatagatune(rng: random.Random) -> Layout:
    rows: Rows = [["clip_id", *LABELS, "mp3_path"]]
    rows += [
        [2 + k, *(int(x in i.labels) for x in LABELS), f"f/american_bach-{k}-0-29.mp3"]
        for k, i in enumerate(crowd())
    ]
    return Layout("annotations_final.csv", table(rows, "\t"), N, 5, 0, has_features=False)


def audioset(rng: random.Random) -> Layout:
    rows = [
        "# Segments csv created Sun Mar  5 10:54:31 2017",
        "# num_ytids=40, num_segs=40, num_unique_labels=5, num_positive_labels=99",
        "# YTID, start_seconds, end_seconds, positive_labels",
    ]
    rows += [
        f'--P{k:04d}EGHmg, 30.000, 40.000, "{",".join("/m/0" + x[:3] for x in i.labels)}"'
        for k, i in enumerate(crowd())
    ]
    return Layout("eval_segments.csv", "\n".join(rows) + "\n", N, 5, 0, has_features=False)


def jamendo(rng: random.Random) -> Layout:
    rows: Rows = [["TRACK_ID", "ARTIST_ID", "ALBUM_ID", "PATH", "DURATION", "TAGS"]]
    rows += [
        [
            f"track_{k:07d}",
            f"artist_{k // 3:06d}",
            f"album_{k // 2:06d}",
            f"{k:02d}/{k}.mp3",
            round(rng.uniform(90, 400), 1),
            *(f"mood/theme---{x}" for x in i.labels),
        ]
        for k, i in enumerate(crowd())
    ]
    return Layout("autotagging.tsv", table(rows, "\t"), N, 5, 0)


def ecg_codes(rng: random.Random) -> Layout:
    """PTB-XL: statements with likelihoods, as Python writes a dict."""
    rows: Rows = [
        ["ecg_id", "patient_id", "age", "sex", "report", "scp_codes", "strat_fold", "filename_lr"]
    ]
    rows += [
        [
            k + 1,
            15709.0 + k,
            50.0 + k % 30,
            k % 2,
            i.text,
            str({x.upper(): rng.choice([100.0, 80.0, 0.0]) for x in i.labels}),
            k % 10 + 1,
            f"records100/{k}_lr",
        ]
        for k, i in enumerate(crowd())
    ]
    return Layout("ptbxl_database.csv", table(rows), N, 5, 0)


def movie_summaries(rng: random.Random) -> Layout:
    """CMU's movies: no header, genres as JSON of Freebase ids and names."""
    rows = [
        [
            975900 + k,
            f"/m/03{k:04d}",
            text(rng),
            "2001-08-24",
            "",
            rng.choice(["98.0", "110.0"]),
            json.dumps({f"/m/0{LABELS.index(x)}a": x for x in i.labels}),
        ]
        for k, i in enumerate(crowd())
    ]
    return Layout("movie.metadata.tsv", table(rows, "\t"), N, 5, 0)


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


def imaterialist(rng: random.Random) -> Layout:
    doc = {
        "info": {"year": 2018},
        "images": [{"url": f"https://x/{k}", "imageId": str(k + 1)} for k in range(N)],
        "annotations": [
            {"imageId": str(k + 1), "labelId": [str(LABELS.index(x) + 60) for x in i.labels]}
            for k, i in enumerate(crowd())
        ],
        "license": {"url": "x"},
    }
    return Layout("imaterialist.json", json.dumps(doc), N, 5, 0, has_features=False)


def semeval(rng: random.Random) -> Layout:
    rows: Rows = [["ID", "Tweet", *LABELS]]
    rows += [
        [f"2017-En-{k:05d}", i.text, *(int(x in i.labels) for x in LABELS)]
        for k, i in enumerate(crowd())
    ]
    return Layout("2018-E-c-En-dev.txt", table(rows, "\t"), N, 5, 0)


def articles(rng: random.Random) -> Layout:
    """Kaggle's research articles: a column of 0/1 per subject, names with spaces."""
    rows: Rows = [
        [
            "ID",
            "TITLE",
            "ABSTRACT",
            "Computer Science",
            "Physics",
            "Mathematics",
            "Quantitative Biology",
        ]
    ]
    rows += [
        [k + 1, text(rng), f"{text(rng)} {text(rng)}", *rng.choices([0, 1], k=4)] for k in range(N)
    ]
    return Layout("articles.csv", table(rows), N, 4, 0)


def user_tags(rng: random.Random) -> Layout:
    """MovieLens' tags: a row per user, film and tag."""
    rows: Rows = [["userId", "movieId", "tag", "timestamp"]]
    for k, _, w, s in views():
        for x in s:
            rows.append([int(w[1:]), 60756 + k, x, 1445714994 + len(rows)])
    return Layout("tags.csv", table(rows), N, 5, 4, has_features=False)


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


def xml_repository(rng: random.Random) -> Layout:
    """The extreme classification repository: a first line of sizes, then svmlight."""
    rows = [f"{N} 50 5"]
    rows += [
        ",".join(str(LABELS.index(x)) for x in i.labels)
        + " "
        + " ".join(f"{j}:{rng.random():.4f}" for j in sorted(rng.sample(range(50), 8)))
        for i in crowd()
    ]
    return Layout("train.txt", "\n".join(rows) + "\n", N, 5, 0)


def hf_arrow_rows(rng: random.Random) -> Layout:
    """The datasets server: features named once, rows as objects with numbers."""
    doc = {
        "dataset": "x",
        "features": [
            {"feature_idx": 0, "name": "text", "type": {"dtype": "string", "_type": "Value"}},
            {
                "feature_idx": 1,
                "name": "labels",
                "type": {
                    "feature": {"names": list(LABELS), "_type": "ClassLabel"},
                    "_type": "Sequence",
                },
            },
        ],
        "rows": [
            {
                "row_idx": k,
                "row": {"text": i.text, "labels": [LABELS.index(x) for x in i.labels], "id": i.id},
                "truncated_cells": [],
            }
            for k, i in enumerate(crowd())
        ],
    }
    return Layout("rows.json", json.dumps(doc), N, 5, 0)


def imdb(rng: random.Random) -> Layout:
    """IMDb's titles: `\\\\N` where nothing is known."""
    rows = [
        [
            "tconst",
            "titleType",
            "primaryTitle",
            "originalTitle",
            "isAdult",
            "startYear",
            "endYear",
            "runtimeMinutes",
            "genres",
        ]
    ]
    for k, i in enumerate(crowd()):
        rows.append(
            [
                f"tt{k:07d}",
                "short",
                i.text,
                i.text,
                0,
                1890 + k,
                "\\N",
                rng.choice([1, 5, "\\N"]),
                ",".join(i.labels) if k % 9 else "\\N",
            ]
        )
    return Layout("title.basics.tsv", table(rows, "\t"), N, 5, 0)


def arxiv(rng: random.Random) -> Layout:
    """arXiv's metadata: authors are lists of lists, and no answers."""
    items = [
        {
            "id": f"0704.{k:04d}",
            "submitter": "A B",
            "authors": "C. B",
            "title": text(rng),
            "comments": "37 pages",
            "journal-ref": None,
            "doi": f"10.1103/{k}",
            "report-no": "A",
            "categories": " ".join(f"cs.{x[:2].upper()}" for x in i.labels),
            "license": None,
            "abstract": text(rng) + text(rng),
            "versions": [{"version": "v1", "created": "Mon"}, {"version": "v2", "created": "Tue"}][
                : 1 + k % 2
            ],
            "update_date": "2008-11-26",
            "authors_parsed": [["B", "C", ""], ["D", "E", ""]][: 1 + k % 2],
        }
        for k, i in enumerate(crowd())
    ]
    return Layout("arxiv-metadata.json", lines(items), N, 5, 0)


def numpy_lists(rng: random.Random) -> Layout:
    """NumPy's lists in cells have no commas."""
    rows: Rows = [["id", "text", "labels"]] + [
        [i.id, i.text, "[" + " ".join(f"'{x}'" for x in i.labels) + "]"] for i in crowd()
    ]
    return Layout("np.csv", table(rows), N, 5, 0)


def tuple_lists(rng: random.Random) -> Layout:
    rows: Rows = [["id", "text", "labels"]] + [
        [i.id, i.text, str(tuple(i.labels))] for i in crowd()
    ]
    return Layout("tup.csv", table(rows), N, 5, 0)


def amazon(rng: random.Random) -> Layout:
    """Paths of categories are no answers of several people."""
    items = [
        {
            "asin": f"B{k:05d}",
            "title": text(rng),
            "price": 9.99 + k,
            "categories": [["Books", x] for x in i.labels],
            "salesRank": {"Books": k},
        }
        for k, i in enumerate(crowd())
    ]
    return Layout("meta_Books.json", lines(items), N, 6, 0)


def real_labels(rng: random.Random) -> Layout:
    """A list of lists of class numbers, and nothing else."""
    return Layout(
        "real.json",
        json.dumps([[LABELS.index(x) for x in i.labels] for i in crowd()]),
        N,
        5,
        0,
        has_features=False,
    )


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


SETS: tuple[Callable[[random.Random], Layout], ...] = (
    snow_answers,
    crowdflower_multi,
    magnatagatune,
    audioset,
    jamendo,
    ecg_codes,
    movie_summaries,
    moral_foundations,
    goemotions_raw,
    gab_rows,
    vqa_answers,
    imaterialist,
    semeval,
    articles,
    user_tags,
    lewidi_2023,
    gender_votes,
    xml_repository,
    hf_arrow_rows,
    imdb,
    arxiv,
    numpy_lists,
    tuple_lists,
    amazon,
    real_labels,
    contributor,
    lists_of_annotators,
    measuring,
)
