"""Review: a person answers few questions, the engine settles many.

The desk (`widgets.desk`) asks and stores by itself; this page chooses what it asks, and draws
beneath it what the answers did. All of it is one fragment, rerun a moment after the last answer.
"""

from collections.abc import Callable
from typing import Any

import streamlit as st

from core.store import RunRow
from plain_app import state
from plain_app.server import tokens
from plain_app.server.access import BROWSER
from plain_app.services import explore, review
from plain_app.services.explore import Situation
from plain_app.services.workspace import list_annotators
from plain_app.views.review.parts import PARTS
from plain_app.widgets.audit import NO_FILTERS, ORDER, draw_audit, draw_habits
from plain_app.widgets.desk import review_desk
from plain_app.widgets.empty import NO_RESULTS, draw_lost, empty_state
from plain_app.widgets.errors import error_guard
from plain_app.widgets.figures import counted
from plain_app.widgets.following import follow_run
from plain_app.widgets.links import DATA, TRAIN
from plain_app.widgets.tabs import tab_bar

ORDERS = {
    "worth": "What settles most",
    "false_first": "Most likely false",
    "doubtful": "Most doubtful",
    "unstable": "Most unstable",
    "depends": "Depends on settings",
    "disagree": "Where sources disagree",
    "label": "One label at a time",
    "contradictions": "Contradictions",
    "audit": "Random, for the estimates",
    "thirty": "Audit: thirty at random",
}
STATES = ("open", "settled", "decided", "unsure")
MODES = {"one": "One instance", "same": "Same question"}
SELECTION, WHY = "review.selection", "review.why"
IN_MORE = {"review.states": "State", "review.by": "Decided by", "review.source": "Offered by"}
MAX_NAME = 60  # characters of an option
MAX_COLUMNS = 6  # of the data, shown with an instance until others are chosen


def draw() -> None:
    """Draw the desk, or say what is missing."""
    chosen = state.current()
    situation, run = explore.situation(chosen.run_id)
    if situation != "ready" or run is None:
        return _draw_nothing(situation, chosen.fingerprint, run)
    if chosen.annotator is None:
        return _draw_who()
    _take_selection()
    return _draw_review(run, chosen.annotator)


def _draw_nothing(situation: Situation, fingerprint: str | None, run: RunRow | None) -> None:
    if situation == "lost" and run is not None:
        return draw_lost(run.fingerprint, run)
    texts = {
        "no run": "Choose a run at the left, or train one: it says which candidates are doubtful.",
        "live": "This run has not ended. Questions come when it has.",
        "working": "This run has not ended. Questions come when it has.",
        **NO_RESULTS,
    }
    page, link = (TRAIN, "Go to Train") if fingerprint else (DATA, "Go to Data")
    empty_state("Nothing to review yet", texts[situation], page=page, link=link)
    return follow_run(run, situation)


def _draw_who() -> None:
    """Ask for a name: every decision says whose it is."""
    with st.container(border=True, key="review.who"):
        st.subheader("Who decides?")
        st.caption("Every decision is stored with the name of the person who made it.")
        with st.container(horizontal=True, vertical_alignment="bottom"):
            st.text_input(
                "Your name", key="review.name", max_chars=80, on_change=on_name, width=320
            )
            st.button("Begin", key="review.begin", type="primary", on_click=on_name)


def on_name() -> None:
    """Take the name over as annotator."""
    name = str(state.recall("review.name") or "").strip()
    if name:
        state.choose(annotator=name)


def _take_selection() -> None:
    """Remember the selection another page linked with; the address keeps it for a reload."""
    if key := st.query_params.get("selection"):
        state.remember(SELECTION, key)
    elif state.recall(SELECTION):
        st.query_params["selection"] = state.recall(SELECTION)


@st.fragment
def _draw_review(run: RunRow, annotator: str) -> None:
    with error_guard("review"):
        query = _draw_tools(run)
        draw_audit(run, "review.audit")
        claims = tokens.Claims(run.fingerprint, run.id, annotator)
        settings = {
            "token": tokens.issue(claims, str(st.context.cookies.get(BROWSER, ""))),
            "scope": repr((claims, sorted(query.items(), key=str))),
            "query": query,
            "blind": bool(state.recall("review.blind")),
        }
        event = review_desk(settings, "review.desk")
        if event.instance is not None:
            state.remember(WHY, (event.instance, event.label))
            state.remember("review.part", "Why")
        draw_habits(run, annotator)
        _draw_parts(run, annotator)


