"""One instance: what it is, its candidates, why a confidence is what it is, and its neighbours."""

import base64
import io
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from plain_app import state
from plain_app.charts import ego
from plain_app.components.evidence_card import evidence_card
from plain_app.components.scatter import mark
from plain_app.services import explore
from plain_app.services.explore import Explored

ROW_HEIGHT, PICTURE_ROW = 28, 44
INSTANCE, LAST = state.INSTANCE, "explore.last"


def instance_rows(
    results: Explored, rows: Sequence[int] | Any, key: str, epoch: int | None = None
) -> None:
    """Draw instances as a table; a chosen row opens its instance."""
    shown = rows[: explore.MAX_LISTED]
    table = explore.instance_table(results, shown, epoch)
    ids = table["instance"].tolist()
    tall = ROW_HEIGHT if results.picture_column is None else PICTURE_ROW
    st.dataframe(
        table,
        hide_index=True,
        height=min(36 + tall * max(len(table), 1), 320),
        row_height=tall,
        column_config=_INSTANCE_COLUMNS,
        key=key,
        on_select=lambda: on_row(key, ids),
        selection_mode="single-row",
    )


_INSTANCE_COLUMNS = {
    "picture": st.column_config.ImageColumn("", width=52),
    "instance": st.column_config.TextColumn("instance", width="small"),
    "doubtful": st.column_config.NumberColumn(
        "doubtful", help="Candidates with a confidence below 0.5", width=76
    ),
    "least": st.column_config.ProgressColumn(
        "least confidence", format="%.2f", min_value=0, max_value=1, width=120
    ),
    "candidates": st.column_config.ListColumn("candidates"),
}


@st.fragment
def draw_instance(run_id: str) -> None:
    """Draw one instance: what it is, its candidates, why, and its neighbours."""
    results = explore.explored(run_id)
    row = _choose_instance(results)
    if row is None:
        return
    of_run, lasso = state.recall("explore.lasso") or (None, None)
    mark(row, lasso.corners if of_run == run_id else (), "explore.marks")
    _what(results, row)
    label = _choose_cell(results, row)
    why, near = st.tabs(
        ["Why this confidence", "Neighbours"], key="explore.tabs", on_change="rerun"
    )
    if why.open:
        with why:
            evidence_card(results, row, label)
    if near.open:
        with near:
            _neighbours(results, row, label)


def _choose_instance(results: Explored) -> int | None:
    ids = results.dataset.ids
    if state.recall(INSTANCE) is None and INSTANCE not in st.query_params and state.recall(LAST):
        state.remember(INSTANCE, state.recall(LAST))  # another part of the view was open meanwhile
    with st.container(horizontal=True, gap="small", vertical_alignment="bottom"):
        chosen = st.text_input(
            "Instance", key=INSTANCE, placeholder=ids[0], bind="query-params", max_chars=500
        )
        row = results.row_of.get(chosen.strip()) if chosen else 0
        for name, step in (("Previous", -1), ("Next", 1)):
            key = f"explore.{name.lower()}"
            st.button(name, key=key, on_click=on_step, args=(ids, row, step))
    if row is None:
        st.warning(f"There is no instance with this id. The first is called: {_plain(ids[0])}")
    state.remember(LAST, chosen)
    return row


def _what(results: Explored, row: int) -> None:
    """Draw the picture or text, and the candidates with their confidences."""
    picture = results.picture(row)
    left, right = st.columns([2, 7], gap="small") if picture else (None, st.container())
    if left is not None:
        left.image(_enlarged(picture), width="stretch")
    with right:
        if results.text_columns:
            st.text(explore.instance_text(results, row))
        _candidates(results, row)


def _candidates(results: Explored, row: int) -> None:
    part = slice(results.starts[row], results.starts[row + 1])
    labels_here = results.cells[1][part]
    if not len(labels_here):
        st.caption("Nothing was offered for this instance.")
        return
    verdicts = explore.verdicts_on(results, row)
    names = [results.dataset.label_names[at] for at in labels_here]
    table = pd.DataFrame(
        {
            "candidate": names,
            "confidence": results.confidences[row, labels_here].astype(float),
            "epochs": np.asarray(results.history[:, part], np.float32).T.tolist(),
            "decision": [verdicts.get(name, "") for name in names],
        }
    ).sort_values("confidence", ascending=False)
    st.dataframe(
        table,
        hide_index=True,
        row_height=ROW_HEIGHT,
        height="content" if len(table) <= 8 else 260,
        column_config=_CANDIDATE_COLUMNS,
        key="explore.candidates",
    )


