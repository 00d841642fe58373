"""Label frequency: what can be said without looking at the features."""

from typing import Any

import numpy as np

from core.methods.base import CandidateEstimator, Matrix


class LabelFrequency(CandidateEstimator):
    """Every instance has every label with the share of instances that offer it. A baseline."""

    assumes = "Labels that are offered often are true more often."
    scale = "none"

    def __init__(self) -> None:
        pass

    def _fit(self, X: Any, Y: Matrix) -> Matrix:
        self._share = Y.mean(axis=0)
        return self._scores(X)

    def _scores(self, X: Any) -> Matrix:
        return np.tile(self._share, (X.shape[0], 1))
