"""Kernel ridge regression on the candidates as they are."""

from typing import Any, ClassVar

import numpy as np

from core.methods.base import CandidateEstimator, Matrix, Setting
from core.methods.out_of_fold import out_of_fold


class CandidateKernelRidge(CandidateEstimator):
    """Gaussian kernel ridge on the candidates, around each label's level. A strong baseline.

    min sum ||f(x_i) - y_i||^2 + strength ||f||^2 with the kernel exp(-||x - x'||^2 / (2 s)), s the
    mean squared distance of two instances; features are standardised. Confidences come from folds
    that leave a row out. Nothing here knows that candidates may be false.

    Parameters
    ----------
    strength : of the ridge; folds : of the confidences; seed : of the folds
    """

    assumes = "Candidates are a smooth function of the features, and noise averages out."
    settings: ClassVar = {
        "strength": Setting(1e-6, 1e6, "Weight of the ridge."),
        "folds": Setting(2, 100, "Folds of the confidences."),
    }
    scale = "none"

    def __init__(self, strength: float = 1.0, folds: int = 5, seed: int = 0) -> None:
        self.strength, self.folds, self.seed = strength, folds, seed

    def _fit(self, X: Any, Y: Matrix) -> Matrix:
        self._model = self._regress(X, Y)
        return out_of_fold(
            X, Y, self.folds, self.seed, lambda train, test, Y: self._regress(train, Y)(test)
        )

    def _scores(self, X: Any) -> Matrix:
        return np.asarray(self._model(X))

    def _regress(self, X: Any, Y: Matrix) -> Any:
        from sklearn.kernel_ridge import KernelRidge

        from core.engine.scaling import Standardizer

        scaling = Standardizer.fit(X)
        scaled = np.asarray(scaling.apply(X))
        distance = 2 * float(scaled.var(axis=0).sum())
        ridge = KernelRidge(kernel="rbf", gamma=1 / max(2 * distance, 1e-12), alpha=self.strength)
        level = Y.mean(axis=0)
        ridge.fit(scaled, Y - level)
        return lambda X: ridge.predict(np.asarray(scaling.apply(X))) + level
