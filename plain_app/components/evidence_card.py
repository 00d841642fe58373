"""The card that answers "why this confidence?": terms that add up, and the named voters."""

import pandas as pd
import streamlit as st

from plain_app.charts.evidence import EvidencePoints, Vote, evidence_option, signed
from plain_app.services.explore import Explored, evidence

ROW_HEIGHT = 28
_CONTRIBUTION = st.column_config.NumberColumn("adds", format="%+.4f", width=66)
_PREDICTION = st.column_config.NumberColumn("prediction", format="%.2f", width=64)


def evidence_card(results: Explored, row: int, label: int) -> None:
    """Draw the evidence of one cell."""
    is_candidate = bool(results.dataset.candidates[row, label])
    points = evidence(results, row, label)
    st.echarts_chart(
        evidence_option(points),
        height=140,
        key="explore.evidence",
        alt="Own candidate, own prediction, neighbours and related labels add up to the confidence",
    )
    with st.container(key="explore.sum"):
        st.caption(_sum_text(points, is_candidate))
    left, right = st.columns([7, 6], gap="small")
    with left:
        _voters(results, points.voters, label)
    with right:
        _label_votes(results, points.label_votes, row)


def _sum_text(points: EvidencePoints, is_candidate: bool) -> str:
    terms = " ".join(map(signed, points.terms))
    total = f"{points.total:.3f}".replace("-", "−")
    cut = "" if points.total == points.confidence else f", cut to {points.confidence:.0f}"
    outside = "" if is_candidate else " This label was not offered, so its confidence counts as 0."
    return f"{terms} = **{total}**{cut}. Exact, before rounding.{outside}"


def _voters(results: Explored, votes: tuple[Vote, ...], label: int) -> None:
    """Name the instances that contributed most, with what they say of the label."""
    offered = results.dataset.candidates[:, label]
    rows = [vote.at for vote in votes]
    table = {
        "instance": [results.dataset.ids[row] for row in rows],
        "adds": [vote.contribution for vote in votes],
        "offered": [bool(offered[row]) for row in rows],
        "prediction": [float(results.predictions[row, label]) for row in rows],
    }
    if results.picture_column is not None:
        table = {"": [results.picture(row) for row in rows], **table}
    st.caption("Instances that voted")
    _table(pd.DataFrame(table), "explore.voters")


def _label_votes(results: Explored, votes: tuple[Vote, ...], row: int) -> None:
    names, offered = results.dataset.label_names, results.dataset.candidates[row]
    labels = [vote.at for vote in votes]
    table = {
        "label": [names[at] for at in labels],
        "adds": [vote.contribution for vote in votes],
        "offered": [bool(offered[at]) for at in labels],
        "prediction": [float(results.predictions[row, at]) for at in labels],
    }
    st.caption("Labels of this instance that voted")
    _table(pd.DataFrame(table), "explore.label_votes")


def _table(table: pd.DataFrame, key: str) -> None:
    st.dataframe(
        table,
        hide_index=True,
        row_height=ROW_HEIGHT,
        height="content",
        column_config={
            "": st.column_config.ImageColumn("", width=34),
            "instance": st.column_config.TextColumn(width=74),
            "label": st.column_config.TextColumn(width=66),
            "adds": _CONTRIBUTION,
            "offered": st.column_config.CheckboxColumn("offered", width=54),
            "prediction": _PREDICTION,
        },
        key=key,
    )
