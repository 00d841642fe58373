"""What the browser's review desk asks for between reruns: questions, previews, answers to keep.

The desk is `widgets/desk/desk.js`; its requests come in through `plain_app.server.routes`.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

from core.errors import PlainError
from core.review import ORDERS, STATES, Question
from core.review.agreement import may_repeat
from core.review.queue import audit_cells
from core.review.session import Query
from core.store import Decision
from core.store.schema import stamp
from plain_app.server.tokens import Claims
from plain_app.services import explore
from plain_app.services.desk_items import AGAIN, Asked, make_item, make_page
from plain_app.services.explore import Explored
from plain_app.services.review import State, overlap_share, run_review
from plain_app.services.workspace import current_decisions, workspace

AHEAD = 30
"""Questions handed out at once."""

TILES = 24
"""Instances in one "same question"."""

MAX_DECISIONS = 200  # in one request
MAX_UID = 100
MAX_LISTED = 12
AGAIN_AT = 4
"""Where in the queue an instance comes back: nobody sees it begin anew with it."""


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
            uid = _text(one.get("uid")) if isinstance(one, dict) else ""
            refused.append({"uid": uid, "why": str(error)})
    if decisions:
        workspace().decisions.add_many(decisions, keep_lanes=True)
    return {"saved": [one.uid for one in decisions], "refused": refused}


def _decision(results: Explored, claims: Claims, sent: Any) -> Decision:
    """Return a decision that fits the data, or say why there is none."""
    names = ("uid", "instance_id", "label", "verdict", "confidence", "shown", "sampled", "seconds")
    uid = sent.get("uid") if isinstance(sent, dict) else None
    if not isinstance(uid, str) or not 0 < len(uid) <= MAX_UID:
        raise PlainError("This is not a decision.", f"It needs a uid of up to {MAX_UID} letters.")
    _located(results, sent)
    given = {name: sent[name] for name in (*names, "batch") if sent.get(name) is not None}
    about = {"fingerprint": claims.fingerprint, "run_id": claims.run_id}
    times = _times(results.run.created, sent.get("age"))
    return Decision(**given, **about, **times, annotator=claims.annotator)


def _times(earliest: str, age: Any) -> dict[str, str]:
    """Return when an answer was given, by how long the browser kept it, and when it came.

    Browsers' clocks are not trusted, only that they go on; no answer is older than its run.
    """
    now = datetime.now(UTC)
    oldest = (now - datetime.fromisoformat(earliest)).total_seconds()
    kept = age if isinstance(age, int | float) else 0
    made = now - timedelta(seconds=max(0, min(kept, oldest)))
    return {"time": stamp(made), "received": stamp(now)}


def _located(results: Explored, sent: dict[str, Any]) -> tuple[int, int]:
    """Return row and label of the candidate that is named."""
    name, label = sent.get("instance_id"), sent.get("label")
    if isinstance(name, str) and isinstance(label, str):
        row, column = results.row_of.get(name), results.label_of.get(label)
        if row is not None and column is not None and results.dataset.candidates[row, column]:
            return row, column
    raise PlainError("The data has no such candidate.", f"{_text(name)} · {_text(label)}"[:80])


def questions(claims: Claims, body: dict[str, Any]) -> dict[str, Any]:
    """Return the next questions of one annotator's lane."""
    results = explore.explored(claims.run_id)
    asked = _asked(results, claims, body)
    dropped = [name for name in _strings(body.get("dropped")) if name in results.row_of]
    gone = sorted(set(dropped) - set(asked.have))
    workspace().lanes.release(claims.fingerprint, claims.annotator, gone)
    held = _claim(claims, asked.have, len(asked.have))
    make = _pages if body.get("mode") == "same" else _single
    items, n_elsewhere = make(asked)
    return {
        "items": items,
        "lost": [] if asked.is_audit else sorted(set(asked.have) - set(held)),
        "elsewhere": n_elsewhere,
        "progress": progress(claims, body),
    }


