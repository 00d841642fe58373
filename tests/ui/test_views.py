"""Every view in every state, and what its widgets do; the widgets' keys are the interface."""

import re
from io import BytesIO

import pandas as pd
import pytest
from app_stages import ELSEWHERE, EPOCHS, STATES, opened, texts
from finished_run import finished_run

from core.data.dataset import CandidateDataset
from core.data.demo import DEMOS
from core.engine.config import PlainConfig
from core.store import RunState, files
from plain_app.services import review, runs

VIEWS = ("data", "train", "review", "export")
SECTIONS = (
    "Curves",
    "Confidences",
    "Unstable cells",
    "Two epochs",
    "Cartography",
    "Reliability",
    "Log",
)
HOSTILE = '<img src=x onerror="alert(1)">'


def csv(**columns) -> bytes:
    file = BytesIO()
    pd.DataFrame(columns).to_csv(file, index=False)
    return file.getvalue()


def good_csv(names=("sea", "sky", "sun")) -> bytes:
    rows = range(40)
    labels = {f"label_{name}": [(i + j) % 2 for i in rows] for j, name in enumerate(names)}
    return csv(
        id=[f"i{i}" for i in rows], x1=[i / 7 for i in rows], x2=[-i for i in rows], **labels
    )


def upload(app, name: str, content: bytes):
    return app.file_uploader(key="data.upload_0").upload(name, content, "text/csv").run()


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("state", STATES)
def test_every_view_draws_every_state(stage, open_app, view, state):
    stage.set(state)
    app = open_app(view)
    assert not app.exception
    assert not app.error


@pytest.mark.parametrize("view", ["explore", "review", "tune", "export"])
def test_views_that_need_results_follow_a_run_at_work_and_say_why_there_are_none(
    stage, open_app, view
):
    stage.set("running")
    app = open_app(view)
    assert not app.exception
    assert re.search(f"At work: epoch [0-9]+ of {2 * EPOCHS}", texts(app))
    stage.space.runs.finish(stage.run_id, RunState.FAILED, "why")
    assert "This run failed" in texts(app.run())


@pytest.mark.parametrize("view", [*VIEWS, "explore", "compare", "tune"])
def test_every_view_says_which_machine_has_the_files(stage, open_app, view):
    stage.set("elsewhere")
    app = open_app(view)
    assert not app.exception
    assert view in ("compare", "tune") or f"files are on {ELSEWHERE}" in texts(app)


@pytest.mark.parametrize("state", ["running", "interrupted", "failed"])
def test_every_section_of_a_run_draws(stage, open_app, state):
    stage.set(state)
    app = open_app("train")
    for section in SECTIONS:
        app.segmented_control(key="train.section").set_value(section).run()
        assert not app.exception, section


def test_a_reloaded_page_finds_its_run_and_data_in_the_address(stage, open_app):
    stage.set("finished")
    app = open_app("train")
    assert app.session_state["frame.run"] == stage.run_id
    assert app.query_params["run"] in (stage.run_id, [stage.run_id])


def test_an_address_with_a_run_that_is_gone_opens_without_it(stage, open_app):
    stage.set("loaded")
    stage.run_id = "0000000000000"
    app = open_app("train")
    assert not app.exception
    assert app.session_state["frame.run"] == ""


def test_without_data_train_says_what_to_do(stage, open_app):
    app = open_app("train")
    assert "Nothing to train on yet" in texts(app)


def test_the_demo_is_one_click(stage, open_app, monkeypatch, small_demo):
    small = DEMOS["demo"]._replace(load=lambda: small_demo)
    monkeypatch.setitem(DEMOS, "demo", small)
    app = open_app()
    app.button(key="data.demo").click().run()
    assert not app.exception
    assert app.session_state["frame.data"] == small_demo.fingerprint


