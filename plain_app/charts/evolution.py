"""How confidences of candidate cells moved over the epochs.

Every function takes a history, (epochs, cells) of confidences in [0, 1], perhaps on the disk.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from plain_app.charts import axis, shades, titled
from plain_app.charts.instance_map import Axis, Colouring, Places, colour_names

BINS = 20
MAX_EPOCHS = 150
MAX_CELLS = 20_000
MAX_DOTS = 100_000
CHUNK = 50_000  # cells worked on at once

History = npt.NDArray[np.float16]
Indices = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float32]


class EvolutionPoints(NamedTuple):
    """Share of cells (%) per epoch and confidence bin."""

    epochs: list[int]
    bins: list[str]
    shares: Floats  # (epochs, bins)
    n_cells: int


class CellStatistics(NamedTuple):
    """What became of each cell; `crossings` counts changes of sides of 0.5."""

    mean: Floats
    variability: Floats
    movement: Floats
    crossings: npt.NDArray[np.int32]
    last: Floats


class UnstablePoints(NamedTuple):
    """The cells that moved most, each with its trail over the epochs."""

    cells: Indices
    movement: list[float]
    crossings: list[int]
    last: list[float]
    trails: list[list[float]]


class DifferencePoints(NamedTuple):
    """The cells whose confidence differs most between two epochs."""

    cells: Indices
    before: Floats
    after: Floats
    n_changed: int


def sample_cells(n_cells: int, limit: int = MAX_CELLS) -> Indices | None:
    """Return an even sample of cells, none when all are few enough."""
    if n_cells <= limit:
        return None
    return np.linspace(0, n_cells - 1, limit).astype(np.int64)


def evolution_points(
    history: History, cells: Indices | None = None, bins: int = BINS
) -> EvolutionPoints:
    """Return how the distribution of confidences changes with the epochs."""
    shown = _shown_epochs(len(history))
    rows = [_shares(_row(history, at, cells), bins) for at in shown]
    names = [f"{i / bins:.2f}–{(i + 1) / bins:.2f}" for i in range(bins)]
    shares = np.array(rows, np.float32).reshape(len(rows), bins)
    n_cells = history.shape[1] if cells is None else len(cells)
    return EvolutionPoints([at + 1 for at in shown], names, shares, n_cells)


def evolution_option(points: EvolutionPoints, n_epochs: int) -> dict[str, Any]:
    """Draw epochs × confidence; an ended run has no empty columns."""
    every = _epoch_names(points.epochs, n_epochs)
    at, bin_ = np.nonzero(points.shares > 0)
    names = [str(epoch) for epoch in points.epochs]
    values = np.round(points.shares[at, bin_], 2).tolist()
    cells = zip(at.tolist(), bin_.tolist(), values, strict=True)
    heat = {
        "type": "heatmap",
        "name": "% of cells",
        "data": [(names[i], points.bins[j], value) for i, j, value in cells],
    }
    option = titled(
        "Confidence of candidate cells, % per epoch",
        xAxis=axis("epoch", "category", data=every),
        yAxis=axis("confidence", "category", data=points.bins, nameGap=64),
        visualMap=shades(0, _ceiling(points.shares), dimension=2),
        series=[heat],
    )
    option["grid"] |= {"right": 56, "left": 26}
    return option


def spread_option(points: EvolutionPoints, epoch: int, method: str | None = None) -> dict[str, Any]:
    """Draw the distribution at one epoch; the scale is that of all epochs.

    Of a method without epochs, which is named, these are its own numbers.
    """
    row = points.shares[points.epochs.index(epoch)]
    option = titled(
        f"Numbers of {method}" if method else f"Confidences at epoch {epoch}",
        xAxis=axis("% of cells", max=float(np.ceil(points.shares.max(initial=1)))),
        yAxis=axis("number" if method else "confidence", "category", data=points.bins, nameGap=64),
        series=[{"type": "bar", "name": "% of cells", "data": np.round(row, 2).tolist()}],
    )
    option["series"][0]["barCategoryGap"] = "12%"
    option["grid"] |= {"left": 26}
    return option


def cell_statistics(history: History) -> CellStatistics:
    """Return mean, variability and movement of every cell, a chunk of cells at a time."""
    n = history.shape[1] if len(history) else 0
    parts = [_statistics(history[:, at : at + CHUNK]) for at in range(0, n, CHUNK)]
    if not parts:
        empty = np.zeros(0, np.float32)
        return CellStatistics(empty, empty, empty, empty.astype(np.int32), empty)
    return CellStatistics(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


def unstable_points(history: History, statistics: CellStatistics, top: int = 40) -> UnstablePoints:
    """Return the cells whose confidence travelled farthest in all."""
    cells = np.argsort(-statistics.movement, kind="stable")[:top].astype(np.int64)
    trails = np.asarray(history[_shown_epochs(len(history))][:, cells], np.float32).T
    return UnstablePoints(
        cells,
        np.round(statistics.movement[cells], 3).tolist(),
        statistics.crossings[cells].tolist(),
        np.round(statistics.last[cells], 3).tolist(),
        np.round(trails, 3).tolist(),
    )


def difference_points(
    history: History, first: int, second: int, top: int = 200, least: float = 0.05
) -> DifferencePoints:
    """Return the cells that differ most between two epochs, counted from 1."""
    before = np.asarray(history[first - 1], np.float32)
    after = np.asarray(history[second - 1], np.float32)
    apart = np.abs(after - before)
    cells = np.argsort(-apart, kind="stable")[:top].astype(np.int64)
    cells = cells[apart[cells] >= least]
    return DifferencePoints(cells, before[cells], after[cells], int((apart >= least).sum()))


def cartography_places(statistics: CellStatistics, cells: Indices) -> Places:
    """Return cells by mean confidence and variability, as a map."""
    highest = _highest(statistics)
    x, y = 2 * statistics.mean[cells] - 1, 2 * statistics.variability[cells] / highest - 1
    return Places(x.astype(np.float32), y.astype(np.float32))


def cartography_axes(statistics: CellStatistics) -> dict[str, Axis]:
    """Return what stands beside that map."""
    highest = _highest(statistics)
    parts = (0, 0.25, 0.5, 0.75, 1)
    mean = Axis("mean confidence over epochs", tuple((2 * at - 1, f"{at:g}") for at in parts))
    spread = tuple((2 * at - 1, f"{at * highest:.3g}") for at in parts)
    return {"x": mean, "y": Axis("variability (standard deviation)", spread)}


def _highest(statistics: CellStatistics) -> float:
    """Return where the axis of variability ends: 0.1 at least."""
    return max(1.0, float(np.ceil(10 * float(statistics.variability.max(initial=0))))) / 10


def cartography_colouring(
    statistics: CellStatistics, cells: Indices, is_true: npt.NDArray[np.bool_] | None
) -> Colouring:
    """Colour cells by truth, or by where they ended."""
    if is_true is None:
        names, flags = ("ends ≥ 0.5", "ends < 0.5"), statistics.last[cells] >= 0.5
    else:
        names, flags = ("true candidate", "false candidate"), is_true[cells]
    return colour_names(np.where(flags, 0, 1), names, "Label cartography")


def most_variable(statistics: CellStatistics, cells: Indices, top: int = 200) -> Indices:
    """Return the most variable of some cells."""
    ordered = cells[np.argsort(-statistics.variability[cells], kind="stable")]
    return ordered[:top]


def _shown_epochs(n_epochs: int) -> list[int]:
    """Return which epochs to draw: all, or evenly chosen with the first and the last."""
    if n_epochs <= MAX_EPOCHS:
        return list(range(n_epochs))
    epochs = np.unique(np.linspace(0, n_epochs - 1, MAX_EPOCHS).astype(int))
    return [int(epoch) for epoch in epochs]


def _epoch_names(epochs: list[int], n_epochs: int) -> list[str]:
    rest = [] if n_epochs > MAX_EPOCHS else range(len(epochs) + 1, n_epochs + 1)
    return [str(epoch) for epoch in (*epochs, *rest)]


def _row(history: History, at: int, cells: Indices | None) -> Floats:
    row = history[at] if cells is None else history[at][cells]
    return np.asarray(row, np.float32)


def _shares(row: Floats, bins: int) -> Floats:
    at = np.clip((np.nan_to_num(row) * bins).astype(np.int64), 0, bins - 1)
    return np.asarray(100 * np.bincount(at, minlength=bins) / max(1, len(row)), np.float32)


def _ceiling(shares: Floats) -> float:
    """Return a colour scale's end that a single full bin does not decide."""
    return max(1.0, float(np.quantile(shares, 0.98))) if shares.size else 1.0


def _statistics(chunk: History) -> CellStatistics:
    values = np.asarray(chunk, np.float32)
    steps = np.abs(np.diff(values, axis=0))
    sides = np.diff((values >= 0.5).astype(np.int8), axis=0) != 0
    return CellStatistics(
        values.mean(axis=0),
        values.std(axis=0),
        steps.sum(axis=0),
        sides.sum(axis=0).astype(np.int32),
        values[-1],
    )
