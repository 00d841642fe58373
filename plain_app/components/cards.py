"""Rows of figures, badges of runs, and tables of cells."""

from collections.abc import Sequence
from html import escape
from typing import Any, NamedTuple

import pandas as pd
import streamlit as st

COLOURS = {
    "queued": "gray",
    "running": "blue",
    "paused": "orange",
    "interrupted": "orange",
    "finished": "green",
    "stopped": "gray",
    "failed": "red",
}
ROW = 28


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


def state_badge(standing: str) -> None:
    """Draw a run's state."""
    st.badge(standing, color=COLOURS.get(standing, "gray"))


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


def cell_table(table: pd.DataFrame, key: str, height: int = 300, **columns: Any) -> None:
    """Draw rows about cells; texts in it are data and stay text."""
    text = {
        name: st.column_config.TextColumn(width="small")
        for name in ("instance", "label")
        if name in table
    }
    with st.container(key=key):
        st.dataframe(
            table,
            hide_index=True,
            height=height,
            row_height=ROW,
            column_config={**text, **columns},
            key=f"{key}_rows",
        )