_CANDIDATE_COLUMNS = {
    "candidate": st.column_config.TextColumn("candidate", width="small"),
    "confidence": st.column_config.ProgressColumn(
        "confidence", format="%.2f", min_value=0, max_value=1
    ),
    "epochs": st.column_config.LineChartColumn("over epochs", y_min=0, y_max=1, width="small"),
    "decision": st.column_config.TextColumn("decision", width="small"),
}


def _choose_cell(results: Explored, row: int) -> int:
    """Let choose a label of the instance: candidates first, the most doubtful first."""
    offered = results.dataset.candidates[row]
    keys = np.where(offered > 0, results.confidences[row], 2 - results.predictions[row])
    order = [int(at) for at in np.argsort(keys, kind="stable")]
    names = results.dataset.label_names
    chosen = st.selectbox(
        "Label to explain",
        order,
        format_func=lambda at: names[at] if offered[at] else f"{names[at]} (not offered)",
        key=f"explore.cell.{row}",
    )
    return order[0] if chosen is None else chosen


def _neighbours(results: Explored, row: int, label: int) -> None:
    """Draw the neighbours as a small network coloured by the label, and as a table."""
    confidence = np.where(
        results.dataset.candidates[:, label] > 0, results.confidences[:, label], np.nan
    )
    points = ego.ego_points(results.instance_graph.affinity, row, confidence, results.dataset.ids)
    if len(points.rows) == 1:
        st.caption("This instance has no neighbours in the graph.")
        return
    st.echarts_chart(
        ego.ego_option(points), height=230, key="explore.ego", alt="The instance and its neighbours"
    )
    st.caption(
        "Near is strong. Teal: the label is likely there; orange: doubtful; grey: not offered."
    )
    table = explore.instance_table(results, points.rows[1:])
    table.insert(int("picture" in table) + 1, "edge", list(points.weights[1:]))
    values = [np.nan if value is None else value for value in points.values[1:]]
    table.insert(int("picture" in table) + 2, "confidence", values)
    _neighbour_table(table.drop(columns=["doubtful", "least"]), results)


def _neighbour_table(table: pd.DataFrame, results: Explored) -> None:
    ids = table["instance"].tolist()
    tall = ROW_HEIGHT if results.picture_column is None else PICTURE_ROW
    columns = {
        **_INSTANCE_COLUMNS,
        "edge": st.column_config.NumberColumn("edge weight", format="%.3f", width="small"),
        "confidence": st.column_config.ProgressColumn(
            "confidence", format="%.2f", min_value=0, max_value=1, width="small"
        ),
    }
    st.dataframe(
        table,
        hide_index=True,
        row_height=tall,
        height=min(36 + tall * len(table), 330),
        column_config=columns,
        key="explore.neighbours",
        on_select=lambda: on_row("explore.neighbours", ids),
        selection_mode="single-row",
    )


def on_step(ids: Sequence[str], row: int | None, step: int) -> None:
    """Go to the next or previous instance; from nowhere, to the first."""
    state.remember(INSTANCE, ids[0] if row is None else ids[(row + step) % len(ids)])


def on_row(key: str, ids: Sequence[str]) -> None:
    """Open the instance of the row that was chosen in a table."""
    rows = (state.recall(key) or {}).get("selection", {}).get("rows", [])
    if rows and rows[0] < len(ids):
        state.remember(INSTANCE, ids[rows[0]])


def _plain(text: str) -> str:
    """Return data so that markdown shows it as it is."""
    return "".join(f"\\{one}" if not one.isalnum() and one.isascii() else one for one in text[:80])


def _enlarged(picture: str) -> Any:
    """Return a tiny picture with its pixels enlarged, so that the browser does not blur them."""
    from PIL import Image

    if len(picture) > 4000:
        return picture
    try:
        image = Image.open(io.BytesIO(base64.b64decode(picture.split(",", 1)[1])))
        return image.resize((image.width * 8, image.height * 8), Image.Resampling.NEAREST)
    except (OSError, ValueError):
        return picture
