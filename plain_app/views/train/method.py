"""Another method than PLAIN: chosen beside the presets, with a form made from what it declares."""

from typing import Any

import streamlit as st

from core.engine.config import PlainConfig
from core.methods.choice import MethodForm, MethodSetting
from plain_app import state
from plain_app.services import runs
from plain_app.views.train.settings import draw_field, field_value, widget_value

METHOD, PLAIN = "train.method", "PLAIN"
_OF_THE_RUN = ("expected_false", "seed")
N_COLUMNS = 4


def chosen_method() -> str | None:
    """Return the method that is chosen for a new run; none is PLAIN."""
    chosen = state.recall(METHOD)
    return chosen if chosen in runs.other_methods() else None


def draw_choice() -> None:
    """Let choose what learns."""
    state.remember(METHOD, chosen_method() or PLAIN)
    st.selectbox(
        "Method",
        [PLAIN, *runs.other_methods()],
        key=METHOD,
        width=170,
        help="PLAIN with a preset, or another method from the literature. Those called -style are "
        "as far as they are known.",
    )


def draw_method_form(name: str) -> None:
    """Draw what the method assumes, its settings, and what such a run is like."""
    form = runs.method_form(name)
    with st.container(border=True, key="train.method_form"):
        st.markdown(f"**{name}** assumes: {form.assumes}")
        columns = st.columns(N_COLUMNS)
        for at, one in enumerate(form.settings):
            with columns[at % N_COLUMNS]:
                _draw_setting(name, one)
        for at, field in enumerate(_OF_THE_RUN, start=len(form.settings)):
            with columns[at % N_COLUMNS]:
                draw_field(field, runs.preset(runs.presets()[0]))
        st.caption(_about(form))


def method_form_config(name: str) -> PlainConfig:
    """Return the configuration that the form holds.

    Raises
    ------
    ConfigError
        If a value cannot be.
    """
    values = {
        one.name: state.recall(_key(name, one.name), one.default)
        for one in runs.method_form(name).settings
    }
    plain = runs.preset(runs.presets()[0])
    of_run = {
        field: field_value(
            field, state.recall(f"train.{field}", widget_value(field, getattr(plain, field)))
        )
        for field in _OF_THE_RUN
    }
    return runs.method_config(name, values | of_run)


def _draw_setting(method: str, one: MethodSetting) -> None:
    key = _key(method, one.name)
    if one.choices:
        at = one.choices.index(one.default)
        st.selectbox(one.name, one.choices, index=at, key=key, help=one.help)
        return
    assert one.low is not None
    assert one.high is not None
    kind: Any = int if one.is_whole else float
    st.number_input(
        one.name,
        min_value=kind(one.low),
        max_value=kind(one.high),
        value=kind(one.default),
        step=1 if one.is_whole else max(one.default / 10, 1e-6),
        format="%d" if one.is_whole else "%g",
        key=key,
        help=f"{one.help} From {one.low:g} to {one.high:g}.",
    )


def _about(form: MethodForm) -> str:
    steps = (
        "It iterates: an epoch is one of its steps, and a run goes on from its last checkpoint."
        if form.iterates
        else "It computes in one go, without epochs; an interrupted run begins anew."
    )
    needs = (
        " It learns from instances whose candidates you decided, all of them: review some first."
        if form.needs_verified
        else ""
    )
    return (
        f"{steps}{needs} Its numbers become confidences as those of any run do: a candidate is "
        "taken away only where every reading of the data says so."
    )


def _key(method: str, setting: str) -> str:
    return f"train.{method}.{setting}"
