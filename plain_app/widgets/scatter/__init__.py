"""The map of instances as a component: points go in as bytes, a click or a lasso comes back.

`map.js` draws it in WebGL without any library.
"""

from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import streamlit as st

from plain_app.widgets.modules import component

_HTML = """
<div class="map">
  <div class="bar" role="toolbar" aria-label="Map tools">
    <button type="button" data-part="move" aria-pressed="true">Move</button>
    <button type="button" data-part="lasso" aria-pressed="false">Lasso</button>
    <button type="button" data-part="whole">Whole map</button>
    <span class="hint" data-part="note">Click a point · wheel to zoom · Shift and drag to
      lasso</span>
  </div>
  <div class="frame" data-part="frame"><canvas data-part="canvas"></canvas>
    <canvas data-part="overlay" role="img" tabindex="0" aria-label="Map; arrow keys
    move it, plus and minus zoom"></canvas></div>
  <div class="legend" data-part="legend"></div>
</div>
"""


class MapEvent(NamedTuple):
    """What a person just did on the map."""

    picked: int | None
    lasso: tuple[tuple[float, float], ...]


def scatter(places: bytes, colours: bytes, key: str) -> MapEvent:
    """Draw a map packed by `charts.instance_map` and return what was done on it.

    Places travel apart from colours: a message that did not change is not sent again.
    """
    with st.container(gap=None):
        _places_component()(key=f"{key}_places", data=places, height=1)
        result = _component()(
            key=key,
            data=colours,
            on_picked_change=_nothing,
            on_lasso_change=_nothing,
        )
    corners = getattr(result, "lasso", None) or ()
    return MapEvent(
        getattr(result, "picked", None), tuple((float(x), float(y)) for x, y in corners)
    )


def mark(layout: str, row: int, lasso: Sequence[Sequence[float]], key: str) -> None:
    """Mark a point and a lasso on the map with this layout, without sending the map again."""
    data = {"layout": layout, "at": row, "lasso": list(lasso)}
    _marks_component()(key=key, data=data, height=1)


def _nothing() -> None:
    """Streamlit sends events only to components with a callback; the value is read instead."""


@cache
def _component() -> Any:
    return component("plain_map", "scatter/map.js", _HTML, "scatter/map.css")


@cache
def _places_component() -> Any:
    return component("plain_map_places", "scatter/inputs.js")


@cache
def _marks_component() -> Any:
    return component("plain_map_marks", "scatter/inputs.js")
