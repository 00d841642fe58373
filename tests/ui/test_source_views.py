"""What the views show where several sources offered labels."""

from dataclasses import replace
from io import BytesIO

import pytest
import streamlit as st
from app_stages import new_app
from finished_run import finished_run
from streamlit.testing.v1 import AppTest
from vote_table import vote_table

from core.bench.crowds import simulate
from core.data.dataset import CandidateDataset
from core.data.demo import load_demo
from core.store import Workspace
from plain_app.server import tokens
from plain_app.services import desk, explore, maps, sources

KINDS = ("good", "good", "always yes")


@pytest.fixture
def dataset():
    demo = load_demo(n_instances=150)
    votes = simulate(demo.truth, KINDS, 0).votes
    return CandidateDataset(
        demo.features, None, demo.label_names, demo.ids, display=demo.display, votes=votes
    )


@pytest.fixture
def workspace(tmp_path, monkeypatch):
    st.cache_resource.clear()
    monkeypatch.setenv("PLAIN_WORKSPACE", str(tmp_path))
    monkeypatch.delenv("PLAIN_FILE", raising=False)
    monkeypatch.setattr(maps, "start_layout", lambda *_: "working")
    space = Workspace(tmp_path)
    yield space
    space.close()


def open_page(run_id: str | None, page: str = "data", **address: str) -> AppTest:
    app = new_app()
    if run_id:
        app.query_params["run"] = run_id
    app.run()
    if page != "data":
        app.switch_page(f"views/{page}/page.py")
    for name, value in address.items():
        app.query_params[name] = value
    return app.run()


def table(app: AppTest, first: str):
    return next(one.value for one in app.dataframe if one.value.columns[0] == first)


def test_data_shows_sources_their_agreement_and_reliability(workspace, dataset):
    run_id = finished_run(workspace, dataset)
    app = open_page(run_id)
    assert not app.exception
    shown = [list(one.value.columns) for one in app.dataframe]
    assert ["source", "instances", "offers", "offers each", "confirmed"] in shown
    assert table(app, "label")["judged by two"].sum() > 0
    reliable = next(one.value for one in app.dataframe if "says yes when true" in one.value)
    assert reliable[""].tolist() == ["", "", "its yes says little"]
    votes = simulate(load_demo(n_instances=150).truth, KINDS[:2], 0).votes
    careful = sources.reliability_of(replace(dataset, candidates=None, votes=votes), None)[0]
    assert "" not in sources.reliability_table(careful)  # no column that says nothing


def test_a_table_of_votes_makes_a_data_set_with_sources(workspace, dataset):
    alone = CandidateDataset(dataset.features, dataset.candidates, dataset.label_names, dataset.ids)
    workspace.add_dataset(alone, "demo")
    app = open_page(None)
    app.session_state["data.votes_box"] = True
    app.run()
    file = BytesIO()
    vote_table(dataset.votes, dataset.ids, dataset.label_names).to_csv(file, index=False)
    app.file_uploader(key="data.votes").upload("votes.csv", file.getvalue(), "text/csv").run()
    assert not app.exception
    assert not app.error
    assert dataset.fingerprint in {row.fingerprint for row in workspace.datasets()}


@pytest.mark.parametrize("colour", [maps.Colour("votes"), maps.Colour("source", "always yes 3")])
def test_the_map_is_coloured_by_votes(workspace, dataset, colour):
    run_id = finished_run(workspace, dataset)
    assert len(maps.colouring(explore.explored(run_id), colour).classes) == 150
    address = {"explore.colour": colour.kind}
    app = open_page(run_id, "explore", **{"explore.part": "Map"}, **address)
    assert not app.exception


def test_review_asks_where_sources_disagree_and_says_who_offered(workspace, dataset):
    run_id = finished_run(workspace, dataset)
    assert not open_page(run_id, "review", annotator="ann").exception
    claims = tokens.Claims(dataset.fingerprint, run_id, "ann")
    told = desk.questions(claims, {"order": "disagree"})
    assert "offered by" in told["items"][0]["reason"]
    votes = dataset.votes
    first = told["items"][0]
    row, label = dataset.row_of[first["key"]], dataset.label_of[first["cells"][0]["label"]]
    assert votes.disagreement[row, label] == votes.disagreement.max()
    offered = first["cells"][0]["offered"]
    assert f"offered by {votes.describe(row, label)}" in offered
    assert "of the evidence" in offered


def test_review_asks_only_what_a_source_offered(workspace, dataset):
    run_id = finished_run(workspace, dataset)
    claims = tokens.Claims(dataset.fingerprint, run_id, "ann")
    name = dataset.votes.sources[0]
    items = desk.questions(claims, {"order": "audit", "source": name})["items"]
    assert items
    for item in items:
        row = dataset.row_of[item["key"]]
        for cell in item["cells"]:
            if cell["asked"]:
                yes, _ = dataset.votes.offered_by(row, dataset.label_of[cell["label"]])
                assert name in yes
    app = open_page(run_id, "review", annotator="ann")
    app.session_state["frame.annotator"] = "ann"
    app.session_state["review.source"] = name
    app.run()
    assert not app.exception
    assert app.button(key="review.unfilter").label == "Offered by"


def test_the_instance_card_says_who_offered_and_how_much_votes_weigh(workspace, dataset):
    run_id = finished_run(workspace, dataset)
    app = open_page(run_id, "explore", **{"explore.part": "Map"})
    assert not app.exception
    (told,) = (one.value["offered by"] for one in app.dataframe if "offered by" in one.value)
    assert told.str.contains("of the evidence").all()
