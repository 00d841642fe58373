"""What can be made of a stored data set: with votes of a table, with false labels added."""

import streamlit as st

from core.data.dataset import CandidateDataset
from plain_app import state
from plain_app.services import data
from plain_app.widgets.errors import error_guard


@st.fragment
def draw_votes_upload(dataset: CandidateDataset) -> None:
    """Offer to add a table of who said what, as a new data set."""
    if dataset.votes is not None:
        return
    key = "data.votes_box"
    with st.expander("Several people or models labelled this?", key=key, on_change="rerun") as box:
        if not box.open:
            return
        st.caption(
            "Add who said what: a CSV with the columns instance, label, source and vote (1 or 0). "
            "Without any 0, whoever is listed for an instance was asked about all its labels."
        )
        upload = st.file_uploader("Table of votes", type=["csv", "parquet"], key="data.votes")
        if upload is not None:
            with error_guard("data.votes"), st.spinner("Counting votes …"):
                state.choose(fingerprint=data.store_votes(dataset, upload), run_id="")
                st.rerun()


@st.fragment
def draw_synthesis(dataset: CandidateDataset) -> None:
    """Offer candidates made from clean labels, to try the program where the truth is known."""
    source = "truth" if dataset.truth is not None else "labels as given"
    title, key = "Make candidates from clean labels", "data.synthesis"
    with st.expander(title, key=key, on_change="rerun") as box:
        if not box.open:
            return
        st.caption(
            f"Takes the {source} as true and adds false labels, as a new data set. "
            "Good for trying the program where the answer is known."
        )
        kinds = {"uniform": "any label", "confusable": "labels that look alike"}
        with st.container(horizontal=True, vertical_alignment="bottom"):
            st.selectbox(
                "False labels",
                list(kinds),
                format_func=kinds.__getitem__,
                key="data.kind",
                width=220,
            )
            most = max(1, dataset.n_labels - 1)
            st.number_input("per instance (r)", 1, most, min(2, most), key="data.r", width=120)
            st.button("Make", key="data.synthesise", on_click=on_synthesise)
        if state.recall("data.synthesising"):
            _synthesise(dataset)


def on_synthesise() -> None:
    state.remember("data.synthesising", True)


def _synthesise(dataset: CandidateDataset) -> None:
    state.forget("data.synthesising")
    kind, r = state.recall("data.kind"), int(state.recall("data.r"))
    with error_guard("data.synthesise"), st.spinner("Adding false labels …"):
        made = data.synthesise(dataset, kind, r)
        fingerprint = data.store(made, f"{kind} r={r} of {dataset.fingerprint[:6]}")
        state.choose(fingerprint=fingerprint, run_id="")
        st.rerun()
