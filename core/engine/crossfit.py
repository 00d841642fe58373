"""Predictions of the training instances by models that never saw their labels.

Three kinds of model are each right on other data: an ensemble of networks (`core.engine.ensemble`),
a kernel regression (`core.engine.kernel`) and the votes of an instance's neighbours. They are added
with weights, none negative, that bring the sum nearest to the targets; since every prediction was
made without the instance's own target, no truth is needed to weigh them.

All of it is on the device, and stays there.
"""

from collections.abc import Mapping

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from core.cluster.executors import Executor
from core.data.dataset import Features
from core.engine.config import PlainConfig
from core.engine.ensemble import Ensemble
from core.engine.graphs import InstanceGraph, sparse_tensor
from core.engine.kernel import KernelRidge, blocks
from core.engine.members import MembersByTasks
from core.engine.network import LOSSES, Between
from core.engine.scaling import Rows


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
        device = targets.device
        self._affinity = sparse_tensor(graph.affinity, device)
        degree = np.asarray(graph.affinity.sum(axis=1), np.float32).reshape(-1, 1)
        self._votes_and_one = torch.as_tensor(degree + 1, device=device)
        self._kernel = None
        if config.landmarks:
            self._kernel = KernelRidge(X, config.landmarks, config.seed, device)
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
        self._level = targets.mean(dim=0)
        self._votes = None  # its place is needed for the next
        # One more vote for the label's rate, so that few or far neighbours say little.
        votes = (self._affinity @ targets.to(self._affinity.device)).to(self.device)
        self._votes = votes.add_(self._level).div_(self._votes_and_one).sub_(self._level)
        if self._kernel is not None:
            self._kernel.fit(targets)
        self._weights = targets.new_zeros(0)

    def train_epoch(self, features: Rows, between: Between = None) -> None:
        """Let the networks make one pass."""
        self.networks.train_epoch(features, self._targets, between)

    def held_out(self, features: Rows, *, networks: bool = True) -> Tensor:
        """Return Y_hat of the training instances, n x L in [0, 1], each label with its rate."""
        own = self.networks.held_out(features) if networks else None
        self._weights = self._weighed(own)
        Y_hat = torch.empty_like(self._targets) if own is None else own  # in its place
        for at in blocks(len(Y_hat)):
            total = self._level.repeat(at.stop - at.start, 1)
            for w, part in zip(self._weights, self._parts(at, own), strict=True):
                total.addcmul_(part, w)
            Y_hat[at] = total
        return _at_level(Y_hat, self._level)

    def predict(self, X: Features, features: Rows) -> Tensor:
        """Return predictions of other instances; the neighbours' weight goes to the others."""
        says = [self.networks.predict(features) - self._level]
        if self._kernel is not None:
            says.insert(0, torch.as_tensor(self._kernel.predict(X)).to(self.device) - self._level)
        known = self._weights.cpu().numpy()
        weights = np.append(known, np.zeros(len(says) + 1 - len(known)))
        votes, own = weights[0], weights[1:]
        own = own * (1 + votes / own.sum()) if own.sum() > 0 else np.ones_like(own) / len(own)
        Y_hat = self._level.repeat(len(says[0]), 1)
        for w, part in zip(own, says, strict=True):
            Y_hat.add_(part, alpha=float(w))
        return Y_hat.clamp_(0, 1)

    def loss(self, Y_hat: Tensor) -> Tensor:
        """Return the loss of these predictions, averaged over instances and labels."""
        parts = [
            self._loss.value(Y_hat[at], self._targets[at]) * (at.stop - at.start)
            for at in blocks(len(Y_hat))
        ]
        return torch.stack(parts).sum() / len(Y_hat)

    def state(self) -> dict[str, Tensor]:
        """Return a copy of everything that training changes."""
        own = {"targets": self._targets.clone(), "weights": self._weights.clone()}
        return {**self.networks.state(), **own}

    def restore(self, state: Mapping[str, Tensor]) -> None:
        """Go back to an earlier state."""
        self.set_targets(state["targets"].to(self.device))
        self.networks.restore(state)
        self._weights = state["weights"].to(self.device, torch.float32)

    def _parts(self, at: slice, own: Tensor | None) -> list[Tensor]:
        """Return what each model says of some rows beyond the labels' rates."""
        assert self._votes is not None
        parts = [self._votes[at]]
        if self._kernel is not None:
            parts.append(self._kernel.left_out(at))
        return parts if own is None else [*parts, own[at] - self._level]

    def _weighed(self, own: Tensor | None) -> Tensor:
        """Return the weights, none negative, that bring the sum nearest to the targets."""
        sums: Tensor | None = None
        for at in blocks(len(self._targets)):
            aim = self._targets[at] - self._level
            both = torch.stack([*self._parts(at, own), aim]).flatten(1)
            sums = both[:-1] @ both.T if sums is None else sums.add_(both[:-1] @ both.T)
        assert sums is not None
        return nonnegative_weights(sums[:, :-1], sums[:, -1])


def nonnegative_weights(products: Tensor, aims: Tensor) -> Tensor:
    """Return the w >= 0 of the least w'Pw - 2a'w, P being the products of few models, a the aims.

    It is the best of the solutions with some of the models alone; which one that is, the host need
    not know.
    """
    there = products.device
    if there.type == "mps":  # has no double precision, and its memory is the host's
        products, aims = products.cpu(), aims.cpu()
    P, a = products.double(), aims.double()
    models, subsets = (torch.arange(n, device=P.device) for n in (len(a), 2 ** len(a)))
    kept = (subsets.unsqueeze(1).bitwise_right_shift(models) % 2).double()
    some = P * kept.unsqueeze(2) * kept.unsqueeze(1) + torch.diag_embed(1 - kept)
    w: Tensor = torch.linalg.solve_ex(some, a * kept)[0]
    value = ((w @ P - 2 * a) * w).sum(dim=1)
    holds = (w >= 0).all(dim=1) & (value.abs() < torch.inf)  # the latter not of equal models
    best = torch.where(holds, value, torch.inf).argmin(dim=0, keepdim=True)
    return w.index_select(0, best).squeeze(0).float().to(there)


def _at_level(Y_hat: Tensor, level: Tensor) -> Tensor:
    """Cut predictions to [0, 1] and keep each label's mean; in place."""
    n, shift = len(Y_hat), torch.zeros_like(level)
    for _ in range(7):
        sums = [Y_hat[at].add_(shift).clamp_(0, 1).sum(dim=0) for at in blocks(n)]
        shift = level - torch.stack(sums).sum(dim=0) / n
    return Y_hat
