"""The frame: navigation, the step line, and the choices that outlive a page."""

from collections.abc import Sequence
from pathlib import Path

import streamlit as st

from core.data.demo import DEMOS
from core.store import DatasetRow, RunRow
from plain_app import state
from plain_app.charts import distinct, short
from plain_app.server import preload
from plain_app.services import runs
from plain_app.services.workspace import (
    Opened,
    keep_opened,
    last_opened,
    list_annotators,
    list_datasets,
    list_runs,
)
from plain_app.widgets.errors import error_guard
from plain_app.widgets.fetching import draw_fetching
from plain_app.widgets.figures import counted, text_caption
from plain_app.widgets.links import DATA
from plain_app.widgets.login import LONGEST as LONGEST_NAME
from plain_app.widgets.login import known_person, require_login
from plain_app.widgets.steps import draw_steps
from plain_app.widgets.tour import draw_tour

HERE = Path(__file__).parent
OPENED = "frame.opened"
DEMO = (DEMOS["demo"].title, "demo")  # as the app and the command line call it
LONGEST = 60  # characters of an option's name
MAX_NAMED = 5
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
[data-testid="stMainBlockContainer"] {padding-left: 2rem; padding-right: 2rem; padding-bottom: 2rem}
.st-key-login {padding-top: 18vh}
.st-key-train-title p, .st-key-data-name p {font-size: 1.2rem; font-weight: 600}
@media (prefers-color-scheme: dark) { /* Streamlit writes white on the light primary colour */
  [data-testid="stBaseButton-primary"], [data-testid="stMultiSelect"] span[title] {color: #161c1d}
}
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
        draw_fetching(state.current().fingerprint, run)
        if run is not None and run.state.is_ended and run.epoch:
            preload.request(run.id)
    with error_guard("page"):
        page.run()
    preload.preload_when_idle()


def _pages() -> dict[str, st.Page]:
    """Return the pages by the title of their step."""
    titles = ("Data", "Train", "Explore", "Review", "Tune", "Compare", "Export")
    return {
        title: st.Page(
            f"views/{title.lower()}/page.py",
            title=title,
            url_path=title.lower(),
            default=title == "Data",
        )
        for title in titles
    }


def _draw_choices() -> tuple[RunRow | None, bool]:
    """Draw data set, run and annotator; they are in the address too.

    Return the run, and whether somebody has decided something about the data.
    """
    state.apply_choices()
    state.restore_annotator(known_person())
    datasets = {row.fingerprint: row for row in list_datasets()}
    opened = Opened() if state.recall(OPENED) else _last_opened()
    state.restore_choice(state.DATA, list(datasets), opened.fingerprint)
    runs_here = {run.id: run for run in list_runs(state.current().fingerprint)}
    state.restore_run(list(runs_here), opened.run_id)
    names = list_annotators(state.current().fingerprint)
    with st.sidebar:
        _draw_data(datasets)
        _draw_run(runs_here)
        _draw_annotator(names)
        if known_person() is not None:
            st.button("Log out", key="frame.logout", on_click=st.logout, type="tertiary")
        _offer_tour(datasets.get(state.current().fingerprint or ""))
    state.mirror_in_address()
    _keep_opened()
    return runs_here.get(state.current().run_id or ""), bool(names)


def _last_opened() -> Opened:
    """Return what to open in a new session: the run of the address, or what was open last."""
    return last_opened(state.current().annotator, st.query_params.get("run"))


def _keep_opened() -> None:
    """Have what is open opened again when this person comes without an address."""
    chosen = state.current()
    if chosen.fingerprint is not None and chosen != state.recall(OPENED):
        state.remember(OPENED, chosen)
        keep_opened(chosen.annotator, Opened(chosen.fingerprint, chosen.run_id))


def _offer_tour(chosen: DatasetRow | None) -> None:
    """Offer the tour; on other data than the demo it opens the demo first."""
    if draw_tour(chosen is not None and chosen.name in DEMO):
        state.remember("data.wants_demo", "demo")
        st.switch_page(DATA)


def _draw_data(rows: dict[str, DatasetRow]) -> None:
    names = distinct([row.name for row in rows.values()], LONGEST)
    titles = dict(zip(rows, names, strict=True))
    st.selectbox(
        "Data set",
        list(rows),
        format_func=titles.__getitem__,
        key=state.DATA,
        placeholder="none yet",
        disabled=not rows,
        on_change=state.forget_run,
    )
    row = rows.get(state.current().fingerprint or "")
    if row is not None:
        sizes = {
            "instance": row.n_instances,
            "label": row.n_labels,
            "candidate": row.n_candidates,
        }
        st.caption(" · ".join(counted(count, what) for what, count in sizes.items()))


def _draw_run(known: dict[str, RunRow]) -> None:
    titles = {"": "new run"} | {run.id: short(runs.title(run), LONGEST) for run in known.values()}
    st.selectbox(
        "Run",
        list(titles),
        format_func=titles.__getitem__,
        key=state.RUN,
        disabled=state.current().fingerprint is None,
    )


def _draw_annotator(names: Sequence[str]) -> None:
    is_known = known_person() is not None
    st.text_input(
        "Annotator",
        key=state.ANNOTATOR,
        max_chars=LONGEST_NAME,
        placeholder="your name",
        help="As logged in." if is_known else "Who makes the decisions in Review.",
        disabled=is_known,
    )
    if others := [name for name in names if name != state.current().annotator][:MAX_NAMED]:
        text_caption(f"Decided here: {', '.join(others)}")


main()
