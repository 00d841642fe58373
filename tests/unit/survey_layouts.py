"""Files as surveys, forms and Mechanical Turk write them, made small."""

import json
import random
from collections.abc import Callable
from typing import Any

from layouts import LABELS, Layout, N, crowd, lines, table
from wild_layouts import views

Rows = list[list[Any]]


def google_form(rng: random.Random) -> Layout:
    """Google Forms: a row per answer, boxes ticked joined by commas."""
    rows: Rows = [
        [
            "Timestamp",
            "Email Address",
            "Text number",
            "What is in this text? (select all that apply)",
        ]
    ]
    for k, _, w, s in views():
        rows.append(["2024/01/05 10:00:00 AM GMT+1", f"{w}@uni.de", k + 1, ", ".join(s)])
    return Layout("Form Responses 1.csv", table(rows), N, 5, 4, has_features=False)


def ms_form(rng: random.Random) -> Layout:
    """Microsoft Forms: each choice ends with a semicolon."""
    rows: Rows = [
        ["ID", "Start time", "Completion time", "Email", "Name", "Text", "Which emotions?"]
    ]
    for k, i in enumerate(crowd()):
        rows.append(
            [
                k + 1,
                "1/5/24 10:00:00",
                "1/5/24 10:01:00",
                "anonymous",
                "",
                i.text,
                "".join(f"{x};" for x in i.labels),
            ]
        )
    return Layout("forms.csv", table(rows), N, 5, 0)


def kobo(rng: random.Random) -> Layout:
    """KoBo's select_multiple: the choices in one cell, and a column of 0/1 for each."""
    rows: Rows = [["_id", "note", "emotion", *(f"emotion/{x}" for x in LABELS), "_submission_time"]]
    for k, i in enumerate(crowd()):
        rows.append(
            [
                k + 100,
                i.text,
                " ".join(i.labels),
                *(int(x in i.labels) for x in LABELS),
                "2024-01-01T10:00:00",
            ]
        )
    return Layout("kobo.csv", table(rows, ";"), N, 5, 0)


def redcap(rng: random.Random) -> Layout:
    rows: Rows = [["record_id", "note", *(f"emotion___{x}" for x in LABELS), "form_complete"]]
    for k, i in enumerate(crowd()):
        rows.append(
            [
                k + 1,
                i.text,
                *("Checked" if x in i.labels else "Unchecked" for x in LABELS),
                "Complete",
            ]
        )
    return Layout("redcap.csv", table(rows), N, 5, 0)


def limesurvey(rng: random.Random) -> Layout:
    rows: Rows = [["id", "submitdate", "text", *(f"emo[{x}]" for x in LABELS)]]
    for k, i in enumerate(crowd()):
        rows.append(
            [k + 1, "2024-01-01 10:00:00", i.text, *("Y" if x in i.labels else "" for x in LABELS)]
        )
    return Layout("lime.csv", table(rows), N, 5, 0)


def yes_and_no(rng: random.Random) -> Layout:
    """A table somebody made: a column per label, answered in words."""
    rows: Rows = [["Bild", *LABELS]]
    for i in crowd():
        rows.append([f"{i.id}.jpg", *("ja" if x in i.labels else "nein" for x in LABELS)])
    return Layout("bilder.csv", table(rows, ";"), N, 5, 0, has_features=False)


def lists_of_initials(rng: random.Random) -> Layout:
    """A shared sheet: a column per person, called by initials, with all labels each chose."""
    rows: Rows = [["Text", "AB", "CD", "EF"]]
    for i in crowd():
        rows.append([i.text, *("; ".join(said) for said in i.answers.values())])
    return Layout("sheet.csv", table(rows), N, 5, 3)


def first_and_second(rng: random.Random) -> Layout:
    rows: Rows = [["Text", "First rater", "Second rater", "Third rater"]]
    for i in crowd():
        rows.append([i.text, *("; ".join(said) for said in i.answers.values())])
    return Layout("raters.csv", table(rows), N, 5, 3)


def _sets_between(mark: str, name: str) -> Layout:
    rows: Rows = [["id", "text", "labels"], *([i.id, i.text, mark.join(i.labels)] for i in crowd())]
    return Layout(name, table(rows), N, 5, 0)


def slashes(rng: random.Random) -> Layout:
    return _sets_between(" / ", "slashes.csv")


def pluses(rng: random.Random) -> Layout:
    return _sets_between("+", "pluses.csv")


def texts_and_labels(rng: random.Random) -> Layout:
    """No header: a text, and its labels between commas."""
    rows: Rows = [[i.text, ",".join(i.labels)] for i in crowd()]
    return Layout("texts.tsv", table(rows, "\t"), N, 5, 0)


def vectors(rng: random.Random) -> Layout:
    """As data loaders have it: 0 or 1 for every label in one list."""
    items = [{"text": i.text, "labels": [float(x in i.labels) for x in LABELS]} for i in crowd()]
    return Layout("vectors.jsonl", lines(items), N, 5, 0)


