"""The Tune page in all its states: the lens, a new study, a study at work and one that ended."""

import numpy as np
import pytest
import streamlit as st
from app_stages import STATES, figures, texts
from finished_run import finished_run

from core import tuning
from core.engine.config import PlainConfig
from core.runs.results import keep_neighbors
from core.store import Decision
from core.tuning import StudySettings
from core.tuning.search import work
from plain_app.services import lens

FAST = PlainConfig(epochs=2, device="cpu")


@pytest.fixture(autouse=True)
def fresh(monkeypatch):
    """No child processes: neighbours are searched here, studies are only created."""
    st.cache_resource.clear()
    st.cache_data.clear()
    monkeypatch.setattr("core.tuning.launch", lambda *_: None)


@pytest.fixture
def ready(stage, small_demo):
    """A workspace with an ended run whose neighbours are known."""
    stage.run_id = finished_run(stage.space, small_demo)
    keep_neighbors(stage.space, stage.run_id)
    return stage


@pytest.fixture
def searched(stage, small_demo):
    """A workspace with a study that ended."""
    fingerprint = stage.space.add_dataset(small_demo, "demo")
    row = tuning.create_study(stage.space, fingerprint, StudySettings(base=FAST, n_trials=6), "try")
    work(stage.space, row.id)
    return row.id


def search_page(open_app, study_id: str = ""):
    app = open_app("tune")
    app.segmented_control(key="tune.part").set_value("Search").run()
    if study_id:
        app.selectbox(key="tune.study").set_value(study_id).run()
    assert not app.exception
    return app


@pytest.mark.parametrize("state", STATES)
def test_every_state_draws(stage, open_app, monkeypatch, state):
    monkeypatch.setattr(lens, "neighbors_status", lambda *_: "failed")
    stage.set(state)
    app = open_app("tune")
    for part in ("Lens", "Search"):
        if state != "empty":
            app.segmented_control(key="tune.part").set_value(part).run()
        assert not app.exception, part
        assert not app.error, part


def test_as_in_the_run_nothing_changes_sides(ready, open_app):
    app = open_app("tune")
    assert not app.exception
    assert figures(app)["change sides"] == "0"


def test_a_moved_slider_shows_what_changes_and_which(ready, open_app):
    app = open_app("tune")
    app.session_state["tune.places"] = (ready.run_id, {"threshold": 40})
    app.run()
    assert not app.exception
    seen = lens.see(lens.lens_data(ready.run_id), {"threshold": 40})
    assert figures(app)["change sides"] == f"{len(seen.effect.changed):,}" != "0"
    table = app.dataframe(key="tune.cells").value
    assert len(table) == min(40, len(seen.effect.changed))
    assert table["explore"].str.contains(ready.run_id).all()


def test_a_chosen_row_or_a_written_id_is_shown_along_the_setting(ready, open_app):
    app = open_app("tune")
    app.session_state["tune.places"] = (ready.run_id, {"threshold": 40})
    app.run()
    app.session_state["tune.cells"] = {"selection": {"rows": [2], "columns": [], "cells": []}}
    app.run()
    assert not app.exception
    app.text_input(key="tune.instance").set_value("nobody").run()
    assert "no instance with this id" in texts(app)
    app.text_input(key="tune.instance").set_value(ready.dataset.ids[3]).run()
    assert "tune.sweep" in [one.key for one in app.get("echarts_chart")]


def test_settings_that_do_not_go_together_are_refused_beside_the_sliders(ready, open_app):
    app = open_app("tune")
    last = {name: len(stops) - 1 for name, stops in lens.lens_data(ready.run_id).stops.items()}
    app.session_state["tune.places"] = (ready.run_id, last | {"n_steps": 3})
    app.run()
    assert not app.exception
    assert "gamma must be below" in texts(app)


def test_decisions_show_how_well_a_setting_agrees(ready, open_app, small_demo):
    cells = list(zip(*np.nonzero(small_demo.candidates), strict=True))[:40]
    ready.space.decisions.add_many(
        Decision(
            fingerprint=small_demo.fingerprint,
            instance_id=small_demo.ids[i],
            label=small_demo.label_names[j],
            verdict="keep" if small_demo.truth[i, j] else "reject",
            annotator="ann",
        )
        for i, j in cells
    )
    app = open_app("tune")
    assert not app.exception
    assert float(figures(app)["agrees"].rstrip(" %")) > 50


