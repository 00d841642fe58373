"""The trials of a study, as plotly figures: on the page and in the report.

`<name>_points(study, …)` computes, `<name>_figure(points)` draws. Pruned trials stand at the last
value they told. What was held out is never drawn here: nothing must be chosen by it.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots
from scipy.interpolate import griddata
from scipy.spatial import QhullError

from core.tuning import Parameter, Study, Trial
from plain_app.charts import setting_text
from plain_app.charts.colours import DOUBTFUL, NEUTRAL, SURE

HEIGHT = 380
SCALE = [[0.0, "#e7dfd0"], [0.5, "#8fb9b6"], [1.0, "#20575b"]]
SHADES = ("#d9c9a8", "#a9c4bd", "#6fa3a2", "#3f8f90", "#20575b")
MEASURES = {
    "value": "value (tuned on)",
    "smoothness": "smoothness of confidences",
    "seconds": "seconds of training",
}


class HistoryPoints(NamedTuple):
    """Finished and pruned trials, and the best value so far."""

    numbers: list[int]
    values: list[float]
    texts: list[str]
    pruned_numbers: list[int]
    pruned_values: list[float]
    best_numbers: list[int]
    best_values: list[float]


class Axis(NamedTuple):
    """One searched setting: where trials stand on it."""

    name: str
    places: list[float]  # log10 of the value where it is searched so; the place of a choice
    ticks: list[float]
    names: list[str]
    is_choice: bool


class SettingPoints(NamedTuple):
    """Finished trials by setting."""

    numbers: list[int]
    values: list[float]
    axes: list[Axis]


class ContourPoints(NamedTuple):
    """Two settings and the value between trials; `grid` is empty where there are too few."""

    x: Axis
    y: Axis
    numbers: list[int]
    values: list[float]
    grid_x: list[float]
    grid_y: list[float]
    grid: list[list[float | None]]


class CurvesPoints(NamedTuple):
    """Epoch by epoch: finished and pruned trials as broken lines, and the best."""

    finished: tuple[list[int | None], list[float | None]]
    pruned: tuple[list[int | None], list[float | None]]
    best: tuple[list[int], list[float]]
    best_number: int | None


class ParetoPoints(NamedTuple):
    """Finished trials by two measures; `front` are the places of those nothing beats in both."""

    x_name: str
    y_name: str
    numbers: list[int]
    x: list[float]
    y: list[float]
    front: list[int]


def words(trial: Trial) -> str:
    """Return a trial's settings on one line."""
    return ", ".join(f"{name} {setting_text(name, value)}" for name, value in trial.values.items())


def history_points(study: Study) -> HistoryPoints:
    """Return trials in their order, and the best so far."""
    done = study.finished
    best = list(np.maximum.accumulate([float(one.value or 0) for one in done])) if done else []
    pruned = [one for one in study.trials if one.state == "pruned" and one.curve]
    return HistoryPoints(
        [one.number for one in done],
        [float(one.value or 0) for one in done],
        [words(one) for one in done],
        [one.number for one in pruned],
        [one.curve[-1][1] for one in pruned],
        [one.number for one in done],
        [float(value) for value in best],
    )


def history_figure(points: HistoryPoints) -> go.Figure:
    figure = _figure("trial", "value (tuned on)")
    line = {"color": SURE, "width": 1.5, "shape": "hv"}
    figure.add_scatter(
        x=points.best_numbers, y=points.best_values, mode="lines", name="best so far", line=line
    )
    _add_trials(figure, points.numbers, points.values, points.numbers, points.texts)
    _add_trials(figure, points.pruned_numbers, points.pruned_values, points.pruned_numbers)
    figure.data[-1].update(name="pruned", marker={"color": NEUTRAL, "symbol": "x", "size": 7})
    return figure


def setting_points(study: Study) -> SettingPoints:
    """Return finished trials along each searched setting."""
    done = [one for one in study.finished if one.value is not None]
    axes = [
        _axis(one, [trial.values.get(one.name) for trial in done])
        for one in study.settings.parameters
    ]
    return SettingPoints(
        [one.number for one in done], [float(one.value or 0) for one in done], axes
    )


