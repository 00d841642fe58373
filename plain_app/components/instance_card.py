"""One instance: what it is, its candidates, why a confidence is what it is, and its neighbours."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import streamlit as st

from plain_app import state
from plain_app.charts import ego
from plain_app.components.card import Card, Choice, Hand, draw_card
from plain_app.components.evidence_tables import evidence_tables
from plain_app.components.links import go_to_review
from plain_app.components.rows import Column, Table, draw_rows
from plain_app.components.switch import open_one, opened
from plain_app.services import explore, maps
from plain_app.services.explore import Explored

ROW_HEIGHT, PICTURE_ROW = 28, 44
CARD, CELL = "explore.card", "explore.cell.{}"
ABOUT, TO_EXPLAIN = ("Why this confidence", "Neighbours"), "Label to explain"


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
    ids = results.dataset.ids
    written = _written(results)
    row = results.row_of.get(written) if written else 0
    if row is None:
        hand = Hand(open_instance, lambda _: open_instance(ids[0]), lambda *_: None)
        problem = f"There is no instance with this id. The first is called: {ids[0][:80]}"
        draw_card(Card(written, ids[0], problem), hand, CARD)
        return
    state.remember(state.LAST_INSTANCE, (results.run.fingerprint, written))
    order = _cells_in_order(results, row)
    chosen = state.recall(CELL.format(row))
    label = chosen if chosen in order else order[0]
    about = opened(ABOUT, "explore.about")

    def on_choice(title: str, at: int) -> None:
        if title == TO_EXPLAIN:
            on_explain(row, order[at])
        else:
            open_one(ABOUT, "explore.about", ABOUT[at])

    titles = _cell_titles(results, row, order)
    card = Card(
        written,
        ids[0],
        can_review=not results.version,
        picture=results.picture(row),
        text=explore.instance_text(results, row) if results.text_columns else "",
        above=[_candidates(results, row)],
        choices=[
            Choice(TO_EXPLAIN, titles, titles[order.index(label)], "list"),
            Choice("About", ABOUT, about, "tabs"),
        ],
        below=evidence_tables(results, row, label, open_instance) if about == ABOUT[0] else (),
        marks=_marks(run_id, row),
    )
    hand = Hand(open_instance, lambda step: open_instance(ids[(row + step) % len(ids)]), on_choice)
    if draw_card(card, hand, CARD):
        go_to_review([ids[row]])
    if about != ABOUT[0]:
        _neighbours(results, row, label)


def _written(results: Explored) -> str:
    """Return the id that the address has; without one, what was open on this data before."""
    fingerprint, last = state.recall(state.LAST_INSTANCE) or (None, "")
    if state.INSTANCE not in st.query_params and last and fingerprint == results.run.fingerprint:
        st.query_params[state.INSTANCE] = last
    return st.query_params.get(state.INSTANCE, "")[:500]


def _marks(run_id: str, row: int) -> dict[str, Any]:
    of_run, lasso = state.recall("explore.lasso") or (None, None)
    corners = lasso.corners if of_run == run_id else ()
    return {"layout": maps.layout_name(run_id), "at": row, "lasso": [list(one) for one in corners]}


def _candidates(results: Explored, row: int) -> Table:
    part = slice(results.starts[row], results.starts[row + 1])
    labels_here = results.cells[1][part]
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
    nothing = None if rows else ("Nothing was offered for this instance.", "", "")
    return Table(_CANDIDATES, rows, lambda at: on_explain(row, int(labels_here[at])), note=nothing)


_CANDIDATES = (
    Column("candidate"),
    Column("confidence", "bar"),
    Column("over epochs", "curve"),
    Column("decision"),
)


def _cells_in_order(results: Explored, row: int) -> list[int]:
    """Return the labels to explain: candidates first, the most doubtful first."""
    offered = results.dataset.candidates[row]
    keys = np.where(offered > 0, results.confidences[row], 2 - results.predictions[row])
    return [int(at) for at in np.argsort(keys, kind="stable")]


def _cell_titles(results: Explored, row: int, order: Sequence[int]) -> list[str]:
    names, offered = results.dataset.label_names, results.dataset.candidates[row]
    return [names[at] if offered[at] else f"{names[at]} (not offered)" for at in order]


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
    draw_rows(columns, rows, "explore.neighbours", lambda at: open_instance(ids[at]), can_sort=True)


def open_instance(instance: str) -> None:
    """Open an instance by the address; nothing opens the first."""
    if instance:
        st.query_params[state.INSTANCE] = instance
    else:
        st.query_params.pop(state.INSTANCE, None)
        state.forget(state.LAST_INSTANCE)


def on_explain(row: int, label: int) -> None:
    """Explain another candidate of the instance."""
    state.remember(CELL.format(row), label)


def on_row(key: str, ids: Sequence[str]) -> None:
    """Open the instance of the row that was chosen in a table."""
    rows = (state.recall(key) or {}).get("selection", {}).get("rows", [])
    if rows and rows[0] < len(ids):
        open_instance(ids[rows[0]])
