"""Public tables that were once read wrongly, made small: crowds, catalogues, models, tasks."""

import json
import random
from collections.abc import Callable
from typing import Any

from layouts import LABELS, Layout, N, crowd, table
from wild_layouts import text, views

Rows = list[list[Any]]
TAGS = ("file-upload", "c#", "image-processing", "php", "r")


def songs_and_workers(rng: random.Random) -> Layout:
    """Music genres by Mechanical Turk: names of columns with a dot, files with another ending."""
    rows: Rows = [["WorkerID", "Input.song", "Answer.pred_label"]]
    for i in crowd(single=True):
        rows += [[f"A{who}X9", f"{i.id}.0042.wav", said[0]] for who, said in i.answers.items()]
    return Layout("mturk_answers.csv", table(rows), N, 5, 4, has_features=False)


def workers_before_items(rng: random.Random) -> Layout:
    """Textual entailment without a header: worker, question, 0 or 1."""
    rows: Rows = [
        [int(who[1:]), k + 10, int("joy" in said)]
        for k, i in enumerate(crowd())
        for who, said in i.answers.items()
    ]
    return Layout("rte.csv", table(rows), N, 1, 4, has_features=False)


def toloka_fields(rng: random.Random) -> Layout:
    """Toloka: several outputs; a comment that repeats, empty as it mostly is, names no item."""
    rows: Rows = [["INPUT:image", "OUTPUT:cat", "OUTPUT:dog", "OUTPUT:comment", "GOLDEN:cat"]]
    rows[0] += ["ASSIGNMENT:worker_id", "ASSIGNMENT:reward"]
    for k, _, who, said in views():
        flags = [str(name in said).lower() for name in ("anger", "joy")]
        comment = text(rng) if rng.random() < 0.3 else ""
        rows.append([f"https://x.org/{k:04x}.jpg", *flags, comment, "", f"w{who}", 0.05])
    return Layout("assignments.tsv", table(rows, "\t"), N, 2, 4)


def turk_with_comments(rng: random.Random) -> Layout:
    rows: Rows = [["HITId", "WorkerId", "Input.text", "Answer.comment", "Answer.emotions"]]
    for k, item, who, said in views():
        comment = text(rng) if rng.random() < 0.3 else ""
        rows.append([f"3{k:029X}", who, item.text, comment, "|".join(said)])
    return Layout("Batch_1.csv", table(rows), N, 5, 4)


def tags_with_a_sharp(rng: random.Random) -> Layout:
    """Facebook's keywords: spaces between tags, one of which is c#."""
    rows: Rows = [["Id", "Title", "Tags"]]
    rows += [[k, text(rng), " ".join(rng.sample(TAGS, 1 + k % 3))] for k in range(N)]
    return Layout("Train.csv", table(rows), N, 5, 0)


def categories_with_commas(rng: random.Random) -> Layout:
    """EDOS: three questions; a category's name has a comma in it."""
    kinds = {"1. threats, plans to harm": "1.1 threats", "2. derogation": "2.1 attacks"}
    rows: Rows = [["rewire_id", "text", "annotator", "label_category", "label_vector"]]
    for k, item, who, said in views(single=True):
        kind = list(kinds)[said[0] > "g"]
        rows.append([f"sexism-{k}", item.text, who, kind, kinds[kind]])
    return Layout("annotations.csv", table(rows), N, 2, 4)


def lists_of_votes(rng: random.Random) -> Layout:
    """Five people's 0 and 1 in a list, beside what most of them said."""
    rows: Rows = [["id", "text", "annotations", "label"]]
    for i in crowd():
        votes = [rng.randint(0, 1) for _ in range(5)]
        rows.append([i.id, i.text, str(votes), int(sum(votes) > 2)])
    return Layout("disagreement.csv", table(rows), N, 2, 5)


def lists_of_people_and_lists(rng: random.Random) -> Layout:
    """CrowS-Pairs: lists of labels by people, and who they are under an anonymous name."""
    rows: Rows = [["", "sent_more", "bias_type", "annotations", "anon_annotators"]]
    for k, i in enumerate(crowd()):
        given = [str(list(i.answers.values())), str(list(i.answers))]
        rows.append([k, i.text, i.labels[0], *given])
    return Layout("pairs.csv", table(rows), N, 5, 4)


