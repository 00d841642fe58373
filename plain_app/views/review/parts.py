"""Beneath the review desk: what answers settled, why, what labels are called, every decision."""

from collections.abc import Callable

import numpy as np
import pandas as pd
import streamlit as st

from core.errors import PlainError
from core.review.session import batches
from core.store import Decision, RunRow
from plain_app import state
from plain_app.services import explore, review, trust
from plain_app.services.workspace import workspace
from plain_app.views.review.trust import (
    draw_agreement,
    draw_contradictions,
    draw_finish,
    draw_retrain,
)
from plain_app.widgets.clock import local_time
from plain_app.widgets.errors import show_error
from plain_app.widgets.evidence import draw_evidence
from plain_app.widgets.figures import Figure, counted, duration, figure_row
from plain_app.widgets.tables import cell_table

MAX_ROWS = 200


def _draw_settled(run: RunRow, annotator: str) -> None:
    """Say what decisions settled, list it, and offer to take this sitting back."""
    now = review.progress(run.id)
    figure_row(
        [
            Figure("decided", f"{now.n_decided:,}", "Candidate cells that people decided"),
            Figure("settled by them", f"{now.n_settled:,}", "Cells nobody has to look at any more"),
            Figure("open", f"{now.n_open:,}", "Cells that are neither decided nor settled"),
            Figure("candidates", f"{now.n_cells:,}"),
        ],
        "review.figures",
    )
    made = review.recent(run.fingerprint, annotator)
    left, right = st.columns([3, 2], gap="medium", vertical_alignment="center")
    left.caption("Settled without being asked, the largest change first")
    with right:
        _draw_undo(made, annotator)
    left, right = st.columns([3, 2], gap="medium")
    with left:
        table = review.settled_table(run.id, MAX_ROWS)
        cell_table(table, "review.settled", 260, {"before": "bar", "now": "bar"})
    with right:
        _draw_recent(made)


def _draw_undo(made: list[Decision], annotator: str) -> None:
    answers = batches(made)
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption("Your last answers")
        if answers:
            st.button(
                f"Undo the last {counted(min(len(answers), 10), 'answer')}, settled cells too",
                key="review.undo_many",
                type="tertiary",
                icon=":material/undo:",
                on_click=on_undo,
                args=(made, 10, annotator),
            )


def _draw_recent(made: list[Decision]) -> None:
    table = pd.DataFrame(
        [
            (local_time(one.time)[11:], one.instance_id[:60], one.label[:60], one.verdict)
            for one in made[:MAX_ROWS]
        ],
        columns=["time", "instance", "label", "decision"],
    )
    cell_table(table, "review.recent", 260)


def on_undo(made: list[Decision], count: int, annotator: str) -> None:
    """Take back the last so many answers; what they settled is open again by itself."""
    undone = [one for batch in batches(made)[:count] for one in batch]
    workspace().decisions.undo(undone, annotator)


def _draw_why(run: RunRow, annotator: str) -> None:
    results = explore.explored(run.id)
    instance, label = state.recall("review.why") or ("", "")
    row, column = results.row_of.get(instance), results.label_of.get(label)
    if row is None or column is None:
        st.caption("Press e on a candidate to see why it has its confidence.")
        return
    st.text(f"{instance} · {label}")
    draw_evidence(results, row, column, "review.evidence")


def _draw_history(run: RunRow, annotator: str) -> None:
    """List every row ever stored on one instance, undone ones too."""
    instance, _ = state.recall("review.why") or ("", "")
    wanted = st.text_input(
        "Instance", value=instance, key="review.history_of", placeholder="all", max_chars=500
    ).strip()
    rows = workspace().decisions.history(run.fingerprint, wanted or None)[::-1][:MAX_ROWS]
    table = pd.DataFrame(
        [
            (
                local_time(one.time),
                one.annotator,
                one.instance_id[:60],
                one.label[:60],
                one.verdict,
                one.confidence if one.confidence is not None else np.nan,
                "" if one.shown else "blind",
                _late(one),
                one.run_id or "",
            )
            for one in rows
        ],
        columns=[
            "time",
            "annotator",
            "instance",
            "label",
            "decision",
            "confidence",
            "shown",
            "arrived",
            "run",
        ],
    )
    cell_table(table, "review.history", 300, {"confidence": "bar"})


def _late(one: Decision) -> str:
    """Say how long after it was made a decision of an offline desk arrived."""
    return f"{duration(one.late.total_seconds())} late" if one.late else ""


def _draw_labels(run: RunRow, annotator: str) -> None:
    """Rename and merge labels; the data keeps its names, screens and exports get these."""
    names, called = trust.label_names(run.id)
    left, right = st.columns(2, gap="medium")
    with left:
        with st.container(horizontal=True, vertical_alignment="bottom"):
            label = st.selectbox("Label", names, key="review.label", width=180)
            name = st.text_input("New name", key="review.label_name", max_chars=200, width=180)
            st.button(
                "Rename",
                key="review.rename",
                disabled=not name,
                on_click=on_label,
                args=(run.fingerprint, "rename", names, label, name, annotator),
            )
        with st.container(horizontal=True, vertical_alignment="bottom"):
            others = sorted({now for old, now in zip(names, called, strict=True) if old != label})
            into = st.selectbox("Merge into", others, key="review.into", width=180)
            st.button(
                "Merge",
                key="review.merge",
                disabled=into is None,
                on_click=on_label,
                args=(run.fingerprint, "merge", names, label, into, annotator),
            )
            st.button(
                "Undo the last change",
                disabled=not trust.label_changes(run.fingerprint),
                key="review.label_undo",
                type="tertiary",
                icon=":material/undo:",
                on_click=on_label_undo,
                args=(run.fingerprint, annotator),
            )
        if refusal := state.recall("review.label_refusal"):
            show_error(PlainError(*refusal), "review.label")
    with right:
        _draw_label_changes(run.fingerprint)


def _draw_label_changes(fingerprint: str) -> None:
    changes = trust.label_changes(fingerprint)
    table = pd.DataFrame(
        [
            (
                local_time(one.time),
                one.annotator,
                one.kind,
                one.label[:60],
                one.name[:60],
            )
            for one in changes
        ],
        columns=["time", "annotator", "change", "label", "called"],
    )
    cell_table(table, "review.label_changes", 200)


def on_label(
    fingerprint: str, kind: str, names: list[str], label: str, name: str, annotator: str
) -> None:
    """Rename or merge, or say why not."""
    state.forget("review.label_refusal")
    change = getattr(workspace().labels, kind)
    try:
        change(fingerprint, names, label, name, annotator)
    except PlainError as error:
        state.remember("review.label_refusal", (error.title, error.detail, error.hint))


def on_label_undo(fingerprint: str, annotator: str) -> None:
    """Take the newest change of a name back."""
    state.forget("review.label_refusal")
    workspace().labels.undo(fingerprint, annotator)


PARTS: dict[str, Callable[[RunRow, str], None]] = {
    "Settled": _draw_settled,
    "Why": _draw_why,
    "Finish": draw_finish,
    "Retrain": draw_retrain,
    "Agreement": draw_agreement,
    "Contradictions": draw_contradictions,
    "Labels": _draw_labels,
    "History": _draw_history,
}
