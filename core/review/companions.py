"""What the other candidates of an instance say of each one.

Predictions come from features alone. Which other labels an instance carries says more: some go
together, some never do, and where every instance has a label, the only one is right. One logistic
regression per label, all fitted at once, on the label's prediction and on the instance's other
candidates:

    logit P(offered_ij) = c_j + b_j logit(Y_hat_ij) + d_j [no other] + sum over k of W_kj offered_ik

Instances are judged by regressions that did not see them. False candidates fall on cells that the
rest speaks against: the less likely a candidate was to be offered, the likelier it is false.
"""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.optimize import minimize
from scipy.special import expit, log_expit

Matrix = npt.NDArray[np.float32]
Cells = npt.NDArray[np.bool_]

_FOLDS, _STEPS, _MAX_CELLS = 5, 30, 1_500_000
"""Parts of the instances; steps of the fit, at most; cells that one fit looks at, at most."""

_FRESH = 0.002
"""Share of candidates that may be rejected, or come back, before all is fitted anew."""

MOST_LABELS = 1000
"""Beyond these the pairs of labels take too much memory."""

_PRECISION = np.array([1.0, 4.0, 0.1], np.float32)
"""Of c around 0, b around 1, d around 0."""

_COMPANION_PRECISION = 1.0
"""Of W around 0. Of .3, 1, 3 and 10 the best by likelihood on emotions, image and medical, three
seeds each; on birds 3 and 10 are, by less than .001 a cell."""


@dataclass(frozen=True, eq=False)
class Companions:
    """The regressions of one data set; `log_odds` applies them to its candidates of any moment."""

    Y_hat: Matrix  # log-odds of the predictions
    fold: npt.NDArray[np.intp]  # (n,)
    weights: list[Matrix]  # of every fold, (3 + L, L): c, b, d and W
    n_offered: int

    @classmethod
    def fit(cls, offered: Cells, Y_hat: Any, seed: int = 0, before: Self | None = None) -> Self:
        """Learn from the candidates; `before` is an earlier fit to begin from."""
        n, n_labels = offered.shape
        p = np.clip(np.asarray(Y_hat, np.float32), 0.002, 0.998)
        x: Matrix = np.log(p / (1 - p))
        order = np.random.default_rng([seed, 0xC0]).permutation(n)
        fold = np.empty(n, np.intp)
        fold[order] = np.arange(n) % min(_FOLDS, max(n, 1))
        weights = []
        for place in range(fold.max(initial=0) + 1):
            rows = order[fold[order] != place][: max(_MAX_CELLS // n_labels, 1)]
            begin = _nothing(n_labels) if before is None else before.weights[place]
            weights.append(_fit(offered[rows], x[rows], begin))
        return cls(x, fold, weights, int(offered.sum()))

    def is_stale(self, offered: Cells) -> bool:
        """Tell whether so many candidates were rejected since that a fit finds more."""
        return abs(int(offered.sum()) - self.n_offered) > _FRESH * self.n_offered

    def log_odds(self, offered: Cells) -> Matrix:
        """Return of every cell how likely it is to be offered beside these candidates."""
        out = np.empty(offered.shape, np.float32)
        for place, weights in enumerate(self.weights):
            rows = np.flatnonzero(self.fold == place)
            out[rows] = _Cells.of(offered[rows], self.Y_hat[rows]).log_odds(weights)
        return out


@dataclass(frozen=True, eq=False)
class _Cells:
    x: Matrix
    offered: Cells
    mates: Any  # the candidates, sparse
    alone: Matrix  # 1 where no other label is offered

    @classmethod
    def of(cls, offered: Cells, x: Matrix) -> Self:
        alone = offered.sum(axis=1, keepdims=True) - offered == 0
        return cls(x, offered, sp.csr_array(offered, dtype=np.float32), alone.astype(np.float32))

    def log_odds(self, weights: Matrix) -> Matrix:
        c, b, d = weights[:3]
        return np.asarray(self.mates @ weights[3:] + c + b * self.x + d * self.alone)

    def gradient(self, error: Matrix) -> Matrix:
        return self._sums(error, error * self.x)

    def curvature(self, z: Matrix) -> Matrix:
        """Return the second derivatives by each weight alone."""
        p = expit(z)
        by_cell = p * (1 - p)
        return self._sums(by_cell, by_cell * self.x**2)

    def _sums(self, each: Matrix, with_x: Matrix) -> Matrix:
        own = np.stack([part.sum(axis=0) for part in (each, with_x, each * self.alone)])
        mates = np.asarray(self.mates.T @ each)
        np.fill_diagonal(mates, 0)
        return np.concatenate([own, mates])


def _nothing(n_labels: int) -> Matrix:
    weights = np.zeros((3 + n_labels, n_labels), np.float32)
    weights[1] = 1
    return weights


def _fit(offered: Cells, x: Matrix, begin: Matrix) -> Matrix:
    """Return the weights of the largest posterior, found by L-BFGS in units of their curvature."""
    cells, middle = _Cells.of(offered, x), _nothing(offered.shape[1])
    precision = np.full((len(middle), 1), _COMPANION_PRECISION, np.float32)
    precision[:3, 0] = _PRECISION
    unit = 1 / np.sqrt(cells.curvature(cells.log_odds(begin)) + precision)

    def loss(vector: npt.NDArray[np.float64]) -> tuple[float, npt.NDArray[np.float64]]:
        weights = begin + unit * vector.reshape(middle.shape).astype(np.float32)
        z, away = cells.log_odds(weights), weights - middle
        value = -log_expit(np.where(offered, z, -z)).sum(dtype=np.float64)
        value += (precision * away**2).sum(dtype=np.float64) / 2
        gradient = unit * (cells.gradient(expit(z) - offered) + precision * away)
        return float(value), gradient.ravel().astype(np.float64)

    options = {"maxiter": _STEPS, "ftol": 1e-6}
    found = minimize(loss, np.zeros(begin.size), jac=True, method="L-BFGS-B", options=options)
    return np.asarray(begin + unit * found.x.reshape(middle.shape), np.float32)
