"""Short tables as a component: plain HTML, far lighter than a grid, with bars and small curves.

Everything in a table is data and drawn as text. For long lists use `st.dataframe`.
"""

from collections.abc import Callable, Collection, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

import streamlit as st

from plain_app import state

_HERE = Path(__file__).parent


class Column(NamedTuple):
    """A column; what its cells hold depends on the kind.

    text and number: a text, the number ready to be read; bar: a value in [0, 1]; curve: values in
    [0, 1]; span: start, end and zero of a bar in [0, 1], and its colour; check: whether; picture: a
    data URI or none.
    """

    name: str
    kind: Literal["text", "number", "bar", "curve", "span", "check", "picture"] = "text"


def draw_rows(
    columns: Sequence[Column],
    rows: Sequence[Sequence[Any]],
    key: str,
    on_pick: Callable[[int], None] | None = None,
    *,
    marked: Collection[int] = (),
    on_mark: Callable[[list[int]], None] | None = None,
    can_sort: bool = False,
    height: int = 210,
) -> None:
    """Draw a table; `on_pick` is called with the row that was picked, `on_mark` with all marked.

    Rows beyond the height are scrolled to. `can_sort`: a press on a title sorts, in the browser.
    """

    def picked() -> None:
        at = (state.recall(key) or {}).get("picked")
        if on_pick is not None and _is_row(at):
            on_pick(at)

    def mark() -> None:
        found = (state.recall(key) or {}).get("marked")
        if on_mark is not None and isinstance(found, list):
            on_mark([at for at in found if _is_row(at)])

    def _is_row(at: Any) -> bool:
        return isinstance(at, int) and 0 <= at < len(rows)

    data = {
        "columns": [column._asdict() for column in columns],
        "rows": [list(row) for row in rows],
        "can_pick": on_pick is not None,
        "can_mark": on_mark is not None,
        "can_sort": can_sort,
        "marked": sorted(marked),
        "height": height,
    }
    _component()(key=key, data=data, on_picked_change=picked, on_marked_change=mark)


@cache
def _component() -> Any:
    js, css = ((_HERE / name).read_text(encoding="utf-8") for name in ("rows.js", "rows.css"))
    html = '<div class="rows" data-part="rows"></div>'
    return st.components.v2.component("plain_rows", html=html, css=css, js=js)
