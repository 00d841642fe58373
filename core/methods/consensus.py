"""The consensus of runs: what several methods say of the same data, as a run of its own."""

from typing import Any, ClassVar, Self

import numpy as np

from core.errors import ConfigError
from core.methods.base import CandidateEstimator, Matrix


class Consensus(CandidateEstimator):
    """The mean of the predictions of several runs on the same data.

    Its confidences are made from that mean as those of any run are. It predicts no other instances.

    Parameters
    ----------
    runs : their ids, separated by spaces
    """

    assumes = "Several methods that err differently are right together."
    settings: ClassVar = {}
    scale = "none"

    def __init__(self, runs: str = "") -> None:
        self.runs = runs

    def check_settings(self) -> None:
        super().check_settings()
        if len(set(self.runs.split())) < 2:
            hint = "Choose runs on the same data that have ended."
            raise ConfigError("A consensus needs two runs or more.", f"Got {self.runs!r}.", hint)

    def learn_from(self, predictions: Any) -> Self:
        """Take the mean prediction of every cell."""
        self._mean = np.asarray(predictions, np.float64)
        return self

    def _fit(self, X: Any, Y: Matrix) -> Matrix:
        return self._mean

    def _scores(self, X: Any) -> Matrix:
        return self._mean
