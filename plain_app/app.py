"""The frame: navigation, the step line, and the choices that outlive a page."""

from collections.abc import Sequence
from pathlib import Path

import streamlit as st

from core.store import DatasetRow, RunRow
from plain_app import state
from plain_app.components.ahead import load_ahead
from plain_app.components.errors import error_guard
from plain_app.components.links import DATA
from plain_app.components.login import known_person, require_login
from plain_app.components.steps import draw_steps
from plain_app.components.tour import draw_tour
from plain_app.launcher import DEMO_NAME
from plain_app.services import runs
from plain_app.services.workspace import list_annotators, list_datasets, list_runs

HERE = Path(__file__).parent
DEMO = (DEMO_NAME, "demo")  # as the app and the command line call it
ICON, LOGO = HERE / "static" / "icon.svg", HERE / "static" / "logo.svg"

STYLE = """<style>
.st-key-frame-steps {border-bottom: 1px solid var(--st-border-color); padding-bottom: .35rem}
.st-key-frame-steps [data-testid="stPageLink"] a {padding: .15rem .5rem}
.figures {display: flex; gap: 1rem; padding: .2rem 0; container-type: inline-size}
.figures div {flex: 1; min-width: 0; display: flex; flex-direction: column; line-height: 1.35}
.figures span {font-size: .8rem; opacity: .7; white-space: nowrap; overflow: hidden;
  text-overflow: ellipsis}
.figures b {font-size: clamp(1.05rem, 2.1cqi, 1.3rem); font-weight: 500; white-space: nowrap;
  font-variant-numeric: tabular-nums}
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
        draw_steps(pages, page.title, *_draw_choices())
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
    with st.sidebar:
        datasets = {row.fingerprint: row for row in list_datasets()}
        _choose_dataset(datasets)
        run = _choose_run()
        names = list_annotators(state.current().fingerprint)
        _choose_annotator(names)
        _offer_tour(datasets.get(state.current().fingerprint or ""))
        load_ahead()
    state.mirror_in_address()
    return run, bool(names)


def _offer_tour(chosen: DatasetRow | None) -> None:
    """Offer the tour; on other data than the demo it opens the demo first."""
    if draw_tour(chosen is not None and chosen.name in DEMO):
        state.remember("data.wants_demo", True)
        st.switch_page(DATA)


def _choose_dataset(rows: dict[str, DatasetRow]) -> None:
    state.restore_choice(state.DATA, list(rows), next(iter(rows), None))
    st.selectbox(
        "Data set",
        list(rows),
        format_func=lambda one: rows[one].name[:60] if one in rows else "",
        key=state.DATA,
        placeholder="none yet",
        disabled=not rows,
    )
    row = rows.get(state.current().fingerprint or "")
    if row is not None:
        sizes = f"{row.n_instances:,} instances · {row.n_labels:,} labels"
        st.caption(f"{sizes} · {row.n_candidates:,} candidates")


def _choose_run() -> RunRow | None:
    known = {run.id: run for run in list_runs(state.current().fingerprint)}
    state.restore_choice(state.RUN, ["", *known], "")
    st.selectbox(
        "Run",
        ["", *known],
        format_func=lambda one: runs.title(known[one])[:60] if one in known else "new run",
        key=state.RUN,
        disabled=state.current().fingerprint is None,
    )
    return known.get(state.current().run_id or "")


def _choose_annotator(names: Sequence[str]) -> None:
    person = known_person()
    if person is not None:
        state.remember(state.ANNOTATOR, person)
        st.text_input("Annotator", person, disabled=True, help="As you are logged in.")
        st.button("Log out", key="frame.logout", on_click=st.logout, type="tertiary")
        return
    state.restore_annotator()
    chosen = state.current()
    own = [chosen.annotator] if chosen.annotator and chosen.annotator not in names else []
    st.selectbox(
        "Annotator",
        [*names, *own],
        index=None,
        key=state.ANNOTATOR,
        placeholder="your name",
        accept_new_options=True,
        help="Who makes the decisions in Review.",
    )


main()
