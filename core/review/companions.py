"""What the other candidates of an instance say of each one.

Predictions come from features alone. Which other labels an instance carries says more: some go
together, some never do, and where every instance has a label, the only one is right. One logistic
regression per label, all fitted at once, on the instance's other candidates and on what some models
say that did not see the cell: the run's prediction, and instances that are alike.

    logit P(offered_ij) = c_j + d_j [no other] + sum over p of b_pj logit(P_p(offered_ij))
                          + sum over k of W_kj offered_ik

Instances are judged by regressions that did not see them. False candidates fall on cells that the
rest speaks against: the less likely a candidate was to be offered, the likelier it is false.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
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

_PRECISION = (1.0, 0.1, 4.0)
"""Of c around 0, d around 0, b around an equal part of 1."""

_COMPANION_PRECISION = 1.0
"""Of W around 0. Of .3, 1, 3 and 10 the best by likelihood on emotions, image and medical, three
seeds each; on birds 3 and 10 are, by less than .001 a cell."""


@dataclass(frozen=True, eq=False)
class Companions:
    """The regressions of one data set; `log_odds` applies them to its candidates of any moment."""

    x: Matrix  # (P, n, L), what each model says, as log-odds
    fold: npt.NDArray[np.intp]  # (n,)
    weights: list[Matrix]  # of every fold, (2 + P + L, L): c, d, b and W
    n_offered: int

    @classmethod
    def fit(cls, offered: Cells, said: Sequence[Any], seed: int = 0) -> Self:
        """Learn from the candidates and what each model says, P(offered) of every cell."""
        n, n_labels = offered.shape
        p = np.clip(np.stack(said), 0.002, 0.998, dtype=np.float32)
        fold = np.random.default_rng([seed, 0xC0]).permutation(n) % min(_FOLDS, max(n, 1))
        begin = _nothing(len(said), n_labels)
        one = cls(np.log(p / (1 - p)), fold, [begin] * (fold.max(initial=0) + 1), 0)
        return one.refit(offered)

    def refit(self, offered: Cells) -> Self:
        """Learn from other candidates, beginning with what is known."""
        weights = []
        for place, begin in enumerate(self.weights):
            rows = np.flatnonzero(self.fold != place)
            rows = rows[:: -(-len(rows) * offered.shape[1] // _MAX_CELLS) or 1]
            weights.append(_fit(offered[rows], self.x[:, rows], begin))
        return replace(self, weights=weights, n_offered=int(offered.sum()))

    def is_stale(self, offered: Cells) -> bool:
        """Tell whether so many candidates were rejected since that a fit finds more."""
        return abs(int(offered.sum()) - self.n_offered) > _FRESH * self.n_offered

    def log_odds(self, offered: Cells) -> Matrix:
        """Return of every cell how likely it is to be offered beside these candidates."""
        out = np.empty(offered.shape, np.float32)
        for place, weights in enumerate(self.weights):
            rows = np.flatnonzero(self.fold == place)
            out[rows] = _Cells.of(offered[rows], self.x[:, rows]).log_odds(weights)
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
        (c, d), b, W = np.split(weights, [2, 2 + len(self.x)])
        out = np.asarray(self.mates @ W + c + d * self.alone)
        for slope, said in zip(b, self.x, strict=True):
            out += slope * said
        return out

    def gradient(self, error: Matrix) -> Matrix:
        return self._sums(error, [(error * said).sum(axis=0) for said in self.x])

    def curvature(self, z: Matrix) -> Matrix:
        """Return the second derivatives by each weight alone."""
        p = expit(z)
        by_cell = p * (1 - p)
        return self._sums(by_cell, [(by_cell * said**2).sum(axis=0) for said in self.x])

    def _sums(self, each: Matrix, of_models: list[Matrix]) -> Matrix:
        own = np.stack([each.sum(axis=0), (each * self.alone).sum(axis=0), *of_models])
        mates = np.asarray(self.mates.T @ each)
        np.fill_diagonal(mates, 0)
        return np.concatenate([own, mates])


def _nothing(n_models: int, n_labels: int) -> Matrix:
    weights = np.zeros((2 + n_models + n_labels, n_labels), np.float32)
    weights[2 : 2 + n_models] = 1 / n_models
    return weights


def _fit(offered: Cells, x: Matrix, begin: Matrix) -> Matrix:
    """Return the weights of the largest posterior, found by L-BFGS in units of their curvature."""
    cells, middle = _Cells.of(offered, x), _nothing(len(x), offered.shape[1])
    precision = np.full((len(middle), 1), _COMPANION_PRECISION, np.float32)
    precision[:2, 0], precision[2 : 2 + len(x)] = _PRECISION[:2], _PRECISION[2]
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
