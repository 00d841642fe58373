"""What the compared methods share: checked input, scaled features, scores, confidences.

A method writes two functions: `_fit(X, Y)`, which returns a confidence for every training cell, and
`_scores(X)`. Both get scaled features, dense or CSR, float64. One that iterates writes `_iterate`
instead of `_fit`: it can then be watched, stopped and gone on with.
"""

from collections.abc import Callable, Iterator, Mapping
from inspect import signature
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler
from sklearn.utils.validation import check_is_fitted, validate_data

from core.data.dataset import CandidateDataset
from core.errors import ConfigError

Matrix = npt.NDArray[np.float64]
SCALES = ("minmax", "standard", "none")


class Setting(NamedTuple):
    """What a setting may be, both ends included, and what it does."""

    low: float
    high: float
    help: str


class Step(NamedTuple):
    """Where a method stands after some iterations; each part is computed only when asked for."""

    confidences: Callable[[], Matrix]  # of the training cells
    value: Callable[[], float] | None = None  # what it minimises, if it can be told
    state: Callable[[], dict[str, npt.NDArray[Any]]] | None = None  # what it needs to go on


def candidate_data(model: Any, X: Any, Y: Any, votes: Any, y: Any) -> CandidateDataset:
    """Return what a model is fitted on, checked as scikit-learn does; it learns feature names.

    y is Y by scikit-learn's name.
    """
    Y = y if Y is None else Y
    if Y is None and votes is None:
        name = type(model).__name__
        raise ValueError(f"{name} requires y to be passed, but the target y is None.")
    X = validate_data(model, X, accept_sparse="csr", dtype=np.float32, ensure_min_samples=2)
    return CandidateDataset(X, Y, votes=votes)


def known_features(model: Any, X: Any) -> Any:
    """Return features for a fitted model: the same, in the same order."""
    check_is_fitted(model, "confidences_")
    return validate_data(model, X, reset=False, accept_sparse="csr", dtype=np.float32)


def candidate_tags(tags: Any) -> Any:
    """Say to scikit-learn that a target is a 0/1 column per label, and sparse features are fine."""
    tags.classifier_tags.multi_label, tags.classifier_tags.multi_class = True, False
    tags.target_tags.multi_output, tags.target_tags.single_output = True, False
    tags.input_tags.sparse = True
    return tags


class CandidateEstimator(ClassifierMixin, BaseEstimator):
    """A method that learns from candidate labels.

    Attributes
    ----------
    confidences_ : (n, L), the method's number for each candidate of the training data, in [0, 1];
        0 elsewhere
    classes_ : the label indices
    """

    assumes: ClassVar[str]
    """One sentence: when the method is right."""

    settings: ClassVar[Mapping[str, Setting]] = {}
    """The numbers of the constructor with their ranges."""

    scale: str
    threshold: float = 0.5

    def fit(self, X: Any, Y: Any = None, votes: Any = None, *, y: Any = None) -> Self:
        """Learn from features (n, d) and candidate labels (n, L).

        votes : as in `PlainClassifier.fit`; a cell that a source said yes to is a candidate, and
            nothing else of the votes is used.
        """
        for _ in self.steps(X, Y, votes, y=y):
            pass
        return self

    def steps(
        self,
        X: Any,
        Y: Any = None,
        votes: Any = None,
        *,
        y: Any = None,
        state: Mapping[str, npt.NDArray[Any]] | None = None,
    ) -> Iterator[Step]:
        """Fit step by step, `n_steps` at most; `confidences_` are there after the last one.

        state : of an earlier step on the same data and settings, to go on after it
        """
        self.check_settings()
        data = candidate_data(self, X, Y, votes, y)
        self._scaler = _scaler(self.scale, data.features)
        self.classes_ = np.arange(data.n_labels)
        candidates = data.candidates.astype(np.float64)
        step = None
        for step in self._iterate(self._scaled(data.features, fit=True), candidates, state or {}):
            yield step
        if step is not None:
            found = np.clip(np.where(candidates > 0, step.confidences(), 0), 0, 1)
            self.confidences_: npt.NDArray[np.float32] = found.astype(np.float32)

    @property
    def n_steps(self) -> int:
        """How many steps a fit takes at most; 1 where nothing can be seen on the way."""
        return 1

    def decision_function(self, X: Any) -> Matrix:
        """Return the scores (m, L) of the features (m, d); larger is more likely true."""
        return self._scores(self._scaled(known_features(self, X)))

    def current_scores(self, X: Any) -> Matrix:
        """Return the scores of these features at the step that was taken last."""
        return self._scores(self._scaled(X))

    def predict_proba(self, X: Any) -> npt.NDArray[np.float32]:
        """Return the scores cut to [0, 1]; `decision_function` keeps the order beyond."""
        return np.clip(self.decision_function(X), 0, 1).astype(np.float32)

    def predict(self, X: Any) -> npt.NDArray[np.int64]:
        """Return the labels (m, L) whose prediction is above the threshold."""
        return (self.decision_function(X) > self.threshold).astype(np.int64)

    def _fit(self, X: Any, Y: Matrix) -> Matrix:
        raise NotImplementedError

    def _iterate(self, X: Any, Y: Matrix, state: Mapping[str, npt.NDArray[Any]]) -> Iterator[Step]:
        found = self._fit(X, Y)
        yield Step(lambda: found)

    def _scores(self, X: Any) -> Matrix:
        raise NotImplementedError

    def _scaled(self, X: Any, fit: bool = False) -> Any:
        X = X.astype(np.float64)
        if self._scaler is None:
            return X
        scaled = self._scaler.fit_transform(X) if fit else self._scaler.transform(X)
        return sp.csr_array(scaled) if sp.issparse(scaled) else scaled

    def check_settings(self) -> None:
        """Refuse settings that are out of range, all at once."""
        wrong = []
        defaults = signature(type(self)).parameters
        for name, (low, high, _) in self.settings.items():
            value, whole = getattr(self, name), isinstance(defaults[name].default, int)
            kind = Integral if whole else Real
            if not isinstance(value, kind) or not low <= float(value) <= high:
                what = "a whole number " if whole else ""
                wrong.append(f"{name} must be {what}from {low:g} to {high:g}; got {value!r}")
        if getattr(self, "scale", "none") not in SCALES:
            wrong.append(f"scale must be one of {', '.join(SCALES)}; got {self.scale!r}")
        if wrong:
            known = ", ".join(self.get_params())
            raise ConfigError("A setting is not valid.", "\n".join(wrong), f"Settings: {known}.")

    def __sklearn_tags__(self) -> Any:
        return candidate_tags(super().__sklearn_tags__())


def _scaler(scale: str, X: Any) -> Any:
    """Return a scaler of that kind; sparse features keep their zeros."""
    if scale == "none":
        return None
    if sp.issparse(X):
        return MaxAbsScaler() if scale == "minmax" else StandardScaler(with_mean=False)
    return MinMaxScaler() if scale == "minmax" else StandardScaler()


def with_one(X: Any) -> Any:
    """Return [X, 1], the features with a constant for the intercept."""
    one = np.ones((X.shape[0], 1))
    return sp.csr_array(sp.hstack([X, one])) if sp.issparse(X) else np.hstack([X, one])


def row_min_max(scores: Matrix) -> Matrix:
    """Stretch every row to [0, 1]; a constant row becomes 1/2."""
    low, high = scores.min(axis=1, keepdims=True), scores.max(axis=1, keepdims=True)
    wide = high > low
    return np.where(wide, (scores - low) / np.where(wide, high - low, 1), 0.5)
