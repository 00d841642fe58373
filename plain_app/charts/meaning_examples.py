"""The examples that pictures of settings compute with."""

from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from core.engine.config import PlainConfig
from core.engine.graphs import InstanceGraph, LabelGraph
from core.engine.propagation import Propagator

Line = list[tuple[float, float]]


def rounded_line(x: Any, y: Any) -> Line:
    """Return points, rounded: they are sent to the browser."""
    return [(round(float(a), 5), round(float(b), 5)) for a, b in zip(x, y, strict=True)]


def descent(rate: float, momentum: float, steps: int = 40) -> Line:
    """Return the distance to the bottom of x² · 10/2, step by step, as the network's SGD goes."""
    x, speed, line = 1.0, 0.0, [(0.0, 1.0)]
    for at in range(1, steps + 1):
        speed = momentum * speed + 10 * x
        x = float(np.clip(x - rate * speed, -1e3, 1e3))
        line.append((float(at), min(abs(x), 3.0)))
    return line


def example_confidence(
    config: PlainConfig,
    *,
    alpha: float | None = None,
    beta: float | None = None,
    near: float = 0.5,
    beside: float = 0.5,
) -> float:
    """Return the confidence of an example's candidate, propagated exactly.

    Instance 0 has six neighbours, near each other too, and a related label. Its candidate is
    predicted 0.5, a share `near` of the neighbours has the label, and the related label is
    predicted as `beside`.
    """
    instances, labels = _example()
    Y, Y_hat = np.ones((7, 2), np.float32), np.full((7, 2), 0.5, np.float32)
    has_it = np.arange(6) < round(6 * near)
    Y[1:, 0], Y_hat[1:, 0] = has_it, np.where(has_it, 0.95, 0.05)
    Y_hat[0, 1] = beside
    propagator = Propagator(
        instances,
        labels,
        alpha=config.alpha if alpha is None else alpha,
        beta=config.beta if beta is None else beta,
        eta=config.eta,
        n_steps=None,
    )
    Z = propagator.propagate(Y, Y_hat, rescale=False)
    return float(np.clip(propagator.confidence(Z, Y)[0, 0], 0, 1))


@lru_cache(1)
def _example() -> tuple[InstanceGraph, LabelGraph]:
    import scipy.sparse as sp

    A = 1 - np.eye(7, dtype=np.float32)
    labels = np.array([[0, 0.5], [0.5, 0]], np.float32)
    return InstanceGraph.from_affinity(sp.csr_array(A)), LabelGraph.from_weights(labels)


@lru_cache(1)
def kernel_share() -> npt.NDArray[np.float64]:
    """Return how much of a Gaussian kernel on 200 points its first m directions hold."""
    points = np.random.default_rng(0).normal(size=(200, 4))
    squares = ((points[:, None] - points) ** 2).sum(axis=2)
    eigenvalues = np.linalg.eigvalsh(np.exp(-squares / np.median(squares)))[::-1]
    return np.asarray(np.cumsum(eigenvalues) / eigenvalues.sum())
