"""CSV, TSV, Parquet, JSON Lines and JSON: what is read, written, refused, and survived."""

import codecs
import contextlib
import csv
import gzip
import json
import os
import struct
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import format_cases as cases
import fuzzing
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from core import formats
from core.data.dataset import CandidateDataset
from core.errors import DatasetError, ExportError, PlainError
from core.formats import ColumnMapping, ReadResult

KINDS = ("csv", "tsv", "parquet", "jsonl", "json")
SMALL_SETS = (
    "made-dense",
    "made-sparse",
    "birds",
    "emotions",
    "image",
    "mirflickr-5000",
    "medical",
)

each_kind = pytest.mark.parametrize("kind", KINDS)
odd = settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def read_text(tmp_path: Path, text: str | bytes, name: str = "a.csv", **options: Any) -> ReadResult:
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return formats.read(path, **options)


NEARLY_NO_LABEL = CandidateDataset(
    features=np.eye(5, 2, dtype=np.float32),
    candidates=np.array([[1, 1], [0, 1], [1, 0], [0, 0], [1, 1]], np.uint8),
    label_names=["sea", "- "],  # "-" is a word for no label
    ids=list("01234"),
    feature_names=["x", "y"],
)


def assert_same(read: CandidateDataset, written: CandidateDataset) -> None:
    np.testing.assert_array_equal(cases.dense(read.features), cases.dense(written.features))
    np.testing.assert_array_equal(read.candidates, written.candidates)
    assert (read.ids, read.label_names) == (written.ids, written.label_names)
    assert read.feature_names == written.feature_names
    assert (read.truth is None) == (written.truth is None)
    if written.truth is not None:
        np.testing.assert_array_equal(read.truth, written.truth)


# Round trips


@each_kind
@cases.each_shared_file
def test_shared_data_comes_back_identical(shared_file: Path, kind: str, tmp_path: Path) -> None:
    if kind not in ("csv", "parquet") and shared_file.stem not in SMALL_SETS:
        pytest.skip("wide sets are tried in CSV and Parquet only, to save time")
    if shared_file.stem == "yeastmf" and kind != "parquet":
        pytest.skip("6,139 dense columns are tried in Parquet only, to save time")
    dataset = cases.few_rows(cases.shared(shared_file))
    path = formats.write(dataset, tmp_path / f"a.{kind}")
    result = formats.read(path)
    assert_same(result.dataset, dataset)
    assert (result.format, result.problems) == (kind, ())


@each_kind
@odd
@given(dataset=cases.datasets())
def test_odd_names_come_back_identical(
    dataset: CandidateDataset, kind: str, tmp_path: Path
) -> None:
    path = formats.write(dataset, tmp_path / f"a.{kind}", force=True)
    assert_same(formats.read(path).dataset, dataset)


@each_kind
@odd
@given(dataset=cases.datasets(), delimiter=st.sampled_from(["|", ";", ",", "#", " ", None]))
@example(dataset=NEARLY_NO_LABEL, delimiter="|")
def test_label_sets_come_back_identical(
    dataset: CandidateDataset, delimiter: str | None, kind: str, tmp_path: Path
) -> None:
    has_truth = dataset.truth is not None
    mapping = ColumnMapping(
        id="id",
        labels=("labels",),
        layout="delimited",
        delimiter=delimiter,
        label_names=dataset.label_names,
        features=("embedding",),
        feature_layout="list",
        truth=("truth",) if has_truth else (),
        truth_layout="delimited",
        columns=("embedding", "labels", "id", *(["truth"] if has_truth else [])),
    )
    path = formats.write(dataset, tmp_path / f"a.{kind}", mapping=mapping, force=True)
    read = formats.read(path, mapping).dataset
    np.testing.assert_array_equal(read.features, cases.dense(dataset.features))
    np.testing.assert_array_equal(read.candidates, dataset.candidates)
    assert (read.ids, read.label_names) == (dataset.ids, dataset.label_names)
    if has_truth:
        np.testing.assert_array_equal(read.truth, dataset.truth)


