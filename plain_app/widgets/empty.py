"""Empty states: say what is missing and give the next step."""

import streamlit as st

from core.store import RunRow
from plain_app.services import runs
from plain_app.widgets.links import DATA, TRAIN

NO_RESULTS = {
    "interrupted": "This run was interrupted. Resume or stop it in Train.",
    "failed": "This run failed. Start another in Train.",
    "empty": "This run was stopped before its first epoch ended.",
}
"""Why a run without results has none, by its situation (`services.explore.situation`)."""


def empty_state(
    title: str, text: str, *, page: str | None = None, link: str = "", found: str = ""
) -> None:
    """Say why there is nothing here, and link to the page that changes it.

    Texts are ours, but `found` may hold data.
    """
    with st.container(border=True, key="empty"):
        st.subheader(title)
        st.caption(text)
        if found:
            st.text(found[:2000])
        if page is not None:
            st.page_link(page, label=link, icon=":material/arrow_forward:")


def draw_lost(fingerprint: str, run: RunRow | None = None) -> None:
    """Say that files of a data set or a run are gone, what still works, and where to go on."""
    lost = data = runs.lost_data(fingerprint)
    if run is not None:
        lost = runs.lost_files(run)
    page, link = (TRAIN, "Go to Train") if data is None else (DATA, "Go to Data")
    if lost is not None:
        empty_state(lost.title, lost.hint, page=page, link=link, found=lost.detail)