def label_and_confidence(rng: random.Random) -> Layout:
    """A label and a confidence of each model."""
    rows: Rows = [["id", "text"]]
    rows[0] += [f"{m}_{what}" for m in ("gpt4", "claude", "llama") for what in ("label", "score")]
    for i in crowd(single=True):
        said = [[x[0], round(0.4 + 0.6 * rng.random(), 3)] for x in i.answers.values()]
        rows.append([i.id, i.text, *(cell for pair in said for cell in pair)])
    rows[0] = [name.replace("score", "confidence") for name in rows[0]]
    return Layout("models.csv", table(rows), N, 5, 3)


def models_in_rows(rng: random.Random) -> Layout:
    rows: Rows = [["image", "model", *(f"p_{name}" for name in LABELS)]]
    for k in range(N):
        for model in ("resnet50", "vit-b16", "clip"):
            rows.append([f"img_{k}.jpg", model, *(round(rng.random(), 4) for _ in LABELS)])
    return Layout("scores.csv", table(rows), N, 5, 3, has_features=False)


def human_beside_models(rng: random.Random) -> Layout:
    """Lists by two programs, and by a person in a column that only says so."""
    rows: Rows = [["id", "text", "human", "gpt-4o-mini", "mistral-7b"]]
    rows += [[i.id, i.text, *map(json.dumps, i.answers.values())] for i in crowd()]
    return Layout("llms.csv", table(rows), N, 5, 3)


def sets_as_pandas_writes(rng: random.Random) -> Layout:
    rows: Rows = [["id", "text", "labels"]]
    rows += [[i.id, i.text, f"frozenset({{{str(i.labels)[1:-1]}}})"] for i in crowd()]
    return Layout("sets.csv", table(rows), N, 5, 0)


def names_in_brackets(rng: random.Random) -> Layout:
    """CrowdTruth: relations in brackets, one a line; where a worker comes from is no answer."""
    rows: Rows = [["_unit_id", "_channel", "_worker_id", "relations", "sentence"]]
    for k, item, who, said in views():
        shown = "\n".join(f"[{name}]" for name in said)
        rows.append([502806 + k, ["clix", "neo"][who > "r2"], who, shown, item.text])
    return Layout("relex.csv", table(rows), N, 5, 4)


def places_of_genres(rng: random.Random) -> Layout:
    """AcousticBrainz: genre1 to genre3, each at most once."""
    rows: Rows = [["recordingmbid", "genre1", "genre2", "genre3"]]
    for k in range(N):
        names = rng.sample(LABELS, 1 + k % 3)
        rows.append([f"{rng.getrandbits(128):032x}", *names, *[""] * (3 - len(names))])
    return Layout("genres.tsv", table(rows, "\t"), N, 5, 0, has_features=False)


def who_said_what(rng: random.Random) -> Layout:
    rows: Rows = [["id", "post", "annotations"]]
    for i in crowd(single=True):
        said = "; ".join(f"{who}: {names[0]}" for who, names in i.answers.items())
        rows.append([i.id, i.text, said])
    return Layout("posts.csv", table(rows), N, 5, 4)


def observers_of_patients(rng: random.Random) -> Layout:
    """Dawid and Skene: one observer looked three times."""
    rows: Rows = [["patient", "observer", "class"]]
    for k in range(45):
        rows += [[k + 1, who, rng.randint(1, 4)] for who in (1, 1, 1, 2, 3, 4, 5)]
    return Layout("anesthesia.csv", table(rows), 45, 4, 5, has_features=False)


def numbered_answers(rng: random.Random) -> Layout:
    """Ceka's multi-label answers: worker, instance, label and its value."""
    rows: Rows = [["worker_id", "instance_id", "label_id", "label_value"]]
    for k, _, who, said in views():
        rows += [[who, k, name, int(name in said)] for name in LABELS]
    return Layout("responses.csv", table(rows), N, 5, 4, has_features=False)


def two_questions_of_coders(rng: random.Random) -> Layout:
    rows: Rows = [["id", "text", *(f"coder{j}_{q}" for j in (1, 2) for q in ("topic", "tone"))]]
    for i in crowd(single=True):
        first, second = (names[0] for names in list(i.answers.values())[:2])
        tones = rng.choices(["positive", "negative"], k=2)
        rows.append([i.id, i.text, first, tones[0], second, tones[1]])
    return Layout("coders.csv", table(rows), N, 5, 2)


