"""One instance as a component: its id and neighbours in order, what it is, its cells, and why.

One thing to draw instead of a dozen: the page that shows it changes in a moment.
"""

from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import streamlit as st

from plain_app import state
from plain_app.components import rows, switch
from plain_app.components.rows import Table

_HERE = Path(__file__).parent


class Choice(NamedTuple):
    """Names, one of them open."""

    label: str
    options: Sequence[str]
    open: str
    look: str  # list or tabs


class Card(NamedTuple):
    """What a card shows. Everything in it is data and drawn as text."""

    instance: str  # as a person wrote it
    first: str  # the id of the first instance
    problem: str = ""
    can_review: bool = False
    picture: str | None = None  # a data URI
    text: str = ""
    above: Sequence[Table] = ()
    choices: Sequence[Choice] = ()
    below: Sequence[Table] = ()
    marks: dict[str, Any] | None = None  # told to the map


class Hand(NamedTuple):
    """What is called when a person does something, before anything is drawn."""

    write: Callable[[str], None]  # another id
    step: Callable[[int], None]  # to the next or the previous instance
    choose: Callable[[str, int], None]  # of a choice, by its label and the position


def draw_card(card: Card, hand: Hand, key: str) -> bool:
    """Draw a card; return whether the instance is to be opened in Review."""
    groups = {"above": card.above, "below": card.below}

    def did() -> None:
        match (state.recall(key) or {}).get("did"):
            case ["write", str(text)]:
                hand.write(text.strip()[:500])
            case ["step", 1 | -1 as step]:
                hand.step(step)
            case ["choose", [str(label), str(name)]]:
                for one in card.choices:
                    if one.label == label and name in one.options:
                        hand.choose(label, one.options.index(name))
            case ["above" | "below" as group, picked]:
                rows.tell_picked(groups[group], picked)

    data = card._asdict() | {name: rows.sent(tables) for name, tables in groups.items()}
    data["choices"] = [one._asdict() for one in card.choices]
    result = _component()(key=key, data=data, on_did_change=did)
    return (getattr(result, "did", None) or [""])[0] == "review"


@cache
def _component() -> Any:
    js, html, css = (
        (_HERE / name).read_text(encoding="utf-8") for name in ("card.js", "card.html", "card.css")
    )
    return st.components.v2.component(
        "plain_card",
        html=html,
        css=rows.style() + switch.style() + css,
        js=rows.script() + switch.script() + js,
    )
