"""Maps of instances: layouts, what colours them, how they are packed, who is inside a lasso.

What the browser is sent is kept by run, layout and colouring, for all sessions. UMAP is computed in
a child process.
"""

from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
import streamlit as st

from core.data.votes import Votes
from core.errors import PlainError
from core.store import files
from plain_app.charts import instance_map as charts
from plain_app.charts.instance_map import Colouring, Places
from plain_app.services.children import MadeByChild
from plain_app.services.explore import Explored, Matrix, Rows, current_verdicts
from plain_app.services.workspace import workspace

_umap = MadeByChild("layout_umap.npy", "lay-out", "layout.log", one_at_a_time=True)

Kind = Literal[
    "confidence", "uncertainty", "doubtful", "decision", "candidates", "source", "votes", "column"
]
"""By what a map is coloured."""


class Colour(NamedTuple):
    """What the map is coloured by; `name` is the label, source or column where there is one."""

    kind: Kind
    name: str = ""


class Lasso(NamedTuple):
    """Instances inside a polygon of a layout."""

    layout: str
    corners: tuple[tuple[float, float], ...]


class PackedMap(NamedTuple):
    """A map as the browser takes it: what stays, and what a colouring changes."""

    places: bytes
    colours: bytes


def layouts(run_id: str) -> list[str]:
    """Return the layouts there are, the best first: "umap", "pca" or neither."""
    folder = workspace().runs.folder(run_id)
    return [name for name in ("umap", "pca") if (folder / f"layout_{name}.npy").exists()]


def layout_name(run_id: str) -> str:
    """Return what the browser knows the best layout by."""
    return f"{run_id} {next(iter(layouts(run_id)), '')}"


def start_layout(run_id: str) -> Literal["there", "working", "failed"]:
    """Have UMAP computed in a child process unless that was done; tell how it stands."""
    return _umap.status(run_id)


def packed_map(results: Explored, layout: str, colour: Colour, epoch: int | None) -> PackedMap:
    """Return the map of a run, ready for the browser."""
    run, decided = results.run, ""
    if colour.kind == "decision":
        decided = str(workspace().decisions.count(run.fingerprint))
    revision = "|".join((run.id, results.version, layout, *colour, str(epoch or ""), decided))
    folder = str(workspace().folder)
    colours = _packed_colours(results, folder, layout, colour, epoch, revision)
    return PackedMap(_packed_places(folder, run.id, layout), colours)


def packed_as(run_id: str, colours: Colouring, revision: str) -> PackedMap | None:
    """Return the best map of a run in colours of one's own; none where it has no layout."""
    layout = next(iter(layouts(run_id)), None)
    if layout is None:
        return None
    painted = charts.pack_colours(colours, f"{revision}|{layout}", f"{run_id} {layout}")
    return PackedMap(_packed_places(str(workspace().folder), run_id, layout), painted)


@st.cache_resource(max_entries=24, show_spinner=False)
def _packed_colours(
    _results: Explored, folder: str, layout: str, colour: Colour, epoch: int | None, revision: str
) -> bytes:
    verdicts = current_verdicts(_results) if colour.kind == "decision" else {}
    classes = colouring(_results, colour, epoch, verdicts)
    return charts.pack_colours(classes, revision, f"{_results.run.id} {layout}")


@st.cache_resource(max_entries=8, show_spinner=False)
def _packed_places(folder: str, run_id: str, layout: str) -> bytes:
    return charts.pack_places(placed(run_id, layout), f"{run_id} {layout}")


def placed(run_id: str, layout: str) -> Places:
    """Return where the instances stand, as the browser is told."""
    return _placed(str(workspace().folder), run_id, layout)


@st.cache_resource(max_entries=8, show_spinner=False)
def _placed(folder: str, run_id: str, layout: str) -> Places:
    array = files.read_array(workspace().runs.folder(run_id) / f"layout_{layout}.npy")
    return charts.place_points(array)


