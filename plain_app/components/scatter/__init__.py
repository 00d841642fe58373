"""The map of instances as a component: points go in as bytes, a click or a lasso comes back.

`map.bundle.js` is built from `map.js`, whose first lines say how, and contains regl-scatterplot
(MIT). It is given inline, so nothing is fetched from anywhere.
"""

from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import streamlit as st

_HERE = Path(__file__).parent

_HTML = """
<div class="map">
  <div class="bar" role="toolbar" aria-label="Map tools">
    <button type="button" data-part="move" aria-pressed="true">Move</button>
    <button type="button" data-part="lasso" aria-pressed="false">Lasso</button>
    <button type="button" data-part="whole">Whole map</button>
    <span class="hint" data-part="note">Click an instance · wheel to zoom · Shift and drag to
      lasso</span>
  </div>
  <div class="frame" data-part="frame"><canvas data-part="canvas" role="img"
    aria-label="Map of all instances"></canvas></div>
  <div class="legend" data-part="legend"></div>
</div>
"""

_FOCUS = """
let last = null; // only a new instance is told: the same one may be unmarked by hand
export default function ({ data }) {
  if (data.at === last) return;
  last = window.plainMapFocus = data.at;
  window.dispatchEvent(new CustomEvent("plain-map-focus", { detail: data.at }));
}
"""


class MapEvent(NamedTuple):
    """What a person just did on the map."""

    picked: int | None
    lasso: tuple[tuple[float, float], ...]


def scatter(packed: bytes, key: str) -> MapEvent:
    """Draw a packed map (see `charts.instance_map.pack_map`) and return what was done on it."""
    result = _component()(
        key=key,
        data=packed,
        on_picked_change=_nothing,
        on_lasso_change=_nothing,
    )
    corners = getattr(result, "lasso", None) or ()
    return MapEvent(
        getattr(result, "picked", None), tuple((float(x), float(y)) for x, y in corners)
    )


def focus(row: int, key: str) -> None:
    """Mark an instance on the map that is on the page, without sending the map again."""
    _focus_component()(key=key, data={"at": row}, height=1)


def _nothing() -> None:
    """Streamlit sends events only to components with a callback; the value is read instead."""


@cache
def _component() -> Any:
    js, css = ((_HERE / name).read_text(encoding="utf-8") for name in ("map.bundle.js", "map.css"))
    return st.components.v2.component("plain_map", html=_HTML, css=css, js=js)


@cache
def _focus_component() -> Any:
    return st.components.v2.component("plain_map_focus", js=_FOCUS)