def workers_beside_answers(rng: random.Random) -> Layout:
    """Three answers in columns, each beside whose it is: who come again."""
    rows: Rows = [["id", "text", *(f"{what}_{j}" for j in "123" for what in ("worker", "label"))]]
    for i in crowd(single=True):
        rows.append([i.id, i.text, *(x for who, said in i.answers.items() for x in (who, said[0]))])
    return Layout("pairs_of_columns.csv", table(rows), N, 5, 4)


def users_wrote_comments(rng: random.Random) -> Layout:
    """Users who comment on articles rate none."""
    rows: Rows = [["comment_id", "user", "article_id", "comment", "sentiment"]]
    for k, i in enumerate(crowd()):
        said = rng.choice(["good", "bad", "neither"])
        rows.append([900 + k, f"user{k * k % 7}", f"art{k % 8}", f"{i.text} {k}", said])
    return Layout("comments.csv", table(rows), N, 3, 0)


def flags_amid_numbers(rng: random.Random) -> Layout:
    """0/1 of every subject, behind a text and before what was counted in it."""
    rows: Rows = [["id", "abstract", *LABELS, "score", "n_words"]]
    for i in crowd():
        flags = [int(name in i.labels) for name in LABELS]
        rows.append([i.id, i.text, *flags, round(rng.random(), 4), rng.randint(3, 500)])
    return Layout("articles.csv", table(rows), N, 5, 0)


def counts_before_their_sum(rng: random.Random) -> Layout:
    """CREMA-D's votes: counts, a file's name, then how many answered."""
    rows: Rows = [["", *LABELS, "fileName", "numResponses", "agreement", "meanAngerResp"]]
    for k in range(N):
        counts = [rng.randint(0, 3) for _ in LABELS[1:]] + [4]
        rows.append([k, *counts, f"1001_{k}_XX", sum(counts), 0.5, rng.choice(["", 61.5])])
    most = max(row[-3] for row in rows[1:])
    return Layout("tabulatedVotes.csv", table(rows), N, 5, most, has_features=False)


def terms_and_branches(rng: random.Random) -> Layout:
    """CAFA's terms of proteins: a row per term, and which branch it is of."""
    rows: Rows = [["EntryID", "term", "aspect"]]
    for k in range(N):
        rows += [[f"A0A{k}", name, "CC" if name < "g" else "MF"] for name in rng.sample(LABELS, 3)]
    return Layout("train_terms.tsv", table(rows, "\t"), N, 5, 0, has_features=False)


def numbers_that_name(rng: random.Random) -> Layout:
    """LitCovid: a number per article is an id, not a feature; keywords are not its labels."""
    rows: Rows = [["pmid", "abstract", "keywords", "label"]]
    for k, i in enumerate(crowd()):
        keywords = ";".join(rng.sample(["covid-19", "ards", "icu"], 2))
        rows.append([32519164 + k * k, i.text, keywords, ";".join(i.labels)])
    return Layout("LitCovid.csv", table(rows), N, 5, 0)


def people_in_groups(rng: random.Random) -> Layout:
    """Groups of columns, one of which names who it was; a person's age is no answer."""
    header = [f"{x}_G{j}" for j in (1, 2, 3) for x in ("annotator_id", "age", "hate", "spam")]
    rows: Rows = [["id", "text", *header]]
    for i in crowd():
        cells = [
            (who, 30 + int(who[1:]), int("anger" in said), int("joy" in said))
            for who, said in i.answers.items()
        ]
        rows.append([i.id, i.text, *(cell for group in cells for cell in group)])
    return Layout("groups.csv", table(rows), N, 2, 4)


def two_headers(rng: random.Random) -> Layout:
    rows: Rows = [["id", "text", *["emotions"] * 5], ["", "", *LABELS]]
    rows += [[i.id, i.text, *(int(x in i.labels) for x in LABELS)] for i in crowd()]
    return Layout("two_headers.csv", table(rows), N, 5, 0)


