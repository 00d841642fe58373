"""Rows of figures, badges of runs, and tables of cells."""

from collections.abc import Sequence
from html import escape
from typing import Any, NamedTuple

import pandas as pd
import streamlit as st

from plain_app.components.rows import Column, Kind, draw_rows

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


def draw_files(files: Sequence[tuple[str, str]], key: str) -> None:
    """Draw how files begin, by name and text; both are data and stay text."""
    each = (f"<span>{escape(name)}</span><pre>{escape(text)}</pre>" for name, text in files)
    with st.container(key=key):
        st.html(f'<div class="files">{"".join(each)}</div>')


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


def cell_table(table: pd.DataFrame, key: str, height: int = 300, **kinds: str) -> None:
    """Draw rows about cells, some hundred at most; texts in it are data and stay text.

    A kind is one of `rows`, or how a number is written, such as `+.2f`.
    """
    written = {name: _written(values, kinds.get(str(name), "")) for name, values in table.items()}
    columns = [
        Column("" if kind in ("link", "picture") else str(name), kind)
        for name, (kind, _) in written.items()
    ]
    rows = list(zip(*(cells for _, cells in written.values()), strict=True))
    draw_rows(columns, rows, key, can_sort=True, height=height)


def _written(values: "pd.Series[Any]", how: Any) -> tuple[Kind, list[Any]]:
    """Return the kind of a column and its cells as the table takes them."""
    if how in ("curve", "link", "picture"):
        return how, values.tolist()
    known = [None if one != one else one for one in values.tolist()]  # a NaN is not itself
    if how == "bar":
        return "bar", known
    if how or (known and pd.api.types.is_numeric_dtype(values)):
        how = how or ("," if pd.api.types.is_integer_dtype(values) else ".3f")
        return "number", ["" if one is None else format(one, how) for one in known]
    return "text", ["" if one is None else str(one) for one in known]
