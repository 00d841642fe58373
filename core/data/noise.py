"""How true label sets become candidate sets, to try the program where the truth is known."""

from typing import Any

import numpy as np
import numpy.typing as npt

from core.errors import ConfigError

Labels = npt.NDArray[np.uint8]


def uniform_candidates(truth: Any, r: int, seed: int = 0) -> Labels:
    """Add r false labels per instance, drawn evenly; all labels where fewer than r are false."""
    T = np.asarray(truth) > 0
    if r < 0:
        raise ConfigError("r must not be negative.", f"Got {r}.")
    order = np.random.default_rng(seed).random(T.shape)
    order[T] = np.inf
    return _with_first(T, order, np.full(len(T), r))


def false_share_candidates(
    truth: Any, share: float, seed: int = 0, resemblance: Any = None
) -> Labels:
    """Add false labels until this share of all candidates is false.

    Drawn evenly over all cells that are not true, or weighted by `resemblance`, (n, L).
    """
    T = np.asarray(truth) > 0
    if not 0 <= share < 1:
        raise ConfigError("A share of false candidates is from 0 to below 1.", f"Got {share}.")
    weight = np.ones(T.shape) if resemblance is None else np.asarray(resemblance, np.float64)
    weight = np.where(T, 0.0, weight)
    waiting = np.random.default_rng(seed).exponential(size=T.shape)
    waiting = np.divide(waiting, weight, where=weight > 0, out=np.full(T.shape, np.inf))
    n_false = min(round(share / (1 - share) * int(T.sum())), int((weight > 0).sum()))
    Y = T.copy().ravel()
    Y[np.argsort(waiting, axis=None, kind="stable")[:n_false]] = True
    return np.asarray(Y.reshape(T.shape), np.uint8)


def confusable_candidates(
    truth: Any,
    resemblance: Any,
    seed: int = 0,
    *,
    low: int = 1,
    high: int = 3,
    uniform_share: float = 0.2,
) -> Labels:
    """Add low to high false labels per instance, those it resembles first, some evenly.

    Parameters
    ----------
    truth : (n, L) of 0/1
    resemblance : (n, L) non-negative; how much an instance looks like each label, e.g.
        `resemblance(X, truth)`
    uniform_share : the share of false labels drawn without regard to resemblance
    """
    T = np.asarray(truth) > 0
    weight = np.asarray(resemblance, dtype=np.float64)
    if weight.shape != T.shape or not np.isfinite(weight).all() or (weight < 0).any():
        shape = f"Must be finite, not negative, of shape {T.shape}; got shape {weight.shape}."
        raise ConfigError("The resemblance cannot be used.", shape)
    rng = np.random.default_rng(seed)
    total = np.where(T, 0, weight).sum(axis=1, keepdims=True)
    even = 1 / np.maximum((~T).sum(axis=1, keepdims=True), 1)
    likely = np.divide(weight, total, where=total > 0, out=np.broadcast_to(even, T.shape).copy())
    chance = np.where(T, 0, (1 - uniform_share) * likely + uniform_share * even)
    # The smallest of exponential waiting times draws without replacement, weighted by chance.
    waiting = np.divide(
        rng.exponential(size=T.shape), chance, where=chance > 0, out=np.full(T.shape, np.inf)
    )
    return _with_first(T, waiting, rng.integers(low, high + 1, len(T)))


def resemblance(X: Any, truth: Any, sharpness: float = 4.0) -> npt.NDArray[np.float64]:
    """Return how much each instance looks like each label: cosine to its mean, sharpened."""
    T = (np.asarray(truth) > 0).astype(np.float64)
    X = np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=np.float64)
    X = X - X.mean(axis=0)
    means = T.T @ X / np.maximum(T.sum(axis=0), 1)[:, None]

    def unit(V: Any) -> Any:
        length = np.linalg.norm(V, axis=1, keepdims=True)
        return np.divide(V, length, where=length > 0, out=np.zeros_like(V))

    return np.asarray(np.exp(sharpness * (unit(X) @ unit(means).T)))


def _with_first(
    T: npt.NDArray[np.bool_], order: npt.NDArray[np.float64], count: npt.NDArray[np.int64]
) -> Labels:
    """Add to each row of T its `count` labels with the smallest finite order."""
    rank = np.argsort(np.argsort(order, axis=1), axis=1)
    added = (rank < count[:, None]) & np.isfinite(order)
    return (T | added).astype(np.uint8)
