"""What is known of a run under review: decisions and what they settle; selections to review.

One `RunReview` per run is shared by all annotators of this server. Pages get a board that is as new
as the newest decision. Desks get one that may be some seconds old (`plain_app.services.shared`),
and so are the questions ranked with it; which cells were decided, they learn anew each time, so
nothing is asked that was answered. Answers are stored without waiting for any of it.
Selections are lists of instances that another page hands to Review; their key goes into the
address, so a reload or a second tab opens the same.
"""

import hashlib
import re
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
import streamlit as st

from core import tuning
from core.errors import PlainError
from core.review import Reviewer
from core.review.queue import Order, State, is_settled
from core.store import Decision, DecisionsNow, files
from core.store.permissions import make_private_folder
from plain_app.services import explore
from plain_app.services.explore import Explored
from plain_app.services.shared import Shared
from plain_app.services.workspace import current_decisions, workspace

_KEY = re.compile(r"[0-9a-f]{16}")
SPARE = 600  # questions ranked beside those on desks: enough for twenty people who sit down at once


class Progress(NamedTuple):
    """How far a review is."""

    n_cells: int
    n_decided: int
    n_settled: int  # by decisions, without being decided
    n_open: int
    annotators: dict[str, int]  # cells each has decided


@dataclass(frozen=True, eq=False)
class Board:
    """One run with the decisions of one moment. Shared by all annotators: nobody may change it."""

    results: Explored
    reviewer: Reviewer
    before: npt.NDArray[np.float32]  # confidences without any decision
    now: DecisionsNow
    names: list[str]  # what labels are called

    @cached_property
    def n_open(self) -> int:
        reviewer = self.reviewer
        return int((reviewer.offered & np.isnan(reviewer.decided) & ~reviewer.settled).sum())

    @cached_property
    def n_settled(self) -> int:
        return len(settled_cells(self)[0])


class Query(NamedTuple):
    """Which questions, in which order; labels by their place."""

    order: Order = "worth"
    labels: tuple[int, ...] | None = None
    states: tuple[State, ...] | None = None
    selection: str = ""
    annotator: str = ""  # only instances that this person decided on
    source: str = ""  # only candidates that this source offered

    def rows(self, board: Board) -> list[int] | None:
        """Return the instances to ask about; none for all."""
        row_of = board.results.row_of
        wanted: set[int] | None = None
        if self.selection:
            wanted = {row_of[name] for name in selection(self.selection) if name in row_of}
        if self.annotator:
            cells = board.now.latest.items()
            theirs = {row_of[cell[0]] for cell, one in cells if one.annotator == self.annotator}
            wanted = theirs if wanted is None else wanted & theirs
        return None if wanted is None else sorted(wanted)


class Ranking:
    """What to ask of a board, best first; shared, so some may have been answered since."""

    def __init__(self, board: Board, query: Query, limit: int) -> None:
        self.board, self._query = board, query
        self._extending = threading.Lock()
        self._rank(limit)

    @property
    def is_whole(self) -> bool:
        """Whether there is nothing more to ask than `questions`."""
        return len(self.questions) < self.limit

    def extend(self, limit: int) -> None:
        """Have more questions than this limit gave, unless somebody saw to it meanwhile."""
        with self._extending:
            if self.limit <= limit:
                self._rank(4 * limit)

    def _rank(self, limit: int) -> None:
        order, labels, states, *_ = self._query
        rows = self._query.rows(self.board)
        ask, source = self.board.reviewer.questions, self._query.source or None
        self.questions = ask(
            order, labels=labels, rows=rows, states=states, source=source, limit=limit
        )
        self.limit = limit


class RunReview:
    """One run under review: follows the store, and ranks what to ask."""

    def __init__(self, results: Explored, reviewer: Reviewer) -> None:
        names = results.dataset.label_names
        self._last = Board(results, reviewer, reviewer.confidences, DecisionsNow(), list(names))
        self.board = Shared(self._follow, ThreadPoolExecutor(1))
        self.ranking_thread = ThreadPoolExecutor(1)  # one ranking at a time, whatever is asked
        self._rankings = lru_cache(maxsize=32)(self._shared_ranking)

    def ranking(self, query: Query) -> Ranking:
        """Return the questions for everyone who asks for these."""
        return self._rankings(query).get()

    def _shared_ranking(self, query: Query) -> Shared[Ranking]:
        return Shared(partial(self._rank, query), self.ranking_thread)

    def _rank(self, query: Query) -> Ranking:
        """Rank so many questions that there are some left when everyone has theirs."""
        board = self.board.get()
        n_held = workspace().lanes.count(board.results.run.fingerprint)
        return Ranking(board, query, SPARE + n_held)

    def _follow(self) -> Board:
        """Let the reviewer decide what was decided since; what was undone is undone there too."""
        board, run = self._last, self._last.results.run
        now = current_decisions(run.fingerprint)
        if now is not board.now:
            old, new = board.now.latest, now.latest
            changed = [one for cell, one in new.items() if old.get(cell) is not one]
            gone = [one for cell, one in old.items() if cell not in new]
            undone = [one.model_copy(update={"verdict": "undo"}) for one in gone]
            reviewer, _ = board.reviewer.decide([*undone, *changed])
            board = replace(board, reviewer=reviewer, now=now)
        names = workspace().labels.names(run.fingerprint, board.results.dataset.label_names)
        if names != board.names:
            board = replace(board, names=names)
        self._last = board
        return board