def _claim(claims: Claims, names: Sequence[str], count: int, overlap: float = 0.0) -> list[str]:
    fingerprint, annotator = claims.fingerprint, claims.annotator
    return workspace().lanes.claim(fingerprint, annotator, names, count, overlap=overlap)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _strings(values: Any) -> list[str]:
    return [one for one in values if isinstance(one, str)] if isinstance(values, list) else []


def _asked(results: Explored, claims: Claims, body: dict[str, Any]) -> Asked:
    order = body.get("order", "worth")
    asked_for = _strings(body.get("states"))
    states = tuple(one for one in STATES if one in asked_for) or None
    if order not in ORDERS or not set(asked_for) <= set(STATES):
        raise PlainError("There is no such order.", _text(order)[:40])
    named = _strings(body.get("labels"))
    labels = tuple(sorted(results.label_of[name] for name in named if name in results.label_of))
    names = ("selection", "annotator", "source")
    query = Query(order, labels or None, states, *(_text(body.get(name)) for name in names))
    have = [name for name in _strings(body.get("have")) if name in results.row_of]
    columns = body.get("columns")
    shown = None if columns is None else _strings(columns)
    now, is_random_blind = current_decisions(claims.fingerprint), not body.get("show_random")
    return Asked(claims, query, have, shown, now, is_random_blind)


def _single(asked: Asked) -> tuple[list[dict[str, Any]], int]:
    """Return one question per instance, leased to this annotator; and how many others have."""
    overlap, claims = overlap_share(), asked.claims
    ranking = run_review(claims.run_id).ranking(asked.query)
    found = ranking.state
    first = _second_opinions(found, asked, overlap)
    while True:
        limit, is_whole = ranking.limit, ranking.is_whole
        drawn = {found.results.dataset.ids[one.row]: one for one in first}
        for one in ranking.questions:
            cells = [at for at in one.cells if not asked.is_answered_since(found, one.row, at)]
            if cells:
                name = found.results.dataset.ids[one.row]
                drawn.setdefault(name, replace(one, cells=cells))
        for name in asked.have:
            drawn.pop(name, None)
        mine = _claim(claims, list(drawn), AHEAD, overlap)
        if asked.is_audit:  # thirty cells are few: nobody waits for what lies on another's desk
            mine = list(drawn)
        if len(mine) == AHEAD or is_whole:
            break
        ranking.extend(limit)  # others hold much of what was drawn
    items = [make_item(found, drawn[name], asked) for name in mine]
    if again := _asked_again(found, asked):
        items.insert(AGAIN_AT, make_item(found, again, asked))
    return items, len(drawn) - len(mine)


def _asked_again(found: State, asked: Asked) -> Question | None:
    """Return an instance that is due to come back to this person, blind; mostly none."""
    query = asked.query
    if query.states is not None or query.selection or query.order in ("thirty", "contradictions"):
        return None
    made = sorted(asked.own.values(), key=lambda one: one.id or 0)
    repeated = asked.now.repeated.get(asked.claims.annotator, frozenset())
    names = [one for one in may_repeat(made, repeated) if one in found.results.row_of]
    if not names or set(names) & set(asked.have):  # or one is on the desk already
        return None
    name = names[int(np.random.default_rng(len(repeated)).integers(len(names)))]
    clear = [one for one in made if one.instance_id == name and one.verdict in ("keep", "reject")]
    labels = [found.results.label_of[one.label] for one in clear if not one.adjudicates]
    return Question(found.results.row_of[name], labels, 0.0, AGAIN) if labels else None


