"""What the browser's review desk asks for between reruns: questions, previews, answers to keep.

The desk is `components/review/desk.js`; its requests come in through `plain_app.api`.
"""

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

import numpy as np

from core.errors import PlainError
from core.review import ORDERS, STATES, Question
from core.store import Decision
from plain_app.services import explore
from plain_app.services.explore import Explored
from plain_app.services.review import Board, board, overlap_share, selection, standing
from plain_app.services.tokens import Claims
from plain_app.services.workspace import workspace

AHEAD = 30
"""Questions handed out at once."""

TILES = 24
"""Instances in one "same question"."""

NEIGHBOURS = 6
POINTS = 24  # of a sparkline
MAX_DECISIONS = 200  # in one request
MAX_TEXT = 2000
MAX_LISTED = 12

REASONS = {
    "first lap": "drawn at random, for the estimates",
    "audit": "drawn at random, for the estimates",
    "worth": "",
    "false_first": "likely false",
    "doubtful": "doubtful",
    "restless": "restless over the epochs",
    "depends": "depends on a setting",
    "label": "",
    "contradictions": "contradicts a decision",
}


def save(claims: Claims, body: dict[str, Any]) -> dict[str, Any]:
    """Commit decisions; tell which are on the disk now, and which can never be."""
    sent = body.get("decisions")
    if not isinstance(sent, list) or len(sent) > MAX_DECISIONS:
        raise PlainError("A list of decisions is expected.", f"At most {MAX_DECISIONS} at once.")
    results = explore.explored(claims.run_id)
    decisions, refused = [], []
    for one in sent:
        try:
            decisions.append(_decision(results, claims, one))
        except PlainError as error:
            uid = one.get("uid") if isinstance(one, dict) else None
            refused.append({"uid": uid, "why": str(error)})
    if decisions:
        workspace().decisions.add_many(decisions)
        answered = list(dict.fromkeys(one.instance_id for one in decisions))
        workspace().lanes.finish(claims.fingerprint, claims.annotator, answered)
    return {"saved": [one.uid for one in decisions], "refused": refused}


def _decision(results: Explored, claims: Claims, sent: Any) -> Decision:
    """Return a decision that fits the data, or say why there is none."""
    names = ("uid", "instance_id", "label", "verdict", "confidence", "shown", "sampled", "seconds")
    if not isinstance(sent, dict) or not str(sent.get("uid") or ""):
        raise PlainError("This is not a decision.")
    row = results.row_of.get(sent.get("instance_id"))
    column = results.label_of.get(sent.get("label"))
    if row is None or column is None or not results.dataset.candidates[row, column]:
        raise PlainError("The data has no such candidate.")
    given = {name: sent[name] for name in (*names, "batch") if sent.get(name) is not None}
    about = {"fingerprint": claims.fingerprint, "run_id": claims.run_id}
    return Decision(**given, **about, annotator=claims.annotator)


def questions(claims: Claims, body: dict[str, Any]) -> dict[str, Any]:
    """Return the next questions of one annotator's lane."""
    found = board(claims.run_id)
    asked = _asked(found, claims, body)
    make = _pages if body.get("mode") == "same" else _single
    on_desk = [found.results.dataset.ids[row] for row in asked.skip]
    lanes, dropped = workspace().lanes, _strings(body.get("dropped"))
    lanes.release(claims.fingerprint, claims.annotator, sorted(set(dropped) - set(on_desk)))
    held = _claim(claims, on_desk, len(on_desk))
    items, n_elsewhere = make(found, claims, body, asked)
    return {
        "items": items,
        "lost": sorted(set(on_desk) - set(held)),
        "elsewhere": n_elsewhere,
        "progress": progress(claims, {}),
    }


def _claim(claims: Claims, names: Sequence[str], count: int, overlap: float = 0.0) -> list[str]:
    fingerprint, annotator = claims.fingerprint, claims.annotator
    return workspace().lanes.claim(fingerprint, annotator, names, count, overlap=overlap)


def _strings(values: Any) -> list[str]:
    return [one for one in values if isinstance(one, str)] if isinstance(values, list) else []


class Asked(NamedTuple):
    """What the desk wants: an order, and the cells that count."""

    order: Any
    labels: list[int] | None
    rows: list[int] | None
    states: tuple[Any, ...] | None
    skip: frozenset[int]


def _asked(found: Board, claims: Claims, body: dict[str, Any]) -> Asked:
    results = found.results
    order = body.get("order", "worth")
    states = tuple(_strings(body.get("states"))) or None
    if order not in ORDERS or (states and not set(states) <= set(STATES)):
        raise PlainError("There is no such order.", str(order)[:40])
    labels = [
        results.label_of[name] for name in _strings(body.get("labels")) if name in results.label_of
    ]
    have = _strings(body.get("have"))
    skip = frozenset(results.row_of[name] for name in have if name in results.row_of)
    return Asked(order, labels or None, _rows(found, claims, body), states, skip)


