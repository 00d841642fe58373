"""Why a confidence is what it is: exact terms that add up, and who voted.

The engine splits a pseudo-label Z into four terms. What network and graphs say is (1 + eta) Z -
eta Y; both are linear, so the terms are scaled and the -eta goes to the candidate, whose being one
it discounts. A person sees that value calibrated to a probability: the fifth term is the rest.
"""

from typing import Any, NamedTuple

import numpy as np

from core.propagation import Evidence
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
    """Return the ECharts option of the waterfall: each term begins where the last one ended."""
    ends = [float(end) for end in np.cumsum(points.terms)]
    starts = [0.0, *ends[:-1]]
    bars = [
        _bar(start, end, SURE if end >= start else DOUBTFUL, signed(end - start))
        for start, end in zip(starts, ends, strict=True)
    ]
    bars.append(_bar(0.0, points.total, NEUTRAL, f"{points.total:.3f}".replace("-", "−")))
    low = min(0.0, *ends, points.total)
    high = max(1.0, *ends, points.total)
    return {
        "animation": False,
        "grid": {"left": 4, "right": 56, "top": 4, "bottom": 4, "containLabel": True},
        "xAxis": {
            "type": "value",
            "min": round(low - 0.04, 2) if low < 0 else 0,
            "max": round(high, 2),
            "splitNumber": 5,
            "axisLabel": {"showMinLabel": low >= 0},
        },
        "yAxis": {
            "type": "category",
            "inverse": True,
            "data": [*TERMS[: len(points.terms)], "Sum"],
            "axisTick": {"show": False},
        },
        "series": [
            {
                "type": "bar",
                "stack": "base",
                "silent": True,
                "itemStyle": {"color": "transparent"},
                "data": [bar["base"] for bar in bars],
            },
            *(_stack(bars, sign) for sign in ("below", "above")),
        ],
    }


def signed(value: float) -> str:
    """Return a contribution as it is written beside its bar."""
    return f"{value:+.3f}".replace("-", "−")


def _stack(bars: list[dict[str, Any]], side: str) -> dict[str, Any]:
    return {
        "type": "bar",
        "stack": "base" if side == "above" else "minus",
        "barGap": "-100%",
        "barWidth": 14,
        "data": [bar[side] for bar in bars],
    }


def _bar(start: float, end: float, colour: str, text: str) -> dict[str, Any]:
    """Return the pieces of a bar: an unseen base, and what is seen right and left of zero."""
    low, high = sorted((float(start), float(end)))
    base, above = max(low, 0.0), max(high, 0.0) - max(low, 0.0)
    below = min(low, 0.0) - min(high, 0.0)
    style = {"itemStyle": {"color": colour}}
    label = {"label": {"show": True, "position": "right", "formatter": text}}
    crossing = above > 0 or below == 0
    return {
        "base": base,
        "above": {"value": above, **style, **(label if crossing else {})},
        "below": {"value": below, **style, **({} if crossing else label)},
    }


def _strongest(votes: "np.ndarray[Any, Any]", own: int) -> tuple[Vote, ...]:
    others = votes.copy()
    others[own] = 0.0
    order = np.argsort(-np.abs(others), kind="stable")[:N_VOTERS]
    return tuple(Vote(int(at), float(others[at])) for at in order if others[at])
