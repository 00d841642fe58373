"""What the two methods made of several networks share: features, networks, batches. Loads torch."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from core.engine.network import Rows, Standardizer, choose_device, hidden_sizes
from core.methods.base import Matrix


def network(
    n_inputs: int, n_outputs: int, n_labels: int, batch_norm: bool = False
) -> nn.Sequential:
    """Return three layers with PLAIN's hidden sizes; outputs are logits or values."""
    first, second = hidden_sizes(n_labels)
    layers: list[nn.Module] = [nn.Linear(n_inputs, first)]
    layers += [nn.BatchNorm1d(first)] if batch_norm else []
    return nn.Sequential(
        *layers, nn.ReLU(), nn.Linear(first, second), nn.ReLU(), nn.Linear(second, n_outputs)
    )


class Standardized:
    """Training features on a device, and any others brought to the same scale."""

    def __init__(self, X: Any, device: str) -> None:
        self.device = choose_device(device)
        self._scaling = Standardizer.fit(X)
        self.rows = self.of(X)
        self.width = X.shape[1] + 1

    def of(self, X: Any) -> Rows:
        return self._scaling.rows(self._scaling.apply(X.astype("float32")), self.device)

    def batches(self, size: int, generator: torch.Generator) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield row numbers and features of one pass in a fresh order; the last may be left out.

        A batch of one row has no mean to normalise by.
        """
        order = torch.randperm(len(self.rows), generator=generator).to(self.device)
        for at in torch.split(order, size):
            if len(at) > 1:
                yield at, self.rows.rows(at)


def predict(net: nn.Module, rows: Rows) -> Tensor:
    """Return sigmoid(net(x)) of every row."""
    net.eval()
    with torch.inference_mode():
        parts = [net(rows.rows(slice(a, a + 4096))) for a in range(0, len(rows), 4096)]
    net.train()
    return torch.sigmoid(torch.cat(parts))


def as_matrix(values: Tensor) -> Matrix:
    return values.double().cpu().numpy()