def merged_headers(rng: random.Random) -> Layout:
    """A spreadsheet's merged cells: the person above the labels."""
    rows: Rows = [["", "", "Annotator 1", *[""] * 4, "Annotator 2", *[""] * 4]]
    rows.append(["id", "text", *LABELS, *LABELS])
    for i in crowd():
        two = list(i.answers.values())[:2]
        rows.append([i.id, i.text, *(int(x in said) for said in two for x in LABELS)])
    return Layout("merged.csv", table(rows), N, 5, 2)


def three_headers(rng: random.Random) -> Layout:
    """FMA's tracks, as pandas writes two lines of names and one for the index."""
    rows: Rows = [["", "album", "album", "track", "track", "track", "set"]]
    rows.append(["", "comments", "title", "genre_top", "listens", "title", "split"])
    rows.append(["track_id", *[""] * 6])
    for k in range(N):
        genre = LABELS[k % 5] if k % 3 else ""
        played = [genre, rng.randint(200, 900), f"Song {k} of nights"]
        rows.append([k + 2, k % 9, f"AWOL {k}", *played, "training"])
    return Layout("tracks.csv", table(rows), N, 5, 0)


def row_of_sums(rng: random.Random) -> Layout:
    body = [[i.id, i.text, *(int(x in i.labels) for x in LABELS)] for i in crowd()]
    sums = [sum(row[2 + j] for row in body) for j in range(5)]
    rows: Rows = [["id", "text", *LABELS], *body, ["Total", "", *sums]]
    return Layout("sums.csv", table(rows), N, 5, 0)


def judgements_with_sharps(rng: random.Random) -> Layout:
    """Circa: five people's answers in a cell, some of which have commas in them."""
    known = ["Yes", "No", "In the middle, neither yes nor no", "Yes, subject to conditions"]
    rows: Rows = [["id", "question-X", "answer-Y", "judgements", "goldstandard1"]]
    for k in range(N):
        said = [known[k % 4] if rng.random() < 0.6 else rng.choice(known) for _ in range(5)]
        rows.append([k, text(rng) + "?", text(rng), "#".join(said), known[k % 4]])
    return Layout("circa-data.tsv", table(rows, "\t"), N, 4, 5)


def composite_labels(rng: random.Random) -> Layout:
    """Labels of two parts in the id of a row."""
    names = ("a_left", "a_right", "b_left", "b_right")
    rows: Rows = [["id", "value"]]
    rows += [[f"ID{k}_{x}", rng.randint(0, 1)] for k in range(N) for x in names]
    return Layout("composite.csv", table(rows), N, 4, 0, has_features=False)


def masks_or_nothing(rng: random.Random) -> Layout:
    """Kaggle's clouds: a mask where the picture has the label."""
    rows: Rows = [["Image_Label", "EncodedPixels"]]
    for k in range(N):
        masks = [f"{rng.randint(1, 999)} {k}" if rng.random() < 0.5 else "" for _ in LABELS]
        rows += [[f"{k:07x}.jpg_{x}", one] for x, one in zip(LABELS, masks, strict=True)]
    return Layout("train.csv", table(rows), N, 5, 0, has_features=False)


def lexicon(rng: random.Random) -> Layout:
    """NRC's lexicon: no header; every word with every emotion, 0 or 1."""
    rows = [[f"word{k}", x, rng.randint(0, 1)] for k in range(N) for x in LABELS]
    return Layout("NRC-Lexicon.txt", table(rows, "\t"), N, 5, 0, has_features=False)


TABLES: tuple[Callable[[random.Random], Layout], ...] = (
    songs_and_workers,
    workers_before_items,
    toloka_fields,
    turk_with_comments,
    tags_with_a_sharp,
    categories_with_commas,
    lists_of_votes,
    lists_of_people_and_lists,
    label_and_confidence,
    models_in_rows,
    human_beside_models,
    sets_as_pandas_writes,
    names_in_brackets,
    places_of_genres,
    who_said_what,
    observers_of_patients,
    numbered_answers,
    two_questions_of_coders,
    workers_beside_answers,
    users_wrote_comments,
    flags_amid_numbers,
    counts_before_their_sum,
    terms_and_branches,
    numbers_that_name,
    people_in_groups,
    two_headers,
    merged_headers,
    three_headers,
    row_of_sums,
    judgements_with_sharps,
    composite_labels,
    masks_or_nothing,
    lexicon,
)
