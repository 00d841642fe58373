"""Numbers per label, item and label in one name, columns of people: what is said and asked."""

import csv
import random
from pathlib import Path
from typing import Any

import format_cases as cases
import numpy as np
import pytest
from number_layouts import NUMBERS

from core import formats
from core.errors import DatasetError
from core.formats import ColumnMapping

LAYOUTS = {make.__name__: make(random.Random(0)) for make in NUMBERS}


def counted(name: str, folder: Path, row: str | None = None) -> tuple[Any, Any]:
    """Read a layout; give the result and how many said yes and no to each cell."""
    given = None if row is None else ColumnMapping(row=row)
    found = formats.read(LAYOUTS[name].write(folder), given)
    data = found.dataset
    cells = [(i, j) for i in range(data.n_instances) for j in range(data.n_labels)]
    offered = [data.votes.offered_by(i, j) for i, j in cells] if data.votes else []
    sizes = np.array([[len(yes), len(no)] for yes, no in offered])
    return found, sizes.reshape(data.n_instances, -1, 2)


def cells_below(text: str, first: int) -> Any:
    rows = list(csv.reader(text.splitlines()))
    return np.array([[float(cell) for cell in row[first:]] for row in rows[1:]])


@pytest.mark.parametrize(
    ("name", "first", "seats", "whole"),
    [("counts_of_three", 1, 3, 3), ("soft_labels", 1, 10, 1), ("ratings_to_100", 2, 10, 100)],
)
def test_numbers_of_people_become_votes_and_are_asked_about(
    name: str, first: int, seats: int, whole: int, tmp_path: Path
) -> None:
    found, sizes = counted(name, tmp_path)
    said = cells_below(LAYOUTS[name].text, first)
    np.testing.assert_array_equal(sizes[..., 0], np.rint(seats * said / whole))
    assert (sizes.sum(axis=-1) == seats).all()
    asked = [one for one in found.problems if one.message.startswith("what do the numbers say?")]
    assert len(asked) == (name != "soft_labels")  # which add up to one


def test_numbers_alone_are_asked_about_or_no_labels(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    for scale in (1, 90):
        rows = [f"{i},{i % 4 * scale},{i * 7 % 4},{i * 3 % 4}" for i in range(40)]
        path.write_text("\n".join(["id,x,y,z", *rows]))
        if scale == 1:
            found = formats.read(path)
            assert (found.dataset.n_labels, found.dataset.votes.n_sources) == (3, 3)
            assert any("what do the numbers say?" in one.message for one in found.problems)
        else:
            with pytest.raises(DatasetError, match="no label columns"):
                formats.read(path)


def test_columns_that_differ_by_a_number_are_asked_about(tmp_path: Path) -> None:
    found, sizes = counted("worker_columns", tmp_path)
    rows = list(csv.reader(LAYOUTS["worker_columns"].text.splitlines()))[1:]
    np.testing.assert_array_equal(sizes[:, 0, 0], [row[2:].count("1") for row in rows])
    assert any("--row item" in one.fix for one in found.problems)
    assert counted("worker_columns", tmp_path, "item")[0].dataset.n_labels == 5
    text = LAYOUTS["worker_columns"].text.replace("w1,w2,w3,w4,w5", "q1,q2,q3,q4,q5")
    (tmp_path / "q.csv").write_text(text)
    asked = formats.read(tmp_path / "q.csv")
    assert (asked.dataset.n_labels, asked.dataset.votes) == (5, None)
    assert any("--row people" in one.fix for one in asked.problems)
    people = formats.read(tmp_path / "q.csv", ColumnMapping(row="people")).dataset
    assert (people.n_labels, people.votes and people.votes.n_sources) == (1, 5)


def test_counts_behind_labels_are_votes(tmp_path: Path) -> None:
    found, sizes = counted("counts_in_cells", tmp_path)
    names = found.dataset.label_names
    rows = list(csv.reader(LAYOUTS["counts_in_cells"].text.splitlines()))[1:]
    for row, votes in zip(rows, sizes, strict=True):
        told = dict(f"{part} (1".split(" (")[:2] for part in row[2].split(", "))
        assert votes[:, 0].tolist() == [int(told.get(name, "0").rstrip(")")) for name in names]


def test_a_second_label_of_a_view_is_a_label(tmp_path: Path) -> None:
    found, sizes = counted("two_labels_per_view", tmp_path)
    rows = list(csv.reader(LAYOUTS["two_labels_per_view"].text.splitlines()))[1:]
    assert sizes[..., 0].sum() == sum(cell != "" for row in rows for cell in row[3:])
    assert found.mapping.labels == ("primary_label", "secondary_label")


def test_one_name_of_item_and_label_comes_back_as_such(tmp_path: Path) -> None:
    data = counted("composite_ids", tmp_path)[0].dataset
    out = formats.write(data, tmp_path / "out.csv", resolution=cases.resolution_of(data))
    rows = list(csv.reader(out.read_text("utf-8").splitlines()))
    assert rows[0] == ["ID", "Label", "resolved", "conf", "reason"]
    given = list(csv.reader(LAYOUTS["composite_ids"].text.splitlines()))
    assert [row[:2] for row in rows[: len(given)]] == given
    assert data.ids[0] == given[1][0].rpartition("_")[0]