@each_kind
@odd
@given(dataset=cases.datasets())
def test_long_form_comes_back_identical(
    dataset: CandidateDataset, kind: str, tmp_path: Path
) -> None:
    features = tuple(f"x{j}" for j in range(dataset.n_features))
    mapping = ColumnMapping(
        id="id",
        labels=("label", "value"),
        layout="long",
        label_names=dataset.label_names,
        features=features,
        columns=("id", "label", "value", *features),
    )
    dataset = _without_truth(dataset)
    path = formats.write(dataset, tmp_path / f"a.{kind}", mapping=mapping, force=True)
    read = formats.read(path, mapping).dataset
    offered = [name for name in dataset.label_names if name]  # an empty cell is no label
    kept = [dataset.label_names.index(name) for name in offered]
    np.testing.assert_array_equal(read.candidates[:, kept], dataset.candidates[:, kept])
    np.testing.assert_array_equal(read.features, cases.dense(dataset.features))
    assert read.ids == dataset.ids


def _without_truth(dataset: CandidateDataset) -> CandidateDataset:
    return CandidateDataset(dataset.features, dataset.candidates, dataset.label_names, dataset.ids)


@each_kind
@odd
@given(cells=st.lists(st.text(st.characters(exclude_categories=("Cs",))), min_size=4, max_size=4))
def test_shown_text_comes_back_identical(cells: list[str], kind: str, tmp_path: Path) -> None:
    small = cases.small_dataset()
    shown = pd.DataFrame({"text": cells, "=note\n": ["'=a", "=1+1", "-5", "@x"]})
    dataset = CandidateDataset(small.features, small.candidates, display=shown)
    path = formats.write(dataset, tmp_path / f"a.{kind}", force=True)
    read = formats.read(path).dataset
    assert_same(read, dataset)
    display = read.display
    assert display is not None
    assert display["text"].tolist() == cells
    assert display["=note\n"].tolist() == ["'=a", "=1+1", "-5", "@x"]


def test_numbers_beside_features_do_not_become_features(tmp_path: Path) -> None:
    small = cases.small_dataset()
    dataset = CandidateDataset(
        small.features, small.candidates, display=pd.DataFrame({"price": [1.5, 2, 3, 4]})
    )
    read = formats.read(formats.write(dataset, tmp_path / "a.csv")).dataset
    assert_same(read, dataset)
    assert read.display is not None
    assert list(read.display.columns) == ["price"]


# What text tables look like


ROWS = "id{0}x{0}label_a{0}label_b\ni1{0}0.5{0}1{0}0\ni2{0}-2{0}0{0}1\ni3{0}3{0}1{0}1\n"


def assert_rows(result: ReadResult) -> None:
    assert result.dataset.ids == ("i1", "i2", "i3")
    assert result.dataset.features.tolist() == [[0.5], [-2.0], [3.0]]
    assert result.dataset.candidates.tolist() == [[1, 0], [0, 1], [1, 1]]
    assert result.dataset.label_names == ("a", "b")


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


def test_a_header_of_many_columns_is_read(tmp_path: Path) -> None:
    header = ",".join([*(f"feature_{i}" for i in range(20_000)), "label_a"])
    row = ",".join(["1.5"] * 20_000)
    result = read_text(tmp_path, f"{header}\n{row},1\n{row},0\n{row},1\n")
    assert result.dataset.features.shape == (3, 20_000)
    with pytest.raises(DatasetError, match="at most 50,000 columns"):
        read_text(tmp_path, HOSTILE["columns.csv"]())


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


# Overrides


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


# Writing


def test_an_export_keeps_the_columns_and_adds_the_outcome(tmp_path: Path) -> None:
    text = "note,label_a,x,id,label_b\n=1,1,0.5,i1,0\n-7,0,-2,i2,1\nü,1,3,i3,1\n"
    result = read_text(tmp_path, text)
    resolution = cases.Resolution(
        labels=np.array([[1, 0], [0, 0], [1, 1]], np.uint8),
        confidences=np.array([[0.91234, 0], [0, 0.25], [1, 0.5]], np.float32),
        reasons=np.array([[1, 0], [0, 2], [1, 1]], np.uint8),
        reason_texts=("not a candidate", "confident", "=below threshold"),
    )
    path = formats.write(
        result.dataset, tmp_path / "out.csv", mapping=result.mapping, resolution=resolution
    )
    rows = list(csv.reader(path.open(newline="")))
    outcome = ["resolved_a", "resolved_b", "conf_a", "conf_b", "reason_a", "reason_b"]
    assert rows[0] == ["note", "label_a", "x", "id", "label_b", *outcome]
    assert rows[1][:5] == ["=1", "1", "0.5", "i1", "0"]
    assert rows[1][5:] == ["1", "0", "0.9123", "0.0", "confident", "not a candidate"]
    assert rows[2][0] == "-7"
    assert rows[2][-1] == "'=below threshold"
    again = formats.read(path)
    assert_same(again.dataset, result.dataset)
    twice = formats.write(
        again.dataset, tmp_path / "again.csv", mapping=again.mapping, resolution=resolution
    )
    assert twice.read_bytes() == path.read_bytes()


