"""The search: choose a study or set up one, watch it live, go from its trials to runs."""

from typing import Any

import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from core.errors import PlainError
from core.tuning import Study, Trial
from plain_app import state
from plain_app.charts import setting_text
from plain_app.charts import study as charts
from plain_app.services import runs, studies
from plain_app.services.studies import title
from plain_app.views.tune.new_study import (
    PICKED,
    REFUSAL,
    STUDY,
    draw_new_study,
    draw_one_click,
)
from plain_app.widgets import links
from plain_app.widgets.errors import error_guard, show_error
from plain_app.widgets.figures import Figure, counted, duration, figure_row, state_badge
from plain_app.widgets.tables import chosen_rows

TICK_SECONDS = 2.0
STATUS_TEXTS = {"working": "running"}  # as the badges of runs say it


def draw_search(fingerprint: str) -> None:
    """Draw the studies on a data set and the chosen one."""
    rows = {row.id: row for row in studies.list_studies(fingerprint)}
    _restore(list(rows))
    _open_asked()
    with st.container(horizontal=True, vertical_alignment="bottom", key="tune.head"):
        st.selectbox(
            "Study",
            ["", *rows],
            format_func=lambda one: title(rows[one])[:60] if one in rows else "new study",
            key=STUDY,
            width=240,
            on_change=on_study,
        )
        draw_one_click(fingerprint)
    refusal = state.recall(REFUSAL)
    if refusal is not None:
        show_error(PlainError(*refusal), "tune.study_refused")
    chosen = state.recall(STUDY)
    if chosen:
        _draw_study(chosen)
    else:
        draw_new_study(fingerprint)


def _restore(ids: list[str]) -> None:
    """Take the study of the address in a new session, and keep the address right."""
    if state.recall(STUDY) is None:
        state.remember(STUDY, st.query_params.get("study", ""))
    if state.recall(STUDY) not in ids:
        state.remember(STUDY, "")
    if state.recall(STUDY):
        st.query_params["study"] = state.recall(STUDY)
    elif "study" in st.query_params:
        del st.query_params["study"]


def _open_asked() -> None:
    """Open the trial that a link names as a run."""
    number = st.query_params.get("open", "")
    if not number:
        return
    del st.query_params["open"]
    if state.recall(STUDY) and number.isdecimal():
        study = studies.read(state.recall(STUDY))
        for trial in study.trials:
            if trial.number == int(number):
                _open_run(study, trial)


def _open_run(study: Study, trial: Trial) -> None:
    links.open_run(studies.open_run(study, trial))


def on_study() -> None:
    state.forget(REFUSAL, PICKED)


# --- a study -------------------------------------------------------------------------------------


def _draw_study(study_id: str) -> None:
    with error_guard("tune.study"):
        is_live = studies.read(study_id).status == "working"
        st.fragment(_draw_live, run_every=TICK_SECONDS if is_live else None)(study_id, is_live)


def _draw_live(study_id: str, was_live: bool) -> None:
    """Draw what changes while a study is at work."""
    with error_guard("tune.live"):
        study = studies.read(study_id)
        if was_live != (study.status == "working"):
            st.rerun()
        _draw_progress(study)
        if not study.finished:
            with st.container(border=True, height=charts.HEIGHT, key="tune.waiting"):
                st.caption(_waiting(study))
            return
        part = st.segmented_control(
            "Plot",
            list(PLOTS),
            key="tune.plot",
            default="History",
            required=True,
            label_visibility="collapsed",
        )
        PLOTS[part or "History"](study)
        _draw_trials(study)


def _waiting(study: Study) -> str:
    if study.status == "working":
        return "Plots appear with the first finished trial."
    return f"No trial has finished. {studies.worker_log(study.row.id, 400)}"


