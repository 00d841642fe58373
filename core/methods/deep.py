"""What methods made of networks share: features, networks, batches, checkpoints. Loads torch."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy.typing as npt
import torch
from torch import Tensor, nn

from core.engine.network import choose_device, hidden_sizes
from core.engine.scaling import Rows, Standardizer
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
                yield at, self.rows[at]


def predict(net: nn.Module, rows: Rows) -> Tensor:
    """Return sigmoid(net(x)) of every row."""
    net.eval()
    with torch.inference_mode():
        parts = [net(rows[a : a + 4096]) for a in range(0, len(rows), 4096)]
    net.train()
    return torch.sigmoid(torch.cat(parts))


def pack(**parts: Any) -> dict[str, npt.NDArray[Any]]:
    """Return modules, optimisers, generators and tensors as arrays; `unpack` puts them back."""
    found: dict[str, Tensor] = {}
    for name, part in parts.items():
        if isinstance(part, torch.Generator):
            found[name] = part.get_state()
        elif isinstance(part, Tensor):
            found[name] = part
        else:
            found |= {f"{name}.{key}": value for key, value in _tensors(part).items()}
    return {name: value.detach().cpu().numpy().copy() for name, value in found.items()}


def unpack(state: Mapping[str, npt.NDArray[Any]], **parts: Any) -> None:
    """Bring parts to the state they were packed in; nothing where there is none."""
    if not state:
        return
    for name, part in parts.items():
        own = f"{name}."
        values = {
            key.removeprefix(own): torch.as_tensor(value)
            for key, value in state.items()
            if key.startswith(own)
        }
        if isinstance(part, torch.Generator):
            part.set_state(torch.as_tensor(state[name]))
        elif isinstance(part, Tensor):
            part.copy_(torch.as_tensor(state[name]))
        elif isinstance(part, torch.optim.Optimizer):
            moments: dict[int, dict[str, Tensor]] = {}
            for key, value in values.items():
                at, _, what = key.partition(".")
                moments.setdefault(int(at), {})[what] = value
            part.load_state_dict({**part.state_dict(), "state": moments})
        else:
            part.load_state_dict(values)


def _tensors(part: Any) -> dict[str, Tensor]:
    if isinstance(part, torch.optim.Optimizer):
        states = part.state_dict()["state"].items()
        return {f"{at}.{what}": value for at, one in states for what, value in one.items()}
    return dict(part.state_dict())


def as_matrix(values: Tensor) -> Matrix:
    return values.double().cpu().numpy()
