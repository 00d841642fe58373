"""The networks of an ensemble as tasks: each trains, and predicts the instances it never sees.

Features are a file all workers see, new targets another; weights and AdamW's moments go to the
worker with every epoch and come back, so a network may train on another worker every time.
"""

import json
from typing import Any

import numpy as np
import torch
from torch import Tensor

from core.cluster.executors import Executor, Item
from core.cluster.shared_arrays import load, remove, save, save_parts
from core.engine.config import PlainConfig
from core.engine.ensemble import Ensemble
from core.engine.network import Between
from core.engine.scaling import Rows

_VECTORS = ("theta", "exp_avg", "exp_avg_sq")
_WRITTEN = 65_536
"""Rows of features written at once."""


class MembersByTasks(Ensemble):
    """The ensemble whose epochs are tasks, one per network."""

    def __init__(self, *of_ensemble: Any, executor: Executor) -> None:
        super().__init__(*of_ensemble)
        self._executor, self._epoch = executor, 0
        self._features: str | None = None
        self._targets: str | None = None
        self._written: Tensor | None = None
        self._predictions: Tensor | None = None

    def train_epoch(self, features: Rows, Z: Tensor, between: Between = None) -> None:
        """Take one pass of steps toward Z; if `between` raises, all is as before the epoch."""
        item = self._common(features, Z)
        files = self._write_state()
        items = [{**item, **files, "member": k, "out": self._name(f"{k}")} for k in self.members]
        found = list(self._executor.map(_train_member, items, "networks", between))
        state = self.state()
        predictions = torch.empty(len(self.fold), Z.shape[1])
        for k, one in zip(self.members, found, strict=True):
            for name, vector in zip(_VECTORS, load(one["vectors"]), strict=True):
                self._put(state[name], k, torch.from_numpy(vector))
            predictions[self.fold == k] = torch.from_numpy(load(one["predictions"]))
        random = torch.from_numpy(np.array(load(found[0]["random"])))
        step = torch.tensor(float(found[0]["step"]))
        self.restore({**state, "step": step, "random": random})
        self._predictions = predictions
        written = [one[name] for one in found for name in ("vectors", "predictions", "random")]
        remove([*files.values(), *written])

    def held_out(self, features: Rows) -> Tensor:
        """Return what the network that never saw it says of each instance, n x L."""
        if self._predictions is None:  # begun from a checkpoint
            return super().held_out(features)
        return self._predictions.clone()

    def _common(self, features: Rows, Z: Tensor) -> Item:
        """Return what all networks are given; files are written where they are new."""
        self._epoch += 1
        if self._features is None:
            self._features = self._write_features(features)
        if self._written is not Z:
            remove([] if self._targets is None else [self._targets])
            self._targets, self._written = save(self._name("targets"), Z.numpy()), Z
        return {
            "config": self._config.model_dump_json(),
            "shape": (len(self.fold), self._shapes[0][1] - 1, Z.shape[1]),
            "features": self._features,
            "targets": self._targets,
            "step": int(self.state()["step"]),
        }

    def _write_features(self, features: Rows) -> str:
        path, n = self._executor.folder / "features.npy", len(features)
        parts = (features[at : at + _WRITTEN].numpy() for at in range(0, n, _WRITTEN))
        return save_parts(path, (n, features[:1].shape[1]), parts)

    def _write_state(self) -> dict[str, str]:
        state = self.state()
        vectors = torch.stack([state[name] for name in _VECTORS])
        return {
            "vectors": save(self._name("vectors"), vectors.numpy()),
            "random": save(self._name("random"), state["random"].numpy()),
        }

    def _put(self, vector: Tensor, k: int, part: Tensor) -> None:
        """Write one network's part of a vector of all."""
        sizes = [b * c for _, b, c in self._shapes]
        for W, own in zip(self._layers(vector), torch.split(part, sizes), strict=True):
            W[k] = own.view(W.shape[1:])

    def _name(self, what: str) -> str:
        return str(self._executor.folder / f"networks-{self._epoch}-{what}.npy")


def _train_member(item: Item) -> Item:
    """Task: train one network for an epoch and predict the instances it never sees."""
    config, k = PlainConfig(**json.loads(item["config"])), item["member"]
    n, d, n_labels = item["shape"]
    cpu = torch.device("cpu")
    networks = Ensemble(n, d, torch.full((n_labels,), 0.5), config, cpu, members=(k,))
    whole = torch.from_numpy(load(item["vectors"]))
    networks.restore(
        {
            **{name: networks.part_of(one, k) for name, one in zip(_VECTORS, whole, strict=True)},
            "step": torch.tensor(float(item["step"])),
            "random": torch.from_numpy(load(item["random"])),
        }
    )
    features = torch.from_numpy(load(item["features"]))
    networks.train_epoch(features, torch.from_numpy(load(item["targets"])))
    state, own = networks.state(), networks.held_out(features)[networks.fold == k]
    vectors = torch.stack([state[name] for name in _VECTORS])
    stem = item["out"].removesuffix(".npy")
    return {
        "vectors": save(f"{stem}-vectors.npy", vectors.numpy()),
        "predictions": save(f"{stem}-predictions.npy", own.numpy()),
        "random": save(f"{stem}-random.npy", state["random"].numpy()),
        "step": int(state["step"]),
    }
