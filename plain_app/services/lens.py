"""What the lens asks: a run's predictions under other settings. Never loads torch or faiss.

The neighbours that other k and rho need are searched once per run, in a child process; until they
are there, k and rho stand still.
"""

from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import streamlit as st

from core.confidence.lens import Lens
from core.engine.config import PlainConfig
from core.engine.graphs import Neighbors
from core.engine.metrics import roc_auc
from core.errors import ConfigError
from core.review.load import make_lens
from core.runs.results import load_neighbors
from core.store import RunRow
from core.tuning.objectives import Verdicts, read_verdicts
from plain_app.charts.lens import EffectPoints, SweepPoints, effect_points, sweep_points
from plain_app.services import explore
from plain_app.services.children import MadeByChild
from plain_app.services.workspace import workspace

Places = dict[str, int]
Rows = npt.NDArray[np.int64]
THRESHOLD = "threshold"
CUT = 0.5
MAX_SWEEP = 400_000
"""Cells (n x L) up to which agreement is shown along a setting as it moves."""

SWEPT = {"k": (1, 2, 5, 10, 20, 30, 50), "rho": (0.5, 1, 2, 3, 4, 6, 10)}
"""Where k and rho are looked at along them: each needs a graph of its own."""

_LABELS = {
    "alpha": "α · instances",
    "beta": "β · labels",
    "eta": "η · candidates",
    "gamma": "γ · step size",
    "n_steps": "T · steps",
    "k": "k · neighbours",
    "rho": "ρ · exponent",
    THRESHOLD: "threshold",
}
_LOG = {"alpha": (1e-3, 10.0), "beta": (1e-3, 10.0), "eta": (1e-2, 10.0), "gamma": (1e-4, 0.5)}
_STEPS = (0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
_RHOS = (0.5, 1, 1.5, 2, 2.5, 3, 3.5, 4, 5, 6, 8, 10)
_neighbors = MadeByChild("neighbors.npz", "keep-neighbors", "neighbors.log")


class Slider(NamedTuple):
    """One slider: the texts of its stops, where it stands, and where it stood in the run."""

    name: str
    label: str
    help: str
    stops: tuple[str, ...]
    at: int
    own: int
    is_disabled: bool = False


class Agreement(NamedTuple):
    """How well confidences agree with decisions."""

    n: int
    share: float  # on the right side of the threshold
    auc: float  # kept above rejected; NaN where there is only one kind


@dataclass(frozen=True, eq=False)
class LensData:
    """All of an ended run that the lens needs. Shared by all sessions: read only."""

    run: RunRow
    results: explore.Explored
    lens: Lens
    stops: dict[str, list[Any]]  # the values each slider can take; the run's own is among them

    @property
    def offered(self) -> tuple[Rows, Rows]:
        return self.lens.offered

    @cached_property
    def own(self) -> Places:
        """Where the sliders stand in the run."""
        config = self.lens.config
        return {
            name: values.index(CUT if name == THRESHOLD else getattr(config, name))
            for name, values in self.stops.items()
        }

    @cached_property
    def cell_numbers(self) -> Rows:
        """Row times labels plus label of every candidate cell, ascending."""
        rows, labels = self.offered
        return rows * self.results.dataset.n_labels + labels

    @property
    def is_small(self) -> bool:
        """Whether agreement along a setting is cheap enough to show while it moves."""
        return self.results.dataset.candidates.size <= MAX_SWEEP

    def values(self, places: Places) -> dict[str, Any]:
        """Return the settings and the threshold the sliders stand at."""
        found = {}
        for name, stops in self.stops.items():
            at = places.get(name, self.own[name])
            found[name] = stops[min(max(at, 0), len(stops) - 1)]
        return found

    def config(self, places: Places) -> PlainConfig:
        """Return the settings the sliders stand at, all others as in the run."""
        values = self.values(places)
        del values[THRESHOLD]
        return PlainConfig(**{**self.lens.config.model_dump(), **values})

    def along(self, places: Places, name: str) -> list[tuple[int, PlainConfig]]:
        """Return stops of one slider, with the settings there; not those that do not go together.

        Where it stands is always among them.
        """
        values, here = self.stops[name], places.get(name, self.own[name])
        wanted = {at for at, value in enumerate(values) if value in SWEPT.get(name, values)}
        found = []
        for at in sorted({*wanted, here}):
            with suppress(ConfigError):
                found.append((at, self.config(places | {name: at})))
        return found


class Seen(NamedTuple):
    """What the lens shows of one setting."""

    config: PlainConfig
    cut: float
    before: npt.NDArray[np.float32]  # of all candidate cells
    after: npt.NDArray[np.float32]
    effect: EffectPoints
    agreed_before: Agreement | None
    agreed: Agreement | None


def neighbors_status(run_id: str) -> Literal["there", "working", "failed", "given"]:
    """Have more neighbours searched unless that was done; tell how it stands."""
    is_given = explore.explored(run_id).instance_graph.search == "given"
    return "given" if is_given and not _has_neighbors(run_id) else _neighbors.status(run_id)


def lens_data(run_id: str) -> LensData:
    """Return what the lens needs of an ended run."""
    return _lens_data(str(workspace().folder), run_id, _has_neighbors(run_id))


def _has_neighbors(run_id: str) -> bool:
    return (workspace().runs.folder(run_id) / "neighbors.npz").exists()


@st.cache_resource(max_entries=3, show_spinner=False)
def _lens_data(folder: str, run_id: str, has_neighbors: bool) -> LensData:
    results = explore.explored(run_id)
    lens = make_lens(results, load_neighbors(workspace(), run_id) if has_neighbors else None)
    return LensData(results.run, results, lens, _stops(lens.config, lens.neighbors))


def panel(at: LensData, places: Places) -> list[Slider]:
    """Return the sliders, where `places` says, else as in the run."""
    sliders = []
    for name, values in at.stops.items():
        own = at.own[name]
        place = min(max(places.get(name, own), 0), len(values) - 1)
        can = name == THRESHOLD or name in at.lens.settings
        help_ = _CUT_HELP if name == THRESHOLD else PlainConfig.model_fields[name].description
        texts = tuple(_text(one) for one in values)
        sliders.append(Slider(name, _LABELS[name], help_ or "", texts, place, own, not can))
    return sliders


_CUT_HELP = "Confidences from here on keep a candidate."


def see(at: LensData, places: Places) -> Seen:
    """Look at a run through other settings.

    Raises
    ------
    ConfigError
        The settings do not go together.
    """
    config, cut = at.config(places), at.values(places)[THRESHOLD]
    before, after = at.lens.look(at.lens.config), at.lens.look(config)
    effect = effect_points(before, after, cut, at.offered[1], at.results.dataset.label_names)
    verdicts = _verdicts(at)
    agreed: list[Agreement | None] = [None, None]
    if len(verdicts.rows):
        agreed = [_agreement(at, verdicts, c, side) for c, side in ((before, CUT), (after, cut))]
    return Seen(config, cut, before, after, effect, agreed[0], agreed[1])


def sweep(at: LensData, places: Places, name: str, row: int) -> SweepPoints:
    """Return one instance's candidates at every stop of a setting, all else as it is."""
    key = (str(workspace().folder), at.run.id, len(at.stops["k"]))  # more with neighbours
    return _sweep(at, key, tuple(sorted(places.items())), name, row)


@st.cache_resource(max_entries=32, show_spinner=False)
def _sweep(
    _at: LensData,
    key: tuple[str, str, int],
    placed: tuple[tuple[str, int], ...],
    name: str,
    row: int,
) -> SweepPoints:
    at, places = _at, dict(placed)
    candidates = np.flatnonzero(at.results.dataset.candidates[row])
    slider = next(one for one in panel(at, places) if one.name == name)
    stops, lines, here = list[str](), list[Any](), 0
    for place, config in at.along(places, name):
        here = len(stops) if place == slider.at else here
        stops.append(slider.stops[place])
        lines.append(at.lens.look_at(row, config)[candidates])
    names = [at.results.dataset.label_names[j] for j in candidates.tolist()]
    values = np.array(lines).reshape(len(lines), len(candidates))
    return sweep_points(slider.label, stops, here, values, names)


def agreement_along(at: LensData, places: Places, name: str) -> SweepPoints | None:
    """Return how well each stop of a setting agrees with the decisions; none without any."""
    verdicts = _verdicts(at)
    if not len(verdicts.rows):
        return None
    cut = at.values(places)[THRESHOLD]
    slider = next(one for one in panel(at, places) if one.name == name)
    stops, here = list[str](), 0
    lines: dict[str, list[float]] = {"on the right side": [], "kept above rejected": []}
    for place, config in at.along(places, name):
        found = _agreement(at, verdicts, at.lens.look(config), cut)
        here = len(stops) if place == slider.at else here
        stops.append(slider.stops[place])
        lines["on the right side"].append(round(found.share, 4))
        lines["kept above rejected"].append(round(found.auc, 4))
    known = {key: line for key, line in lines.items() if not np.isnan(line).any()}
    return SweepPoints(slider.label, stops, here, known)


def _stops(config: PlainConfig, found: Neighbors | None) -> dict[str, list[Any]]:
    stops: dict[str, list[Any]] = {}
    for name, (low, high) in _LOG.items():
        zero = [] if name == "gamma" else [0.0]
        around = [float(f"{one:.2g}") for one in np.geomspace(low, high, 25)]
        stops[name] = _with(zero + around, getattr(config, name))
    steps = [] if config.n_steps is None else [config.n_steps]
    stops["n_steps"] = [*sorted({*_STEPS, *steps}), None]
    stops["k"] = _with(range(1, found.k + 1), config.k) if found else [config.k]
    stops["rho"] = _with(_RHOS, config.rho) if found else [config.rho]
    stops[THRESHOLD] = [round(one / 100, 2) for one in range(2, 100, 2)]
    return stops


def _with(values: Any, own: Any) -> list[Any]:
    return sorted({*values, own})


def _text(value: Any) -> str:
    return "converged" if value is None else f"{value:.4g}"


def _verdicts(at: LensData) -> Verdicts:
    count = workspace().decisions.count(at.run.fingerprint)
    return _read_verdicts(at, str(workspace().folder), at.run.id, count)


@st.cache_resource(max_entries=8, show_spinner=False)
def _read_verdicts(_at: LensData, folder: str, run_id: str, count: int) -> Verdicts:
    return read_verdicts(workspace(), _at.results.dataset)


def _agreement(at: LensData, verdicts: Verdicts, cells: Any, cut: float) -> Agreement:
    numbers = verdicts.rows * at.results.dataset.n_labels + verdicts.labels
    chosen = cells[np.searchsorted(at.cell_numbers, numbers)]
    share = float(((chosen >= cut) == verdicts.kept).mean())
    return Agreement(len(chosen), share, roc_auc(verdicts.kept, chosen))
