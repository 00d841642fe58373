"""Train: set up a run, watch it live, and see afterwards what became of every cell."""

from typing import Any

import streamlit as st

from core.engine.config import PlainConfig
from core.errors import PlainError
from core.store import RunRow
from plain_app import state
from plain_app.charts.meanings import Sizes
from plain_app.services import runs
from plain_app.services.runs import FIELDS, RunEvents, Status
from plain_app.services.workspace import list_datasets
from plain_app.views.train.method import (
    chosen_method,
    draw_choice,
    draw_method_form,
    method_form_config,
)
from plain_app.views.train.run_list import draw_runs, draw_undo, on_delete, refusal_as_toast
from plain_app.views.train.sections import CHART, LOG, SECTIONS, draw_section, sections
from plain_app.views.train.settings import (
    draw_field,
    draw_form,
    form_config,
    widget_value,
)
from plain_app.widgets.audit import draw_audit_offer
from plain_app.widgets.empty import draw_lost, empty_state
from plain_app.widgets.errors import error_guard, show_error
from plain_app.widgets.figures import Figure, counted, duration, figure_row, state_badge
from plain_app.widgets.links import DATA
from plain_app.widgets.tabs import tab_bar

TICK_SECONDS = 1.0


def draw() -> None:
    """Draw a new run's settings, or the chosen run."""
    chosen = state.current()
    draw_undo()
    if chosen.fingerprint is None:
        text = "A run needs a data set. Load a file or the demo first."
        return empty_state("Nothing to train on yet", text, page=DATA, link="Go to Data")
    if chosen.run_id is None:
        _draw_new_run(chosen.fingerprint)
    else:
        _draw_run(chosen.run_id)
    return draw_runs(chosen.fingerprint)


# --- a new run ---------------------------------------------------------------------------------


def _draw_new_run(fingerprint: str) -> None:
    if runs.lost_data(fingerprint) is not None:
        return draw_lost(fingerprint)
    runs.get_ready()
    st.subheader("New run")
    with st.container(horizontal=True, vertical_alignment="bottom", key="train.new"):
        draw_choice()
        method = chosen_method()
        state.remember("train.preset", state.recall("train.preset") or runs.presets()[0])
        if method is None:
            st.segmented_control(
                "Preset",
                runs.presets(),
                key="train.preset",
                required=True,
                on_change=on_preset,
                help="studio: our defaults for cleaning labels. paper: faithful to the paper.",
            )
        st.text_input(
            "Name",
            key="train.name",
            max_chars=80,
            placeholder="optional",
            width=220,
            on_change="ignore",
        )
        if method is None:
            draw_field("epochs", _preset(), width=130)
        st.button(
            "Start training",
            key="train.start",
            type="primary",
            icon=":material/play_arrow:",
            on_click=on_start,
            args=(fingerprint,),
        )
        if method is None:
            _draw_estimate(fingerprint)
    _draw_refusal()
    if method is not None:
        return draw_method_form(method)
    return st.fragment(_draw_settings)(fingerprint)


def _draw_settings(fingerprint: str) -> None:
    """Draw the form once it was opened, and from then on: a field not drawn forgets its value."""
    title = "All settings, and what they do"
    with st.expander(title, key="train.settings", on_change="rerun") as box:
        if box.open or state.recall("train.form_drawn"):
            state.remember("train.form_drawn", True)
            draw_form(_preset(), _sizes(fingerprint))


def _draw_estimate(fingerprint: str) -> None:
    try:
        config = form_config(_preset())
    except PlainError:
        return  # Start training says what is wrong
    pace = runs.known_pace(fingerprint, config)
    if pace is not None:
        st.caption(f"about {duration(pace * config.epochs)}, as the last such run went")


def _draw_refusal() -> None:
    refusal = state.recall("train.refusal")
    if refusal is not None:
        show_error(PlainError(*refusal), "train.refused")


def _preset() -> PlainConfig:
    chosen = state.recall("train.preset")
    return runs.preset(chosen if chosen in runs.presets() else runs.presets()[0])


def _sizes(fingerprint: str) -> Sizes:
    row = next(row for row in list_datasets() if row.fingerprint == fingerprint)
    return Sizes(row.n_instances, row.n_features, row.n_labels)


def on_preset() -> None:
    """Show the values of the preset that was chosen."""
    config = _preset()
    for name in FIELDS:
        state.remember(f"train.{name}", widget_value(name, getattr(config, name)))


