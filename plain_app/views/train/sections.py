"""What became of a run: its curves, and the confidences of its candidate cells."""

import numpy as np
import pandas as pd
import streamlit as st

from core.store import RunRow
from plain_app import state
from plain_app.charts import curves, evolution, setting_text
from plain_app.charts.reliability import reliability_option
from plain_app.services import histories, runs
from plain_app.services.lens import Slider
from plain_app.services.runs import RunEvents
from plain_app.widgets.chart import draw_chart
from plain_app.widgets.clock import local_time
from plain_app.widgets.figures import counted
from plain_app.widgets.links import open_in_review, open_instance
from plain_app.widgets.scatter import mark, scatter
from plain_app.widgets.sliders import last_move, sliders
from plain_app.widgets.tables import cell_table

CHART = 250
TALL = 380
ALL, LOG = "all labels", "Log"
MAP_TABLE = 480
PLAY_SECONDS = 0.7
LASSO = "train.lasso"
SCRUB, SCRUBBED, ANSWERED = "train.scrub", "train.scrubbed", "train.answered"


def sections(run: RunRow) -> list[str]:
    """Return what there is to see of a run: less where a method computed in one go."""
    return list(_AT_ONCE if run.config.computes_at_once else SECTIONS)


def draw_section(title: str, run: RunRow, events: RunEvents) -> None:
    """Draw one of `sections`."""
    (SECTIONS | _AT_ONCE)[title](run, events)


def _draw_numbers(run: RunRow, events: RunEvents) -> None:
    """Draw what a method without epochs has instead of curves: its numbers."""
    assert run.config.method is not None
    labels = [ALL, *runs.cells(run.fingerprint).labels]
    label = st.selectbox("Label", labels, key="train.label", width=200)
    points = histories.evolution(run, None if label == ALL else label)
    if points.epochs:
        option = evolution.spread_option(points, points.epochs[-1], run.config.method.name)
        draw_chart(option, TALL, "train.numbers")
    st.caption(
        f"{_about_cells(points.n_cells, run)} {run.config.method.name} has no epochs: these are "
        "its own numbers, before they became confidences, which Explore shows."
    )


def _draw_curves(run: RunRow, events: RunEvents) -> None:
    planned = run.config.epochs if runs.status(run) in runs.LIVE else run.epoch
    points = curves.curve_points(events.epochs, planned)
    draw_chart(curves.curves_option(points), 2 * CHART, "train.curves")


def _draw_confidences(run: RunRow, events: RunEvents) -> None:
    """Draw how confidences split apart, and their distribution at any epoch."""
    left, right = st.columns([1.8, 1])
    labels = [ALL, *runs.cells(run.fingerprint).labels]
    with right:
        with st.container(horizontal=True, vertical_alignment="bottom"):
            label = st.selectbox("Label", labels, key="train.label", width=200)
            plays = st.toggle("Play", key="train.play", disabled=not run.state.is_ended)
    points = histories.evolution(run, None if label == ALL else label)
    if not points.epochs:
        return
    option = evolution.evolution_option(points, 0 if run.state.is_ended else run.config.epochs)
    with left:
        draw_chart(option, TALL, "train.evolution")
        st.caption(_about_cells(points.n_cells, run))
        if not run.state.is_ended and (level := runs.level(run)) is not None:
            st.caption(level.sentence)  # of an ended run the audit above tells it
    with right:
        if plays and run.state.is_ended:
            st.fragment(_draw_spread, run_every=PLAY_SECONDS)(points, True)
        else:
            _draw_spread(points, False)


