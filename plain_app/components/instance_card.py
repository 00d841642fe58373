"""One instance: what it is, its candidates, why a confidence is what it is, and its neighbours."""

import base64
import io
from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np
import streamlit as st

from plain_app import state
from plain_app.charts import ego
from plain_app.components.actions import actions
from plain_app.components.evidence_card import evidence_card
from plain_app.components.links import go_to_review
from plain_app.components.rows import Column, draw_rows
from plain_app.components.scatter import mark
from plain_app.components.switch import pick_kept, switch
from plain_app.services import explore, maps
from plain_app.services.explore import Explored

ROW_HEIGHT, PICTURE_ROW = 28, 44
INSTANCE, LAST = state.INSTANCE, "explore.last"
STEPS, REVIEW = {"Previous": -1, "Next": 1}, "Review"
WHY, CELL = "Why this confidence", "explore.cell.{}"


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
    corners = lasso.corners if of_run == run_id else ()
    mark(maps.layout_name(run_id), row, corners, "explore.marks")
    _what(results, row)
    label = _choose_cell(results, row)
    if switch("About", (WHY, "Neighbours"), "explore.about", "tabs") == WHY:
        evidence_card(results, row, label, on_open)
    else:
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
        links = [REVIEW] if row is not None and not results.version else []
        pressed = actions(list(STEPS), links, "explore.walk", lambda name: on_step(ids, row, name))
    if pressed == REVIEW and row is not None:
        go_to_review([ids[row]])
    if row is None:
        st.warning(f"There is no instance with this id. The first is called: {_plain(ids[0])}")
    state.remember(LAST, chosen)
    return row


def _what(results: Explored, row: int) -> None:
    """Draw the picture or text, and the candidates with their confidences."""
    picture = results.picture(row)
    left, right = st.columns([2, 7], gap="small") if picture else (None, nullcontext())
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
    order = np.argsort(-results.confidences[row, labels_here], kind="stable")
    labels_here = labels_here[order]
    trails = np.asarray(results.history[:, part], np.float32).T[order].round(3).tolist()
    rows = [
        [name, float(value), trail, verdicts.get(name, "")]
        for name, value, trail in zip(
            (results.dataset.label_names[at] for at in labels_here),
            results.confidences[row, labels_here],
            trails,
            strict=True,
        )
    ]
    columns = (
        Column("candidate"),
        Column("confidence", "bar"),
        Column("over epochs", "curve"),
        Column("decision"),
    )
    explain = [int(at) for at in labels_here]
    draw_rows(columns, rows, "explore.candidates", lambda at: on_explain(row, explain[at]))


def _choose_cell(results: Explored, row: int) -> int:
    """Let choose a label of the instance: candidates first, the most doubtful first."""
    offered = results.dataset.candidates[row]
    keys = np.where(offered > 0, results.confidences[row], 2 - results.predictions[row])
    order = [int(at) for at in np.argsort(keys, kind="stable")]
    names = results.dataset.label_names
    titles = [names[at] if offered[at] else f"{names[at]} (not offered)" for at in order]
    chosen = state.recall(CELL.format(row))
    at = order.index(chosen) if chosen in order else 0
    pick_kept("Label to explain", titles, "explore.cell", at, lambda at: on_explain(row, order[at]))
    return order[at]


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
    _draw_neighbours(results, points)


def _draw_neighbours(results: Explored, points: ego.EgoPoints) -> None:
    table = explore.instance_table(results, points.rows[1:])
    rows = [
        [one.instance, f"{weight:.3f}", value, ", ".join(one.candidates)]
        for one, weight, value in zip(
            table.itertuples(), points.weights[1:], points.values[1:], strict=True
        )
    ]
    columns = [Column("instance"), Column("edge", "number"), Column("confidence", "bar")]
    columns.append(Column("candidates"))
    if results.picture_column is not None:
        columns = [Column("", "picture"), *columns]
        rows = [[picture, *row] for picture, row in zip(table["picture"], rows, strict=True)]
    ids = table["instance"].tolist()
    draw_rows(columns, rows, "explore.neighbours", lambda at: on_open(ids[at]), can_sort=True)


def on_step(ids: Sequence[str], row: int | None, name: str) -> None:
    """Go to the next or previous instance; from nowhere, to the first."""
    if name in STEPS:
        state.remember(INSTANCE, ids[0] if row is None else ids[(row + STEPS[name]) % len(ids)])


def on_open(instance: str) -> None:
    state.remember(INSTANCE, instance)


def on_explain(row: int, label: int) -> None:
    """Explain another candidate of the instance."""
    state.remember(CELL.format(row), label)


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