def _second_opinions(found: State, asked: Asked, overlap: float) -> list[Question]:
    """Ask some of what others were asked, without saying what they answered."""
    if not overlap or asked.query.states is not None:
        return []
    results, claims, questions = found.results, asked.claims, list[Question]()
    for name in workspace().lanes.second_opinions(claims.fingerprint, claims.annotator, overlap):
        row = results.row_of.get(name)
        if row is None or name in asked.have or len(questions) == AHEAD // 5:
            continue
        made = workspace().decisions.history(claims.fingerprint, name)
        labels = dict.fromkeys(results.label_of[one.label] for one in made)
        questions.append(Question(row, list(labels), 0.0, "second opinion", False))
    return questions


def _pages(asked: Asked) -> tuple[list[dict[str, Any]], int]:
    """Return pages of one label and near instances, for the labels with most open cells."""
    found, query = run_review(asked.claims.run_id).state.get(), asked.query
    reviewer, results = found.reviewer, found.results
    is_open = reviewer.offered & (reviewer.states() == STATES.index("open"))
    taken = {results.row_of[name] for name in asked.have}
    is_open[list(taken)] = False
    labels = query.labels or [int(at) for at in np.argsort(-is_open.sum(axis=0), kind="stable")]
    chosen = query.rows(found)
    among = None if chosen is None else set(chosen)
    pages, elsewhere = [], 0
    for label in [one for one in labels if is_open[:, one].any()][:3]:
        names = [
            results.dataset.ids[row]
            for row in reviewer.same_question(label, size=20 * TILES)
            if row not in taken
            and (among is None or row in among)
            and not asked.is_answered_since(found, row, label)
        ]
        mine = _claim(asked.claims, names, TILES)
        elsewhere += len(names) - len(mine)
        if mine:
            taken |= {results.row_of[name] for name in mine}
            pages.append(make_page(found, label, mine, asked))
    return pages, elsewhere


def progress(claims: Claims, body: dict[str, Any]) -> dict[str, Any]:
    """Tell what decisions settled, in a sentence and as a share of all candidates."""
    found = run_review(claims.run_id).state.get()
    by_annotator = current_decisions(claims.fingerprint).n_by_annotator
    n_mine, n_all = by_annotator.get(claims.annotator, 0), sum(by_annotator.values())
    whose = (
        f"Your {_counted(n_all, 'decision')}"
        if n_mine == n_all
        else (f"{_counted(n_all, 'decision')} ({n_mine} yours)")
    )
    share = 1 - found.n_open / max(len(found.results.cells[0]), 1)
    text = f"{whose} settled {found.n_settled:,} more · {found.n_open:,} open"
    if body.get("order") == "thirty":
        cells = np.argwhere(audit_cells(found.reviewer))
        latest, dataset = current_decisions(claims.fingerprint).latest, found.results.dataset
        n = sum((dataset.ids[i], dataset.label_names[j]) in latest for i, j in cells)
        text, share = f"Audit: {n} of {len(cells)} · blind", n / max(len(cells), 1)
    return {"text": text, "share": round(share, 4), "decided": n_all, "settled": found.n_settled}


def preview(claims: Claims, body: dict[str, Any]) -> dict[str, Any]:
    """Tell what an answer would move, without giving it."""
    found = run_review(claims.run_id).state.get()
    row, label = _located(found.results, body)
    verdict = body.get("verdict")
    if verdict not in ("keep", "reject"):
        raise PlainError("A preview is of keep or reject.", _text(verdict)[:40])
    effect = found.reviewer.preview(row, label, verdict)
    ids, names = found.results.dataset.ids, found.results.dataset.label_names
    moved = zip(effect.rows, effect.labels, effect.before, effect.after, strict=True)
    return {
        "total": len(effect.rows),
        "settles": effect.n_settled,
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


def picture(claims: Claims, body: dict[str, Any]) -> dict[str, Any]:
    """Return the large picture of an instance; it is named by id, never by a path."""
    results, name = explore.explored(claims.run_id), _text(body.get("instance_id"))
    found = results.full_picture(results.row_of[name]) if name in results.row_of else None
    if found is None:
        raise PlainError("There is no picture of this instance.", name[:80])
    return {"picture": found}


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"
