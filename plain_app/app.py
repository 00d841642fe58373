"""The frame: navigation, the step line, and the choices that outlive a page."""

from collections.abc import Sequence
from pathlib import Path

import streamlit as st

from core.store import DatasetRow, RunRow
from plain_app import readiness, state
from plain_app.components.ahead import load_ahead
from plain_app.components.choices import Choice, draw_choices, named
from plain_app.components.errors import error_guard
from plain_app.components.links import DATA
from plain_app.components.login import known_person, require_login
from plain_app.components.steps import draw_steps
from plain_app.components.tour import draw_tour
from plain_app.launcher import DEMO_NAME
from plain_app.services import runs
from plain_app.services.workspace import list_annotators, list_datasets, list_runs

HERE = Path(__file__).parent
AHEAD = "frame.loaded_ahead"
DEMO = (DEMO_NAME, "demo")  # as the app and the command line call it
ICON, LOGO = HERE / "static" / "icon.svg", HERE / "static" / "logo.svg"

STYLE = """<style>
.st-key-frame-steps {border-bottom: 1px solid rgba(128, 128, 128, .3); padding-bottom: .35rem}
.st-key-frame-steps [data-testid="stPageLink"] a {padding: .15rem .5rem}
.figures {display: flex; gap: 1rem; padding: .2rem 0; container-type: inline-size}
.figures div {flex: 1; min-width: 0; display: flex; flex-direction: column; line-height: 1.35}
.figures span {font-size: .8rem; opacity: .7; white-space: nowrap; overflow: hidden;
  text-overflow: ellipsis}
.figures b {font-size: clamp(1.05rem, 2.1cqi, 1.3rem); font-weight: 500; white-space: nowrap;
  font-variant-numeric: tabular-nums}
.files span {font-size: .8rem; opacity: .7}
.files pre {margin: .2rem 0 .8rem; padding: .6rem .8rem; font-family: monospace;
  font-size: .8rem; overflow: auto; background: rgba(128, 128, 128, .1);
  border-radius: .4rem}
[data-testid="stMainBlockContainer"] {padding-left: 2rem; padding-right: 2rem; padding-bottom: 2rem}
.st-key-login {padding-top: 18vh}
.st-key-train-title p, .st-key-data-name p {font-size: 1.2rem; font-weight: 600}
</style>"""


def main() -> None:
    """Draw the frame and the page that is open."""
    st.set_page_config("PLAIN Studio", page_icon=str(ICON), layout="wide")
    st.logo(str(LOGO), icon_image=str(ICON), size="large")
    require_login()
    pages = _pages()
    page = st.navigation(list(pages.values()), position="hidden")
    st.html(STYLE)
    with error_guard("frame"):
        run, is_reviewed = _draw_choices()
        draw_steps(pages, page.title, run, is_reviewed)
        if run is not None and run.state.is_ended and run.epoch:
            readiness.want(run.id)
    with error_guard("page"):
        page.run()


def _pages() -> dict[str, st.Page]:
    """Return the pages by the title of their step."""
    titles = ("Data", "Train", "Explore", "Review", "Tune", "Compare", "Export")
    return {
        title: st.Page(f"views/{title.lower()}.py", title=title, default=title == "Data")
        for title in titles
    }


def _draw_choices() -> tuple[RunRow | None, bool]:
    """Draw data set, run and annotator; they are in the address too.

    Return the run, and whether somebody has decided something about the data.
    """
    state.apply_choices()
    datasets = {row.fingerprint: row for row in list_datasets()}
    state.restore_choice(state.DATA, list(datasets), next(iter(datasets), None))
    runs_here = {run.id: run for run in list_runs(state.current().fingerprint)}
    state.restore_choice(state.RUN, ["", *runs_here], "")
    names = list_annotators(state.current().fingerprint)
    chosen = state.current()
    with st.sidebar:
        draw_choices(
            [_dataset_choice(datasets), _run_choice(runs_here), _annotator_choice(names)],
            "frame.choices",
            lambda name, value: state.choose(**{name: value}),
        )
        if known_person() is not None:
            st.button("Log out", key="frame.logout", on_click=st.logout, type="tertiary")
        _offer_tour(datasets.get(chosen.fingerprint or ""))
        if not state.recall(AHEAD):
            state.remember(AHEAD, True)
            load_ahead()
    state.mirror_in_address()
    return runs_here.get(chosen.run_id or ""), bool(names)


def _offer_tour(chosen: DatasetRow | None) -> None:
    """Offer the tour; on other data than the demo it opens the demo first."""
    if draw_tour(chosen is not None and chosen.name in DEMO):
        state.remember("data.wants_demo", True)
        st.switch_page(DATA)


def _dataset_choice(rows: dict[str, DatasetRow]) -> Choice:
    row = rows.get(state.current().fingerprint or "")
    note = ""
    if row is not None:
        sizes = f"{row.n_instances:,} instances · {row.n_labels:,} labels"
        note = f"{sizes} · {row.n_candidates:,} candidates"
    options = [(one.fingerprint, one.name) for one in rows.values()]
    chosen = "" if row is None else row.fingerprint
    return Choice("fingerprint", "Data set", options, chosen, note=note, placeholder="none yet")


def _run_choice(known: dict[str, RunRow]) -> Choice:
    options = [("", "new run"), *((run.id, runs.title(run)) for run in known.values())]
    if state.current().fingerprint is None:
        options = []
    return Choice("run_id", "Run", options, state.current().run_id or "", placeholder="new run")


def _annotator_choice(names: Sequence[str]) -> Choice:
    person = known_person()
    if person is not None:
        state.remember(state.ANNOTATOR, person)
        return Choice(
            "annotator", "Annotator", (), person, "text", help="As logged in.", is_fixed=True
        )
    state.restore_annotator()
    return Choice(
        "annotator",
        "Annotator",
        named(names),
        state.current().annotator or "",
        "text",
        help="Who makes the decisions in Review.",
        placeholder="your name",
    )


main()
