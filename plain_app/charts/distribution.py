"""What a data set looks like before training: how many candidates, which labels, which together."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from plain_app.charts import BESIDE, axis, distinct, shades, side_by_side, titled

MAX_LABELS = 30
MAX_TOGETHER = 16  # so that every name is readable
SHORT = 6  # characters of a name that fits below a column of a heat map


class CountPoints(NamedTuple):
    """How many instances have how many candidates."""

    candidates: list[str]
    instances: list[int]


class FrequencyPoints(NamedTuple):
    """Share of instances that are offered a label, the most frequent first."""

    labels: list[str]
    shares: list[float]
    n_labels: int


class TogetherPoints(NamedTuple):
    """How often label `other` is offered where `label` is."""

    labels: list[str]
    cells: list[tuple[str, str, float]]  # other, label, % of where the label is
    n_labels: int


def count_points(per_instance: list[int], most: int = 24) -> CountPoints:
    """Return the counts; everything from `most` on in one."""
    head, tail = per_instance[:most], sum(per_instance[most:])
    names = [str(i) for i in range(len(head))]
    return CountPoints([*names, f"≥ {most}"], [*head, tail]) if tail else CountPoints(names, head)


def count_option(points: CountPoints) -> dict[str, Any]:
    bars = {"type": "bar", "name": "instances", "data": points.instances, "barCategoryGap": "25%"}
    option = titled(
        "Instances by candidates",
        xAxis=axis("candidates", "category", data=points.candidates),
        yAxis=axis("", minInterval=1),
        series=[bars],
    )
    return option


def frequency_points(frequencies: dict[str, float]) -> FrequencyPoints:
    """Return the most frequent labels."""
    ordered = sorted(frequencies.items(), key=lambda pair: -pair[1])[:MAX_LABELS]
    names = distinct([name for name, _ in ordered], BESIDE)
    return FrequencyPoints(names, [round(100 * one, 2) for _, one in ordered], len(frequencies))


def frequency_option(points: FrequencyPoints) -> dict[str, Any]:
    bars = {"type": "bar", "name": "% of instances", "data": points.shares, "barCategoryGap": "25%"}
    option = titled(
        _of_all("Labels offered", points.labels, points.n_labels),
        xAxis=axis("% of instances"),
        yAxis=axis("", "category", data=points.labels, inverse=True),
        series=[bars],
    )
    option["yAxis"]["axisLabel"] |= {"interval": 0 if len(points.labels) <= 16 else "auto"}
    return option


def together_points(candidates: npt.NDArray[np.uint8], names: Sequence[str]) -> TogetherPoints:
    """Return P(other offered | label offered) for the most frequent labels."""
    chosen = np.argsort(-candidates.sum(axis=0, dtype=np.int64), kind="stable")[:MAX_TOGETHER]
    offered = candidates[:, chosen].astype(np.float32)
    counts = offered.T @ offered
    share = counts / np.maximum(np.diag(counts), 1)[:, None]
    labels = distinct([names[j] for j in chosen], BESIDE)
    at, other = np.nonzero(~np.eye(len(chosen), dtype=bool))
    percent = np.round(100.0 * share[at, other], 1).tolist()
    pairs = zip(other.tolist(), at.tolist(), percent, strict=True)
    cells = [(labels[j], labels[i], value) for j, i, value in pairs]
    return TogetherPoints(labels, cells, len(names))


def together_option(points: TogetherPoints) -> dict[str, Any]:
    high = max((value for *_, value in points.cells), default=1.0)
    heat = {
        "type": "heatmap",
        "name": "% beside",
        "data": points.cells,
    }
    option = titled(
        _of_all("Offered beside the row's label", points.labels, points.n_labels),
        xAxis=axis("", "category", data=points.labels),
        yAxis=axis("", "category", data=points.labels, inverse=True),
        visualMap=shades(0, max(high, 1.0), dimension=2, precision=0),
        series=[heat],
    )
    option["grid"]["right"] = 52
    option["yAxis"]["axisLabel"] |= {"interval": 0}
    if max(map(len, points.labels), default=0) > SHORT:  # side by side they would not fit
        option["xAxis"] |= {"name": "the same labels, in this order", "nameGap": 10}
        option["xAxis"]["axisLabel"] = {"show": False}
    return option


def _of_all(title: str, shown: list[str], n_labels: int) -> str:
    return title if len(shown) == n_labels else f"{title} (top {len(shown)})"


def overview_option(
    counts: CountPoints, frequencies: FrequencyPoints, together: TogetherPoints, height: int
) -> dict[str, Any]:
    """Return all of it in one chart."""
    options = (count_option(counts), frequency_option(frequencies), together_option(together))
    return side_by_side([options], (1, 1.1, 1.5), height)
