"""The choices of the frame as one component: on every page, so an eighth of each page's drawing."""

from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import streamlit as st

from plain_app import state

_HERE = Path(__file__).parent
LONGEST = 60  # characters of an option


class Choice(NamedTuple):
    """One thing to choose: its options as values with their names, and the one chosen."""

    name: str
    label: str
    options: Sequence[tuple[str, str]]
    chosen: str
    note: str = ""  # a line below it
    help: str = ""
    placeholder: str = ""
    can_write: bool = False  # something else than the options
    is_fixed: bool = False


def draw_choices(
    choices: Sequence[Choice], key: str, on_choose: Callable[[str, str], None]
) -> None:
    """Draw choices below each other; `on_choose` is called with the name and the value."""

    def chosen() -> None:
        match (state.recall(key) or {}).get("chosen"):
            case [str(name), str(value)] if is_offered(choices, name, value):
                on_choose(name, value)

    data = [{**one._asdict(), "options": _shortened(one.options)} for one in choices]
    _component()(key=key, data=data, on_chosen_change=chosen)


def is_offered(choices: Sequence[Choice], name: str, value: str) -> bool:
    """Whether a value can be chosen, whatever the browser says."""
    one = next((one for one in choices if one.name == name and not one.is_fixed), None)
    return one is not None and (one.can_write or value in [known for known, _ in one.options])


def _shortened(options: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    return [(value, name[:LONGEST]) for value, name in options]


@cache
def _component() -> Any:
    js, css = ((_HERE / name).read_text(encoding="utf-8") for name in ("choices.js", "choices.css"))
    html = '<div class="choices"></div>'
    return st.components.v2.component("plain_choices", html=html, css=css, js=js)
