"""Label propagation in closed form: T gradient steps, or the exact minimiser, in a few products.

The paper descends Eq. (3) from Z_0 = Y, T times:

    Z <- Z - gamma [(1 + eta) Z + alpha L_x Z + beta Z L_y - B],   B = Y_hat + eta Y.

The bracket is A(Z) - B with A = c I - h M, where c = 1 + eta + alpha + beta, h = alpha + beta and

    M(Z) = (alpha A_x Z + beta Z A_y) / h

is self-adjoint with spectrum in [-1, 1]. So T steps are exactly Z_T = p(A) Y + q(A) B with
p(x) = (1 - gamma x)^T and q(x) = (1 - p(x)) / x; for T = infinity p = 0 and q = 1/x. As functions
of M both are smooth, and a Chebyshev expansion of degree 3 to 8 has them to float32.

The release restarts Z from Y in every epoch although the paper's Algorithm 1 carries Z on; we
restart, so that Z depends on Y and Y_hat alone.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import comb
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from numpy.polynomial import chebyshev
from scipy.sparse.linalg import LinearOperator, cg

from core.engine.balance import balance
from core.engine.config import PlainConfig
from core.engine.graphs import InstanceGraph, LabelGraph, sparse_tensor
from core.errors import ConfigError, DatasetError, Problem

TOLERANCE = 1e-6
"""What the truncated tail of the expansion may add up to."""

CHANGE_TOLERANCE = 1e-5
"""A change smaller than this, of a whole row, is not followed further."""

_SEPARABLE = 12
"""Degree up to which evidence is computed from powers of the graphs."""

Matrix = npt.NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Evidence:
    """Why a pseudo-label has its value (before balancing): four terms that add up to it."""

    own_candidate: float
    own_prediction: float
    neighbors: float
    related_labels: float
    votes: Matrix  # (n,) what each instance contributes; its own row included
    label_votes: Matrix  # (L,) what each label of the own row contributes

    @property
    def value(self) -> float:
        return self.own_candidate + self.own_prediction + self.neighbors + self.related_labels


class Propagator:
    """Propagation on two fixed graphs.

    Parameters
    ----------
    instance_graph, label_graph : the graphs; alpha, beta : their weights
    eta : weight of the candidates; gamma, n_steps : step size and number of steps;
        `n_steps=None` is the exact minimiser
    """

    def __init__(
        self,
        instance_graph: InstanceGraph,
        label_graph: LabelGraph,
        *,
        alpha: float = 0.1,
        beta: float = 0.01,
        eta: float = 1.0,
        gamma: float = 0.01,
        n_steps: int | None = 200,
    ) -> None:
        PlainConfig(alpha=alpha, beta=beta, eta=eta, gamma=gamma, n_steps=n_steps)
        self.alpha, self.beta, self.eta, self.gamma, self.n_steps = alpha, beta, eta, gamma, n_steps
        self.shape = (instance_graph.n_instances, label_graph.n_labels)
        h = alpha + beta
        # Doubled and weighted once, so that 2 M(Z) is two products and a sum.
        A: Any = instance_graph.normalized if alpha else None
        if alpha:  # at the same places, which are not copied
            data = A.data * np.float32(2 * alpha / h)
            A = sp.csr_array((data, A.indices, A.indptr), shape=A.shape)
        self._A_x: Any = A
        self._A_y: Any = label_graph.normalized * np.float32(2 * beta / h) if beta else None
        self._p, self._q = self._expand()
        self._last: tuple[Any, Any] | None = None

    @property
    def degree(self) -> int:
        """How many operator applications one propagation costs."""
        return len(self._p) - 1

    @property
    def coefficients(self) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """What Y and Y_hat are multiplied by in T_k(M), by degree."""
        return self._p + self.eta * self._q, self._q

    @property
    def instance_weights(self) -> Any:
        """The normalised instance graph, weighted; a matrix of zeros where it has no weight."""
        return (
            sp.csr_array((self.shape[0],) * 2, dtype=np.float32) if self._A_x is None else self._A_x
        )

    @property
    def step_scale(self) -> np.float32:
        """By what a change shrinks, beside the weight of the edge, when it reaches a neighbour."""
        h = self.alpha + self.beta
        return np.float32(h / 2 / (1 + self.eta + h))

    def to(self, device: Any) -> "Propagator":
        """Return the same operator with its matrices, and so its results, on a torch device."""
        import torch

        moved = object.__new__(Propagator)
        moved.__dict__.update(self.__dict__)
        if self._A_x is not None:
            moved._A_x = sparse_tensor(self._A_x, device)
        if self._A_y is not None:
            moved._A_y = torch.as_tensor(self._A_y, device=device)
        return moved

    def propagate(self, Y: Any, Y_hat: Any, rescale: bool = True) -> Any:
        """Return Z, n x L: Z_T from Y toward the minimiser, min-max per label if `rescale`.

        Takes and returns numpy arrays, or tensors after `to(device)`.
        """
        Y, Y_hat = self._checked(Y), self._checked(Y_hat)
        self._last = (Y, Y_hat)
        of_Y, of_Y_hat = self.coefficients
        Z = self._clenshaw(of_Y, Y, of_Y_hat, Y_hat)
        return balance(Z, Y, "minmax") if rescale else Z

    def confidence(self, Z: Any, Y: Any) -> Any:
        """Return what Z, not rescaled, says of each candidate beyond its being one; 0 elsewhere.

        At the minimiser (1 + eta) Z - eta Y = Y_hat - alpha L_x Z - beta Z L_y: the prediction,
        corrected by both graphs. All candidates have Y = 1, so this keeps their order.
        """
        return balance((1 + self.eta) * Z - self.eta * Y, Y, "mask")

    def objective(self, Z: Any, Y: Any, Y_hat: Any) -> tuple[Any, Any, Any, Any]:
        """Return the four terms of Eq. (2): prediction, candidates, instance and label graph."""
        h = self.alpha + self.beta
        squares = (Z * Z).sum()
        half_x, half_y = self.alpha * squares / 2, self.beta * squares / 2
        if self.alpha:
            half_x = half_x - h * _product(Z, self._A_x @ Z) / 4
        if self.beta:
            half_y = half_y - h * _product(Z, Z @ self._A_y) / 4
        to_prediction, to_candidates = (_product(off, off) for off in (Z - to for to in (Y_hat, Y)))
        return to_prediction / 2, self.eta * to_candidates / 2, half_x, half_y

    def evidence(self, i: int, j: int, Y: Any = None, Y_hat: Any = None) -> Evidence:
        """Split Z_ij, before balancing, into what each candidate and prediction contributes.

        The operator is self-adjoint, so its polynomial applied to the indicator of (i, j) holds
        the influence of every cell on it. Y and Y_hat default to those last propagated.
        """
        if Y is None or Y_hat is None:
            if self._last is None:
                raise ConfigError("No evidence yet.", "Give Y and Y_hat, or propagate first.")
            Y, Y_hat = self._last
        Y, Y_hat = self._checked(Y), self._checked(Y_hat)
        if not (0 <= i < self.shape[0] and 0 <= j < self.shape[1]):
            raise ConfigError("No such cell.", f"Cells are {self.shape}; got ({i}, {j}).")
        candidates, predictions = self._p + self.eta * self._q, self._q
        spread = self._spread if self.degree <= _SEPARABLE else self._spread_dense
        c_votes, by_candidates = spread(i, j, candidates, Y)
        p_votes, by_predictions = spread(i, j, predictions, Y_hat)
        votes, label_votes = c_votes + p_votes, by_candidates + by_predictions
        return Evidence(
            own_candidate=float(by_candidates[j]),
            own_prediction=float(by_predictions[j]),
            neighbors=float(votes.sum() - votes[i]),
            related_labels=float(label_votes.sum() - label_votes[j]),
            votes=votes,
            label_votes=label_votes,
        )

    def clamped(self, Y: Any, Y_hat: Any, decided: Any) -> Matrix:
        """Return the minimiser with decided cells held at 0 or 1, not rescaled.

        `decided` maps (i, j) to 0 or 1, or is an n x L array that is NaN or negative where nothing
        was decided. Solved by conjugate gradients over the free cells.
        """
        Y, Y_hat = self._checked(Y), self._checked(Y_hat)
        held, values = self._decisions(decided)
        start = self._clenshaw(self._q * self.eta, Y, self._q, Y_hat)
        if self.n_steps is None and not held.any():
            return np.asarray(start)
        boundary = np.where(held, values, 0).astype(np.float32)
        B = np.where(held, 0, Y_hat + np.float32(self.eta) * Y - self._apply(boundary))

        def free(z: Matrix) -> Matrix:
            out = self._apply(z.reshape(self.shape))
            out[held] = 0
            return out.ravel()

        size = Y.size
        operator = LinearOperator((size, size), matvec=free, dtype=np.float32)
        start = np.where(held, 0, start)
        Z, _ = cg(operator, B.ravel(), x0=start.ravel().astype(np.float32), rtol=1e-6, maxiter=200)
        return np.where(held, boundary, Z.reshape(self.shape)).astype(np.float32)

    def reclamped(
        self, Z: Matrix, held: npt.NDArray[np.bool_], rows: Any, labels: Any, change: Any
    ) -> npt.NDArray[np.int64]:
        """Let changes of some cells spread through a clamped solution, in place.

        Only rows that the changes reach are touched, because influence shrinks by the factor
        h / c or more at every step away; so the cost does not grow with the data.

        Parameters
        ----------
        Z : (n, L), changed in place; held : (n, L), which cells stay as they are
        rows, labels, change : the cells moved from outside and by how much; of a cell that is
            free now, what `residual` says

        Returns
        -------
        the rows that were touched
        """
        at, place = np.unique(np.asarray(rows, np.int64), return_inverse=True)
        E = np.zeros((len(at), self.shape[1]), np.float32)
        np.add.at(E, (place, labels), change)
        touched = np.zeros(self.shape[0], bool)
        while len(at):
            Z[at] += E
            touched[at] = True
            at, E = self._step(at, E * self.step_scale)
            E[held[at]] = 0
            moved = np.abs(E).max(axis=1, initial=0) > CHANGE_TOLERANCE
            at, E = at[moved], E[moved]
        return np.flatnonzero(touched)

    def residual(self, Z: Matrix, Y: Any, Y_hat: Any, rows: Any, labels: Any) -> Matrix:
        """Return by how much each of these cells would move were it free and the others held."""
        h = self.alpha + self.beta
        value = np.asarray(Y_hat[rows, labels] + np.float32(self.eta) * Y[rows, labels])
        if self.alpha:
            sums = self._A_x[rows] @ Z
            value = value + np.float32(h / 2) * sums[np.arange(len(rows)), labels]
        if self.beta:
            value = value + np.float32(h / 2) * (Z[rows] * self._A_y.T[labels]).sum(axis=1)
        out: Matrix = (value / (1 + self.eta + h) - Z[rows, labels]).astype(np.float32)
        return out

    def _step(self, at: npt.NDArray[np.int64], E: Matrix) -> tuple[npt.NDArray[np.int64], Matrix]:
        """Return 2 M(E) of a matrix with these rows and zeros elsewhere, likewise by rows."""
        parts_at, parts = [at[:0]], [E[:0]]
        if self._A_x is not None:
            near = self._A_x[at]
            to, column = np.unique(near.indices, return_inverse=True)
            local = sp.csr_array((near.data, column, near.indptr), shape=(len(at), len(to)))
            parts_at, parts = [*parts_at, to], [*parts, local.T @ E]
        if self._A_y is not None:
            parts_at, parts = [*parts_at, at], [*parts, E @ self._A_y]
        rows, place = np.unique(np.concatenate(parts_at), return_inverse=True)
        out = np.zeros((len(rows), E.shape[1]), np.float32)
        np.add.at(out, place, np.concatenate(parts))
        return rows.astype(np.int64), out

    def _spread(self, i: int, j: int, c: npt.NDArray[Any], values: Matrix) -> tuple[Any, Any]:
        """Return what `values` contribute to cell (i, j) under sum_k c_k T_k(M): by row, in row i.

        Both graphs act on their own side, so M^m on an indicator is a sum of outer products of
        A_x^r e_i and A_y^s e_j, r + s = m: no n x L matrix is ever made.
        """
        powers = chebyshev.cheb2poly(c)
        n = len(powers)
        U, V = (
            np.stack([*_powers(A, at, size, n)], axis=1)
            for A, at, size in ((self._A_x, i, self.shape[0]), (self._A_y, j, self.shape[1]))
        )
        W = np.array([[_weight(powers, r, s) for s in range(n)] for r in range(n)])
        rows = ((values @ V.astype(np.float32)) * (U @ W)).sum(axis=1, dtype=np.float64)
        return rows, values[i] * (V @ (W.T @ U[i]))

    def _spread_dense(self, i: int, j: int, c: npt.NDArray[Any], values: Matrix) -> tuple[Any, Any]:
        """Return the same for degrees at which powers would lose digits."""
        cell = np.zeros(self.shape, np.float32)
        cell[i, j] = 1
        influence = values * self._clenshaw(c, cell, c * 0, np.zeros((1, 1), np.float32))
        return influence.sum(axis=1, dtype=np.float64), influence[i].astype(np.float64)

    def _apply(self, Z: Matrix) -> Matrix:
        """Return A(Z) = (1 + eta + alpha + beta) Z - alpha A_x Z - beta Z A_y."""
        h = self.alpha + self.beta
        out = np.float32(1 + self.eta + h) * Z
        if self.alpha:
            out -= np.float32(h / 2) * (self._A_x @ Z)
        if self.beta:
            out -= np.float32(h / 2) * (Z @ self._A_y)
        return out

    def _clenshaw(self, c: npt.NDArray[Any], Y: Any, d: npt.NDArray[Any], Y_hat: Any) -> Any:
        """Return sum_k T_k(M) (c_k Y + d_k Y_hat), one application of M per degree."""
        b, b_next = float(c[-1]) * Y + float(d[-1]) * Y_hat, None
        for k in range(self.degree - 1, -1, -1):
            out = self._A_x @ b if self._A_x is not None else 0 * b
            if self._A_y is not None:
                out += b @ self._A_y
            if k == 0:
                out *= 0.5
            if b_next is not None:
                out -= b_next
                b_next = None
            _add(out, float(c[k]), Y)
            if d[k]:
                _add(out, float(d[k]), Y_hat)
            b, b_next = out, b
        return b

    def _expand(self) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """Return the Chebyshev coefficients of p and q in M, cut where their tail is negligible."""
        h, eta, gamma, T = self.alpha + self.beta, self.eta, self.gamma, self.n_steps
        c = 1 + eta + h

        def p(m: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
            return np.zeros_like(m) if T is None else (1 - gamma * (c - h * m)) ** T

        def q(m: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
            return (1 - p(m)) / (c - h * m)

        if h == 0:
            return p(np.zeros(1)), q(np.zeros(1))
        n_nodes = 16
        while True:
            n_nodes *= 2
            coefficients: Any = [chebyshev.chebinterpolate(f, n_nodes) for f in (p, q)]
            # Y reaches Z through p and eta q, Y_hat through q: bound both by what they multiply.
            size = np.abs(coefficients[0]) + (1 + eta) * np.abs(coefficients[1])
            tail = np.cumsum(size[::-1])[::-1]
            degree = int(np.argmax(np.append(tail[1:], 0.0) <= TOLERANCE))
            if degree < n_nodes // 2 or n_nodes >= 4096:
                return coefficients[0][: degree + 1], coefficients[1][: degree + 1]

    def _checked(self, values: Any) -> Any:
        if not isinstance(values, np.ndarray) and hasattr(values, "device"):
            return values
        array = values.toarray() if sp.issparse(values) else np.asarray(values)
        array = np.ascontiguousarray(array, dtype=np.float32)
        if array.shape != self.shape:
            wrong = f"labels must be {self.shape[0]} x {self.shape[1]}, as the graphs are"
            raise DatasetError([Problem(wrong, "Use the same data.", True, value=str(array.shape))])
        if not np.isfinite(array.sum(dtype=np.float64)):
            raise DatasetError([Problem("labels and predictions must be finite", "", fatal=True)])
        return array

    def _decisions(self, decided: Any) -> tuple[npt.NDArray[np.bool_], Matrix]:
        if isinstance(decided, Mapping):
            values = np.full(self.shape, np.nan, np.float32)
            for cell, verdict in decided.items():
                values[cell] = verdict
        else:
            values = np.asarray(decided, dtype=np.float32)
        held = values >= 0
        if values.shape != self.shape or not np.isin(values[held], (0, 1)).all():
            wrong = f"decisions must be 0 or 1 on cells of a {self.shape} table"
            raise DatasetError([Problem(wrong, "Leave undecided cells out.", fatal=True)])
        return held, values


def _powers(A: Any, at: int, size: int, n: int) -> Iterator[npt.NDArray[np.float64]]:
    """Yield (A/2)^r e_at for r < n; zero after the first where there is no graph."""
    vector = np.zeros(size)
    vector[at] = 1
    for _ in range(n):
        yield vector
        vector = np.zeros(size) if A is None else A @ vector / 2


def _weight(powers: npt.NDArray[np.float64], r: int, s: int) -> float:
    """Return how often A_x^r A_y^s appears in the polynomial with these coefficients."""
    return float(powers[r + s] * comb(r + s, r)) if r + s < len(powers) else 0.0


def _add(to: Any, factor: float, values: Any) -> None:
    """Add a multiple, in place; of tensors without another matrix in between."""
    if not isinstance(to, np.ndarray):
        to.add_(values, alpha=factor)
    else:
        to += factor * values


def _product(Z: Any, other: Any) -> Any:
    other *= Z
    return other.sum()
