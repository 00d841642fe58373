"""Files as people have them: every layout is found by its content, read right and given back."""

import csv
import json
import random
import zipfile
from pathlib import Path
from typing import Any

import format_cases as cases
import layouts
import numpy as np
import pytest
from fuzzing import survive
from layouts import MADE, Layout
from public_layouts import PUBLIC
from scipy.io import savemat
from set_layouts import SETS
from tool_layouts import TOOLS
from typer.testing import CliRunner
from wild_layouts import WILD

from core import formats
from core.cli import app, screen
from core.data.votes import Votes
from core.engine.config import PlainConfig
from core.engine.trainer import PlainTrainer
from core.errors import DatasetError, Problem, grouped
from core.formats import ColumnMapping
from core.formats.readers.json_tables.wide import wide_table

STRANGERS = Path(__file__).parents[2].parent / "shared" / "strangers"
NAMED = {make.__name__: make() for make in MADE}
NAMED |= {make.__name__: make(random.Random(0)) for make in (*WILD, *PUBLIC, *TOOLS, *SETS)}
each_layout = pytest.mark.parametrize(
    "layout", [pytest.param(layout, id=name) for name, layout in NAMED.items()]
)
MUTATIONS = 6  # per layout here; `python tests/unit/test_layouts.py 2000` makes many


def said(votes: Votes | None, ids: Any, labels: Any) -> Any:
    return None if votes is None else votes.to_table(ids, labels).to_dict("list")


@each_layout
def test_a_layout_is_found_by_its_content(layout: Layout, tmp_path: Path) -> None:
    path = layout.write(tmp_path)
    found = CliRunner().invoke(app, ["check", str(path), "--json"])
    assert found.exit_code == 0, found.output
    summary = json.loads(found.stdout)["summary"]
    sizes = summary["n_instances"], summary["n_labels"], summary["n_sources"]
    assert sizes == (layout.n_instances, layout.n_labels, layout.n_sources)
    assert (summary["n_features"] > 0) == layout.has_features


@pytest.mark.parametrize("name", ["no_label_words", "scored_toxicity", "yes_no_unsure"])
def test_what_check_says_fits_a_screen(name: str, tmp_path: Path, monkeypatch: Any) -> None:
    path = NAMED[name].write(tmp_path)
    monkeypatch.setattr(screen.out, "_width", 100)
    done = CliRunner().invoke(app, ["check", str(path)])
    assert done.exit_code == 0
    lines = done.output.splitlines()
    assert len(lines) <= 40
    assert max(map(len, lines)) <= 100


@each_layout
def test_a_layout_comes_back_as_it_came(layout: Layout, tmp_path: Path) -> None:
    path = layout.write(tmp_path)
    first = formats.read(path)
    data = first.dataset
    out = tmp_path / f"out{path.suffix}"
    formats.write(data, out, resolution=cases.resolution_of(data), format=first.format)
    again = formats.read(out).dataset
    assert again.ids == data.ids
    assert tuple(again.label_names) == tuple(data.label_names)
    np.testing.assert_array_equal(again.candidates, data.candidates)
    assert said(again.votes, again.ids, again.label_names) == said(
        data.votes, data.ids, data.label_names
    )


@each_layout
def test_a_saved_mapping_reads_the_same(layout: Layout, tmp_path: Path) -> None:
    path = layout.write(tmp_path)
    first = formats.read(path)
    if first.mapping is None:
        pytest.skip("tasks state the role of everything in them")
    first.mapping.save(tmp_path / "mapping.json")
    again = formats.read(path, ColumnMapping.load(tmp_path / "mapping.json"))
    assert again.dataset.fingerprint == first.dataset.fingerprint
    assert again.mapping is not None
    assert again.mapping.model_dump(exclude={"reasons"}) == first.mapping.model_dump(
        exclude={"reasons"}
    )


@each_layout
def test_one_row_per_item_keeps_the_votes(layout: Layout, tmp_path: Path) -> None:
    data = formats.read(layout.write(tmp_path)).dataset
    for kind in ("csv", "jsonl", "parquet"):
        path = formats.write(data, tmp_path / f"items.{kind}", per_item=True)
        again = formats.read(path).dataset
        assert again.ids == data.ids
        assert sorted(again.label_names) == sorted(data.label_names)
        assert said(again.votes, again.ids, again.label_names) == said(
            data.votes, data.ids, data.label_names
        )


