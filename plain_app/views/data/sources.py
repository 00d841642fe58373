"""The sources of a data set: who offers how much, whether they agree, how reliable they are."""

from typing import Any

import pandas as pd
import streamlit as st

from core.data.dataset import CandidateDataset
from plain_app import state
from plain_app.services import sources
from plain_app.widgets.tables import name_column

ROW = 28
_COUNT = st.column_config.NumberColumn(format="localized")
_OVERVIEW: dict[str, Any] = {
    "instances": _COUNT,
    "offers": _COUNT,
    "offers each": st.column_config.NumberColumn(format="%.2f", help="Labels per instance."),
    "confirmed": st.column_config.ProgressColumn(
        format="%.2f",
        min_value=0,
        max_value=1,
        help="Of its offers that others were asked about: the share of them who offered it too.",
    ),
}
_AGREEMENT: dict[str, Any] = {
    "judged by two": _COUNT,
    "differ": _COUNT,
    "agreement": st.column_config.NumberColumn(
        format="%.2f", help="Krippendorff's alpha: 1 all agree, 0 as by chance."
    ),
}


def draw_sources(dataset: CandidateDataset) -> None:
    """Draw what is known of the sources; nothing without votes."""
    if dataset.votes is None:
        return
    st.subheader("Sources")
    left, right = st.columns([4, 3], gap="medium")
    with left:
        st.caption("Who offers how much, and how often others who were asked offer the same")
        _table(sources.overview(dataset), "data.sources", _OVERVIEW)
        _draw_reliability(dataset)
    with right:
        st.caption("Agreement by label, before anybody reviews")
        table = sources.agreement(dataset)
        named = {"label": name_column(table["label"])}
        _table(table, "data.agreement", named | _AGREEMENT)


def _draw_reliability(dataset: CandidateDataset) -> None:
    found, known_by = sources.reliability_of(dataset, state.current().run_id)
    if found is None:
        st.caption("Too few candidates were judged by two sources to tell how reliable they are.")
        return
    st.caption(f"Reliability by {known_by}, with 90% intervals")
    _table(sources.reliability_table(found), "data.reliability", {})


def _table(table: pd.DataFrame, key: str, config: dict[str, Any]) -> None:
    height = min(38 + ROW * max(len(table), 1), 320)
    st.dataframe(
        table,
        hide_index=True,
        row_height=ROW,
        height=height,
        column_config=config,
        key=key,
        alt=f"Table of {', '.join(map(str, table.columns))}",
    )
