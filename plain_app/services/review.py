"""What is known of a run under review: decisions and what they settle; selections to review.

One `RunReview` per run is shared by all annotators of this server. Pages get a state that is as new
as the newest decision. Desks get one that may be some seconds old (`plain_app.services.shared`),
and so are the questions ranked with it; which cells were decided, they learn anew each time, so
nothing is asked that was answered. Answers are stored without waiting for any of it.
Selections are lists of instances that another page hands to Review; their key goes into the
address, so a reload or a second tab opens the same.
"""

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import lru_cache, partial

import numpy as np
import pandas as pd
import streamlit as st

from core import tuning
from core.review.assignment import Ranking
from core.review.session import Progress, Query, ReviewState, recent_decisions
from core.store import Decision, review_files
from plain_app.server import preload
from plain_app.services import explore
from plain_app.services.explore import Explored
from plain_app.services.shared import Shared
from plain_app.services.workspace import current_decisions, workspace

SPARE = 600  # questions ranked beside those on desks: enough for twenty people who sit down at once

State = ReviewState[Explored]

KEPT = 3  # runs whose review is kept

_PREPARING = ThreadPoolExecutor(1)


class RunReview:
    """One run under review: follows the store, and ranks what to ask.

    Nothing it holds refers back to it, so that its arrays and threads go with the last who uses it
    and do not wait for the garbage collector.
    """

    def __init__(self, state: State) -> None:
        self.state = Shared(_Following(state), ThreadPoolExecutor(1))
        self.ranking_thread = ThreadPoolExecutor(1)  # one ranking at a time, whatever is asked
        make = partial(_shared_ranking, self.state, self.ranking_thread)
        self._rankings = lru_cache(maxsize=32)(make)

    def ranking(self, query: Query) -> Ranking[Explored]:
        """Return the questions for everyone who asks for these."""
        return self._rankings(query).get()


class _Following:
    """Lets the session follow the decisions and names in the store."""

    def __init__(self, state: State) -> None:
        self._last = state

    def __call__(self) -> State:
        results = self._last.results
        fingerprint = results.run.fingerprint
        names = workspace().labels.names(fingerprint, results.dataset.label_names)
        self._last = self._last.follow(current_decisions(fingerprint), names)
        return self._last


def _shared_ranking(
    state: Shared[State], thread: ThreadPoolExecutor, query: Query
) -> Shared[Ranking[Explored]]:
    return Shared(partial(_rank, state, query), thread)


def _rank(shared: Shared[State], query: Query) -> Ranking[Explored]:
    """Rank so many questions that there are some left when everyone has theirs."""
    state = shared.get()
    n_held = workspace().lanes.count(state.results.run.fingerprint)
    return Ranking(state, query, selected(query), SPARE + n_held)


def run_review(run_id: str) -> RunReview:
    """Return what all annotators of a run share."""
    folder = str(workspace().folder)
    return _run_review(folder, run_id, _studied(folder, run_id))


def is_prepared(run_id: str) -> bool:
    """Tell whether a review is there at once; that of very much data is begun beside, here."""
    if explore.explored(run_id).dataset.candidates.size <= preload.MAX_CELLS:
        return True
    return _prepared(str(workspace().folder), run_id).done()


@lru_cache(maxsize=KEPT)  # a review that is no longer kept is begun again
def _prepared(folder: str, run_id: str) -> Future[Progress]:
    return _PREPARING.submit(progress, run_id)


def current_state(run_id: str) -> State:
    """Return the review of a run, up to date with the store."""
    return run_review(run_id).state.newest()


@st.cache_resource(max_entries=KEPT, show_spinner=False)
def _run_review(folder: str, run_id: str, studied: str) -> RunReview:
    return RunReview(ReviewState.begin(workspace(), explore.explored(run_id)))


@st.cache_data(ttl=10, max_entries=20, show_spinner=False)  # answers must not wait for it
def _studied(folder: str, run_id: str) -> str:
    """Name what the last study found, so that a review knows of a newer one."""
    path = tuning.dependence_file(workspace(), workspace().runs.get(run_id).fingerprint)
    return f"{path} {path.stat().st_mtime_ns}" if path else ""


def progress(run_id: str) -> Progress:
    """Return how far the review of a run is."""
    return current_state(run_id).progress()


def settled_table(run_id: str, limit: int) -> pd.DataFrame:
    """Return cells that decisions settled, those that moved most first."""
    found = current_state(run_id)
    rows, labels = found.settled_cells()
    before, now = found.before[rows, labels], found.reviewer.confidences[rows, labels]
    order = np.argsort(-np.abs(now - before), kind="stable")[:limit]
    dataset = found.results.dataset
    return pd.DataFrame(
        {
            "instance": [dataset.ids[at][:60] for at in rows[order]],
            "label": [dataset.label_names[at][:60] for at in labels[order]],
            "before": before[order].astype(float),
            "now": now[order].astype(float),
        }
    )


def recent(fingerprint: str, annotator: str) -> list[Decision]:
    """Return one person's decisions that hold, the newest first."""
    return recent_decisions(current_decisions(fingerprint), annotator)


def overlap_share() -> float:
    """Return which share of the instances two people are asked about."""
    return review_files.read_overlap(workspace().folder)


def set_overlap(share: float) -> None:
    """Have two people asked about a share of the instances, from now on."""
    review_files.write_overlap(workspace().folder, share)


def open_selection(ids: Sequence[str]) -> str:
    """Keep a list of instances in the workspace; link to Review with `?selection=<the key>`."""
    key = review_files.write_selection(workspace().folder, ids)
    workspace().share("selections")
    return key


def selected(query: Query) -> list[str]:
    """Return the instances of a query's selection; none where it has none."""
    return selection(query.selection) if query.selection else []


def selection(key: str) -> list[str]:
    """Return the instances kept under a key."""
    return review_files.read_selection(workspace().stored, key)
