"""Train: set up a run, watch it live, and see afterwards what became of every cell."""

from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from core.config import PlainConfig
from core.errors import PlainError
from core.store import RunRow
from plain_app import state
from plain_app.charts import curves, evolution
from plain_app.components.cards import Figure, cell_table, duration, figure_row, state_badge
from plain_app.components.empty import DATA, empty_state
from plain_app.components.errors import error_guard, show_error
from plain_app.components.settings import FIELDS, GROUPS, draw_field, field_value, widget_value
from plain_app.services import histories, runs
from plain_app.services.runs import Standing, Story
from plain_app.services.workspace import list_runs

SECTIONS = ("Curves", "Confidences", "Restless cells", "Two epochs", "Cartography", "Log")
CHART = 250
TALL = 380
ALL = "all labels"
TICK_SECONDS = 1.0
PLAY_SECONDS = 0.7


def draw() -> None:
    """Draw a new run's settings, or the chosen run."""
    chosen = state.current()
    _draw_undo()
    if chosen.fingerprint is None:
        text = "A run needs a data set. Load a file or the demo first."
        return empty_state("Nothing to train on yet", text, page=DATA, link="Go to Data")
    if chosen.run_id is None:
        _draw_new_run(chosen.fingerprint)
    else:
        _draw_run(chosen.run_id)
    return _draw_runs(chosen.fingerprint, chosen.run_id)


# --- a new run ---------------------------------------------------------------------------------


def _draw_new_run(fingerprint: str) -> None:
    st.subheader("New run")
    with st.container(horizontal=True, vertical_alignment="bottom", key="train.new"):
        state.remember("train.preset", state.recall("train.preset") or runs.presets()[0])
        st.segmented_control(
            "Preset",
            runs.presets(),
            key="train.preset",
            required=True,
            on_change=on_preset,
            help="studio: our defaults for cleaning labels. paper: faithful to the paper.",
        )
        st.text_input("Name", key="train.name", max_chars=80, placeholder="optional", width=220)
        draw_field("epochs", _preset(), width=130)
        st.button(
            "Start training",
            key="train.start",
            type="primary",
            icon=":material/play_arrow:",
            on_click=on_start,
            args=(fingerprint,),
        )
        _draw_estimate(fingerprint)
    _draw_refusal()
    with st.expander("All settings", key="train.settings"):
        for column, (group, names) in zip(st.columns(len(GROUPS)), GROUPS.items(), strict=True):
            with column:
                st.markdown(f"**{group}**")
                for name in names:
                    if name != "epochs":
                        draw_field(name, _preset())


def _draw_estimate(fingerprint: str) -> None:
    pace = runs.known_pace(fingerprint)
    epochs = state.recall("train.epochs")
    if pace is not None and epochs:
        st.caption(f"about {duration(pace * epochs)}, as the last run went")


def _draw_refusal() -> None:
    refusal = state.recall("train.refusal")
    if refusal is not None:
        show_error(PlainError(*refusal), "train.refused")


def _preset() -> PlainConfig:
    return PlainConfig.preset(state.recall("train.preset") or runs.presets()[0])


def on_preset() -> None:
    """Show the values of the preset that was chosen."""
    config = _preset()
    for name in FIELDS:
        state.remember(f"train.{name}", widget_value(name, getattr(config, name)))


def on_start(fingerprint: str) -> None:
    """Start what the form says, or say why not."""
    state.forget("train.refusal", "train.deleted")
    try:
        values = {name: field_value(name, state.recall(f"train.{name}")) for name in FIELDS}
        name = (state.recall("train.name") or "").strip() or str(state.recall("train.preset"))
        run_id = runs.start(fingerprint, PlainConfig(**values), name)
    except PlainError as error:
        state.remember("train.refusal", (error.title, error.detail, error.hint))
    else:
        state.choose(run_id=run_id)


# --- a run ---------------------------------------------------------------------------------------


def _draw_run(run_id: str) -> None:
    with error_guard("train.run"):
        run = runs.get(run_id)
        is_live = runs.standing(run) in runs.HELD
        _draw_head(run)
        every = TICK_SECONDS if is_live else None
        st.fragment(_draw_live, run_every=every)(run_id, is_live)


def _draw_head(run: RunRow) -> None:
    with st.container(horizontal=True, vertical_alignment="center", key="train.head"):
        with st.container(key="train.title", width="content"):
            st.text(runs.title(run))
        with st.popover("Rename, note, delete", key="train.manage"):
            st.text_input("Name", run.name, key=f"train.rename_{run.id}", max_chars=80)
            st.text_area("Note", run.note, key=f"train.note_{run.id}", max_chars=2000)
            with st.container(horizontal=True):
                st.button("Save", key="train.save", on_click=on_save, args=(run.id,))
                st.button("Delete", key="train.delete", on_click=on_delete, args=(run.id,))
        st.button("New run", key="train.another", on_click=on_new, icon=":material/add:")
    if run.note:
        st.text(run.note)


