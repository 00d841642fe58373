"""A new study: what to search, where, how to judge it; or one of the paper's, with one click."""

from typing import Any

import pandas as pd
import streamlit as st

from core.engine.config import PlainConfig
from core.errors import PlainError
from core.tuning import PAPER_GRID, RANGES_OF, SENSITIVITY, Parameter, StudySettings
from core.tuning.space import sensitivity
from plain_app import state
from plain_app.services import runs, studies
from plain_app.services.runs import FIELDS

STUDY, PICKED, REFUSAL = "tune.study", "tune.picked", "tune.refusal"
ONE_CLICK = {
    "gamma": "γ sensitivity",
    "n_steps": "T sensitivity",
    "k": "k sensitivity",
    "loss": "Four losses",
}
OBJECTIVES = {
    "truth": "truth",
    "decisions": "decisions of people",
    "consistency": "consistency with candidates",
}


def draw_one_click(fingerprint: str) -> None:
    """Offer the paper's own studies."""
    for name, text in ONE_CLICK.items():
        st.button(
            text,
            key=f"tune.click_{name}",
            help=f"Try {len(SENSITIVITY[name])} values of one setting, all else as in the preset: "
            "the paper's Figure 2 and Appendix B.",
            on_click=on_one_click,
            args=(fingerprint, name),
        )


def draw_new_study(fingerprint: str) -> None:
    """Draw the form of a study: what is searched, how it is judged, how long."""
    st.subheader("New study")
    judges = studies.objectives(fingerprint)
    with st.container(horizontal=True, vertical_alignment="bottom", key="tune.new"):
        later: dict[str, Any] = {"on_change": "ignore"}  # read when the search is started
        presets = runs.presets()
        st.selectbox("Start from", presets, key="tune.base", width=120, help=_BASE_HELP, **later)
        st.selectbox(
            "Judge by", judges, format_func=OBJECTIVES.__getitem__, key="tune.judge", width=190
        )
        st.number_input("Trials", 1, 10_000, 30, key="tune.trials", width=100, **later)
        st.number_input(
            "Minutes",
            *(0.0, 1e4, 0.0, 1.0, "%g"),
            key="tune.minutes",
            width=110,
            help=_TIME_HELP,
            **later,
        )
        cores = studies.n_cores()
        st.number_input(
            "At once", 1, 64, cores, key="tune.workers", width=110, help=_WORKERS_HELP, **later
        )
        st.toggle("Prune", True, key="tune.prune", help=_PRUNE_HELP, **later)
        st.text_input(
            "Name", key="tune.name", max_chars=80, placeholder="optional", width=120, **later
        )
        st.button(
            "Start the search",
            key="tune.start",
            type="primary",
            icon=":material/search:",
            on_click=on_start,
            args=(fingerprint,),
        )
    st.caption(studies.explain(state.recall("tune.judge") or judges[0], fingerprint))
    names = st.multiselect(
        "Settings to search",
        list(RANGES_OF),
        default=list(PAPER_GRID),
        key="tune.searched",
        format_func=_label,
        help="The paper tunes α, β and η; these are its ranges.",
    )
    if names:
        _draw_ranges(names)


_BASE_HELP = (
    "Settings that are not searched are the preset's; its own settings are the first trial."
)
_PRUNE_HELP = "End trials early that fall behind."
_TIME_HELP = "0 searches until all trials are done."
_WORKERS_HELP = "Processes; one per core is best."


def _draw_ranges(names: list[str]) -> None:
    """Let change where each setting is searched."""
    rows = [_range_row(name) for name in names]
    st.data_editor(
        pd.DataFrame(rows),
        hide_index=True,
        disabled=["setting"],
        alt="Where each setting is searched",
        key=f"tune.ranges_{'_'.join(names)}",
        row_height=30,
        column_config={
            "setting": st.column_config.TextColumn(width="small"),
            "from": st.column_config.NumberColumn(format="%g", width="small"),
            "to": st.column_config.NumberColumn(format="%g", width="small"),
            "logarithmic": st.column_config.CheckboxColumn(width="small"),
            "choices": st.column_config.TextColumn(help="Comma-separated, instead of a range"),
        },
    )


def _range_row(name: str) -> dict[str, Any]:
    known = RANGES_OF[name]
    return {
        "setting": name,
        "from": known.get("low"),
        "to": known.get("high"),
        "logarithmic": bool(known.get("log")),
        "choices": ", ".join(map(str, known.get("choices", ()))),
    }


def _parameters() -> tuple[Parameter, ...]:
    """Return what the form says is searched."""
    names = list(state.recall("tune.searched", list(PAPER_GRID)))
    edited = (state.recall(f"tune.ranges_{'_'.join(names)}") or {}).get("edited_rows", {})
    found = []
    for at, name in enumerate(names):
        row = _range_row(name) | edited.get(at, {})
        choices = tuple(
            _choice(name, one) for one in (row["choices"] or "").split(",") if one.strip()
        )
        limits = (
            {} if choices else {"low": row["from"], "high": row["to"], "log": row["logarithmic"]}
        )
        found.append(Parameter(name=name, choices=choices, **limits))
    return tuple(found)


def _choice(name: str, text: str) -> Any:
    text = text.strip()
    if text.lower() in ("none", "converged"):
        return "none" if name in ("balance", "disambiguation") else None
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        return text


def _label(name: str) -> str:
    symbol = FIELDS[name].get("symbol")
    return f"{symbol} · {name}" if symbol and symbol != name else name


def _base() -> PlainConfig:
    known = runs.presets()
    chosen = state.recall("tune.base")
    return runs.preset(chosen if chosen in known else known[0])


def on_start(fingerprint: str) -> None:
    """Start what the form says, or say why not."""
    minutes = float(state.recall("tune.minutes") or 0)
    judge = state.recall("tune.judge") or studies.objectives(fingerprint)[0]

    def settings() -> StudySettings:
        return StudySettings(
            base=_base(),
            parameters=_parameters(),
            objective=judge,
            n_trials=int(state.recall("tune.trials") or 30),
            timeout=60 * minutes or None,
            prune=bool(state.recall("tune.prune", True)),
            n_workers=int(state.recall("tune.workers") or studies.n_cores()),
        )

    _start(fingerprint, settings, str(state.recall("tune.name") or "").strip() or "search")


def on_one_click(fingerprint: str, name: str) -> None:
    """Start one of the paper's studies."""
    judge = studies.objectives(fingerprint)[0]
    more = {"n_workers": min(studies.n_cores(), len(SENSITIVITY[name]))}
    _start(fingerprint, lambda: sensitivity(name, _base(), judge, **more), ONE_CLICK[name])


def _start(fingerprint: str, settings: Any, name: str) -> None:
    state.forget(REFUSAL, PICKED)
    try:
        state.remember(STUDY, studies.start(fingerprint, settings(), name))
    except PlainError as error:
        state.remember(REFUSAL, (error.title, error.detail, error.hint))
