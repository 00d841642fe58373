"""Predictions of the training instances by models that never saw their labels.

Three kinds of model are each right on other data: an ensemble of networks (`core.engine.ensemble`),
a kernel regression (`core.engine.kernel`) and the votes of an instance's neighbours. They are added
with weights, none negative, that bring the sum nearest to the targets; since every prediction was
made without the instance's own target, no truth is needed to weigh them.
"""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import torch
from scipy.optimize import nnls
from torch import Tensor

from core.cluster.executors import Executor
from core.data.dataset import Features
from core.engine.config import PlainConfig
from core.engine.ensemble import Ensemble
from core.engine.graphs import InstanceGraph
from core.engine.kernel import KernelRidge
from core.engine.members import MembersByTasks
from core.engine.network import LOSSES, Between, Rows

Matrix = npt.NDArray[np.float32]


class CrossFit:
    """Networks, kernel regression and neighbours, fitted to the same targets.

    Parameters
    ----------
    X, features : the scaled features, as such and on the device
    graph : who votes for whom
    targets : (n, L) in [0, 1]
    executor : trains the networks as tasks; those of features that stay sparse train here
    """

    def __init__(
        self,
        X: Features,
        features: Rows,
        graph: InstanceGraph,
        targets: Tensor,
        config: PlainConfig,
        executor: Executor | None = None,
    ) -> None:
        self._affinity = graph.affinity
        self._degree = np.asarray(graph.affinity.sum(axis=1), np.float32).reshape(-1, 1)
        self._kernel = KernelRidge(X, config.landmarks, config.seed) if config.landmarks else None
        self._loss = LOSSES[config.loss]
        n, d = X.shape
        of_networks = (n, d, targets.mean(dim=0), config, targets.device)
        self.networks = Ensemble(*of_networks)
        if executor is not None and not sp.issparse(X):
            self.networks = MembersByTasks(*of_networks, executor=executor)
        self.set_targets(targets)

    @property
    def device(self) -> torch.device:
        return self.networks.theta.device

    def set_targets(self, targets: Tensor) -> None:
        """Take new targets; kernel and neighbours follow at once, networks from the next epoch."""
        self._targets = targets
        T = targets.cpu().numpy()
        self._level = T.mean(axis=0)
        self._centred = T - self._level
        # One more vote for the label's rate, so that few or far neighbours say little.
        votes = (self._affinity @ T + self._level) / (self._degree + 1) - self._level
        self._others: list[Matrix] = [np.asarray(votes, np.float32)]
        if self._kernel is not None:
            self._others.append(self._kernel.fit(T) - self._level)
        self._weights = np.zeros(0)

    def train_epoch(self, features: Rows, between: Between = None) -> None:
        """Let the networks make one pass."""
        self.networks.train_epoch(features, self._targets, between)

    def held_out(self, features: Rows, *, networks: bool = True) -> Tensor:
        """Return Y_hat of the training instances, n x L in [0, 1], each label with its rate."""
        parts = list(self._others)
        if networks:
            own = self.networks.held_out(features).cpu().numpy()
            own -= self._level
            parts.append(own)
        products = np.array([[np.vdot(a, b) for b in parts] for a in parts], np.float64)
        aims = np.array([np.vdot(a, self._centred) for a in parts], np.float64)
        self._weights = nnls(products, aims)[0]
        Y_hat = np.zeros_like(self._centred)
        for w, part in zip(self._weights, parts, strict=True):
            Y_hat += np.float32(w) * part
        Y_hat += self._level
        return torch.as_tensor(_at_level(Y_hat, self._level), device=self.device)

    def predict(self, X: Features, features: Rows) -> Tensor:
        """Return predictions of other instances; the neighbours' weight goes to the others."""
        says = [self.networks.predict(features).cpu().numpy() - self._level]
        if self._kernel is not None:
            says.insert(0, self._kernel.predict(X) - self._level)
        weights = np.append(self._weights, np.zeros(len(says) + 1 - len(self._weights)))
        votes, own = weights[0], weights[1:]
        own = own * (1 + votes / own.sum()) if own.sum() > 0 else np.ones_like(own) / len(own)
        Y_hat = self._level + sum(np.float32(w) * part for w, part in zip(own, says, strict=True))
        return torch.as_tensor(np.clip(Y_hat, 0, 1, dtype=np.float32), device=self.device)

    def loss(self, Y_hat: Tensor) -> Tensor:
        """Return the loss of these predictions, averaged over instances and labels."""
        return self._loss.value(Y_hat, self._targets)

    def state(self) -> dict[str, Tensor]:
        """Return a copy of everything that training changes."""
        weights = torch.as_tensor(self._weights.copy())
        return {**self.networks.state(), "targets": self._targets.clone(), "weights": weights}

    def restore(self, state: Mapping[str, Tensor]) -> None:
        """Go back to an earlier state."""
        self.set_targets(state["targets"].to(self.device))
        self.networks.restore(state)
        self._weights = state["weights"].numpy()


def _at_level(Y_hat: Matrix, level: Matrix) -> Matrix:
    """Cut predictions to [0, 1] and keep each label's mean; in place."""
    np.clip(Y_hat, 0, 1, out=Y_hat)
    for _ in range(6):
        Y_hat += level - Y_hat.mean(axis=0)
        np.clip(Y_hat, 0, 1, out=Y_hat)
    return Y_hat
