"""What lies beneath the review desk: what answers settled, why, and how far one can trust them."""

from collections.abc import Callable

import numpy as np
import pandas as pd
import streamlit as st

from core.store import Decision, RunRow
from plain_app import state
from plain_app.components.cards import Figure, cell_table, figure_row
from plain_app.components.evidence_card import evidence_card
from plain_app.services import explore, review
from plain_app.services.workspace import workspace

MAX_ROWS = 200
_CONFIDENCE = st.column_config.ProgressColumn(format="%.2f", min_value=0, max_value=1, width=110)


def _draw_settled(run: RunRow, annotator: str) -> None:
    """Say what decisions settled, list it, and offer to take this sitting back."""
    now = review.standing(run.id)
    figure_row(
        [
            Figure("decided", f"{now.n_decided:,}", "Candidate cells that people decided"),
            Figure("settled by them", f"{now.n_settled:,}", "Cells nobody has to look at any more"),
            Figure("open", f"{now.n_open:,}", "Cells that are neither decided nor settled"),
            Figure("candidates", f"{now.n_cells:,}"),
        ],
        "review.figures",
    )
    left, right = st.columns([3, 2], gap="medium")
    with left:
        st.caption("Settled without being asked, the largest change first")
        cell_table(
            review.settled_table(run.id, MAX_ROWS),
            "review.settled",
            260,
            before=_CONFIDENCE,
            now=_CONFIDENCE,
        )
    with right:
        _draw_recent(run, annotator)


def _draw_recent(run: RunRow, annotator: str) -> None:
    made = review.recent(run.fingerprint, annotator)
    batches = review.batches(made)
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption("Your last answers")
        if batches:
            st.button(
                f"Undo the last {min(len(batches), 10)} and all they settled",
                key="review.undo_many",
                type="tertiary",
                icon=":material/undo:",
                on_click=on_undo,
                args=(made, 10, annotator),
            )
    table = pd.DataFrame(
        [
            (one.time[11:19], one.instance_id[:60], one.label[:60], one.verdict)
            for one in made[:MAX_ROWS]
        ],
        columns=["time", "instance", "label", "decision"],
    )
    cell_table(table, "review.recent", 260)


def on_undo(made: list[Decision], count: int, annotator: str) -> None:
    """Take back the last so many answers; what they settled is open again by itself."""
    doomed = [one for batch in review.batches(made)[:count] for one in batch]
    workspace().decisions.undo(doomed, annotator)


def _draw_why(run: RunRow, annotator: str) -> None:
    results = explore.explored(run.id)
    instance, label = state.recall("review.why") or (None, None)
    row, column = results.row_of.get(instance), results.label_of.get(label)
    if row is None or column is None:
        st.caption("Press e on a candidate to see why it has its confidence.")
        return
    st.text(f"{instance} · {label}")
    evidence_card(results, row, column)


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
                one.time[:19].replace("T", " "),
                one.annotator,
                one.instance_id[:60],
                one.label[:60],
                one.verdict,
                one.confidence if one.confidence is not None else np.nan,
                "" if one.shown else "blind",
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
            "run",
        ],
    )
    cell_table(table, "review.history", 300, confidence=_CONFIDENCE)


PARTS: dict[str, Callable[[RunRow, str], None]] = {
    "Settled": _draw_settled,
    "Why": _draw_why,
    "History": _draw_history,
}
