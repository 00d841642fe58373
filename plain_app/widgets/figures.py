"""Rows of figures, badges of runs, and how counts and times are written."""

import re
from collections.abc import Sequence
from html import escape
from typing import Literal, NamedTuple

import streamlit as st

Colour = Literal["gray", "blue", "orange", "green", "red"]
COLOURS: dict[str, Colour] = {
    "queued": "gray",
    "running": "blue",
    "paused": "orange",
    "interrupted": "orange",
    "finished": "green",
    "stopped": "gray",
    "failed": "red",
}


class Figure(NamedTuple):
    """One number with its name; help says what it means."""

    label: str
    value: str
    help: str | None = None


def figure_row(figures: Sequence[Figure], key: str) -> None:
    """Draw figures side by side, as one element: they may change every second."""
    cells = "".join(
        f'<div title="{escape(one.help or "")}"><span>{escape(one.label)}</span>'
        f"<b>{escape(one.value)}</b></div>"
        for one in figures
    )
    with st.container(key=key):
        st.html(f'<div class="figures">{cells}</div>')


def text_caption(text: str) -> None:
    """Draw a caption that holds data: it stays text, whatever Markdown it looks like."""
    st.caption(re.sub(r"([!-/:-@\[-`{-~])", r"\\\1", text))


def state_badge(status: str) -> None:
    """Draw a run's state."""
    st.badge(status, color=COLOURS.get(status, "gray"))


def duration(seconds: float | None) -> str:
    """Return seconds as a person says them."""
    if seconds is None:
        return "…"
    if seconds < 60:
        return f"{seconds:.0f} s" if seconds >= 10 else f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    return f"{minutes // 60} h {minutes % 60:02d} min"


def counted(count: int, what: str) -> str:
    """Return a number of things as a person says it."""
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def listed(count: int, limit: int) -> str:
    """Return what to add where not all are listed."""
    return f"; the first {limit} are listed" if count > limit else ""
