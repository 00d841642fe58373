"""Which column plays which role: guesses with reasons, overrides, JSON."""

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

from core.errors import DatasetError
from core.formats import read
from core.formats.shared.mapping import ColumnMapping, guess_mapping

N = 12
NUMBERS = [0.5 * i for i in range(N)]
FLAGS = [0, 1] * (N // 2)


def table(**columns: Any) -> pa.Table:
    return pa.table({name.replace("__", " "): values for name, values in columns.items()})


def test_prefixed_flags_are_labels_and_numbers_are_features() -> None:
    found = guess_mapping(table(id=list(range(N)), x=NUMBERS, label_a=FLAGS, label_b=FLAGS))
    assert found.reasons["features"] == "1 other column holds numbers"
    assert (found.id, found.features, found.labels) == ("id", ("x",), ("label_a", "label_b"))
    assert found.layout == "one_hot"
    assert found.columns == ("id", "x", "label_a", "label_b")
    assert {"id", "features", "labels"} <= set(found.reasons)


def test_flags_without_prefix_are_labels_when_they_end_the_table() -> None:
    found = guess_mapping(table(x=NUMBERS, was_new=FLAGS, y=NUMBERS, sea=FLAGS, dog=FLAGS))
    assert found.labels == ("sea", "dog")
    assert found.features == ("x", "was_new", "y")
    assert "last 2 columns" in found.reasons["labels"]


def test_flags_that_begin_the_table_are_labels_when_none_end_it() -> None:
    found = guess_mapping(table(sea=FLAGS, dog=FLAGS, x=NUMBERS))
    assert found.labels == ("sea", "dog")


@pytest.mark.parametrize(
    ("values", "style"),
    [([0, 1], "0/1"), ([-1, 1], "-1/1"), ([True, False], "true/false"), ([0.0, 1.0], "0/1")],
)
def test_style_of_flags_is_kept(values: list[Any], style: str) -> None:
    found = guess_mapping(table(x=NUMBERS, label_a=values * (N // 2)))
    assert found.label_style == style


def test_only_flags_are_nobodys_labels() -> None:
    assert guess_mapping(table(a=FLAGS, b=FLAGS)).labels == ()


@pytest.mark.parametrize(
    ("cells", "delimiter"),
    [
        (["a|b c", "b c", ""], "|"),
        (["a;b", "c", "a"], ";"),
        (["a, b", "c", "a"], ","),
        (["a#b", "c", "a"], "#"),
        (["a b", "b", "a", "b a"], " "),
        (["blue sky", "deep sea", "red car"], "|"),
        (['["a", "b"]', "[]", '["a"]'], None),
        (["['a', 'b']", "['c']", "[]"], None),
        (["[a, b]", "[c]", "[]"], None),
        ([["a", "b"], [], ["c"]], None),
    ],
)
def test_delimiter_of_label_sets_is_found(cells: list[Any], delimiter: str | None) -> None:
    found = guess_mapping(table(x=NUMBERS, labels=(cells * N)[:N]))
    assert (found.layout, found.labels, found.delimiter) == ("delimited", ("labels",), delimiter)
    assert "delimiter" in found.reasons


def test_few_names_joined_by_a_bar_are_labels_whatever_the_column_is_called() -> None:
    found = guess_mapping(table(x=NUMBERS, kinds=["Action|Comedy", "Comedy", "Action"] * 4))
    assert (found.labels, found.delimiter) == (("kinds",), "|")


def test_long_form_is_found() -> None:
    ids, names = ["a", "a", "b", "c"] * 3, ["sea", "dog", "sea", "dog"] * 3
    found = guess_mapping(table(id=ids, text=["x y"] * 12, label=names, value=FLAGS))
    assert (found.layout, found.labels) == ("long", ("label", "value"))
    found = guess_mapping(table(id=ids, text=["x y"] * 12, label=names))
    assert (found.layout, found.labels) == ("long", ("label",))


def test_one_repeated_id_does_not_make_a_table_long() -> None:
    ids = [*range(N - 1), 0]
    found = guess_mapping(table(id=ids, x=NUMBERS, labels=["a|b", "b"] * 6))
    assert found.layout == "delimited"


def test_truth_is_found_in_all_its_spellings() -> None:
    flags = {"label_a": FLAGS, "label_b": FLAGS}
    assert guess_mapping(table(x=NUMBERS, **flags, true_a=FLAGS, true_b=FLAGS)).truth == (
        "true_a",
        "true_b",
    )
    assert guess_mapping(table(x=NUMBERS, **flags, truth_a=FLAGS)).truth == ("truth_a",)
    found = guess_mapping(table(x=NUMBERS, labels=["a|b", "b"] * 6, true_labels=["a", "b"] * 6))
    assert (found.truth, found.truth_layout) == (("true_labels",), "delimited")


def test_a_list_of_numbers_is_the_features() -> None:
    found = guess_mapping(table(labels=["a|b", "b"] * 6, embedding=[[0.5, 1.0]] * N, price=NUMBERS))
    assert (found.features, found.feature_layout) == (("embedding",), "list")
    assert found.display == ("price",)


def test_lists_of_numbers_of_several_lengths_are_not_features() -> None:
    lists = [[0, 2], [1], []] * 4
    found = guess_mapping(table(x=NUMBERS, confidence=lists, given_label=lists))
    assert (found.labels, found.features) == (("given_label",), ("x",))


def test_text_becomes_features_only_where_there_are_no_numbers() -> None:
    words = ["a long enough sentence about the sea"] * N
    found = guess_mapping(table(text=words, photo=["a/b.jpg"] * N, labels=["a|b", "b"] * 6))
    assert (found.features, found.feature_layout, found.text) == (("text",), "text", "text")
    assert (found.image, found.display) == ("photo", ("text", "photo"))
    found = guess_mapping(table(text=words, x=NUMBERS, labels=["a|b", "b"] * 6))
    assert (found.features, found.feature_layout, found.text) == (("x",), "columns", "text")


def test_an_export_is_read_again_without_its_outcome() -> None:
    outcome = {"resolved_a": FLAGS, "conf_a": NUMBERS, "reason_a": ["confident"] * N}
    found = guess_mapping(table(x=NUMBERS, label_a=FLAGS, **outcome))
    assert (found.features, found.labels) == (("x",), ("label_a",))
    assert found.display == tuple(outcome)


def test_what_the_caller_states_is_kept_and_the_rest_guessed_around_it() -> None:
    columns = table(key=list("abcdefghijkl"), x=NUMBERS, was_new=FLAGS, sea=FLAGS, dog=FLAGS)
    found = guess_mapping(columns, ColumnMapping(labels=("sea", "dog"), display=("x",)))
    assert (found.labels, found.display) == (("sea", "dog"), ("x",))
    assert (found.id, found.features) == ("key", ("was_new",))
    assert found.reasons["labels"] == "stated by the caller"


def test_a_mapping_survives_json(tmp_path: Path) -> None:
    found = guess_mapping(table(id=list("abcdefghijkl"), x=NUMBERS, labels=["a|ü\n", "b"] * 6))
    found.save(tmp_path / "mapping.json")
    assert ColumnMapping.load(tmp_path / "mapping.json") == found


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"layout": "wide"}', '{"unknown": 1}', '{"id": "a", "labels": ["a"]}']
)
def test_a_damaged_mapping_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "mapping.json"
    path.write_text(text)
    with pytest.raises(DatasetError, match="mapping"):
        ColumnMapping.load(path)


def test_a_missing_mapping_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="cannot be opened"):
        ColumnMapping.load(tmp_path / "none.json")


def test_two_roles_for_one_column_are_refused() -> None:
    with pytest.raises(DatasetError, match="one role only"):
        ColumnMapping(id="a", features=("a",))
    with pytest.raises(DatasetError, match="long layout"):
        ColumnMapping(labels=("a",), layout="long")


def test_reasons_are_plain_json() -> None:
    found = guess_mapping(table(x=NUMBERS, label_a=FLAGS))
    assert json.loads(found.model_dump_json())["reasons"] == found.reasons


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_a_table_whose_labels_were_not_found_tells_its_columns(tmp_path, suffix):
    table = pd.DataFrame({"x": [0.5, 1.5, 2.5], "sea": [3, 4, 5]})
    path = tmp_path / f"table.{suffix}"
    writers = {
        "csv": lambda: table.to_csv(path, index=False),
        "jsonl": lambda: table.to_json(path, orient="records", lines=True),
        "parquet": lambda: table.to_parquet(path),
    }
    writers[suffix]()
    with pytest.raises(DatasetError) as refused:
        read(path)
    assert refused.value.mapping.columns == ("x", "sea")
