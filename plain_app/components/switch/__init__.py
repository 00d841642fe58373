"""A row of names of which one is open, as a component: answers at once, a fifth of the drawing.

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
    """Draw the names and return the open one, at first the first; the label is for screen readers.

    The key is the name in the address, too.
    """

    def on_chosen() -> None:
        chosen = (state.recall(key) or {}).get("chosen")
        if chosen == options[0]:
            st.query_params.pop(key, None)
        elif chosen in options:
            st.query_params[key] = chosen

    asked = st.query_params.get(key)
    is_open = asked if asked in options else options[0]
    data = {"label": label, "options": list(options), "open": is_open, "look": look}
    _component()(key=key, data=data, on_chosen_change=on_chosen)
    return is_open


@cache
def _component() -> Any:
    js, css = ((_HERE / name).read_text(encoding="utf-8") for name in ("switch.js", "switch.css"))
    return st.components.v2.component(
        "plain_switch",
        html='<div class="plain-switch" role="tablist"></div>',
        css=css,
        js=js,
        isolate_styles=False,
    )
