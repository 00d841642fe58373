"""Progress while files that another server made come from object storage."""

import streamlit as st

from core.store import RunRow
from plain_app.services import runs


def draw_fetching(fingerprint: str | None, run: RunRow | None) -> None:
    """Fetch what of the chosen data set and run is not here yet, and show how far it is."""
    for owner in runs.files_to_fetch(fingerprint, run) if fingerprint else ():
        what = "data" if owner.startswith("datasets/") else "run"
        _fetch(owner, f"Fetching the files of this {what} from object storage")


def _fetch(owner: str, text: str) -> None:
    bar = st.progress(0.0, text=text)

    def show(done: int, total: int) -> None:
        bar.progress(done / total, text=f"{text}: {done / 1e6:,.0f} of {total / 1e6:,.0f} MB")

    runs.fetch_files(owner, show)
    bar.empty()
