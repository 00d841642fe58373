"""Links from page to page; the only place that knows where they lead."""

from collections.abc import Callable, Sequence

import streamlit as st

from plain_app.services.review import open_selection

DATA, TRAIN, REVIEW = "views/data.py", "views/train.py", "views/review.py"


def open_in_review(ids: Callable[[], Sequence[str]], key: str) -> None:
    """Draw a button that opens instances in Review; they are asked for when it is pressed."""
    if st.button("Open in Review", key=key, icon=":material/arrow_forward:", type="tertiary"):
        st.switch_page(REVIEW, query_params={"selection": open_selection(ids())})
