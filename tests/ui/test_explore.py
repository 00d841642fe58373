"""The Explore view in all its states, and what its widgets do."""

import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import streamlit as st
from app_stages import new_app
from finished_run import finished_run
from streamlit.testing.v1 import AppTest

from core.data.dataset import CandidateDataset
from core.data.demo import load_demo
from core.engine.config import PlainConfig
from core.store import Decision, RunState, Workspace, files
from plain_app.services import explore, maps
from plain_app.views.explore.instance import _cells_in_order
from plain_app.views.explore.map import COLOURS

HOSTILE = "<img src=x onerror=alert(1)> **b** ![](http://example.org/x.png)"
PART = "bidi_component"


@pytest.fixture(autouse=True)
def no_child(monkeypatch):
    """UMAP is computed in a child process; here it is always being computed."""
    st.cache_resource.clear()
    real = maps.start_layout
    monkeypatch.setattr(maps, "start_layout", lambda *_: "working")
    return real


@pytest.fixture
def workspace(tmp_path, monkeypatch):
    monkeypatch.setenv("PLAIN_WORKSPACE", str(tmp_path))
    monkeypatch.delenv("PLAIN_FILE", raising=False)
    return Workspace(tmp_path)


@pytest.fixture
def ready(workspace):
    """A workspace with an ended run on a piece of the demo data."""
    run_id = finished_run(workspace, load_demo(n_instances=120))
    return workspace, run_id


def open_view(part: str = "Map", **state) -> AppTest:
    """Open a part of Explore, with the newest run chosen."""
    app = new_app().run()
    newest = next(iter(workspace_runs()), None)
    if newest is not None:
        app.session_state["frame.run"] = newest
    for key, value in state.items():
        app.session_state[key] = value
    app.switch_page("views/explore/page.py").run()
    return go_to(app, part) if part != "Map" else app


def go_to(app: AppTest, part: str) -> AppTest:
    return app.segmented_control(key="explore.part").set_value(part).run()


def workspace_runs() -> list[str]:
    space = Workspace(os.environ["PLAIN_WORKSPACE"])
    try:
        return [run.id for run in space.runs.list()]
    finally:
        space.close()


def shown(app: AppTest) -> str:
    kinds = (app.subheader, app.caption, app.text, app.info, app.warning, app.markdown)
    return "\n".join(str(one.value) for kind in kinds for one in kind)


def components(app: AppTest) -> list[str]:
    names = (one.proto.component_name for one in app.get("bidi_component"))
    return sorted(name.removeprefix("plain_") for name in names)


def instance(app: AppTest) -> str:
    return app.text_input(key="explore.written").value


def candidates(app: AppTest) -> pd.DataFrame:
    return next(one.value for one in app.dataframe if "candidate" in one.value)


def queued(workspace: Workspace) -> str:
    fingerprint = workspace.add_dataset(load_demo(n_instances=40), "demo")
    return workspace.runs.create(fingerprint, PlainConfig(epochs=2)).id


def test_an_empty_workspace_says_what_to_do_first(workspace):
    app = open_view()
    assert not app.exception
    assert "Nothing to explore yet" in shown(app)
    assert [link.label for link in app.get("page_link")][-1] == "Go to Data"


def test_a_run_that_has_just_begun_has_no_results_yet(workspace):
    queued(workspace)
    app = open_view()
    assert not app.exception
    assert "has no results yet" in shown(app)


def test_a_run_at_work_is_explored_as_of_its_checkpoint(ready, monkeypatch):
    workspace, run_id = ready
    folder = workspace.runs.folder(run_id)
    saved = {name: files.read_array(folder / f"{name}.npy") for name in explore.RESULTS}
    live = workspace.runs.create(workspace.runs.get(run_id).fingerprint, PlainConfig(epochs=9)).id
    for name in ("instance_graph.npz", "label_graph.npz", "layout_pca.npy", "confidences.f16"):
        (workspace.runs.folder(live) / name).write_bytes((folder / name).read_bytes())
    checkpoint = {"Y_hat": saved["predictions"], "confidence": saved["confidences"]}
    files.write_arrays(workspace.runs.folder(live) / explore.CHECKPOINT, **checkpoint)
    app = open_view()
    assert not app.exception
    assert "Waiting for its turn" in shown(app)  # as nothing has claimed it
    assert "map" in components(app)
    assert len(candidates(app))


