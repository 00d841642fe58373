"""Tables as a component: plain HTML, far lighter than a grid, with bars and small curves.

Everything in a table is data and drawn as text. For thousands of rows use `st.dataframe`.
"""

from collections.abc import Callable, Collection, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

import streamlit as st

from plain_app import state

_HERE = Path(__file__).parent

Kind = Literal["text", "number", "bar", "curve", "span", "check", "picture", "link"]


class Column(NamedTuple):
    """A column; what its cells hold depends on the kind.

    text and number: a text, the number ready to be read; bar: a value in [0, 1]; curve: values in
    [0, 1]; span: start, end and zero of a bar in [0, 1], and its colour; check: whether; picture: a
    data URI or none; link: a text and the address of a page of ours.
    """

    name: str
    kind: Kind = "text"


class Table(NamedTuple):
    """Columns and rows, what to do with a row that is picked, and a line of text below.

    The line has a beginning, a part that stands out, and an end.
    """

    columns: Sequence[Column]
    rows: Sequence[Sequence[Any]]
    on_pick: Callable[[int], None] | None = None
    note: tuple[str, str, str] | None = None


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
    more = {"can_mark": on_mark is not None, "can_sort": can_sort, "marked": sorted(marked)}
    _draw([Table(columns, rows, on_pick)], key, height, on_mark, **more)


def draw_tables(tables: Sequence[Table], key: str, height: int = 210) -> None:
    """Draw tables below each other, each of at most this height: one thing to draw, not several."""
    _draw(tables, key, height)


def _draw(
    tables: Sequence[Table],
    key: str,
    height: int,
    on_mark: Callable[[list[int]], None] | None = None,
    **more: Any,
) -> None:
    def picked() -> None:
        tell_picked(tables, (state.recall(key) or {}).get("picked"))

    def mark() -> None:
        found = (state.recall(key) or {}).get("marked")
        if on_mark is not None and isinstance(found, list):
            on_mark([at for at in found if _is_in(tables[0].rows, at)])

    data = {**sent(tables, height), "marked": [], **more}
    _component()(key=key, data=data, on_picked_change=picked, on_marked_change=mark)


def sent(tables: Sequence[Table], height: int = 210) -> dict[str, Any]:
    """Return tables as `tables.js` takes them."""
    each = [
        {
            "columns": [column._asdict() for column in table.columns],
            "rows": [list(row) for row in table.rows],
            "can_pick": table.on_pick is not None,
            "note": table.note,
        }
        for table in tables
    ]
    return {"tables": each, "height": height}


def tell_picked(tables: Sequence[Table], picked: Any) -> None:
    """Call the `on_pick` of the table and row that `tables.js` says, if there are such."""
    match picked:
        case [int(of), int(at)] if _is_in(tables, of) and _is_in(tables[of].rows, at):
            on_pick = tables[of].on_pick
            if on_pick is not None:
                on_pick(at)


def _is_in(rows: Sequence[Any], at: Any) -> bool:
    return isinstance(at, int) and 0 <= at < len(rows)


def script() -> str:
    """Return what draws tables, for components that hold some."""
    return (_HERE / "tables.js").read_text(encoding="utf-8")


def style() -> str:
    return (_HERE / "rows.css").read_text(encoding="utf-8")


@cache
def _component() -> Any:
    js = script() + (_HERE / "rows.js").read_text(encoding="utf-8")
    html = '<div class="tables" data-part="rows"></div>'
    return st.components.v2.component("plain_rows", html=html, css=style(), js=js)