def run_review(run_id: str) -> RunReview:
    """Return what all annotators of a run share."""
    folder = str(workspace().folder)
    return _run_review(folder, run_id, _studied(folder, run_id))


def board(run_id: str) -> Board:
    """Return the board of a run, up to date with the store."""
    return run_review(run_id).board.newest()


@st.cache_resource(max_entries=3, show_spinner=False)
def _run_review(folder: str, run_id: str, studied: str) -> RunReview:
    results = explore.explored(run_id)
    variability = None
    if len(results.history) > 1:
        variability = np.zeros(results.dataset.candidates.shape, np.float32)
        variability[results.cells] = np.asarray(results.history, np.float32).std(axis=0)
    reviewer = Reviewer(
        results.dataset,
        results.propagator,
        results.predictions,
        variability=variability,
        dependence=tuning.dependence(workspace(), results.run.fingerprint),
        held_out=results.run.config.members > 1,
        level=results.level,
    )
    return RunReview(results, reviewer)


@st.cache_data(ttl=10, max_entries=20, show_spinner=False)  # answers must not wait for it
def _studied(folder: str, run_id: str) -> str:
    """Name what the last study found, so that a board knows of a newer one."""
    path = tuning.dependence_file(workspace(), workspace().runs.get(run_id).fingerprint)
    return f"{path} {path.stat().st_mtime_ns}" if path else ""


def progress(run_id: str) -> Progress:
    """Return how far the review of a run is."""
    found = board(run_id)
    offered = found.reviewer.offered
    return Progress(
        n_cells=int(offered.sum()),
        n_decided=int((offered & ~np.isnan(found.reviewer.decided)).sum()),
        n_settled=found.n_settled,
        n_open=found.n_open,
        annotators=found.now.n_by_annotator,
    )


def settled_cells(found: Board) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the undecided cells that are settled only because of decisions."""
    rows, labels = np.nonzero(found.reviewer.settled & ~is_settled(found.before))
    return rows, labels


def settled_table(run_id: str, limit: int) -> pd.DataFrame:
    """Return cells that decisions settled, those that moved most first."""
    found = board(run_id)
    rows, labels = settled_cells(found)
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


def recent(fingerprint: str, annotator: str, limit: int = 500) -> list[Decision]:
    """Return one person's decisions that stand, the newest first."""
    made = current_decisions(fingerprint).by_annotator.get(annotator, {})
    return sorted(made.values(), key=lambda one: one.id or 0, reverse=True)[:limit]


def batches(made: Sequence[Decision]) -> list[list[Decision]]:
    """Return decisions by the answer they were given in, the newest first."""
    by_answer: dict[str, list[Decision]] = {}
    for one in made:
        by_answer.setdefault(one.batch or one.uid, []).append(one)
    return list(by_answer.values())


def overlap_share() -> float:
    """Return which share of the instances two people are asked about."""
    path = workspace().folder / "review.json"
    return float(files.read_json(path).get("overlap", 0.0)) if path.exists() else 0.0


def set_overlap(share: float) -> None:
    """Have two people asked about a share of the instances, from now on."""
    files.write_json(workspace().folder / "review.json", {"overlap": min(max(share, 0.0), 1.0)})


def open_selection(ids: Sequence[str]) -> str:
    """Keep a list of instances in the workspace; link to Review with `?selection=<the key>`."""
    key = hashlib.sha256("\0".join(ids).encode("utf-8", "surrogatepass")).hexdigest()[:16]
    folder = workspace().folder / "selections"
    make_private_folder(folder)
    if not (folder / f"{key}.json").exists():
        files.write_json(folder / f"{key}.json", {"ids": list(ids)})
    return key


def selection(key: str) -> list[str]:
    """Return the instances kept under a key."""
    path = workspace().folder / "selections" / f"{key}.json"
    if not _KEY.fullmatch(key) or not path.exists():
        hint = "Select instances in Explore again."
        raise PlainError("This selection is gone.", key[:40], hint)
    return list(files.read_json(path)["ids"])