def on_start(fingerprint: str) -> None:
    """Start what the form says, or say why not."""
    state.forget("train.refusal", "train.deleted")
    try:
        method = chosen_method()
        made = form_config(_preset()) if method is None else method_form_config(method)
        name = (state.recall("train.name") or "").strip()
        run_id = runs.start(fingerprint, made, name or method or state.recall("train.preset"))
    except PlainError as error:
        state.remember("train.refusal", (error.title, error.detail, error.hint))
    else:
        state.choose(run_id=run_id)


# --- a run ---------------------------------------------------------------------------------------


def _draw_run(run_id: str) -> None:
    with error_guard("train.run"):
        run = runs.get(run_id)
        status = runs.status(run)
        _draw_head(run)
        every = TICK_SECONDS if status in runs.LIVE else None
        st.fragment(_draw_live, run_every=every)(run_id, status)


def _draw_head(run: RunRow) -> None:
    with st.container(horizontal=True, vertical_alignment="center", key="train.head"):
        with st.container(key="train.title", width="content"):
            st.text(runs.title(run))
        where = runs.elsewhere(run)
        if where is not None:
            st.badge(f"the files are on {where}", icon=":material/dns:", color="gray")
        with st.popover("Rename, note, delete", key="train.manage"):
            _draw_manage(run)
        st.button("New run", key="train.another", on_click=on_new, icon=":material/add:")
    if run.note:
        st.text(run.note)


def _draw_manage(run: RunRow) -> None:
    st.text_input("Name", run.name, key=f"train.rename_{run.id}", max_chars=80)
    st.text_area("Note", run.note, key=f"train.note_{run.id}", max_chars=2000)
    with st.container(horizontal=True):
        st.button("Save", key="train.save", on_click=on_save, args=(run.id,))
        st.button("Delete", key="train.delete", on_click=on_delete, args=([run.id],))


def _draw_live(run_id: str, before: Status) -> None:
    """Draw what changes while a run is at work; once a second then, else only when asked."""
    with error_guard("train.live"):
        run = runs.get(run_id)
        status = runs.status(run)
        if status == "queued":
            runs.start_queued()
        if status != before:
            runs.start_queued()
            st.rerun()  # the list of runs, too; the clock of this fragment starts or stops
        events = runs.events(run_id)
        _draw_progress(run, status, events)
        with st.container():  # places of their own: what follows stays where it is
            _draw_ending(run, status)
        with st.container():
            draw_audit_offer(run)
        if runs.lost_files(run) is not None:
            return draw_section(next(iter(SECTIONS)), run, events)  # the curves need no files
        shown = sections(run)
        key = "train.section" if shown == list(SECTIONS) else "train.section_at_once"
        section = tab_bar("Show", shown, key)
        with st.container():
            if not events.epochs and section != LOG:
                return _draw_waiting(run, status)
            return draw_section(section, run, events)


def _epochs_made(run: RunRow, status: Status) -> str:
    """Return the epochs made; a finished run may have needed fewer than its most."""
    made = f"{run.epoch:,}"
    return made if status == "finished" else f"{made} of {run.config.epochs:,}"


def _draw_progress(run: RunRow, status: Status, events: RunEvents) -> None:
    with st.container(horizontal=True, vertical_alignment="center", key="train.bar"):
        state_badge(status)
        share = 1.0 if status == "finished" else min(1.0, run.epoch / run.config.epochs)
        st.progress(share, text=_progress_text(run, status, events))
        _draw_controls(run, status)
    spent = runs.stage_seconds(events)
    last = events.epochs[-1] if events.epochs else None
    left = runs.seconds_left(run, events.epochs) if status == "running" else None
    ends = "time left" if status in runs.LIVE else "time in all"
    took = events.ended.seconds if events.ended else sum(spent.values())
    figures = [
        Figure("epoch", _epochs_made(run, status)),
        Figure(ends, duration(left if status in runs.LIVE else took)),
        Figure("graphs", _spent(spent, "graphs"), "Who is near, which labels go together"),
        *_learning(run, spent),
        Figure("propagate", _spent(spent, "propagate"), "Confidences through both graphs"),
        Figure("changed sides", "…" if last is None else f"{last.cells_changed:,}", CHANGED_HELP),
        _score(last),
    ]
    if status not in runs.LIVE:  # what is not there does not come any more
        figures = [one._replace(value=one.value.replace("…", "–")) for one in figures]
    figure_row(figures, "train.figures")
    if (cluster := runs.cluster_progress(run)) is not None:
        st.caption(f"Cluster {run.config.cluster}: {cluster.sentence}")


def _learning(run: RunRow, spent: dict[str, float]) -> list[Figure]:
    """Return what learning and predicting took, by what learns."""
    what, how = "network", "Fitting the pseudo-labels"
    if run.config.method is not None:
        what, how = run.config.method.name, "What learns in this run"
    return [
        Figure(what, _spent(spent, "train"), how),
        Figure("predict", _spent(spent, "predict"), "The view of every cell"),
    ]


