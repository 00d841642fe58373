"""The label graph: network, clustered heat map, and rules about false candidates."""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from plain_app.charts import toolbox
from plain_app.charts.colours import DOUBTFUL, NEUTRAL, SURE

Matrix = npt.NDArray[np.float32]

MIN_SUPPORT = 20
N_RULES = 20
MANY_LABELS = 24
WIDE = 90  # pixels of a name beside its node: what is around a ring of them
MAX_BELOW, FIT_BELOW = 15, 60  # characters: of a name below a column, and of all that fit there
LONG_NAME, MANY_LONG = 16, 8  # more labels with longer names would cover each other between springs


class LabelCounts(NamedTuple):
    """What is counted once per run, L or L x L."""

    candidates: npt.NDArray[np.int64]  # (L,) how often each label is offered
    doubtful: npt.NDArray[np.int64]  # (L,) how often with a confidence below 0.5
    together: npt.NDArray[np.int64]  # (L, L) how often both are offered
    doubtful_beside: npt.NDArray[np.int64]  # (L, L) a offered and b offered but doubtful

    @property
    def noise(self) -> npt.NDArray[np.float64]:
        """Share of each label's candidates that are doubtful."""
        return self.doubtful / np.maximum(self.candidates, 1)


class Network(NamedTuple):
    names: tuple[str, ...]
    candidates: tuple[int, ...]
    noise: tuple[float, ...]
    edges: tuple[tuple[int, int, float], ...]  # a, b, weight; strongest first
    order: tuple[int, ...]  # labels so that related ones are side by side


class HeatMap(NamedTuple):
    names: tuple[str, ...]  # in clustered order
    order: tuple[int, ...]
    weights: Matrix  # in clustered order
    is_difference: bool


class Rule(NamedTuple):
    """b, offered beside a, is doubtful in `rate` of `support` cases; in `base` of all."""

    a: int
    b: int
    rate: float
    base: float
    support: int


def count_labels(candidates: npt.NDArray[Any], confidences: Matrix) -> LabelCounts:
    """Count offers and doubts, alone and side by side."""
    offered = (candidates > 0).astype(np.float32)
    doubtful = offered * (confidences < 0.5)
    together = _whole(offered.T @ offered)
    beside = _whole(offered.T @ doubtful)
    return LabelCounts(np.diag(together).copy(), np.diag(beside).copy(), together, beside)


def rules_points(counts: LabelCounts, min_support: int = MIN_SUPPORT) -> list[Rule]:
    """Return where a neighbour makes a candidate more doubtful, the largest excess first."""
    rate = counts.doubtful_beside / np.maximum(counts.together, 1)
    excess = np.where(counts.together >= min_support, rate - counts.noise[None, :], -np.inf)
    np.fill_diagonal(excess, -np.inf)
    best = np.argsort(-excess, axis=None, kind="stable")[:N_RULES]
    pairs = [divmod(int(at), len(rate)) for at in best if excess.flat[at] > 0]
    return [
        Rule(a, b, float(rate[a, b]), float(counts.noise[b]), int(counts.together[a, b]))
        for a, b in pairs
    ]


def network_points(
    weights: Matrix,
    names: Sequence[str],
    counts: LabelCounts,
    threshold: float,
    order: Sequence[int] = (),
    max_edges: int = 600,
) -> Network:
    """Keep the edges at or above a weight, the strongest `max_edges` of them."""
    a, b = np.nonzero(np.triu(weights, 1) >= max(threshold, 1e-9))
    strongest = np.argsort(-weights[a, b], kind="stable")[:max_edges]
    edges = tuple((int(a[at]), int(b[at]), float(weights[a[at], b[at]])) for at in strongest)
    noise = tuple(float(share) for share in counts.noise)
    order = tuple(order) or tuple(range(len(names)))
    return Network(tuple(names), tuple(counts.candidates.tolist()), noise, edges, order)


def heat_map_points(
    weights: Matrix, names: Sequence[str], order: Sequence[int], is_difference: bool = False
) -> HeatMap:
    """Bring a matrix into an order."""
    at = np.asarray(order, int)
    return HeatMap(
        tuple(names[i] for i in at), tuple(map(int, at)), weights[np.ix_(at, at)], is_difference
    )


def clustered_order(weights: Matrix) -> list[int]:
    """Return labels so that those often offered together are side by side."""
    from scipy.cluster.hierarchy import leaves_list, linkage, optimal_leaf_ordering
    from scipy.spatial.distance import squareform

    if len(weights) < 3:
        return list(range(len(weights)))
    top = float(weights.max()) or 1.0
    distances = squareform(1 - weights.astype(np.float64) / top, checks=False)
    tree = linkage(distances, "average")
    if len(weights) <= 300:
        tree = optimal_leaf_ordering(tree, distances)
    return [int(at) for at in leaves_list(tree)]


