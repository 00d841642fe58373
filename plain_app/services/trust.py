"""How far a review can be trusted, and when it is done: agreement, contradictions, estimates.

All of it follows the board of a run, so it is as new as the newest decision.
"""

from typing import Any, Literal, NamedTuple
from uuid import uuid4
from weakref import WeakKeyDictionary

import numpy as np
import pandas as pd
import streamlit as st

from core.confidence.level import Level
from core.data.dataset import CandidateDataset
from core.review import (
    Audit,
    AutoResolve,
    Contradiction,
    Disagreement,
    Habit,
    RemainingFalse,
    Reviewer,
    Threshold,
    audit,
    auto_resolve,
    clicks_left,
    contradictions,
    disagreements,
    measure_agreement,
    remaining_false,
    self_agreement,
)
from core.review.load import retraining_difference
from core.review.session import auto_annotator, auto_decisions
from core.store import Decision, LabelChange
from plain_app.services.review import State, current_state
from plain_app.services.workspace import workspace

_audits = WeakKeyDictionary[Reviewer, dict[str, Audit]]()

MAX_LISTED = 300
KINDS = {
    "near": "near-duplicates decided differently",
    "rule": "against a rule of the labels",
    "model": "against a very sure model",
}


class Done(NamedTuple):
    """How much is left to do."""

    remaining: RemainingFalse
    n_clicks: int
    table: pd.DataFrame


def agreement_table(fingerprint: str) -> pd.DataFrame:
    """Return how far people agree, over all labels and by label."""
    found = measure_agreement(workspace().decisions.by_annotator(fingerprint))
    return pd.DataFrame(
        [("all labels" if one.label is None else one.label[:60], *_figures(one)) for one in found],
        columns=["label", "shared cells", "disagreed", "alpha", "kappa"],
    )


def _figures(one: Any) -> tuple[int, int, float, float]:
    return one.n_shared, one.n_disagreed, one.alpha, one.kappa


def self_agreement_table(fingerprint: str) -> pd.DataFrame:
    """Return how often people said the same of cells that came back blind, with 90 % intervals."""
    found = self_agreement(workspace().decisions.history(fingerprint))
    columns = ["annotator", "came back", "said the same", "share"]
    return pd.DataFrame(
        [
            (one.annotator[:60], one.n_repeated, one.n_same, f"{one.low:.0%} to {one.high:.0%}")
            for one in found
        ],
        columns=columns,
    )


def habits(run_id: str, annotator: str | None = None) -> list[Habit]:
    """Return who gave answers as if without looking; of one person, the clearest sign first."""
    found = [
        one for one in current_state(run_id).reviewer.noticed if annotator in (None, one.annotator)
    ]
    return sorted(found, key=lambda one: one.p_value)


def audited(run_id: str, threshold: Threshold | None = None) -> Audit:
    """Return how far the audit of a run is, and what it says of what a rule keeps."""
    reviewer = current_state(run_id).reviewer  # never changes
    known = _audits.setdefault(reviewer, {})
    rule = "" if threshold is None else threshold.model_dump_json()
    if rule not in known:
        known[rule] = audit(reviewer, threshold)
    return known[rule]


def level_sentence(run_id: str) -> str:
    """Return what a run knows about the share of false candidates, and what would narrow it."""
    level = current_state(run_id).reviewer.level
    if level == Level():  # told by votes
        return "How many candidates are false is told by the votes; see Sources in Data."
    return level.sentence


def differing(fingerprint: str) -> list[Disagreement]:
    """Return the cells on which people differ, those nobody adjudicated first."""
    return disagreements(workspace().decisions.by_annotator(fingerprint))[:MAX_LISTED]


def decide(
    found: tuple[str, str],
    cells: list[tuple[str, str]],
    verdict: Literal["keep", "reject"],
    annotator: str,
    *,
    adjudicates: bool,
) -> None:
    """Store one verdict for some cells, given by instance id and label; `found` is data and run."""
    fingerprint, run_id = found
    batch = uuid4().hex
    workspace().decisions.add_many(
        Decision(
            fingerprint=fingerprint,
            run_id=run_id,
            instance_id=instance,
            label=label,
            verdict=verdict,
            annotator=annotator,
            adjudicates=adjudicates,
            batch=batch,
        )
        for instance, label in cells
    )


def contradicting(run_id: str) -> list[Contradiction]:
    """Return decisions that do not fit, the strongest first."""
    return contradictions(current_state(run_id).reviewer, MAX_LISTED)


def contradiction_table(run_id: str, found: list[Contradiction]) -> pd.DataFrame:
    """Return contradictions as rows for a table."""
    now = current_state(run_id)
    dataset = now.results.dataset
    rows = []
    for one in found:
        cells = [
            f"{dataset.ids[i][:40]} · {dataset.label_names[j][:40]}: {_said(now, i, j)}"
            for i, j in one.cells
        ]
        rows.append((KINDS[one.kind], *cells, *[""] * (2 - len(cells)), one.strength))
    return pd.DataFrame(rows, columns=["what", "decision", "beside", "strength"])


