"""A bug or a missing package of ours is never told as a damaged file."""

import json
import subprocess
import sys
from pathlib import Path

import format_cases as cases
import fuzzing_binary
import pytest

from core import formats
from core.errors import ExportError, PlainError

PLANTED = (TypeError("planted"), AttributeError("planted"), ImportError("planted"))
INSIDE = {  # something our own that runs while a file of this kind is read
    "a.csv": "core.formats.shared.tabular.FeatureBlock",
    "a.tsv": "core.formats.readers.delimited.guess_mapping",
    "a.parquet": "core.formats.readers.parquet.guess_mapping",
    "a.json": "core.formats.readers.json_tables.guess_mapping",
    "a.jsonl": "core.formats.readers.json_tables.columns.check_rows",
    "a.npz": "core.formats.readers.npz.features_of",
    "a.mat": "core.formats.readers.matlab._roles",
    "a.arff": "core.formats.readers.arff.check_shape",
    "a.svm": "core.formats.readers.svmlight.check_shape",
}


def planted(error: Exception):
    def broken(*_: object, **__: object) -> None:
        raise error

    return broken


@pytest.mark.parametrize("error", PLANTED, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("name", INSIDE)
def test_a_bug_in_a_reader_surfaces_as_itself(name, error, tmp_path, monkeypatch):
    path = formats.write(cases.small_dataset(), tmp_path / name)
    formats.read(path)
    monkeypatch.setattr(INSIDE[name], planted(error))
    with pytest.raises(type(error), match="planted") as raised:
        formats.read(path)
    assert not isinstance(raised.value, PlainError)


@pytest.mark.parametrize("error", PLANTED, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("name", ["labelstudio", "cleanlab"])
def test_a_bug_in_a_reader_of_other_programs_surfaces(name, error, tmp_path, monkeypatch):
    file_name, _, writers = fuzzing_binary.READERS[name]
    writers[0](tmp_path / file_name)
    monkeypatch.setattr(f"core.formats.readers.{name}.features_of_rows", planted(error))
    with pytest.raises(type(error), match="planted"):
        formats.read(tmp_path / file_name)


@pytest.mark.parametrize("error", PLANTED, ids=lambda error: type(error).__name__)
def test_a_bug_among_answers_surfaces_as_itself(error, tmp_path, monkeypatch):
    rows = [{"id": i, "x": i / 7, "annotations": {"r1": ["a"], "r2": ["b"]}} for i in range(9)]
    path = tmp_path / "a.json"
    path.write_text(json.dumps(rows))
    assert formats.read(path).dataset.votes is not None
    monkeypatch.setattr("core.formats.shared.answers._said", planted(error))
    with pytest.raises(type(error), match="planted"):
        formats.read(path)


@pytest.mark.parametrize("error", PLANTED, ids=lambda error: type(error).__name__)
def test_a_bug_in_a_writer_surfaces_as_itself(error, tmp_path, monkeypatch):
    monkeypatch.setattr("core.formats.shared.tables.record_batch", planted(error))
    with pytest.raises(type(error), match="planted"):
        formats.write(cases.small_dataset(), tmp_path / "a.csv")
    assert not [*tmp_path.iterdir()]


def test_a_missing_package_in_the_decoder_is_no_damaged_file(tmp_path, monkeypatch):
    """The decoder is a program of its own: its traceback comes back, not a refusal."""
    path = formats.write(cases.small_dataset(), tmp_path / "a.mat")
    run = subprocess.run

    def without_scipy(command, **options):
        code = "import sys, runpy; sys.modules['scipy.io'] = None; sys.argv = sys.argv[1:]; "
        code += "runpy.run_path(sys.argv[0], run_name='__main__')"
        return run([sys.executable, "-c", code, *command[2:]], **options)

    monkeypatch.setattr("core.formats.readers.matlab.decoding.subprocess.run", without_scipy)
    with pytest.raises(RuntimeError, match="ModuleNotFoundError"):
        formats.read(path)


def test_a_full_disk_is_told_as_such(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(
        "core.formats.shared.tables.record_batch", planted(OSError(28, "No space left on device"))
    )
    with pytest.raises(ExportError, match="No space left"):
        formats.write(cases.small_dataset(), tmp_path / "a.csv")
    assert not [*tmp_path.iterdir()]
