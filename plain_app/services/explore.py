"""What the Explore view asks: a run's results, evidence, label graph and hidden labels.

Ended runs and stored data never change, and a run at work only with its next checkpoint; so what is
read of them is kept in caches that all sessions share: nobody may change what comes out of here.
Never loads torch or faiss.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd
import streamlit as st

from core.engine.graphs import LabelGraph, build_label_graph
from core.engine.propagation import Evidence
from core.errors import PlainError
from core.review.resolve import located
from core.runs.results import CHECKPOINT, RunResults, load_results, lost_files
from core.runs.worker import is_interrupted
from core.store import RunRow, RunState
from plain_app.charts import labels as label_charts
from plain_app.charts.evidence import EvidencePoints, evidence_points
from plain_app.services import pictures
from plain_app.services.workspace import workspace

Matrix = npt.NDArray[np.float32]
Rows = npt.NDArray[np.int64]
Situation: TypeAlias = Literal[
    "no run", "working", "interrupted", "failed", "empty", "lost", "live", "ready"
]

RESULTS = ("predictions", "confidences")
MAX_LISTED = 500
NEW_LABEL_CUT = 0.8

_PICTURES = tuple(f"data:image/{kind};base64," for kind in ("png", "jpeg", "gif", "webp"))


class Outside(NamedTuple):
    """Cells that were never offered though strongly predicted, the strongest first."""

    rows: Rows
    labels: Rows
    predictions: Matrix
    total: int


@dataclass(frozen=True, eq=False)
class Explored(RunResults):
    """A run's results with what exploring derives from them. Shared by all sessions: read only."""

    version: str = ""  # of the checkpoint of a run at work; empty for an ended run

    @property
    def row_of(self) -> dict[str, int]:
        return self.dataset.row_of

    @property
    def label_of(self) -> dict[str, int]:
        return self.dataset.label_of

    @cached_property
    def cells(self) -> tuple[Rows, Rows]:
        """Instances and labels of the candidate cells, in the order of the history."""
        rows, labels = np.nonzero(self.dataset.candidates)
        return rows, labels

    @cached_property
    def starts(self) -> Rows:
        """Where each instance's cells begin among all cells; one more for the end."""
        return np.searchsorted(self.cells[0], np.arange(self.dataset.n_instances + 1))

    @cached_property
    def counts(self) -> label_charts.LabelCounts:
        return label_charts.count_labels(self.dataset.candidates, self.confidences)

    @cached_property
    def resolved_graph(self) -> LabelGraph:
        """The label graph of what remains at a confidence of 0.5."""
        kept = (self.dataset.candidates > 0) & (self.confidences >= 0.5)
        return build_label_graph(kept.astype(np.uint8))

    @cached_property
    def label_order(self) -> list[int]:
        return label_charts.clustered_order(self.label_graph.weights)

    @cached_property
    def display(self) -> "pd.DataFrame":
        """The columns that are shown of the data; none where it has none."""
        display = self.dataset.display
        return pd.DataFrame() if display is None else display

    @cached_property
    def picture_column(self) -> str | None:
        """The first display column with pictures in it."""
        return next((name for name in self.display if self._is_picture(name)), None)

    @cached_property
    def _pictures(self) -> "pd.Series[Any] | None":
        return None if self.picture_column is None else self.display[self.picture_column]

    @cached_property
    def text_columns(self) -> list[str]:
        """The display columns a person reads."""
        return [name for name in self.display if not self._is_picture(name)]

    @cached_property
    def richest_columns(self) -> list[str]:
        """The same: first the texts that features were made of, then those with most to read, as
        far as the first rows tell."""
        some = self.display[self.text_columns].head(100)
        lengths = some.map(lambda value: len(str(value))).mean()
        mapping = workspace().mapping(self.run.fingerprint)
        learned = mapping.features if mapping and mapping.feature_layout == "text" else ()
        return sorted(self.text_columns, key=lambda name: (name not in learned, -lengths[name]))

    def _is_picture(self, name: str) -> bool:
        return name in self._kept_pictures or _has_pictures(self.display[name])

    @cached_property
    def _kept_pictures(self) -> list[str]:
        return pictures.picture_columns(self.run.fingerprint)

    @cached_property
    def colour_columns(self) -> list[str]:
        """The display columns that can colour the map: numbers, or names that repeat."""
        return [name for name in self.text_columns if _can_colour(self.display[name])]

    @cached_property
    def hidden(self) -> tuple[Rows, Rows, Matrix]:
        """Cells that were never offered with a prediction above 0.5, the strongest first."""
        rows, labels = np.nonzero((self.predictions > 0.5) & (self.dataset.candidates == 0))
        values = np.asarray(self.predictions[rows, labels])
        order = np.argsort(-values, kind="stable")
        return rows[order], labels[order], values[order]

    def cell_values(self, epoch: int | None) -> npt.NDArray[np.floating[Any]]:
        """Return the confidences of all candidate cells after an epoch, or at the end."""
        if epoch is None or not 1 <= epoch <= len(self.history):
            return self.confidences[self.cells]
        return np.asarray(self.history[epoch - 1], np.float32)

    def picture(self, row: int) -> str | None:
        """Return an instance's picture as a data URI, if it has one that is safe to show."""
        if self._pictures is None:
            return None
        if self.picture_column in self._kept_pictures:
            return pictures.thumbnail(self.run.fingerprint, self.picture_column, row)
        value = self._pictures.iloc[row]
        return value if isinstance(value, str) and value.startswith(_PICTURES) else None

    def full_picture(self, row: int) -> str | None:
        """Return an instance's picture large enough to look at closely."""
        if self.picture_column in self._kept_pictures:
            cell = self.display[self.picture_column].iloc[row]
            return pictures.full_picture(self.run.fingerprint, self.picture_column, row, cell)
        return self.picture(row)