CHANGED_HELP = "Candidate cells that crossed 0.5 in the last epoch"


def _score(last: Any) -> Figure:
    if last is None or not last.metrics:
        return Figure("entropy", "…" if last is None else f"{last.entropy:.3f}")
    about = "True above false candidates, all cells, in the last epoch"
    return Figure("AUC", f"{last.metrics['auc']:.3f}", about)


def _spent(spent: dict[str, float], stage: str) -> str:
    return duration(spent[stage]) if stage in spent else "…"


def _progress_text(run: RunRow, status: Status, events: RunEvents) -> str:
    if events.ended is not None:
        at_once = run.config.computes_at_once
        return "computed in one go" if at_once else counted(run.epoch, "epoch")
    if status == "queued":
        return "Waiting for its turn"
    if status != "running":
        return f"{_epochs_made(run, status)} epochs"
    if events.started is None:
        return "Loading the engine"
    return "Building graphs" if events.graphs is None else "Training"


def _draw_controls(run: RunRow, status: Status) -> None:
    is_asked = run.command is not None
    if status == "running":
        _control("Pause", "pause", run, disabled=is_asked)
    can_continue = status == "interrupted" and runs.elsewhere(run) is None
    if status == "paused" or can_continue:
        _control("Resume", "resume", run, type="primary")
    if status in runs.LIVE or can_continue:
        _control("Stop", "stop", run, disabled=run.command == "stop")


def _control(label: str, what: str, run: RunRow, **options: Any) -> None:
    st.button(label, key=f"train.{what}", on_click=on_control, args=(what, run.id), **options)


def _draw_ending(run: RunRow, status: Status) -> None:
    if status == "failed":
        why = PlainError(
            "This run failed.",
            run.error or "",
            "What its process printed is in Log; New run tries again.",
        )
        show_error(why, "train.failed", "failed")
    elif status == "interrupted":
        with st.container(border=True, key="train.interrupted"):
            st.badge("interrupted", color="orange", icon=":material/power_off:")
            st.text(_interruption(run))
            if runs.can_continue_here(run):
                st.button("Continue here", key="train.here", on_click=on_here, args=(run.id,))
    elif runs.lost_files(run) is not None:
        draw_lost(run.fingerprint, run)
        if runs.lost_data(run.fingerprint) is None:
            st.button("Train again", key="train.again", on_click=on_again, args=(run,))


def _interruption(run: RunRow) -> str:
    """Return why a run is interrupted, and what to do."""
    where = runs.elsewhere(run)
    if where is not None:
        here = " Here it can go on from its last checkpoint." if runs.can_continue_here(run) else ""
        return f"{where} has not been heard from for a while. The run can be resumed there.{here}"
    why = run.error or "Its process is gone: the machine was restarted, or it was killed."
    rest = "Resume goes on from the last checkpoint and ends as if nothing had happened."
    return f"{why}\n{rest}"


def _draw_waiting(run: RunRow, status: Status) -> None:
    where = runs.elsewhere(run)
    turn = "another run is at work" if where is None else f"{where} has its files and begins it"
    texts = {
        "queued": f"Waiting for its turn: {turn}.",
        "running": "Curves appear with the first epoch.",
        "paused": "Paused before its first epoch.",
        "interrupted": "Interrupted before its first epoch.",
    }
    tall: Any = 2 * CHART if status in runs.LIVE else "content"  # as high as the curves will be
    with st.container(border=True, height=tall, key="train.waiting"):
        st.caption(texts.get(status, "This run ended before its first epoch."))


def on_new() -> None:
    state.forget("train.deleted")
    state.choose(run_id="")


def on_here(run_id: str) -> None:
    """Let another machine's run go on here, and show it."""
    with refusal_as_toast():
        state.choose(run_id=runs.continue_here(run_id))


def on_again(run: RunRow) -> None:
    """Start a run with the settings of one whose files are gone."""
    with refusal_as_toast():
        state.choose(run_id=runs.start(run.fingerprint, run.config, run.name))


def on_control(what: str, run_id: str) -> None:
    with refusal_as_toast():
        {"pause": runs.pause, "resume": runs.resume, "stop": runs.stop}[what](run_id)


def on_save(run_id: str) -> None:
    name, note = state.recall(f"train.rename_{run_id}"), state.recall(f"train.note_{run_id}")
    runs.rename(run_id, name or "", note or "")


if __name__ == "__main__":
    draw()
