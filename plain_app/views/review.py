"""Review: a person answers few questions, the engine settles many.

The desk (`components.review`) asks and stores by itself; this page chooses what it asks, and draws
beneath it what the answers did. All of it is one fragment, rerun a moment after the last answer.
"""

from typing import Any

import streamlit as st

from core.store import RunRow
from plain_app import state
from plain_app.components.empty import empty_state
from plain_app.components.errors import error_guard
from plain_app.components.links import DATA, TRAIN
from plain_app.components.review import review_desk
from plain_app.components.review_parts import PARTS
from plain_app.components.switch import switch
from plain_app.services import explore, review, tokens
from plain_app.services.workspace import list_annotators

ORDERS = {
    "worth": "What settles most",
    "false_first": "Most likely false",
    "doubtful": "Most doubtful",
    "restless": "Most restless",
    "depends": "Depends on settings",
    "label": "One label at a time",
    "contradictions": "Contradictions",
    "audit": "Random, for the estimates",
}
STATES = {"open": "open", "settled": "settled", "decided": "decided", "unsure": "unsure"}
MODES = {"one": "One instance", "same": "Same question"}
SELECTION, WHY = "review.selection", "review.why"


def draw() -> None:
    """Draw the desk, or say what is missing."""
    chosen = state.current()
    situation, run = explore.situation(chosen.run_id)
    if situation != "ready" or run is None:
        return _draw_nothing(situation, chosen.fingerprint)
    if chosen.annotator is None:
        return _draw_who()
    _take_selection()
    return _draw_review(run, chosen.annotator)


def _draw_nothing(situation: str, fingerprint: str | None) -> None:
    texts = {
        "no run": "A run has to end first: it says which candidates are doubtful.",
        "live": "This run is still at work. Questions come when it has ended.",
        "working": "This run is still at work. Questions come when it has ended.",
        "interrupted": "This run was interrupted. Resume or stop it in Train.",
        "failed": "This run failed. Start another in Train.",
        "empty": "This run was stopped before its first epoch ended.",
    }
    page, link = (TRAIN, "Go to Train") if fingerprint else (DATA, "Go to Data")
    empty_state("Nothing to review yet", texts[situation], page=page, link=link)


def _draw_who() -> None:
    """Ask for a name: every decision says whose it is."""
    with st.container(border=True, key="review.who"):
        st.subheader("Who decides?")
        st.caption("Every decision is stored with the name of the person who made it.")
        st.text_input("Your name", key="review.name", max_chars=80, on_change=on_name, width=320)


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
        claims = tokens.Claims(run.fingerprint, run.id, annotator)
        settings = {
            "token": tokens.issue(claims),
            "scope": repr((claims, sorted(query.items(), key=str))),
            "query": query,
            "blind": bool(state.recall("review.blind")),
        }
        event = review_desk(settings, "review.desk")
        if event.instance is not None:
            state.remember(WHY, (event.instance, event.label))
            state.remember("review.part", "Why")
        _draw_parts(run, annotator)


def _draw_tools(run: RunRow) -> dict[str, Any]:
    """Draw order and filters; return what the desk shall ask."""
    results = explore.explored(run.id)
    with st.container(
        horizontal=True, vertical_alignment="bottom", gap="small", key="review.tools"
    ):
        mode = st.segmented_control(
            "Mode",
            list(MODES),
            format_func=MODES.get,
            default="one",
            required=True,
            key="review.mode",
            bind="query-params",
        )
        order = st.selectbox(
            "Order",
            list(ORDERS),
            format_func=ORDERS.get,
            key="review.order",
            bind="query-params",
            width=210,
            disabled=mode == "same",
        )
        labels = st.multiselect(
            "Labels",
            results.dataset.label_names,
            key="review.labels",
            placeholder="all",
            width=240,
            bind="query-params",
        )
        with st.popover("More", icon=":material/tune:", key="review.more"):
            more = _draw_more(run, results)
        _draw_selection()
    query = {"mode": mode, "order": order, "labels": labels, "selection": state.recall(SELECTION)}
    return {name: value for name, value in (query | more).items() if value}


def _draw_more(run: RunRow, results: explore.Explored) -> dict[str, Any]:
    states = st.pills(
        "State of the cells",
        list(STATES),
        selection_mode="multi",
        key="review.states",
        help="Open ones are asked by default.",
    )
    who = st.selectbox(
        "Decided by",
        list_annotators(run.fingerprint),
        index=None,
        placeholder="anyone",
        key="review.by",
    )
    columns = None
    if len(results.text_columns) > 1:
        columns = st.multiselect(
            "Columns shown",
            results.text_columns,
            default=results.text_columns[:6],
            key="review.columns",
        )
    st.toggle(
        "Blind",
        key="review.blind",
        help="Hides confidences until you have answered, so that they cannot sway you.",
    )
    st.slider(
        "Asked of two people",
        0,
        50,
        round(100 * review.overlap_share()),
        5,
        format="%d %%",
        key="review.overlap",
        on_change=on_overlap,
        help="The share of instances that a second annotator is asked about too, for agreement.",
    )
    return {"states": states, "annotator": who, "columns": columns}


def on_overlap() -> None:
    """Store the share for everyone in this workspace."""
    review.set_overlap(state.recall("review.overlap", 0) / 100)


def _draw_selection() -> None:
    key = state.recall(SELECTION)
    if key:
        count = len(review.selection(key))
        st.button(
            f"{count:,} selected instances",
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
    part = switch("Part", list(PARTS), "review.part")
    with error_guard(f"review.{part}"):
        PARTS[part](run, annotator)


if __name__ == "__main__":
    draw()