def _draw_tools(run: RunRow) -> dict[str, Any]:
    """Draw order and filters; return what the desk shall ask."""
    results = explore.explored(run.id)
    votes = results.dataset.votes
    orders = [one for one in ORDERS if one != "disagree" or votes]
    with st.container(
        horizontal=True, vertical_alignment="bottom", gap="small", key="review.tools"
    ):
        mode = st.segmented_control(
            "Mode",
            list(MODES),
            format_func=MODES.__getitem__,
            default="one",
            required=True,
            key="review.mode",
            label_visibility="collapsed",
            bind="query-params",
        )
        order = st.selectbox(
            "Order",
            orders,
            format_func=ORDERS.__getitem__,
            key=ORDER,
            disabled=mode == "same",
            width=190,
            bind="query-params",
        )
        labels = st.multiselect(
            "Labels",
            results.dataset.label_names,
            key="review.labels",
            placeholder="all",
            width=150,
            bind="query-params",
        )
        with st.popover("More", icon=":material/tune:", key="review.more"):
            _draw_more(run, results)
        filters = _filters(run, results)
        _draw_unfilter([name for name in IN_MORE if filters[name]])
        _draw_selection()
    return _query(mode, order, labels, filters)


def _query(
    mode: str | None, order: str, labels: list[str], filters: dict[str, Any]
) -> dict[str, Any]:
    """Return what the desk shall ask, in the words of its route."""
    query = {
        "mode": mode,
        "order": order,
        "labels": labels,
        "selection": state.recall(SELECTION),
        "states": filters["review.states"],
        "annotator": filters["review.by"],
        "columns": state.recall("review.columns"),
        "source": filters["review.source"],
        "show_random": not state.recall("review.blind_random", True),
    }
    return {name: value for name, value in query.items() if value}


def _draw_more(run: RunRow, results: explore.Explored) -> None:
    """Draw the filters and habits of the desk that are rarely changed."""
    kept: dict[str, Any] = {"persist_state": "session"}
    st.pills(
        "State of the cells",
        STATES,
        selection_mode="multi",
        key="review.states",
        help="Open ones are asked by default.",
        **kept,
    )
    people = ["", *list_annotators(run.fingerprint)]
    st.selectbox("Decided by", people, format_func=_or("anyone"), key="review.by", **kept)
    if (votes := results.dataset.votes) is not None:
        sources = ["", *votes.sources]
        named = _or("any source")
        st.selectbox("Offered by", sources, format_func=named, key="review.source", **kept)
    st.toggle(
        "Blind",
        key="review.blind",
        help="Hides confidences until you have answered, so that they cannot sway you.",
        **kept,
    )
    st.toggle(
        "Random cells blind",
        True,
        key="review.blind_random",
        help="What is drawn at random for the estimates is asked before anything is shown.",
        **kept,
    )
    columns = results.text_columns
    if len(columns) > 1:
        shown = columns[:MAX_COLUMNS]
        st.multiselect("Columns shown", columns, shown, key="review.columns", **kept)
    st.slider(
        "Asked of two people",
        0,
        50,
        round(100 * review.overlap_share()),
        5,
        format="%d%%",
        key="review.overlap",
        on_change=on_overlap,
        help="The share of instances that a second annotator is asked about too, for agreement.",
    )


def _or(none: str) -> Callable[[str], str]:
    """Return how an option is called, if one of them is to leave it open."""
    return lambda option: option[:MAX_NAME] or none


def _filters(run: RunRow, results: explore.Explored) -> dict[str, Any]:
    """Return what is chosen under More, as far as this run knows it."""
    votes = results.dataset.votes
    known = {
        "review.states": STATES,
        "review.by": list_annotators(run.fingerprint),
        "review.source": votes.sources if votes else (),
    }
    chosen = {name: state.recall(name, NO_FILTERS[name]) for name in known}
    states = [one for one in chosen.pop("review.states") if one in STATES]
    return {name: one if one in known[name] else "" for name, one in chosen.items()} | {
        "review.states": states
    }


def on_overlap() -> None:
    """Store the share for everyone in this workspace."""
    review.set_overlap(state.recall("review.overlap", 0) / 100)


def _draw_unfilter(active: list[str]) -> None:
    """Say that something under More leaves cells out, and offer to take it back."""
    if active:
        st.button(
            " and ".join(IN_MORE[name].lower() for name in active).capitalize(),
            key="review.unfilter",
            icon=":material/close:",
            help="Chosen under More; press to ask about all open cells again",
            on_click=state.remember_all,
            args=({name: NO_FILTERS[name] for name in active},),
        )


def _draw_selection() -> None:
    key = state.recall(SELECTION)
    if key:
        count = len(review.selection(key))
        st.button(
            counted(count, "selected instance"),
            key="review.unselect",
            icon=":material/close:",
            help="Ask about all instances again",
            on_click=on_unselect,
        )


def on_unselect() -> None:
    """Forget the selection."""
    state.forget(SELECTION)
    if "selection" in st.query_params:
        del st.query_params["selection"]


def _draw_parts(run: RunRow, annotator: str) -> None:
    """Draw one of the parts beneath the desk."""
    part = tab_bar("Part", list(PARTS), "review.part")
    with error_guard(f"review.{part}"):
        PARTS[part](run, annotator)


if __name__ == "__main__":
    draw()
