"""The Compare page: runs and trials side by side."""

import numpy as np
import pandas as pd
import pytest
import streamlit as st
from app_stages import STATES, texts
from finished_run import finished_run

from core import tuning
from core.engine.config import PlainConfig
from core.methods.choice import method_config
from core.store import RunState, files
from core.tuning import StudySettings
from core.tuning.search import work
from plain_app.services import compare, maps


@pytest.fixture(autouse=True)
def fresh():
    st.cache_resource.clear()
    st.cache_data.clear()


@pytest.fixture
def two(stage, small_demo):
    """Two ended runs of the same data."""
    return [finished_run(stage.space, small_demo, seed=seed) for seed in (0, 1)]


def table_with(app, *columns: str) -> pd.DataFrame:
    """Return the table that has these columns."""
    return next(one.value for one in app.dataframe if set(columns) <= set(one.value))


@pytest.mark.parametrize("state", STATES)
def test_every_state_draws(stage, open_app, state):
    stage.set(state)
    app = open_app("compare")
    assert not app.exception
    assert not app.error


def test_two_runs_are_compared_at_once(stage, two, open_app, small_demo):
    app = open_app("compare")
    assert not app.exception
    assert sorted(app.multiselect(key="compare.of").value) == sorted(two)
    newest, first = (
        files.read_array(stage.space.runs.folder(run_id) / "confidences.npy")
        for run_id in two[::-1]
    )
    differ = ((newest >= 0.5) != (first >= 0.5)) & (small_demo.candidates > 0)
    assert table_with(app, "≠ A")["≠ A"].tolist()[1] == differ.sum()
    assert differ.any()
    assert len(table_with(app, "label", "A")) == min(100, differ.sum())
    is_judged = any("AUC on truth" in one.value for one in app.dataframe)
    assert is_judged == ("votes of sources included" in texts(app))


def test_settings_are_compared_among_those_that_have_them():
    configs = [PlainConfig(alpha=0.1), PlainConfig(alpha=0.2), method_config("pml-ni", {"lam": 2})]
    subjects = [
        compare.Subject(str(at), "", one, np.zeros(1), {}) for at, one in enumerate(configs)
    ]
    found = compare.settings_that_differ(subjects)
    assert found["method"] == ["PLAIN", "PLAIN", "pml-ni"]
    assert found["alpha"] == [0.1, 0.2, "–"]
    assert not found.keys() & {"beta", "members", "pml-ni lam"}


def test_a_lasso_lists_its_cells_until_it_is_cleared(two, open_app):
    app = open_app("compare")
    every = table_with(app, "label", "A")
    run_id = app.multiselect(key="compare.of").value[0]
    left = maps.Lasso("pca", ((-2, -2), (0, -2), (0, 2), (-2, 2)))
    app.session_state["compare.lasso"] = (run_id, left)
    some = table_with(app.run(), "label", "A")
    assert not app.exception
    assert 0 < len(some) < len(every)
    assert set(some["instance"]) < set(every["instance"])
    app.button(key="compare.clear").click().run()
    assert len(table_with(app, "label", "A")) == len(every)
    assert "compare.clear" not in [one.key for one in app.button]


def test_the_cells_listed_are_those_on_different_sides(two, open_app):
    table = table_with(open_app("compare"), "label", "A")
    assert ((table["A"] >= 0.5) != (table["B"] >= 0.5)).all()
    spread = np.abs(table["A"] - table["B"])
    assert (np.diff(spread) <= 1e-6).all()


def test_a_run_is_taken_out_and_the_address_follows(two, open_app):
    app = open_app("compare")
    app.multiselect(key="compare.of").set_value(two[:1]).run()
    assert not app.exception
    assert "Choose two or more" in texts(app)
    assert app.query_params["of"] == two[0]


def test_trials_come_by_the_address(stage, open_app, small_demo):
    fingerprint = stage.space.add_dataset(small_demo, "demo")
    settings = StudySettings(base=PlainConfig(epochs=2, device="cpu"), n_trials=3)
    row = tuning.create_study(stage.space, fingerprint, settings, "try")
    work(stage.space, row.id)
    app = open_app("compare")
    app.query_params["of"] = f"{row.id}.0,{row.id}.2"
    app.run()
    assert not app.exception
    assert app.session_state["compare.of"] == [f"{row.id}.0", f"{row.id}.2"]
    assert set(table_with(app, "setting")["setting"]) == {"alpha", "beta", "eta"}


def test_a_trial_that_was_looked_for_too_early_is_found_when_it_has_finished(stage, small_demo):
    fingerprint = stage.space.add_dataset(small_demo, "demo")
    settings = StudySettings(base=PlainConfig(epochs=1, device="cpu"), n_trials=1)
    row = tuning.create_study(stage.space, fingerprint, settings, "try")
    assert compare.subject(f"{row.id}.0") is None
    work(stage.space, row.id)
    assert compare.subject(f"{row.id}.0") is not None


def test_an_address_with_runs_that_are_gone_opens_without_them(two, open_app):
    app = open_app("compare")
    app.query_params["of"] = f"{two[0]},0000000000000,nothing.7"
    app.run()
    assert not app.exception
    assert app.session_state["compare.of"] == [two[0]]
    assert "Choose two or more" in texts(app)


def test_the_papers_ablations_are_started_from_here(stage, open_app, monkeypatch):
    monkeypatch.setattr("core.runs.worker.launch", lambda space, run_id: None)
    monkeypatch.setattr("core.runs.worker.start_queued", lambda space: None)
    stage.set("loaded")
    app = open_app("compare")
    app.button_group(key="compare.variant").set_value(["DNN", "w/o LS"]).run()
    app.button(key="compare.start").click().run()
    assert not app.exception
    started = {run.name: run.config for run in stage.space.runs.list()}
    assert started["DNN"].disambiguation == "none"
    assert started["w/o LS"].beta == 0


def test_methods_are_started_judged_and_brought_to_a_consensus(stage, two, open_app):
    stage.keep_the_only_place()
    app = open_app("compare")
    assert "Judged by the truth" in texts(app)
    assert "Ranks are drawn for three or more." in texts(app)
    app.pills(key="compare.methods").set_value(["ml-knn", "pml-ni"]).run()
    app.button(key="compare.start").click().run()
    assert not app.exception
    waiting = [one for one in stage.space.runs.list() if one.state is RunState.QUEUED]
    assert [one.config.method.name for one in reversed(waiting)] == ["ml-knn", "pml-ni"]
    assert sorted(app.multiselect(key="compare.consensus_of").value) == sorted(two)
    app.button(key="compare.make_consensus").click().run()
    assert not app.exception
    made = stage.space.runs.list()[0].config.method
    assert made.name == "consensus"
    assert sorted(dict(made.settings)["runs"].split()) == sorted(two)


def test_three_runs_have_a_diagram_where_the_truth_is_known(stage, two, small_demo, open_app):
    third = finished_run(stage.space, small_demo, seed=2)
    app = open_app("compare", of=",".join([*two, third]))
    assert not app.exception
    assert "parts of the instances" in texts(app)
