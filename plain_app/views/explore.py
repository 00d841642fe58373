"""Explore: the map of instances, one instance and its evidence, labels, and what was not offered.

The map and the instance beside it are one fragment; the instance is a fragment of its own inside,
so that going from neighbour to neighbour does not touch the map.
"""

import base64
import io
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from core.store import RunRow, Workspace
from plain_app.charts import ego, labels
from plain_app.components.evidence_card import evidence_card
from plain_app.components.scatter import focus, scatter
from plain_app.services import explore
from plain_app.services.explore import Colour, Edge, Explored, Lasso, Selection

PARTS = ("Map", "Labels", "Outside the candidates")
COLOURS = {
    "confidence": "Confidence in a label",
    "uncertainty": "Uncertainty",
    "doubtful": "Doubtful candidates",
    "decision": "Decisions",
    "candidates": "Number of candidates",
    "column": "A column of the data",
}
AT_AN_EPOCH = ("confidence", "uncertainty", "doubtful")
INSTANCE, LAST, SELECTION = "explore.instance", "explore.last", "explore.selection"
ROW_HEIGHT, PICTURE_ROW = 28, 44
POLL_SECONDS = 2.0


def render(workspace: Workspace, fingerprint: str | None, run_id: str | None) -> None:
    """Draw the view of a run, or say why there is nothing to explore."""
    situation, run = explore.situation(workspace, run_id)
    if situation != "ready" or run is None:
        _nothing(situation, run, fingerprint)
        if situation == "working" and run is not None:
            _await_end(workspace, run.id)
        return
    part = st.segmented_control(
        "Part",
        PARTS,
        default=PARTS[0],
        key="explore.part",
        label_visibility="collapsed",
        bind="query-params",
    )
    draw = {"Labels": _labels_part, "Outside the candidates": _outside_part}.get(part, _map_part)
    draw(workspace, run.id)


def _nothing(situation: str, run: RunRow | None, fingerprint: str | None) -> None:
    """Say what is missing, and the next step."""
    start = "Start a training in Train." if fingerprint else "Load data in Data, then train."
    texts = {
        "no run": ("Nothing to explore yet", f"A run has to end first. {start}"),
        "working": ("This run is still at work", "Its results appear here when it ends."),
        "interrupted": ("This run was interrupted", "Resume or stop it in Train."),
        "failed": ("This run failed", "Start another in Train; what went wrong:"),
        "empty": ("This run has no results", "It was stopped before its first epoch ended."),
    }
    title, text = texts[situation]
    with st.container(border=True, key="explore.empty"):
        st.subheader(title)
        st.caption(text)
        if situation == "failed" and run is not None and run.error:
            st.text(run.error[:2000])


@st.fragment(run_every=POLL_SECONDS)
def _await_end(workspace: Workspace, run_id: str) -> None:
    """Show the results as soon as the run has ended."""
    if explore.situation(workspace, run_id)[0] != "working":
        st.rerun()


# ------------------------------------------------------------------------------------ the map


@st.fragment
def _map_part(workspace: Workspace, run_id: str) -> None:
    results = explore.explored(workspace, run_id)
    found = explore.layouts(workspace, run_id)
    left, right = st.columns([11, 9], gap="medium")
    with left:
        if found:
            epoch = _map(workspace, results, found[0])
            _selected(workspace, results, epoch)
        else:
            st.info("This run has no layout, so there is no map. Choose an instance by its id.")
    with right:
        _instance(workspace, run_id)


def _map(workspace: Workspace, results: Explored, layout: str) -> int | None:
    """Draw tools and map; return the epoch it shows, none for the end."""
    colour, epoch = _tools(results)
    packed = explore.packed_map(workspace, results.run.id, layout, colour, epoch)
    event = scatter(packed.data, "explore.map")
    if event.picked is not None and 0 <= event.picked < results.dataset.n_instances:
        _remember(INSTANCE, results.dataset.ids[event.picked])
    if event.lasso:
        _remember(SELECTION, (results.run.id, Lasso(layout, event.lasso)))
    if layout != "umap":
        _await_umap(workspace, results.run.id)
    return epoch


def _tools(results: Explored) -> tuple[Colour, int | None]:
    kinds = [kind for kind in COLOURS if kind != "column" or results.colour_columns]
    by, which, when = st.columns([4, 4, 5], gap="small", vertical_alignment="bottom")
    kind = by.selectbox(
        "Colour by", kinds, format_func=COLOURS.get, key="explore.colour", bind="query-params"
    )
    options = {"confidence": results.dataset.label_names, "column": results.colour_columns}
    name = ""
    if kind in options:
        title = "Label" if kind == "confidence" else "Column"
        key = f"explore.colour_{kind}"
        name = which.selectbox(title, options[kind], key=key, bind="query-params")
    return Colour(kind, name), _epoch(when, results, kind)


def _epoch(place: Any, results: Explored, kind: str) -> int | None:
    """Let travel to an epoch; the last one is the end."""
    last = len(results.history)
    if last < 2 or kind not in AT_AN_EPOCH:
        return None
    key = f"explore.epoch.{results.run.id}"
    epoch = place.slider("Epoch", 1, last, last, key=key)
    return None if epoch == last else epoch