def _draw_spread(points: evolution.EvolutionPoints, plays: bool) -> None:
    epochs = points.epochs
    move = last_move(SCRUB)
    if move is not None:
        state.remember(SCRUBBED, epochs[move.place("epoch", len(epochs) - 1)])
        state.remember(ANSWERED, move.number)
    epoch = _scrubbed(epochs, plays and move is None)
    if len(epochs) > 1:
        stops, last = tuple(map(str, epochs)), len(epochs) - 1
        travel = Slider("epoch", "Epoch", "Travel to any epoch", stops, epochs.index(epoch), last)
        sliders([travel], state.recall(ANSWERED, 0), SCRUB)
    draw_chart(evolution.spread_option(points, epoch), TALL - 50, "train.spread")


def _scrubbed(epochs: list[int], plays: bool) -> int:
    """Return the epoch to show: the last, unless someone went to another; playing goes on."""
    wanted = state.recall(SCRUBBED)
    if plays:
        at = epochs.index(wanted) if wanted in epochs else -1
        wanted = epochs[(at + 1) % len(epochs)]
        state.remember(SCRUBBED, wanted)
    return wanted if wanted in epochs else epochs[-1]


def _about_cells(n_cells: int, run: RunRow) -> str:
    n_all = len(runs.cells(run.fingerprint).rows)
    part = "" if n_cells >= n_all else f" of {n_all:,}"
    return f"{n_cells:,}{part} candidate cells."


def _draw_unstable(run: RunRow, events: RunEvents) -> None:
    """Draw the cells that moved most, each with its trail."""
    points = histories.unstable(run)
    table = _cells_table(run, points.cells)
    table["trail"] = points.trails
    table["travelled"], table["changed sides"] = points.movement, points.crossings
    table["now"] = points.last
    st.caption("The candidate cells whose confidence travelled farthest, epoch by epoch.")
    kinds = {"trail": "curve", "travelled": ".2f", "now": "bar"}
    cell_table(table, "train.unstable", TALL, kinds)
    _draw_review_link(run, points.cells, "train.review_unstable")


def _draw_difference(run: RunRow, events: RunEvents) -> None:
    """List the cells that differ most between two epochs."""
    last = len(runs.history(run.id))
    if last < 2:
        st.caption("Two epochs are needed.")
        return
    with st.container(horizontal=True, vertical_alignment="center"):
        first, second = st.slider(
            "From one epoch to another", 1, last, (1, last), key=f"train.two.{last}", width=320
        )
        points = evolution.difference_points(runs.history(run.id), first, second)
        differ = "differs" if points.n_changed == 1 else "differ"
        cells = f"{counted(points.n_changed, 'cell')} {differ} by 0.05 or more"
        st.caption(f"{cells}; the largest differences:")
    table = _cells_table(run, points.cells)
    table["before"], table["after"] = points.before.round(3), points.after.round(3)
    table["difference"] = (points.after - points.before).round(3)
    kinds = {"before": "bar", "after": "bar", "difference": "+.2f"}
    cell_table(table, "train.difference", TALL, kinds)
    _draw_review_link(run, points.cells, "train.review_difference")


def _draw_cartography(run: RunRow, events: RunEvents) -> None:
    """Draw every cell by mean confidence and variability; list those of a lasso."""
    drawn = histories.cartography(run)
    left, right = st.columns([1.5, 1], gap="medium")
    with left, st.container(key="train.cartography"):
        event = scatter(drawn.places, drawn.colours, "train.cells")
        if event.lasso:
            state.remember(LASSO, (run.id, event.lasso))
        if event.picked is not None and 0 <= event.picked < len(drawn.cells):
            _open_cell(run, int(drawn.cells[event.picked]))
        st.caption(f"{_about_cells(len(drawn.cells), run)} A click opens one in Explore.")
    with right:
        _draw_lassoed(run, drawn.layout)


def _open_cell(run: RunRow, at: int) -> None:
    """Go to a cell in Explore, where it is told why."""
    cells = runs.cells(run.fingerprint)
    row, label = int(cells.rows[at]), int(cells.columns[at])
    open_instance(run.id, cells.ids[row], (row, label))


