"""What moving a setting does to the candidate cells: how many change sides, where, which."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from plain_app.charts import BESIDE, axis, distinct, legend, side_by_side, titled
from plain_app.charts.colours import DOUBTFUL, NEUTRAL, SURE

Numbers = npt.NDArray[Any]

BINS = 40
MAX_LABELS = 16
MAX_LINES = 8


class EffectPoints(NamedTuple):
    """Candidate cells before and after: the first at the run's settings and a cut of 0.5."""

    edges: list[float]
    before: list[int]
    after: list[int]
    n_cells: int
    n_kept_before: int
    n_kept: int
    gained: npt.NDArray[np.int64]  # cells that are kept now, the largest change first
    lost: npt.NDArray[np.int64]
    changed: npt.NDArray[np.int64]  # both
    labels: list[str]  # those with most changes
    label_gained: list[int]
    label_lost: list[int]


class SweepPoints(NamedTuple):
    """One instance's candidates along one setting."""

    name: str
    stops: list[str]
    at: int
    lines: dict[str, list[float]]


def effect_points(
    before: Numbers,
    after: Numbers,
    cut: float,
    cell_labels: Numbers,
    label_names: Sequence[str],
) -> EffectPoints:
    """Compare the confidences of all candidate cells."""
    edges = np.linspace(0, 1, BINS + 1)
    counts = [
        np.bincount(np.clip((c * BINS).astype(np.int64), 0, BINS - 1), minlength=BINS)
        for c in (before, after)
    ]
    was, is_now = before >= 0.5, after >= cut
    size = np.abs(after - before)

    def ordered(mask: Numbers) -> npt.NDArray[np.int64]:
        cells = np.flatnonzero(mask)
        return cells[np.argsort(-size[cells], kind="stable")]

    gained, lost, changed = ordered(is_now & ~was), ordered(was & ~is_now), ordered(was != is_now)
    by_label = [np.bincount(cell_labels[c], minlength=len(label_names)) for c in (gained, lost)]
    top = np.argsort(-(by_label[0] + by_label[1]), kind="stable")[:MAX_LABELS]
    return EffectPoints(
        edges.tolist(),
        counts[0].tolist(),
        counts[1].tolist(),
        len(before),
        int(was.sum()),
        int(is_now.sum()),
        gained,
        lost,
        changed,
        distinct([label_names[j] for j in top], BESIDE),
        by_label[0][top].tolist(),
        by_label[1][top].tolist(),
    )


def effect_option(points: EffectPoints, cut: float, height: int) -> dict[str, Any]:
    """Draw all candidate cells by confidence, and those that change sides by label."""
    return side_by_side([[distribution_option(points, cut), label_option(points)]], height=height)


def distribution_option(points: EffectPoints, cut: float) -> dict[str, Any]:
    """Draw the confidences of all candidate cells, before as a line, after as bars."""
    middle = [(a + b) / 2 for a, b in zip(points.edges, points.edges[1:], strict=False)]
    line: dict[str, Any] = {"type": "line", "step": "middle", "showSymbol": False}
    line |= {
        "name": "in the run",
        "data": [list(p) for p in zip(middle, points.before, strict=True)],
    }
    line["itemStyle"] = {"color": NEUTRAL}
    bars: dict[str, Any] = {"type": "bar", "name": "here", "barWidth": "95%"}
    bars["itemStyle"] = {"color": SURE}
    bars |= {"data": [list(p) for p in zip(middle, points.after, strict=True)]}
    bars["markLine"] = _mark(cut, DOUBTFUL)
    option = titled(
        "Confidences of all candidate cells",
        xAxis=axis("confidence", min=0, max=1),
        yAxis=axis("", splitNumber=3),
        series=[bars, line],
        legend=legend(["here", "in the run"]),
    )
    option["tooltip"]["trigger"] = "axis"
    return option


def label_option(points: EffectPoints) -> dict[str, Any]:
    """Draw per label how many cells are now kept, and how many no longer."""
    series = [
        _bars("now kept", points.label_gained, SURE),
        _bars("now removed", [-count for count in points.label_lost], DOUBTFUL),
    ]
    return titled(
        "Changed sides, by label",
        xAxis=axis("cells", minInterval=1),
        yAxis=axis("", "category", data=points.labels, inverse=True),
        series=series,
        legend=legend(["now kept", "now removed"]),
    )


def sweep_points(
    name: str, stops: Sequence[str], at: int, values: Numbers, label_names: Sequence[str]
) -> SweepPoints:
    """Order an instance's candidates by how far they move; `values` is (stops, candidates)."""
    travel = np.ptp(values, axis=0) if len(values) else np.zeros(0)
    top = np.argsort(-travel, kind="stable")[:MAX_LINES]
    names = distinct([label_names[j] for j in top])
    lines = {
        shown: np.round(values[:, j].astype(float), 4).tolist()
        for shown, j in zip(names, top, strict=True)
    }
    return SweepPoints(name, list(stops), at, lines)


def sweep_option(points: SweepPoints, title: str, y_name: str = "") -> dict[str, Any]:
    """Draw shares along the stops of a setting; a mark stands where it is now."""
    line = {"type": "line", "showSymbol": False}
    series: list[dict[str, Any]] = [
        {**line, "name": name, "data": [list(pair) for pair in enumerate(values)]}
        for name, values in points.lines.items()
    ]
    if series:
        series[0]["markLine"] = _mark(points.at, NEUTRAL)
    option = titled(
        title,
        xAxis=axis(points.name, "category", data=points.stops, boundaryGap=False),
        yAxis=axis(y_name, scale=True, max=1, splitNumber=4),
        series=series,
        legend=legend(list(points.lines)),
    )
    option["grid"] |= {"top": 48, "bottom": 20}
    option["tooltip"]["trigger"] = "axis"
    return option


def _bars(name: str, values: list[int], colour: str) -> dict[str, Any]:
    return {
        "type": "bar",
        "name": name,
        "stack": "cells",
        "data": values,
        "itemStyle": {"color": colour},
        "barCategoryGap": "25%",
    }


def _mark(place: float, colour: str) -> dict[str, Any]:
    """Return a line across a chart where a setting stands."""
    line = {"color": colour, "type": "solid"}
    return {
        "data": [{"xAxis": place}],
        "symbol": "none",
        "silent": True,
        "label": {"show": False},
        "lineStyle": line,
    }