def situation(run_id: str | None) -> tuple[Situation, RunRow | None]:
    """Tell what there is to explore of a run."""
    if run_id is None:
        return "no run", None
    try:
        run = workspace().runs.get(run_id)
    except PlainError:
        return "no run", None
    if run.state is RunState.FAILED:
        return "failed", run
    if lost_files(workspace(), run) is not None:
        return "lost", run
    folder = workspace().runs.folder(run.id)
    if not run.state.is_ended:
        if is_interrupted(workspace(), run):
            return "interrupted", run
        return ("live" if (folder / CHECKPOINT).exists() else "working"), run
    has_results = all((folder / f"{name}.npy").exists() for name in RESULTS)
    return ("ready" if has_results else "empty"), run


def explored(run_id: str) -> Explored:
    """Return the results of a run; of one at work, those of its last checkpoint."""
    run = workspace().runs.get(run_id)
    path = workspace().runs.folder(run.id) / CHECKPOINT
    version = "" if run.state.is_ended else str(path.stat().st_mtime_ns)
    return _explored(str(workspace().folder), run.id, version)


@st.cache_resource(max_entries=3, show_spinner=False)
def _explored(folder: str, run_id: str, version: str) -> Explored:
    run = workspace().runs.get(run_id)
    results = load_results(workspace(), run, at_work=bool(version))
    return Explored(**vars(results), version=version)


def current_verdicts(results: Explored) -> dict[tuple[int, int], str]:
    """Return what was decided, by (row, label)."""
    latest = workspace().decisions.latest(results.run.fingerprint)
    return {(i, j): one.verdict for i, j, one in located(results.dataset, latest)}


def verdicts_on(results: Explored, row: int) -> dict[str, str]:
    """Return what was decided on one instance, by label name."""
    stored = workspace().decisions.history(results.run.fingerprint, results.dataset.ids[row])
    if not stored:
        return {}
    names, found = results.dataset.label_names, current_verdicts(results).items()
    return {names[label]: verdict for (at, label), verdict in found if at == row}


def evidence(results: Explored, row: int, label: int) -> EvidencePoints:
    """Return why a cell has its confidence; exact, from the run's own graphs and predictions."""
    return _evidence(results, results.run.id, results.version, row, label)


