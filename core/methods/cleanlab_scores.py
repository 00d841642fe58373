"""cleanlab's self-confidence of every candidate."""

from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from core.data.dataset import CandidateDataset
from core.engine.config import PlainConfig
from core.errors import ConfigError, PlainError
from core.methods.base import CandidateEstimator, Setting
from core.methods.out_of_fold import Fit, Matrix, out_of_fold


class CleanlabScores(CandidateEstimator):
    """Confident learning's label quality (cleanlab's `multilabel_classification.rank`).

    Confidences are cleanlab's self-confidence of the candidates from out-of-fold probabilities of
    `model`: "logistic", one logistic regression per label, or "network", PLAIN's network without
    disambiguation. The same model, fitted on all rows, predicts. Needs the extra `bench`.

    Parameters
    ----------
    model : "logistic" or "network"; folds : of the probabilities; seed : of folds and network
    """

    assumes = "Where a model that did not see a candidate doubts it, it is false."
    settings: ClassVar = {"folds": Setting(2, 100, "Folds of the probabilities.")}
    scale = "none"

    def __init__(self, model: str = "logistic", folds: int = 5, seed: int = 0) -> None:
        self.model, self.folds, self.seed = model, folds, seed

    def check_settings(self) -> None:
        super().check_settings()
        if self.model not in ("logistic", "network"):
            raise ConfigError("model must be logistic or network.", f"Got {self.model!r}.")

    def _fit(self, X: Any, Y: Matrix) -> Matrix:
        self._X, self._Y = X, Y  # the model of all rows is fitted when it is first asked
        return self_confidence(Y, out_of_fold(X, Y, self.folds, self.seed, self._model_fit()))

    def _scores(self, X: Any) -> Matrix:
        return np.asarray(self._model_fit()(self._X, X, self._Y))

    def _model_fit(self) -> Fit:
        return fit_logistic if self.model == "logistic" else fit_network(self.seed)


def self_confidence(candidates: Matrix, probabilities: Matrix) -> Matrix:
    """Return cleanlab's quality of every candidate."""
    try:
        from cleanlab.multilabel_classification.rank import get_label_quality_scores_per_class
    except ImportError:
        hint = 'Install it with: pip install "plain-studio[bench]"'
        raise PlainError("cleanlab is not installed.", "It is compared with.", hint) from None
    labels = [np.flatnonzero(row).tolist() for row in candidates]
    return np.asarray(get_label_quality_scores_per_class(labels, probabilities))


def fit_logistic(train: Any, test: Any, Y: Matrix) -> Matrix:
    """One logistic regression per label: standardised dense or scaled sparse features."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import MaxAbsScaler, StandardScaler

    is_sparse = sp.issparse(train)
    scaler = MaxAbsScaler() if is_sparse else StandardScaler()
    train, test = scaler.fit_transform(train), scaler.transform(test)
    solver = "liblinear" if is_sparse else "lbfgs"
    out = np.empty((test.shape[0], Y.shape[1]))
    for j, y in enumerate(Y.T):
        if y.min() == y.max():
            out[:, j] = y[0]
        else:
            model = LogisticRegression(max_iter=300, solver=solver).fit(train, y)
            out[:, j] = model.predict_proba(test)[:, 1]
    return out


def fit_network(seed: int) -> Fit:
    """The paper's network on the candidates as they are."""

    def fit(train: Any, test: Any, Y: Matrix) -> Matrix:
        from core.engine.trainer import PlainTrainer

        trainer = PlainTrainer(PlainConfig.preset("paper", disambiguation="none", seed=seed))
        for _ in trainer.epochs(CandidateDataset(train, Y.astype(np.uint8))):
            pass
        return np.asarray(trainer.predict_proba(test.astype(np.float32)))

    return fit
