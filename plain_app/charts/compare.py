"""Runs and trials side by side: their curves, and the cells on which they disagree."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from plain_app.charts import WHOLE, axis, distinct, legend, side_by_side, titled

Numbers = npt.NDArray[Any]
Curve = Sequence[tuple[int, float]]


class DisagreementPoints(NamedTuple):
    """Candidate cells that not all keep, or not all reject."""

    cells: npt.NDArray[np.int64]  # the widest spread of confidences first
    spread: npt.NDArray[np.float32]
    pairs: npt.NDArray[np.int64]  # (m, m), cells on which two of them differ
    by_instance: npt.NDArray[np.int64]  # (n,), how many of an instance's cells


class CurvePoints(NamedTuple):
    """One measure by epoch, one line each."""

    name: str
    lines: dict[str, list[list[float]]]


def disagreement_points(
    confidences: Numbers, cell_rows: Numbers, n_instances: int, cut: float = 0.5
) -> DisagreementPoints:
    """Find the cells on which m confidences of the same cells, (m, cells), disagree."""
    kept = confidences >= cut
    differs = kept.any(axis=0) & ~kept.all(axis=0)
    cells = np.flatnonzero(differs)
    spread = np.ptp(confidences[:, cells].astype(np.float32), axis=0)
    order = np.argsort(-spread, kind="stable")
    pairs = (kept[:, None, :] != kept[None, :, :]).sum(axis=2)
    counts = np.bincount(cell_rows[cells], minlength=n_instances)
    return DisagreementPoints(cells[order], spread[order], pairs, counts)


def curve_points(name: str, curves: Mapping[str, Curve]) -> CurvePoints:
    """Return the lines that have something to show."""
    titles = distinct(list(curves))
    lines = {
        title: [[epoch, round(float(value), 6)] for epoch, value in curve if np.isfinite(value)]
        for title, curve in zip(titles, curves.values(), strict=True)
    }
    return CurvePoints(name, {title: line for title, line in lines.items() if line})


def curves_option(measures: Sequence[CurvePoints], height: int) -> dict[str, Any]:
    """Return the curves of all measures side by side."""
    return side_by_side([[_lines(one) for one in measures]], height=height)


def _lines(points: CurvePoints) -> dict[str, Any]:
    series = [
        {"type": "line", "name": name, "data": line, "showSymbol": len(line) < 2}
        for name, line in points.lines.items()
    ]
    option = titled(
        points.name,
        xAxis=axis("epoch", min=1, minInterval=1, axisPointer=WHOLE),
        yAxis=axis("", scale=True, splitNumber=4),
        series=series,
        legend=legend(list(points.lines)),
    )
    option["tooltip"]["trigger"] = "axis"
    return option
