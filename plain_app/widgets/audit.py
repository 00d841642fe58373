"""One minute of auditing, offered where its figures matter; what is known of the level until then.

And what is said to a person whose answers look as if given without looking.
"""

from typing import Any

import streamlit as st

from core.review import Audit, Threshold
from core.store import RunRow
from plain_app import state
from plain_app.services import explore, review, trust
from plain_app.widgets.links import REVIEW

POLL_SECONDS = 2.0
ORDER, AUDIT, USUAL = "review.order", "thirty", "worth"
NO_FILTERS: dict[str, Any] = {
    "review.labels": [],
    "review.states": [],
    "review.by": "",
    "review.source": "",
}


def draw_audit_offer(run: RunRow) -> None:
    """Where a run has ended: offer the audit, or say what it found."""
    if explore.situation(run.id)[0] != "ready":
        return
    if review.is_prepared(run.id):
        draw_audit(run, "train.audit")
    else:
        _await_review(run.id)


@st.fragment(run_every=POLL_SECONDS)
def _await_review(run_id: str) -> None:
    """Say that the audit is on its way, and show it when it is there."""
    if review.is_prepared(run_id):
        st.rerun()
    st.caption("Reading what the run says of every candidate; the audit appears here by itself.")


def draw_audit(run: RunRow, key: str, threshold: Threshold | None = None) -> None:
    """Say what an audit found for what this rule keeps, or offer it and say what is not known."""
    if not review.is_prepared(run.id):  # also what comes after needs it
        with st.spinner("Reading what the run says of every candidate …", show_time=True):
            review.progress(run.id)
    found = trust.audited(run.id, threshold)
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key=key):
        if found.is_done:
            st.badge("audited", icon=":material/verified:", color="green")
        else:
            st.badge(f"audit {found.n_answered} of {found.n_asked}", color="orange")
        known = "" if found.is_done else f" {trust.level_sentence(run.id)}"
        with st.container(width="stretch"):
            st.caption(found.sentence + known)
        if found.n_asked:
            _draw_button(found, key)


def _draw_button(found: Audit, key: str) -> None:
    is_here = key == "review.audit"
    if is_here and state.recall(ORDER) == AUDIT:
        st.button("Back to what settles most", key=f"{key}_back", on_click=on_usual)
    elif found.n_answered < found.n_asked:
        title = "Audit: one minute" if not found.n_answered else "Go on with the audit"
        about = f"{found.n_asked} random candidates, one by one, asked before anything is shown."
        icon = ":material/fact_check:"
        if st.button(title, key=f"{key}_start", icon=icon, help=about, on_click=on_audit):
            if not is_here:
                st.switch_page(REVIEW)


def on_audit() -> None:
    """Ask the thirty random cells, of all instances."""
    state.forget("review.selection")
    state.remember_all({**NO_FILTERS, "review.mode": "one", ORDER: AUDIT})


def on_usual() -> None:
    """Go back to the usual order."""
    state.remember(ORDER, USUAL)


def draw_habits(run: RunRow, annotator: str) -> None:
    """Tell a person whose answers are those at hand more often than these can be right."""
    for one in trust.habits(run.id, annotator)[:1]:
        with st.container(horizontal=True, vertical_alignment="center", key="review.habit"):
            with st.container(width="stretch"):
                st.info(f"{one.sentence} What you answered stands, but settles little else.")
            if one.at_hand in ("proposal", "run") and not state.recall("review.blind"):
                st.button(
                    "Turn blind mode on",
                    key="review.go_blind",
                    icon=":material/visibility_off:",
                    on_click=state.remember,
                    args=("review.blind", True),
                )
