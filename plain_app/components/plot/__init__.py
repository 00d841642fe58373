"""Lines, bars and heat maps as a component, for the screens people go to all the time.

Described like all our charts, as ECharts options (`charts`); `plot.js` draws on one canvas what
these few kinds need. `st.echarts_chart` draws everything, and takes 70 ms of a new screen for it.
"""

from functools import cache
from pathlib import Path
from typing import Any

import streamlit as st

_HERE = Path(__file__).parent


def plot(option: dict[str, Any], height: int, key: str) -> None:
    """Draw lines, bars or heat maps; a pointer over them tells their values."""
    _component()(key=key, data={"option": option, "height": height, "key": key}, height=height)


@cache
def _component() -> Any:
    js, css = ((_HERE / name).read_text(encoding="utf-8") for name in ("plot.js", "plot.css"))
    return st.components.v2.component(
        "plain_plot", html='<div class="plain-plot"></div>', css=css, js=js, isolate_styles=False
    )
