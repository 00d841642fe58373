"""The deep model f(x; theta): three fully connected layers, its losses, training and prediction.

The gradient of this one fixed architecture is written out. On batches of 32 autograd's bookkeeping
takes most of a step; without it an epoch is five times faster, and a checkpoint is two vectors. A
test holds every step against autograd and torch's SGD.

Losses are averaged over batch and labels, as the release does (the paper sums over labels). BCE and
PMSE see sigma(f); MSE and MAE see f itself, and predictions are then clipped to [0, 1].
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

import torch
from threadpoolctl import ThreadpoolController
from torch import Tensor

from core.engine.config import PlainConfig
from core.engine.scaling import Rows
from core.errors import TrainingError

Batches = Iterator[tuple[Tensor, Tensor]]
Between = Callable[[], None] | None

_ONE_THREAD = 2**20
"""Multiplications of a layer and batch below which a step runs on one thread."""

_ONE_THREAD_VALUES = 2**21
"""Features and labels of all instances below which a whole training does."""

_CHUNK = 64
"""Batches whose rows are gathered in one operation."""


def choose_device(name: str) -> torch.device:
    """Return the device of that name; "auto" takes CUDA, else MPS, else the CPU."""
    if name == "auto":
        if torch.cuda.is_available():
            return torch.device("cuda")
        return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError) as error:
        hint = "Use device auto or cpu."
        raise TrainingError(f"The device {name} is not there.", str(error), hint) from None
    return device


def hidden_sizes(n_labels: int) -> tuple[int, int]:
    """Return the paper's hidden layer sizes (its section Implementation Details)."""
    size = 64 if n_labels < 64 else 256 if n_labels < 256 else 512
    return size, size


@dataclass(frozen=True)
class _Loss:
    """A loss l(f, z): its mean over cells, its derivative per cell, and the prediction it makes."""

    value: Callable[[Tensor, Tensor], Tensor]  # of a prediction, see `predict`
    delta: Callable[[Tensor, Tensor], Tensor]  # may overwrite f
    output: Callable[[Tensor], Tensor]


def _bce(s: Tensor, z: Tensor) -> Tensor:
    return torch.nn.functional.binary_cross_entropy(s.clamp(1e-7, 1 - 1e-7), z)


def _bce_delta(f: Tensor, z: Tensor) -> Tensor:
    return f.sigmoid_().sub_(z)


def _squared(y: Tensor, z: Tensor) -> Tensor:
    return (y - z).square().mean()


def _pmse_delta(f: Tensor, z: Tensor) -> Tensor:
    s = f.sigmoid_()
    return (s - z).mul_(s).mul_(1 - s).mul_(2)


def _mse_delta(f: Tensor, z: Tensor) -> Tensor:
    return f.sub_(z).mul_(2)


def _absolute(y: Tensor, z: Tensor) -> Tensor:
    return (y - z).abs().mean()


def _mae_delta(f: Tensor, z: Tensor) -> Tensor:
    return f.sub_(z).sign_()


def _clipped(f: Tensor) -> Tensor:
    return f.clamp_(0, 1)


# Named functions, not lambdas: a fitted model can be pickled.
LOSSES = {
    "bce": _Loss(_bce, _bce_delta, torch.sigmoid_),
    "pmse": _Loss(_squared, _pmse_delta, torch.sigmoid_),
    "mse": _Loss(_squared, _mse_delta, _clipped),
    "mae": _Loss(_absolute, _mae_delta, _clipped),
}