def _draw_live(run_id: str, was_live: bool) -> None:
    """Draw what changes while a run is at work; once a second then, else only when asked."""
    with error_guard("train.live"):
        run = runs.get(run_id)
        standing = runs.standing(run)
        if standing == "queued":
            runs.tend()
        if was_live != (standing in runs.HELD):
            runs.tend()
            st.rerun()  # the clock of this fragment starts or stops
        told = runs.story(run_id)
        _draw_progress(run, standing, told)
        _draw_ending(run, standing)
        section = st.segmented_control(
            "Show",
            SECTIONS,
            key="train.section",
            default=SECTIONS[0],
            required=True,
            label_visibility="collapsed",
        )
        if not told.epochs:
            return _draw_waiting(standing)
        return _draw_section(section or SECTIONS[0], run, told)


def _draw_progress(run: RunRow, standing: Standing, told: Story) -> None:
    with st.container(horizontal=True, vertical_alignment="center", key="train.bar"):
        state_badge(standing)
        st.progress(min(1.0, run.epoch / run.config.epochs), text=_progress_text(run, told))
        _draw_controls(run, standing)
    spent = runs.stage_seconds(told)
    last = told.epochs[-1] if told.epochs else None
    left = runs.seconds_left(run, told.epochs) if standing == "running" else None
    ends = "time left" if standing in runs.HELD else "time in all"
    took = told.ended.seconds if told.ended else sum(spent.values())
    figures = [
        Figure("epoch", f"{run.epoch} of {run.config.epochs}"),
        Figure(ends, duration(left if standing in runs.HELD else took)),
        Figure("graphs", _spent(spent, "graphs"), "Who is near, which labels go together"),
        Figure("network", _spent(spent, "train"), "Fitting the pseudo-labels"),
        Figure("predict", _spent(spent, "predict"), "The network's view of every cell"),
        Figure("propagate", _spent(spent, "propagate"), "Confidences through both graphs"),
        Figure("changed", "…" if last is None else f"{last.cells_changed:,}", CHANGED_HELP),
        _score(last),
    ]
    figure_row(figures, "train.figures")


CHANGED_HELP = "Candidate cells that crossed 0.5 in the last epoch"


def _score(last: Any) -> Figure:
    if last is None or not last.metrics:
        return Figure("entropy", "…" if last is None else f"{last.entropy:.3f}")
    return Figure("AUC", f"{last.metrics['auc']:.3f}", "True above false candidates, all cells")


def _spent(spent: dict[str, float], stage: str) -> str:
    return duration(spent[stage]) if stage in spent else "…"


def _progress_text(run: RunRow, told: Story) -> str:
    if told.ended is not None:
        return f"{run.epoch} epochs"
    if told.started is None:
        return "Loading the engine"
    return "Building graphs" if told.graphs is None else "Training"


def _draw_controls(run: RunRow, standing: Standing) -> None:
    is_asked = run.command is not None
    if standing == "running":
        _control("Pause", "pause", run, disabled=is_asked)
    if standing in ("paused", "interrupted"):
        _control("Resume", "resume", run, type="primary")
    if standing in (*runs.HELD, "interrupted"):
        _control("Stop", "stop", run, disabled=run.command == "stop")


def _control(label: str, what: str, run: RunRow, **options: Any) -> None:
    st.button(label, key=f"train.{what}", on_click=on_control, args=(what, run.id), **options)


def _draw_ending(run: RunRow, standing: Standing) -> None:
    if standing == "failed":
        title = "This run failed."
        show_error(PlainError(title, run.error or "", "Its log is below."), "train.failed")
    elif standing == "interrupted":
        with st.container(border=True, key="train.interrupted"):
            st.badge("interrupted", color="orange", icon=":material/power_off:")
            st.caption(
                "Its process is gone: the machine was restarted, or it was killed. Resume goes on "
                "from the last checkpoint and ends as if nothing had happened."
            )


def _draw_waiting(standing: Standing) -> None:
    texts = {
        "queued": "Waiting for its turn: another run is at work.",
        "running": "Curves appear with the first epoch.",
        "paused": "Paused before its first epoch.",
    }
    with st.container(border=True, height=CHART, key="train.waiting"):
        st.caption(texts.get(standing, "This run has told nothing."))


def _draw_section(section: str, run: RunRow, told: Story) -> None:
    draw_one = {
        "Curves": _draw_curves,
        "Confidences": _draw_confidences,
        "Restless cells": _draw_restless,
        "Two epochs": _draw_difference,
        "Cartography": _draw_cartography,
        "Log": _draw_log,
    }[section]
    draw_one(run, told)