def colouring(
    results: Explored,
    colour: Colour,
    epoch: int | None = None,
    verdicts: dict[tuple[int, int], str] | None = None,
) -> Colouring:
    """Return the class of every instance under a colouring."""
    if colour.kind == "confidence":
        values = label_confidence(results, results.dataset.label_names.index(colour.name), epoch)
        title = f"Confidence in {colour.name}"
        return charts.colour_numbers(values, title, "confidence", (0, 1), "not offered")
    if colour.kind == "uncertainty":
        doubt = 1 - np.abs(2 * results.cell_values(epoch) - 1)
        values = largest_by_instance(results, doubt)
        return charts.colour_numbers(
            values, "Uncertainty of the most doubtful candidate", "amount", (0, 1), "no candidate"
        )
    if colour.kind == "doubtful":
        least = -largest_by_instance(results, -results.cell_values(epoch))
        codes = np.where(np.isnan(least), -1, least < 0.5).astype(int)
        names = ("all candidates likely", "a candidate is doubtful")
        return charts.colour_names(codes, names, "Doubt (confidence below 0.5)", "no candidate")
    if colour.kind == "candidates":
        counts = np.diff(results.starts).astype(np.float32)
        return charts.colour_numbers(counts, "Candidates per instance")
    if colour.kind == "decision":
        return _decision_colouring(results, verdicts or {})
    if colour.kind == "votes":
        divided = _votes(results).disagreement[results.cells]
        values = largest_by_instance(results, divided)
        title = "How divided the votes on a candidate are"
        return charts.colour_numbers(values, title, "amount", (0, 1), "no candidate")
    if colour.kind == "source":
        return _source_colouring(results, colour.name)
    column = results.display[colour.name]
    if pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column):
        return charts.colour_numbers(column.to_numpy(np.float64, na_value=np.nan), colour.name)
    return charts.colour_texts(column.tolist(), colour.name)


def label_confidence(results: Explored, label: int, epoch: int | None = None) -> Matrix:
    """Return one label's confidence by instance, NaN where it is not offered."""
    rows, labels = results.cells
    own = labels == label
    values = np.full(results.dataset.n_instances, np.nan, np.float32)
    values[rows[own]] = results.cell_values(epoch)[own]
    return values


def largest_by_instance(results: Explored, values: npt.NDArray[np.floating[Any]]) -> Matrix:
    """Return the largest value among each instance's candidate cells, NaN without any."""
    starts = results.starts
    has_any = np.diff(starts) > 0
    largest = np.full(results.dataset.n_instances, np.nan, np.float32)
    if len(values):
        largest[has_any] = np.maximum.reduceat(values, starts[:-1][has_any])
    return largest


def inside(run_id: str, lasso: Lasso) -> Rows:
    """Return the instances inside a lasso."""
    return _inside(str(workspace().folder), run_id, lasso)


@st.cache_resource(max_entries=32, show_spinner=False)
def _inside(folder: str, run_id: str, lasso: Lasso) -> Rows:
    places = placed(run_id, lasso.layout)
    return np.flatnonzero(charts.inside_polygon(*places, lasso.corners))


def _votes(results: Explored) -> Votes:
    if results.dataset.votes is None:
        raise PlainError("This data has no votes.", hint="Colour the map by something else.")
    return results.dataset.votes


def _source_colouring(results: Explored, name: str) -> Colouring:
    """Colour by what one source said: nothing, with the others, or alone."""
    votes = _votes(results)
    source = votes.sources.index(name)
    codes = np.full(votes.shape[0], -1)
    asked = (
        votes.answered[votes.answered[:, 1] == source, 0],
        *(table[table[:, 2] == source, 0] for table in (votes.yes, votes.no)),
    )
    codes[np.concatenate(asked)] = 0
    rows, labels, _ = votes.yes[votes.yes[:, 2] == source].T
    alone = (votes.n_yes[rows, labels] == 1) & (votes.n_asked[rows, labels] > 1)
    codes[rows] = 1
    codes[rows[alone]] = 2
    kinds = ("offered nothing", "offered what others did", "offered something alone")
    return charts.colour_names(codes, kinds, f"Votes of {name}", "was not asked")


def _decision_colouring(results: Explored, verdicts: dict[tuple[int, int], str]) -> Colouring:
    """Colour by how far an instance's candidates are decided."""
    candidates = results.dataset.candidates
    decided = np.zeros(len(candidates), int)
    for (row, label), verdict in verdicts.items():
        decided[row] += int(candidates[row, label] and verdict != "unsure")
    offered = np.diff(results.starts)
    codes = np.where(decided == 0, 0, np.where(decided < offered, 1, 2))
    names = ("nothing decided", "partly decided", "all candidates decided")
    return charts.colour_names(codes, names, "Decisions")
