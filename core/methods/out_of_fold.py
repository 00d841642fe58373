"""Predictions of every row by a model that did not see it."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.model_selection import KFold

Matrix = npt.NDArray[Any]
Fit = Callable[[Any, Any, Matrix], Matrix]
"""Features to learn from, features to predict, labels to learn: the predictions."""


def out_of_fold(X: Any, Y: Matrix, folds: int, seed: int, fit: Fit) -> Matrix:
    """Return what `fit` says of each row, having learned from the other folds."""
    out = np.empty(Y.shape)
    splits = KFold(min(folds, len(Y)), shuffle=True, random_state=seed)
    for train, test in splits.split(Y):
        out[test] = fit(X[train], X[test], Y[train])
    return out
