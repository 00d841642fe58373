"""What is known of a run under review: decisions and what they settle; selections to review.

One `Board` per run is shared by all annotators of this server. It follows the store: whoever asks
first after new decisions pays for the propagation, so answers are stored without waiting for it.
Selections are lists of instances that another page hands to Review; their key goes into the
address, so a reload or a second tab opens the same.
"""

import hashlib
import re
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
import streamlit as st

from core import tuning
from core.errors import PlainError
from core.review import Reviewer
from core.review.queue import is_settled
from core.store import Decision, files
from plain_app.services import explore
from plain_app.services.explore import Explored
from plain_app.services.workspace import workspace

_KEY = re.compile(r"[0-9a-f]{16}")


class Standing(NamedTuple):
    """How far a review is."""

    n_cells: int
    n_decided: int
    n_settled: int  # by decisions, without being decided
    n_open: int
    annotators: dict[str, int]  # cells each has decided


@dataclass
class Board:
    """One run under review, as of the newest decision that was looked at."""

    results: Explored
    reviewer: Reviewer
    before: npt.NDArray[np.float32]  # confidences without any decision
    count: int = 0
    standing: dict[tuple[str, str], Decision] = field(default_factory=dict)
    own: dict[str, dict[tuple[str, str], str]] = field(default_factory=dict)  # by annotator
    names: list[str] = field(default_factory=list)  # what labels are called now
    lock: threading.Lock = field(default_factory=threading.Lock)


def board(run_id: str) -> Board:
    """Return the board of a run, up to date with the store."""
    folder = str(workspace().folder)
    found = _board(folder, run_id, _studied(folder, run_id))
    with found.lock:
        _follow(found)
        dataset, run = found.results.dataset, found.results.run
        found.names = workspace().labels.names(run.fingerprint, dataset.label_names)
    return found


@st.cache_resource(max_entries=3, show_spinner=False)
def _board(folder: str, run_id: str, studied: str) -> Board:
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
    )
    return Board(results, reviewer, reviewer.confidences)


@st.cache_data(ttl=10, max_entries=20, show_spinner=False)  # answers must not wait for it
def _studied(folder: str, run_id: str) -> str:
    """Name what the last study found, so that a board knows of a newer one."""
    path = tuning.dependence_file(workspace(), workspace().runs.get(run_id).fingerprint)
    return f"{path} {path.stat().st_mtime_ns}" if path else ""


def _follow(found: Board) -> None:
    """Let the reviewer decide what was decided since; an undone decision is undone there too."""
    fingerprint = found.results.run.fingerprint
    count = workspace().decisions.count(fingerprint)
    if count == found.count:
        return
    standing = {
        (one.instance_id, one.label): one for one in workspace().decisions.latest(fingerprint)
    }
    changed = [one for cell, one in standing.items() if found.standing.get(cell) != one]
    gone = [
        one.model_copy(update={"verdict": "undo"})
        for cell, one in found.standing.items()
        if cell not in standing
    ]
    found.reviewer, _ = found.reviewer.decide([*gone, *changed])
    found.standing, found.count = standing, count
    found.own = {
        who: {(one.instance_id, one.label): one.verdict for one in made}
        for who, made in workspace().decisions.by_annotator(fingerprint).items()
    }


def standing(run_id: str) -> Standing:
    """Return how far the review of a run is."""
    found = board(run_id)
    reviewer = found.reviewer
    offered = found.results.dataset.candidates > 0
    decided = offered & ~np.isnan(reviewer.decided)
    by = [one.annotator for one in found.standing.values()]
    return Standing(
        n_cells=int(offered.sum()),
        n_decided=int(decided.sum()),
        n_settled=len(settled_cells(found)[0]),
        n_open=int((offered & ~decided & ~reviewer.settled).sum()),
        annotators={name: by.count(name) for name in dict.fromkeys(by)},
    )


def settled_cells(found: Board) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the undecided cells that are settled only because of decisions."""
    return np.nonzero(found.reviewer.settled & ~is_settled(found.before))


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
    made = workspace().decisions.by_annotator(fingerprint).get(annotator, [])
    return made[::-1][:limit]


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
    folder.mkdir(exist_ok=True)
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
