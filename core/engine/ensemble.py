"""Several networks trained as one: stacked weights, each network without its own fold of instances.

What a network says of the instances it was trained on remembers their candidates, false ones too.
Here every instance is predicted by the network that never saw it. All networks take their steps
together in batched products, so five cost far less than five times one. Steps are AdamW's on the
losses of `core.engine.network`, summed over labels; the learning rate falls to 0 along half a
cosine.
"""

from collections.abc import Iterator, Mapping, Sequence
from math import cos, pi

import torch
from torch import Tensor

from core.engine.config import PlainConfig
from core.engine.network import (
    LOSSES,
    Between,
    hidden_sizes,
    one_thread_if_small,
    restored_on_error,
)
from core.engine.scaling import Rows

_GATHERED = 16
"""Batches whose rows are gathered in one operation."""

_ONE_THREAD_VALUES = 2**15
"""Up to which torch does not divide among threads what is done to each value."""

_VECTOR = 16
"""Values that a processor takes at once, at most. The last of a vector, where it has others left,
may be rounded otherwise, so which are last must not depend on how many networks are here."""

_MOMENTS = ("exp_avg", "exp_avg_sq")
"""AdamW's state, which a checkpoint keeps beside its step."""


class Ensemble:
    """`config.members` networks f(x; theta_k). Same seed, same weights bit for bit on the CPU."""

    def __init__(
        self,
        n: int,
        n_features: int,
        rates: Tensor,
        config: PlainConfig,
        device: torch.device,
        members: Sequence[int] | None = None,
    ) -> None:
        """Start n instances' folds and the networks; they begin by predicting the labels' rates.

        `members` names some of the networks; the others are then somewhere else.
        """
        first, second = config.hidden or hidden_sizes(len(rates))
        self.members = list(range(config.members) if members is None else members)
        K = len(self.members)
        self._shapes = [
            (K, n_features + 1, first),
            (K, first + 1, second),
            (K, second + 1, len(rates)),
        ]
        self._config, self._loss, self._device = config, LOSSES[config.loss], device
        self.generator = torch.Generator(device=device).manual_seed(config.seed)
        self.fold = torch.randperm(n, generator=self.generator, device=device) % config.members
        seen = [torch.nonzero(self.fold != k).ravel() for k in range(config.members)]
        # Folds differ by one instance at most; a step is as long for all networks.
        self._seen = torch.stack([seen[k][: min(map(len, seen))] for k in self.members])
        # Found once: how many there are is a question to the device.
        self._own = [torch.nonzero(self.fold == k).ravel() for k in self.members]
        self._sizes = [a * b * c for a, b, c in self._shapes]
        size = sum(self._sizes)
        self._padded = torch.zeros(-(-size // _VECTOR) * _VECTOR, device=device)
        self._padded.grad = torch.zeros_like(self._padded)
        self.theta, self._grad = self._padded[:size], self._padded.grad[:size]
        self._start(rates.to(device))
        self._optimizer = torch.optim.AdamW(
            [self._padded], config.learning_rate, weight_decay=config.weight_decay, fused=True
        )
        self._set_moments(
            {
                "step": torch.zeros((), device=device),
                "exp_avg": torch.zeros_like(self.theta),
                "exp_avg_sq": torch.zeros_like(self.theta),
            }
        )

    def train_epoch(self, features: Rows, Z: Tensor, between: Between = None) -> None:
        """Take one pass of steps toward Z; if `between` raises, all is as before the epoch."""
        with restored_on_error(self):
            self._train_epoch(features, Z, between)

    def held_out(self, features: Rows) -> Tensor:
        """Return what the network that never saw it says of each instance, n x L."""
        out = torch.empty(len(features), self._shapes[-1][-1], device=self._device)
        for k, at in enumerate(self._own):
            for part in torch.split(at, self._at_once):
                out[part] = self._loss.output(self._of_member(k, features[part]))
        return out

    def predict(self, features: Rows) -> Tensor:
        """Return the mean of all networks' predictions, n x L in [0, 1]."""
        parts = []
        for start in range(0, len(features), self._at_once):
            x = features[start : start + self._at_once]
            each = [self._loss.output(self._of_member(k, x)) for k in range(len(self._seen))]
            parts.append(torch.stack(each).mean(dim=0))
        return torch.cat(parts)

    def state(self) -> dict[str, Tensor]:
        """Return a copy of everything that training changes."""
        moments = self._optimizer.state[self._padded]
        vectors = {name: moments[name][: len(self.theta)].clone() for name in _MOMENTS}
        step, random = moments["step"].clone(), self.generator.get_state()
        return {"theta": self.theta.clone(), "step": step, **vectors, "random": random}

    def restore(self, state: Mapping[str, Tensor]) -> None:
        """Go back to an earlier state."""
        self.theta.copy_(state["theta"])
        self._set_moments(state)
        self.generator.set_state(state["random"].cpu())

    def part_of(self, vector: Tensor, k: int) -> Tensor:
        """Return network k's part of a vector, such as theta, of all networks."""
        sizes = [self._config.members * b * c for _, b, c in self._shapes]
        shapes = [(self._config.members, b, c) for _, b, c in self._shapes]
        parts = zip(torch.split(vector, sizes), shapes, strict=True)
        return torch.cat([part.view(shape)[k].reshape(-1) for part, shape in parts])

    @property
    def _at_once(self) -> int:
        """Rows predicted at once; on the CPU so few that threads, and bits, are one thread's."""
        few = max(_ONE_THREAD_VALUES // self._shapes[-1][-1], 1)
        return min(4096, few) if self._device.type == "cpu" else 4096

    def _set_moments(self, moments: Mapping[str, Tensor]) -> None:
        groups = self._optimizer.state_dict()["param_groups"]
        state = {"step": moments["step"].clone()}
        for name in _MOMENTS:
            state[name] = torch.zeros_like(self._padded)
            state[name][: len(self.theta)] = moments[name]
        self._optimizer.load_state_dict({"state": {0: state}, "param_groups": groups})
        self._done = int(moments["step"])  # counted on: asking the device would wait for it

    def _start(self, rates: Tensor) -> None:
        for W in self._layers(self.theta):
            bound = (W.shape[1] - 1) ** -0.5
            W.uniform_(-bound, bound, generator=self.generator)
        last = self._layers(self.theta)[-1]
        last *= 0.1
        p = rates.clamp(1e-3, 1 - 1e-3)
        last[:, -1] = torch.log(p / (1 - p)) if self._config.loss in ("bce", "pmse") else p

    def _train_epoch(self, features: Rows, Z: Tensor, between: Between) -> None:
        # All networks' orders are drawn, also where only some of them are here.
        shape = (self._config.members, self._seen.shape[1])
        order = torch.rand(shape, generator=self.generator, device=self._device)[self.members]
        rows = self._seen.gather(1, order.argsort(dim=1))
        size = self._config.batch_size
        n_steps = -(-rows.shape[1] // size) * self._config.epochs
        work = size * max(b * c for _, b, c in self._shapes)
        (group,) = self._optimizer.param_groups
        with torch.no_grad(), one_thread_if_small(work):
            for x, z in self._batches(features, Z, rows, size):
                if between is not None:
                    between()
                self._gradient(x, z)
                part = min(self._done / n_steps, 1)
                group["lr"] = self._config.learning_rate * (1 + cos(pi * part)) / 2
                self._optimizer.step()
                self._done += 1

    def _batches(
        self, features: Rows, Z: Tensor, rows: Tensor, size: int
    ) -> Iterator[tuple[Tensor, Tensor]]:
        for at in torch.split(rows, _GATHERED * size, dim=1):
            flat = at.reshape(-1)
            x, z = features[flat].view(*at.shape, -1), Z[flat].view(*at.shape, -1)
            yield from zip(torch.split(x, size, dim=1), torch.split(z, size, dim=1), strict=True)

    def _gradient(self, x: Tensor, z: Tensor) -> None:
        """Write the gradient of all networks' losses, each averaged over its batch."""
        W1, W2, W3 = self._layers(self.theta)
        G1, G2, G3 = self._layers(self._grad)
        h1 = torch.bmm(x, W1).relu_()
        h2 = torch.baddbmm(W2[:, -1:], h1, W2[:, :-1]).relu_()
        d3 = self._delta(torch.baddbmm(W3[:, -1:], h2, W3[:, :-1]), z)
        d3 /= x.shape[1]
        d2 = torch.bmm(d3, W3[:, :-1].mT).mul_(h2.sign())
        d1 = torch.bmm(d2, W2[:, :-1].mT).mul_(h1.sign())
        torch.bmm(x.mT, d1, out=G1)
        for G, h, d in ((G2, h1, d2), (G3, h2, d3)):
            G[:, :-1] = torch.bmm(h.mT, d)
            G[:, -1] = d.sum(dim=1)

    def _delta(self, f: Tensor, z: Tensor) -> Tensor:
        """Return the loss's derivative with the bits that each network has alone."""
        is_whole = f[0].numel() % _VECTOR == 0 and f.numel() <= _ONE_THREAD_VALUES
        if is_whole or f.device.type != "cpu":
            return self._loss.delta(f, z)
        return torch.stack([self._loss.delta(*own) for own in zip(f, z, strict=True)])

    def _of_member(self, k: int, x: Tensor) -> Tensor:
        W1, W2, W3 = (W[k] for W in self._layers(self.theta))
        h1 = (x @ W1).relu_()
        h2 = torch.addmm(W2[-1], h1, W2[:-1]).relu_()
        return torch.addmm(W3[-1], h2, W3[:-1])

    def _layers(self, vector: Tensor) -> list[Tensor]:
        parts = torch.split(vector, self._sizes)
        return [part.view(shape) for part, shape in zip(parts, self._shapes, strict=True)]
