"""Files with others beside them: class numbers and their names, folders, archives."""

import zipfile
from pathlib import Path

import format_cases as cases
import layouts
import numpy as np
import pytest
from typer.testing import CliRunner

from core import formats
from core.cli import app
from core.errors import DatasetError


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
    assert formats.read(path).dataset.ids == ("test/1", "test/2", "train/1", "train/2")
    (tmp_path / "people.tsv").write_text("name\tage\nanna\t33\nbob\t44\n")
    path = packed(tmp_path / "both.zip", tmp_path, ("train.csv", "people.tsv"))
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