class Network:
    """f(x; theta) with SGD. Seeded; on the CPU the same seed gives the same weights bit for bit.

    A layer's weights are (inputs + 1, outputs): its bias is the weight of a constant 1 that every
    layer's input ends with.
    """

    def __init__(
        self, n_features: int, n_labels: int, config: PlainConfig, device: torch.device
    ) -> None:
        first, second = config.hidden or hidden_sizes(n_labels)
        self._shapes = [(n_features + 1, first), (first + 1, second), (second + 1, n_labels)]
        self._config, self._loss, self._device = config, LOSSES[config.loss], device
        self.generator = torch.Generator(device=device).manual_seed(config.seed)
        self.theta = torch.empty(sum(a * b for a, b in self._shapes), device=device)
        self.velocity = torch.zeros_like(self.theta)
        self._buffers: dict[int, tuple[Tensor, ...]] = {}
        for W in self._layers(self.theta):
            bound = (len(W) - 1) ** -0.5
            W.uniform_(-bound, bound, generator=self.generator)

    def train_epoch(self, features: Rows, Z: Tensor, between: Between = None) -> None:
        """Take one SGD step per batch of a fresh random order toward Z (Eq. 4).

        `between` is called before every batch. If it raises, the network is as before the epoch.
        """
        with restored_on_error(self):
            self._train_epoch(features, Z, between)

    def state(self) -> dict[str, Tensor]:
        """Return a copy of everything that training changes."""
        random = self.generator.get_state()
        return {"theta": self.theta.clone(), "velocity": self.velocity.clone(), "random": random}

    def restore(self, state: Mapping[str, Tensor]) -> None:
        """Go back to an earlier state."""
        self.theta.copy_(state["theta"])
        self.velocity.copy_(state["velocity"])
        self.generator.set_state(state["random"].cpu())

    def _train_epoch(self, features: Rows, Z: Tensor, between: Between) -> None:
        size = self._config.batch_size
        order = torch.randperm(len(features), generator=self.generator, device=self._device)
        with (
            torch.inference_mode(),
            one_thread_if_small(size * max(a * b for a, b in self._shapes)),
        ):
            for at in torch.split(order, _CHUNK * size):
                batches = zip(
                    torch.split(features[at], size), torch.split(Z[at], size), strict=True
                )
                self._descend(batches if between is None else _pausing(batches, between))

    def _descend(self, batches: Batches) -> None:
        theta, velocity, delta = self.theta, self.velocity, self._loss.delta
        momentum, decay = self._config.momentum, self._config.weight_decay
        rate, n_labels = self._config.learning_rate, self._shapes[-1][1]
        W1, W2, W3 = self._layers(theta)
        V1, V2, V3 = self._layers(velocity)
        W2t, W3t = W2[:-1].t(), W3[:-1].t()
        mm, sign = torch.mm, torch.sign
        for x, z in batches:
            H1, h1, H1t, H2, h2, H2t, f, d2, d1 = self._buffers_for(len(x))
            mm(x, W1, out=h1).relu_()
            mm(H1, W2, out=h2).relu_()
            d3 = delta(mm(H2, W3, out=f), z)
            # ReLU's derivative is the sign of its output, which is 0 or positive.
            mm(d3, W3t, out=d2).mul_(sign(h2))
            mm(d2, W2t, out=d1).mul_(sign(h1))
            # velocity <- momentum velocity + gradient + decay theta, the gradient averaged
            share = 1 / (len(x) * n_labels)
            V3.addmm_(H2t, d3, beta=momentum, alpha=share)
            V2.addmm_(H1t, d2, beta=momentum, alpha=share)
            V1.addmm_(x.t(), d1, beta=momentum, alpha=share)
            velocity.add_(theta, alpha=decay)
            theta.sub_(velocity, alpha=rate)

    def predict(self, features: Rows) -> Tensor:
        """Return Y_hat, n x L in [0, 1]."""
        W1, W2, W3 = self._layers(self.theta)
        parts = []
        for start in range(0, len(features), 4096):
            h1 = (features[start : start + 4096] @ W1).relu_()
            h2 = torch.addmm(W2[-1], h1, W2[:-1]).relu_()
            parts.append(torch.addmm(W3[-1], h2, W3[:-1]))
        return self._loss.output(torch.cat(parts))

    def loss(self, Y_hat: Tensor, Z: Tensor) -> Tensor:
        """Return the loss of Eq. (4) of these predictions, averaged over instances and labels."""
        return self._loss.value(Y_hat, Z)

    def _layers(self, vector: Tensor) -> list[Tensor]:
        parts = torch.split(vector, [a * b for a, b in self._shapes])
        return [part.view(shape) for part, shape in zip(parts, self._shapes, strict=True)]

    def _buffers_for(self, size: int) -> tuple[Tensor, ...]:
        """Return where a batch of this size is computed: layers with and without 1, deltas."""
        if size not in self._buffers:
            (_, first), (_, second), (_, n_labels) = self._shapes
            H1, H2 = (torch.ones(size, n + 1, device=self._device) for n in (first, second))
            f, d2, d1 = (H1.new_empty(size, n) for n in (n_labels, second, first))
            self._buffers[size] = (H1, H1[:, :-1], H1.t(), H2, H2[:, :-1], H2.t(), f, d2, d1)
        return self._buffers[size]


def _pausing(batches: Batches, between: Callable[[], None]) -> Batches:
    for batch in batches:
        between()
        yield batch


class Restorable(Protocol):
    """What can go back to an earlier state."""

    def state(self) -> dict[str, Tensor]: ...
    def restore(self, state: Mapping[str, Tensor]) -> None: ...


@contextmanager
def restored_on_error(trained: Restorable) -> Iterator[None]:
    """Have it as before the block if that raises, or is stopped."""
    before = trained.state()
    try:
        yield
    except BaseException:
        trained.restore(before)
        raise


@contextmanager
def one_thread_if_small(work: int) -> Iterator[None]:
    """Use one thread while steps are small: waking a second costs more than it does."""
    before = torch.get_num_threads()
    if work < _ONE_THREAD:
        torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


class Threads:
    """How many threads a training uses: one where the data are small.

    torch, numpy and scipy each have threads of their own, which wait busily for their next work. A
    training alternates between all three: on small data they mostly keep each other from working.
    """

    def __init__(self, n_values: int) -> None:
        self._pools = ThreadpoolController() if n_values < _ONE_THREAD_VALUES else None

    @contextmanager
    def limited(self) -> Iterator[None]:
        """Keep to it; elsewhere everything has the threads it had."""
        if self._pools is None:
            yield
            return
        with self._pools.limit(limits=1), one_thread_if_small(0):
            yield
