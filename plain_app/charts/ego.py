"""An instance among its neighbours: the strongest edges, and those between the neighbours."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from core.engine.graphs import InstanceGraph
from plain_app.charts.colours import DOUBTFUL, NEUTRAL, SURE

MAX_NEIGHBOURS = 12


class EgoPoints(NamedTuple):
    """The instance first, then its neighbours in graph order; edges by place in `rows`."""

    rows: tuple[int, ...]
    weights: tuple[float, ...]  # of the edge to the instance; 1 for itself
    edges: tuple[tuple[int, int, float], ...]
    values: tuple[float | None, ...]  # confidence in a label, None where it is not offered
    names: tuple[str, ...]


def ego_points(
    graph: InstanceGraph,
    i: int,
    confidence: Sequence[float | None] | npt.NDArray[Any],
    ids: Sequence[str],
    limit: int = MAX_NEIGHBOURS,
) -> EgoPoints:
    """Return the `limit` strongest neighbours of an instance and the edges among all.

    `confidence` is one label's, by instance; None or NaN where it is not offered.
    """
    near, edge_weights = graph.strongest(i, limit)
    rows, weights = (i, *near), (1.0, *edge_weights)
    among = sp.triu(graph.affinity[list(rows)][:, list(rows)], 1).tocoo()
    edges = tuple(
        (int(a), int(b), float(weight))
        for a, b, weight in zip(among.row, among.col, among.data, strict=True)
    )
    values = tuple(_known(confidence[row]) for row in rows)
    return EgoPoints(rows, weights, edges, values, tuple(ids[row] for row in rows))


def ego_option(points: EgoPoints) -> dict[str, Any]:
    """Return the ECharts option: the instance in the middle, stronger neighbours closer."""
    strongest = max(points.weights[1:], default=1.0)
    links = [
        {
            "source": str(a),
            "target": str(b),
            "lineStyle": {
                "width": 0.5 + 3.5 * weight / max(strongest, weight),
                "opacity": 0.8 if a == 0 else 0.3,
            },
        }
        for a, b, weight in points.edges
    ]
    return {
        "animation": False,
        "series": [
            {
                "type": "graph",
                "layout": "none",
                "preserveAspect": "contain",
                "silent": True,
                "data": _nodes(points, strongest),
                "links": links,
                "lineStyle": {"color": NEUTRAL},
                "label": {"show": True, "fontSize": 10, "width": 84, "overflow": "truncate"},
                "left": 48,
                "right": 48,
                "top": 14,
                "bottom": 28,
            }
        ],
    }


def _nodes(points: EgoPoints, strongest: float) -> list[dict[str, Any]]:
    count, nodes = max(len(points.rows) - 1, 1), list[dict[str, Any]]()
    for at, (name, weight, value) in enumerate(
        zip(points.names, points.weights, points.values, strict=True)
    ):
        angle = 2 * np.pi * (at - 1) / count - np.pi / 2
        radius = 0.0 if at == 0 else 60 + 40 * (1 - weight / strongest)
        nodes.append(
            {
                "id": str(at),
                "name": name,
                "x": float(radius * 2.2 * np.cos(angle)),
                "y": float(radius * np.sin(angle)),
                "symbolSize": 26 if at == 0 else 15,
                "itemStyle": {"color": NEUTRAL if value is None else shade(value)},
                "label": {"position": "bottom"},
            }
        )
    return nodes


def shade(confidence: float) -> str:
    """Return the colour of a confidence, from doubtful by way of neutral to sure."""
    low, high = (DOUBTFUL, NEUTRAL) if confidence < 0.5 else (NEUTRAL, SURE)
    part = min(max(confidence * 2 % 1 if 0 < confidence < 1 else float(confidence >= 1), 0.0), 1.0)
    ends = [[int(colour[at : at + 2], 16) for at in (1, 3, 5)] for colour in (low, high)]
    mixed = (round(a + (b - a) * part) for a, b in zip(*ends, strict=True))
    return "#" + "".join(f"{one:02x}" for one in mixed)


def _known(value: float | None) -> float | None:
    return None if value is None or value != value else float(value)
