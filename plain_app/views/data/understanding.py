"""How a file is understood: what one row is, and which column plays which role."""

from typing import Any

import streamlit as st

from core.errors import DatasetError
from core.formats import ColumnMapping, ReadResult
from plain_app.services import data
from plain_app.services.data import Staged

MAX_CHOICES = 400  # columns in a multiselect
NONE = "—"
ROWS = {
    "item": "an item",
    "view": "one person's view of an item",
    "people": "an item with a column per person",
}


def draw_understanding(staged: Staged) -> ReadResult:
    """Draw how columns were understood; return the file read as the answers say."""
    guessed = _guess(staged)
    mapping = _columns_of(guessed)
    said: dict[str, Any] = {}
    in_doubt = mapping is not None and _is_in_doubt(guessed, mapping)
    if mapping is not None and in_doubt:
        said |= _ask_what_a_row_is(mapping)
    # Then the columns are looked at first: those of a refusal, or labels told by values alone.
    is_open = isinstance(guessed, DatasetError) or _asks(guessed, "which column")
    with st.expander("How the file is understood", is_open, key="data.mapping"):
        if mapping is None:
            st.caption("This format states the role of everything in it.")
        else:
            if not in_doubt:
                said |= _ask_what_a_row_is(mapping)
            said = {**_draw_roles(mapping), **said}
            _draw_reasons(mapping)
    if said:
        return _read(staged, ColumnMapping(**said))
    if isinstance(guessed, DatasetError):
        raise guessed
    return guessed


def _read(staged: Staged, mapping: ColumnMapping | None) -> ReadResult:
    """Read a file; a bar shows how far, where that takes more than a moment."""
    bar = st.empty()

    def show(share: float) -> None:
        part = f" … {share:.0%}" if share else " …"
        bar.progress(min(share, 1.0), f"Reading {staged.name[:80]}{part}")

    try:
        return data.read_staged(staged, mapping, show)
    finally:
        bar.empty()


def _guess(staged: Staged) -> ReadResult | DatasetError:
    """Read a file by guess; where the guess may be at fault, return the refusal with it."""
    try:
        return _read(staged, None)
    except DatasetError as error:
        if error.mapping is None:
            raise
        return error


def _columns_of(guessed: ReadResult | DatasetError) -> ColumnMapping | None:
    """Return the roles of columns, of a file that has columns."""
    mapping = guessed.mapping
    return mapping if isinstance(mapping, ColumnMapping) and mapping.columns else None


def _is_in_doubt(guessed: ReadResult | DatasetError, mapping: ColumnMapping) -> bool:
    """Whether rows are not plainly items: then the question stands above everything else."""
    return _asks(guessed, "what is one row?") or mapping.row != "item"


def _asks(guessed: ReadResult | DatasetError, question: str) -> bool:
    return any(one.message.startswith(question) for one in guessed.problems)


def _ask_what_a_row_is(mapping: ColumnMapping) -> dict[str, Any]:
    """Ask in plain words; return what differs from the guess."""
    kinds = list(ROWS)
    row = st.radio(
        "What is one row?",
        kinds,
        index=kinds.index(mapping.row),
        format_func=ROWS.__getitem__,
        key="data.map_row",
        horizontal=True,
        help="People are whoever offered labels: raters, models or rules. Their yes and no are "
        "kept as votes.",
    )
    said: dict[str, Any] = {} if row == mapping.row else {"row": row}
    if row == "view":
        options = [None, *mapping.columns]
        source = st.selectbox(
            "Whose view is it?",
            options,
            index=options.index(mapping.source),
            format_func=lambda one: "not named" if one is None else one[:80],
            key="data.map_source",
        )
        said |= {} if source == mapping.source else {"source": source}
    return said


def _draw_reasons(mapping: ColumnMapping) -> None:
    rows = [{"role": role, "because": why[:300]} for role, why in mapping.reasons.items()]
    if rows:
        alt = "Why each role was guessed"
        st.dataframe(rows, hide_index=True, row_height=28, key="data.reasons", alt=alt)


def _draw_roles(mapping: ColumnMapping) -> dict[str, Any]:
    """Draw one select per role; return those that differ from the guess."""
    columns, chosen = list(mapping.columns), dict[str, Any]()
    for place, role in zip(st.columns(3), ("id", "text", "image"), strict=True):
        options = [None, *columns]
        chosen[role] = place.selectbox(
            {"id": "Instance id", "text": "Text to show", "image": "Picture to show"}[role],
            options,
            index=options.index(getattr(mapping, role)),
            format_func=lambda one: NONE if one is None else one[:80],
            key=f"data.map_{role}",
        )
    if len(columns) <= MAX_CHOICES:
        names = {"labels": "Candidate labels", "features": "Features", "truth": "Truth"}
        for role, title in names.items():
            default = list(getattr(mapping, role))
            picked = st.multiselect(title, columns, default, key=f"data.map_{role}")
            chosen[role] = tuple(picked)
    return {role: value for role, value in chosen.items() if value != getattr(mapping, role)}