@each_kind
def test_label_sets_get_one_resolved_column(kind: str, tmp_path: Path) -> None:
    result = read_text(tmp_path, "x,labels\n1,b|a\n2.5,\n3,b\n")
    resolution = cases.resolution_of(result.dataset)
    path = formats.write(
        result.dataset, tmp_path / f"b.{kind}", mapping=result.mapping, resolution=resolution
    )
    again = formats.read(path)
    assert again.mapping is not None
    assert again.mapping.columns == (
        *("x", "labels", "resolved", "conf_a", "conf_b", "reason_a", "reason_b"),
    )
    assert_same(again.dataset, result.dataset)


def test_long_files_get_an_outcome_per_row(tmp_path: Path) -> None:
    result = read_text(tmp_path, "id,x,label,value\na,1,sea,1\na,1,dog,1\nb,2.5,dog,1\nc,3,,0\n")
    resolution = cases.resolution_of(result.dataset)
    path = formats.write(
        result.dataset, tmp_path / "b.csv", mapping=result.mapping, resolution=resolution
    )
    table = pd.read_csv(path)
    assert list(table.columns) == ["id", "x", "label", "value", "resolved", "conf", "reason"]
    assert table["id"].tolist() == ["a", "a", "b", "c"]
    assert_same(formats.read(path).dataset, result.dataset)


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r", "'="])
def test_text_that_a_spreadsheet_would_run_is_escaped(start: str, tmp_path: Path) -> None:
    small = cases.small_dataset()
    name = start + "cmd|' /C calc'!A0"
    shown = pd.DataFrame({name: [name, "b", "c", "d"]})
    dataset = CandidateDataset(
        small.features, small.candidates, [name, "b"], [name, "1", "2", "3"], display=shown
    )
    for kind in ("csv", "tsv"):
        path = formats.write(dataset, tmp_path / f"a.{kind}")
        delimiter = "," if kind == "csv" else "\t"
        rows = list(csv.reader(path.open(newline=""), delimiter=delimiter))
        cells = [cell for row in rows for cell in row]
        assert not [cell for cell in cells if cell.startswith(start) and "cmd" in cell]
        assert_same(formats.read(path).dataset, dataset)


def test_negative_numbers_are_not_escaped(tmp_path: Path) -> None:
    path = formats.write(cases.small_dataset(), tmp_path / "a.csv")
    assert ",-2.5," in path.read_text()


