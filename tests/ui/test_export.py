"""The Export view, and that it writes what `plain export` writes."""

import io
import json
import zipfile
from importlib.util import find_spec
from pathlib import Path

import pytest
from app_stages import figures, new_app
from finished_run import finished_run, near_rows
from streamlit.testing.v1 import AppTest
from typer.testing import CliRunner

from core.cli import app as command_line
from core.errors import ExportError
from core.formats import read
from core.review import Threshold
from core.store import Decision
from plain_app.server import launcher
from plain_app.services import data, export, review, trust

FORMATS = [one for one in export.formats() if one != "datasets" or find_spec("datasets")]


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
    app = new_app()
    app.query_params["run"] = run_id
    return app.run().switch_page("views/export/page.py").run()


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
    assert page.keys() == shell.keys()
    records = [one for one in page if one.name.endswith(".provenance.json")]
    assert len(records) == 1
    if format_ == "matlab":  # the digest of what was written is beside it
        records += [one for one in page if one.name.endswith(".plain.npz")]
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


@pytest.mark.parametrize("rule", ["One per label", "Precision target", "Top of each instance"])
def test_every_rule_draws(stage, run_id, rule):
    app = open_export(run_id)
    app.segmented_control(key="export.rule").set_value(rule).run()
    assert not app.exception
    assert not app.error


def test_a_higher_cut_removes_more_at_once(stage, run_id):
    app = open_export(run_id)
    before = int(figures(app)["removed"].replace(",", ""))
    app.slider(key="export.cut").set_value(0.9).run()
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
    assert names == ["clean.csv", "clean.csv.plain.npz", "clean.csv.provenance.json"]


def test_the_download_is_read_back_as_it_is(stage, run_id, tmp_path):
    made = export.outcome(run_id, Threshold(), False)
    (tmp_path / "clean.zip").write_bytes(export.packed(made, "clean.csv", "csv"))
    back = read(tmp_path / "clean.zip")
    assert (back.outcome.labels == made.resolution.labels).all()
    assert len(back.decisions) == len(made.results.decisions)


def test_annotators_are_named_as_users_of_label_studio(stage, run_id, tmp_path):
    app = open_export(run_id)
    assert not [one for one in app.text_input if one.key == "export.users"]
    app.selectbox(key="export.format").select("labelstudio").run()
    app.text_input(key="export.users").set_value("zoe=1").run()
    assert any("Nobody of this name" in one.value for one in app.text)
    app.text_input(key="export.users").set_value("ann=4").run()
    app.text_input(key="export.folder").set_value(str(tmp_path)).run()
    app.button(key="export.write").click().run()
    assert not app.exception
    tasks = json.loads((tmp_path / "clean.json").read_text("utf-8"))
    said = [one["completed_by"] for task in tasks for one in task["annotations"]]
    assert set(said) == {4}


def test_a_file_is_written_once_and_replaced_only_on_request(stage, run_id, tmp_path):
    app = open_export(run_id)
    app.text_input(key="export.folder").set_value(str(tmp_path)).run()
    app.button(key="export.write").click().run()
    assert (tmp_path / "clean.csv").exists()
    (tmp_path / "clean.csv").write_text("precious")
    app.button(key="export.write").click().run()
    assert not app.exception
    assert (tmp_path / "clean.csv").read_text() == "precious"
    app.toggle(key="export.force").set_value(True).run()
    app.button(key="export.write").click().run()
    assert (tmp_path / "clean.csv").read_text() != "precious"


@pytest.mark.parametrize(
    ("name", "head"),
    [
        ("numbers.csv", "id,time,zip,day,big,label_a,label_b"),
        ("texts.csv", "id,text,labels"),
    ],
)
def test_an_uploaded_file_comes_out_with_its_own_columns(stage, tmp_path, name, head):
    numbers = "{i:04},17000000{i:02},0{i:04},2024-02-{i:02},900719925474099{i},{a},{b}"
    texts = '{i:04},"the {i}th text, of {a}",{labels}'
    lines = [
        (numbers if name == "numbers.csv" else texts).format(
            i=i, a=i % 2, b=(i + 1) % 2, labels="a|b" if i % 3 else "b"
        )
        for i in range(10, 40)
    ]
    content = "\n".join([head, *lines, ""])
    staged = data.stage(io.BytesIO(content.encode()), name)
    dataset = data.load(data.store(data.read_staged(staged, None).dataset, name))
    data.discard(staged)
    features = dataset.features
    graph = near_rows(features.toarray() if name == "texts.csv" else features)
    run_id = finished_run(stage.space, dataset, instance_graph=graph)
    made = export.outcome(run_id, Threshold(), False)
    out = export.write(made, tmp_path / "out.csv", "csv").read_text().splitlines()
    assert out[0].startswith(f"{head},resolved")
    assert [line.startswith(f"{was},") for was, line in zip(lines, out[1:], strict=True)] == [
        True
    ] * 30
    arguments = [
        "export",
        run_id,
        str(tmp_path / "shell.csv"),
        "--workspace",
        str(stage.space.folder),
    ]
    assert CliRunner().invoke(command_line, arguments).exit_code == 0
    assert (tmp_path / "shell.csv").read_text().splitlines() == out
    preview = export.preview(made, "out.csv", "csv")
    shown = [one if len(one) <= 400 else f"{one[:140]} … {one[-260:]}" for one in out[:4]]
    assert preview[0][1].splitlines() == shown


