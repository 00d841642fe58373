"""PML-fp-style: confidences and a ranking classifier by turns, with feature prototypes."""

from typing import Any

import numpy as np
import scipy.sparse as sp

from core.methods.base import Matrix
from core.methods.pml_lc import PMLLCStyle, Pull


class PMLFPStyle(PMLLCStyle):
    """After PML-fp (Xie and Huang, AAAI 2018), PML-lc's sibling.

    Instead of correlations, C2 sum_ij p_ij ||x_i - m_j||^2 / s with the prototypes
    m_j = sum_i p_ij x_i / sum_i p_ij and s the mean squared distance of the instances from their
    mean: a candidate whose prototype is far is doubted. All else, and what is known of it, as in
    `PMLLCStyle`; dividing by s is ours, so that C2 does not depend on the features' scale.
    """

    assumes = "Instances of a label lie around one point of feature space."

    def _pull(self, X: Any, Y: Matrix, P: Matrix) -> Pull:
        weight = np.maximum(P.sum(axis=0), 1e-12)
        prototypes = np.asarray((X.T @ P) / weight).T  # (L, d)
        squares = _squares(X)[:, None] - 2 * np.asarray(X @ prototypes.T)
        squares += (prototypes**2).sum(axis=1)
        mean = np.asarray(X.mean(axis=0)).ravel()
        spread = max(float(_squares(X).mean() - (mean**2).sum()), 1e-12)
        n_labels = Y.shape[1]
        return Pull(np.zeros((n_labels, n_labels)), self.C2 * np.maximum(squares, 0) / spread)


def _squares(X: Any) -> Matrix:
    squared = X.multiply(X) if sp.issparse(X) else X * X
    return np.asarray(squared.sum(axis=1)).ravel()
