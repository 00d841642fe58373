"""What instances that are alike, in features and in their other candidates, are offered.

    w_ir = exp(8 cos(x_i, x_r) - number of other labels that only one of i and r is offered)
    P(offered_ij) = sum over r of w_ir offered_rj / sum over r of w_ir

Label j itself does not count in w: in the weights of all labels, whoever differs in j is too light
by a factor e, which is mended in the sums. So all labels are answered by one product.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from core.data.dataset import Features

Matrix = npt.NDArray[np.float32]

_SHARPNESS = 8.0
"""Of the cosine. 4, 8 and 12, with 0.5, 1 and 1.5 for a label that differs, are alike: beside the
predictions, the order *Most likely false* takes 0 to 8 % fewer decisions on six sets with each."""

_LABEL_RATE = np.float32(0.02)
"""What the label's rate counts: where all that are alike agree, an exception is still possible."""

_MAX_PAIRS, _FEWEST, _BLOCK = 60_000_000, 1000, 2**22
"""Pairs of instances that are compared, at most (2 s of a processor); instances that each is
compared with, at least; pairs at a time."""


def by_neighbors(X: Features, offered: npt.NDArray[np.bool_], seed: int = 0) -> Matrix | None:
    """Return P(offered), n x L, of every cell without the cell itself.

    Of many instances each is compared with a sample; none where that would be too small.
    """
    n = len(offered)
    size = min(n, _MAX_PAIRS // max(n, 1))
    if size < min(n, _FEWEST):
        return None
    others = np.sort(np.random.default_rng([seed, 0x4E]).permutation(n)[:size])
    Y, U = offered.astype(np.float32), _unit_rows(X)
    among, rate = Y[others], (Y.sum(axis=0) + np.float32(0.5)) / np.float32(n + 1)
    near, count = U[others].T, Y.sum(axis=1)
    out, step = np.empty_like(Y), max(1, _BLOCK // max(size, 1))
    for start in range(0, n, step):
        at = slice(start, min(start + step, n))
        cosine = U[at] @ near
        cosine = cosine.toarray() if sp.issparse(cosine) else cosine
        differ = count[at, None] + count[others] - 2 * (Y[at] @ among.T)
        weights = np.float32(_SHARPNESS) * cosine - differ
        weights[np.arange(start, at.stop)[:, None] == others] = -np.inf
        weights = np.exp(weights - np.maximum(weights.max(axis=1, keepdims=True), -1e9))
        out[at] = _without_own(weights @ among, weights.sum(axis=1, keepdims=True), offered[at])
    return np.asarray((1 - _LABEL_RATE) * out + _LABEL_RATE * rate)


def _without_own(yes: Matrix, total: Matrix, offered: npt.NDArray[np.bool_]) -> Matrix:
    """Return the weighted share of yes, every cell's own label left out of the weights."""
    no = np.maximum(total - yes, 0)
    too_light = np.exp(np.float32(1))
    yes, no = np.where(offered, yes, too_light * yes), np.where(offered, too_light * no, no)
    return np.asarray(yes / np.maximum(yes + no, np.float32(1e-30)))


def _unit_rows(X: Features) -> Any:
    """Return rows of length 1; dense features are standardised before."""
    if sp.issparse(X):
        X = sp.csr_array(X, dtype=np.float32)
        length = np.sqrt(np.asarray(X.multiply(X).sum(axis=1))).ravel()
        return sp.diags_array(_inverse(length)) @ X
    X = np.asarray(X, np.float32)
    X = (X - X.mean(axis=0)) * _inverse(X.std(axis=0))
    return X * _inverse(np.linalg.norm(X, axis=1))[:, None]


def _inverse(x: Any) -> Matrix:
    return np.asarray(np.divide(1, x, where=x > 1e-9, out=np.zeros_like(x, np.float32)))
