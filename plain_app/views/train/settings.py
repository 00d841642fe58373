"""The form of a run's settings, made from `PlainConfig`: symbol, range and help of each field."""

import math
from collections.abc import Mapping
from typing import Any

import streamlit as st

from core.engine.config import PlainConfig
from core.errors import ConfigError
from plain_app import state
from plain_app.charts.meanings import Sizes, meaning_option, meaning_points
from plain_app.services.runs import FIELDS

EXPLAINED = "train.explained"

EXPECTED, UNKNOWN = "expected_false", "don't know"
_EXPECTATIONS = {
    UNKNOWN: None,
    "few": (0.0, 0.05),
    "some": (0.05, 0.25),
    "half": (0.25, 0.6),
    "most": (0.6, 0.9),
}
"""About how many candidates are wrong, in words."""

_PLACED = {
    "Graphs": ("k", "rho"),
    "Propagation": ("alpha", "beta", "eta", "gamma", "n_steps", "balance", "disambiguation"),
    "Network": (
        *("loss", "hidden", "batch_size", "learning_rate"),
        *("momentum", "weight_decay", "standardize", "unit_rows"),
    ),
}
GROUPS: dict[str, tuple[str, ...]] = {
    **_PLACED,
    "Run": tuple(name for name in FIELDS if name not in sum(_PLACED.values(), ())),
}


def draw_form(preset: PlainConfig, sizes: Sizes) -> None:
    """Draw every setting but the epochs, by group, beside the picture of one of them."""
    form, picture = st.columns([3.2, 1.3], gap="medium")
    with form:
        for column, (group, names) in zip(st.columns(len(GROUPS)), GROUPS.items(), strict=True):
            with column:
                st.markdown(f"**{group}**")
                for name in names:
                    if name != "epochs":
                        draw_field(name, preset)
    with picture:
        _draw_meaning(preset, sizes)


def form_config(preset: PlainConfig) -> PlainConfig:
    """Return the settings that the form holds; the preset's where a field was not drawn yet.

    Raises
    ------
    ConfigError
        If they do not go together.
    """
    values = {
        name: field_value(
            name, state.recall(f"train.{name}", widget_value(name, getattr(preset, name)))
        )
        for name in FIELDS
    }
    return PlainConfig(**values)


def _draw_meaning(preset: PlainConfig, sizes: Sizes) -> None:
    """Draw what a setting does, at the values of the form: the one that was changed last."""
    state.remember(EXPLAINED, state.recall(EXPLAINED) or next(iter(GROUPS["Propagation"])))
    name = st.selectbox("What does this do?", list(FIELDS), format_func=_label, key=EXPLAINED)
    try:
        points = meaning_points(name, form_config(preset), sizes)
    except ConfigError as error:
        st.text(error.detail)
        return
    st.echarts_chart(meaning_option(points), height=230, key="train.meaning", alt=points.text)
    st.caption(points.text)


def on_change(name: str) -> None:
    """Explain the setting that is being changed."""
    state.remember(EXPLAINED, name)


def draw_field(name: str, preset: PlainConfig, width: Any = "stretch") -> None:
    """Draw one setting under the key `train.<name>`; it starts at the preset's value."""
    start = widget_value(name, getattr(preset, name))
    schema = _number_or(FIELDS[name])
    common = {
        "label": _label(name),
        "key": f"train.{name}",
        "help": _help(name),
        "width": width,
        "on_change": on_change,
        "args": (name,),
    }
    if name == EXPECTED:
        st.selectbox(options=list(_EXPECTATIONS), **common)
    elif "enum" in schema:
        st.selectbox(options=schema["enum"], index=schema["enum"].index(start), **common)
    elif schema.get("type") == "boolean":
        st.toggle(value=start, **common)
    elif schema.get("type") in ("integer", "number"):
        none = _PLACEHOLDERS.get(name, "none")
        st.number_input(value=start, **common, **_range(schema, start), placeholder=none)
    else:
        st.text_input(value=start or "", **common, placeholder=_PLACEHOLDERS.get(name, ""))


def widget_value(name: str, value: Any) -> Any:
    """Return a setting as its widget holds it."""
    if name == EXPECTED:
        return next((text for text, range_ in _EXPECTATIONS.items() if range_ == value), UNKNOWN)
    return ", ".join(map(str, value)) if isinstance(value, tuple) else value


def field_value(name: str, value: Any) -> Any:
    """Return what a widget holds as a setting."""
    if name == EXPECTED:
        return _EXPECTATIONS.get(value)
    if name == "cluster":
        return (value or "").strip() or None
    if name != "hidden":
        return value
    try:
        return tuple(int(part) for part in (value or "").split(",") if part.strip()) or None
    except ValueError:
        must = f"hidden: must be two whole numbers; got {value!r}"
        raise ConfigError("A setting is not valid.", must, "For example: 64, 64") from None


_PLACEHOLDERS = {"hidden": "by labels", "cluster": "tls://host:8786", "n_steps": "converged"}


def _number_or(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the part of "a number or none" that has the range."""
    return next(iter(schema.get("anyOf", [])), schema)


def _label(name: str) -> str:
    symbol = FIELDS[name].get("symbol")
    text = name.replace("_", " ")
    return f"{symbol} · {text}" if symbol and symbol != name else text


def _help(name: str) -> str:
    schema = _number_or(FIELDS[name])
    low = schema.get("minimum", schema.get("exclusiveMinimum"))
    high = schema.get("maximum", schema.get("exclusiveMaximum"))
    limits = f" From {low:g} to {high:g}." if low is not None and high is not None else ""
    return f"{FIELDS[name].get('description', '')}{limits}"


def _range(schema: Mapping[str, Any], start: float | None) -> dict[str, Any]:
    """Return limits and step of a number; the step is a small part of the preset's value."""
    whole = schema["type"] == "integer"
    kind = int if whole else float
    low = schema.get("minimum", schema.get("exclusiveMinimum"))
    high = schema.get("maximum", schema.get("exclusiveMaximum"))
    small = 10.0 ** (math.floor(math.log10(abs(start))) - 1) if start else 0.01
    step = {"step": 1} if whole else {"format": "%g", "step": small}
    limits = {"min_value": low, "max_value": high}
    return step | {name: kind(value) for name, value in limits.items() if value is not None}