def test_an_existing_file_is_refused_unless_forced(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("mine")
    with pytest.raises(ExportError, match="exists"):
        formats.write(cases.small_dataset(), path)
    assert path.read_text() == "mine"
    formats.write(cases.small_dataset(), path, force=True)
    assert os.listdir(tmp_path) == ["a.csv"]


def test_files_beside_the_main_one_are_refused_and_replaced_with_it(tmp_path: Path) -> None:
    dataset = cases.small_dataset()
    (tmp_path / "a.xml").write_text("mine")
    with pytest.raises(ExportError, match=r"a\.xml"):
        formats.write(dataset, tmp_path / "a.arff")
    assert os.listdir(tmp_path) == ["a.xml"]
    path = formats.write(dataset, tmp_path / "a.arff", force=True)
    assert_same(formats.read(path).dataset, dataset)
    assert sorted(os.listdir(tmp_path)) == ["a.arff", "a.arff.plain.npz", "a.xml"]


def test_a_failed_write_leaves_nothing_behind(tmp_path: Path) -> None:
    dataset = cases.small_dataset()
    broken = cases.Resolution(np.zeros((1, 1)), np.zeros((1, 1)), np.full((1, 1), 99), ())
    for kind in KINDS:
        with pytest.raises(IndexError):  # a resolution of other data is a caller's bug
            formats.write(dataset, tmp_path / f"a.{kind}", resolution=broken)
    with pytest.raises(ExportError):
        formats.write(dataset, tmp_path / "none" / "a.csv")
    with pytest.raises(ExportError, match="cannot be written"):
        formats.write(dataset, tmp_path / "a.unknown")
    assert os.listdir(tmp_path) == []


def test_a_mapping_of_other_data_is_refused(tmp_path: Path) -> None:
    other = read_text(tmp_path, ROWS.format(","))
    with pytest.raises(ExportError, match="source"):
        formats.write(cases.small_dataset(), tmp_path / "b.csv", mapping=other.mapping)


# Recognising and unpacking


def test_content_decides_before_the_extension(tmp_path: Path) -> None:
    for kind in KINDS:
        path = formats.write(cases.small_dataset(), tmp_path / f"a.{kind}")
        for name in ("x", "x.txt", "x.data"):
            path = path.rename(tmp_path / name)
            assert formats.detect(path) == kind
            path.unlink(missing_ok=False) if name == "x.data" else None


def test_an_upload_is_read_under_its_own_name(tmp_path: Path) -> None:
    path = tmp_path / "upload-1"
    path.write_text('{"x": 1.5, "labels": ["a"]}\n' * 3)
    assert formats.read(path, name="C/data.jsonl").format == "jsonl"


@pytest.mark.parametrize("pack", ["gz", "zip"])
def test_packed_files_are_unpacked(pack: str, tmp_path: Path) -> None:
    data = ROWS.format(",").encode()
    packed = fuzzing.gzipped(data) if pack == "gz" else fuzzing.zipped(data, "folder/a.csv")
    path = tmp_path / f"a.csv.{pack}"
    path.write_bytes(packed)
    assert formats.detect(path) == "csv"
    assert_rows(formats.read(path))
    assert_rows(formats.read(path, name="b.csv"))


@pytest.mark.parametrize("pack", ["gz", "zip"])
def test_bombs_are_refused_early(
    pack: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("core.formats.shared.limits.ANY_FILE", 2**22)
    monkeypatch.setattr("core.formats.shared.limits.free_memory", lambda: 2**30)
    path = tmp_path / f"bomb.{pack}"
    zeros = b"\0" * 2**20
    if pack == "gz":
        with gzip.open(path, "wb", compresslevel=9) as file:
            for _ in range(300):
                file.write(zeros)
    else:
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            with archive.open("a.csv", "w") as member:
                for _ in range(300):
                    member.write(zeros)
    with pytest.raises(DatasetError, match="may unpack to"):
        formats.read(path)


def test_archives_of_several_files_and_workbooks_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    for names, message in (
        (("a", "b"), "one data file"),
        (("[Content_Types].xml", "b"), "workbooks"),
    ):
        with zipfile.ZipFile(path, "w") as archive:
            for name in names:
                archive.writestr(name, "x")
        with pytest.raises(DatasetError, match=message):
            formats.read(path)


@pytest.mark.parametrize("name", ["a.pkl", "a.csv", "a.joblib"])
def test_pickles_are_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="pickle"):
        read_text(tmp_path, b"\x80\x04\x95\x10", name)


# Bad input


def test_every_bad_cell_is_told_at_once(tmp_path: Path) -> None:
    text = "id,x,y,label_a,label_b\n" + "".join(f"{i},1.5,{i},0,1\n" for i in range(2000))
    rows = text.splitlines()
    rows[1500] = "1499,wrong,inf,0,1"
    rows[1600] = "1599,1,1,2,maybe"
    rows[1700] = "1699,1"
    with pytest.raises(DatasetError) as caught:
        read_text(tmp_path, "\n".join(rows))
    found = {(p.row, p.column, p.value) for p in caught.value.problems}
    assert {(1500, "x", "wrong"), (1600, "label_a", "2"), (1600, "label_b", "maybe")} <= found
    assert ("1499", "y", "inf") in found
    assert any("every row must have 5 cells" in p.message for p in caught.value.problems)
    assert all(p.fix for p in caught.value.problems)


def test_many_bad_cells_are_counted_not_listed(tmp_path: Path) -> None:
    text = "x,y,label_a\n" + "1,2,0\n" * 2000 + "wrong,1,1\n" * 500
    with pytest.raises(DatasetError) as caught:
        read_text(tmp_path, text)
    assert len(caught.value.problems) < 30
    assert "480 more" in str(caught.value)


def test_ids_that_clash_are_named(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="'i1'"):
        read_text(tmp_path, ROWS.format(",").replace("i3", "i1"))


def test_blank_label_cells_are_read_and_told(tmp_path: Path) -> None:
    result = read_text(tmp_path, "x,y,label_a\n1,2,\n2,3,1\n3,4,1\n")
    assert result.dataset.candidates.ravel().tolist() == [0, 1, 1]
    assert result.problems[0].column == "label_a"
    assert not result.problems[0].fatal


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "empty"),
        ("word", "known format|several columns"),
        ("a,b\n1.5,x\n2,y\n", "no label columns"),
        ("a,b\n1,2,3\n", "every row must have 2 cells"),
        ("x,label_a\n", "rows below"),
        ("x,label_a\n\n\n", "rows below"),
        ("x,label_a\n1,0\n", "at least 3 instances"),
    ],
)
def test_tables_that_say_too_little_are_refused(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match=message):
        read_text(tmp_path, text)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="cannot be read"):
        formats.read(tmp_path / "none.csv")


