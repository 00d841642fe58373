"""One instance: what it is, its candidates, why a confidence is what it is, and its neighbours."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from plain_app import state
from plain_app.charts import ego
from plain_app.services import explore, maps
from plain_app.services.explore import Explored
from plain_app.services.sources import offered_text
from plain_app.widgets.evidence import draw_evidence
from plain_app.widgets.links import open_in_review
from plain_app.widgets.scatter import mark
from plain_app.widgets.tables import BAR, HEAD, PICTURE_ROW, ROW, cell_table, chosen_rows

WRITTEN, LABEL = "explore.written", "explore.label"
ABOUT = ("Why this confidence", "Neighbours")
CANDIDATES = 250


def instance_rows(
    results: Explored, rows: Sequence[int] | Any, key: str, epoch: int | None = None
) -> None:
    """Draw instances as a table; a chosen row opens its instance."""
    shown = rows[: explore.MAX_LISTED]
    table = explore.instance_table(results, shown, epoch)
    ids = table["instance"].tolist()
    tall = ROW if results.picture_column is None else PICTURE_ROW
    st.dataframe(
        table,
        hide_index=True,
        height=min(HEAD + tall * max(len(table), 1), 320),
        row_height=tall,
        column_config=_INSTANCE_COLUMNS,
        key=key,
        on_select=lambda: on_row(key, ids),
        selection_mode="single-row",
        alt="Instances, their candidates and how doubtful they are",
    )


_INSTANCE_COLUMNS = {
    "picture": st.column_config.ImageColumn("", width=52),
    "instance": st.column_config.TextColumn("instance", width=100),
    "doubtful": st.column_config.NumberColumn(
        "doubtful", help="Candidates with a confidence below 0.5", width=76
    ),
    "least": st.column_config.ProgressColumn(
        "least confidence", format="%.2f", min_value=0, max_value=1, width=BAR
    ),
    "candidates": st.column_config.ListColumn("candidates"),
}


@st.fragment
def draw_instance(run_id: str) -> None:
    """Draw one instance: what it is, its candidates, why, and its neighbours."""
    results = explore.explored(run_id)
    ids = results.dataset.ids
    written = _written(results)
    row = results.row_of.get(written) if written else 0
    with st.container(key="explore.card"):
        _draw_head(results, written, row)
        if row is None:
            st.text(f"There is no instance with this id. The first is called: {ids[0][:80]}")
            return
        state.remember(state.LAST_INSTANCE, (results.run.fingerprint, written))
        of_run, lasso = state.recall("explore.lasso") or (None, None)
        corners = lasso.corners if lasso and of_run == run_id else ()
        mark(maps.layout_name(run_id), row, corners, "explore.marks")
        _draw_content(results, row)
        _draw_candidates(results, row)
        _draw_about(results, row, _draw_label(results, row))


def _draw_head(results: Explored, written: str, row: int | None) -> None:
    """Draw the id, and the way to the ones before and after it."""
    ids = results.dataset.ids
    before, after = (ids[((row or 0) + step) % len(ids)] for step in (-1, 1))
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        if state.recall(WRITTEN, "") != written:  # never over what somebody is typing
            state.remember(WRITTEN, written)
        st.text_input(
            "Instance", key=WRITTEN, max_chars=500, placeholder=ids[0][:80], on_change=on_written
        )
        for name, other, icon in (("Previous", before, "back"), ("Next", after, "forward")):
            st.button(
                name,
                key=f"explore.{name.lower()}",
                icon=f":material/arrow_{icon}:",
                on_click=open_instance,
                args=(other if row is not None else ids[0],),
            )


def on_written() -> None:
    """Open the instance whose id was written."""
    open_instance(str(state.recall(WRITTEN) or "").strip())


def _draw_content(results: Explored, row: int) -> None:
    """Draw picture and text of an instance, and the way to decide on it."""
    picture = results.picture(row)
    text = explore.instance_text(results, row) if results.text_columns else ""
    with st.container(horizontal=True, vertical_alignment="center"):
        if picture:
            st.image(picture, width=96, alt="Picture of the instance")
        if text:
            st.text(text)
        if not results.version:
            ids = results.dataset.ids
            open_in_review(lambda: [ids[row]], "explore.review", "Review")


def _written(results: Explored) -> str:
    """Return the id that the address has; without one, what was open on this data before."""
    fingerprint, last = state.recall(state.LAST_INSTANCE) or (None, "")
    if state.INSTANCE not in st.query_params and last and fingerprint == results.run.fingerprint:
        st.query_params[state.INSTANCE] = last
    return st.query_params.get(state.INSTANCE, "")[:500]


def _draw_candidates(results: Explored, row: int) -> None:
    part = slice(results.starts[row], results.starts[row + 1])
    labels_here = results.cells[1][part]
    if not len(labels_here):
        st.caption("Nothing was offered for this instance.")
        return
    verdicts = explore.verdicts_on(results, row)
    order = np.argsort(-results.confidences[row, labels_here], kind="stable")
    labels_here = labels_here[order]
    names = [results.dataset.label_names[at] for at in labels_here]
    table = pd.DataFrame(
        {
            "candidate": names,
            "confidence": results.confidences[row, labels_here],
            "decision": [verdicts.get(name, "") for name in names],
        }
    )
    if not verdicts:
        del table["decision"]
    table["over epochs"] = np.asarray(results.history[:, part], np.float32).T[order].tolist()
    if results.dataset.votes is not None:  # the longest comes last
        table["offered by"] = [offered_text(results, row, int(at)) for at in labels_here]
    key = f"explore.candidates.{row}"

    def on_candidate() -> None:
        for at in chosen_rows(key)[:1]:
            on_explain(row, int(labels_here[at]))

    kinds = {"candidate": "name", "confidence": "bar", "over epochs": "curve"}
    cell_table(table, key, CANDIDATES, kinds, on_select=on_candidate)


def _draw_label(results: Explored, row: int) -> int:
    """Let choose the label to explain: at first the most doubtful candidate."""
    order = _cells_in_order(results, row)
    titles = dict(zip(order, _cell_titles(results, row, order), strict=True))
    chosen = state.recall(state.EXPLAINED.format(row))
    state.remember(LABEL, chosen if chosen in titles else order[0])
    return st.selectbox(
        "Label to explain",
        order,
        format_func=titles.__getitem__,
        key=LABEL,
        on_change=lambda: on_explain(row, state.recall(LABEL)),
    )


def _draw_about(results: Explored, row: int, label: int) -> None:
    why, near = st.tabs(ABOUT, key="explore.about", on_change="rerun", bind="query-params")
    if why.open:
        with why:
            draw_evidence(results, row, label, "explore.why", open_instance)
    if near.open:
        with near:
            _draw_neighbours(results, row, label)


def _cells_in_order(results: Explored, row: int) -> list[int]:
    """Return the labels to explain: candidates first, the most doubtful first."""
    offered = results.dataset.candidates[row]
    keys = np.where(offered > 0, results.confidences[row], 2 - results.predictions[row])
    return [int(at) for at in np.argsort(keys, kind="stable")]


def _cell_titles(results: Explored, row: int, order: Sequence[int]) -> list[str]:
    names, offered = results.dataset.label_names, results.dataset.candidates[row]
    return [names[at] if offered[at] else f"{names[at]} (not offered)" for at in order]


def _draw_neighbours(results: Explored, row: int, label: int) -> None:
    """Draw the neighbours as a small network coloured by the label, and as a table."""
    confidence = np.where(
        results.dataset.candidates[:, label] > 0, results.confidences[:, label], np.nan
    )
    points = ego.ego_points(results.instance_graph, row, confidence, results.dataset.ids)
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
    shown = [name for name in ("picture", "instance", "candidates") if name in table]
    table = table[shown]
    table.insert(len(shown) - 1, "edge", points.weights[1:])
    table.insert(len(shown), "confidence", points.values[1:])
    key, ids = f"explore.neighbours.{row}", table["instance"].tolist()
    kinds = {"picture": "picture", "edge": ".3f", "confidence": "bar"}
    cell_table(table, key, 260, kinds, on_select=lambda: on_row(key, ids))


def open_instance(instance: str) -> None:
    """Open an instance by the address; nothing opens the first."""
    if instance:
        st.query_params[state.INSTANCE] = instance
    else:
        st.query_params.pop(state.INSTANCE, None)
        state.forget(state.LAST_INSTANCE)


def on_explain(row: int, label: int) -> None:
    """Explain another candidate of the instance."""
    state.remember(state.EXPLAINED.format(row), label)


def on_row(key: str, ids: Sequence[str]) -> None:
    """Open the instance of the row that was chosen in a table."""
    for row in chosen_rows(key)[:1]:
        open_instance(ids[row])
