"""Whether confidences keep their word: of the cells that claim 0.8, are 80 % true?"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from core.confidence.calibration import expected_calibration_error, reliability
from plain_app.charts import axis, titled


class ReliabilityPoints(NamedTuple):
    """Claimed and true share by bin of confidence, with the cells in each."""

    claimed: list[float]
    true: list[float]
    n_cells: list[int]
    error: float


def reliability_points(confidences: npt.NDArray[Any], truth: npt.NDArray[Any]) -> ReliabilityPoints:
    """Return the bins of cells whose truth, or verdict (NaN: none), is known."""
    found = reliability(confidences, truth)
    return ReliabilityPoints(
        np.round(found.confidence, 3).tolist(),
        np.round(found.true_share, 3).tolist(),
        found.n_cells.tolist(),
        expected_calibration_error(confidences, truth),
    )


def reliability_option(points: ReliabilityPoints) -> dict[str, Any]:
    largest = max(points.n_cells, default=1)
    dots = [
        {"value": [x, y, n], "symbolSize": 6 + 18 * (n / largest) ** 0.5}
        for x, y, n in zip(points.claimed, points.true, points.n_cells, strict=True)
    ]
    ideal = {"type": "dashed", "width": 1, "color": "#8a8f98"}
    option = titled(
        f"Claimed and true (mean error {points.error:.3f})" if dots else "Claimed and true",
        xAxis=axis("confidence", min=0, max=1),
        yAxis=axis("share that is true", min=0, max=1, nameGap=34),
        series=[
            {"type": "line", "name": "cells", "data": dots, "symbol": "circle"},
            {
                "type": "line",
                "name": "as claimed",
                "data": [[0, 0], [1, 1]],
                "symbol": "none",
                "silent": True,
                "lineStyle": ideal,
            },
        ],
    )
    option["grid"] = option["grid"] | {"left": 26}  # room for the axis' name
    return option
