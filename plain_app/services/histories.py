"""What became of a run's candidate cells, computed once per run and epoch."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import streamlit as st

from core.store import RunRow, files
from core.tuning.objectives import read_verdicts
from plain_app.charts import evolution as charts
from plain_app.charts.evolution import CellStatistics, EvolutionPoints, UnstablePoints
from plain_app.charts.instance_map import inside_polygon, pack_colours, pack_places
from plain_app.charts.reliability import ReliabilityPoints, reliability_points
from plain_app.services import data, runs
from plain_app.services.workspace import workspace

Indices = npt.NDArray[np.int64]
Corners = Sequence[Sequence[float]]
EVERY = 5  # epochs between looks at every cell of a run at work


class Cartography(NamedTuple):
    """The cells of a run as the browser takes them; `cells` are those that are drawn."""

    layout: str
    places: bytes
    colours: bytes
    cells: Indices


def evolution(run: RunRow, label: str | None) -> EvolutionPoints:
    """Return the distribution of confidences by epoch, of one label or of all."""
    n_epochs = len(runs.history(run.id))
    return _evolution(str(workspace().folder), run.id, run.fingerprint, n_epochs, label)


def statistics(run: RunRow) -> CellStatistics:
    """Return mean, variability and movement of every cell, as of a recent epoch."""
    return _statistics(str(workspace().folder), run.id, _recent(run))


def unstable(run: RunRow) -> UnstablePoints:
    """Return the cells that moved most."""
    return _unstable(str(workspace().folder), run.id, _recent(run))


def cartography(run: RunRow) -> Cartography:
    """Return every cell by mean confidence and variability, as a map; a sample of very many."""
    return _cartography(str(workspace().folder), run.id, run.fingerprint, _recent(run))


def lassoed(run: RunRow, corners: Corners) -> Indices:
    """Return the cells inside a lasso of the cartography, also those that are not drawn."""
    found = statistics(run)
    places = charts.cartography_places(found, np.arange(len(found.mean)))
    return np.flatnonzero(inside_polygon(*places, corners))


def truth_of_cells(fingerprint: str) -> npt.NDArray[np.bool_] | None:
    """Return which candidate cells are true, where that is known."""
    dataset = data.load(fingerprint)
    if dataset.truth is None:
        return None
    cells = runs.cells(fingerprint)
    return dataset.truth[cells.rows, cells.columns] > 0


def reliability(run: RunRow) -> tuple[ReliabilityPoints, str]:
    """Return how confidences compare with the truth, or with decisions; and with which of them."""
    cells, truth = runs.cells(run.fingerprint), truth_of_cells(run.fingerprint)
    path = workspace().runs.folder(run.id) / "confidences.npy"
    if path.exists():
        said = files.read_array(path, mmap=True)[cells.rows, cells.columns]
    else:
        said = np.asarray(runs.history(run.id)[-1], np.float32)
    if truth is not None:
        return reliability_points(said, truth), "truth"
    dataset = data.load(run.fingerprint)
    decided = read_verdicts(workspace(), dataset).cells(dataset.candidates.shape)
    return reliability_points(said, decided[cells.rows, cells.columns]), "decisions"


def _recent(run: RunRow) -> int:
    """Return an epoch to look at: the last, while at work only each so many."""
    n_epochs = len(runs.history(run.id))
    return n_epochs if run.state.is_ended else max(1, n_epochs // EVERY * EVERY)


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


@st.cache_resource(max_entries=4, show_spinner=False)
def _cartography(folder: str, run_id: str, fingerprint: str, n_epochs: int) -> Cartography:
    found = _statistics(folder, run_id, n_epochs)
    sample = charts.sample_cells(len(found.mean), charts.MAX_DOTS)
    shown = np.arange(len(found.mean)) if sample is None else sample
    name = f"{run_id} {n_epochs}"
    places = charts.cartography_places(found, shown)
    colours = charts.cartography_colouring(found, shown, truth_of_cells(fingerprint))
    return Cartography(
        name,
        pack_places(places, name, charts.cartography_axes(found)),
        pack_colours(colours, name, name),
        shown,
    )


@st.cache_resource(max_entries=10, show_spinner=False)
def _statistics(folder: str, run_id: str, n_epochs: int) -> CellStatistics:
    return charts.cell_statistics(runs.history(run_id)[:n_epochs])


@st.cache_data(max_entries=20, show_spinner=False)
def _unstable(folder: str, run_id: str, n_epochs: int) -> UnstablePoints:
    history = runs.history(run_id)[:n_epochs]
    return charts.unstable_points(history, _statistics(folder, run_id, n_epochs))
