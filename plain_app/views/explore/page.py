"""Explore: the map of instances, one of them and its evidence, labels, and what was not offered."""

import streamlit as st

from core.store import RunRow
from plain_app import state
from plain_app.services import explore
from plain_app.services.explore import Situation
from plain_app.views.explore.labels import draw_labels
from plain_app.views.explore.map import draw_map
from plain_app.views.explore.outside import draw_outside
from plain_app.widgets.empty import draw_lost, empty_state
from plain_app.widgets.following import TICK_SECONDS, follow_run
from plain_app.widgets.links import DATA, TRAIN
from plain_app.widgets.tabs import tab_bar

PARTS = {"Map": draw_map, "Labels": draw_labels, "Outside the candidates": draw_outside}


def draw() -> None:
    """Draw a run, live while it is at work; or say why there is nothing to explore."""
    situation, run = explore.situation(state.current().run_id)
    if run is None or situation not in ("live", "ready"):
        _draw_nothing(situation, run)
    else:
        part = tab_bar("Part", list(PARTS), "explore.part")
        every = TICK_SECONDS if situation == "live" else None
        st.fragment(PARTS[part], run_every=every)(run.id)
    follow_run(run, situation)


def _draw_nothing(situation: Situation, run: RunRow | None) -> None:
    """Say what is missing, and the next step."""
    if situation == "lost" and run is not None:
        return draw_lost(run.fingerprint, run)
    has_data = state.current().fingerprint is not None
    texts = {
        "no run": ("Nothing to explore yet", "Choose a run at the left, or train one."),
        "working": ("This run has no results yet", "Its first results appear here by themselves."),
        "interrupted": ("This run was interrupted", "Resume or stop it in Train."),
        "failed": ("This run failed", "Start another in Train; what went wrong:"),
        "empty": ("This run has no results", "It was stopped before its first epoch ended."),
    }
    page, link = (TRAIN, "Go to Train") if has_data else (DATA, "Go to Data")
    return empty_state(*texts[situation], page=page, link=link, found=(run and run.error) or "")


if __name__ == "__main__":
    draw()
