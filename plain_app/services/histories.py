"""What became of a run's candidate cells, computed once per run and epoch."""

import numpy as np
import numpy.typing as npt
import streamlit as st

from core.store import RunRow
from plain_app.charts import evolution as charts
from plain_app.charts.evolution import CellStatistics, EvolutionPoints, RestlessPoints
from plain_app.services import data, runs
from plain_app.services.workspace import workspace

EVERY = 5  # epochs between looks at every cell of a run at work


def evolution(run: RunRow, label: str | None) -> EvolutionPoints:
    """Return the distribution of confidences by epoch, of one label or of all."""
    n_epochs = len(runs.history(run.id))
    return _evolution(str(workspace().folder), run.id, run.fingerprint, n_epochs, label)


def statistics(run: RunRow) -> CellStatistics:
    """Return mean, variability and movement of every cell, as of a recent epoch."""
    return _statistics(str(workspace().folder), run.id, _recent(run))


def restless(run: RunRow) -> RestlessPoints:
    """Return the cells that moved most."""
    return _restless(str(workspace().folder), run.id, _recent(run))


def truth_of_cells(fingerprint: str) -> npt.NDArray[np.bool_] | None:
    """Return which candidate cells are true, where that is known."""
    dataset = data.load(fingerprint)
    if dataset.truth is None:
        return None
    cells = runs.cells(fingerprint)
    return dataset.truth[cells.rows, cells.columns] > 0


def _recent(run: RunRow) -> int:
    """Return an epoch to look at: the last, while at work only each so many."""
    n_epochs = len(runs.history(run.id))
    return max(1, n_epochs // EVERY * EVERY) if runs.is_held(run) else n_epochs


@st.cache_data(max_entries=50, show_spinner=False)
def _evolution(
    folder: str, run_id: str, fingerprint: str, n_epochs: int, label: str | None
) -> EvolutionPoints:
    history = runs.history(run_id)[:n_epochs]
    cells = runs.cells(fingerprint)
    if label is None:
        return charts.evolution_points(history, charts.sample_cells(history.shape[1]))
    chosen = np.flatnonzero(cells.columns == cells.labels.index(label))
    sample = charts.sample_cells(len(chosen))
    return charts.evolution_points(history, chosen if sample is None else chosen[sample])


@st.cache_resource(max_entries=10, show_spinner=False)
def _statistics(folder: str, run_id: str, n_epochs: int) -> CellStatistics:
    return charts.cell_statistics(runs.history(run_id)[:n_epochs])


@st.cache_data(max_entries=20, show_spinner=False)
def _restless(folder: str, run_id: str, n_epochs: int) -> RestlessPoints:
    history = runs.history(run_id)[:n_epochs]
    return charts.restless_points(history, _statistics(folder, run_id, n_epochs))
