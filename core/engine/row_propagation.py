"""One row of Z for many settings: what moves while a person turns the weights."""

from typing import Any

import numpy as np
import numpy.typing as npt

from core.engine.graphs import InstanceGraph, LabelGraph
from core.engine.propagation import TOLERANCE, Matrix, Propagator


class RowPropagation:
    """One row of Z under any weights: what only the graphs and labels decide is done once.

    In the eigenbasis of A_y every label is a column of its own, on which A is a function of A_x
    alone. So row i needs only the vectors T_k(A_x) e_i and their products with Y and Y_hat; for
    other weights, only the coefficients of a Chebyshev expansion in A_x change.
    """

    def __init__(
        self,
        instance_graph: InstanceGraph,
        label_graph: LabelGraph,
        i: int,
        Y: Matrix,
        Y_hat: Matrix,
    ) -> None:
        self._A_x, self._values = instance_graph.normalized, (Y, Y_hat)
        self._mu, self._basis = np.linalg.eigh(label_graph.normalized.astype(np.float64))
        start = np.zeros(instance_graph.n_instances)
        start[i] = 1
        self._vectors = [start, self._A_x @ start]
        self._terms: tuple[npt.NDArray[Any], npt.NDArray[Any]] | None = None

    def row(self, propagator: Propagator) -> Matrix:
        """Return row i of Z, not rescaled, under a propagator's weights (not its graphs)."""
        p, q = self._coefficients(propagator)
        of_y, of_y_hat = self._products(len(p))
        in_basis = ((p + propagator.eta * q) * of_y + q * of_y_hat).sum(axis=0)
        return np.asarray(self._basis @ in_basis, np.float32)

    def _coefficients(self, to: Propagator) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """Return p's and q's coefficients in A_x, (degree + 1, L), their tail negligible."""
        n_nodes = 16
        while True:
            at = np.pi * (np.arange(n_nodes) + 0.5) / n_nodes
            x = np.cos(at)[:, None]
            spectrum = 1 + to.eta + to.alpha * (1 - x) + to.beta * (1 - self._mu)
            p = np.zeros_like(spectrum)
            if to.n_steps is not None:
                p = (1 - to.gamma * spectrum) ** to.n_steps
            q = (1 - p) / spectrum
            cosines = np.cos(np.arange(n_nodes)[:, None] * at) * (2 / n_nodes)
            cosines[0] /= 2
            p, q = cosines @ p, cosines @ q
            size = (np.abs(p) + (1 + to.eta) * np.abs(q)).max(axis=1)
            tail = np.cumsum(size[::-1])[::-1]
            degree = int(np.argmax(np.append(tail[1:], 0.0) <= TOLERANCE))
            if degree < n_nodes // 2 or n_nodes >= 4096:
                return p[: degree + 1], q[: degree + 1]
            n_nodes *= 2

    def _products(self, n: int) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """Return (T_k(A_x) e_i)' Y and Y_hat in the eigenbasis, for k < n."""
        if self._terms is None or len(self._terms[0]) < n:
            while len(self._vectors) < n:
                last, before = self._vectors[-1], self._vectors[-2]
                self._vectors.append(2 * (self._A_x @ last) - before)
            U = np.array(self._vectors, np.float32)
            Y, Y_hat = self._values
            self._terms = ((U @ Y) @ self._basis, (U @ Y_hat) @ self._basis)
        return self._terms[0][:n], self._terms[1][:n]
