"""CSV, TSV, Parquet, JSON Lines and JSON: separators, encodings, flags, label sets, mappings."""

import codecs
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
from tabular_cases import KINDS, ROWS, assert_rows, assert_same, read_text

from core import formats
from core.data.dataset import CandidateDataset
from core.errors import DatasetError
from core.formats import ColumnMapping


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_separators_and_line_ends_are_found(separator: str, end: str, tmp_path: Path) -> None:
    text = ROWS.format(separator).replace("\n", end)
    assert_rows(read_text(tmp_path, text))
    assert_rows(read_text(tmp_path, text.rstrip(), "b.txt"))


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "latin-1"])
def test_encodings_are_found(encoding: str, tmp_path: Path) -> None:
    text = ROWS.format(";").replace("label_a", "label_Möwe").encode(encoding)
    result = read_text(tmp_path, text)
    assert result.dataset.label_names == ("Möwe", "b")
    assert bool(result.problems) == (encoding == "latin-1")


def test_a_byte_far_behind_that_is_not_utf8_is_read_as_latin1(tmp_path: Path) -> None:
    lines = ["id,text,x,label_a", *(f"{i},word,0.5,{i % 2}" for i in range(20_000))]
    data = "\n".join(lines).encode() + b"\n20000,M\xf6we,1,1\n"
    display = read_text(tmp_path, data).dataset.display
    assert display is not None
    assert display["text"].iloc[-1] == "Möwe"


def test_excel_habits_are_understood_and_kept(tmp_path: Path) -> None:
    text = "sep=;\nid;x;note;label_a\n1;0,5;-5;0\n2;-1,25;=1;1\n3;2;'x;1\n"
    result = read_text(tmp_path, codecs.BOM_UTF8 + text.encode())
    assert result.dataset.features.tolist() == [[0.5], [-1.25], [2.0]]
    assert result.mapping is not None
    path = formats.write(result.dataset, tmp_path / "b.csv", mapping=result.mapping)
    expected = "id;x;note;label_a\n1;0,5;-5;0\n2;-1,25;=1;1\n3;2;'x;1\n"
    assert path.read_bytes() == codecs.BOM_UTF8 + expected.encode()


HEADS = ",G,G,\r\n{}id,x,y,labels\r\n"
BODY = "".join(f'i{k},{k}.50,"{k % 3}",sea\r\n' for k in range(12))


@pytest.mark.parametrize("between", ["", "\r\n"])  # a line without anything
def test_two_lines_of_names_become_one_and_rows_come_back_as_they_were(
    between: str, tmp_path: Path
) -> None:
    result = read_text(tmp_path, HEADS.format(between) + BODY)
    assert result.dataset.feature_names == ("x", "y")
    assert "An export has one line of names" in result.problems[0].fix
    path = formats.write(result.dataset, tmp_path / "b.csv", mapping=result.mapping)
    assert path.read_bytes() == ("id,x,y,labels\r\n" + BODY).encode()


def test_lines_stated_to_be_items_name_no_columns(tmp_path: Path) -> None:
    columns = {"id": "column1", "features": (), "labels": ("column4",), "layout": "delimited"}
    stated = ColumnMapping.model_validate({"header": False, **columns})
    result = read_text(tmp_path, "a,x,y,sea\nid,u,v,sun\n" + BODY, mapping=stated)
    assert result.dataset.ids[:2] == ("a", "id")


def test_an_item_without_numbers_is_no_second_line_of_names(tmp_path: Path) -> None:
    result = read_text(tmp_path, "id,x,y,labels\r\nfirst,-,-,sea\r\n" + BODY)
    assert result.dataset.ids[0] == "first"


@pytest.mark.parametrize("ending", ["Total", '"To\ntal"'])
def test_a_row_of_sums_is_told_and_one_on_two_lines_is_an_item(ending: str, tmp_path: Path) -> None:
    result = read_text(tmp_path, f"id,x,y,labels\r\n{BODY}{ending},72.00,12,\r\n")
    is_passed_over = "\n" not in ending
    assert result.dataset.n_instances == 13 - is_passed_over
    told = [one.fix for one in result.problems if "sums" in one.message]
    assert [one.endswith("An export leaves it out.") for one in told] == [True] * is_passed_over


def test_quoted_newlines_stay_in_their_cell(tmp_path: Path) -> None:
    text = 'id,"te\nxt",x,label_a\n1,"a\n""b"", c",1.5,0\n2,,2.5,1\n3,z,3.5,1\n'
    display = read_text(tmp_path, text).dataset.display
    assert display is not None
    assert display["te\nxt"].tolist() == ['a\n"b", c', "", "z"]


@pytest.mark.parametrize(
    "flags", [("1", "0"), ("1", "-1"), ("true", "false"), ("TRUE", "FALSE"), ("1.0", "0.0")]
)
def test_flags_in_every_spelling(flags: tuple[str, str], tmp_path: Path) -> None:
    yes, no = flags
    text = f"x,y,label_a,label_b\n.5,1,{yes},{no}\n1,2,{no},{yes}\n2,3,{yes},{yes}\n"
    assert read_text(tmp_path, text).dataset.candidates.tolist() == [[1, 0], [0, 1], [1, 1]]


