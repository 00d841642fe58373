"""Charts in two steps: `<name>_points(...)` computes, `<name>_option(points)` draws (ECharts).

Pure functions of arrays; no streamlit. Text in options is drawn on a canvas, never read as HTML.
"""

from typing import Any

MAX_NAME = 28


def short(name: str, limit: int = MAX_NAME) -> str:
    """Return a name that fits beside an axis, on one line."""
    line = " ".join(name.split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


def distinct(names: list[str]) -> list[str]:
    """Return short names, numbered where shortening made two of them alike."""
    seen: dict[str, int] = {}
    found = []
    for name in [short(name) for name in names]:
        seen[name] = seen.get(name, 0) + 1
        found.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return found


def titled(title: str, **option: Any) -> dict[str, Any]:
    """Return an option with what all our charts share."""
    text = {"fontSize": 13, "fontWeight": 600}
    return {
        "animation": False,
        "title": {"text": title, "left": 0, "top": 6, "padding": 0, "textStyle": text},
        "grid": {"left": 8, "right": 16, "top": 36, "bottom": 22, "containLabel": True},
        "tooltip": {"trigger": "item", "confine": True, "transitionDuration": 0},
        **option,
    }


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
        "text": [f"{high:.0f} %", f"{low:.0f}"],
        "calculable": False,
        "orient": "vertical",
        "right": 0,
        "top": "middle",
        "itemWidth": 10,
        "itemHeight": 90,
        "textStyle": {"fontSize": 11},
        **more,
    }
