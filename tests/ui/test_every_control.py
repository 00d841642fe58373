"""Every control of every page is pressed: here, or by a test that names its key."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import streamlit as st
from app_stages import new_app
from finished_run import finished_run
from streamlit.testing.v1 import AppTest
from streamlit.testing.v1 import element_tree as tree

from core import tuning
from core.data.dataset import CandidateDataset
from core.engine.config import PlainConfig
from core.runs.results import keep_neighbors
from core.store import Decision
from core.tuning import StudySettings
from core.tuning.search import work

ROOT = Path(__file__).parents[2]
TABS = {
    "train": "train.section",
    "explore": "explore.part",
    "review": "review.part",
    "tune": "tune.part",
    "export": "export.rule",
}
"""By page, the bar whose names are opened one after the other."""

CONTROLS = {
    *("button", "download_button", "toggle", "checkbox", "selectbox", "multiselect", "radio"),
    *("segmented_control", "pills", "slider", "number_input", "text_input", "text_area"),
}
LOGIN = {"frame.login", "frame.logout"}  # pressed in tests/e2e/test_login.py by what they say


@cache
def keys_in_source(*kinds: str) -> frozenset[str]:
    """Return the keys that pages give to widgets of some kinds, where they are written out."""
    found = set()
    for path in (ROOT / "plain_app").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                keys = [one.value for one in node.keywords if one.arg == "key"]
                if node.func.attr in kinds and keys and isinstance(keys[0], ast.Constant):
                    found.add(str(keys[0].value))
    return frozenset(found)


@cache
def named_in_tests() -> str:
    """Return all that other tests are written of; a browser's tests write `page-thing`."""
    files = [one for one in (ROOT / "tests").rglob("*.py") if one != Path(__file__)]
    text = "\n".join(one.read_text(encoding="utf-8") for one in files)
    return re.sub(r"(?<=st-key-)([a-z]+)-", r"\1.", text)


def widgets(app: AppTest) -> dict[str, tree.Widget]:
    """Return the widgets that are drawn and can be pressed, by key."""
    found = [one for one in app.main if isinstance(one, tree.Widget)]
    return {one.key: one for one in found if one.key and not getattr(one, "disabled", False)}


def change(widget: tree.Widget) -> None:
    """Give a widget another value than it has, as a person could."""
    match widget:
        case tree.Toggle() | tree.Checkbox():
            widget.set_value(not widget.value)
        case tree.Multiselect():
            widget.set_value([] if widget.value else widget.options[:1])
        case tree.ButtonGroup() if not widget._is_single_select:
            widget.set_value([] if widget.value else widget.options[:1])
        case tree.ButtonGroup() | tree.Selectbox() | tree.Radio():
            if widget.options:
                widget.set_value(widget.options[-1])
        case tree.Slider() | tree.NumberInput():
            low, high = widget.min, widget.max
            is_range = isinstance(widget.value, list | tuple)
            widget.set_value((low, high) if is_range else low if widget.value != low else high)
        case tree.TextInput() | tree.TextArea():
            widget.set_value("![x](http://x.y/z) <b>")
        case tree.FileUploader():
            pass  # tests of Data upload
        case _:
            raise AssertionError(f"nobody knows how to press {widget.key}, a {widget.type}")


@pytest.fixture
def data(small_demo) -> CandidateDataset:
    """The demo with two columns to read."""
    display = small_demo.display.assign(place=["sea", "sky"] * 60, day=["Monday"] * 120)
    parts = (small_demo.features, small_demo.candidates, small_demo.label_names, small_demo.ids)
    return CandidateDataset(*parts, truth=small_demo.truth, display=display)