def _draw_lassoed(run: RunRow, layout: str) -> None:
    of_run, corners = state.recall(LASSO) or (None, ())
    corners = corners if of_run == run.id else ()
    mark(layout, -1, corners, "train.marks")
    statistics = histories.statistics(run)
    every = np.arange(len(statistics.mean))
    inside = histories.lassoed(run, corners) if corners else every
    cells = evolution.most_variable(statistics, inside)
    with st.container(horizontal=True, vertical_alignment="center"):
        what = "in the lasso" if corners else "in all; lasso some to list them"
        st.caption(f"{counted(len(inside), 'cell')} {what}. The most variable:")
        if corners:
            st.button("Clear", key="train.clear", type="tertiary", on_click=on_clear)
    table = _cells_table(run, cells)
    table["mean"] = statistics.mean[cells].round(3)
    table["variability"] = statistics.variability[cells].round(3)
    cell_table(table, "train.region", MAP_TABLE)
    _draw_review_link(run, cells, "train.review_region")


def _draw_review_link(run: RunRow, cells: np.ndarray, key: str) -> None:
    """Offer to review the instances of some cells, once the run has ended."""
    if run.state.is_ended and len(cells):
        known = runs.cells(run.fingerprint)
        rows = dict.fromkeys(known.rows[cells].tolist())
        open_in_review(lambda: [known.ids[row] for row in rows], key)


def _draw_reliability(run: RunRow, events: RunEvents) -> None:
    """Draw whether confidences keep their word, as far as truth or decisions tell."""
    points, by = histories.reliability(run)
    if not points.n_cells:
        st.caption(
            "Decide some cells in Review: they show whether the confidences keep their word."
        )
        return
    left, right = st.columns([1, 1])
    with left:
        draw_chart(reliability_option(points), TALL, "train.reliability")
    with right:
        about = {
            "truth": "Compared with the truth that came with the data.",
            "decisions": "Compared with what people decided; cells they chose say less than "
            "cells drawn at random.",
        }
        st.caption(about[by])
        table = pd.DataFrame(
            {"claimed": points.claimed, "true": points.true, "cells": points.n_cells}
        )
        cell_table(table, "train.reliability_table", TALL)


def _draw_log(run: RunRow, events: RunEvents) -> None:
    times = {"created": run.created, "started": run.started, "ended": run.ended}
    facts = {"run": run.id, **{name: local_time(time) for name, time in times.items()}}
    if events.started is not None:
        facts |= {"device": events.started.device, **events.started.versions}
    if events.graphs is not None:
        facts |= {
            "neighbour search": events.graphs.search_note,
            "edges": f"{events.graphs.n_edges:,}",
        }
    rows = [{"about": name, "value": str(value or "…")} for name, value in facts.items()]
    settings = [
        {"setting": name, "value": setting_text(name, value)}
        for name, value in runs.settings_used(run).items()
    ]
    left, right = st.columns(2)
    with left:
        cell_table(pd.DataFrame(rows), "train.facts", TALL)
    with right:
        cell_table(pd.DataFrame(settings), "train.used", TALL)
    printed = runs.worker_log(run.id)
    if printed:
        st.code(printed, language=None)


def _cells_table(run: RunRow, chosen: np.ndarray) -> pd.DataFrame:
    cells = runs.cells(run.fingerprint)
    return pd.DataFrame(
        {
            "instance": [cells.ids[i][:80] for i in cells.rows[chosen]],
            "label": [cells.labels[j][:80] for j in cells.columns[chosen]],
        }
    )


def on_clear() -> None:
    state.forget(LASSO)


SECTIONS = {
    "Curves": _draw_curves,
    "Confidences": _draw_confidences,
    "Unstable cells": _draw_unstable,
    "Two epochs": _draw_difference,
    "Cartography": _draw_cartography,
    "Reliability": _draw_reliability,
    LOG: _draw_log,
}
_AT_ONCE = {"Numbers": _draw_numbers, "Reliability": _draw_reliability, LOG: _draw_log}
