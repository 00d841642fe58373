"""Methods side by side, as plotly figures: on the page and in the report.

`<name>_points(…)` computes, `<name>_figure(points)` draws.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import plotly.graph_objects as go

from plain_app.charts.colours import NEUTRAL, SURE

ROW, HEIGHT = 22, 340


class CriticalPoints(NamedTuple):
    """A critical-difference diagram: methods by mean rank, and groups that cannot be told apart."""

    names: list[str]  # the best first
    ranks: list[float]
    distance: float
    groups: list[tuple[float, float]]  # from rank to rank


class CurvePoints(NamedTuple):
    """Some measures by the values of a setting, or by epoch."""

    title: str
    along: str
    x: list[str]
    lines: dict[str, list[float]]


def critical_points(
    names: Sequence[str], ranks: Sequence[float], distance: float
) -> CriticalPoints:
    """Sort by rank and join neighbours whose ranks differ by less than the critical difference."""
    order = sorted(range(len(names)), key=lambda at: (ranks[at], names[at]))
    sorted_ranks = [float(ranks[at]) for at in order]
    groups: list[tuple[float, float]] = []
    for low in sorted_ranks:
        high = max(one for one in sorted_ranks if one - low <= distance)
        if high > low and not any(a <= low and high <= b for a, b in groups):
            groups.append((low, high))
    return CriticalPoints([names[at] for at in order], sorted_ranks, distance, groups)


def critical_figure(points: CriticalPoints) -> go.Figure:
    """Draw ranks on a line, methods beside their marks, groups as bars below each other."""
    n = len(points.names)
    figure = go.Figure()
    for at, (low, high) in enumerate(points.groups):
        y = -0.6 - 0.35 * at
        figure.add_scatter(x=[low, high], y=[y, y], mode="lines", line={"width": 5, "color": SURE})
    below = -0.6 - 0.35 * len(points.groups)
    half = (n + 1) // 2
    for at, (name, rank) in enumerate(zip(points.names, points.ranks, strict=True)):
        left = at < half
        y = below - 0.8 * (at if left else n - 1 - at) - 0.4
        end = 0.4 if left else n + 0.6
        line = {"x": [rank, rank, end], "y": [0, y, y]}
        figure.add_scatter(**line, mode="lines", line={"width": 1, "color": NEUTRAL})
        side = "right" if left else "left"
        text = f"{name} {rank:.2f}" if left else f"{rank:.2f} {name}"
        figure.add_annotation(x=end, y=y, text=text, showarrow=False, xanchor=side)
    figure.add_scatter(x=[1, 1 + points.distance], y=[0.9, 0.9], mode="lines+markers", **_MARK)
    text = f"critical difference {points.distance:.2f}"
    figure.add_annotation(x=1, y=1.5, text=text, showarrow=False, xanchor="left")
    figure.update_layout(showlegend=False, height=ROW * n + 150, margin={"l": 20, "r": 20, "t": 10})
    room = 2.6 + 6 / n  # for the names, in ranks
    figure.update_xaxes(
        range=[1 - room, n + room],
        tickvals=list(range(1, n + 1)),
        side="top",
        showgrid=False,
        zeroline=False,
    )
    figure.update_yaxes(visible=False)
    return figure


_MARK: dict[str, Any] = {
    "line": {"width": 2, "color": NEUTRAL},
    "marker": {"symbol": "line-ns-open", "size": 9, "color": NEUTRAL},
}


def seconds_figure(seconds: Mapping[str, Mapping[str, float]]) -> go.Figure:
    """Draw the seconds of a fit by method, a mark per case; logarithmic."""
    figure = go.Figure()
    for case, values in seconds.items():
        figure.add_scatter(
            x=list(values.values()), y=list(values), mode="markers", name=case, marker={"size": 9}
        )
    n = max((len(values) for values in seconds.values()), default=0)
    figure.update_layout(height=ROW * n + 120, margin={"t": 10})
    figure.update_xaxes(type="log", title="seconds of one fit")
    figure.update_yaxes(autorange="reversed")
    return figure


def sensitivity_points(results: Sequence[Mapping[str, Any]]) -> list[CurvePoints]:
    """Return a curve per set and setting of `bench sensitivity` results."""
    found = []
    for key in dict.fromkeys((one["set"], one["setting"]) for one in results):
        own = [one for one in results if (one["set"], one["setting"]) == key]
        x = ["∞" if one["value"] is None else str(one["value"]) for one in own]
        lines = {
            "test average precision": [one["average_precision"] for one in own],
            "AUC of confidences": [one["auc"] for one in own],
        }
        found.append(CurvePoints(f"{key[1]} on {key[0]}", key[1], x, lines))
    return found


def convergence_points(found: Mapping[str, Mapping[str, Sequence[float]]]) -> list[CurvePoints]:
    """Return a curve per set: what is minimised, relative to the first epoch."""
    curves = []
    for name, lines in found.items():
        relative = {
            title: [value / values[0] if values[0] else 0.0 for value in values]
            for title, values in lines.items()
        }
        n = max(map(len, lines.values()), default=0)
        epochs = list(map(str, range(1, n + 1)))
        curves.append(CurvePoints(f"Convergence on {name}", "epoch", epochs, relative))
    return curves


def curve_figure(points: CurvePoints) -> go.Figure:
    """Draw the lines of one curve."""
    figure = go.Figure()
    for title, values in points.lines.items():
        figure.add_scatter(x=points.x, y=values, name=title, mode="lines+markers")
    figure.update_layout(height=HEIGHT, margin={"t": 10})
    figure.update_xaxes(type="category", title=points.along)
    return figure
