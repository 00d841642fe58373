"""What is shown of sources: who offers how much, whether they agree, how reliable they are.

Never loads torch or faiss.
"""

from typing import NamedTuple

import numpy as np
import pandas as pd
import streamlit as st

from core.confidence.reliability import Reliability
from core.confidence.sources import SourceModel, source_model
from core.data.dataset import CandidateDataset
from core.export import run_reliability
from core.review.agreement import alpha_of_counts
from plain_app.services.explore import Explored, explored, situation
from plain_app.services.workspace import workspace


class SourceEvidence(NamedTuple):
    """What votes add to the log-odds of a cell, beside what is known without them."""

    votes: list[tuple[str, bool, float]]  # source, yes, what it adds
    prior: float
    share: float  # of the votes in all evidence


def overview(dataset: CandidateDataset) -> pd.DataFrame:
    """Return who offers how much, and how often others who were asked say the same."""
    votes = dataset.votes
    assert votes is not None
    asked = votes.answers.sum(axis=0)
    rows = []
    for k, name in enumerate(votes.sources):
        i, j, _ = votes.yes[votes.yes[:, 2] == k].T
        others = votes.n_asked[i, j] - 1
        backed = ((votes.n_yes[i, j] - 1) / np.maximum(others, 1))[others > 0]
        partly = np.unique(votes.no[votes.no[:, 2] == k, 0])
        n = int(asked[k]) + len(np.setdiff1d(partly, votes.answered[votes.answered[:, 1] == k, 0]))
        confirmed = float(backed.mean()) if len(backed) else np.nan
        rows.append((name, max(n, len(np.unique(i))), len(i), len(i) / max(n, 1), confirmed))
    names = ["source", "instances", "offers", "offers each", "confirmed"]
    return pd.DataFrame(rows, columns=names)


def agreement(dataset: CandidateDataset) -> pd.DataFrame:
    """Return by label how many cells two sources judged, on how many they differ, and alpha."""
    votes = dataset.votes
    assert votes is not None
    shared = votes.n_asked > 1
    differ = (votes.disagreement > 0) & shared
    alphas = [alpha_of_counts(*pair) for pair in zip(votes.n_yes.T, votes.n_asked.T, strict=True)]
    return pd.DataFrame(
        {
            "label": list(dataset.label_names),
            "judged by two": shared.sum(axis=0),
            "differ": differ.sum(axis=0),
            "agreement": alphas,
        }
    )


def reliability_of(dataset: CandidateDataset, run_id: str | None) -> tuple[Reliability | None, str]:
    """Return how reliable sources are, and by what that is known: a run, or the votes alone."""
    kind, run = situation(run_id)
    if kind == "ready" and run is not None and run.fingerprint == dataset.fingerprint:
        count = workspace().decisions.count(run.fingerprint)
        return _of_run(str(workspace().folder), run.id, count), "votes, features and decisions"
    return _of_votes(dataset.fingerprint, dataset), "votes alone"


@st.cache_resource(max_entries=8, show_spinner=False)
def _of_run(folder: str, run_id: str, n_decisions: int) -> Reliability | None:
    results = explored(run_id)
    decisions = workspace().decisions.latest(results.run.fingerprint)
    held_out = results.run.config.members > 1
    predictions = np.asarray(results.predictions)
    return run_reliability(results.dataset, predictions, decisions, held_out=held_out)


@st.cache_resource(max_entries=8, show_spinner=False)
def _of_votes(fingerprint: str, _dataset: CandidateDataset) -> Reliability | None:
    from core.confidence.reliability import reliability

    return reliability(source_model(_dataset.votes), _dataset.candidates)


def reliability_table(found: Reliability) -> pd.DataFrame:
    """Return sensitivity and specificity of every source with their 90 % intervals, in words."""

    def interval(value: float, low: float, high: float) -> str:
        return f"{value:.0%} ({low:.0%} to {high:.0%})"

    parts = {
        name: [interval(*one) for one in zip(rates.value, rates.low, rates.high, strict=True)]
        for name, rates in (
            ("says yes when true", found.sensitivity),
            ("says no when false", found.specificity),
        )
    }
    if any(found.says_little):
        parts[""] = ["its yes says little" if little else "" for little in found.says_little]
    return pd.DataFrame({"source": found.sources, **parts})


def source_evidence(results: Explored, row: int, label: int) -> SourceEvidence | None:
    """Return what each vote on a cell adds to its log-odds; none unless several sources voted."""
    model = _model(results, results.run.id, results.version)
    if model is None:
        return None
    added = model.added(row, label)
    here = slice(row, row + 1)
    predicted = np.asarray(results.predictions[here])
    prior = float(model.prior(results.dataset.candidates[here], None, predicted)[0, label])
    total = sum(abs(adds) for _, _, adds in added)
    return SourceEvidence(added, prior, total / max(total + abs(prior), 1e-9))


def offered_text(results: Explored, row: int, label: int) -> str:
    """Say who offered a cell and how much of the evidence the votes are; nothing without votes."""
    if results.dataset.votes is None:
        return ""
    text = results.dataset.votes.describe(row, label)
    evidence = source_evidence(results, row, label)
    return text if evidence is None else f"{text} · {evidence.share:.0%} of the evidence"


@st.cache_resource(max_entries=3, show_spinner=False)
def _model(_results: Explored, run_id: str, version: str) -> SourceModel | None:
    held_out = _results.run.config.members > 1
    found = source_model(_results.dataset.votes, held_out=held_out)
    return None if found is None else found.refit(np.asarray(_results.predictions))
