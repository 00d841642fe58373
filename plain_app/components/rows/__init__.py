"""Short tables as a component: plain HTML, far lighter than a grid, with bars and small curves.

Everything in a table is data and drawn as text. For long lists use `st.dataframe`.
"""

from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

import streamlit as st

from plain_app import state

_HERE = Path(__file__).parent


class Column(NamedTuple):
    """A column; what its cells hold depends on the kind.

    text and number: a text, the number ready to be read; bar: a value in [0, 1]; curve: values in
    [0, 1]; check: whether; picture: a data URI or none.
    """

    name: str
    kind: Literal["text", "number", "bar", "curve", "check", "picture"] = "text"


def draw_rows(
    columns: Sequence[Column],
    rows: Sequence[Sequence[Any]],
    key: str,
    on_pick: Callable[[int], None] | None = None,
) -> None:
    """Draw a table; `on_pick` is called with the row that was picked."""

    def picked() -> None:
        at = (state.recall(key) or {}).get("picked")
        if on_pick is not None and isinstance(at, int) and 0 <= at < len(rows):
            on_pick(at)

    data = {
        "columns": [column._asdict() for column in columns],
        "rows": [list(row) for row in rows],
        "can_pick": on_pick is not None,
    }
    _component()(key=key, data=data, on_picked_change=picked)


@cache
def _component() -> Any:
    js, css = ((_HERE / name).read_text(encoding="utf-8") for name in ("rows.js", "rows.css"))
    html = '<div class="rows" data-part="rows"></div>'
    return st.components.v2.component("plain_rows", html=html, css=css, js=js)
