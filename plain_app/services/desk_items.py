"""What a question looks like on the review desk: the instance, its candidates, who offered them.

An item that is `blind` keeps confidences, proposals and votes from the person until the answer.
"""

from collections.abc import Collection, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from core.review import Question
from core.review.assignment import Assignment
from core.review.queue import REPEAT
from plain_app.services import explore, sources
from plain_app.services.explore import Explored
from plain_app.services.review import State

NEIGHBOURS = 6
POINTS = 24  # of a sparkline
MAX_TEXT = 10_000  # characters of a text: who decides has to read all of it

REASONS = {
    "first lap": "drawn at random, for the estimates",
    "audit": "drawn at random, for the estimates",
    "thirty": "audit, drawn at random",
    REPEAT: "",  # whoever is told would try to remember
    "worth": "",
    "false_first": "likely false",
    "doubtful": "doubtful",
    "unstable": "unstable over the epochs",
    "depends": "depends on a setting",
    "disagree": "sources disagree",
    "label": "",
    "contradictions": "contradicts a decision",
}


class Asked(NamedTuple):
    """What one desk wants."""

    assignment: Assignment
    columns: list[str] | None  # to be shown; none for all
    is_random_blind: bool = True  # random cells are asked before anything is shown of them


def make_item(found: State, question: Question, asked: Asked) -> dict[str, Any]:
    """Return one instance with its candidates, those that are asked first."""
    results, row = found.results, question.row
    name, blind = results.dataset.ids[row], question.is_blind(asked.is_random_blind)
    near, _ = results.instance_graph.strongest(row, NEIGHBOURS)
    return {
        "kind": "one",
        "key": name,
        "ids": [name],
        "blind": blind,
        "title": name[:200],
        "reason": _reason(found, question, blind),
        "promise": _promise(question.promise),
        "picture": results.picture(row),
        "texts": texts(results, row, asked.columns),
        "near": [_neighbour(results, other) for other in near],
        "cells": [
            {**_cell(found, row, at, asked), **_asked_how(found, question, at, asked)}
            for at in found.cells_shown(question, is_blind=blind)
        ],
    }


def _cell(found: State, row: int, at: int, asked: Asked) -> dict[str, Any]:
    name, label = found.results.dataset.ids[row], found.results.dataset.label_names[at]
    return {
        "id": name,
        "label": label,
        "name": found.names[at],
        "confidence": round(float(found.reviewer.confidences[row, at]), 4),
        "proposed": found.proposal(row, at),
        "decided": asked.assignment.verdict((name, label)),
        "offered": _offered(found.results, row, at),
    }


def _asked_how(found: State, question: Question, at: int, asked: Asked) -> dict[str, Any]:
    """Return whether a cell is asked, and as what its answer counts."""
    dataset, is_asked = found.results.dataset, at in question.cells
    cell = (dataset.ids[question.row], dataset.label_names[at])
    before = asked.assignment.said_before(question, cell) if is_asked else None
    how = {
        "asked": is_asked,
        "sampled": asked.assignment.is_sampled(question, cell) and is_asked,
        "history": _history(found.results, question.row, at),
    }
    return how if before is None else {**how, "decided": None, "before": before.verdict}


def _offered(results: Explored, row: int, at: int) -> str:
    text = sources.offered_text(results, row, at)
    return f"offered by {text}" if text else ""


def _reason(found: State, question: Question, blind: bool) -> str:
    """Return why an instance is asked, and who offered what sources disagree about."""
    reason = REASONS.get(question.reason, question.reason)
    votes = found.results.dataset.votes
    if blind:
        return f"{reason} · blind" if reason else "blind"
    if votes is None or question.reason != "disagree":
        return reason
    at = question.cells[0]
    return f"{reason} · {found.names[at][:60]} offered by {votes.describe(question.row, at)}"


def _promise(cells: float) -> str:
    return f"settles about {cells:.0f} more" if cells >= 1 else ""


def make_page(found: State, label: int, names: Sequence[str], asked: Asked) -> dict[str, Any]:
    """Return near instances with one label, ticked where it is likely there."""
    results = found.results
    rows = [results.row_of[name] for name in names]
    cells = [
        {
            **_cell(found, row, label, asked),
            "asked": True,
            "picture": results.picture(row),
            "text": _caption(results, row),
        }
        for row in rows
    ]
    n_likely = sum(one["proposed"] == "keep" for one in cells)
    return {
        "kind": "same",
        "key": f"{label}:{names[0]}",
        "ids": list(names),
        "title": found.names[label][:200],
        "reason": f"Likely there in {n_likely} of {len(rows)}. Change the ticks that are wrong.",
        "promise": "",
        "cells": cells,
    }


def texts(results: Explored, row: int, columns: Collection[str] | None) -> list[list[str]]:
    """Return what there is to read of an instance; without columns, its strongest features."""
    names = [one for one in results.text_columns if columns is None or one in columns]
    if names:
        return [
            [str(one), explore.short_text(results.display[one].iloc[row], MAX_TEXT)]
            for one in names[:12]
        ]
    if results.picture_column is not None:
        return []
    return _strongest_features(results, row)


def _strongest_features(results: Explored, row: int) -> list[list[str]]:
    features = results.dataset.features[[row]]
    values = np.asarray(features.todense() if hasattr(features, "todense") else features).ravel()
    order = np.argsort(-np.abs(values), kind="stable")[:12]
    return [[results.dataset.feature_names[at][:60], f"{values[at]:.4g}"] for at in order]


def _neighbour(results: Explored, row: int) -> dict[str, Any]:
    return {
        "title": results.dataset.ids[row][:100],
        "picture": results.picture(row),
        "text": _caption(results, row),
    }


def _caption(results: Explored, row: int) -> str:
    """Return a few words on an instance that has no picture."""
    if results.picture_column is not None or not results.text_columns:
        return ""
    return explore.short_text(results.display[results.richest_columns[0]].iloc[row], 120)


def _history(results: Explored, row: int, label: int) -> list[float]:
    """Return a cell's confidence over the epochs, thinned to a small number of points."""
    at = results.starts[row] + int((results.dataset.candidates[row, :label] > 0).sum())
    values = results.history[_epochs(len(results.history)), at]
    return [round(value, 2) for value in values.tolist()]


@cache
def _epochs(n: int) -> npt.NDArray[np.int64]:
    """Return which of n epochs are shown."""
    return np.unique(np.linspace(0, max(n - 1, 0), min(n, POINTS)).astype(np.int64))
