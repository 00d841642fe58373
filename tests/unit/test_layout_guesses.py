"""What is taken for an item, a rater, a label or a feature, and what is asked about."""

import json
import random
from pathlib import Path
from typing import Any

import layouts
import pandas as pd
import pytest
from challenge_layouts import class_numbers_in_places, named_flags
from typer.testing import CliRunner

from core import formats
from core.cli import app
from core.errors import DatasetError
from core.formats import ColumnMapping


def test_ids_dates_and_constants_are_no_features(tmp_path: Path) -> None:
    rows = ["worker_id,created_at,version,x,conv_id,hash,label_a,label_b"]
    rows += [f"{i * 7},{1.6e9 + i},2,{i % 7 / 7},{i},{i * 99:x},{i % 2},1" for i in range(30)]
    path = tmp_path / "a.csv"
    path.write_text("\n".join(rows))
    assert formats.read(path).dataset.feature_names == ("x",)


def test_numbers_that_may_be_categories_are_asked_about(tmp_path: Path) -> None:
    rows = ["id,region,x,y,label_a,label_b"]
    rows += [f"{i},{i % 4},{i / 7},{i / 3},{i % 2},1" for i in range(60)]
    path = tmp_path / "a.csv"
    path.write_text("\n".join(rows))
    problems = formats.read(path).dataset.check()
    assert any("categories" in one.message and "region (4" in str(one.value) for one in problems)


def test_a_grid_of_unknown_names_is_asked_about(tmp_path: Path) -> None:
    rows = ["id,text,anna_sea,anna_sun,bob_sea,bob_sun"]
    rows += [f"{i},words of item {i},{i % 2},1,{i % 3 % 2},0" for i in range(30)]
    path = tmp_path / "a.csv"
    path.write_text("\n".join(rows))
    first = formats.read(path)
    assert (first.dataset.n_labels, first.dataset.votes) == (4, None)
    assert any("--row people" in one.fix for one in first.problems)
    data = formats.read(path, ColumnMapping(row="people")).dataset
    assert (data.n_labels, data.votes and data.votes.sources) == (2, ("anna", "bob"))


def test_class_numbers_in_several_columns_are_sets_when_stated(tmp_path: Path) -> None:
    path = class_numbers_in_places(random.Random(0)).write(tmp_path)
    columns = ("First_label", "Second_label", "Third_label")
    found = formats.read(path, ColumnMapping(labels=columns)).dataset
    guessed = formats.read(path).dataset
    assert found.label_names == guessed.label_names == ("1", "2", "3", "4", "5")
    assert (found.candidates == guessed.candidates).all()
    pd.read_csv(path).to_csv(path, index=False)  # with gaps: 3.0
    assert ",3.0" in path.read_text()
    again = formats.read(path).dataset
    assert again.label_names == found.label_names
    assert (again.candidates == found.candidates).all()


def test_names_between_commas_may_be_long_and_ids_called_codes_are_none(tmp_path: Path) -> None:
    names = ["Science Fiction", "Action Adventure", "Family Drama"]
    rows = ["code,film,kind,country"]
    rows += [
        f'c{i},f{i},"{names[i % 3]}, {names[(i + 1) % 3]}",{"de" if i % 2 else "fr"}'
        for i in range(60)
    ]
    path = tmp_path / "a.csv"
    path.write_text("\n".join(rows))
    found = formats.read(path)
    assert found.dataset.label_names == tuple(sorted(names))
    assert not any("which column" in one.message for one in found.problems)


def test_two_columns_of_class_numbers_that_never_end_are_no_places(tmp_path: Path) -> None:
    rows = ["file,coarse_label,fine_label", *(f"{i}.png,{i % 3},{i % 7}" for i in range(60))]
    path = tmp_path / "a.csv"
    path.write_text("\n".join(rows))
    found = formats.read(path)
    assert found.mapping is not None
    assert found.mapping.layout == "one_hot"
    assert any(one.message.startswith("what do the numbers say?") for one in found.problems)


def test_the_names_of_bare_flags_are_those_of_a_file_as_long(tmp_path: Path) -> None:
    layout = named_flags(random.Random(0))
    path = layout.write(tmp_path)
    assert formats.read(path).dataset.label_names == layouts.LABELS
    (tmp_path / "Tags.txt").write_text("sea\nsun\n")
    assert formats.read(path).dataset.label_names == tuple(f"column{j}" for j in range(1, 6))