RATED = (
    (layouts.rater_rows_one_hot, lambda who: who[1:]),
    (layouts.rater_rows_sets, str),
    (layouts.worker_task_label, str),
    (layouts.long_with_value, str),
    (layouts.annotator_columns, lambda who: f"annotator_{who[1:]}"),
    (layouts.keyed_by_source, str),
)


@pytest.mark.parametrize(("make", "name"), RATED, ids=[make.__name__ for make, _ in RATED])
def test_votes_are_who_said_what(make: Any, name: Any, tmp_path: Path) -> None:
    data = formats.read(make().write(tmp_path)).dataset
    by_text = {item.text: item for item in layouts.crowd()}
    items = {item.id: item for item in layouts.crowd()}
    assert data.votes is not None
    for row, key in enumerate(data.ids):
        item = items.get(key)
        if item is None:
            assert data.display is not None
            item = by_text[data.display["text.context"][row]]
        for j, label in enumerate(data.label_names):
            yes = sorted(name(who) for who, names in item.answers.items() if label in names)
            no = sorted(name(who) for who, names in item.answers.items() if label not in names)
            found = data.votes.offered_by(row, j)
            assert (sorted(found[0]), sorted(found[1])) == (yes, no)


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


def test_probabilities_of_models_are_votes_and_stay_in_the_export(tmp_path: Path) -> None:
    path = layouts.model_probabilities().write(tmp_path)
    data = formats.read(path).dataset
    assert data.votes is not None
    with path.open() as file:
        rows = list(csv.DictReader(file))
    j = data.label_names.index("joy")
    for i, row in enumerate(rows):
        yes, no = data.votes.offered_by(i, j)
        assert yes == [m for m in data.votes.sources if float(row[f"{m}_joy"]) >= 0.5]
        assert len(yes) + len(no) == 3
    out = formats.write(data, tmp_path / "b.csv", resolution=cases.resolution_of(data))
    with out.open() as file:
        kept = list(csv.DictReader(file))
    assert [row["model_a_joy"] for row in kept] == [row["model_a_joy"] for row in rows]


def test_rows_of_raters_stay_rows_of_raters(tmp_path: Path) -> None:
    path = layouts.rater_rows_one_hot().write(tmp_path)
    data = formats.read(path).dataset
    resolution = cases.resolution_of(data)
    out = formats.write(data, tmp_path / "b.csv", resolution=resolution)
    given, written = path.read_text().splitlines(), out.read_text().splitlines()
    assert len(given) == len(written)
    assert all(new.startswith(old) for old, new in zip(given, written, strict=True))
    for row in csv.DictReader(written):
        i = data.row_of[row["id"]]
        assert [int(row[f"resolved_{x}"]) for x in data.label_names] == resolution.labels[
            i
        ].tolist()


@each_layout
def test_mutated_files_are_read_or_refused(layout: Layout, tmp_path: Path) -> None:
    path = layout.write(tmp_path)
    survive(formats.read, path.read_bytes(), path, MUTATIONS)


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


def test_mutated_folders_of_hugging_face_are_read_or_refused(tmp_path: Path) -> None:
    folder = formats.write(cases.small_dataset(), tmp_path / "set", format="datasets")
    for path in sorted(folder.iterdir()):
        healthy = path.read_bytes()
        survive(lambda _: formats.read(folder), healthy, path, 10 * MUTATIONS)
        path.write_bytes(healthy)
    formats.read(folder)


