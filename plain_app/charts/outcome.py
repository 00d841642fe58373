"""What resolving does to the labels: how frequent each was and is."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from plain_app.charts import axis, distinct, legend, titled
from plain_app.charts.distribution import MAX_LABELS


class OutcomePoints(NamedTuple):
    """Share of instances with each label, before and after; the most frequent first."""

    labels: list[str]
    before: list[float]
    after: list[float]
    n_labels: int


def outcome_points(
    before: npt.NDArray[np.uint8], after: npt.NDArray[np.uint8], names: Sequence[str]
) -> OutcomePoints:
    """Return percentages for the labels that were offered most."""
    old, new = (100 * one.mean(axis=0) for one in (before, after))
    chosen = np.argsort(-old, kind="stable")[:MAX_LABELS]
    return OutcomePoints(
        distinct([names[at] for at in chosen]),
        np.round(old[chosen], 2).tolist(),
        np.round(new[chosen], 2).tolist(),
        len(names),
    )


def outcome_option(points: OutcomePoints) -> dict[str, Any]:
    title = "Labels before and after"
    if len(points.labels) < points.n_labels:
        title += f" ({len(points.labels)} most frequent)"
    bars = {"type": "bar", "barGap": "10%", "barCategoryGap": "30%"}
    option = titled(
        title,
        legend=legend(["resolved", "candidates"]),
        xAxis=axis("% of instances"),
        yAxis=axis("", "category", data=points.labels, inverse=True),
        series=[
            {**bars, "name": "resolved", "data": points.after},
            {**bars, "name": "candidates", "data": points.before},
        ],
    )
    option["grid"] |= {"top": 48}
    option["yAxis"]["axisLabel"] |= {"interval": 0 if len(points.labels) <= 16 else "auto"}
    return option