def test_one_item_alone_is_an_item_and_too_few(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    item = {"sequence": "a boat", "labels": ["sea", "sun"], "scores": [0.9, 0.2]}
    path.write_text(json.dumps(item))
    with pytest.raises(DatasetError, match=r"at least 3 instances \(found 1\)"):
        formats.read(path)
    path.write_text(json.dumps([item] * 3))
    assert formats.read(path).dataset.candidates.sum() == 3


def test_lists_of_nothing_are_no_flags(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    rows = [{"label_a": [], "label_b": k % 2, "label_c": 1 - k % 2, "x": k / 7} for k in range(9)]
    path.write_text(layouts.lines(rows))
    assert formats.read(path).dataset.label_names == ("b", "c")


def test_where_something_stands_in_a_text_is_no_feature(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    for numbers, features in (([3, 9], "text"), ([9, 3], "list"), ([0.5, 1.5], "list")):
        records = [
            {"text": f"a boat {k}", "labels": ["sea", "sun"][k % 2 :], "at": numbers}
            for k in range(9)
        ]
        path.write_text(layouts.lines(records))
        mapping = formats.read(path).mapping
        assert mapping is not None
        assert mapping.feature_layout == features


def _checked(path: Path, *options: str) -> dict[str, Any]:
    found = CliRunner().invoke(app, ["check", str(path), *options, "--json"])
    return json.loads(found.stdout) | {"exit_code": found.exit_code}


@pytest.mark.parametrize(
    ("column", "cells", "names"),
    [
        ("variety", ["setosa", "virginica"], {"setosa", "virginica"}),
        ("birds", ["acafly acowoo", "acowoo", "acafly"], {"acafly", "acowoo"}),
        ("Etiketten", ["grün/blau", "rot/grün", "blau", "rot"], {"grün", "blau", "rot"}),
    ],
)
def test_the_only_names_that_come_again_are_taken_for_labels_and_asked_about(
    tmp_path: Path, column: str, cells: list[str], names: set[str]
) -> None:
    rows = [f"x,y,{column},part"]
    rows += [
        f"{i / 7},{i / 3},{cells[i % len(cells)]},{'train test'.split()[i % 2]}" for i in range(40)
    ]
    path = tmp_path / "a.csv"
    path.write_text("\n".join(rows))
    found = formats.read(path)
    assert set(found.dataset.label_names) == names
    (asked,) = [one for one in found.problems if one.message.startswith("which column")]
    assert "--labels" in asked.fix


def test_labels_that_nothing_tells_are_stated_by_an_option(tmp_path: Path) -> None:
    rows = ["x,quality,site,place"]
    rows += [f"{i / 7},{3 + i % 4},{'ab'[i % 2]},{'pqr'[i % 3]}" for i in range(40)]
    path = tmp_path / "a.csv"
    path.write_text("\n".join(rows))
    asked = _checked(path)
    assert asked["exit_code"] == 0
    (question,) = [one for one in asked["problems"] if "?" in one["message"]]
    assert "'site' is taken" in question["message"]
    assert "'place'" in question["value"]
    assert "--labels" in question["fix"]
    taken = _checked(path, "--labels", "quality")
    assert (taken["exit_code"], taken["summary"]["n_labels"]) == (0, 4)
    assert taken["summary"]["n_features"] == 1


def test_repeated_ids_without_a_rater_are_asked_about(tmp_path: Path) -> None:
    rows = ["id,text,labels"]
    rows += [f"{i // 2},item {i // 2} has words in it,{'ab'[i % 2]};c" for i in range(30)]
    path = tmp_path / "a.csv"
    path.write_text("\n".join(rows))
    with pytest.raises(DatasetError, match="what is one row") as caught:
        formats.read(path)
    assert len(caught.value.problems) == 1
    assert "--row view" in caught.value.problems[0].fix
    data = formats.read(path, ColumnMapping(row="view")).dataset
    assert data.votes is not None
    assert (data.n_instances, data.n_labels, data.votes.n_sources) == (15, 3, 2)
    found = CliRunner().invoke(app, ["check", str(path), "--row", "view", "--json"])
    assert json.loads(found.stdout)["summary"]["n_sources"] == 2


@pytest.mark.parametrize(
    "rater", ["rater_id", "annotator", "worker", "WorkerId", "user", "user_id"]
)
def test_raters_who_answer_once_are_raters(rater: str, tmp_path: Path) -> None:
    rows: list[list[Any]] = [["item_id", rater, "text", "label"]]
    rows += [
        [item.id, f"p{9 * k + j}", item.text, said[0]]
        for k, item in enumerate(layouts.crowd(single=True))
        for j, said in enumerate(item.answers.values())
    ]
    path = tmp_path / "once.csv"
    path.write_text(layouts.table(rows))
    data = formats.read(path).dataset
    assert data.votes is not None
    assert (data.n_instances, data.n_labels, data.votes.n_sources) == (40, 5, 120)


def test_users_who_write_about_a_thing_are_no_raters_of_it(tmp_path: Path) -> None:
    rows: list[list[Any]] = [["user_id", "item_id", "review", "labels"]]
    rows += [
        [f"u{k}", f"i{k // 4}", f"what user {k} wrote of it", "a;b" if k % 2 else "b;c"]
        for k in range(40)
    ]
    path = tmp_path / "reviews.csv"
    path.write_text(layouts.table(rows))
    with pytest.raises(DatasetError, match="what is one row"):
        formats.read(path)
    assert formats.read(path, ColumnMapping(id=None)).dataset.n_instances == 40


def test_raters_of_items_that_never_repeat_are_asked_about(tmp_path: Path) -> None:
    rows: list[list[Any]] = [["item_id", "rater_id", "text", "labels"]]
    rows += [[i.id, k % 7, i.text, ";".join(i.labels)] for k, i in enumerate(layouts.crowd())]
    path = tmp_path / "one_each.csv"
    path.write_text(layouts.table(rows))
    found = formats.read(path)
    assert found.dataset.votes is None
    (asked,) = [one for one in found.problems if one.message.startswith("what is one row?")]
    assert "--source rater_id" in asked.fix
    assert "rater_id" not in found.dataset.feature_names
    stated = formats.read(path, ColumnMapping(row="view", source="rater_id", id="item_id"))
    assert stated.dataset.votes is not None
    assert stated.dataset.votes.n_sources == 7
    assert not formats.read(path, ColumnMapping(row="item")).problems


@pytest.mark.parametrize("numbers", [True, False], ids=["numbers", "names"])
def test_items_workers_and_labels_without_a_header_are_asked_about(
    numbers: bool, tmp_path: Path
) -> None:
    rows: list[list[Any]] = [
        [k + 1, int(who[1:]) + 7, layouts.LABELS.index(said[0])]
        if numbers
        else [f"A2IG{who}7P", f"http://site{k}.com", said[0]]
        for k, item in enumerate(
            layouts.crowd(single=True, raters=tuple(f"r{j}" for j in range(9)))
        )
        for who, said in item.answers.items()
    ]
    path = tmp_path / "labels.tsv"
    path.write_text(layouts.table(rows, "\t"))
    found = formats.read(path)
    (asked,) = [one for one in found.problems if one.message.startswith("what is one row?")]
    data, item = found.dataset, "column1" if numbers else "column2"
    assert f"--source {item}" in asked.fix
    assert data.votes is not None
    assert (data.n_instances, data.n_labels, data.votes.n_sources) == (40, 5, 9)
    turned = formats.read(path, ColumnMapping(row="view", source=item)).dataset
    assert turned.n_instances == 9
    assert formats.read(path, ColumnMapping(row="item")).dataset.votes is None


def test_items_that_repeat_without_a_rater_are_asked_about(tmp_path: Path) -> None:
    rows: list[list[Any]] = [["Timestamp", "Text number", "What is it about?"]]
    rows += [
        [f"2024/01/05 {k:02d}:{j:02d}", k, ", ".join(said)]
        for k, item in enumerate(layouts.crowd())
        for j, said in enumerate(item.answers.values())
    ]
    path = tmp_path / "form.csv"
    path.write_text(layouts.table(rows))
    (asked,) = [one for one in formats.read(path).problems if "what is one row?" in one.message]
    assert "Text number" in asked.message
    data = formats.read(path, ColumnMapping(row="view", id="Text number")).dataset
    assert data.votes is not None
    assert (data.n_instances, data.n_labels, data.votes.n_sources) == (40, 5, 3)


def test_columns_that_may_as_well_hold_labels_are_asked_about(tmp_path: Path) -> None:
    rng = random.Random(0)
    header = ["id", "title", "categories", "genres", "rating"]
    rows: list[list[Any]] = [header]
    for item in layouts.crowd():
        sets = [";".join(rng.sample(names, 2)) for names in ("abcd", "wxyz")]
        rows.append([item.id, item.text, *sets, rng.choice(["PG", "R"])])
    path = tmp_path / "games.csv"
    path.write_text(layouts.table(rows))
    found = formats.read(path)
    (asked,) = [one for one in found.problems if one.message.startswith("which column")]
    assert "'categories' is taken" in asked.message
    assert asked.value == "may also be 'genres'"
    stated = formats.read(path, ColumnMapping(labels=("genres",)))
    assert stated.dataset.label_names == ("w", "x", "y", "z")
    assert not [one for one in stated.problems if one.message.startswith("which column")]


def test_texts_that_come_again_are_asked_about(tmp_path: Path) -> None:
    rows: list[list[Any]] = [["Text-Nr.", "Text", "Wer", "Emotionen"]]
    for k, item in enumerate(layouts.crowd()):
        rows += [[k, item.text, who, ", ".join(said)] for who, said in item.answers.items()]
    path = tmp_path / "umfrage.csv"
    path.write_text(layouts.table(rows, ";"))
    (asked,) = [one for one in formats.read(path).problems if one.message.startswith("what is")]
    assert "has the same in several rows" in asked.message


def test_one_zero_and_minus_one_of_people_are_asked_about(tmp_path: Path) -> None:
    rows: list[list[Any]] = [["id", "tweet", "annotator1", "annotator2", "annotator3"]]
    for k, item in enumerate(layouts.crowd()):
        rows.append([item.id, item.text, k % 3 - 1, (k + 1) % 3 - 1, k % 2])
    path = tmp_path / "stance.csv"
    path.write_text(layouts.table(rows))
    (asked,) = [one for one in formats.read(path).problems if one.message.startswith("what does")]
    assert "-1" in asked.message


@pytest.mark.parametrize("survey", [True, False], ids=["qualtrics", "form"])
def test_people_in_rows_and_items_in_columns_are_asked_about(survey: bool, tmp_path: Path) -> None:
    rng = random.Random(0)
    header = ["EndDate", "ResponseId", *(f"{k}_Q2" for k in range(1, 5))]
    rows: list[list[Any]] = [header]
    if survey:
        rows.append(["End Date", "Response ID", *(f"What is in text {k}?" for k in range(1, 5))])
        rows.append([json.dumps({"ImportId": name}) for name in header])
    for k in range(30):
        said = [",".join(rng.sample(layouts.LABELS, 1 + k % 2)) for _ in range(4)]
        rows.append(["2024-01-01 10:00", f"R_{k:05x}", *said])
    path = tmp_path / "survey.csv"
    path.write_text(layouts.table(rows))
    found = formats.read(path)
    (asked,) = [one for one in found.problems if one.message.startswith("what is one row?")]
    assert "turn the table" in asked.fix
    assert (found.dataset.n_instances, found.dataset.n_labels) == (30, 5)
    assert formats.read(path, ColumnMapping(row="item", labels=("1_Q2",))).dataset.votes is None


def test_lists_of_numbers_beside_flags_are_no_labels(tmp_path: Path) -> None:
    given = [
        {"text": f"words of {k}", "marks": [k % 3] * (1 + k % 4), "sea": k % 2, "sun": k % 3 // 2}
        for k in range(30)
    ]
    path = tmp_path / "marks.jsonl"
    path.write_text(layouts.lines(given))
    assert formats.read(path).dataset.label_names == ("sea", "sun")


def test_lists_with_null_among_texts_are_read(tmp_path: Path) -> None:
    given = [{"concepts": ["ab"[k % 2], None], "body": [f"text {k}", "more"]} for k in range(30)]
    path = tmp_path / "lists.jsonl"
    path.write_text(layouts.lines(given))
    assert formats.read(path).dataset.label_names == ("a", "b")


def test_views_may_have_a_column_of_nothing_but_null(tmp_path: Path) -> None:
    given = [
        {"id": k // 3, "rater": k % 3, "meta": None, "labels": ["ab"[k % 2]]} for k in range(30)
    ]
    path = tmp_path / "views.jsonl"
    path.write_text(layouts.lines(given))
    data = formats.read(path).dataset
    assert data.votes is not None
    assert (data.n_instances, data.votes.n_sources) == (10, 3)


def test_empty_lines_before_a_table_are_passed_over(tmp_path: Path) -> None:
    layout = layouts.rater_rows_sets()
    path = layout.write(tmp_path)
    whole = formats.read(path).dataset
    path.write_text("\r\n\n" + layout.text)
    assert formats.read(path).dataset.fingerprint == whole.fingerprint
    path.write_text("\n" + "\n".join(",".join(["", "fear", "fear"]) for _ in range(9)))
    assert formats.read(path).dataset.n_instances == 9