def _draw_progress(study: Study) -> None:
    settings, best = study.settings, study.best
    with st.container(horizontal=True, vertical_alignment="center", key="tune.bar"):
        state_badge(STATUS_TEXTS.get(study.status, study.status))
        total = settings.n_trials
        part = study.n_done / total if total else 0.0
        st.progress(min(1.0, part), text=f"{study.n_done} of {total or '…'} trials")
        if study.status == "working":
            st.button("Stop", key="tune.stop", on_click=studies.stop, args=(study.row.id,))
        elif study.status in ("stopped", "interrupted"):
            st.button(
                "Resume",
                key="tune.resume",
                type="primary",
                on_click=on_resume,
                args=(study.row.id,),
            )
    first = next((one for one in study.finished if one.number == 0), None)
    spent = sum(one.seconds or 0 for one in study.trials)
    is_grid = bool(settings.points)
    figures = [
        Figure("finished", str(len(study.finished))),
        Figure("pruned", str(study.n_done - len(study.finished)), "Ended early, behind the others"),
        Figure("time of trials", duration(spent)),
        Figure("best, tuned on", _number(best and best.value), _words(best)),
        Figure("best, held out", _number(best and best.reported), "On cells nothing was chosen by"),
    ]
    if first is not None and not is_grid:
        figures.append(Figure("preset, held out", _number(first.reported), _words(first)))
    figure_row(figures, "tune.study_figures")
    st.caption(studies.explain(settings.objective, study.row.fingerprint))


def _number(value: float | None) -> str:
    return "…" if value is None else f"{value:.4f}"


def _words(trial: Trial | None) -> str | None:
    return None if trial is None else f"Trial {trial.number}: {charts.words(trial)}"


def _plot(figure: go.Figure, key: str) -> None:
    """Draw a figure whose points are trials; what is lassoed or clicked is listed below."""
    st.plotly_chart(
        figure,
        key=key,
        on_select=lambda: on_pick(key),
        selection_mode=("points", "box", "lasso"),
        alt=f"Trials of the study: {key.partition('.')[2]}",
        config={"displaylogo": False, "modeBarButtonsToRemove": ["autoScale2d"]},
    )


def _draw_history(study: Study) -> None:
    _plot(charts.history_figure(charts.history_points(study)), "tune.history")


def _draw_curves(study: Study) -> None:
    figure = charts.curves_figure(charts.curves_points(study))
    st.plotly_chart(figure, key="tune.curves", alt="Learning curves of the trials")


def _draw_slice(study: Study) -> None:
    _plot(charts.slice_figure(charts.setting_points(study)), "tune.slice")


def _draw_parallel(study: Study) -> None:
    _plot(charts.parallel_figure(charts.setting_points(study)), "tune.parallel")


def _draw_importance(study: Study) -> None:
    shares = studies.importances(study)
    if not shares:
        st.caption("Importance needs a few finished trials that differ.")
        return
    figure = charts.importance_figure(shares)
    st.plotly_chart(figure, key="tune.importance", alt="How much each setting matters")
    st.caption("How much each setting decides whether a trial is among the best (PED-ANOVA).")


def _draw_contour(study: Study) -> None:
    names = [one.name for one in study.settings.parameters]
    if len(names) < 2:
        st.caption("A contour needs two searched settings.")
        return
    with st.container(horizontal=True):
        x = st.selectbox("Across", names, 0, key="tune.contour_x", width=180)
        others = [name for name in names if name != x]
        y = st.selectbox("Up", others, 0, key="tune.contour_y", width=180)
    _plot(charts.contour_figure(charts.contour_points(study, x, y)), "tune.contour")


def _draw_pareto(study: Study) -> None:
    with st.container(horizontal=True):
        x = st.selectbox("Across", ["smoothness", "seconds"], 0, key="tune.pareto_x", width=180)
    _plot(charts.pareto_figure(charts.pareto_points(study, x)), "tune.pareto")


def _draw_robustness(study: Study) -> None:
    found = studies.badges(study)
    total = max(found.robust_true + found.robust_false + found.depends, 1)
    figures = [
        Figure("good trials", str(found.n_trials), "The best quarter, five at least"),
        Figure("robust true", _share(found.robust_true, total), "Nine of ten good trials keep it"),
        Figure("robust false", _share(found.robust_false, total), "Nine of ten reject it"),
        Figure("depends", _share(found.depends, total), "It depends on a setting"),
    ]
    figure_row(figures, "tune.robustness")
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption(
            "Cells that depend on a setting are worth a person's look: in Review, the order "
            "“Depends on settings” asks for them first."
        )
        if found.depends:
            links.open_in_review(lambda: studies.depending(study), "tune.review_depends")


