"""Rows of figures, badges of runs, and tables of cells."""

import re
from collections.abc import Callable, Sequence
from html import escape
from typing import Any, NamedTuple

import pandas as pd
import streamlit as st

from plain_app import state

COLOURS = {
    "queued": "gray",
    "running": "blue",
    "paused": "orange",
    "interrupted": "orange",
    "finished": "green",
    "stopped": "gray",
    "failed": "red",
}
ROW, PICTURE_ROW, HEAD, BAR = 28, 44, 36, 120  # pixels of tables


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


def cell_table(
    table: pd.DataFrame,
    key: str,
    height: int = 300,
    *,
    on_select: Callable[[], None] | None = None,
    alt: str = "",
    **kinds: str,
) -> None:
    """Draw rows about cells, some hundred at most; texts in it are data and stay text.

    A kind is bar (a value in [0, 1]), curve (some of them), link, picture, or how a number is
    written, such as `+.2f`. `on_select` is called when a row is chosen: `chosen_rows` says which.
    """
    numbers = {str(name): "," for name in table.select_dtypes("integer")}
    numbers |= {str(name): ".3f" for name in table.select_dtypes("floating")}
    columns = {name: _column(name, kind) for name, kind in (numbers | kinds).items()}
    tall = PICTURE_ROW if "picture" in kinds.values() and "picture" in table else ROW
    options: dict[str, Any] = {
        "hide_index": True,
        "row_height": tall,
        "height": min(height, HEAD + tall * max(len(table), 1)),
        "column_config": columns,
        "placeholder": "",
        "alt": alt or f"Table of {', '.join(map(str, table.columns))}",
    }
    if on_select is not None:
        st.dataframe(table, key=key, on_select=on_select, selection_mode="single-row", **options)
        return
    with st.container(key=key):  # a table alone has no place on the page by its key
        st.dataframe(table, **options)


def _column(name: str, kind: str) -> Any:
    """Return how a column of a kind is drawn."""
    config = st.column_config
    match kind:
        case "bar":
            return config.ProgressColumn(format="%.2f", min_value=0, max_value=1, width=BAR)
        case "curve":
            return config.LineChartColumn(y_min=0, y_max=1, width="medium")
        case "link":
            return config.LinkColumn("", display_text=name.capitalize(), width=70)
        case "picture":
            return config.ImageColumn("", width=52)
        case "," | ",.0f":
            return config.NumberColumn(format="localized")
    return config.NumberColumn(format=f"%{kind}")


def chosen_rows(key: str) -> list[int]:
    """Return the rows that are chosen in a table."""
    found: list[int] = (state.recall(key) or {}).get("selection", {}).get("rows", [])
    return found
