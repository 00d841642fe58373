"""The Export view, and that it writes what `plain export` writes."""

import io
import zipfile
from importlib.util import find_spec
from pathlib import Path

import pytest
from app_stages import figures
from finished_run import finished_run
from streamlit.testing.v1 import AppTest
from typer.testing import CliRunner

from core.cli import app as command_line
from core.review import Threshold
from core.store import Decision
from plain_app.services import export

FORMATS = [one for one in export.formats() if one != "datasets" or find_spec("datasets")]
APP = Path(__file__).parents[2] / "plain_app" / "app.py"


@pytest.fixture
def run_id(stage) -> str:
    """An ended run with some decisions."""
    stage.run_id = finished_run(stage.space, stage.dataset)
    rows, labels = stage.dataset.candidates.nonzero()
    stage.space.decisions.add_many(
        Decision(
            fingerprint=stage.dataset.fingerprint,
            instance_id=stage.dataset.ids[rows[at]],
            label=stage.dataset.label_names[labels[at]],
            verdict=("keep", "reject", "unsure")[at % 3],
            annotator="ann",
        )
        for at in range(0, 120, 7)
    )
    return stage.run_id


def open_export(run_id: str) -> AppTest:
    app = AppTest.from_file(str(APP), default_timeout=30)
    app.query_params["run"] = run_id
    return app.run().switch_page("views/export.py").run()


def choose(app: AppTest, name: str, value: object) -> None:
    """Choose something as its component does: AppTest cannot press in components."""
    app.session_state[name] = value
    app.run()


@pytest.mark.parametrize("format_", FORMATS)
def test_the_files_are_those_of_the_command_line(stage, run_id, tmp_path, format_):
    name = f"clean{export.formats()[format_]}"
    made = export.outcome(run_id, Threshold(value=0.6), False)
    (tmp_path / "page").mkdir()
    (tmp_path / "shell").mkdir()
    export.write(made, tmp_path / "page" / name, format_)
    arguments = ["export", run_id, str(tmp_path / "shell" / name), "--threshold", "0.6"]
    arguments += ["--workspace", str(stage.space.folder), "--format", format_]
    done = CliRunner().invoke(command_line, arguments)
    assert done.exit_code == 0, done.output
    begin = 116 if format_ == "matlab" else 0  # its header tells the second it was written
    page, shell = (
        {
            one.relative_to(root): one.read_bytes()[begin:]
            for one in root.rglob("*")
            if one.is_file()
        }
        for root in (tmp_path / "page", tmp_path / "shell")
    )
    records = [one for one in page if one.name.endswith(".provenance.json")]
    assert page.keys() == shell.keys()
    assert len(records) == 1
    assert {k: v for k, v in page.items() if k not in records} == {
        k: v for k, v in shell.items() if k not in records
    }


def test_decisions_and_what_they_taught_are_in_the_export(stage, run_id):
    made = export.outcome(run_id, Threshold(), False)
    row = {name: at for at, name in enumerate(stage.dataset.ids)}
    column = {name: at for at, name in enumerate(stage.dataset.label_names)}
    for one in stage.space.decisions.latest(stage.dataset.fingerprint):
        cell = row[one.instance_id], column[one.label]
        if one.verdict != "unsure":
            assert made.resolution.labels[cell] == (one.verdict == "keep")
            assert made.resolution.reason(*cell).startswith("decided by ann")


def test_merged_labels_are_one_label_in_the_export(stage, run_id):
    names = list(stage.dataset.label_names)
    before = export.outcome(run_id, Threshold(), False)
    stage.space.labels.merge(stage.dataset.fingerprint, names, names[1], names[0], "ann")
    after = export.outcome(run_id, Threshold(), False)
    assert list(after.results.dataset.label_names) == [names[0], *names[2:]]
    either = before.resolution.labels[:, :2].max(axis=1)
    assert (after.resolution.labels[:, 0] >= either).mean() > 0.95
    assert (after.resolution.labels[:, 1:] == before.resolution.labels[:, 2:]).all()


@pytest.mark.parametrize("rule", ["Cut per label", "Precision target", "Top of each instance"])
def test_every_rule_draws(stage, run_id, rule):
    app = open_export(run_id)
    choose(app, "export.rule", rule)
    assert not app.exception
    assert not app.error


def test_a_higher_cut_removes_more_at_once(stage, run_id):
    app = open_export(run_id)
    before = int(figures(app)["removed"].replace(",", ""))
    choose(app, "export.cut", 0.9)
    assert not app.exception
    assert int(figures(app)["removed"].replace(",", "")) > before


@pytest.mark.parametrize("format_", FORMATS)
def test_every_format_has_a_preview(run_id, format_):
    made = export.outcome(run_id, Threshold(), False)
    found = export.preview(made, f"clean{export.formats()[format_]}", format_)
    assert found
    assert all(text for _, text in found)


def test_the_download_holds_the_file_and_its_record(stage, run_id):
    made = export.outcome(run_id, Threshold(), False)
    held = export.packed(made, "clean.csv", "csv")
    names = zipfile.ZipFile(io.BytesIO(held)).namelist()
    assert names == ["clean.csv", "clean.csv.provenance.json"]


def test_a_file_is_written_once_and_replaced_only_on_request(stage, run_id, tmp_path):
    app = open_export(run_id)
    choose(app, "export.elsewhere", True)
    choose(app, "export.folder", str(tmp_path))
    app.button(key="export.write").click().run()
    assert (tmp_path / "clean.csv").exists()
    (tmp_path / "clean.csv").write_text("precious")
    app.button(key="export.write").click().run()
    assert not app.exception
    assert (tmp_path / "clean.csv").read_text() == "precious"
    choose(app, "export.force", True)
    app.button(key="export.write").click().run()
    assert (tmp_path / "clean.csv").read_text() != "precious"


def test_a_folder_that_is_not_there_is_a_message(stage, run_id, tmp_path):
    app = open_export(run_id)
    choose(app, "export.elsewhere", True)
    choose(app, "export.folder", str(tmp_path / "nowhere"))
    app.button(key="export.write").click().run()
    assert not app.exception
    assert any("no such folder" in one.value for one in app.text)