@pytest.mark.parametrize(("style", "cells"), [("-1/1", "-1,1"), ("true/false", "false,true")])
def test_flags_are_written_as_they_were_read(style: str, cells: str, tmp_path: Path) -> None:
    text = f"x,y,label_a,label_b\n0.5,1,{cells}\n1,2,{cells}\n2,4,{cells}\n"
    result = read_text(tmp_path, text)
    assert result.mapping is not None
    assert result.mapping.label_style == style
    path = formats.write(result.dataset, tmp_path / "b.csv", mapping=result.mapping)
    assert path.read_text() == text


@pytest.mark.parametrize(
    "cells",
    [
        ("a|b c", "", "b c"),
        ('"[""a"", ""b c""]"', "[]", '"[""b c""]"'),
        ("\"['a', 'b c']\"", "[]", "['b c']"),
        ('"[a, b c]"', "[]", "[b c]"),
        ('"{""choices"": [""a"", ""b c""]}"', "", "b c"),
    ],
)
def test_label_sets_in_every_spelling(cells: tuple[str, ...], tmp_path: Path) -> None:
    text = "x,labels\n" + "".join(f"{i}.5,{cell}\n" for i, cell in enumerate(cells))
    dataset = read_text(tmp_path, text).dataset
    assert dataset.label_names == ("a", "b c")
    assert dataset.candidates.tolist() == [[1, 1], [0, 0], [0, 1]]


def test_long_form_is_folded(tmp_path: Path) -> None:
    text = "id,x,label,value\na,1,sea,1\na,1,dog,0\nb,2.5,dog,1\nc,3,,0\na,1,sky,1\n"
    dataset = read_text(tmp_path, text).dataset
    assert dataset.ids == ("a", "b", "c")
    assert dataset.label_names == ("dog", "sea", "sky")
    assert dataset.candidates.tolist() == [[0, 1, 1], [1, 0, 0], [0, 0, 0]]
    assert dataset.features.ravel().tolist() == [1.0, 2.5, 3.0]


def test_text_becomes_sparse_features_and_is_shown(tmp_path: Path) -> None:
    text = "text,labels\nthe deep blue sea,a|b\na dog on the beach,b\nblue dog,a\n"
    result = read_text(tmp_path, text)
    assert sp.issparse(result.dataset.features)
    assert "blue" in result.dataset.feature_names
    assert result.dataset.display is not None
    path = formats.write(result.dataset, tmp_path / "b.csv", mapping=result.mapping)
    assert path.read_text() == text


@pytest.mark.parametrize("cell", ["[0.5, 1]", "[0.5 1.0]", "(0.5,1)", "0.5 1"])
def test_embeddings_as_text(cell: str, tmp_path: Path) -> None:
    text = "embedding,labels\n" + f'"{cell}",a|b\n' * 3
    mapping = ColumnMapping(features=("embedding",), feature_layout="list")
    assert read_text(tmp_path, text, mapping=mapping).dataset.features.tolist() == [[0.5, 1.0]] * 3


def test_wide_and_mostly_empty_tables_are_kept_sparse(tmp_path: Path) -> None:
    features = np.zeros((50, 300), np.float32)
    features[np.arange(50), np.arange(50)] = 1.5
    dataset = CandidateDataset(features, np.eye(50, 4, dtype=np.uint8))
    for kind in KINDS:
        read = formats.read(formats.write(dataset, tmp_path / f"a.{kind}")).dataset
        assert sp.issparse(read.features)
        np.testing.assert_array_equal(read.features.toarray(), features)


def test_json_as_columns_as_rows_and_below_a_key(tmp_path: Path) -> None:
    columns = {"id": ["a", "b", "c"], "x": [1, 2.5, 3], "labels": [["p"], [], ["p", "q"]]}
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    frame = {name: dict(enumerate(values)) for name, values in columns.items()}
    for found in (rows, frame, {"version": 1, "rows": rows}):
        dataset = read_text(tmp_path, json.dumps(found), "a.json").dataset
        assert dataset.candidates.tolist() == [[1, 0], [0, 0], [1, 1]]
        assert dataset.ids == ("a", "b", "c")


def test_integer_ids_stay_integers_in_typed_files(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"id": [7, 8, 9], "x": [1.5, 2, 3], "label_a": [0, 1, 1]}), path)
    result = formats.read(path)
    assert result.dataset.ids == ("7", "8", "9")
    again = formats.write(result.dataset, tmp_path / "b.parquet", mapping=result.mapping)
    assert pq.read_table(again)["id"].to_pylist() == [7, 8, 9]