def _share(count: int, total: int) -> str:
    return f"{count:,} · {100 * count / total:.0f}%"


PLOTS = {
    "History": _draw_history,
    "Learning curves": _draw_curves,
    "By setting": _draw_slice,
    "Parallel": _draw_parallel,
    "Contour": _draw_contour,
    "Importance": _draw_importance,
    "Two measures": _draw_pareto,
    "Robustness": _draw_robustness,
}


# --- its trials ----------------------------------------------------------------------------------


def _draw_trials(study: Study) -> None:
    """List the lassoed trials, or the best ones; go on with those chosen in the list."""
    picked = set(state.recall(PICKED) or ())
    listed = [one for one in study.trials if one.number in picked] or study.good
    what = f"{counted(len(listed), 'trial')} picked in the plot" if picked else "The best trials"
    with st.container(horizontal=True, vertical_alignment="center", key="tune.picked_bar"):
        st.caption(what)
        if picked:
            st.button("Clear", key="tune.clear", type="tertiary", on_click=on_clear)
        _draw_trial_actions(study, listed)
    table = pd.DataFrame([_trial_row(study, one) for one in listed])
    st.dataframe(
        table,
        hide_index=True,
        row_height=28,
        height=min(38 + 28 * len(table), 280),
        key="tune.trials_table",
        on_select="rerun",
        selection_mode="multi-row",
        alt="Trials with their settings and results",
        column_config={
            "value": st.column_config.NumberColumn(format="%.4f"),
            "run": st.column_config.LinkColumn("", display_text="Open as run", width=90),
        },
    )


def _draw_trial_actions(study: Study, listed: list[Trial]) -> None:
    rows = chosen_rows("tune.trials_table")
    chosen = [listed[at] for at in rows if at < len(listed)] or listed
    one = chosen[0]
    done = [trial for trial in chosen if trial.state == "finished"][:8]
    if st.button(
        f"Open trial {one.number} as a run", key="tune.open", icon=":material/open_in_new:"
    ):
        _open_run(study, one)
    if len(done) > 1 and st.button(f"Compare {len(done)}", key="tune.compare"):
        links.open_comparison([f"{study.row.id}.{trial.number}" for trial in done])
    title_ = f"Save trial {one.number} as preset"
    with st.popover(title_, key="tune.save_trial"):
        st.text_input("Name", key="tune.trial_preset", max_chars=80)
        st.button("Save", key="tune.save_trial_preset", on_click=on_save, args=(study, one))
    st.download_button(
        "Report",
        lambda: studies.report(study.row.id),
        f"study-{study.row.id}.html",
        "text/html",
        key="tune.report",
        help="One HTML file with all plots",
    )


def _trial_row(study: Study, trial: Trial) -> dict[str, Any]:
    return {
        "trial": trial.number,
        "state": trial.state,
        "value": trial.value,
        **{name: setting_text(name, value) for name, value in trial.values.items()},
        "smoothness": None if trial.smoothness is None else round(trial.smoothness, 4),
        "seconds": None if trial.seconds is None else round(trial.seconds, 1),
        "note": trial.note[:200],
        "run": links.trial_address(study.row.id, trial.number),
    }


def on_pick(key: str) -> None:
    """List the trials that were lassoed or clicked."""
    points = (state.recall(key) or {}).get("selection", {}).get("points", [])
    numbers = {_number_of(one.get("customdata")) for one in points} - {None}
    state.remember(PICKED, sorted(numbers))


def _number_of(data: Any) -> int | None:
    data = next(iter(data.values()), None) if isinstance(data, dict) else data
    data = data[0] if isinstance(data, list) and data else data
    return int(data) if isinstance(data, int | float) else None


def on_clear() -> None:
    state.forget(
        PICKED, "tune.history", "tune.slice", "tune.parallel", "tune.contour", "tune.pareto"
    )


def on_resume(study_id: str) -> None:
    studies.resume(study_id)


def on_save(study: Study, trial: Trial) -> None:
    try:
        runs.save_preset(
            str(state.recall("tune.trial_preset") or ""), studies.config_of(study, trial)
        )
    except PlainError as error:
        st.toast(error.title, icon=":material/error:")
    else:
        st.toast("Saved: it is among the presets in Train.", icon=":material/check:")