@pytest.fixture
def ended(stage, data, monkeypatch) -> str:
    """Two ended runs and decisions of two people; nothing starts a process."""
    st.cache_resource.clear()
    for name in ("core.runs.worker.launch", "core.runs.worker.start_queued", "core.tuning.launch"):
        monkeypatch.setattr(name, lambda *_: None)
    monkeypatch.setattr("plain_app.services.maps.start_layout", lambda *_: "working")
    monkeypatch.setattr("plain_app.services.lens.MAX_SWEEP", 0)  # as for large data
    finished_run(stage.space, data, seed=1)
    stage.run_id = finished_run(stage.space, data)
    keep_neighbors(stage.space, stage.run_id)
    rows, labels = data.candidates.nonzero()
    verdicts = {"ann": "keep", "bob": "reject", "auto-resolve (ann)": "keep"}
    stage.space.decisions.add_many(
        Decision(
            fingerprint=data.fingerprint,
            instance_id=data.ids[rows[at]],
            label=data.label_names[labels[at]],
            verdict=verdict,
            annotator=who,
        )
        for at in range(12)
        for who, verdict in verdicts.items()
    )
    return stage.run_id


def make_study(stage, data) -> str:
    settings = StudySettings(base=PlainConfig(epochs=2, device="cpu"), n_trials=2)
    row = tuning.create_study(stage.space, data.fingerprint, settings, "study")
    work(stage.space, row.id)
    return row.id


def situations(page: str, stage, data) -> Iterator[dict[str, Any]]:
    """Yield what to have chosen on a page so that, taken together, all of its controls appear."""
    run_id = stage.run_id
    if page in TABS:
        app = open_page(page, run_id, {})
        yield from ({TABS[page]: name} for name in app.segmented_control(key=TABS[page]).options)
    elif page == "data":
        yield {"data.synthesis": True, "data.votes_box": True}
    else:
        yield {}
    if page == "train":
        corners = ((-2, -2), (2, -2), (2, 2), (-2, 2))
        yield {"train.section": "Cartography", "train.lasso": (run_id, corners)}
        yield {"frame.run": ""}
    if page == "review":
        yield {"review.part": "Retrain", "review.retrained": run_id}
    if page == "tune":
        chosen = {"tune.part": "Search", "tune.study": make_study(stage, data)}
        yield from ({**chosen, "tune.plot": plot} for plot in ("Contour", "Two measures"))
        yield {**chosen, "tune.picked": [0]}


def open_page(page: str, run_id: str, chosen: dict[str, Any]) -> AppTest:
    """Open a page with all that can be opened on it."""
    app = new_app()
    app.query_params["run"], app.query_params["annotator"] = run_id, "ann"
    app.run()
    boxes = {key: True for key in keys_in_source("expander") if key.startswith(f"{page}.")}
    for key, value in (boxes | chosen).items():
        app.session_state[key] = value
    app = app.run() if page == "data" else app.switch_page(f"views/{page}/page.py").run()
    assert not app.exception, app.exception[0].value
    return app


def press_all(page: str, run_id: str, chosen: dict[str, Any], pressed: set[str]) -> None:
    """Change every value on a page at once, then press each button that no other test names."""
    app = open_page(page, run_id, chosen)
    found = {key: one for key, one in widgets(app).items() if key not in pressed | {*chosen}}
    buttons = {
        key for key, one in found.items() if isinstance(one, tree.Button | tree.DownloadButton)
    }
    for key in found.keys() - buttons:
        change(found[key])
    app.run()
    assert not app.exception, app.exception[0].value
    for key in sorted(key for key in buttons if key not in named_in_tests()):
        app = open_page(page, run_id, chosen)
        widgets(app)[key].click().run()
        assert not app.exception, (key, app.exception[0].value)
    pressed |= {*found}


@pytest.mark.parametrize(
    "page", ["data", "train", "explore", "review", "tune", "compare", "export"]
)
def test_every_control_can_be_pressed(stage, data, ended, page, monkeypatch):
    pressed: set[str] = set()
    for chosen in situations(page, stage, data):
        press_all(page, ended, chosen, pressed)
    if page == "tune":
        monkeypatch.setattr("core.tuning.studies.n_workers_here", lambda *_: 1)  # at work
        press_all(page, ended, chosen, pressed)
    left = {key for key in keys_in_source(*CONTROLS) if key.startswith(f"{page}.")} - pressed
    assert sorted(key for key in left if key not in named_in_tests()) == []


def test_every_control_of_the_frame_is_pressed_somewhere():
    keys = {key for key in keys_in_source(*CONTROLS) if key.startswith("frame.")} - LOGIN
    assert sorted(key for key in keys if key not in named_in_tests()) == []
