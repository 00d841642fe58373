"""Choices of which one is open, as a component: answers at once, a fifth of the drawing.

What is open is in the address, so a link or a reload opens the same.
"""

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, Literal

import streamlit as st

from plain_app import state

_HERE = Path(__file__).parent


def switch(
    label: str, options: Sequence[str], key: str, look: Literal["buttons", "tabs"] = "buttons"
) -> str:
    """Draw a row of names and return the open one, at first the first.

    The label is for screen readers. The key is the name in the address, too.
    """
    is_open = opened(options, key)

    def on_chosen() -> None:
        chosen = (state.recall(key) or {}).get("chosen")
        if chosen in options:
            open_one(options, key, chosen)

    data = {"label": label, "options": list(options), "open": is_open, "look": look}
    _component()(key=key, data=data, on_chosen_change=on_chosen)
    return is_open


def opened(options: Sequence[str], key: str) -> str:
    """Return the open one by the address, at first the first."""
    asked = st.query_params.get(key)
    return asked if asked in options else options[0]


def open_one(options: Sequence[str], key: str, chosen: str) -> None:
    """Open one by the address; the first needs no mention."""
    if chosen == options[0]:
        st.query_params.pop(key, None)
    else:
        st.query_params[key] = chosen


def script() -> str:
    """Return what draws choices, for components that hold some."""
    return (_HERE / "names.js").read_text(encoding="utf-8")


def style() -> str:
    return (_HERE / "switch.css").read_text(encoding="utf-8")


@cache
def _component() -> Any:
    js = script() + (_HERE / "switch.js").read_text(encoding="utf-8")
    return st.components.v2.component(
        "plain_switch",
        html='<div class="plain-switch"></div>',
        css=style(),
        js=js,
        isolate_styles=False,
    )
