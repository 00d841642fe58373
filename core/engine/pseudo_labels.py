"""The propagation half of an epoch: from predictions to pseudo-labels and confidences.

Candidates stay on the device. What is calibrated are candidate cells, a few of all n x L.
"""

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from core.cluster.executors import Executor
from core.confidence.candidates import Candidates, Seen
from core.confidence.level import Level
from core.confidence.noise_model import Noise
from core.confidence.reliability import Reliability, reliability
from core.confidence.sources import source_model
from core.data.dataset import CandidateDataset
from core.engine.balance import balance
from core.engine.columns import ColumnPropagation
from core.engine.config import PlainConfig
from core.engine.graphs import InstanceGraph, LabelGraph
from core.engine.propagation import Propagator

Matrix = npt.NDArray[np.float32]

_QUICK_ROUNDS = 8
"""Rounds in which an epoch looks at the sources again; the end takes as many as it needs. Likewise
an epoch and new targets take one reading of e and none with a floor, the last epoch and the end all
of them."""


class PseudoLabels:
    """The propagation half of an epoch, with the candidates on the device.

    Confidences are values of candidate cells, in row-major order.
    """

    def __init__(
        self,
        config: PlainConfig,
        instance_graph: InstanceGraph,
        label_graph: LabelGraph,
        dataset: CandidateDataset,
        device: torch.device,
        executor: Executor | None = None,
    ) -> None:
        self._config, self._out = config, device
        # MPS has no sparse CSR product; its memory is the host's, so the CPU propagates there.
        self._device = torch.device("cpu") if device.type == "mps" else device
        weights = {
            name: getattr(config, name) for name in ("alpha", "beta", "eta", "gamma", "n_steps")
        }
        propagator = Propagator(instance_graph, label_graph, **weights)
        self._columns: ColumnPropagation | None = None
        if executor is not None and config.disambiguation != "none":
            given = (propagator, label_graph, dataset.candidates)
            self._columns = ColumnPropagation(*given, executor)
        self._propagator = propagator.to(self._device)
        self._Y = torch.tensor(dataset.candidates, dtype=torch.float32, device=self._device)
        self._candidates = Candidates.of(dataset.candidates)
        rows, labels = self._candidates.cells
        self._at = torch.as_tensor(rows * dataset.n_labels + labels, device=self._device)
        self.level, self.level_is_due = Level(), False  # until predictions are worth it
        self._fitted: tuple[Tensor, Level, bool, Noise] | None = None
        self._sources = source_model(dataset.votes, held_out=config.members > 1)

    @property
    def first(self) -> Tensor:
        """What several networks fit first: what the votes say, or else the candidates."""
        if self._sources is None:
            return self._Y.to(self._out)
        found = self._sources.confidences(self._candidates.offered, None, None)
        return torch.as_tensor(found, dtype=torch.float32, device=self._out)

    def start(self) -> tuple[Tensor, Tensor, Tensor]:
        """Return the first prediction, which is the candidates, pseudo-labels and confidences."""
        Y = self._Y
        if self._config.disambiguation == "none":
            return Y.to(self._out), Y.to(self._out), self._of_candidates(Y)
        raw = self._propagate(Y)
        return Y.to(self._out), self._balanced(raw).to(self._out), self._beyond(raw)

    def step(
        self, Y_hat: Tensor, Z: Tensor, *, is_last: bool = False
    ) -> tuple[Tensor, Tensor, tuple[Tensor, ...]]:
        """Return the next pseudo-labels, the confidences, and the objective's terms.

        Where no propagation follows the network, its own prediction is the confidence. One network
        is the paper's: its confidences are calibrated at the end, which costs more than an epoch.
        """
        Y_hat, raw = Y_hat.to(self._device), Z.to(self._device)
        self._fitted = None  # with the last predictions
        propagates = self._config.disambiguation == "alternating"
        if propagates:
            raw = self._propagate(Y_hat)
        if self._config.members > 1:
            confidence = self._calibrated(Y_hat, raw, None if is_last else _QUICK_ROUNDS)
        else:
            confidence = self._beyond(raw) if propagates else self._of_candidates(Y_hat)
        objective = self._propagator.objective(raw, self._Y, Y_hat)
        Z = self._balanced(raw) if propagates else Z
        return Z.to(self._out), confidence, objective

    def calibrated(self, Y_hat: Tensor, *, targets: bool = False) -> Tensor:
        """Return the confidences of these predictions as probabilities."""
        Y_hat = Y_hat.to(self._device)
        return self._calibrated(Y_hat, self._propagate(Y_hat), targets=targets)

    def whole(self, confidences: Tensor) -> Tensor:
        """Return confidences as an n x L matrix, 0 where there is no candidate."""
        out = torch.zeros_like(self._Y)
        out.view(-1)[self._at] = confidences
        return out.to(self._out)

    def candidates_of(self, values: Tensor) -> Tensor:
        """Return the candidates' values of an n x L matrix."""
        return self._of_candidates(values.to(self._device))

    def _calibrated(
        self, Y_hat: Tensor, raw: Tensor, rounds: int | None = None, *, targets: bool = False
    ) -> Tensor:
        propagates, eta, Y = (
            self._config.disambiguation == "alternating",
            self._config.eta,
            self._candidates,
        )
        if self._sources is not None:
            by_sources = self._by_sources(Y_hat, raw if propagates else None, rounds)
            return torch.as_tensor(by_sources, dtype=torch.float32, device=self._device)
        seen, Z = self._seen(Y_hat, raw if propagates else None)
        if self.level_is_due:
            some = Y.offered[Y.sample]
            self.level = Level.fit(some, seen.rows, self._config.expected_false)
            self.level_is_due = False
        whole = rounds is None and not targets
        level = self.level if whole else self.level.one_reading
        of = (level, whole)
        if self._fitted is None or self._fitted[0] is not Y_hat or self._fitted[1:3] != of:
            # Kept, for new targets and the end of a run ask again about an epoch's predictions.
            self._fitted = Y_hat, level, whole, Noise.fit(Y, seen, level, floors=whole)
        found = self._fitted[3].of_cells(Y, Z, seen, eta, targets=targets)
        return torch.as_tensor(found, dtype=torch.float32).to(self._device)

    def _by_sources(self, Y_hat: Tensor, raw: Tensor | None, rounds: int | None) -> Matrix:
        """Return confidences where several sources voted."""
        sources, predictions = self._sources, _shown(Y_hat)
        assert sources is not None
        if rounds is not None:
            sources = replace(sources, rounds=rounds)
        Z, Y = None if raw is None else _shown(raw), self._candidates
        dense = sources.refit(predictions).confidences(Y.offered, Z, predictions, self._config.eta)
        return np.asarray(dense[Y.cells], np.float32)

    def _seen(self, Y_hat: Tensor, raw: Tensor | None) -> tuple[Seen, Seen | None]:
        """Bring what calibration looks at to the host, in one copy."""
        sample = Y_hat[self._candidates.sample]
        parts = [self._of_candidates(Y_hat), Y_hat.mean(dim=0), sample.reshape(-1)]
        if raw is not None:
            parts.append(self._of_candidates(raw))
        sizes = [len(part) for part in parts]
        found = torch.split(torch.cat(parts).cpu(), sizes)
        cells, mean, rows, *of_raw = (part.numpy() for part in found)
        seen = Seen(cells, mean.astype(np.float64), rows.reshape(sample.shape))
        return seen, seen._replace(cells=of_raw[0]) if of_raw else None

    def reliability(self, Y_hat: Tensor) -> Reliability | None:
        return reliability(self._sources, self._candidates.offered, to_host(Y_hat))

    def movement(self, was: Tensor, now: Tensor) -> tuple[Tensor, Tensor]:
        """Return how many candidate cells changed sides, and their mean entropy in nats."""
        changed = ((was > 0.5) != (now > 0.5)).sum().float()
        p = now.clamp(1e-7, 1 - 1e-7)
        entropy = -(p * p.log() + (1 - p) * (1 - p).log())
        return changed, entropy.sum() / max(len(p), 1)

    def _of_candidates(self, values: Tensor) -> Tensor:
        return values.reshape(-1)[self._at]

    def _beyond(self, raw: Tensor) -> Tensor:
        """Return what Z says of each candidate beyond its being one (`Propagator.confidence`)."""
        eta = self._config.eta
        return self._of_candidates(raw).mul_(1 + eta).sub_(eta).clamp_(0, 1)

    def _balanced(self, raw: Tensor) -> Tensor:
        Z: Tensor = balance(raw, self._Y, self._config.balance)
        return Z

    def _propagate(self, Y_hat: Tensor) -> Tensor:
        if self._columns is not None:
            return torch.as_tensor(self._columns.propagate(_shown(Y_hat)), device=self._device)
        Z: Tensor = self._propagator.propagate(self._Y, Y_hat, rescale=False)
        return Z


def to_host(values: Tensor) -> Matrix:
    """Return a copy to keep."""
    return _shown(values).astype(np.float32)


def _shown(values: Tensor) -> Matrix:
    """Return values to look at, not to keep: on the CPU they are not copied."""
    shown: Matrix = values.detach().cpu().numpy()
    return shown