def vectors_in_cells(rng: random.Random) -> Layout:
    rows: Rows = [["id", "text", "labels"]]
    rows += [[i.id, i.text, str([int(x in i.labels) for x in LABELS])] for i in crowd()]
    return Layout("vectors.csv", table(rows), N, 5, 0)


def pandas_split(rng: random.Random) -> Layout:
    rows = [[i.text, *(int(x in i.labels) for x in LABELS)] for i in crowd()]
    document = {"columns": ["text", *LABELS], "index": list(range(N)), "data": rows}
    return Layout("split.json", json.dumps(document), N, 5, 0)


def empty_rows_at_the_end(rng: random.Random) -> Layout:
    """A spreadsheet whose last rows and columns were emptied, not deleted."""
    rows: Rows = [["id", "text", "labels", "", ""]]
    rows += [[i.id, i.text, "|".join(i.labels), "", ""] for i in crowd()]
    return Layout("emptied.csv", table(rows) + ",,,,\n" * 3, N, 5, 0)


def ticked_names(rng: random.Random) -> Layout:
    """SurveyMonkey: a column per option, which repeats its name where it was ticked."""
    rows: Rows = [["Respondent ID", "Open-Ended Response", *LABELS]]
    for k, i in enumerate(crowd()):
        rows.append([11400 + k, i.text, *(x if x in i.labels else "" for x in LABELS)])
    return Layout("monkey.csv", table(rows), N, 5, 0)


def turk_labels(rng: random.Random) -> Layout:
    """Mechanical Turk's crowd-classifier-multi-select."""
    rows: Rows = [
        [
            "HITId",
            "AssignmentId",
            "WorkerId",
            "AssignmentStatus",
            "WorkTimeInSeconds",
            "Input.text",
            "Answer.category.labels",
        ]
    ]
    for k, i, w, s in views():
        rows.append(
            [
                f"3H{k}",
                f"A{len(rows)}",
                f"W{w}",
                "Submitted",
                rng.randint(5, 99),
                i.text,
                json.dumps(s),
            ]
        )
    return Layout("Batch_3.csv", table(rows), N, 5, 4)


def turk_nested(rng: random.Random) -> Layout:
    rows: Rows = [
        [
            "HITId",
            "WorkerId",
            "Input.text",
            "Answer.comment",
            *(f"Answer.emotion.{x}" for x in LABELS),
        ]
    ]
    for k, i, w, s in views():
        rows.append(
            [f"3H{k}", f"W{w}", i.text, "", *("TRUE" if x in s else "FALSE" for x in LABELS)]
        )
    return Layout("Batch_4.csv", table(rows), N, 5, 4)


def turk_sparse(rng: random.Random) -> Layout:
    """Checkboxes that are written only when ticked."""
    rows: Rows = [["HITId", "WorkerId", "Input.text", *(f"Answer.{x}" for x in LABELS)]]
    for k, i, w, s in views():
        rows.append([f"3H{k}", f"W{w}", i.text, *("on" if x in s else "" for x in LABELS)])
    return Layout("Batch_5.csv", table(rows), N, 5, 4)


def answers_as_objects(rng: random.Random) -> Layout:
    """A home-made tool: what a person answered, with remarks, as one object."""
    rows: Rows = [["task_id", "worker_id", "text", "answer"]]
    for k, i, w, s in views():
        said = {"labels": s, "unclear": False, "remark": "none"}
        rows.append([f"t{k}", w, i.text, json.dumps(said)])
    return Layout("answers.csv", table(rows), N, 5, 4)


def mechanical_turk(rng: random.Random) -> Layout:
    header = [
        "HITId",
        "HITTypeId",
        "Title",
        "Description",
        "AssignmentId",
        "WorkerId",
        "AcceptTime",
    ]
    rows: list[list[Any]] = [[*header, "Input.text", "Answer.emotions"]]
    for k, item in enumerate(crowd()):
        for who, said in item.answers.items():
            ids = [f"H{k:04d}X", "T1", "Judge emotions", "Say what you feel in this text"]
            rows.append([*ids, f"A{len(rows)}", f"W{who}", "Mon Jan 05", item.text, "|".join(said)])
    return Layout("batch.csv", table(rows), N, 5, 4)


def questions_of_items(rng: random.Random) -> Layout:
    """A spreadsheet of one person: a column per question, yes, no or maybe."""
    rows: Rows = [["Text", *(f"Has {x}?" for x in LABELS)]]
    for i in crowd():
        said = ["yes" if x in i.labels else rng.choice(["no", "no", "maybe"]) for x in LABELS]
        rows.append([i.text, *said])
    return Layout("questions.csv", table(rows), N, 5, 0)


SURVEYS: tuple[Callable[[random.Random], Layout], ...] = (
    *(google_form, ms_form, kobo, redcap, limesurvey, yes_and_no, ticked_names, turk_labels),
    *(turk_nested, turk_sparse, answers_as_objects, mechanical_turk, lists_of_initials),
    *(first_and_second, slashes, pluses, texts_and_labels, vectors, vectors_in_cells, pandas_split),
    empty_rows_at_the_end,
    questions_of_items,
)
