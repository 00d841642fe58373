"""Files of public sets of tags, genres and codes, made small."""

import json
import random
from collections.abc import Callable
from typing import Any

from layouts import LABELS, Layout, N, crowd, lines, table
from wild_layouts import text, views

Rows = list[list[Any]]


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


SETS: tuple[Callable[[random.Random], Layout], ...] = (
    *(magnatagatune, audioset, jamendo, ecg_codes, movie_summaries, imaterialist, semeval),
    *(articles, user_tags, xml_repository, hf_arrow_rows, imdb, arxiv, numpy_lists, tuple_lists),
    *(amazon, real_labels),
)