def parallel_figure(points: SettingPoints) -> go.Figure:
    """Draw every finished trial as a line through its settings, darker for a higher value.

    Plotly's own parallel coordinates need WebGL, which not every machine has.
    """
    axes = [*points.axes, _value_axis(points.values)]
    figure = _figure("", "")
    order = np.argsort(points.values, kind="stable")
    for group, colour in zip(np.array_split(order, len(SHADES)), SHADES, strict=True):
        if not len(group):
            continue
        x, y, numbers = [], [], []
        for at in group:
            x += [*range(len(axes)), None]
            y += [*(_part(axis, axis.places[at]) for axis in axes), None]
            numbers += [points.numbers[at]] * (len(axes) + 1)
        low, high = points.values[group[0]], points.values[group[-1]]
        figure.add_scatter(
            x=x,
            y=y,
            customdata=numbers,
            mode="lines+markers",
            name=f"{low:.4f} to {high:.4f}",
            line={"color": colour, "width": 1.5},
            marker={"color": colour, "size": 5},
            hovertemplate="trial %{customdata}<extra></extra>",
        )
    for at, axis in enumerate(axes):
        figure.add_vline(x=at, line={"color": NEUTRAL, "width": 1})
        for tick, name in zip(axis.ticks, axis.names, strict=True):
            figure.add_annotation(
                x=at, y=_part(axis, tick), text=name, xanchor="left", showarrow=False, xshift=4
            )
    names = [axis.name for axis in axes]
    figure.update_xaxes(tickvals=list(range(len(axes))), ticktext=names, showgrid=False)
    figure.update_yaxes(showticklabels=False, showgrid=False, zeroline=False)
    return figure


def _value_axis(values: list[float]) -> Axis:
    low, high = (min(values), max(values)) if values else (0.0, 1.0)
    ticks = np.linspace(low, high, 3)
    return Axis("value", values, ticks.tolist(), [f"{one:.4f}" for one in ticks], False)


def _part(axis: Axis, place: float) -> float:
    """Return where a place is on its axis, 0 the lowest tick and 1 the highest."""
    low, high = min(axis.ticks), max(axis.ticks)
    return (place - low) / ((high - low) or 1.0)


