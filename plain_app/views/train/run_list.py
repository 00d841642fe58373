"""The runs on a data set: opened, compared, deleted, and brought back."""

from collections.abc import Sequence
from typing import Any

import pandas as pd
import streamlit as st

from core.errors import PlainError
from core.store import RunRow
from plain_app import state
from plain_app.services import runs
from plain_app.services.workspace import list_runs
from plain_app.widgets.clock import local_time
from plain_app.widgets.links import open_comparison
from plain_app.widgets.tables import HEAD, ROW, chosen_rows

LISTED = 8  # runs to be seen without scrolling


def draw_runs(fingerprint: str) -> None:
    """List the runs, and offer what can be done with those whose rows are chosen."""
    rows = list_runs(fingerprint)
    if not rows:
        return
    key = f"train.runs_{rows[0].id}_{len(rows)}"  # another list: no row of it is chosen
    with st.container(horizontal=True, vertical_alignment="center", key="train.runs_bar"):
        st.subheader("Runs on this data", width="content")
        _draw_run_actions([rows[at].id for at in chosen_rows(key) if at < len(rows)])
    with st.container(key="train.runs"):
        st.dataframe(
            pd.DataFrame([_run_row(run) for run in rows]).dropna(axis=1, how="all"),
            hide_index=True,
            row_height=ROW,
            height=HEAD + ROW * min(len(rows), LISTED),
            column_config=RUN_COLUMNS,
            key=key,
            on_select="rerun",
            selection_mode="multi-row",
            placeholder="",
            alt="Runs on this data with their state and results",
        )


def _draw_run_actions(ids: list[str]) -> None:
    """Offer what can be done with the runs whose rows are chosen."""
    if not ids:
        st.caption("Choose rows to open, compare or delete runs.")
        return
    if len(ids) == 1:
        st.button("Open", key="train.open", on_click=on_open, args=(ids[0],))
    elif st.button(f"Compare {len(ids)}", key="train.compare"):
        open_comparison(ids)
    st.button("Delete", key="train.delete_marked", on_click=on_delete, args=(ids,))


OF_EPOCH = "Against the truth, in the last epoch. Compare has it of the confidences at the end."
RUN_COLUMNS: dict[str, Any] = {
    "run": st.column_config.TextColumn(width=180),
    "state": st.column_config.TextColumn(width=75),
    "epochs": st.column_config.NumberColumn(width=60),
    **{
        name: st.column_config.NumberColumn(format=how, width=65, help=about)
        for name, how, about in (
            ("loss", "%.4g", None),
            ("AUC", "%.4f", OF_EPOCH),
            ("F1", "%.4f", OF_EPOCH),
        )
    },
    "created": st.column_config.TextColumn(width=125),
}


def _run_row(run: RunRow) -> dict[str, Any]:
    """Return what the list says of a run; results only of one that has ended."""
    epochs = runs.events(run.id).epochs if run.state.is_ended else []
    scores = (epochs[-1].metrics or {}) if epochs else {}
    return {
        "run": runs.title(run),
        "state": runs.status(run),
        "epochs": run.epoch if run.state.is_ended else run.config.epochs,
        "loss": epochs[-1].loss if epochs and not run.config.computes_at_once else None,
        "AUC": scores.get("auc"),
        "F1": scores.get("f1"),
        "created": local_time(run.created)[:16],
        "note": run.note[:200] or None,
    }


def draw_undo() -> None:
    """Offer to bring back what was just deleted."""
    deleted = state.recall("train.deleted")
    if deleted is None:
        return
    with st.container(horizontal=True, vertical_alignment="center", border=True, key="train.undo"):
        ids, titles = zip(*deleted, strict=True)
        st.text(f"Deleted: {', '.join(titles)}")
        st.button("Undo", key="train.restore", on_click=on_restore, args=(ids,))


def on_open(run_id: str) -> None:
    """Open the run whose row is chosen."""
    state.choose(run_id=run_id)


def on_delete(ids: Sequence[str]) -> None:
    """Hide runs; a bar offers to undo."""
    state.forget("train.deleted")
    deleted = []
    for run_id in ids:
        with refusal_as_toast():
            title = runs.title(runs.get(run_id))
            runs.delete(run_id)
            deleted.append((run_id, title))
    if deleted:
        state.remember("train.deleted", deleted)
    if state.current().run_id in ids:
        state.choose(run_id="")


def on_restore(ids: Sequence[str]) -> None:
    for run_id in ids:
        runs.restore(run_id)
    state.forget("train.deleted")
    state.choose(run_id=ids[0])


class refusal_as_toast:  # noqa: N801 - reads as a statement
    """Show on the page what a callback was refused."""

    def __enter__(self) -> None:
        state.forget("train.refusal")

    def __exit__(self, kind: Any, error: Any, trace: Any) -> bool:
        if isinstance(error, PlainError):
            st.toast(error.title, icon=":material/error:")
            return True
        return False