def _rows(found: Board, claims: Claims, body: dict[str, Any]) -> list[int] | None:
    """Return the instances of a selection, or those somebody decided on; none for all."""
    row_of = found.results.row_of
    wanted: set[int] | None = None
    if key := str(body.get("selection") or ""):
        wanted = {row_of[name] for name in selection(key) if name in row_of}
    if who := body.get("annotator"):
        theirs = {row_of[cell[0]] for cell, one in found.standing.items() if one.annotator == who}
        wanted = theirs if wanted is None else wanted & theirs
    return None if wanted is None else sorted(wanted)


def _single(
    found: Board, claims: Claims, body: dict[str, Any], asked: Asked
) -> tuple[list[dict[str, Any]], int]:
    """Return one question per instance, leased to this annotator; and how many others have."""
    ids, overlap = found.results.dataset.ids, overlap_share()
    first = _second_opinions(found, claims, asked, overlap)
    skip = asked.skip | {one.row for one in first}
    limit = 2 * AHEAD
    while True:
        drawn = found.reviewer.questions(
            asked.order,
            labels=asked.labels,
            rows=asked.rows,
            states=asked.states,
            limit=limit,
            skip_rows=skip,
        )
        by_id = {ids[one.row]: one for one in (*first, *drawn)}
        mine = _claim(claims, list(by_id), AHEAD, overlap)
        if len(mine) == AHEAD or len(drawn) < limit:
            break
        limit *= 4  # others hold much of what was drawn
    own = found.own.get(claims.annotator, {})
    items = [_item(found, by_id[name], own, body.get("columns")) for name in mine]
    return items, len(by_id) - len(mine)


def _second_opinions(found: Board, claims: Claims, asked: Asked, overlap: float) -> list[Question]:
    """Ask some of what others were asked, without saying what they answered."""
    if not overlap or asked.states is not None:
        return []
    results, questions = found.results, []
    for name in workspace().lanes.second_opinions(claims.fingerprint, claims.annotator, overlap):
        row = results.row_of.get(name)
        if row is None or row in asked.skip or len(questions) == AHEAD // 5:
            continue
        made = workspace().decisions.history(claims.fingerprint, name)
        labels = dict.fromkeys(results.label_of[one.label] for one in made)
        questions.append(Question(row, list(labels), 0.0, "second opinion", False))
    return questions


def _item(
    found: Board,
    question: Question,
    own: dict[tuple[str, str], str],
    columns: Collection[str] | None,
) -> dict[str, Any]:
    results, row = found.results, question.row
    name, offered = results.dataset.ids[row], np.flatnonzero(results.dataset.candidates[row])
    confidences = found.reviewer.confidences[row]
    others = [int(at) for at in offered if at not in question.cells]
    order = [*question.cells, *sorted(others, key=lambda at: -confidences[at])]
    asked = set(question.cells)
    return {
        "kind": "one",
        "key": name,
        "ids": [name],
        "title": name[:200],
        "reason": REASONS.get(question.reason, question.reason),
        "promise": _promise(question.promise),
        "picture": results.picture(row),
        "texts": texts(results, row, columns),
        "near": [_neighbour(results, other) for other in neighbours(results, row)],
        "cells": [
            {
                **_cell(found, row, at, own),
                "asked": at in asked,
                "sampled": question.sampled and at in asked,
                "history": _history(results, row, at),
            }
            for at in order
        ],
    }


def _cell(found: Board, row: int, at: int, own: dict[tuple[str, str], str]) -> dict[str, Any]:
    name, label = found.results.dataset.ids[row], found.results.dataset.label_names[at]
    return {
        "id": name,
        "label": label,
        "name": found.names[at],
        "confidence": round(float(found.reviewer.confidences[row, at]), 4),
        "proposed": "keep" if found.reviewer.confidences[row, at] >= 0.5 else "reject",
        "standing": own.get((name, label)),
    }


def _promise(cells: float) -> str:
    return f"settles about {cells:.0f} more" if cells >= 1 else ""


