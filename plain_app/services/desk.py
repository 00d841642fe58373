"""What the browser's review desk asks for between reruns: questions, previews, answers to keep.

The desk is `widgets/desk/desk.js`; its requests come in through `plain_app.server.routes`.
"""

from typing import Any

from core.errors import PlainError
from core.review import ORDERS, STATES
from core.review.assignment import Assignment, answer_times
from core.review.session import Query
from core.store import Decision
from plain_app.server.tokens import Claims
from plain_app.services import explore
from plain_app.services.desk_items import Asked, make_item, make_page
from plain_app.services.explore import Explored
from plain_app.services.review import overlap_share, run_review, selected
from plain_app.services.workspace import current_decisions, workspace

AHEAD = 30
"""Questions handed out at once."""

TILES = 24
"""Instances in one "same question"."""

MAX_DECISIONS = 200  # in one request
MAX_UID = 100
MAX_LISTED = 12


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
    age = sent.get("age")
    times = answer_times(results.run.created, age if isinstance(age, int | float) else 0)
    return Decision(**given, **about, **times, annotator=claims.annotator)


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
    asked.assignment.release(one for one in _strings(body.get("dropped")) if one in results.row_of)
    lost = asked.assignment.lost()
    make = _pages if body.get("mode") == "same" else _single
    items, n_elsewhere = make(claims.run_id, asked)
    return {
        "items": items,
        "lost": lost,
        "elsewhere": n_elsewhere,
        "progress": progress(claims, body),
    }


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
    now = current_decisions(claims.fingerprint)
    part = Assignment(workspace(), claims.fingerprint, claims.annotator, query, have, now)
    return Asked(part, shown, not body.get("show_random"))


def _single(run_id: str, asked: Asked) -> tuple[list[dict[str, Any]], int]:
    """Return one item per instance, and how many others have."""
    ranking = run_review(run_id).ranking(asked.assignment.query)
    found, n_elsewhere = asked.assignment.questions(ranking, AHEAD, overlap_share())
    return [make_item(ranking.state, one, asked) for one in found], n_elsewhere


def _pages(run_id: str, asked: Asked) -> tuple[list[dict[str, Any]], int]:
    """Return pages of one label and near instances, and how many others have."""
    state, part = run_review(run_id).state.get(), asked.assignment
    found, n_elsewhere = part.pages(state, TILES, selected(part.query))
    return [make_page(state, label, names, asked) for label, names in found], n_elsewhere


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
        n, n_cells = found.audit_progress(current_decisions(claims.fingerprint))
        text, share = f"Audit: {n} of {n_cells} · blind", n / max(n_cells, 1)
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
