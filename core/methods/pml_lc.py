"""PML-lc-style: confidences and a ranking classifier by turns, with label correlations."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from scipy.optimize import minimize

from core.engine.graphs import build_label_graph
from core.methods.base import CandidateEstimator, Matrix, Setting, Step, row_min_max, with_one

N_CONFIDENCE_STEPS = 30
_CELLS_AT_ONCE = 2**22


class PMLLCStyle(CandidateEstimator):
    """After PML-lc (Xie and Huang, AAAI 2018): confidences that correlated labels share.

    min over W, P of 1/2 ||W||^2 + C1 sum_i R_i(p_i) + C2 sum_i p_i' L p_i + C3 ||P - P_0||^2 with
    R_i(p) = 1/(L-1) sum_jk max(0, p_j - p_k) max(0, 1 - (f_j - f_k))^2, f = W'[x, 1],
    L the Laplacian of the labels' co-occurrence, P_0 even over the candidates, subject to
    0 <= P <= Y and rows of P summing to at least 1.

    The frame is from the abstract; the ranking loss over all pairs is that of the same authors'
    later code (there with a plain hinge). From memory, not verified: the constraints and the two
    last terms. Ours: the squared hinge (its gradient has no jumps), L-BFGS in W, projected steps in
    P that are taken only where a row's objective falls, confidences P divided by each row's
    maximum. The paper's code was not found; this is not a reproduction.

    Parameters
    ----------
    C1, C2, C3 : weights of ranking, correlations and the even start
    rounds : of W and P; max_iter : steps of L-BFGS in each
    """

    assumes = "A candidate is the truer the easier it ranks above what was not offered."
    settings: ClassVar = {
        "C1": Setting(1e-6, 1e6, "Weight of ranking errors."),
        "C2": Setting(0, 1e6, "Weight of what ties confidences together."),
        "C3": Setting(0, 1e6, "Weight of the candidates as given."),
        "rounds": Setting(1, 1000, "Rounds of classifier and confidences."),
        "max_iter": Setting(1, 10_000, "Steps of the classifier in a round."),
    }

    def __init__(
        self,
        C1: float = 1.0,
        C2: float = 1.0,
        C3: float = 1.0,
        rounds: int = 10,
        max_iter: int = 30,
        scale: str = "minmax",
    ) -> None:
        self.C1, self.C2, self.C3 = C1, C2, C3
        self.rounds, self.max_iter, self.scale = rounds, max_iter, scale

    @property
    def n_steps(self) -> int:
        return self.rounds + 1

    def _iterate(self, X: Any, Y: Matrix, state: Mapping[str, Any]) -> Iterator[Step]:
        ranking = Ranking(Y, self.C1)
        Phi = with_one(X)
        P_0 = Y / np.maximum(Y.sum(axis=1, keepdims=True), 1)
        P = state.get("P", P_0)
        W = state.get("W", np.zeros((Phi.shape[1], Y.shape[1])))
        self.objectives_: list[float] = list(map(float, state.get("objectives", ())))

        def step() -> Step:
            now = {"P": P, "W": W, "objectives": np.array(self.objectives_)}
            # Rows with many candidates share out little to each: rows are compared by their best.
            found = P / np.maximum(P.max(axis=1, keepdims=True), 1e-12)
            return Step(lambda: found, lambda: self.objectives_[-1], lambda: now)

        while len(self.objectives_) < 2 * self.rounds and not self._is_still():
            W = self._W = fit_ranking(Phi, ranking, P, W, self.max_iter)
            pull = self._pull(X, Y, P)
            self.objectives_.append(self._objective(W, Phi @ W, P, P_0, ranking, pull))
            P = ranking.fit_confidences(Phi @ W, P, P_0, pull, self.C3)
            self.objectives_.append(self._objective(W, Phi @ W, P, P_0, ranking, pull))
            yield step()
        self._W = fit_ranking(Phi, ranking, P, W, self.max_iter)
        yield step()

    def _is_still(self) -> bool:
        """Whether the last confidences hardly lowered the objective."""
        *_, before, now = (np.inf, 0.0, *self.objectives_)
        return bool(before - now < 1e-3 * now)

    def _pull(self, X: Any, Y: Matrix, P: Matrix) -> "Pull":
        n_labels = Y.shape[1]
        L = np.eye(n_labels) - build_label_graph(Y.astype(np.uint8)).normalized
        return Pull(self.C2 * np.asarray(L, np.float64), np.zeros_like(Y))

    def _scores(self, X: Any) -> Matrix:
        return row_min_max(np.asarray(with_one(X) @ self._W))

    def _objective(
        self, W: Matrix, F: Matrix, P: Matrix, P_0: Matrix, ranking: "Ranking", pull: "Pull"
    ) -> float:
        own = ranking.row_values(F, P) + pull.row_values(P)
        return float((W**2).sum() / 2 + own.sum() + self.C3 * ((P - P_0) ** 2).sum())


@dataclass(frozen=True)
class Pull:
    """p'Qp + c'p of every row: what ties confidences together beside the ranking."""

    Q: Matrix  # (L, L)
    c: Matrix  # (n, L)

    def row_values(self, P: Matrix) -> Matrix:
        return np.asarray(((P @ self.Q + self.c) * P).sum(axis=1))

    def gradient(self, P: Matrix) -> Matrix:
        return np.asarray(2 * P @ self.Q + self.c)


class Ranking:
    """The pairwise loss; only candidates can have more confidence than another label."""

    def __init__(self, Y: Matrix, C1: float) -> None:
        self._rows, self._labels = np.nonzero(Y)
        self._Y = Y
        self._weight = C1 / max(Y.shape[1] - 1, 1)
        n_cells = len(self._rows)
        one = np.ones(n_cells)
        self._to_row = sp.csr_array((one, (self._rows, np.arange(n_cells))), (len(Y), n_cells))
        step = max(1, _CELLS_AT_ONCE // Y.shape[1])
        self._chunks = [slice(a, a + step) for a in range(0, n_cells, step)]

    def _pairs(self, M: Matrix, chunk: slice) -> Matrix:
        """Return m_j - m_k of each candidate cell j of the chunk with every label k."""
        rows = self._rows[chunk]
        return np.asarray(M[rows, self._labels[chunk]][:, None] - M[rows])

    def row_values(self, F: Matrix, P: Matrix) -> Matrix:
        values = np.zeros(len(F))
        for chunk in self._chunks:
            slack = np.maximum(1 - self._pairs(F, chunk), 0)
            cells = (np.maximum(self._pairs(P, chunk), 0) * slack**2).sum(axis=1)
            values += self._to_row[:, chunk] @ cells
        return np.asarray(self._weight * values)

    def loss(self, F: Matrix, P: Matrix) -> tuple[float, Matrix]:
        """Return the loss of scores F and its gradient."""
        total, G = 0.0, np.zeros_like(F)
        for chunk in self._chunks:
            D = np.maximum(1 - self._pairs(F, chunk), 0)
            weighed = np.maximum(self._pairs(P, chunk), 0) * D
            total += float(np.vdot(weighed, D))
            weighed *= 2 * self._weight
            G += self._to_row[:, chunk] @ weighed
            at = self._rows[chunk], self._labels[chunk]
            G[at] -= weighed.sum(axis=1)
        return self._weight * total, G

    def fit_confidences(self, F: Matrix, P: Matrix, P_0: Matrix, pull: Pull, C3: float) -> Matrix:
        """Return better confidences for scores F: a step is taken in rows whose objective falls."""

        def values(P: Matrix) -> Matrix:
            near = C3 * ((P - P_0) ** 2).sum(axis=1)
            return np.asarray(self.row_values(F, P) + pull.row_values(P) + near)

        value, step = values(P), np.full((len(P), 1), 0.5)
        for _ in range(N_CONFIDENCE_STEPS):
            G = self._confidence_gradient(F, P) + pull.gradient(P) + 2 * C3 * (P - P_0)
            new = project(P - step * G, self._Y)
            reached = values(new)
            better = reached < value
            P = np.where(better[:, None], new, P)
            value = np.where(better, reached, value)
            step = np.where(better[:, None], step, step / 2)
        return P

    def _confidence_gradient(self, F: Matrix, P: Matrix) -> Matrix:
        G = np.zeros_like(P)
        for chunk in self._chunks:
            slack = np.maximum(1 - self._pairs(F, chunk), 0) ** 2
            slack *= self._pairs(P, chunk) > 0
            G -= self._to_row[:, chunk] @ slack
            at = self._rows[chunk], self._labels[chunk]
            G[at] += slack.sum(axis=1)
        return np.asarray(self._weight * G)


def fit_ranking(Phi: Any, ranking: Ranking, P: Matrix, W: Matrix, max_iter: int) -> Matrix:
    """Minimise 1/2 ||W||^2 + the ranking loss from W."""

    def objective(flat: Matrix) -> tuple[float, Matrix]:
        W_now = flat.reshape(W.shape)
        value, G = ranking.loss(np.asarray(Phi @ W_now), P)
        return value + float(flat @ flat) / 2, flat + np.asarray(Phi.T @ G).ravel()

    found = minimize(
        objective, W.ravel(), jac=True, method="L-BFGS-B", options={"maxiter": max_iter}
    )
    return np.asarray(found.x).reshape(W.shape)


def project(P: Matrix, Y: Matrix) -> Matrix:
    """Return the nearest point with 0 <= P <= Y and rows (with candidates) summing to 1 or more."""
    P = P * Y
    cut = np.clip(P, 0, Y)
    few = (cut.sum(axis=1) < 1) & Y.any(axis=1)
    if not few.any():
        return cut
    part, y = P[few], Y[few]
    low = np.zeros((len(part), 1))
    high = 1 - np.where(y > 0, part, np.inf).min(axis=1, keepdims=True)
    for _ in range(50):  # the shift with which the row sums to 1
        middle = (low + high) / 2
        enough = np.clip((part + middle) * y, 0, y).sum(axis=1, keepdims=True) >= 1
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    cut[few] = np.clip((part + high) * y, 0, y)
    return cut