def test_a_good_upload_is_stored_only_when_asked(stage, open_app):
    app = upload(open_app(), "sea.csv", good_csv())
    assert not app.exception
    assert stage.space.datasets() == []
    app.button(key="data.load").click().run()
    assert not app.exception
    (row,) = stage.space.datasets()
    assert (row.name, row.n_instances, row.n_labels) == ("sea.csv", 40, 3)
    assert list((stage.space.folder / "incoming").iterdir()) == []


def test_a_changed_role_is_read_anew(stage, open_app):
    app = upload(open_app(), "sea.csv", good_csv())
    app.multiselect(key="data.map_labels").set_value(["label_sea", "label_sky"]).run()
    app.multiselect(key="data.map_features").set_value(["x1"]).run()
    assert not app.exception
    app.button(key="data.load").click().run()
    (row,) = stage.space.datasets()
    assert (row.n_features, row.n_labels) == (1, 2)


def test_an_upload_on_a_full_disk_is_a_message_and_leaves_nothing(stage, open_app):
    resource = pytest.importorskip("resource")
    app, incoming = open_app(), stage.space.folder / "incoming"
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2**20, hard))
    try:
        app = upload(app, "large.csv", b"0" * 2**22)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert not app.exception
    assert any("disk is full" in one.value for one in app.text)
    assert list(incoming.iterdir()) == []
    app = app.file_uploader(key="data.upload_1").upload("sea.csv", good_csv(), "text/csv").run()
    assert not any("disk is full" in one.value for one in app.text)
    assert len(list(incoming.iterdir())) == 1


def test_a_bad_upload_shows_all_problems_and_stores_nothing(stage, open_app):
    flags, numbers = ["0", "1"] * 30, [str(i / 7) for i in range(60)]
    flags[7], numbers[9], numbers[11] = "maybe", "inf", "many"
    app = upload(open_app(), "bad.csv", csv(x1=numbers, label_a=flags, label_b=["1", "0"] * 30))
    assert not app.exception
    problems = app.dataframe[-1].value
    assert len(problems) >= 2
    assert set(problems[""]) == {"must be fixed"}
    assert problems["what to do"].str.len().min() > 0
    assert stage.space.datasets() == []


def test_a_file_that_was_not_understood_is_mapped_by_hand(stage, open_app):
    numbers = [i / 7 for i in range(40)]
    app = upload(open_app(), "odd.csv", csv(a=numbers, b=numbers[::-1], c=["x;y", "y"] * 20))
    app.multiselect(key="data.map_labels").set_value(["c"]).run()
    assert not app.exception
    app.button(key="data.load").click().run()
    assert [row.n_labels for row in stage.space.datasets()] == [2]