def network_option(points: Network) -> dict[str, Any]:
    """Return the ECharts option of the network: width is weight, size is candidates."""
    most = max((*points.candidates, 1))
    width = _scale([weight for _, _, weight in points.edges])
    grown = 30 * min(1.0, MANY_LABELS / len(points.names))
    nodes = [
        {
            "id": str(at),
            "name": points.names[at],
            "value": round(points.noise[at], 3),
            "symbolSize": 5 + grown * (points.candidates[at] / most) ** 0.5,
        }
        for at in points.order
    ]
    links = [
        {
            "source": str(a),
            "target": str(b),
            "value": round(weight, 4),
            "lineStyle": {"width": 0.5 + 5.5 * width(weight)},
        }
        for a, b, weight in points.edges
    ]
    series = {
        "type": "graph",
        "roam": True,
        "selectedMode": "single",
        **(_ring() if _is_crowded(points.names) else _springs(len(nodes))),
        "data": nodes,
        "links": links,
        "label": {"show": True, "position": "right", "width": WIDE, "overflow": "truncate"},
        "labelLayout": {"hideOverlap": True},
        "lineStyle": {"color": NEUTRAL, "opacity": 0.45, "curveness": 0},
        "select": {"lineStyle": {"color": DOUBTFUL, "opacity": 1}},
        "emphasis": {"focus": "adjacency"},
    }
    return {
        "animation": False,
        "tooltip": {"valueFormatter": "%.3f"},
        "visualMap": _doubt_scale(math.ceil(10 * max((*points.noise, 0.1))) / 10),
        "series": [series],
    }


def _doubt_scale(noisiest: float) -> dict[str, Any]:
    """Return the scale of colours from sure to doubtful."""
    return {
        "min": 0,
        "max": noisiest,
        "text": [f"{100 * noisiest:.0f}% doubtful", "0%"],
        "orient": "horizontal",
        "left": "center",
        "bottom": 0,
        "itemHeight": 120,
        "itemWidth": 10,
        "calculable": False,
        "inRange": {"color": [SURE, NEUTRAL, DOUBTFUL]},
        "seriesIndex": 0,
    }


def _is_crowded(names: Sequence[str]) -> bool:
    is_long = max(map(len, names), default=0) > LONG_NAME
    return len(names) > (MANY_LONG if is_long else MANY_LABELS)


def _ring() -> dict[str, Any]:
    """Lay many labels out on a circle, where they always fit."""
    around = {"top": 100, "bottom": 124, "left": 100, "right": 100}
    return {"layout": "circular", "circular": {"rotateLabel": True}, **around}


def _springs(count: int) -> dict[str, Any]:
    """Let few labels find their own places."""
    force = {
        "initLayout": "circular",
        "repulsion": 1500 / max(count, 4) ** 0.5,
        "edgeLength": [50, 160],
        "gravity": 0.2,
        "layoutAnimation": False,
    }
    return {"layout": "force", "force": force, "top": 12, "bottom": 44}


def heat_map_option(points: HeatMap) -> dict[str, Any]:
    """Return the ECharts option of the clustered heat map."""
    top = float(np.abs(points.weights).max(initial=0)) or 1.0
    shown = points.weights[points.weights > 0]
    low = -top if points.is_difference else float(shown.min(initial=top))
    cells = [
        [column, row, round(float(value), 4)]
        for row, line in enumerate(points.weights)
        for column, value in enumerate(line)
        if value
    ]
    axis: dict[str, Any] = {
        "type": "category",
        "data": list(points.names),
        "axisTick": {"show": False},
        "splitArea": {"show": False},
        "axisLabel": {"width": 90, "overflow": "truncate", "hideOverlap": True},
    }
    longest = min(MAX_BELOW, max(map(len, points.names), default=0))
    crowded = len(points.names) * longest > FIT_BELOW
    return {
        "animation": False,
        "toolbox": toolbox(),
        "tooltip": {"valueFormatter": "%.3f"},
        "grid": {"left": 8, "right": 12, "top": 20, "bottom": 40, "containLabel": True},
        "xAxis": {**axis, "axisLabel": {**axis["axisLabel"], "rotate": 90 if crowded else 0}},
        "yAxis": {**axis, "inverse": True},
        "visualMap": {
            "min": low,
            "max": top,
            "precision": 2,
            "text": [f"{top:.2f}", f"weight {low:.2f}".replace("-", "−")],
            "orient": "horizontal",
            "left": "center",
            "bottom": 0,
            "itemHeight": 140,
            "itemWidth": 10,
            "calculable": False,
            "inRange": {
                "color": [SURE, f"{NEUTRAL}22", DOUBTFUL]
                if points.is_difference
                else [f"{SURE}33", SURE]
            },
        },
        "series": [{"type": "heatmap", "name": "weight", "data": cells}],
    }


def _scale(values: Sequence[float]) -> Callable[[float], float]:
    """Return what brings values to [0, 1]."""
    low, high = min(values, default=0.0), max(values, default=1.0)
    return lambda value: (value - low) / ((high - low) or 1.0)


def _whole(values: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    return np.asarray(np.rint(values), np.int64)