WIDE = 10**6
HOSTILE: dict[str, Callable[[], bytes]] = {
    "columns.csv": lambda: b"\n".join([b",".join(b"x%d" % i for i in range(WIDE))] * 2),
    "cells.csv": lambda: b"x,label_a\n1,0\n" + b"1," * WIDE + b"\n2,1\n3,1\n",
    "field.csv": lambda: b"x,label_a,text\n1,0," + b"a" * 2**25 + b"\n2,1,b\n3,1,c\n",
    "quote.csv": lambda: b'x,label_a\n1,0\n"' + b"a,b\n" * WIDE,
    "nul.csv": lambda: b"x,label_a\n1,0\n\0\0\0,\0\n2,1\n3,1\n",
    "zeros.csv": lambda: b"\0" * WIDE,
    "deep.json": lambda: b"[" * WIDE,
    "deeper.json": lambda: b'[{"x": ' * 10**5,
    "deep.jsonl": lambda: b'{"x": 1, "labels": ' + b"[" * WIDE + b"\n",
    "digits.json": lambda: b'[{"x": ' + b"9" * WIDE + b', "labels": "a"}]',
    "keys.jsonl": lambda: b"".join(b'{"k%d": 1}\n' % i for i in range(60_000)),
    "lists.csv": lambda: b'x,labels\n1,"' + b"[" * 90_000 + b"]" * 90_000 + b'"\n2,a\n3,b\n',
    "minus.csv": lambda: b"x,labels\n1,[" + b"-" * 90_000 + b"1]\n2,a\n3,b\n",
    "footer.parquet": lambda: b"PAR1" + b"\0" * 100 + struct.pack("<I", 2**31 - 1) + b"PAR1",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files_are_refused_or_read_in_time(name: str, tmp_path: Path) -> None:
    data = HOSTILE[name]()
    start = time.process_time()  # of this process: how busy the machine is does not matter
    with contextlib.suppress(PlainError):
        read_text(tmp_path, data, name)
    assert time.process_time() - start < 10


def test_parquet_that_declares_more_than_memory_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.parquet"
    zeros = pa.repeat(pa.scalar(0.0), 1_000_000)
    pq.write_table(pa.table({"x": zeros, "label_a": zeros}), path)
    assert path.stat().st_size < 2**14
    monkeypatch.setattr("core.formats.shared.limits.ANY_FILE", 2**21)
    monkeypatch.setattr("core.formats.shared.limits.free_memory", lambda: 2**25)
    with pytest.raises(DatasetError, match="may unpack to 2 MB"):
        formats.read(path)


@pytest.fixture(scope="module")
def whole_files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    return fuzzing.whole_files(tmp_path_factory.mktemp("whole"))


@pytest.mark.parametrize(
    "name",
    [
        *(f"{layout}.{kind}" for layout in ("one-hot", "sets") for kind in KINDS),
        *("packed.csv.gz", "packed.csv.zip"),
    ],
)
def test_damaged_files_only_ever_raise_plain_errors(
    name: str, whole_files: dict[str, bytes], tmp_path: Path
) -> None:
    outcomes = fuzzing.survive(formats.read, whole_files[name], tmp_path / name, 100, seed=1)
    assert outcomes["refused"] > 0


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
