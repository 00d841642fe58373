"""What a run told epoch by epoch, as lines."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from core.engine.events import EpochRecord
from plain_app.charts import WHOLE, axis, legend, side_by_side, titled

MAX_POINTS = 600
TERMS = {
    "prediction": "prediction",
    "candidates": "candidates η",
    "instance_graph": "instances α",
    "label_graph": "labels β",
}
METRICS = {
    "auc": "AUC of all cells",
    "macro_auc": "AUC per label",
    "instance_ap": "AP per instance",
    "f1": "F1 at 0.5",
    "candidate_f1": "F1 as given",
}

Line = list[float | None]


class CurvePoints(NamedTuple):
    """One value per shown epoch; `n_epochs` is how many there will be."""

    n_epochs: int
    epochs: list[int]
    loss: Line
    objective: dict[str, Line]
    changed: Line
    entropy: Line
    metrics: dict[str, Line]


def curve_points(records: Sequence[EpochRecord], n_epochs: int) -> CurvePoints:
    """Return the lines of a run, thinned where there are more epochs than pixels."""
    step = max(1, math.ceil(len(records) / MAX_POINTS))
    shown = [*records[: len(records) - 1 : step], *records[-1:]]
    objective = {
        text: [_number(getattr(one.objective, name)) for one in shown]
        for name, text in TERMS.items()
    }
    objective["sum"] = [_number(one.objective.total) for one in shown]
    scored = [one.metrics or {} for one in shown]
    metrics = {
        text: [_number(one.get(name)) for one in scored]
        for name, text in METRICS.items()
        if any(name in one for one in scored)
    }
    return CurvePoints(
        n_epochs,
        [one.epoch for one in shown],
        [_number(one.loss) for one in shown],
        objective,
        [one.cells_changed for one in shown],
        [_number(one.entropy) for one in shown],
        metrics,
    )


def curves_option(points: CurvePoints) -> dict[str, Any]:
    """Return all curves in one chart, two above and the others beneath: one canvas to draw."""
    charts = [
        _lines("Objective and its four terms", points, points.objective),
        _lines("Network loss, mean", points, {"loss": points.loss}),
        _lines("Cells that changed sides", points, {"cells": points.changed}, bars=True),
        _lines("Entropy of confidences, mean (nats)", points, {"entropy": points.entropy}),
    ]
    if points.metrics:
        charts.insert(0, _lines("Against the truth", points, points.metrics))
    return side_by_side([charts[:2], charts[2:]])


def _number(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else round(float(value), 6)


def _lines(
    title: str, points: CurvePoints, lines: dict[str, Line], bars: bool = False
) -> dict[str, Any]:
    kind = {"type": "bar", "barMaxWidth": 8} if bars else {"type": "line", "showSymbol": False}
    single = {"showSymbol": True, "symbolSize": 4} if len(points.epochs) < 2 and not bars else {}
    series = [
        {
            "name": name,
            **kind,
            **single,
            "data": [list(pair) for pair in zip(points.epochs, values, strict=True)],
        }
        for name, values in lines.items()
    ]
    option = titled(
        title,
        xAxis=axis(
            "epoch",
            min=0 if bars else 1,
            max=max(2, points.n_epochs),
            minInterval=1,
            axisPointer=WHOLE,
        ),
        yAxis=axis("", scale=not bars, splitNumber=4),
        series=series,
    )
    option["tooltip"]["trigger"] = "axis"
    if len(lines) > 1:
        option["legend"] = legend(list(lines))
    return option
