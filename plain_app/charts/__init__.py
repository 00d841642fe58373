"""Charts in two steps: `<name>_points(...)` computes, `<name>_option(points)` draws (ECharts).

Pure functions of arrays; no streamlit. Text in options is drawn on a canvas, never read as HTML.
"""

from collections.abc import Sequence
from typing import Any

from plain_app.charts.colours import NEUTRAL

MAX_NAME, BESIDE = 28, 18  # characters of a name; beside one of several charts in a row
ROW = 250
"""Height in pixels of a row of charts that share a canvas."""

WHOLE = {"label": {"precision": 0}}
"""How a tooltip writes the place on an axis of whole numbers."""

_HEAD, _LEGEND, _FOOT = 40, 15, 26  # pixels: a title, a legend under it, the name of an axis
_GAP, _SCALE = 2.5, 5.5  # percent of the width: between charts, beside one for its colour scale


def short(name: str, limit: int = MAX_NAME) -> str:
    """Return a name that fits beside an axis, on one line."""
    line = " ".join(name.split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


def distinct(names: Sequence[str], limit: int = MAX_NAME) -> list[str]:
    """Return short names, numbered where shortening made two of them alike."""
    seen: dict[str, int] = {}
    found = []
    for name in [short(name, limit) for name in names]:
        seen[name] = seen.get(name, 0) + 1
        found.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return found


_LEFT_OPEN = {"n_steps": "converged", "hidden": "by labels", "expected_false": "don't know"}


def setting_text(name: str, value: Any) -> str:
    """Return a setting's value as a person writes it."""
    if value is None:
        return _LEFT_OPEN.get(name, "none")
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def titled(title: str, **option: Any) -> dict[str, Any]:
    """Return an option with what all our charts share."""
    text = {"fontSize": 13, "fontWeight": 600}
    return {
        "animation": False,
        "toolbox": toolbox(),
        "title": {"text": title, "left": 0, "top": 6, "padding": 0, "textStyle": text},
        "grid": {"left": 8, "right": 16, "top": 36, "bottom": 22, "containLabel": True},
        "tooltip": {"trigger": "item", "confine": True, "transitionDuration": 0},
        **option,
    }


def toolbox() -> dict[str, Any]:
    """Return the tools that zoom into a part and back; Streamlit's own save a picture."""
    zoom = {"zoom": "Zoom: drag over a part", "back": "Zoom back"}
    return {
        "right": 0,
        "top": 0,
        "padding": 0,
        "itemSize": 11,
        "itemGap": 7,
        "iconStyle": {"borderColor": NEUTRAL},
        "emphasis": {"iconStyle": {"textAlign": "right"}},
        "feature": {"dataZoom": {"title": zoom}, "restore": {"title": "All of it"}},
    }


def legend(names: Sequence[str], **more: Any) -> dict[str, Any]:
    """Return the names of lines and bars on one line below the title; a press hides one."""
    small = {
        "type": "scroll",
        "pageIconSize": 9,
        "itemWidth": 10,
        "itemHeight": 6,
        "itemGap": 6,
        "textStyle": {"fontSize": 11},
    }
    return {"top": 24, "left": 0, "data": list(names), **small, **more}


def axis(name: str, kind: str = "value", **more: Any) -> dict[str, Any]:
    """Return an axis with its name, which states the unit."""
    return {
        "type": kind,
        "name": name,
        "nameLocation": "middle",
        "nameGap": 26,
        "nameTextStyle": {"fontSize": 11},
        "axisLabel": {"fontSize": 11, "hideOverlap": True},
        **more,
    }


def shades(low: float, high: float, **more: Any) -> dict[str, Any]:
    """Return a colour scale beside the chart; its colours are the theme's."""
    return {
        "min": low,
        "max": high,
        "text": [f"{high:.0f}%", f"{low:.0f}%"],
        "calculable": False,
        "orient": "vertical",
        "right": 0,
        "top": "middle",
        "itemWidth": 10,
        "itemHeight": 90,
        "textStyle": {"fontSize": 11},
        **more,
    }


def side_by_side(
    rows: Sequence[Sequence[dict[str, Any]]], widths: Sequence[float] = (), height: int = ROW
) -> dict[str, Any]:
    """Put rows of charts into one; one canvas is far quicker to draw than several.

    `widths` are the shares of the charts in a row, the same without any.
    """
    shared = ("animation", "toolbox", "tooltip")
    whole: dict[str, Any] = {name: rows[0][0][name] for name in shared}
    for down, row in enumerate(rows):
        shares, left = widths or [1.0] * len(row), 0.0
        for chart, share in zip(row, shares, strict=True):
            width = 100 * share / sum(shares)
            _place(whole, chart, (left, down * height, width, height))
            left += width
    return whole


def _place(
    whole: dict[str, Any], chart: dict[str, Any], box: tuple[float, int, float, int]
) -> None:
    """Add a chart to a whole; of its box, left and width are percent, top and height pixels."""
    left, top, width, height = box
    at, n_series = len(whole.setdefault("grid", [])), len(whole.setdefault("series", []))
    for name, lower in (("title", 6), ("legend", 25)):
        if name in chart:
            spot = {**chart[name], "left": f"{left}%", "top": top + lower}
            spot |= {"width": f"{width - _GAP}%"} if name == "legend" else {}
            whole.setdefault(name, []).append(spot)
    if "visualMap" in chart:
        own = list(range(n_series, n_series + len(chart["series"])))
        scale = {**chart["visualMap"], "right": f"{100 - left - width}%", "seriesIndex": own}
        whole.setdefault("visualMap", []).append(scale)
    head = _HEAD + (_LEGEND if "legend" in chart else 0)
    beside = _GAP + (_SCALE if "visualMap" in chart else 0)
    whole["grid"].append(
        {
            "left": f"{left + 0.5}%",
            "top": top + head,
            "width": f"{width - beside}%",
            "height": height - head - _FOOT,
            "containLabel": True,
        }
    )
    for name in ("xAxis", "yAxis"):
        whole.setdefault(name, []).append({**chart[name], "gridIndex": at})
    whole["series"].extend({**one, "xAxisIndex": at, "yAxisIndex": at} for one in chart["series"])