def test_a_failed_run_tells_why_as_text(workspace):
    run_id = queued(workspace)
    workspace.runs.claim(run_id, os.getpid(), 0.0)
    workspace.runs.finish(run_id, RunState.FAILED, HOSTILE)
    app = open_view()
    assert not app.exception
    assert "This run failed" in shown(app)
    assert HOSTILE in [text.value for text in app.text]


def test_a_run_stopped_at_once_has_nothing_to_show(workspace):
    run_id = queued(workspace)
    workspace.runs.claim(run_id, os.getpid(), 0.0)
    workspace.runs.finish(run_id, RunState.STOPPED)
    app = open_view()
    assert not app.exception
    assert "no results" in shown(app)


def test_a_finished_run_shows_map_instance_and_evidence(ready):
    app = open_view()
    assert not app.exception
    assert components(app) == ["map", "map_marks", "map_places", "sliders", "tour"]
    assert "UMAP is being computed" in shown(app)
    assert "Exact, before rounding" in shown(app)


def test_without_a_layout_an_instance_can_still_be_chosen(ready):
    workspace, run_id = ready
    (workspace.runs.folder(run_id) / "layout_pca.npy").unlink()
    app = open_view()
    assert not app.exception
    assert "no layout" in shown(app)
    app.query_params["explore.instance"] = "scene-0007"
    app.run()
    assert not app.exception
    assert instance(app) == "scene-0007"


def test_umap_is_preferred_to_pca(ready):
    workspace, run_id = ready
    folder = workspace.runs.folder(run_id)
    files.write_array(folder / "layout_umap.npy", files.read_array(folder / "layout_pca.npy"))
    assert maps.layouts(run_id)[0] == "umap"
    assert "UMAP" not in shown(open_view())


def test_maps_of_other_runs_wait_for_the_one_that_is_being_made(ready, no_child, monkeypatch):
    workspace, run_id = ready
    other = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    monkeypatch.setattr(maps._umap, "_children", {workspace.folder / "another": other})
    assert no_child(run_id) == "working"
    assert len(maps._umap._children) == 1  # not begun
    other.communicate(b"\n")
    assert no_child(run_id) == "working"
    own = maps._umap._children[workspace.runs.folder(run_id)]
    own.kill()
    own.wait()


def test_a_map_whose_process_has_just_ended_did_not_fail(ready, no_child, monkeypatch):
    workspace, run_id = ready
    folder = workspace.runs.folder(run_id)

    class Ending:
        def poll(self):
            files.write_array(folder / "layout_umap.npy", np.zeros((1, 2), np.float32))
            return 0

    monkeypatch.setattr(maps._umap, "_children", {folder: Ending()})
    assert no_child(run_id) == "there"


def test_every_colouring_draws(ready):
    app = open_view()
    # The demo has neither columns of its own nor votes.
    for kind in COLOURS.keys() - {"column", "votes", "source"}:
        app.selectbox(key="explore.colour").set_value(kind).run()
        assert not app.exception
        assert any(f"|{kind}|" in str(one.proto) for one in app.get(PART))


def test_another_label_colours_the_map(ready):
    app = open_view()
    label = app.selectbox(key="explore.colour_confidence").options[3]
    app.selectbox(key="explore.colour_confidence").set_value(label).run()
    assert any(f"|{label}|" in str(one.proto) for one in app.get(PART))


def test_an_unknown_id_is_said_to_be_unknown(ready):
    app = open_view()
    app.text_input(key="explore.written").set_value(HOSTILE).run()
    assert not app.exception
    assert "no instance with this id" in shown(app)
    app.button(key="explore.next").click().run()
    assert instance(app) == "scene-0000"


def test_the_card_follows_what_is_written_pressed_and_chosen(ready):
    app = open_view()
    app.text_input(key="explore.written").set_value("scene-0007").run()
    assert app.query_params["explore.instance"] == "scene-0007"
    app.button(key="explore.previous").click().run()
    assert instance(app) == "scene-0006"
    explained = app.selectbox(key="explore.label")
    names = candidates(app)["candidate"].tolist()
    assert explained.options[explained.index] == names[-1]  # the most doubtful
    last = explained.options[-1]
    app.selectbox(key="explore.label").set_value(order_of(6)[-1]).run()
    explained = app.selectbox(key="explore.label")
    assert explained.options[explained.index] == last
    assert "not offered" in last
    voters = app.dataframe(key=f"explore.why.voters.6.{explained.value}").value
    labels = {f"label {name.removesuffix(' (not offered)')}" for name in explained.options}
    assert all(one.startswith("scene-") or one in labels for one in voters["from"])
    assert "was not offered" in shown(app)


