"""A table per person in a folder or a zip file: read as one, whose rows are whose in a column."""

import csv
import json
import random
import zipfile
from pathlib import Path

import pytest
from fuzzing import survive
from layouts import LABELS, RATERS, crowd

from core import formats
from core.errors import DatasetError


def documents(folder: Path) -> Path:
    """doccano's export: JSON Lines of each user."""
    folder.mkdir()
    for who in RATERS:
        mine = [one for one in crowd() if who in one.answers]
        rows = ({"id": i.id, "text": i.text, "label": i.answers[who], "Comments": []} for i in mine)
        (folder / f"{who}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


def sheets(folder: Path) -> Path:
    """A sheet of each person: numbers, ids that begin with 0, a column of 0 and 1 per label."""
    folder.mkdir()
    for who in RATERS:
        rows = [
            [f"{int(one.id[1:]):03d}", f"{int(one.id[1:]) / 7:.3f}", *_flags(one.answers[who])]
            for one in crowd()
            if who in one.answers
        ]
        with (folder / f"{who}.csv").open("w", newline="") as file:
            csv.writer(file).writerows([["id", "size", *LABELS], *rows])
    return folder


def _flags(labels: list[str]) -> list[int]:
    return [int(name in labels) for name in LABELS]


def zipped(folder: Path) -> Path:
    path = folder.with_suffix(".zip")
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("README.md", "What these are.")
        for file in sorted(folder.iterdir()):
            archive.write(file, file.name)
    return path


@pytest.mark.parametrize("packed", [False, True], ids=["folder", "zip"])
@pytest.mark.parametrize("make", [documents, sheets])
def test_every_table_is_what_a_person_said(make, packed: bool, tmp_path: Path) -> None:
    folder = make(tmp_path / "people")
    data = formats.read(zipped(folder) if packed else folder).dataset
    assert data.votes is not None
    assert (data.n_instances, data.n_labels, data.votes.sources) == (40, 5, RATERS)
    assert data.has_features
    assert len(data.votes.answered) == sum(len(one.answers) for one in crowd())


@pytest.mark.parametrize("packed", [False, True], ids=["folder", "zip"])
def test_rows_go_out_as_they_came_and_are_read_as_one_table(packed: bool, tmp_path: Path) -> None:
    folder = sheets(tmp_path / "people")
    found = formats.read(zipped(folder) if packed else folder)
    out = formats.write(found.dataset, tmp_path / "all.csv")
    with out.open(newline="") as file:
        header, *rows = csv.reader(file)
    came = [(row, who) for who in RATERS for row in _rows(folder / f"{who}.csv")]
    assert header == ["id", "size", *LABELS, "annotator"]
    assert rows == [[*row, who] for row, who in came]
    again = formats.read(out).dataset
    assert again.ids == found.dataset.ids
    assert again.votes is not None
    assert again.votes.sources == RATERS
    assert (again.candidates == found.dataset.candidates).all()


def _rows(path: Path) -> list[list[str]]:
    with path.open(newline="") as file:
        return list(csv.reader(file))[1:]


def test_parts_of_a_split_and_other_tables_are_refused(tmp_path: Path) -> None:
    folder = sheets(tmp_path / "people")
    (folder / "r1.csv").rename(folder / "train.csv")
    with pytest.raises(DatasetError, match="one table"):
        formats.read(folder)
    (folder / "train.csv").write_text("rater,age\nr2,30\nr3,40\n")
    (folder / "train.csv").rename(folder / "people.csv")
    with pytest.raises(DatasetError, match="same columns"):
        formats.read(folder)


def test_nothing_outside_the_folder_or_archive_is_read(tmp_path: Path) -> None:
    folder = sheets(tmp_path / "people")
    secret = (folder / "r1.csv").rename(tmp_path / "r1.csv")
    (folder / "r1.csv").symlink_to(secret)
    with pytest.raises(DatasetError, match="must lie in it"):
        formats.read(folder)
    path = tmp_path / "slip.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for name in ("../a.csv", "b.csv", "c.csv"):
            archive.writestr(name, secret.read_text())
    with pytest.raises(DatasetError, match="must lie in it"):
        formats.read(path)


def test_mutated_archives_are_read_or_refused(tmp_path: Path) -> None:
    path = zipped(documents(tmp_path / "people"))
    outcomes = survive(formats.read, path.read_bytes(), path, 200, random.Random(0).randrange(99))
    assert outcomes["no message"] == 0
