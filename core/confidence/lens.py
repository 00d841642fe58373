"""What other settings would say with the network's predictions as they are: no training.

A run's confidences are its predictions, corrected by the two graphs and calibrated. With the
predictions fixed, those of any alpha, beta, eta, gamma, T, k and rho are one propagation: exactly
what the last step of a run with these settings would make of the same predictions.
"""

from collections.abc import Callable
from functools import cached_property, lru_cache
from typing import Any, TypeVar
from weakref import WeakMethod

import numpy as np
import numpy.typing as npt

from core.confidence.candidates import Candidates
from core.confidence.level import Level
from core.confidence.noise_model import Noise
from core.confidence.sources import SourceModel, source_model
from core.data.votes import Votes
from core.engine.config import PROPAGATION, PlainConfig
from core.engine.graphs import InstanceGraph, LabelGraph, Neighbors
from core.engine.propagation import Propagator
from core.engine.row_propagation import RowPropagation

Matrix = npt.NDArray[np.float32]
T = TypeVar("T")

SETTINGS = (*PROPAGATION, "k", "rho")
"""What the lens can change."""


def confidence_model(
    Y: Matrix | Candidates,
    Y_hat: Matrix,
    votes: Votes | None,
    config: PlainConfig,
    level: Level | None = None,
) -> Noise | SourceModel:
    """Return how these predictions become confidences: by votes where there are, else by level."""
    sources = source_model(votes, held_out=config.members > 1)
    return Noise.fit(Y, Y_hat, level) if sources is None else sources.refit(Y_hat)


def confidences(
    propagator: Propagator | None, Y: Matrix, Y_hat: Matrix, noise: Noise | SourceModel
) -> Matrix:
    """Return how likely each candidate is true, n x L; 0 elsewhere.

    `propagator` is None where no propagation follows the network.
    """
    if propagator is None:
        return noise.confidences(Y, None, Y_hat).astype(np.float32)
    Z = propagator.propagate(Y, Y_hat, rescale=False)
    return noise.confidences(Y, Z, Y_hat, propagator.eta).astype(np.float32)


class Lens:
    """The confidences of one run's predictions under any settings.

    Parameters
    ----------
    Y, Y_hat : (n, L) candidates and predictions
    graph : the run's instance graph, for the run's own k and rho
    neighbors : what other k and rho are made from; none if the graph was given by the user
    votes : who said what, where several sources offered labels
    level : what the run learned about it
    own : what `look` says of the run's own settings, where that is known
    """

    def __init__(
        self,
        config: PlainConfig,
        Y: Matrix,
        Y_hat: Matrix,
        graph: InstanceGraph,
        label_graph: LabelGraph,
        neighbors: Neighbors | None = None,
        votes: Votes | None = None,
        level: Level | None = None,
        own: Matrix | None = None,
    ) -> None:
        self.config, self.neighbors, self._own = config, neighbors, own
        self._votes, self._level = votes, level
        self._Y, self._Y_hat = np.asarray(Y, np.float32), np.asarray(Y_hat, np.float32)
        self._graph, self._label_graph = graph, label_graph
        self._offered = np.nonzero(self._Y)
        self._made = _remembered(self._make_graph, 24)
        self._looked = _remembered(self._look, 32)
        self._rows = _remembered(self._make_row, 32)

    @property
    def settings(self) -> tuple[str, ...]:
        """What can be changed: nothing where no propagation follows the network."""
        if self.config.disambiguation != "alternating":
            return ()
        return SETTINGS if self.neighbors is not None else PROPAGATION

    @property
    def offered(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Rows and labels of the candidate cells, in the order `look` has them."""
        rows, labels = self._offered
        return rows, labels

    def look(self, config: PlainConfig) -> Matrix:
        """Return the confidences of all candidate cells under these settings."""
        if self._own is not None and config == self.config:
            return self._own
        return self._looked(config)

    def look_at(self, row: int, config: PlainConfig) -> Matrix:
        """Return those of one instance's labels, n_labels long; 0 where not a candidate."""
        Y, Y_hat = self._Y[row : row + 1], self._Y_hat[row : row + 1]
        Z, eta = None, config.eta
        if self.settings:
            Z = self._rows(row, config.k, config.rho).row(self._propagator(config))[None]
        if isinstance(self._noise, SourceModel):
            found = self._noise.confidences(Y, Z, Y_hat, eta, rows=[row])
        else:
            found = self._noise.confidences(Y, Z, Y_hat, eta)
        return np.asarray(found[0], np.float32)

    @cached_property
    def _noise(self) -> Noise | SourceModel:
        Y = self._candidates if self._votes is None else self._Y
        return confidence_model(Y, self._Y_hat, self._votes, self.config, self._level)

    def _look(self, config: PlainConfig) -> Matrix:
        propagator = self._propagator(config) if self.settings else None
        if isinstance(self._noise, SourceModel):
            return confidences(propagator, self._Y, self._Y_hat, self._noise)[self._offered]
        Z = None
        if propagator is not None:
            Z = propagator.propagate(self._Y, self._Y_hat, rescale=False)
        found = self._noise.of_cells(self._candidates, Z, self._Y_hat, config.eta)
        return np.asarray(found, np.float32)

    @cached_property
    def _candidates(self) -> Candidates:
        return Candidates.of(self._Y)

    def _propagator(self, config: PlainConfig) -> Propagator:
        graph = self._made(config.k, config.rho)
        return Propagator(graph, self._label_graph, **config.propagation)

    def _make_row(self, row: int, k: int, rho: float) -> RowPropagation:
        return RowPropagation(self._made(k, rho), self._label_graph, row, self._Y, self._Y_hat)

    def _make_graph(self, k: int, rho: float) -> InstanceGraph:
        own = (k, rho) == (self.config.k, self.config.rho)
        if own or self.neighbors is None:
            return self._graph
        return self.neighbors.graph(k, rho)


def _remembered(method: Callable[..., T], size: int) -> Callable[..., T]:
    """Return the method with its last results kept, without keeping its owner.

    A cache that refers to its owner makes a circle: what an unused lens holds, graphs and
    confidences, would wait for the garbage collector.
    """
    held = WeakMethod(method)

    @lru_cache(maxsize=size)
    def call(*arguments: Any) -> T:
        found = held()
        assert found is not None  # who calls has the owner
        return found(*arguments)

    return call
