"""Links from page to page; the only place that knows where they lead."""

from collections.abc import Callable, Sequence
from urllib.parse import urlencode

import streamlit as st

from plain_app import state
from plain_app.services.review import open_selection

DATA, TRAIN, REVIEW = "views/data/page.py", "views/train/page.py", "views/review/page.py"
EXPLORE, COMPARE = "views/explore/page.py", "views/compare/page.py"


def open_in_review(
    ids: Callable[[], Sequence[str]], key: str, label: str = "Open in Review"
) -> None:
    """Draw a button that opens instances in Review; they are asked for when it is pressed."""
    if st.button(label, key=key, icon=":material/arrow_forward:", type="tertiary"):
        go_to_review(ids())


def go_to_review(ids: Sequence[str]) -> None:
    """Go to Review with these instances only."""
    st.switch_page(REVIEW, query_params={"selection": open_selection(ids)})


def instance_address(run_id: str, instance: str) -> str:
    """Return the address of one instance of a run in Explore."""
    return "/explore?" + urlencode({"run": run_id, state.INSTANCE: instance})


def run_address(run_id: str) -> str:
    """Return the address of a run in Train."""
    return "/train?" + urlencode({"run": run_id})


def trial_address(study_id: str, number: int) -> str:
    """Return the address that opens a trial of a study as a run."""
    return "/tune?" + urlencode({"tune.part": "Search", "study": study_id, "open": number})


def open_instance(run_id: str, instance: str, cell: tuple[int, int] | None = None) -> None:
    """Go to one instance of a run in Explore; of a cell, row and label, is told why."""
    if cell is not None:
        state.remember(state.EXPLAINED.format(cell[0]), cell[1])
    state.choose(run_id=run_id)
    st.switch_page(EXPLORE, query_params={"run": run_id, state.INSTANCE: instance})


def open_run(run_id: str) -> None:
    """Go to a run in Train."""
    state.choose(run_id=run_id)
    st.switch_page(TRAIN, query_params={"run": run_id})  # without any, bound ones are in the way


def open_comparison(keys: Sequence[str]) -> None:
    """Go to runs and trials side by side."""
    st.switch_page(COMPARE, query_params={"of": ",".join(keys)})
