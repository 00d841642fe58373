"""Review: a person answers few questions, the engine settles many.

The desk (`widgets.desk`) asks and stores by itself; this page chooses what it asks, and draws
beneath it what the answers did. All of it is one fragment, rerun a moment after the last answer.
"""

from typing import Any

import streamlit as st

from core.store import RunRow
from plain_app import state
from plain_app.components.audit_part import draw_audit, draw_habits
from plain_app.components.choices import Choice, answered, ask, ask_in_address, named
from plain_app.components.empty import draw_lost, empty_state
from plain_app.components.errors import error_guard
from plain_app.components.links import DATA, TRAIN
from plain_app.components.review_parts import PARTS
from plain_app.components.switch import switch
from plain_app.server import tokens
from plain_app.server.access import BROWSER
from plain_app.services import explore, review
from plain_app.services.workspace import list_annotators
from plain_app.widgets.desk import review_desk

ORDERS = {
    "worth": "What settles most",
    "false_first": "Most likely false",
    "doubtful": "Most doubtful",
    "restless": "Most restless",
    "depends": "Depends on settings",
    "disagree": "Where sources disagree",
    "label": "One label at a time",
    "contradictions": "Contradictions",
    "audit": "Random, for the estimates",
    "thirty": "Thirty at random, for an audit",
}
STATES = ("open", "settled", "decided", "unsure")
MODES = [("one", "One instance"), ("same", "Same question")]
MODE = Choice("review.mode", "Mode", MODES, "one", "buttons")
SELECTION, WHY = "review.selection", "review.why"
FILTERS = ("review.states", "review.by", "review.source")  # of those under More


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


def _draw_nothing(situation: str, fingerprint: str | None, run: RunRow | None) -> None:
    if situation == "lost" and run is not None:
        return draw_lost(run.fingerprint, run)
    texts = {
        "no run": "A run has to end first: it says which candidates are doubtful.",
        "live": "This run is still at work. Questions come when it has ended.",
        "working": "This run is still at work. Questions come when it has ended.",
        "interrupted": "This run was interrupted. Resume or stop it in Train.",
        "failed": "This run failed. Start another in Train.",
        "empty": "This run was stopped before its first epoch ended.",
    }
    page, link = (TRAIN, "Go to Train") if fingerprint else (DATA, "Go to Data")
    return empty_state("Nothing to review yet", texts[situation], page=page, link=link)


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
    more = _more(run, results)
    with st.container(
        horizontal=True, vertical_alignment="bottom", gap="small", key="review.tools"
    ):
        answers = ask_in_address(_asked(results), "review.asked") | answered(more)
        with st.popover(
            "More", icon=":material/tune:", key="review.more", on_change="rerun"
        ) as box:
            if box.open:
                _draw_more(more)
        _draw_filters([one for one in more if one.name in FILTERS and answers[one.name]])
        _draw_selection()
    query = {
        "mode": answers["review.mode"],
        "order": answers["review.order"],
        "labels": answers["review.labels"],
        "selection": state.recall(SELECTION),
        "states": answers["review.states"],
        "annotator": answers["review.by"],
        "columns": answers.get("review.columns"),
        "source": answers.get("review.source"),
        "show_random": not answers["review.blind_random"],
    }
    return {name: value for name, value in query.items() if value}


def _asked(results: explore.Explored) -> list[Choice]:
    is_same = answered([MODE])[MODE.name] == "same"
    names = results.dataset.label_names
    orders = [one for one in ORDERS.items() if one[0] != "disagree" or results.dataset.votes]
    return [
        MODE,
        Choice("review.order", "Order", orders, "worth", is_fixed=is_same, width=190),
        Choice(
            "review.labels", "Labels", named(names), [], "several", placeholder="all", width=160
        ),
    ]


def _more(run: RunRow, results: explore.Explored) -> list[Choice]:
    people = [("", "anyone"), *named(list_annotators(run.fingerprint))]
    columns = results.text_columns
    more = [
        Choice(
            "review.states",
            "State of the cells",
            named(STATES),
            [],
            "pills",
            help="Open ones are asked by default.",
        ),
        Choice("review.by", "Decided by", people),
        Choice(
            "review.blind",
            "Blind",
            (),
            False,
            "toggle",
            help="Hides confidences until you have answered, so that they cannot sway you.",
        ),
        Choice(
            "review.blind_random",
            "Random cells blind",
            (),
            True,
            "toggle",
            help="What is drawn at random for the estimates is asked before anything is shown.",
        ),
    ]
    if (votes := results.dataset.votes) is not None:
        offered = [("", "any source"), *named(votes.sources)]
        more.insert(2, Choice("review.source", "Offered by", offered))
    if len(columns) > 1:
        shown = Choice("review.columns", "Columns shown", named(columns), columns[:6], "several")
        more.append(shown)
    return more


def _draw_more(more: list[Choice]) -> None:
    ask(more, "review.filters", side_by_side=False)
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


def on_overlap() -> None:
    """Store the share for everyone in this workspace."""
    review.set_overlap(state.recall("review.overlap", 0) / 100)


def _draw_filters(active: list[Choice]) -> None:
    """Say that something under More leaves cells out, and offer to take it back."""
    if active:
        st.button(
            " and ".join(one.label.lower() for one in active).capitalize(),
            key="review.unfilter",
            icon=":material/close:",
            help="Chosen under More; press to ask about all open cells again",
            on_click=state.forget,
            args=tuple(one.name for one in active),
        )


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
