"""Why a confidence is what it is: exact terms that add up, and who voted.

The engine splits a pseudo-label Z into four terms. What network and graphs say is (1 + eta) Z -
eta Y; both are linear, so the terms are scaled and the -eta goes to the candidate, whose being one
it discounts. A person sees that value calibrated to a probability: the fifth term is the rest.
"""

from typing import Any, NamedTuple

import numpy as np

from core.engine.propagation import Evidence
from plain_app.charts.colours import DOUBTFUL, NEUTRAL, SURE

N_VOTERS = 8
TERMS = ("Own candidate", "Own prediction", "Neighbours", "Related labels", "Calibration")


class Vote(NamedTuple):
    """What one instance or label contributes."""

    at: int
    contribution: float


class EvidencePoints(NamedTuple):
    terms: tuple[float, ...]  # in the order of TERMS; no calibration outside the candidates
    total: float  # their sum: the confidence of a candidate
    voters: tuple[Vote, ...]  # other instances, strongest first
    label_votes: tuple[Vote, ...]  # other labels of the own row, strongest first


def evidence_points(
    evidence: Evidence, i: int, j: int, eta: float, confidence: float | None
) -> EvidencePoints:
    """Bring the evidence of a cell to the scale of its confidence; none is not a candidate."""
    scale, offset = 1 + eta, 0.0 if confidence is None else eta
    terms: tuple[float, ...] = (
        scale * evidence.own_candidate - offset,
        scale * evidence.own_prediction,
        scale * evidence.neighbors,
        scale * evidence.related_labels,
    )
    if confidence is not None:
        terms = (*terms, confidence - sum(terms))
    return EvidencePoints(
        terms,
        sum(terms),
        _strongest(scale * np.asarray(evidence.votes, float), i),
        _strongest(scale * np.asarray(evidence.label_votes, float), j),
    )


def evidence_option(points: EvidencePoints) -> dict[str, Any]:
    """Return the waterfall: each term begins where the last one ended, then their sum."""
    ends = np.cumsum(points.terms).tolist()
    starts, ends = [*[0.0, *ends][: len(ends)], 0.0], [*ends, points.total]
    names = [*TERMS[: len(points.terms)], "Sum"]
    colours = [SURE if end >= start else DOUBTFUL for start, end in zip(starts, ends, strict=True)]
    texts = [*map(signed, points.terms), f"{points.total:.3f}".replace("-", "−")]
    parts = [_parts(*sorted(pair)) for pair in zip(starts, ends, strict=True)]
    shown = {"type": "bar", "stack": "terms", "barWidth": 13}
    base = {**shown, "silent": True, "itemStyle": {"opacity": 0}, "tooltip": {"show": False}}
    bars = [{**base, "data": [one[0] for one in parts]}]
    for side in (1, 2):
        data = [
            {"value": one[side], "itemStyle": {"color": colour}}
            for one, colour in zip(parts, [*colours[:-1], NEUTRAL], strict=True)
        ]
        bars.append({**shown, "silent": True, "data": data})
    labels = [f"{name}  {text}" for name, text in zip(names, texts, strict=True)]
    return {
        "animation": False,
        "grid": {"left": 8, "right": 24, "top": 4, "bottom": 4, "containLabel": True},
        "xAxis": {"type": "value", "axisLabel": {"fontSize": 11}},
        "yAxis": {
            "type": "category",
            "data": labels,
            "inverse": True,
            "axisTick": {"show": False},
            "axisLabel": {"fontSize": 12, "interval": 0},
        },
        "series": bars,
    }


def _parts(low: float, high: float) -> tuple[float, float, float]:
    """Return a bar as its distance from zero and its parts above and below: a stack of three."""
    if low >= 0:
        return low, high - low, 0.0
    return (high, 0.0, low - high) if high <= 0 else (0.0, high, low)


def signed(value: float) -> str:
    """Return a contribution as it is written beside its bar."""
    return f"{value:+.3f}".replace("-", "−")


def _strongest(votes: "np.ndarray[Any, Any]", own: int) -> tuple[Vote, ...]:
    others = votes.copy()
    others[own] = 0.0
    order = np.argsort(-np.abs(others), kind="stable")[:N_VOTERS]
    return tuple(Vote(int(at), float(others[at])) for at in order if others[at])