def test_views_of_raters_are_asked_about_in_plain_words(stage, open_app):
    ids = [i // 2 for i in range(40)]
    texts_ = [f"item {i} with some words" for i in ids]
    rows = {"id": ids, "text": texts_, "labels": ["sea;sky", "sky"] * 20}
    app = upload(open_app(), "views.csv", csv(**rows, colour=["red", "blue"] * 20))
    question = app.radio(key="data.map_row")
    assert (question.label, question.value) == ("What is one row?", "item")
    question.set_value("view").run()
    assert not app.exception
    app.selectbox(key="data.map_source").set_value("colour").run()
    app.button(key="data.load").click().run()
    (row,) = stage.space.datasets()
    votes = stage.space.load_dataset(row.fingerprint).votes
    assert (row.n_instances, votes.sources) == (20, ("blue", "red"))
    assert stage.space.mapping(row.fingerprint).row == "view"


def test_what_is_not_a_table_at_all_is_a_message(stage, open_app):
    app = upload(open_app(), "noise.csv", b"\x00\x01\x02" * 50)
    assert not app.exception
    assert stage.space.datasets() == []
    app.button(key="data.discard").click().run()
    assert list((stage.space.folder / "incoming").iterdir()) == []


def test_hostile_names_are_never_markdown_or_html(stage, open_app):
    app = upload(open_app(), f"{HOSTILE}.csv", good_csv((HOSTILE, "=1+1", "![](http://x.y/z)")))
    app.button(key="data.load").click().run()
    assert not app.exception
    risky = [*app.markdown, *app.caption, *app.subheader]
    assert not any("onerror" in str(one.value) or "http://x.y" in str(one.value) for one in risky)


def test_candidates_are_made_from_clean_labels(stage, open_app):
    stage.set("loaded")
    app = opened(open_app(), "data.synthesis")
    app.number_input(key="data.r").set_value(3).run()
    app.button(key="data.synthesise").click().run()
    assert not app.exception
    newest, first = stage.space.datasets()
    truth = int(stage.dataset.truth.sum())
    assert newest.n_candidates == truth + 3 * first.n_instances
    assert app.session_state["frame.data"] == newest.fingerprint


def test_the_step_of_a_setting_is_a_small_part_of_its_value(stage, open_app):
    stage.set("loaded")
    app = opened(open_app("train"), "train.settings")
    steps = {name: app.number_input(key=f"train.{name}").step for name in ("alpha", "weight_decay")}
    assert steps == {"alpha": 0.01, "weight_decay": 0.0001}
    assert app.number_input(key="train.n_steps").placeholder == "converged"


def test_start_uses_the_form(stage, open_app, monkeypatch):
    launched = []
    monkeypatch.setattr("core.runs.worker.launch", lambda space, run_id: launched.append(run_id))
    monkeypatch.setattr("core.runs.worker.start_queued", lambda space: None)
    stage.set("loaded")
    app = opened(open_app("train"), "train.settings")
    app.number_input(key="train.alpha").set_value(0.5).run()
    app.text_input(key="train.hidden").set_value("16, 8").run()
    opened(app, "train.settings", False)  # closed again: the fields keep their values
    app.button(key="train.start").click().run()
    assert not app.exception
    run = stage.space.runs.get(launched[0])
    assert (run.config.alpha, run.config.hidden, run.config.balance) == (0.5, (16, 8), "mask")
    assert app.session_state["frame.run"] == run.id


def test_a_preset_fills_the_form(stage, open_app):
    stage.set("loaded")
    app = opened(open_app("train"), "train.settings")
    app.segmented_control(key="train.preset").set_value("paper").run()
    assert app.selectbox(key="train.balance").value == "minmax"


def test_a_setting_that_cannot_be_is_refused_beside_the_form(stage, open_app):
    stage.set("loaded")
    app = opened(open_app("train"), "train.settings")
    app.segmented_control(key="train.preset").set_value("paper").run()
    app.number_input(key="train.gamma").set_value(1.0).run()
    app.button(key="train.start").click().run()
    assert not app.exception
    assert "gamma must be below" in texts(app)
    assert stage.space.runs.list() == []


def test_pause_and_stop_reach_the_run(stage, open_app):
    stage.set("running")
    app = open_app("train")
    app.button(key="train.pause").click().run()
    assert stage.space.runs.pending_command(stage.run_id) == "pause"
    app.button(key="train.stop").click().run()
    assert stage.space.runs.pending_command(stage.run_id) == "stop"


def test_an_interrupted_run_offers_resume(stage, open_app, monkeypatch):
    launched = []
    monkeypatch.setattr("core.runs.worker.launch", lambda space, run_id: launched.append(run_id))
    stage.set("interrupted")
    app = open_app("train")
    app.button(key="train.resume").click().run()
    assert launched == [stage.run_id]


def test_a_failed_run_says_why_as_text(stage, open_app):
    stage.set("failed")
    app = open_app("train")
    assert any("<script>" in one.value for one in app.text)


def test_delete_can_be_undone(stage, open_app):
    stage.set("finished")
    app = open_app("train")
    app.button(key="train.delete").click().run()
    assert stage.space.runs.list() == []
    app.button(key="train.restore").click().run()
    assert [run.id for run in stage.space.runs.list()] == [stage.run_id]
    assert app.session_state["frame.run"] == stage.run_id


def test_chosen_runs_are_deleted_together_and_restored_together(stage, open_app):
    stage.set("finished")
    other = stage.space.runs.create(stage.dataset.fingerprint, PlainConfig(), "other").id
    app = open_app("train")
    key = next(one.key for one in app.dataframe if (one.key or "").startswith("train.runs"))
    app.session_state[key] = {"selection": {"rows": [0, 1], "columns": [], "cells": []}}
    app.run()
    assert app.button(key="train.compare").label == "Compare 2"
    app.button(key="train.delete_marked").click().run()
    assert not app.exception
    assert stage.space.runs.list() == []
    app.button(key="train.restore").click().run()
    assert {run.id for run in stage.space.runs.list()} == {stage.run_id, other}


def test_a_run_is_renamed_and_noted(stage, open_app):
    stage.set("finished")
    app = open_app("train")
    app.text_input(key=f"train.rename_{stage.run_id}").set_value("better").run()
    app.text_area(key=f"train.note_{stage.run_id}").set_value("k = 10").run()
    app.button(key="train.save").click().run()
    run = stage.space.runs.get(stage.run_id)
    assert (run.name, run.note) == ("better", "k = 10")


def test_the_scrubber_goes_to_any_epoch(stage, open_app):
    stage.set("failed")  # has a history, and nothing that could be lost
    app = confidences(open_app)
    assert epoch_shown(app) == EPOCHS
    app.session_state["train.scrubbed"] = 3
    app.run()
    assert not app.exception
    assert epoch_shown(app) == 3


def confidences(open_app):
    app = open_app("train")
    return app.segmented_control(key="train.section").set_value("Confidences").run()


def epoch_shown(app) -> int:
    charts = " ".join(str(one.proto) for one in app.get("echarts_chart"))
    return int(re.search(r"Confidences at epoch (\d+)", charts)[1])


def test_playing_goes_from_epoch_to_epoch(stage, open_app):
    stage.set("failed")  # has a history, and nothing that could be lost
    app = confidences(open_app)
    app.toggle(key="train.play").set_value(True).run()
    first = epoch_shown(app)
    app.run()
    assert not app.exception
    assert epoch_shown(app) == first + 1


def test_confidences_of_one_label_and_of_two_epochs(stage, open_app):
    stage.set("failed")
    app = confidences(open_app)
    label = stage.dataset.label_names[1]
    app.selectbox(key="train.label").set_value(label).run()
    assert f"{stage.dataset.candidates[:, 1].sum():,} of" in texts(app)
    app.segmented_control(key="train.section").set_value("Two epochs").run()
    app.slider(key=f"train.two.{EPOCHS}").set_value((3, 3)).run()
    assert not app.exception
    assert "0 cells differ" in texts(app)


def test_an_ended_run_offers_an_audit_and_data_tells_its_interval(stage, open_app):
    stage.run_id = finished_run(stage.space, stage.dataset)
    level = review.current_state(stage.run_id).reviewer.level
    app = open_app("train")
    assert "audit 0 of 30" in texts(app)
    assert level.sentence in texts(app)
    app.button(key="train.audit_start").click().run()
    assert not app.exception
    assert app.session_state["review.order"] == "thirty"
    folder = stage.space.runs.folder(stage.run_id)
    files.write_array(folder / "level.npy", level.to_array())
    assert level.sentence in texts(open_app("data"))


def test_before_any_run_data_says_that_the_level_is_unknown(stage, open_app):
    data = stage.dataset
    stage.dataset = CandidateDataset(data.features, data.candidates, data.label_names, data.ids)
    stage.set("loaded")
    assert "unknown until trained" in texts(open_app("data"))


def test_the_time_a_run_will_take_is_told_from_runs_with_the_same_settings(stage, open_app):
    stage.set("finished")
    open_app("train")
    fingerprint = stage.dataset.fingerprint
    assert runs.known_pace(fingerprint, PlainConfig(epochs=3, seed=5))
    assert runs.known_pace(fingerprint, PlainConfig(members=3)) is None