@pytest.mark.parametrize("last", [b"\xff\xfe", b"a1", b"a4"], ids=["damaged", "twice", "fine"])
def test_ids_are_judged_when_they_are_read(last: bytes, tmp_path: Path) -> None:
    names = [b"a1", b"a2", b"a3", last]
    table = pa.table(
        {
            "id": pa.array(names).view(pa.string()),
            "x": [0.5, 1.5, 2.5, 3.5],
            "label_sea": [0, 1, 1, 0],
            "label_sky": [1, 0, 1, 1],
        }
    )
    path = tmp_path / "ids.parquet"
    pq.write_table(table, path)
    if last == b"a4":
        found = formats.read(path).dataset
        assert (found.ids, found.ids[-1]) == (("a1", "a2", "a3", "a4"), "a4")
        assert (
            found.fingerprint
            == CandidateDataset(
                found.features, found.candidates, found.label_names, ["a1", "a2", "a3", "a4"]
            ).fingerprint
        )
        return
    with pytest.raises(DatasetError, match="cannot be read" if last[0] > 127 else "a1"):
        formats.read(path)


def test_a_saved_mapping_reads_the_next_file(tmp_path: Path) -> None:
    text = "who,x,count,sea,dog\na,1,1,1,0\nb,2,0,0,1\nc,3,1,1,1\n"
    given_mapping = ColumnMapping(id="who", labels=("sea", "dog"))
    first = read_text(tmp_path, text, mapping=given_mapping)
    assert first.dataset.feature_names == ("x", "count")
    assert first.mapping is not None
    first.mapping.save(tmp_path / "m.json")
    again = read_text(tmp_path, text, mapping=ColumnMapping.load(tmp_path / "m.json"))
    assert_same(again.dataset, first.dataset)


def test_a_mapping_that_names_missing_columns_lists_them_all(tmp_path: Path) -> None:
    mapping = ColumnMapping(id="nobody", labels=("label_a", "label_z"))
    with pytest.raises(DatasetError) as caught:
        read_text(tmp_path, ROWS.format(","), mapping=mapping)
    assert [problem.column for problem in caught.value.problems] == ["nobody", "label_z"]


@pytest.mark.parametrize(
    "words", [("TRUE", "FALSE"), ("true", "False"), ("yes", "no"), ("No", "YES")]
)
@pytest.mark.parametrize("kind", ["csv", "quoted", "jsonl", "parquet"])
def test_true_and_false_are_features(words: tuple[str, str], kind: str, tmp_path: Path) -> None:
    rows = [(f"i{i}", str(i / 4), words[i % 2], "01"[i % 2], "10"[i % 3 == 0]) for i in range(9)]
    names = ["id", "x", "member", "label_a", "label_b"]
    mark = '"' if kind == "quoted" else ""
    lines = [",".join(names), *(",".join(f"{mark}{one}{mark}" for one in row) for row in rows)]
    if kind in ("csv", "quoted"):
        result = read_text(tmp_path, "\n".join(lines) + "\n")
    else:
        table = pa.table({name: [row[i] for row in rows] for i, name in enumerate(names)})
        path = tmp_path / f"a.{kind}"
        if kind == "parquet":
            pq.write_table(table, path)
        else:
            path.write_text("\n".join(map(json.dumps, table.to_pylist())))
        result = formats.read(path)
    expected = [float(row[2].casefold() in ("true", "yes")) for row in rows]
    names = list(result.dataset.feature_names)
    assert result.dataset.features[:, names.index("member")].tolist() == expected
    out = formats.write(result.dataset, tmp_path / "out.csv").read_text()
    assert out.count(words[0]) == 5


def test_what_is_no_word_among_words_is_told_by_cell(tmp_path: Path) -> None:
    lines = ["x,member,label_a", *(f"{i},{bool(i % 2)},{i % 2}" for i in range(40))]
    lines[30] = "29,maybe,1"
    with pytest.raises(DatasetError) as caught:
        read_text(tmp_path, "\n".join(lines), mapping=ColumnMapping(features=("x", "member")))
    assert [(one.row, one.value) for one in caught.value.problems] == [(30, "maybe")]


def test_texts_beside_yes_and_no_are_still_read(tmp_path: Path) -> None:
    rows = [f"some words number {i},{'yes' if i % 2 else 'no'},a" for i in range(9)]
    result = read_text(tmp_path, "\n".join(["text,spam,labels", *rows]))
    assert result.mapping is not None
    assert result.mapping.feature_layout == "text"


@pytest.mark.parametrize("between", [",", "\t"])
def test_a_quote_that_nobody_closed_is_pointed_out(between: str, tmp_path: Path) -> None:
    poem = '"sea, sun, sand\nand a fourth line, too"'  # honest lines in a cell
    cells = [(str(i), "sea|sun" if i % 2 else "sun", f"text {i}") for i in range(30)]
    cells[7] = ("7", "sea", poem)
    rows = ["id,labels,text".replace(",", between), *map(between.join, cells)]
    whole = read_text(tmp_path, "\n".join(rows) + "\n")
    assert (whole.dataset.n_instances, whole.problems) == (30, ())
    rows[21] = between.join(("20", "sun", '"text 20'))
    result = read_text(tmp_path, "\n".join(rows) + "\n")
    assert result.dataset.n_instances == 21
    (told,) = result.problems
    assert "is a quote in it not closed?" in told.message
    assert (told.row, told.column, told.value) == (21, "text", "9 lines")