def _said(now: State, i: int, j: int) -> str:
    value = now.reviewer.decided[i, j]
    return "open" if np.isnan(value) else "keep" if value else "reject"


def names_of(run_id: str, found: Contradiction) -> list[tuple[str, str]]:
    """Return the cells of a contradiction by instance id and label."""
    dataset = current_state(run_id).results.dataset
    return [(dataset.ids[i], dataset.label_names[j]) for i, j in found.cells]


# ------------------------------------------------------------------------------------ finishing


def how_far(run_id: str, target: float) -> Done:
    """Return what is still false, and how many decisions it takes to a share of right cells."""
    now = current_state(run_id)
    found = remaining_false(now.reviewer)
    table = pd.DataFrame(
        {
            "label": [name[:60] for name in now.results.dataset.label_names],
            "kept unseen": found.n_kept,
            "audited": found.n_audited,
            "false ≈": found.estimate,
            "at least": found.low,
            "at most": found.high,
        }
    ).sort_values("false ≈", ascending=False)
    return Done(found, clicks_left(now.reviewer, target), table)


def resolvable(run_id: str, precision: float, verdict: Literal["keep", "reject"]) -> AutoResolve:
    """Return what may be decided unseen at this precision, or what is missing for it."""
    return auto_resolve(current_state(run_id).reviewer, precision, verdict)


def resolve_rest(run_id: str, precision: float, annotator: str) -> int:
    """Decide unseen what is guaranteed at this precision; return how many cells that was.

    Stored as decisions of their own annotator and as one batch, so all of it can be undone.
    """
    made = auto_decisions(current_state(run_id), precision, annotator)
    if made:
        workspace().decisions.add_many(made)
    return len(made)


def undo_resolved(fingerprint: str, annotator: str) -> None:
    """Take back everything this person had decided unseen."""
    name = auto_annotator(annotator)
    made = workspace().decisions.by_annotator(fingerprint).get(name, [])
    workspace().decisions.undo(made, name)


def n_resolved(fingerprint: str, annotator: str) -> int:
    """Return how many decisions auto-resolve made for this person that stand."""
    name = auto_annotator(annotator)
    return len(workspace().decisions.by_annotator(fingerprint).get(name, []))


# ------------------------------------------------------------------------------------ retraining


class RetrainingEffect(NamedTuple):
    """What a retraining with decisions changed, against the run before without them."""

    n_settled: int
    n_flipped: int
    n_opened: int
    n_open_before: int
    n_open_after: int
    cells: pd.DataFrame
    credit: pd.DataFrame


def retraining_effect(run_id: str) -> RetrainingEffect:
    """Return what people's decisions changed in a run that was retrained with them."""
    fingerprint = workspace().runs.get(run_id).fingerprint
    return _retraining_effect(
        str(workspace().folder), run_id, workspace().decisions.count(fingerprint)
    )


@st.cache_resource(max_entries=4, show_spinner="Comparing with the run before …")
def _retraining_effect(folder: str, run_id: str, n_decisions: int) -> RetrainingEffect:
    run = workspace().runs.get(run_id)
    found = retraining_difference(workspace(), run)
    dataset = current_state(run_id).results.dataset

    def name(cell: tuple[int, int] | None) -> str:
        return "" if cell is None else f"{dataset.ids[cell[0]][:40]} · {_label(dataset, cell[1])}"

    kinds = {"settled": found.settled, "resolved otherwise": found.flipped, "open": found.opened}
    cells = [
        (kind, dataset.ids[i][:60], _label(dataset, j), name(found.because.get((i, j))))
        for kind, listed in kinds.items()
        for i, j in listed[:MAX_LISTED]
    ]
    credit = [(name(cell), count) for cell, count in found.credit[:MAX_LISTED]]
    return RetrainingEffect(
        len(found.settled),
        len(found.flipped),
        len(found.opened),
        found.n_open_before,
        found.n_open_after,
        pd.DataFrame(cells, columns=["now", "instance", "label", "because of"]),
        pd.DataFrame(credit, columns=["your decision", "changed"]),
    )


def _label(dataset: CandidateDataset, at: int) -> str:
    return dataset.label_names[at][:40]


# --------------------------------------------------------------------------------------- labels


def label_names(run_id: str) -> tuple[list[str], list[str]]:
    """Return the data's labels, and what each is called now."""
    results = current_state(run_id).results
    names = list(results.dataset.label_names)
    return names, workspace().labels.names(results.run.fingerprint, names)


def label_changes(fingerprint: str) -> list[LabelChange]:
    """Return every renaming and merging, the newest first."""
    return workspace().labels.history(fingerprint)[::-1]
