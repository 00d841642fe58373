"""The label graph: network and heat map, before and after cleaning, and rules about doubt."""

import math
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import streamlit as st

from plain_app import state
from plain_app.charts import labels
from plain_app.services import explore
from plain_app.services.explore import Explored
from plain_app.views.explore.instance import instance_rows
from plain_app.widgets.figures import counted, listed
from plain_app.widgets.links import open_in_review
from plain_app.widgets.tables import BAR, ROW, name_column


class Edge(NamedTuple):
    """Two labels, by place."""

    a: int
    b: int


def draw_labels(run_id: str) -> None:
    """Draw how labels go together, and the instances behind an edge."""
    results = explore.explored(run_id)
    if results.dataset.n_labels < 2:
        st.info("This data has one label: there is none to relate it to.")
        return
    before, after = results.label_graph.weights, results.resolved_graph.weights
    shows, least = st.columns(2, gap="medium", vertical_alignment="bottom")
    shown = shows.segmented_control(
        "Related by",
        ("All candidates", "Resolved labels", "Difference"),
        default="All candidates",
        required=True,
        key="explore.graph",
        help="Resolved: candidates with a confidence of 0.5 or more. Difference: resolved − all.",
    )
    weights = {"Resolved labels": after, "Difference": after - before}.get(shown or "", before)
    cut = _cut(least, np.abs(weights), f"explore.cut.{shown}.{run_id}")
    left, right = st.columns(2, gap="medium")
    with left:
        _network(results, np.abs(weights), cut)
    with right:
        _heat_map(results, weights, cut, shown == "Difference")
    edge, rules = st.columns(2, gap="medium")
    with edge:
        _edge(results)
    with rules:
        _changes(results) if shown == "Difference" else _rules(results)


def _cut(place: Any, weights: Any, key: str) -> float:
    """Let choose the smallest weight; at first about two edges per label remain."""
    ordered = np.sort(weights[np.triu_indices(len(weights), 1)])[::-1]
    top = max(math.ceil(100 * float(ordered[:1].max(initial=0))) / 100, 0.01)
    at = min(2 * len(weights), len(ordered) - 1)
    start = math.floor(100 * float(ordered[at])) / 100 if at >= 0 else 0.0
    return float(place.slider("Smallest weight", 0.0, top, start, 0.01, key=key))


def _network(results: Explored, weights: Any, cut: float) -> None:
    names = results.dataset.label_names
    points = labels.network_points(weights, names, results.counts, cut, results.label_order)
    event = st.echarts_chart(
        labels.network_option(points),
        height=420,
        key="explore.network",
        on_select="rerun",
        alt="Labels and how often they are offered together",
    )
    picked = _picked_edge(event, points)
    if picked is not None and picked != state.recall("explore.clicked"):
        state.remember("explore.clicked", picked)
        state.remember("explore.edge_a", picked.a)
        state.remember("explore.edge_b", picked.b)
    st.caption(
        f"{counted(len(points.edges), 'edge')}. Width: weight · size: candidates · colour: share "
        "of doubtful candidates. Click an edge for its instances."
    )


def _picked_edge(event: Any, points: labels.Network) -> Edge | None:
    """Return the edge that was clicked, if any."""
    for one in (event or {}).get("selection", {}).get("selected", []):
        places = one.get("data_indices") or []
        if one.get("data_type") == "edge" and places and places[0] < len(points.edges):
            a, b, _ = points.edges[places[0]]
            return Edge(a, b)
    return None


def _heat_map(results: Explored, weights: Any, cut: float, is_difference: bool) -> None:
    seen = weights if is_difference else np.where(weights >= cut, weights, 0)
    points = labels.heat_map_points(
        seen, results.dataset.label_names, results.label_order, is_difference
    )
    st.echarts_chart(
        labels.heat_map_option(points),
        height=420,
        key="explore.heat_map",
        alt="Weights between labels, similar labels side by side",
    )
    st.caption("Labels that are offered together stand side by side.")


def _edge(results: Explored) -> None:
    """List the instances behind an edge."""
    names = results.dataset.label_names
    places = range(len(names))
    if state.recall("explore.edge_a") is None:
        strongest = int(np.argmax(results.label_graph.weights))
        for key, at in zip(("a", "b"), divmod(strongest, len(names)), strict=True):
            state.remember(f"explore.edge_{key}", at)
    left, right = st.columns(2, gap="small")
    a = left.selectbox("Label", places, format_func=names.__getitem__, key="explore.edge_a")
    b = right.selectbox("beside", places, format_func=names.__getitem__, key="explore.edge_b")
    rows = explore.offered_together(results, a, b)
    with st.container(horizontal=True, vertical_alignment="center"):
        count = f"{counted(len(rows), 'instance')} with both offered"
        st.caption(count + listed(len(rows), explore.MAX_LISTED))
        ids = results.dataset.ids
        open_in_review(lambda: [ids[row] for row in rows], "explore.review_edge")
    instance_rows(results, rows, "explore.behind")


def _rules(results: Explored) -> None:
    """List where one label makes another doubtful."""
    names = results.dataset.label_names
    rules = labels.rules_points(results.counts)
    st.markdown("**When a label beside another is doubtful**")
    st.caption(
        f"At least {labels.MIN_SUPPORT} instances have both; doubtful: confidence below 0.5."
    )
    if not rules:
        st.caption("No such pair.")
        return
    table = pd.DataFrame(
        {
            "label": [names[rule.b] for rule in rules],
            "beside": [names[rule.a] for rule in rules],
            "doubtful": [100 * rule.rate for rule in rules],
            "otherwise": [100 * rule.base for rule in rules],
            "instances": [rule.support for rule in rules],
        }
    )
    share = st.column_config.ProgressColumn(format="%.0f%%", min_value=0, max_value=100, width=BAR)
    overall = st.column_config.NumberColumn("overall", format="%.0f%%")
    about = "Pairs of labels where one makes the other doubtful"
    _draw_pairs(table, "explore.rules", about, {"doubtful": share, "otherwise": overall})


def _changes(results: Explored) -> None:
    """List the edges that cleaning changes most."""
    names = results.dataset.label_names
    before, after = results.label_graph.weights, results.resolved_graph.weights
    a, b = np.triu_indices(len(names), 1)
    order = np.argsort(-np.abs(after - before)[a, b], kind="stable")[:20]
    a, b = a[order], b[order]
    table = pd.DataFrame(
        {
            "label": [names[at] for at in a.tolist()],
            "beside": [names[at] for at in b.tolist()],
            "candidates": before[a, b].astype(float),
            "resolved": after[a, b].astype(float),
            "change": (after - before)[a, b].astype(float),
        }
    )
    st.markdown("**Edges that cleaning changes most**")
    number = st.column_config.NumberColumn(format="%.3f")
    columns = {
        "candidates": number,
        "resolved": number,
        "change": st.column_config.NumberColumn(format="%+.3f"),
    }
    about = "Pairs of labels that cleaning changes most"
    _draw_pairs(table, "explore.changes", about, columns)


def _draw_pairs(table: pd.DataFrame, key: str, about: str, columns: dict[str, Any]) -> None:
    """Draw a table of pairs of labels."""
    st.dataframe(
        table,
        hide_index=True,
        row_height=ROW,
        height=320,
        column_config={name: name_column(table[name]) for name in ("label", "beside")} | columns,
        key=key,
        alt=about,
    )