def test_a_run_starts_from_the_lens(ready, open_app, monkeypatch):
    launched = []
    monkeypatch.setattr("core.runs.worker.launch", lambda space, run_id: launched.append(run_id))
    monkeypatch.setattr("core.runs.worker.start_queued", lambda space: None)
    app = open_app("tune")
    stops = lens.lens_data(ready.run_id).stops
    app.session_state["tune.places"] = (ready.run_id, {"k": 20, "alpha": 5})
    app.run()
    app.button(key="tune.run").click().run()
    config = ready.space.runs.get(launched[0]).config
    assert (config.k, config.alpha) == (stops["k"][20], stops["alpha"][5])


def test_the_lens_is_saved_as_a_preset_of_the_workspace(ready, open_app):
    app = open_app("tune")
    app.session_state["tune.places"] = (ready.run_id, {"k": 20})
    app.run()
    app.text_input(key="tune.preset").set_value("mine").run()
    app.button(key="tune.save_preset").click().run()
    assert not app.exception
    assert ready.space.preset("mine").k == lens.lens_data(ready.run_id).stops["k"][20]
    app.session_state["frame.run"] = ""
    app.switch_page("views/train/page.py").run()
    assert "mine" in app.segmented_control(key="train.preset").options


def test_a_search_starts_as_the_form_says(stage, open_app):
    stage.set("loaded")
    app = search_page(open_app)
    app.multiselect(key="tune.searched").set_value(["alpha", "k", "loss"]).run()
    app.number_input(key="tune.trials").set_value(9).run()
    app.button(key="tune.start").click().run()
    assert not app.exception
    (row,) = stage.space.studies.list()
    settings = StudySettings(**row.settings)
    assert [one.name for one in settings.parameters] == ["alpha", "k", "loss"]
    assert (settings.n_trials, settings.objective) == (9, "truth")
    assert app.selectbox(key="tune.study").value == row.id


def test_a_search_that_cannot_be_is_refused(stage, open_app):
    stage.set("loaded")
    app = search_page(open_app)
    app.multiselect(key="tune.searched").set_value([]).run()
    app.button(key="tune.start").click().run()
    assert not app.exception
    assert "at least one" in texts(app)
    assert stage.space.studies.list() == []


@pytest.mark.parametrize("name", list(tuning.SENSITIVITY))
def test_the_papers_studies_are_one_click(stage, open_app, name):
    stage.set("loaded")
    app = search_page(open_app)
    app.button(key=f"tune.click_{name}").click().run()
    assert not app.exception
    (row,) = stage.space.studies.list()
    study = tuning.read_study(stage.space, row.id)
    assert [list(one.values) for one in study.trials] == [[name]] * study.settings.n_trials


def test_every_plot_of_a_study_draws(searched, open_app):
    app = search_page(open_app, searched)
    plots = app.segmented_control(key="tune.plot").options
    assert len(plots) == 8
    for plot in plots:
        app.segmented_control(key="tune.plot").set_value(plot).run()
        assert not app.exception, plot
        assert not app.error, plot


def test_a_study_shows_its_best_trial_beside_the_preset(searched, stage, open_app):
    app = search_page(open_app, searched)
    study = tuning.read_study(stage.space, searched)
    assert figures(app)["best, tuned on"] == f"{study.best.value:.4f}"
    assert figures(app)["preset, held out"] == f"{study.trials[0].reported:.4f}"
    assert "the other half" in texts(app)


def test_lassoed_trials_are_listed_and_compared(searched, stage, open_app):
    app = search_page(open_app, searched)
    app.session_state["tune.picked"] = [1, 3]
    app.run()
    assert not app.exception
    table = next(one.value for one in app.dataframe if "trial" in one.value)
    assert table["trial"].tolist() == [1, 3]
    assert table["run"].str.contains(searched).all()


def test_a_study_without_a_finished_trial_waits(stage, open_app, small_demo):
    fingerprint = stage.space.add_dataset(small_demo, "demo")
    row = tuning.create_study(stage.space, fingerprint, StudySettings(base=FAST))
    app = search_page(open_app, row.id)
    assert "No trial has finished" in texts(app)
    assert app.button(key="tune.resume")


def test_a_link_opens_a_trial_as_the_run_it_stands_for(searched, stage, open_app, monkeypatch):
    monkeypatch.setattr("core.runs.worker.launch", lambda space, run_id: None)
    monkeypatch.setattr("core.runs.worker.start_queued", lambda space: None)
    study = tuning.read_study(stage.space, searched)
    for _ in range(2):  # the second time the same run is opened
        app = search_page(open_app, searched)
        app.query_params["open"] = "3"
        app.run()
        assert not app.exception
        (run,) = stage.space.runs.list()
        assert run.config == study.settings.config(study.trials[3].values)