@st.fragment(run_every=POLL_SECONDS)
def _await_umap(workspace: Workspace, run_id: str) -> None:
    """Say that the better layout is on its way, and show it when it is there."""
    standing = explore.start_layout(workspace, run_id)
    if standing == "there":
        st.rerun()
    notes = {
        "working": "Laid out by PCA. UMAP is being computed and appears here by itself.",
        "failed": "Laid out by PCA. UMAP could not be computed; layout.log of the run says why.",
    }
    st.caption(notes[standing])


def _selected(workspace: Workspace, results: Explored, epoch: int | None) -> None:
    """List the instances of the last lasso."""
    run_id, selection = _recall(SELECTION) or (None, None)
    if run_id != results.run.id or not isinstance(selection, Lasso):
        st.caption("Lasso instances on the map to list them here.")
        return
    rows = explore.selected_rows(workspace, run_id, selection)
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption(f"{_counted(len(rows), 'instance')} selected{_first(len(rows))}")
        st.button("Clear", key="explore.clear", type="tertiary", on_click=on_clear)
    _instances(results, rows, "explore.selected", epoch)


def _instances(
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


# ------------------------------------------------------------------------------ one instance


@st.fragment
def _instance(workspace: Workspace, run_id: str) -> None:
    """Draw one instance: what it is, its candidates, why, and its neighbours."""
    results = explore.explored(workspace, run_id)
    row = _choose_instance(results)
    if row is None:
        return
    focus(row, "explore.focus")
    _what(workspace, results, row)
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
    if _recall(INSTANCE) is None and INSTANCE not in st.query_params and _recall(LAST):
        _remember(INSTANCE, _recall(LAST))  # another part of the view was open meanwhile
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
    _remember(LAST, chosen)
    return row


def _what(workspace: Workspace, results: Explored, row: int) -> None:
    """Draw the picture or text, and the candidates with their confidences."""
    picture = results.picture(row)
    left, right = st.columns([2, 7], gap="small") if picture else (None, st.container())
    if left is not None:
        left.image(_enlarged(picture), width="stretch")
    with right:
        if results.text_columns:
            st.text(explore.instance_text(results, row))
        _candidates(workspace, results, row)


def _candidates(workspace: Workspace, results: Explored, row: int) -> None:
    part = slice(results.starts[row], results.starts[row + 1])
    labels_here = results.cells[1][part]
    if not len(labels_here):
        st.caption("Nothing was offered for this instance.")
        return
    verdicts = explore.verdicts_on(workspace, results, row)
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


# ------------------------------------------------------------------------------- the labels


@st.fragment
def _labels_part(workspace: Workspace, run_id: str) -> None:
    results = explore.explored(workspace, run_id)
    before, after = results.label_graph.weights, results.resolved_graph.weights
    shows, least = st.columns(2, gap="medium", vertical_alignment="bottom")
    shown = shows.segmented_control(
        "Related by",
        ("All candidates", "Resolved labels", "Difference"),
        default="All candidates",
        key="explore.graph",
        help="Resolved: candidates with a confidence of 0.5 or more. Difference: resolved − all.",
    )
    weights = {"Resolved labels": after, "Difference": after - before}.get(shown, before)
    cut = _cut(least, np.abs(weights), f"explore.cut.{shown}.{run_id}")
    left, right = st.columns(2, gap="medium")
    with left:
        _network(results, np.abs(weights), cut)
    with right:
        _heat_map(results, weights, cut, shown == "Difference")
    edge, rules = st.columns(2, gap="medium")
    with edge:
        _edge(workspace, results)
    with rules:
        _changes(results) if shown == "Difference" else _rules(results)


def _cut(place: Any, weights: Any, key: str) -> float:
    """Let choose the smallest weight; at first about two edges per label remain."""
    ordered = np.sort(weights[np.triu_indices(len(weights), 1)])[::-1]
    top = max(math.ceil(100 * float(ordered[:1].max(initial=0))) / 100, 0.01)
    at = min(2 * len(weights), len(ordered) - 1)
    start = math.floor(100 * float(ordered[at])) / 100 if at >= 0 else 0.0
    return place.slider("Smallest weight", 0.0, top, start, 0.01, key=key)


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
    if picked is not None and picked != _recall("explore.clicked"):
        _remember("explore.clicked", picked)
        _remember("explore.edge_a", picked.a)
        _remember("explore.edge_b", picked.b)
    st.caption(
        f"{_counted(len(points.edges), 'edge')}. Width: weight · size: candidates · colour: share "
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


def _edge(workspace: Workspace, results: Explored) -> None:
    """List the instances behind an edge."""
    names = results.dataset.label_names
    places = range(len(names))
    if _recall("explore.edge_a") is None:
        a, b = np.unravel_index(np.argmax(results.label_graph.weights), (len(names),) * 2)
        _remember("explore.edge_a", int(a))
        _remember("explore.edge_b", int(b))
    left, right = st.columns(2, gap="small")
    a = left.selectbox("Label", places, format_func=names.__getitem__, key="explore.edge_a")
    b = right.selectbox("beside", places, format_func=names.__getitem__, key="explore.edge_b")
    selection: Selection = Edge(a, b)
    rows = explore.selected_rows(workspace, results.run.id, selection)
    st.caption(f"{_counted(len(rows), 'instance')} with both offered{_first(len(rows))}.")
    _instances(results, rows, "explore.behind")


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
    share = st.column_config.ProgressColumn(format="%.0f %%", min_value=0, max_value=100)
    st.dataframe(
        table,
        hide_index=True,
        row_height=ROW_HEIGHT,
        height=320,
        column_config={
            "doubtful": share,
            "otherwise": st.column_config.NumberColumn("overall", format="%.0f %%"),
        },
        key="explore.rules",
    )


def _changes(results: Explored) -> None:
    """List the edges that cleaning changes most."""
    names = results.dataset.label_names
    before, after = results.label_graph.weights, results.resolved_graph.weights
    a, b = np.triu_indices(len(names), 1)
    order = np.argsort(-np.abs(after - before)[a, b], kind="stable")[:20]
    a, b = a[order], b[order]
    table = pd.DataFrame(
        {
            "label": [names[at] for at in a],
            "beside": [names[at] for at in b],
            "candidates": before[a, b].astype(float),
            "resolved": after[a, b].astype(float),
            "change": (after - before)[a, b].astype(float),
        }
    )
    st.markdown("**Edges that cleaning changes most**")
    number = st.column_config.NumberColumn(format="%.3f")
    st.dataframe(
        table,
        hide_index=True,
        row_height=ROW_HEIGHT,
        height=320,
        column_config={
            "candidates": number,
            "resolved": number,
            "change": st.column_config.NumberColumn(format="%+.3f"),
        },
        key="explore.changes",
    )


# ------------------------------------------------------------------- outside the candidates


@st.fragment
def _outside_part(workspace: Workspace, run_id: str) -> None:
    results = explore.explored(workspace, run_id)
    left, right = st.columns([11, 9], gap="medium")
    with left:
        cut = st.slider("Prediction above", 0.5, 0.99, explore.NEW_LABEL_CUT, key="explore.new_cut")
        _outside_table(results, explore.outside(results, cut))
    with right:
        _instance(workspace, run_id)


def _outside_table(results: Explored, found: explore.Outside) -> None:
    st.caption(
        f"{_counted(found.total, 'label')} strongly supported though never offered"
        f"{_first(found.total)}"
    )
    if not found.total:
        st.info("No label outside the candidates is predicted this strongly.")
        return
    ids, names = results.dataset.ids, results.dataset.label_names
    table: dict[str, Any] = {
        "instance": [ids[row] for row in found.rows],
        "label": [names[at] for at in found.labels],
        "prediction": found.predictions.astype(float),
    }
    if results.picture_column is not None:
        table = {"picture": [results.picture(int(row)) for row in found.rows], **table}
    cells = list(zip(found.rows.tolist(), found.labels.tolist(), strict=True))
    st.dataframe(
        pd.DataFrame(table),
        hide_index=True,
        row_height=ROW_HEIGHT if results.picture_column is None else PICTURE_ROW,
        height=560,
        column_config={
            "picture": st.column_config.ImageColumn("", width=52),
            "prediction": st.column_config.ProgressColumn(format="%.2f", min_value=0, max_value=1),
        },
        key="explore.outside",
        on_select=lambda: on_outside("explore.outside", cells, ids),
        selection_mode="single-row",
    )


# ---------------------------------------------------------------------------------- actions


def on_clear() -> None:
    """Forget the lasso."""
    _remember(SELECTION, None)


def on_step(ids: Sequence[str], row: int | None, step: int) -> None:
    """Go to the next or previous instance; from nowhere, to the first."""
    _remember(INSTANCE, ids[0] if row is None else ids[(row + step) % len(ids)])


def on_row(key: str, ids: Sequence[str]) -> None:
    """Open the instance of the row that was chosen in a table."""
    rows = (_recall(key) or {}).get("selection", {}).get("rows", [])
    if rows and rows[0] < len(ids):
        _remember(INSTANCE, ids[rows[0]])


def on_outside(key: str, cells: Sequence[tuple[int, int]], ids: Sequence[str]) -> None:
    """Open the cell of the row that was chosen."""
    on_row(key, [ids[row] for row, _ in cells])
    for at in (_recall(key) or {}).get("selection", {}).get("rows", [])[:1]:
        row, label = cells[at]
        _remember(f"explore.cell.{row}", label)


def _recall(key: str) -> Any:
    return st.session_state.get(key)


def _remember(key: str, value: Any) -> None:
    """Keep something small for this session: ids and corners, never arrays."""
    st.session_state[key] = value


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def _first(count: int) -> str:
    return f"; the first {explore.MAX_LISTED} are listed" if count > explore.MAX_LISTED else ""


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


def _page() -> None:
    """Draw the view for what is chosen in the frame."""
    from plain_app.services.workspace import workspace
    from plain_app.state import current

    chosen = current()
    render(workspace(), chosen.fingerprint, chosen.run_id)


if __name__ == "__main__":
    _page()