@st.cache_resource(max_entries=500, show_spinner=False)
def _evidence(
    _results: Explored, run_id: str, version: str, row: int, label: int
) -> EvidencePoints:
    candidates, config = _results.dataset.candidates, _results.run.config
    if config.disambiguation == "alternating":
        found = _results.propagator.evidence(row, label, candidates, _results.predictions)
    else:
        found = _prediction_only(_results, row, label)
    confidence = float(_results.confidences[row, label]) if candidates[row, label] else None
    return evidence_points(found, row, label, config.eta, confidence)


def instance_table(
    results: Explored, rows: Sequence[int] | Rows, epoch: int | None = None
) -> pd.DataFrame:
    """Return instances as a table: picture, id, candidates and how doubtful they are."""
    names, dataset = results.dataset.label_names, results.dataset
    values, labels, starts = results.cell_values(epoch), results.cells[1], results.starts
    table: dict[str, list[Any]] = {}
    if results.picture_column is not None:
        table["picture"] = [results.picture(int(row)) for row in rows]
    table["instance"] = [dataset.ids[row] for row in rows]
    parts = [slice(starts[row], starts[row + 1]) for row in rows]
    table["doubtful"] = [int((values[part] < 0.5).sum()) for part in parts]
    table["least"] = [float(values[part].min(initial=1)) for part in parts]
    table["candidates"] = [[names[at] for at in labels[part]] for part in parts]
    for name in results.richest_columns[:2]:
        table[f"{name} "] = [short_text(results.display[name].iloc[row]) for row in rows]
    return pd.DataFrame(table)


def instance_text(results: Explored, row: int, limit: int = 1200) -> str:
    """Return what there is most to read of an instance, one column per line."""
    richest = results.richest_columns[:4]
    shown = results.display[[name for name in results.text_columns if name in richest]]
    values = ((name, short_text(shown[name].iloc[row], limit)) for name in shown)
    return "\n".join(f"{name}: {value}" for name, value in values)


def offered_together(results: Explored, a: int, b: int) -> Rows:
    """Return the instances for which both labels are offered."""
    candidates = results.dataset.candidates
    return np.flatnonzero(candidates[:, a] & candidates[:, b])


def outside(results: Explored, cut: float = NEW_LABEL_CUT) -> Outside:
    """Return labels that were not offered though predicted above a cut (0.5 at least)."""
    rows, labels, values = results.hidden
    total = int((values > cut).sum())
    shown = slice(min(total, MAX_LISTED))
    return Outside(rows[shown], labels[shown], values[shown], total)


def _prediction_only(results: Explored, row: int, label: int) -> Evidence:
    """Without propagation after the network, the prediction is all there is.

    Scaled down by what `charts.evidence` scales up, and with the candidate's discount undone.
    """
    n, n_labels = results.dataset.candidates.shape
    eta = results.run.config.eta
    own = float(results.dataset.candidates[row, label]) * eta / (1 + eta)
    prediction = float(results.predictions[row, label]) / (1 + eta)
    votes, label_votes = np.zeros(n, np.float32), np.zeros(n_labels, np.float32)
    return Evidence(own, prediction, 0.0, 0.0, votes, label_votes)


def _has_pictures(column: "pd.Series[Any]") -> bool:
    first = next((value for value in column.head(50) if isinstance(value, str)), "")
    return first.startswith("data:image/")


def _can_colour(column: "pd.Series[Any]") -> bool:
    if pd.api.types.is_numeric_dtype(column):
        return True
    sample = column.head(2000).astype(str)
    return bool(sample.nunique() <= max(20, len(sample) // 10))


def short_text(value: Any, limit: int = 300) -> str:
    """Return a value of a display column as text of limited length; "…" says that it goes on."""
    if isinstance(value, float):
        return "" if value != value else f"{value:.4g}"
    text = "" if value is None else str(value)
    return text if len(text) <= limit else f"{text[:limit]}…"
