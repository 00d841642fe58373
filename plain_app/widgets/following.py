"""On pages that need the results of a run at work: how far it is, and the page once it has them."""

import streamlit as st

from core.store import RunRow, RunState
from plain_app.services import explore
from plain_app.services.explore import Situation

TICK_SECONDS = 2.0


def follow_run(run: RunRow | None, situation: Situation) -> None:
    """Say how far a run at work is, and draw the page again when its situation changes."""
    if run is not None and situation in ("working", "live"):
        st.fragment(_follow, run_every=TICK_SECONDS)(run.id, situation)


def _follow(run_id: str, before: Situation) -> None:
    situation, run = explore.situation(run_id)
    if situation != before or run is None:
        st.rerun()
    at_work = f"At work: epoch {run.epoch:,} of {run.config.epochs:,}"
    now = "Waiting for its turn" if run.state is RunState.QUEUED else at_work
    st.caption(f"{now}. This page follows it.")