def test_rows_of_views_come_out_as_they_came_or_one_row_per_item(stage):
    views = [
        f"i{i:02},text {i % 5} of item {i},r{who},{'a;b' if (i + who) % 3 else 'b'}"
        for i in range(20)
        for who in range(3)
    ]
    content = "\n".join(["id,text,rater,labels", *views, ""])
    staged = data.stage(io.BytesIO(content.encode()), "views.csv")
    dataset = data.load(data.store(data.read_staged(staged, None).dataset, "views.csv"))
    run_id = finished_run(
        stage.space, dataset, instance_graph=near_rows(dataset.features.toarray())
    )
    app = open_export(run_id)
    assert not app.exception
    app.checkbox(key="export.per_item").check().run()
    assert not app.exception
    made = export.outcome(run_id, Threshold(), False)
    for per_item, n in ((False, len(views)), (True, 20)):
        held = zipfile.ZipFile(
            io.BytesIO(export.packed(made, "clean.csv", "csv", per_item=per_item))
        )
        assert len(held.read("clean.csv").decode().splitlines()) == 1 + n


def test_replace_never_deletes_a_folder(stage, run_id, tmp_path):
    (tmp_path / "clean.csv").mkdir()
    (tmp_path / "clean.csv" / "mine.txt").write_text("mine")
    app = open_export(run_id)
    app.text_input(key="export.folder").set_value(str(tmp_path)).run()
    app.toggle(key="export.force").set_value(True).run()
    app.button(key="export.write").click().run()
    assert not app.exception
    assert any("folder" in one.value for one in app.text)
    assert (tmp_path / "clean.csv" / "mine.txt").read_text() == "mine"


def test_a_folder_that_is_not_there_is_a_message(stage, run_id, tmp_path):
    app = open_export(run_id)
    app.text_input(key="export.folder").set_value(str(tmp_path / "nowhere")).run()
    app.button(key="export.write").click().run()
    assert not app.exception
    assert any("no such folder" in one.value for one in app.text)


@pytest.mark.parametrize("folder", ["~nosuchuser/x", "a\0b", "x" * 5000])
def test_what_is_no_folder_is_a_message(stage, run_id, folder):
    made = export.outcome(run_id, Threshold(), False)
    with pytest.raises(ExportError, match=r"no (such )?folder"):
        export.write_below(made, folder, "clean.csv", "csv")


def test_on_a_shared_server_files_are_written_only_below_allowed_folders(
    stage, run_id, tmp_path, monkeypatch
):
    allowed, other = tmp_path / "exports", tmp_path / "exports-of-others"
    (allowed / "team").mkdir(parents=True)
    other.mkdir()
    (allowed / "link").symlink_to(other)
    (tmp_path / "way in").symlink_to(allowed / "team")
    monkeypatch.setenv(launcher.EXPORT_FOLDERS, json.dumps([str(allowed)]))
    made = export.outcome(run_id, Threshold(), False)
    for folder in (other, allowed / "link", allowed / ".." / other.name, tmp_path, Path("/"), ""):
        with pytest.raises(ExportError, match="not open to exports"):
            export.write_below(made, str(folder), "clean.csv", "csv")
    assert [one for one in other.iterdir()] == []
    for at, folder in enumerate((allowed, allowed / "team", tmp_path / "way in")):
        export.write_below(made, str(folder), f"clean-{at}.csv", "csv")
    assert len(list(allowed.rglob("*.csv"))) == 3


def test_the_page_offers_the_allowed_folders_and_nothing_without_them(
    stage, run_id, tmp_path, monkeypatch
):
    monkeypatch.setenv(launcher.EXPORT_FOLDERS, json.dumps([str(tmp_path)]))
    app = open_export(run_id)
    app.button(key="export.write").click().run()
    assert (tmp_path / "clean.csv").exists()
    monkeypatch.setenv(launcher.EXPORT_FOLDERS, "[]")
    app = open_export(run_id)
    assert not [one for one in app.button if one.key == "export.write"]
    assert not app.exception


def test_what_is_kept_for_several_rules_shares_the_decisions(stage):
    """Every rule and every new decision made a copy of all decisions, a dozen of them kept."""
    run_id = finished_run(stage.space, stage.dataset)
    cell = {"instance_id": stage.dataset.ids[0], "fingerprint": stage.dataset.fingerprint}
    made = []
    for name in stage.dataset.label_names[:2]:
        stage.space.decisions.add(Decision(label=name, verdict="keep", annotator="ann", **cell))
        made.append(export.outcome(run_id, Threshold(), False).results.decisions)
    assert made[1][0] is made[0][0]


def test_without_an_audit_it_exports_and_says_what_it_does_not_know(run_id):
    app = open_export(run_id)
    told = " ".join(one.value for one in app.caption)
    assert "Not audited (0 of 30 random cells" in told
    assert "only the run says" in told
    assert "random answers would tell" in told  # what narrows the interval
    assert export.packed(export.outcome(run_id, Threshold(), False), "clean.csv", "csv")
    app.button(key="export.audit_start").click().run()
    assert not app.exception
    assert app.session_state["review.order"] == "thirty"


def test_after_an_audit_it_says_how_right_what_the_rule_keeps_is(stage, run_id):
    reviewer, data = review.current_state(run_id).reviewer, stage.dataset
    for one in reviewer.questions("thirty"):
        for at in one.cells:
            stage.space.decisions.add(
                Decision(
                    fingerprint=data.fingerprint,
                    instance_id=data.ids[one.row],
                    label=data.label_names[at],
                    verdict="keep" if data.truth[one.row, at] else "reject",
                    annotator="ann",
                    sampled=True,
                    shown=False,
                )
            )
    found = trust.audited(run_id, Threshold(value=0.6))
    assert found.is_done
    app = open_export(run_id)
    app.slider(key="export.cut").set_value(0.6).run()
    told = " ".join(one.value for one in app.caption)
    assert f"({found.n_right} of {found.n_kept})" in told
    assert "Not audited" not in told
