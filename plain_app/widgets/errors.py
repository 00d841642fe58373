"""The error guard: what a user should see of an error, and never a traceback for it."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import pandas as pd
import streamlit as st

from core.errors import DatasetError, PlainError, Problem, grouped
from plain_app.widgets.tables import HEAD

MAX_CELL = 300
ONE_LINE, WRAPPED, FITS = 30, 58, 37  # pixels of a row; text wraps above 4rem; characters on a line


@contextmanager
def error_guard(key: str) -> Iterator[None]:
    """Show a `PlainError` in place of what the block would have drawn."""
    try:
        yield
    except PlainError as error:
        show_error(error, key)


def show_error(error: PlainError, key: str, badge: str = "not possible") -> None:
    """Draw what happened, and what to do. All of it may hold data, so all of it is text."""
    with st.container(border=True, key=f"{key}.error"):
        st.badge(badge, color="red", icon=":material/error:")
        detail = "" if isinstance(error, DatasetError) else error.detail[:2000]
        st.text("\n".join(part for part in (error.title, detail, error.hint) if part))
        if isinstance(error, DatasetError):
            problem_table(error.problems, f"{key}.problems")


def problem_table(problems: Iterable[Problem], key: str) -> None:
    """Draw problems, the fatal first, each with its fix; those that say the same as one line.

    A switch lists each of them.
    """
    listed = list(problems)
    once = grouped(listed)
    every = len(once) < len(listed) and st.toggle("List each one", key=f"{key}_all")
    ordered = sorted(listed if every else once, key=lambda one: not one.fatal)
    rows = [_cells(one) for one in ordered]
    columns = ["", "times", "problem", "what to do", "found", "row", "column"]
    table = pd.DataFrame(rows, columns=columns)
    shown = [name for name in columns if name == "" or table[name].str.len().any()]
    widths = {
        "": st.column_config.TextColumn(width=95),
        "times": st.column_config.TextColumn(width=60),
        "problem": st.column_config.TextColumn(width=235),
        "what to do": st.column_config.TextColumn(width=285),
        "found": st.column_config.TextColumn(width=120),
        "row": st.column_config.TextColumn(width=80),
    }
    longest = max((len(text) for row in rows for text in row[2:4]), default=0)
    tall = ONE_LINE if longest <= FITS else WRAPPED
    with st.container(key=key):
        st.dataframe(
            table[shown],
            hide_index=True,
            column_config=widths,
            row_height=tall,
            height=min(320, HEAD + tall * len(table)),
            key=f"{key}_rows",
            alt="Problems, the fatal first, each with what to do",
        )


def _cells(problem: Problem) -> list[str]:
    kind = "must be fixed" if problem.fatal else "worth a look"
    values = (problem.message, problem.fix, problem.value, problem.row, problem.column)
    times = f"{problem.count:,}" if problem.count > 1 else ""
    return [kind, times, *("" if one is None else str(one)[:MAX_CELL] for one in values)]
