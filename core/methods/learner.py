"""A method of the registry as a run: what it is given, what it says, and where it can go on.

Its number of a candidate is the run's prediction of that cell; elsewhere it is what it predicts of
the training rows. Everything after that is as in any run: the level is read from these predictions,
and the noise model turns them into confidences (`core.confidence`). So nothing is taken away that
some reading of the data would keep, whatever the method's own threshold. No propagation follows:
the evidence of a cell is its own prediction. The graphs are there for the map and for review.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from core.data.dataset import CandidateDataset
from core.engine.config import PlainConfig
from core.errors import StopTraining
from core.methods import make_method
from core.methods.base import Step

_STATE = "method."


class MethodLearner:
    """The trainer's learner where another method learns: an epoch is one of its steps.

    A method that tells its state goes on from a checkpoint; others begin anew, and come to the
    same end, since all that is random has a seed.
    """

    def __init__(
        self,
        dataset: CandidateDataset,
        config: PlainConfig,
        known: npt.NDArray[Any] | None,
        device: torch.device,
    ) -> None:
        assert config.method is not None
        self._device, self._offered = device, dataset.candidates > 0
        self._model = make_method(config.method.name, **dict(config.method.settings))
        own = {"seed": config.seed, "device": config.device}
        has = self._model.get_params()
        self._model.set_params(**{name: one for name, one in own.items() if name in has})
        if hasattr(self._model, "learn_from"):
            self._model.learn_from(known)
        self._data, self._state = dataset, dict[str, npt.NDArray[Any]]()
        self._steps: Iterator[Step] | None = None
        self._step: Step | None = None
        self.is_done = False

    def set_targets(self, targets: Tensor) -> None:
        """A method has targets of its own."""

    def train_epoch(self, features: Any, between: Any) -> None:
        """Take the next step."""
        if between is not None:
            between()
        if self._steps is None:
            self._steps = self._model.steps(
                self._data.features, self._data.candidates, state=self._state
            )
        self._step = next(self._steps, None)
        if self._step is None:
            self.is_done = True
            raise StopTraining

    def held_out(self, features: Any) -> Tensor:
        """Return the method's number of every training cell, in [0, 1]."""
        assert self._step is not None
        scores = self._model.current_scores(self._data.features)
        found = np.where(self._offered, self._step.confidences(), scores)
        return torch.as_tensor(np.clip(found, 0, 1), dtype=torch.float32, device=self._device)

    def predict_proba(self, X: Any) -> npt.NDArray[np.float32]:
        """Return the predictions of other instances."""
        found = np.clip(self._model.current_scores(X), 0, 1)
        return np.asarray(found, np.float32)

    def loss(self, Y_hat: Tensor) -> Tensor:
        """Return what the method minimises; 0 where it has no such number."""
        assert self._step is not None
        return torch.tensor(0.0 if self._step.value is None else self._step.value())

    def state(self) -> dict[str, Tensor]:
        if self._step is None or self._step.state is None:
            return {}
        return {_STATE + name: torch.tensor(one) for name, one in self._step.state().items()}

    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        self._state = {
            name.removeprefix(_STATE): one.numpy()
            for name, one in tensors.items()
            if name.startswith(_STATE)
        }