def order_of(row: int) -> list[int]:
    return _cells_in_order(explore.explored(workspace_runs()[0]), row)


def test_the_neighbours_are_drawn_when_their_tab_is_open(ready):
    app = open_view()
    assert not [one for one in app.dataframe if "edge" in one.value]
    app.session_state["explore.about"] = "Neighbours"
    app.run()
    assert not app.exception
    edges = app.dataframe(key="explore.neighbours.0").value["edge"]
    assert (np.diff(edges) <= 0).all()
    assert "Exact, before rounding" not in shown(app)


def test_the_chosen_instance_survives_another_part(ready):
    app = open_view()
    app.query_params["explore.instance"] = "scene-0042"
    app.run()
    for part in ("Labels", "Map"):
        go_to(app, part)
        assert not app.exception
    assert instance(app) == "scene-0042"


def test_a_lasso_is_listed_until_it_is_cleared(ready):
    _, run_id = ready
    everything = maps.Lasso("pca", ((-2, -2), (2, -2), (2, 2), (-2, 2)))
    app = open_view(**{"explore.lasso": (run_id, everything)})
    assert "120 instances selected" in shown(app)
    app.button(key="explore.clear").click().run()
    assert "selected" not in shown(app)


def test_a_lasso_of_another_run_is_not_listed(ready):
    other = maps.Lasso("pca", ((-2, -2), (2, -2), (2, 2), (-2, 2)))
    assert "selected" not in shown(open_view(**{"explore.lasso": ("another", other)}))


def test_decisions_are_shown_beside_their_candidate(ready):
    workspace, run_id = ready
    data = explore.explored(run_id).dataset
    label = data.label_names[int(np.flatnonzero(data.candidates[0])[0])]
    workspace.decisions.add(
        Decision(
            fingerprint=data.fingerprint,
            instance_id=data.ids[0],
            label=label,
            verdict="reject",
            annotator="ann",
        )
    )
    app = open_view()
    assert not app.exception
    assert "reject" in candidates(app)["decision"].tolist()


@pytest.mark.parametrize("shown_graph", ["All candidates", "Resolved labels", "Difference"])
def test_the_label_graph_draws_in_every_form(ready, shown_graph):
    app = open_view("Labels", **{"explore.graph": shown_graph})
    assert not app.exception
    assert len(app.get("echarts_chart")) == 2
    assert "with both offered" in shown(app)


def test_labels_never_offered_are_listed(ready):
    app = open_view("Outside the candidates")
    assert not app.exception
    assert "never offered" in shown(app)


def test_hostile_names_and_texts_stay_text(workspace):
    rng = np.random.default_rng(0)
    candidates = (rng.random((30, 3)) < 0.6).astype(np.uint8)
    data = CandidateDataset(
        rng.normal(size=(30, 4)).astype(np.float32),
        candidates,
        label_names=[HOSTILE, "=1+1", "\u202ertl" + "x" * 10_000],
        ids=[f"{HOSTILE}{at}" for at in range(30)],
        display=pd.DataFrame({HOSTILE: [HOSTILE] * 30, "n": [np.nan, *range(29)]}),
    )
    finished_run(workspace, data)
    app = open_view()
    for part in ("Labels", "Outside the candidates", "Map"):
        go_to(app, part)
        assert not app.exception
    app.selectbox(key="explore.colour").set_value("column").run()
    app.query_params["explore.instance"] = "nobody"
    app.run()
    assert not app.exception
    read_as_markdown = [one.value for kind in (app.markdown, app.caption) for one in kind]
    assert not [text for text in read_as_markdown if "onerror" in text]
    assert any("<img" in one.value for one in app.text)


def test_of_many_columns_those_with_most_to_read_are_shown(workspace):
    rng = np.random.default_rng(0)
    numbers = {name: range(30) for name in ("conversation", "turn", "second", "speaker")}
    display = pd.DataFrame({**numbers, "user": [f"what was said, the {at}th" for at in range(30)]})
    data = CandidateDataset(
        rng.normal(size=(30, 4)).astype(np.float32),
        (rng.random((30, 3)) < 0.6).astype(np.uint8),
        display=display,
    )
    finished_run(workspace, data)
    assert any("user: what was said" in one.value for one in open_view().text)
