"""The step line: the way from a file to clean labels, where you are, and what is missing."""

from collections.abc import Mapping
from typing import NamedTuple

import streamlit as st

from core.store import RunRow, RunState
from plain_app import state


class Step(NamedTuple):
    """One step of the way."""

    title: str
    needs: str  # what must be there first
    is_open: bool
    is_done: bool


def draw_steps(
    pages: Mapping[str, st.Page], here: str, run: RunRow | None, is_reviewed: bool
) -> None:
    """Draw the way through the program: where you are, what is done, what is missing.

    The links carry the choices: an address that is right at once need not be changed afterwards.
    """
    chosen = state.address()
    fingerprint, last = state.recall(state.LAST_INSTANCE) or (None, "")
    instance = {state.INSTANCE: last} if last and fingerprint == state.current().fingerprint else {}
    with st.container(horizontal=True, gap="small", key="frame.steps"):
        for step in _steps(run, is_reviewed):
            icon = ":material/check_circle:" if step.is_done else ":material/circle:"
            text = None if step.is_open else f"First: {step.needs}"
            label = f"**{step.title}**" if step.title == here else step.title
            page = pages[step.title]
            asked = chosen | instance if step.title == "Explore" else chosen
            st.page_link(page, label=label, icon=icon, help=text, query_params=asked)


def _steps(run: RunRow | None, is_reviewed: bool) -> list[Step]:
    has_data = state.current().fingerprint is not None
    ended = (RunState.FINISHED, RunState.STOPPED)
    has_run = run is not None and run.epoch > 0
    is_trained = run is not None and has_run and run.state in ended
    return [
        Step("Data", "", True, has_data),
        Step("Train", "load data", has_data, is_trained),
        Step("Explore", "choose a run", has_run, False),
        Step("Review", "train", is_trained, is_reviewed),
        Step("Tune", "load data", has_data, False),
        Step("Compare", "train twice", has_data, False),
        Step("Export", "train", is_trained, False),
    ]