def slice_figure(points: SettingPoints) -> go.Figure:
    """Draw the value by each setting; choices are joined by a line."""
    n = max(len(points.axes), 1)
    columns = min(n, 4)
    rows = -(-n // columns)
    figure = make_subplots(rows, columns, shared_yaxes=True, horizontal_spacing=0.03)
    for at, one in enumerate(points.axes):
        row, column = at // columns + 1, at % columns + 1
        order = np.argsort(one.places, kind="stable")
        figure.add_scatter(
            x=[one.places[i] for i in order],
            y=[points.values[i] for i in order],
            customdata=[points.numbers[i] for i in order],
            mode="lines+markers" if one.is_choice else "markers",
            line={"color": SURE, "width": 1},
            marker={"color": SURE, "size": 8, "opacity": 0.85},
            hovertemplate="trial %{customdata}<br>value %{y:.4f}<extra></extra>",
            showlegend=False,
            row=row,
            col=column,
        )
        figure.update_xaxes(
            title=one.name, tickvals=one.ticks, ticktext=one.names, row=row, col=column
        )
    figure.update_yaxes(title="value (tuned on)", col=1)
    height = max(HEIGHT, 240 * rows)
    return figure.update_layout(height=height, margin={"l": 60, "r": 20, "t": 20, "b": 50})


def importance_figure(shares: dict[str, float]) -> go.Figure:
    """Draw how much each setting matters for being among the best trials."""
    names = list(shares)[::-1]
    figure = _figure("share of importance", "")
    figure.add_bar(
        x=[shares[name] for name in names], y=names, orientation="h", marker={"color": SURE}
    )
    return figure.update_layout(showlegend=False)


def contour_points(study: Study, x: str, y: str, size: int = 40) -> ContourPoints:
    """Return the value between trials, linear inside and absent outside them."""
    points = setting_points(study)
    axes = {one.name: one for one in points.axes}
    a, b = axes[x], axes[y]
    where = np.column_stack([a.places, b.places]) if points.values else np.empty((0, 2))
    spread = np.ptp(where, axis=0) if len(where) else np.zeros(2)
    grid: list[list[float | None]] = []
    grid_x, grid_y = np.zeros(0), np.zeros(0)
    if len(np.unique(where, axis=0)) >= 4 and (spread > 0).all():
        grid_x, grid_y = (
            np.linspace(where[:, at].min(), where[:, at].max(), size) for at in (0, 1)
        )
        mesh = np.meshgrid(grid_x, grid_y)
        try:
            found = griddata(where, points.values, tuple(mesh), rescale=True)
            grid = [[None if cell != cell else float(cell) for cell in row] for row in found]
        except QhullError:  # all trials on one line
            grid = []
    return ContourPoints(a, b, points.numbers, points.values, list(grid_x), list(grid_y), grid)


def contour_figure(points: ContourPoints) -> go.Figure:
    figure = _figure(points.x.name, points.y.name)
    if points.grid:
        figure.add_contour(
            x=points.grid_x,
            y=points.grid_y,
            z=points.grid,
            colorscale=SCALE,
            contours={"coloring": "heatmap"},
            line={"width": 0.5},
            colorbar={"title": "value", "thickness": 12},
            hoverinfo="skip",
        )
    _add_trials(figure, points.x.places, points.y.places, points.numbers)
    figure.data[-1].update(
        marker={"color": points.values, "colorscale": SCALE, "size": 9, "line": {"width": 1}}
    )
    figure.update_xaxes(tickvals=points.x.ticks, ticktext=points.x.names)
    figure.update_yaxes(tickvals=points.y.ticks, ticktext=points.y.names)
    return figure.update_layout(showlegend=False)


def curves_points(study: Study) -> CurvesPoints:
    """Return the learning curves of all trials."""
    best = study.best
    others = [one for one in study.trials if one is not best]
    lines = {
        state: _joined([one for one in others if one.state == state])
        for state in ("finished", "pruned")
    }
    own = best.curve if best else ()
    return CurvesPoints(
        lines["finished"],
        lines["pruned"],
        ([epoch for epoch, _ in own], [value for _, value in own]),
        best.number if best else None,
    )


def curves_figure(points: CurvesPoints) -> go.Figure:
    figure = _figure("epoch", "value (tuned on)")
    for (x, y), name, colour in (
        (points.pruned, "pruned", NEUTRAL),
        (points.finished, "finished", SURE),
    ):
        line = {"color": colour, "width": 1}
        figure.add_scatter(x=x, y=y, mode="lines", name=name, opacity=0.45, line=line)
    if points.best_number is not None:
        epochs, values = points.best
        line = {"color": DOUBTFUL, "width": 3}
        name = f"best: {points.best_number}"
        figure.add_scatter(x=epochs, y=values, mode="lines", name=name, line=line)
    return figure


def pareto_points(study: Study, x: str = "smoothness", y: str = "value") -> ParetoPoints:
    """Return finished trials by two measures; less time is better, more of the others."""
    known = [
        one for one in study.finished if getattr(one, x) is not None and getattr(one, y) is not None
    ]
    xs, ys = ([float(getattr(one, name)) for one in known] for name in (x, y))
    better_x, better_y = (
        [-value for value in values] if name == "seconds" else values
        for name, values in ((x, xs), (y, ys))
    )
    front, highest = [], -np.inf
    for at in sorted(range(len(known)), key=lambda i: (-better_x[i], -better_y[i])):
        if better_y[at] > highest:
            front.append(at)
            highest = better_y[at]
    numbers = [one.number for one in known]
    return ParetoPoints(MEASURES[x], MEASURES[y], numbers, xs, ys, front)


def pareto_figure(points: ParetoPoints) -> go.Figure:
    figure = _figure(points.x_name, points.y_name)
    figure.add_scatter(
        x=[points.x[at] for at in points.front],
        y=[points.y[at] for at in points.front],
        mode="lines",
        name="nothing better in both",
        line={"color": DOUBTFUL, "width": 1.5},
    )
    _add_trials(figure, points.x, points.y, points.numbers)
    return figure


def _axis(parameter: Parameter, values: Sequence[Any]) -> Axis:
    name = parameter.name
    if parameter.choices:
        names = [setting_text(name, one) for one in parameter.choices]
        places = [float(parameter.choices.index(value)) for value in values]
        return Axis(name, places, [float(at) for at in range(len(names))], names, True)
    numbers = np.array([float(value) for value in values])
    if not parameter.log:
        ticks = np.linspace(parameter.low or 0, parameter.high or 0, 5)
        return Axis(name, numbers.tolist(), ticks.tolist(), [f"{one:.3g}" for one in ticks], False)
    low, high = np.log10([parameter.low or 1, parameter.high or 1])
    ticks = np.linspace(low, high, max(2, round(high - low) + 1))
    return Axis(
        name, np.log10(numbers).tolist(), ticks.tolist(), [f"{10**one:.3g}" for one in ticks], False
    )


def _joined(trials: list[Trial]) -> tuple[list[int | None], list[float | None]]:
    """Return many lines as one, with gaps: one trace is drawn faster than many."""
    x: list[int | None] = []
    y: list[float | None] = []
    for trial in trials:
        x += [*(epoch for epoch, _ in trial.curve), None]
        y += [*(value for _, value in trial.curve), None]
    return x, y


def _add_trials(
    figure: go.Figure,
    x: Sequence[float],
    y: Sequence[float],
    numbers: Sequence[int],
    texts: Sequence[str] | None = None,
) -> None:
    shown = "<br>%{text}" if texts else ""
    figure.add_scatter(
        x=x,
        y=y,
        customdata=numbers,
        text=texts,
        mode="markers",
        name="finished",
        marker={"color": SURE, "size": 9, "opacity": 0.85},
        hovertemplate=f"trial %{{customdata}}<br>%{{y:.4f}}{shown}<extra></extra>",
    )


def _figure(x: str, y: str) -> go.Figure:
    figure = go.Figure()
    figure.update_layout(
        height=HEIGHT,
        margin={"l": 60, "r": 20, "t": 40, "b": 45},
        legend={"orientation": "h", "yanchor": "bottom", "y": 1.02, "x": 0},  # not over the points
        uirevision="kept",
        dragmode="lasso",
    )
    figure.update_xaxes(title=x)
    figure.update_yaxes(title=y)
    return figure