def _draw_curves(run: RunRow, told: Story) -> None:
    points = curves.curve_points(told.epochs, run.config.epochs)
    charts = {
        "objective": curves.objective_option,
        "loss": curves.loss_option,
        "changed": curves.changed_option,
        "entropy": curves.entropy_option,
    }
    if points.metrics:
        charts = {"metrics": curves.metrics_option, **charts}
    wide, narrow = list(charts.items())[:2], list(charts.items())[2:]
    for row in (wide, narrow):
        for column, (name, option) in zip(st.columns(len(row)), row, strict=True):
            with column:
                st.echarts_chart(option(points), height=CHART, key=f"train.chart_{name}")


def _draw_confidences(run: RunRow, told: Story) -> None:
    """Draw how confidences split apart, and their distribution at any epoch."""
    left, right = st.columns([1.8, 1])
    labels = [ALL, *runs.cells(run.fingerprint).labels]
    with right, st.container(horizontal=True, vertical_alignment="bottom"):
        label = st.selectbox("Label", labels, key="train.label", width=180)
        st.toggle("Play", key="train.play", disabled=runs.is_held(run))
    points = histories.evolution(run, None if label == ALL else label)
    if not points.epochs:
        return
    option = evolution.evolution_option(points, run.config.epochs if runs.is_held(run) else 0)
    with left:
        st.echarts_chart(option, height=TALL, key="train.evolution")
        st.caption(_about_cells(points.n_cells, run))
    with right:
        every = PLAY_SECONDS if state.recall("train.play") and not runs.is_held(run) else None
        st.fragment(_draw_spread, run_every=every)(points, every is not None)


def _draw_spread(points: evolution.EvolutionPoints, plays: bool) -> None:
    epoch = _scrubbed(points.epochs, plays)
    if len(points.epochs) > 1:
        state.remember("train.epoch_shown", epoch)
        st.select_slider("Epoch", points.epochs, key="train.epoch_shown", on_change=on_scrub)
    st.echarts_chart(evolution.spread_option(points, epoch), height=TALL - 75, key="train.spread")


def _scrubbed(epochs: list[int], plays: bool) -> int:
    """Return the epoch to show: the last, unless someone went to another; playing goes on."""
    wanted = state.recall("train.scrubbed")
    if plays:
        at = epochs.index(wanted) if wanted in epochs else -1
        wanted = epochs[(at + 1) % len(epochs)]
        state.remember("train.scrubbed", wanted)
    return wanted if wanted in epochs else epochs[-1]


def _about_cells(n_cells: int, run: RunRow) -> str:
    n_all = len(runs.cells(run.fingerprint).rows)
    part = "" if n_cells >= n_all else f" of {n_all:,}"
    return f"{n_cells:,}{part} candidate cells."


def _draw_restless(run: RunRow, told: Story) -> None:
    """Draw the cells that moved most, each with its trail."""
    points = histories.restless(run)
    table = _cells_table(run, points.cells)
    table["trail"] = points.trails
    table["travelled"], table["changed sides"] = points.movement, points.crossings
    table["now"] = points.last
    trail = st.column_config.LineChartColumn(y_min=0, y_max=1, width="large")
    now = st.column_config.ProgressColumn(min_value=0, max_value=1, format="%.2f")
    st.caption("The candidate cells whose confidence travelled farthest, epoch by epoch.")
    cell_table(table, "train.restless", TALL, trail=trail, now=now)


def _draw_difference(run: RunRow, told: Story) -> None:
    """List the cells that differ most between two epochs."""
    epochs = list(range(1, len(runs.history(run.id)) + 1))
    if len(epochs) < 2:
        st.caption("Two epochs are needed.")
        return
    with st.container(horizontal=True, vertical_alignment="bottom"):
        first = st.selectbox("From epoch", epochs, 0, key="train.first", width=120)
        second = st.selectbox("to epoch", epochs[::-1], 0, key="train.second", width=120)
        points = evolution.difference_points(runs.history(run.id), first, second)
        st.caption(f"{points.n_changed:,} cells differ by 0.05 or more; the largest differences:")
    table = _cells_table(run, points.cells)
    table["before"], table["after"] = points.before.round(3), points.after.round(3)
    table["difference"] = (points.after - points.before).round(3)
    bar = st.column_config.ProgressColumn(min_value=0, max_value=1, format="%.2f")
    number = st.column_config.NumberColumn(format="%+.2f")
    cell_table(table, "train.difference", TALL, before=bar, after=bar, difference=number)


