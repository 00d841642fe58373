"""Buttons side by side as one component: one thing to draw instead of one each."""

from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import streamlit as st

from plain_app import state

_HERE = Path(__file__).parent


def actions(
    buttons: Sequence[str], links: Sequence[str], key: str, on_press: Callable[[str], None]
) -> str | None:
    """Draw buttons, then links that look less; return the one that was pressed.

    `on_press` is told before anything is drawn.
    """

    def pressed() -> None:
        name = (state.recall(key) or {}).get("pressed")
        if name in (*buttons, *links):
            on_press(name)

    data = {"buttons": list(buttons), "links": list(links)}
    result = _component()(key=key, data=data, on_pressed_change=pressed, width="content")
    name = getattr(result, "pressed", None)
    return name if name in (*buttons, *links) else None


@cache
def _component() -> Any:
    js, css = ((_HERE / name).read_text(encoding="utf-8") for name in ("actions.js", "actions.css"))
    return st.components.v2.component(
        "plain_actions",
        html='<div class="plain-actions"></div>',
        css=css,
        js=js,
        isolate_styles=False,
    )