def test_a_dense_table_of_mostly_zeros_in_a_mat_file_is_read_as_sparse(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    data = (rng.random((400, 2000)) < 0.01) * rng.random((400, 2000))
    labels = (rng.random((6, 400)) < 0.3).astype(float)
    path = tmp_path / "dense.mat"
    savemat(path, {"data": data, "target": labels, "partial_labels": labels}, do_compression=True)
    assert data.nbytes > 20 * path.stat().st_size
    found = CliRunner().invoke(app, ["check", str(path), "--json"])
    assert found.exit_code == 0
    summary = json.loads(found.stdout)["summary"]
    assert (summary["n_instances"], summary["n_features"], summary["n_labels"]) == (400, 2000, 6)
    assert summary["sparse"]
    np.testing.assert_array_equal(
        formats.read(path).dataset.features.toarray(), data.astype(np.float32)
    )


def test_without_features_a_run_goes_by_votes_and_labels_alone(tmp_path: Path) -> None:
    data = formats.read(layouts.worker_task_label().write(tmp_path)).dataset
    trainer = PlainTrainer(PlainConfig.preset("studio", epochs=2))
    events = list(trainer.epochs(data))
    assert events[0].kind == "run_started"
    assert events[0].config.alpha == 0
    offered = data.candidates > 0
    assert data.votes is not None
    votes = (data.votes.n_yes / np.maximum(data.votes.n_asked, 1))[offered]
    assert np.corrcoef(votes, trainer.confidences[offered])[0, 1] > 0.5


def test_wide_json_lines_are_read_alike_by_both_parsers(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    records = [
        {
            "id": f"i{i}",
            "text": "2020-01-01",
            **{f"feature_{j}": 0 for j in range(120)},
            "label_a": i % 2,
        }
        for i in range(80)
    ]
    for record in records:
        record["feature_3"] = float(rng.random()) if record["id"] > "i6" else 0
    path = tmp_path / "wide.jsonl"
    path.write_text(layouts.lines(records))
    assert wide_table(path) is not None
    fast = formats.read(path).dataset
    path.write_text(layouts.lines([*records[:-1], {**records[-1], "more": [1, {"a": 2}]}]))
    assert wide_table(path) is None
    slow = formats.read(path).dataset
    np.testing.assert_array_equal(cases.dense(fast.features), cases.dense(slow.features))
    assert (fast.ids, fast.label_names) == (slow.ids, slow.label_names)
    assert fast.display is not None
    assert fast.display["text"][0] == "2020-01-01"


def test_findings_of_many_rows_are_one_line() -> None:
    listed = [Problem("must hold", "Fix.", row=i) for i in range(20)]
    rest = Problem("… and 80 more: must hold", "Fix.", count=80, repeats="must hold")
    (one,) = grouped([*listed, rest])
    assert (one.count, one.row, one.message) == (100, "0, 1, 2 …", "must hold")
    alone = Problem("other", "Fix.", row=3)
    assert grouped([alone]) == [alone]


def test_rejected_labels_are_no_candidates(tmp_path: Path) -> None:
    said = [("sea", "accept"), ("sun", "reject"), ("sky", "reject"), ("sea", "ignore")]
    given = [
        {
            "text": f"words of text {k}",
            "_input_hash": k,
            "label": name,
            "answer": answer,
            "score": 0.5,
        }
        for k, (name, answer) in enumerate(5 * said)
    ]
    for keys in (("_input_hash", "text", "label", "answer", "score"), ("text", "label", "answer")):
        path = tmp_path / "teach.jsonl"
        path.write_text(layouts.lines([{key: one[key] for key in keys} for one in given]))
        data = formats.read(path).dataset
        assert (data.n_instances, data.label_names) == (20, ("sea", "sky", "sun"))
        assert data.candidates.sum() == 5
        assert data.has_features


def test_boxes_that_were_not_ticked_are_no(tmp_path: Path) -> None:
    data = formats.read(NAMED["turk_sparse"].write(tmp_path)).dataset
    assert data.votes is not None
    for row, item in enumerate(layouts.crowd()):
        for j, label in enumerate(layouts.LABELS):
            yes = sorted(f"W{who}" for who, names in item.answers.items() if label in names)
            no = sorted(f"W{who}" for who, names in item.answers.items() if label not in names)
            found = data.votes.offered_by(row, j)
            assert (sorted(found[0]), sorted(found[1])) == (yes, no)


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


def test_converted_class_numbers_keep_their_names(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "out").mkdir()
    path = layouts.headerless_numbers().write(tmp_path / "in")
    for name in ("b.tsv", "b.jsonl", "b.parquet"):
        done = CliRunner().invoke(app, ["convert", str(path), str(tmp_path / "out" / name)])
        assert done.exit_code == 0, done.output
        again = formats.read(tmp_path / "out" / name).dataset
        assert again.label_names == layouts.LABELS
        np.testing.assert_array_equal(again.candidates, formats.read(path).dataset.candidates)


def packed(path: Path, folder: Path, names: tuple[str, ...]) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name in names:
            archive.write(folder / name, f"set/{name}")
    return path


@pytest.mark.parametrize("kind", ["zip", "folder"])
def test_class_numbers_and_their_names_come_in_one_zip_or_folder(kind: str, tmp_path: Path) -> None:
    folder = tmp_path / "set"
    folder.mkdir()
    layout = layouts.headerless_numbers()
    alone = formats.read(layout.write(folder)).dataset
    (folder / "README.md").write_text("what this is\n")
    names = (layout.name, *layout.beside, "README.md")
    path = packed(tmp_path / "set.zip", folder, names) if kind == "zip" else folder
    result = formats.read(path)
    assert result.dataset.fingerprint == alone.fingerprint
    assert result.dataset.label_names == layouts.LABELS
    made = cases.resolution_of(result.dataset)
    out = formats.write(result.dataset, tmp_path / "out.tsv", resolution=made)
    assert formats.read(out).dataset.label_names == layouts.LABELS


def test_several_tables_in_a_zip_are_named(tmp_path: Path) -> None:
    for name in ("train.csv", "test.csv"):
        (tmp_path / name).write_text("id,labels\n1,a\n2,b\n")
    path = packed(tmp_path / "both.zip", tmp_path, ("train.csv", "test.csv"))
    with pytest.raises(DatasetError, match="one data file") as caught:
        formats.read(path)
    assert "train.csv" in str(caught.value.problems[0].value)


def test_a_mulan_set_is_read_from_its_zip(tmp_path: Path) -> None:
    data = cases.small_dataset()
    formats.write(data, tmp_path / "set.arff")
    (tmp_path / "notes.txt").write_text("what this is\n")
    path = packed(tmp_path / "mulan.zip", tmp_path, ("notes.txt", "set.arff", "set.xml"))
    assert formats.read(path).dataset.label_names == tuple(data.label_names)


def test_an_export_is_read_from_its_zip_with_what_was_found_out(tmp_path: Path) -> None:
    data = formats.read(layouts.rater_rows_sets().write(tmp_path)).dataset
    formats.write(data, tmp_path / "out.csv", resolution=cases.resolution_of(data), record={})
    names = ("out.csv", "out.csv.plain.npz", "out.csv.provenance.json")
    found = formats.read(packed(tmp_path / "out.zip", tmp_path, names))
    assert found.outcome is not None
    assert found.dataset.votes is not None


KNOWN = {
    "goemotions_dev.tsv": (5426, 28, 0, True),
    "convabuse_train.csv": (2501, 17, 8, True),
    "lewidi_varierr_dev.json": (50, 3, 4, True),
    "fsd_train_noisy.csv": (19815, 80, 0, False),
    "YeastBP.mat": (6139, 217, 0, True),
}


@pytest.mark.skipif(not STRANGERS.is_dir(), reason="the files of strangers are not here")
@pytest.mark.parametrize("name", KNOWN)
def test_real_files_are_read_without_a_mapping(name: str) -> None:
    data = formats.read(STRANGERS / name).dataset
    n_sources = 0 if data.votes is None else data.votes.n_sources
    assert (data.n_instances, data.n_labels, n_sources, data.has_features) == KNOWN[name]


def main(n: int) -> None:
    import resource
    import tempfile
    import time

    for name, layout in NAMED.items():
        with tempfile.TemporaryDirectory() as folder:
            path = layout.write(Path(folder))
            start = time.perf_counter()
            outcomes = survive(formats.read, path.read_bytes(), path, n)
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
            seconds = time.perf_counter() - start
            print(name, dict(outcomes), f"{seconds:.0f} s, peak {peak} MB", flush=True)


if __name__ == "__main__":
    import sys

    main(int(sys.argv[1]) if len(sys.argv) > 1 else 2000)
