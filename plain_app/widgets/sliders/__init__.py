"""A panel of sliders that answer while they are dragged, and never queue up.

Streamlit's own sliders send whatever they pass; here the browser sends the latest position, and the
next one only when the answer to it has been drawn.
"""

from collections.abc import Sequence
from functools import cache
from typing import Any, Literal, NamedTuple

from plain_app import state
from plain_app.services.lens import Slider
from plain_app.widgets.modules import component


class Move(NamedTuple):
    """The last move of a hand: which slider, and where all of them stand."""

    number: int
    name: str
    places: dict[str, int]

    def place(self, name: str, last: int) -> int:
        """Return where a slider with this last stop stands, whatever the browser says."""
        return min(max(self.places.get(name, last), 0), last)


def sliders(
    panel: Sequence[Slider], answered: int, key: str, width: int | Literal["stretch"] = "stretch"
) -> None:
    """Draw the panel; call it last, when what the move `answered` changes has been drawn."""
    data = {"sliders": [one._asdict() for one in panel], "answered": answered}
    _component()(key=key, data=data, on_moved_change=_nothing, width=width)


def last_move(key: str) -> Move | None:
    """Return the move that made this rerun, if one did."""
    moved = (state.recall(key) or {}).get("moved")
    if not moved:
        return None
    return Move(int(moved["number"]), str(moved["name"]), dict(moved["places"]))


def _nothing() -> None:
    """Streamlit sends events only to components with a callback; the value is read instead."""


@cache
def _component() -> Any:
    return component(
        "plain_sliders",
        "sliders/panel.js",
        '<div class="panel" data-part="panel"></div>',
        "sliders/panel.css",
    )