def _draw_cartography(run: RunRow, told: Story) -> None:
    """Draw every cell by mean confidence and variability; list those of a region."""
    statistics = histories.statistics(run)
    points = evolution.cartography_points(statistics, histories.truth_of_cells(run.fingerprint))
    left, right = st.columns([1.5, 1])
    with left:
        st.echarts_chart(evolution.cartography_option(points), height=TALL, key="train.cartography")
        st.caption(_about_cells(len(points.table), run))
    with right:
        mean = st.slider("Mean confidence", 0.0, 1.0, (0.3, 0.7), 0.01, key="train.mean")
        spread = st.slider("Variability", 0.0, 0.5, (0.05, 0.5), 0.01, key="train.variability")
        cells, n_inside = evolution.region_cells(statistics, mean, spread)
        st.caption(f"{n_inside:,} cells in this region, the most variable first")
        table = _cells_table(run, cells)
        table["mean"] = statistics.mean[cells].round(3)
        table["variability"] = statistics.variability[cells].round(3)
        cell_table(table, "train.region", TALL - 150)


def _draw_log(run: RunRow, told: Story) -> None:
    facts = {"run": run.id, "created": run.created, "started": run.started, "ended": run.ended}
    if told.started is not None:
        facts |= {"device": told.started.device, **told.started.versions}
    if told.graphs is not None:
        facts |= {"neighbour search": told.graphs.search, "edges": f"{told.graphs.n_edges:,}"}
    rows = [{"": name, "value": str(value or "…")} for name, value in facts.items()]
    settings = [
        {"setting": name, "value": str(value)} for name, value in run.config.model_dump().items()
    ]
    left, right = st.columns(2)
    left.dataframe(rows, hide_index=True, row_height=28, height=TALL, key="train.facts")
    right.dataframe(settings, hide_index=True, row_height=28, height=TALL, key="train.used")
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


# --- all runs ------------------------------------------------------------------------------------


def _draw_runs(fingerprint: str, run_id: str | None) -> None:
    rows = list_runs(fingerprint)
    if not rows:
        return
    st.subheader("Runs on this data")
    st.dataframe(
        pd.DataFrame([_run_row(run) for run in rows]),
        hide_index=True,
        row_height=28,
        height=min(260, 38 + 28 * len(rows)),
        key="train.runs",
        on_select=lambda: on_pick([run.id for run in rows]),
        selection_mode="single-row",
    )


def _run_row(run: RunRow) -> dict[str, Any]:
    """Return what the list says of a run; results only of one that has ended."""
    epochs = runs.story(run.id).epochs if run.state.is_ended else []
    scores = (epochs[-1].metrics or {}) if epochs else {}
    return {
        "run": runs.title(run),
        "state": runs.standing(run),
        "epochs": run.config.epochs,
        "loss": round(epochs[-1].loss, 4) if epochs else None,
        "AUC": scores.get("auc"),
        "F1": scores.get("f1"),
        "created": run.created[:16].replace("T", " "),
        "note": run.note[:200],
    }


def _draw_undo() -> None:
    deleted = state.recall("train.deleted")
    if deleted is None:
        return
    with st.container(horizontal=True, vertical_alignment="center", border=True, key="train.undo"):
        st.text(f"{deleted[1]} was deleted.")
        st.button("Undo", key="train.restore", on_click=on_restore, args=(deleted[0],))


def on_pick(ids: list[str]) -> None:
    """Open the run whose row was chosen."""
    picked = (state.recall("train.runs") or {}).get("selection", {}).get("rows", [])
    if picked and picked[0] < len(ids):
        state.choose(run_id=ids[picked[0]])


def on_new() -> None:
    state.forget("train.deleted")
    state.choose(run_id="")


def on_scrub() -> None:
    state.remember("train.scrubbed", state.recall("train.epoch_shown"))


def on_control(what: str, run_id: str) -> None:
    with _told_later():
        {"pause": runs.pause, "resume": runs.resume, "stop": runs.stop}[what](run_id)


def on_save(run_id: str) -> None:
    name, note = state.recall(f"train.rename_{run_id}"), state.recall(f"train.note_{run_id}")
    runs.rename(run_id, name or "", note or "")


def on_delete(run_id: str) -> None:
    """Hide the run; a bar offers to undo."""
    with _told_later():
        title = runs.title(runs.get(run_id))
        runs.delete(run_id)
        state.remember("train.deleted", (run_id, title))
        state.choose(run_id="")


def on_restore(run_id: str) -> None:
    runs.restore(run_id)
    state.forget("train.deleted")
    state.choose(run_id=run_id)


class _told_later:  # noqa: N801 - reads as a statement
    """Show on the page what a callback was refused."""

    def __enter__(self) -> None:
        state.forget("train.refusal")

    def __exit__(self, kind: Any, error: Any, trace: Any) -> bool:
        if isinstance(error, PlainError):
            st.toast(error.title, icon=":material/error:")
            return True
        return False


draw()
