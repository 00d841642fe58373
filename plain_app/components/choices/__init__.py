"""Things to choose as one component: lists, buttons, sliders, switches and fields side by side.

Streamlit's own take some 10 ms of a new screen each; all of these together take that once.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

import streamlit as st

from plain_app import state

_HERE = Path(__file__).parent
LONGEST = 60  # characters of an option's name

Kind = Literal["list", "buttons", "pills", "several", "text", "toggle", "slider", "number"]


class Choice(NamedTuple):
    """One thing to choose: its options as values with their names, and the one chosen.

    A list and buttons hold one option, pills and several hold some; a text may be any, its options
    are proposals; a toggle is true or false; slider and number are within limits.
    """

    name: str
    label: str
    options: Sequence[tuple[str, str]] = ()
    chosen: Any = ""
    kind: Kind = "list"
    note: str = ""  # a line below it
    help: str = ""
    placeholder: str = ""
    is_fixed: bool = False
    limits: tuple[float, float, float] = (0.0, 1.0, 0.01)  # least, most and step of a number
    width: int = 0  # pixels; 0: what there is, or what it needs
    longest: int = 80  # characters of a text


def named(values: Iterable[str]) -> list[tuple[str, str]]:
    """Return options that are called what they are."""
    return [(value, value) for value in values]


def one_of(name: str, label: str, values: Sequence[str], **more: Any) -> Choice:
    """Return a list of values that are called what they are; the first is the default."""
    return Choice(name, label, named(values), values[0], **more)


def draw_choices(
    choices: Sequence[Choice],
    key: str,
    on_choose: Callable[[str, Any], None],
    *,
    side_by_side: bool = False,
    has_titles: bool = True,
) -> None:
    """Draw choices; `on_choose` is called with the name and the value.

    Without titles their labels are for screen readers only.
    """

    def chosen() -> None:
        match (state.recall(key) or {}).get("chosen"):
            case [str(name), value]:
                for one in choices:
                    if one.name == name and is_offered(one, value):
                        on_choose(name, value)

    each = [{**one._asdict(), "options": _shortened(one.options)} for one in choices]
    data = {"choices": each, "side_by_side": side_by_side, "has_titles": has_titles}
    width = "content" if side_by_side else "stretch"
    _component()(key=key, data=data, on_chosen_change=chosen, width=width)


def ask(
    choices: Sequence[Choice], key: str, *, side_by_side: bool = True, has_titles: bool = True
) -> dict[str, Any]:
    """Draw choices, remember for this session what is chosen, and return it by name."""
    answers = answered(choices)
    shown = [one._replace(chosen=answers[one.name]) for one in choices]
    draw_choices(shown, key, state.remember, side_by_side=side_by_side, has_titles=has_titles)
    return answers


def answered(choices: Sequence[Choice]) -> dict[str, Any]:
    """Return what is chosen by name; at first, and where it is no option any more, the default."""
    known = {one.name: state.recall(one.name, one.chosen) for one in choices}
    return {one.name: _valid(one, known[one.name]) for one in choices}


def ask_in_address(choices: Sequence[Choice], key: str) -> dict[str, Any]:
    """Ask, with what is chosen in the address too: a link or a reload opens the same."""
    answers = answered_in_address(choices)
    ask(choices, key)
    for one in choices:
        if answers[one.name] == one.chosen:
            st.query_params.pop(one.name, None)
        elif st.query_params.get_all(one.name) != _texts(answers[one.name]):
            st.query_params[one.name] = answers[one.name]
    return answers


def answered_in_address(choices: Sequence[Choice]) -> dict[str, Any]:
    """Return what is chosen by name, in a new session as the address says."""
    for one in choices:
        if state.recall(one.name) is None and one.name in st.query_params:
            told = st.query_params.get_all(one.name)
            state.remember(one.name, told if one.kind in ("several", "pills") else told[0])
    return answered(choices)


def is_offered(one: Choice, value: Any) -> bool:
    """Whether a value can be chosen, whatever the browser says."""
    if one.is_fixed:
        return False
    known = [option for option, _ in one.options]
    match one.kind:
        case "text":
            return isinstance(value, str) and len(value) <= one.longest
        case "several" | "pills":
            return isinstance(value, list) and all(each in known for each in value)
        case "toggle":
            return isinstance(value, bool)
        case "slider" | "number":
            least, most, _ = one.limits
            return isinstance(value, int | float) and least <= value <= most
    return value in known


def _valid(one: Choice, value: Any) -> Any:
    return value if is_offered(one._replace(is_fixed=False), value) else one.chosen


def _texts(value: Any) -> list[str]:
    return value if isinstance(value, list) else [str(value)]


def _shortened(options: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    return [(value, name[:LONGEST]) for value, name in options]


@cache
def _component() -> Any:
    js, css = ((_HERE / name).read_text(encoding="utf-8") for name in ("choices.js", "choices.css"))
    html = '<div class="choices"></div>'
    return st.components.v2.component("plain_choices", html=html, css=css, js=js)
