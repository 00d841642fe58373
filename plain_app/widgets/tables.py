"""Tables of cells and instances as `st.dataframe`: bars, curves, links and pictures by column."""

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any

import pandas as pd
import streamlit as st

from plain_app import state

ROW, PICTURE_ROW, HEAD, BAR, CURVE = 28, 44, 36, 90, 70  # pixels
NAME, LONG_NAME = 160, 20  # pixels of a column of names, and the characters that need it
MAX_PICTURE = 20_000  # characters of a data URI: larger ones are left out of long tables


def cell_table(
    table: pd.DataFrame,
    key: str,
    height: int = 300,
    kinds: Mapping[str, str] = MappingProxyType({}),
    *,
    on_select: Callable[[], None] | None = None,
    alt: str = "",
) -> None:
    """Draw rows about cells, some hundred at most; texts in it are data and stay text.

    A kind is name (labels always are), bar (a value in [0, 1]), curve (some of them), link,
    picture, or how a number is written, such as `+.2f`. `on_select` is called when a row is chosen:
    `chosen_rows` says which.
    """
    numbers = {str(name): "," for name in table.select_dtypes("integer")}
    numbers |= {str(name): ".3f" for name in table.select_dtypes("floating")}
    columns = {name: _column(name, kind) for name, kind in {**numbers, **kinds}.items()}
    names = [name for name in table if name == "label" or kinds.get(str(name)) == "name"]
    columns |= {name: name_column(table[name]) for name in names}
    has_pictures = any(kinds.get(str(name)) == "picture" for name in table)
    tall = PICTURE_ROW if has_pictures else ROW
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


def name_column(names: Iterable[str]) -> Any:
    """Return a column of names; long ones leave room for what stands beside them."""
    longest = max(map(len, names), default=0)
    return st.column_config.TextColumn(width=NAME if longest > LONG_NAME else None)


def _column(name: str, kind: str) -> Any:
    """Return how a column of a kind is drawn."""
    config = st.column_config
    match kind:
        case "bar":
            return config.ProgressColumn(format="%.2f", min_value=0, max_value=1, width=BAR)
        case "curve":
            return config.LineChartColumn(y_min=0, y_max=1, width=CURVE)
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
