"""What our engine is timed against: the same method computed the way the authors' release does.

T sparse products of scipy per propagation, numpy slices copied into tensors for every batch,
autograd and torch's SGD, prediction batch by batch. Kept on the CPU. Never used outside benchmarks.
"""

from collections.abc import Iterator
from time import perf_counter
from typing import Any

import faiss
import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import torch
from sklearn.preprocessing import MinMaxScaler

from core.engine.config import PlainConfig
from core.engine.network import hidden_sizes

Matrix = npt.NDArray[np.float32]


def instance_graph(X: Matrix, k: int, rho: float) -> sp.csr_matrix:
    """Return the normalised graph of the k hits after the first, cosines raised to rho."""
    X = X.copy()
    faiss.normalize_L2(X)
    index = faiss.IndexFlatIP(X.shape[1])
    index.add(X)
    cosines, neighbors = index.search(X, k + 1)
    n = len(X)
    entries = (
        (cosines[:, 1:] ** rho).ravel(),
        (np.repeat(np.arange(n), k), neighbors[:, 1:].ravel()),
    )
    W = sp.csr_matrix(entries, shape=(n, n))
    W = W + W.T
    degree = np.asarray(W.sum(axis=1)).ravel()
    D = sp.diags(1 / np.sqrt(np.where(degree > 0, degree, 1)))
    return sp.csr_matrix(D @ W @ D, dtype=np.float32)


def label_graph(Y: Matrix) -> npt.NDArray[np.float64]:
    """Return the normalised co-occurrence, pair by pair."""
    n_labels = Y.shape[1]
    R = np.zeros((n_labels, n_labels))
    for i in range(n_labels):
        for j in range(n_labels):
            if i != j:
                total = Y[:, i].sum() + Y[:, j].sum()
                R[i, j] = Y[:, i] @ Y[:, j] / total if total else 1e-5
    with np.errstate(divide="ignore", invalid="ignore"):
        scale = np.diag(1 / np.sqrt(R.sum(axis=1)))
        return np.nan_to_num(scale @ R @ scale)


def propagate(
    W: sp.csr_matrix, A_y: npt.NDArray[Any], Y: Matrix, Y_hat: Matrix, config: PlainConfig
) -> Matrix:
    """Take T gradient steps from Y, one sparse and one dense product each."""
    Y_, P, A = (torch.from_numpy(np.asarray(one, np.float32)) for one in (Y, Y_hat, A_y))
    Z = Y_
    with torch.no_grad():
        for _ in range(config.n_steps or 0):
            WZ = torch.from_numpy(W.dot(Z.numpy()))
            gradient = (
                config.alpha * (Z - WZ)
                + config.eta * (Z - Y_)
                + (Z - P)
                + config.beta * (Z - Z @ A)
            )
            Z = Z - config.gamma * gradient
    return Z.numpy()


def balanced(Z: Matrix) -> Matrix:
    return np.asarray(np.clip(MinMaxScaler().fit_transform(Z), 0, 1), np.float32)


class Reference:
    """The alternating training, stage by stage."""

    def __init__(self, X: Matrix, Y: Matrix, config: PlainConfig) -> None:
        self.X, self.Y, self.config = X, Y.astype(np.float32), config
        torch.manual_seed(config.seed)
        self._rng = np.random.default_rng(config.seed)
        first, second = hidden_sizes(Y.shape[1])
        self.net = torch.nn.Sequential(
            torch.nn.Linear(X.shape[1], first),
            torch.nn.ReLU(),
            torch.nn.Linear(first, second),
            torch.nn.ReLU(),
            torch.nn.Linear(second, Y.shape[1]),
            torch.nn.Sigmoid(),
        )
        self._sgd = torch.optim.SGD(
            self.net.parameters(),
            lr=config.learning_rate,
            momentum=config.momentum,
            weight_decay=config.weight_decay,
        )

    def build(self) -> None:
        self.W = instance_graph(self.X, self.config.k, self.config.rho)
        self.A_y = label_graph(self.Y)

    def propagate(self, Y_hat: Matrix) -> Matrix:
        return balanced(propagate(self.W, self.A_y, self.Y, Y_hat, self.config))

    def train_epoch(self, Z: Matrix) -> None:
        order, size = self._rng.permutation(len(self.X)), self.config.batch_size
        for start in range(0, len(order), size):
            self._sgd.zero_grad()
            at = order[start : start + size]
            x, z = torch.from_numpy(self.X[at]).float(), torch.from_numpy(Z[at]).float()
            torch.nn.functional.binary_cross_entropy(self.net(x), z).backward()  # type: ignore[no-untyped-call]
            self._sgd.step()

    def predict(self) -> Matrix:
        X, size = torch.from_numpy(self.X), self.config.batch_size
        with torch.no_grad():
            parts = [self.net(X[i : i + size]).numpy() for i in range(0, len(X), size)]
        return np.concatenate(parts)

    def epochs(self) -> Iterator[dict[str, float]]:
        """Run the training, telling the seconds of every stage of every epoch."""
        start = perf_counter()
        self.build()
        yield {"graph": perf_counter() - start}
        Y_hat = self.Y
        for _ in range(self.config.epochs):
            clock = [perf_counter()]
            Z = self.propagate(Y_hat)
            clock.append(perf_counter())
            self.train_epoch(Z)
            clock.append(perf_counter())
            Y_hat = self.predict()
            clock.append(perf_counter())
            yield dict(zip(("propagate", "train", "predict"), np.diff(clock).tolist(), strict=True))
