"""The propagation half of an epoch: from predictions to pseudo-labels and confidences.

Candidates stay on the device. What is calibrated are candidate cells, a few of all n x L: they come
to the host with the epoch's figures, in one copy, and their confidences stay there.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from core.cluster.executors import Executor
from core.confidence.candidates import Candidates, Seen
from core.confidence.level import Level
from core.confidence.noise_model import Evidence, Noise
from core.confidence.reliability import Reliability, reliability
from core.confidence.sources import source_model
from core.data.dataset import CandidateDataset
from core.engine.balance import balance
from core.engine.columns import ColumnPropagation, Columns
from core.engine.config import PlainConfig
from core.engine.graphs import InstanceGraph, LabelGraph
from core.engine.propagation import Propagator

Matrix = npt.NDArray[np.float32]

_QUICK_ROUNDS = 8
"""Rounds in which an epoch looks at the sources again; the end takes as many as it needs. Likewise
an epoch and new targets take one reading of e and none with a floor, the last epoch and the end all
of them."""


class Step(NamedTuple):
    """What an epoch's predictions become."""

    Z: Tensor  # (n, L)
    confidences: Tensor  # of candidate cells
    figures: list[float]  # loss, four terms of the objective, cells that changed sides, entropy


class PseudoLabels:
    """The propagation half of an epoch, with the candidates on the device.

    Confidences are values of candidate cells, in row-major order; those of several networks are on
    the host, where they are calibrated.
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
        propagator = Propagator(instance_graph, label_graph, **config.propagation)
        self._columns: Columns | ColumnPropagation | None = None
        propagates = config.disambiguation != "none" and propagator.degree > 0
        if self._device.type == "cpu" and propagates:
            given = (propagator, label_graph, dataset.candidates)
            self._columns = (
                Columns(*given) if executor is None else ColumnPropagation(*given, executor)
            )
        self._propagator = propagator.to(self._device)
        self._Y = torch.tensor(dataset.candidates, dtype=torch.float32, device=self._device)
        self._candidates = Candidates.of(dataset.candidates)
        rows, labels = self._candidates.cells
        self._at = torch.as_tensor(rows * dataset.n_labels + labels, device=self._device)
        self.level, self.level_is_due = Level(), False  # until predictions are worth it
        self._fitted: tuple[Tensor, Level, bool, Noise, Evidence] | None = None
        self._looked_at: tuple[Tensor, Seen, Seen | None] | None = None
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
        self, Y_hat: Tensor, Z: Tensor, loss: Tensor, was: Tensor, *, is_last: bool = False
    ) -> Step:
        """Return the next pseudo-labels, the confidences, which `was` were before, and figures.

        Where no propagation follows the network, its own prediction is the confidence. One network
        is the paper's: its confidences are calibrated at the end, which costs more than an epoch.
        """
        Y_hat, raw = Y_hat.to(self._device), Z.to(self._device)
        self._fitted = self._looked_at = None  # of the last predictions
        propagates = self._config.disambiguation == "alternating"
        if propagates:
            raw = self._propagate(Y_hat)
        objective = self._propagator.objective(raw, self._Y, Y_hat)
        figures = torch.stack([loss.to(self._device), *objective])
        if self._config.members > 1:
            rounds = None if is_last else _QUICK_ROUNDS
            confidence, told = self._calibrated(Y_hat, raw, rounds, figures=figures)
            moved = [float(one.numpy()) for one in _movement(was, confidence)]
        else:
            confidence = self._beyond(raw) if propagates else self._of_candidates(Y_hat)
            every = torch.cat([figures, torch.stack(_movement(was, confidence))])
            told, moved = every.cpu().numpy(), []
        Z = self._balanced(raw) if propagates else Z
        return Step(Z.to(self._out), confidence, [*told.tolist(), *moved])

    def calibrated(self, Y_hat: Tensor, *, targets: bool = False) -> Tensor:
        """Return the confidences of these predictions as probabilities."""
        return self._calibrated(Y_hat.to(self._device), None, targets=targets)[0]

    def whole(self, confidences: Tensor) -> Tensor:
        """Return confidences as an n x L matrix, 0 where there is no candidate."""
        out = torch.zeros_like(self._Y)
        out.view(-1)[self._at] = confidences.to(self._device)
        return out.to(self._out)

    def candidates_of(self, values: Tensor) -> Tensor:
        """Return the candidates' values of an n x L matrix."""
        return self._of_candidates(values.to(self._device))

    def _calibrated(
        self,
        Y_hat: Tensor,
        raw: Tensor | None,
        rounds: int | None = None,
        *,
        targets: bool = False,
        figures: Tensor | None = None,
    ) -> tuple[Tensor, Matrix]:
        """Return confidences, and figures, on the host; `raw` is what was propagated, if it was."""
        told = self._Y.new_zeros(0) if figures is None else figures
        Y = self._candidates
        if self._sources is not None:
            return self._by_sources(Y_hat, raw, rounds, told)
        seen, Z, numbers = self._seen(Y_hat, raw, told)
        if self.level_is_due:
            some = Y.offered[Y.sample]
            self.level = Level.fit(some, seen.rows, self._config.expected_false)
            self.level_is_due = False
        whole = rounds is None and not targets
        level = self.level if whole else self.level.one_reading
        of = (level, whole)
        if self._fitted is None or self._fitted[0] is not Y_hat or self._fitted[1:3] != of:
            # Kept, for new targets and the end of a run ask again about an epoch's predictions.
            noise = Noise.fit(Y, seen, level, floors=whole)
            evidence = noise.evidence(Y, Z, seen, self._config.eta)
            self._fitted = Y_hat, level, whole, noise, evidence
        noise, evidence = self._fitted[3:]
        found = noise.weighed(Y, evidence, targets=targets)
        return torch.as_tensor(found, dtype=torch.float32), numbers

    def _by_sources(
        self, Y_hat: Tensor, raw: Tensor | None, rounds: int | None, figures: Tensor
    ) -> tuple[Tensor, Matrix]:
        """Return confidences where several sources voted."""
        sources, Y = self._sources, self._candidates
        assert sources is not None
        if rounds is not None:
            sources = replace(sources, rounds=rounds)
        predictions, *of_raw, numbers = _at_once([Y_hat, *self._raw(Y_hat, raw), figures])
        Z = of_raw[0] if of_raw else None
        dense = sources.refit(predictions).confidences(Y.offered, Z, predictions, self._config.eta)
        return torch.as_tensor(dense[Y.cells], dtype=torch.float32), numbers

    def _seen(
        self, Y_hat: Tensor, raw: Tensor | None, figures: Tensor
    ) -> tuple[Seen, Seen | None, Matrix]:
        """Bring what calibration looks at to the host; what was brought is not brought again."""
        if self._looked_at is not None and self._looked_at[0] is Y_hat:
            return (*self._looked_at[1:], np.zeros(0, np.float32))
        cells = [self._of_candidates(one) for one in (Y_hat, *self._raw(Y_hat, raw))]
        parts = [Y_hat.mean(dim=0), Y_hat[self._candidates.sample], *cells, figures]
        mean, rows, own, *of_raw, numbers = _at_once(parts)
        seen = Seen(own, mean.astype(np.float64), rows)
        Z = seen._replace(cells=of_raw[0]) if of_raw else None
        self._looked_at = Y_hat, seen, Z
        return seen, Z, numbers

    def _raw(self, Y_hat: Tensor, raw: Tensor | None) -> list[Tensor]:
        """Return what was propagated, in a list that is empty where nothing is."""
        if self._config.disambiguation != "alternating":
            return []
        return [self._propagate(Y_hat) if raw is None else raw]

    def reliability(self, Y_hat: Tensor) -> Reliability | None:
        return reliability(self._sources, self._candidates.offered, to_host(Y_hat))

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


def _movement(was: Tensor, now: Tensor) -> tuple[Tensor, Tensor]:
    """Return how many candidate cells changed sides, and their mean entropy in nats."""
    changed = ((was.to(now.device) > 0.5) != (now > 0.5)).sum().float()
    p = now.clamp(1e-7, 1 - 1e-7)
    entropy = -(p * p.log() + (1 - p) * (1 - p).log())
    return changed, entropy.sum() / max(len(p), 1)


def _at_once(tensors: list[Tensor]) -> list[Matrix]:
    """Bring tensors to the host in one copy."""
    flat = torch.split(
        torch.cat([one.reshape(-1) for one in tensors]).cpu(), [*map(torch.numel, tensors)]
    )
    return [part.view(one.shape).numpy() for part, one in zip(flat, tensors, strict=True)]


def to_host(values: Tensor) -> Matrix:
    """Return a copy to keep."""
    return _shown(values).astype(np.float32)


def _shown(values: Tensor) -> Matrix:
    """Return values to look at, not to keep: on the CPU they are not copied."""
    shown: Matrix = values.detach().cpu().numpy()
    return shown
