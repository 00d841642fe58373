"""CSV, TSV, Parquet, JSON Lines and JSON: what an export adds, escapes and never overwrites."""

import csv
import os
from pathlib import Path

import format_cases as cases
import numpy as np
import pandas as pd
import pytest
from tabular_cases import KINDS, ROWS, assert_same, each_kind, read_text

from core import formats
from core.data.dataset import CandidateDataset
from core.errors import ExportError


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
