"""A figure of a data set or a run for a notebook: what is offered, and what of it is true."""

from typing import NamedTuple

import numpy as np
import plotly.graph_objects as go

from core.data.dataset import CandidateDataset
from core.export import Results
from plain_app.charts import distinct

MAX_LABELS = 30


class LabelPoints(NamedTuple):
    """Instances per label, the most often offered first."""

    labels: list[str]
    offered: list[int]
    likely: list[float] | None  # how many of them are true by a run: the sum of the confidences
    n_labels: int


def label_points(data: CandidateDataset | Results) -> LabelPoints:
    """Return the labels that are offered most often."""
    dataset = data if isinstance(data, CandidateDataset) else data.dataset
    offered = dataset.candidates.sum(axis=0, dtype=np.int64)
    order = np.argsort(-offered, kind="stable")[:MAX_LABELS]
    likely = None
    if isinstance(data, Results):
        sums = (data.confidences * dataset.candidates).sum(axis=0, dtype=np.float64)
        likely = sums[order].tolist()
    names = distinct([dataset.label_names[j] for j in order])
    return LabelPoints(names, offered[order].tolist(), likely, dataset.n_labels)


def label_figure(points: LabelPoints) -> go.Figure:
    """Draw bars; those of the run in front."""
    bars = [go.Bar(name="offered", x=points.labels, y=points.offered)]
    if points.likely is not None:
        bars.append(go.Bar(name="true, by the run", x=points.labels, y=points.likely))
    more = points.n_labels - len(points.labels)
    title = "Instances per label" + (f" ({more:,} more labels)" if more else "")
    axes = {"xaxis": {"type": "category"}, "yaxis": {"title": "instances"}}
    return go.Figure(bars, {"title": title, "barmode": "group", **axes})


def figure(data: CandidateDataset | Results) -> go.Figure:
    """Return a figure of a data set, or of what `core.export.run_results` gives for a run."""
    return label_figure(label_points(data))