def _pages(
    found: Board, claims: Claims, body: dict[str, Any], asked: Asked
) -> tuple[list[dict[str, Any]], int]:
    """Return pages of one label and near instances, for the labels with most open cells."""
    reviewer, results = found.reviewer, found.results
    is_open = results.dataset.candidates.astype(bool) & (reviewer.states() == STATES.index("open"))
    is_open[list(asked.skip)] = False
    labels = asked.labels or [int(at) for at in np.argsort(-is_open.sum(axis=0), kind="stable")]
    own = found.own.get(claims.annotator, {})
    pages, taken, elsewhere = [], set(asked.skip), 0
    for label in [one for one in labels if is_open[:, one].any()][:3]:
        rows = [row for row in reviewer.same_question(label, size=20 * TILES) if row not in taken]
        if asked.rows is not None:
            rows = [row for row in rows if row in set(asked.rows)]
        names = [results.dataset.ids[row] for row in rows]
        mine = _claim(claims, names, TILES)
        elsewhere += len(names) - len(mine)
        if mine:
            taken |= {results.row_of[name] for name in mine}
            pages.append(_page(found, label, mine, own))
    return pages, elsewhere


def _page(
    found: Board, label: int, names: Sequence[str], own: dict[tuple[str, str], str]
) -> dict[str, Any]:
    results = found.results
    rows = [results.row_of[name] for name in names]
    shown = found.names[label]
    return {
        "kind": "same",
        "key": f"{label}:{names[0]}",
        "ids": list(names),
        "title": shown[:200],
        "reason": f"Is it there in all {len(rows)}? Untick where it is not.",
        "promise": "",
        "cells": [
            {
                **_cell(found, row, label, own),
                "asked": True,
                "proposed": "keep",
                "picture": results.picture(row),
                "text": _caption(results, row),
            }
            for row in rows
        ],
    }


def progress(claims: Claims, body: dict[str, Any]) -> dict[str, Any]:
    """Tell what decisions settled, in a sentence and as a share of all candidates."""
    now = standing(claims.run_id)
    n_mine = now.annotators.get(claims.annotator, 0)
    n_all = sum(now.annotators.values())
    whose = (
        f"Your {_counted(n_all, 'decision')}"
        if n_mine == n_all
        else (f"{_counted(n_all, 'decision')} ({n_mine} yours)")
    )
    share = 1 - now.n_open / max(now.n_cells, 1)
    text = f"{whose} settled {now.n_settled:,} more · {now.n_open:,} open"
    return {"text": text, "share": round(share, 4), "decided": n_all, "settled": now.n_settled}


def preview(claims: Claims, body: dict[str, Any]) -> dict[str, Any]:
    """Tell what an answer would move, without giving it."""
    found = board(claims.run_id)
    row = found.results.row_of.get(body.get("instance_id"))
    label = found.results.label_of.get(body.get("label"))
    verdict = body.get("verdict")
    if row is None or label is None or verdict not in ("keep", "reject"):
        raise PlainError("The data has no such candidate.")
    ripple = found.reviewer.ripple(row, label, verdict)
    ids, names = found.results.dataset.ids, found.results.dataset.label_names
    moved = zip(ripple.rows, ripple.labels, ripple.before, ripple.after, strict=True)
    return {
        "total": len(ripple.rows),
        "settles": ripple.n_settled,
        "moved": [
            {
                "title": ids[i][:100],
                "label": names[j][:100],
                "before": float(before),
                "after": float(after),
            }
            for i, j, before, after in list(moved)[:MAX_LISTED]
        ],
    }


def texts(results: Explored, row: int, columns: Collection[str] | None) -> list[list[str]]:
    """Return what there is to read of an instance; without columns, its strongest features."""
    display = results.dataset.display
    names = [one for one in results.text_columns if columns is None or one in columns]
    if names:
        return [
            [str(one), explore.short_text(display[one].iloc[row], MAX_TEXT)] for one in names[:12]
        ]
    if results.picture_column is not None:
        return []
    return _strongest_features(results, row)


def _strongest_features(results: Explored, row: int) -> list[list[str]]:
    features = results.dataset.features[[row]]
    values = np.asarray(features.todense() if hasattr(features, "todense") else features).ravel()
    order = np.argsort(-np.abs(values), kind="stable")[:12]
    return [[results.dataset.feature_names[at][:60], f"{values[at]:.4g}"] for at in order]


def neighbours(results: Explored, row: int) -> list[int]:
    """Return the nearest instances of the graph, the nearest first."""
    affinity = results.instance_graph.affinity
    part = slice(affinity.indptr[row], affinity.indptr[row + 1])
    order = np.argsort(-affinity.data[part], kind="stable")[:NEIGHBOURS]
    return [int(at) for at in affinity.indices[part][order]]


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
    return explore.short_text(results.dataset.display[results.text_columns[0]].iloc[row], 120)


def _history(results: Explored, row: int, label: int) -> list[float]:
    """Return a cell's confidence over the epochs, thinned to a small number of points."""
    at = results.starts[row] + int((results.dataset.candidates[row, :label] > 0).sum())
    n = len(results.history)
    epochs = np.unique(np.linspace(0, n - 1, min(n, POINTS)).astype(int)) if n else []
    return [round(float(results.history[epoch, at]), 2) for epoch in epochs]


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"
