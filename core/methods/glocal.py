"""GLOCAL: low-rank labels with global and local correlations."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.cluster import KMeans

from core.methods.base import CandidateEstimator, Matrix, Setting

N_INNER = 60
INNER_TOLERANCE = 1e-5
WARM_TOLERANCE = 1e-3
FIT_TOLERANCE = 1e-6


class GLOCAL(CandidateEstimator):
    """Global and local label correlation (Zhu, Kwok and Zhou, TKDE 30(6), 2018).

    With rows as instances, Y of -1 and 1, V n x k, U L x k, W d x k, groups of instances X_m and
    M_m = Z_m Z_m' with rows of Z_m of length 1:

    min 1/2 ||Y - V U'||^2 + la/2 ||V - X W||^2 + l3/2 ||V||^2 + l4/2 ||U||^2 + l5/2 ||W||^2
        + 1/2 sum_m [l2 n_m/n tr(M_m U W'X'X W U') + l1 tr(M_m U W'X_m'X_m W U')]

    by turns: Z, V, U, W, each by at most 60 steps of steepest descent; scores are X W U'.

    Verified against the authors' code: objective, gradients, scaling of the weights by the number
    of cells, warm start without the correlations, order, stopping rules, the example's weights.
    Ours: every cell counts as observed (a label that was not offered is false); steps in V, U and W
    are exact (the problems are quadratic) where the code searches along the line; scores are
    shifted to [0, 1] with the threshold at 1/2; candidates count as true labels, and confidences
    are the scores of the training rows.

    The published loop multiplies all of X, Y and V in every step. Here a step works on k x k and
    L x k products, and on X'X where there are more instances than features.

    Parameters
    ----------
    la, l1, l2, l3, l4, l5 : weights as above; l1 is the local, l2 the global correlation
    rank : k, at most L - 1; groups : of instances, by k-means; max_iter : rounds at most
    """

    assumes = "The label matrix is of low rank; labels correlate, differently in parts of the data."
    settings: ClassVar = {
        "la": Setting(1e-6, 1e3, "Weight of predicting the latent labels."),
        "l1": Setting(0, 1e3, "Weight of local correlations."),
        "l2": Setting(0, 1e3, "Weight of global correlations."),
        "l3": Setting(1e-6, 1e3, "Shrinkage of the latent labels."),
        "l4": Setting(1e-6, 1e3, "Shrinkage of the label factors."),
        "l5": Setting(1e-6, 1e3, "Shrinkage of the feature weights."),
        "rank": Setting(1, 1000, "Latent labels."),
        "groups": Setting(1, 1000, "Groups of instances."),
        "max_iter": Setting(1, 1000, "Rounds at most."),
    }

    def __init__(
        self,
        la: float = 1.0,
        l1: float = 1e-5,
        l2: float = 1e-3,
        l3: float = 0.125,
        l4: float = 0.125,
        l5: float = 0.125,
        rank: int = 20,
        groups: int = 3,
        max_iter: int = 15,
        scale: str = "minmax",
        seed: int = 0,
    ) -> None:
        self.la, self.l1, self.l2, self.l3, self.l4, self.l5 = la, l1, l2, l3, l4, l5
        self.rank, self.groups, self.max_iter = rank, groups, max_iter
        self.scale, self.seed = scale, seed

    def _fit(self, X: Any, Y: Matrix) -> Matrix:
        n, n_labels = Y.shape
        rng = np.random.default_rng(self.seed)
        k = max(1, min(self.rank, n_labels - 1))
        g = min(self.groups, n)
        group = KMeans(g, random_state=self.seed).fit_predict(X) if g > 1 else np.zeros(n, int)
        start = (rng.random((n_labels, k)), rng.random((n, k)), rng.random((g, n_labels, k)))
        problem = Problem(X, 2 * Y - 1, group, self._weights(n, X.shape[1], n_labels, k, g))
        self._U, self._W, self.objectives_ = problem.solve(*start, self.max_iter)
        return self._scores(X)

    def _scores(self, X: Any) -> Matrix:
        return np.asarray(((X @ self._W) @ self._U.T + 1) / 2)

    def _weights(self, n: int, d: int, n_labels: int, k: int, g: int) -> "Weights":
        """Scale the weights by the number of observed cells, as the authors' code does."""
        o = n * n_labels
        return Weights(
            self.la * o / (k * n),
            self.l1 * o / (n / g) ** 2,
            self.l2 * o / n**2,
            self.l3 * o / (n * k),
            self.l4 * o / (n_labels * k),
            self.l5 * o / (d * k),
        )


@dataclass(frozen=True)
class Weights:
    la: float
    l1: float
    l2: float
    l3: float
    l4: float
    l5: float


class Problem:
    """GLOCAL's objective for given groups and weights."""

    def __init__(self, X: Any, Y: Matrix, group: npt.NDArray[Any], weights: Weights) -> None:
        n, d = X.shape
        self.Y, self.w = Y, weights
        order = np.argsort(group, kind="stable")
        ends = np.flatnonzero(np.diff(group[order], append=group.max() + 1)) + 1
        self.X, self.Y = X[order], Y[order]
        self._order = order
        self._parts = [slice(a, b) for a, b in zip([0, *ends[:-1]], ends, strict=True)]
        self._shares = [(part.stop - part.start) / n for part in self._parts]
        # X'X per group beats passing through X where it is smaller than X.
        self._grams = None
        if not sp.issparse(X) and (len(self._parts) + 1) * d <= 2 * n:
            self._grams = [self.X[part].T @ self.X[part] for part in self._parts]
            self._gram = np.sum(self._grams, axis=0)

    def solve(
        self, U: Matrix, V: Matrix, Z: Matrix, max_iter: int
    ) -> tuple[Matrix, Matrix, list[float]]:
        """Return U, W and the objective after every round from a start; W begins with 0."""
        Z = Z[: len(self._parts)] / np.linalg.norm(Z[: len(self._parts)], axis=2, keepdims=True)
        V, W = V[self._order], np.zeros((self.X.shape[1], U.shape[1]))
        XW = self.X @ W
        none = np.zeros((len(Z), U.shape[1], U.shape[1]))
        value = np.inf
        for _ in range(max_iter):  # warm start, without correlations
            V = self._solve_v(U, V, XW)
            U = self._solve_u(U, V, None, none)
            W = self._solve_w(W, U, V, None)
            XW = self.X @ W
            before, value = value, self._simple_objective(U, V, W, XW)
            if abs(before - value) <= WARM_TOLERANCE * value:
                break
        objectives, fits = [], []
        for _ in range(max_iter):
            inner = self._inner(XW)
            Z = np.stack([solve_z(U @ S @ U.T, z) for S, z in zip(inner, Z, strict=True)])
            V = self._solve_v(U, V, XW)
            U = self._solve_u(U, V, Z, inner)
            W = self._solve_w(W, U, V, Z)
            XW = self.X @ W
            objectives.append(self._objective(U, V, W, XW, Z))
            fits.append(self._fit_term(U, V))
            if len(fits) > 3 and max(fits[-4:]) - min(fits[-4:]) <= FIT_TOLERANCE * fits[-1]:
                break
        return U, W, objectives

    def _inner(self, XW: Matrix) -> Matrix:
        """Return l2 n_m/n W'X'XW + l1 W'X_m'X_mW of every group, (g, k, k)."""
        whole, own = XW.T @ XW, [XW[part].T @ XW[part] for part in self._parts]
        both = zip(self._shares, own, strict=True)
        return np.stack([self.w.l2 * share * whole + self.w.l1 * S for share, S in both])

    def _solve_v(self, U: Matrix, V: Matrix, XW: Matrix) -> Matrix:
        H = U.T @ U + (self.w.la + self.w.l3) * np.eye(U.shape[1])
        return descend(lambda V: V @ H, self.Y @ U + self.w.la * XW, V)

    def _solve_u(self, U: Matrix, V: Matrix, Z: Matrix | None, inner: Matrix) -> Matrix:
        H = V.T @ V + self.w.l4 * np.eye(U.shape[1])

        def apply(U: Matrix) -> Matrix:
            found = U @ H
            if Z is not None:
                for z, S in zip(Z, inner, strict=True):
                    found += z @ (z.T @ U) @ S
            return found

        return descend(apply, self.Y.T @ V, U)

    def _solve_w(self, W: Matrix, U: Matrix, V: Matrix, Z: Matrix | None) -> Matrix:
        k, w = U.shape[1], self.w
        N = np.zeros((len(self._parts), k, k))
        if Z is not None:
            N = np.stack([(U.T @ z) @ (z.T @ U) for z in Z])
        shared = w.la * np.eye(k) + w.l2 * np.tensordot(self._shares, N, 1)
        has_local = bool(N.any()) and w.l1 > 0

        def apply(W: Matrix) -> Matrix:
            if self._grams is not None:
                found = self._gram @ (W @ shared)
                if has_local:
                    for gram, own in zip(self._grams, N, strict=True):
                        found += gram @ (W @ (w.l1 * own))
            else:
                XW = np.asarray(self.X @ W)
                P = XW @ shared
                if has_local:
                    for part, own in zip(self._parts, N, strict=True):
                        P[part] += XW[part] @ (w.l1 * own)
                found = self.X.T @ P
            return np.asarray(found + w.l5 * W)

        return descend(apply, w.la * np.asarray(self.X.T @ V), W)

    def _fit_term(self, U: Matrix, V: Matrix) -> float:
        return float(((self.Y - V @ U.T) ** 2).sum()) / 2

    def _simple_objective(self, U: Matrix, V: Matrix, W: Matrix, XW: Matrix) -> float:
        w = self.w
        parts = ((w.la, V - XW), (w.l3, V), (w.l4, U), (w.l5, W))
        return self._fit_term(U, V) + sum(a / 2 * float((M**2).sum()) for a, M in parts)

    def _objective(self, U: Matrix, V: Matrix, W: Matrix, XW: Matrix, Z: Matrix) -> float:
        products = [z.T @ U for z in Z]
        correlated = sum(
            float(np.sum((zU @ S) * zU)) for zU, S in zip(products, self._inner(XW), strict=True)
        )
        return self._simple_objective(U, V, W, XW) + correlated / 2


def descend(apply: Any, aim: Matrix, start: Matrix) -> Matrix:
    """Minimise 1/2 <M, A(M)> - <aim, M> from a start: steepest descent with exact steps."""
    M = start
    G = apply(M) - aim
    for _ in range(N_INNER):
        size = float(np.sum(G * G))
        if np.sqrt(size) < INNER_TOLERANCE:
            break
        AG = apply(G)
        step = size / float(np.sum(G * AG))
        M = M - step * G
        G = G - step * AG
    return M


def solve_z(Q: Matrix, Z: Matrix) -> Matrix:
    """Minimise 1/2 tr(Z'QZ) over Z with rows of length 1: projected gradient, halved steps."""
    value, step = float(np.sum(Z * (Q @ Z))) / 2, 1.0
    for _ in range(N_INNER):
        G = Q @ Z
        G = G - np.sum(G * Z, axis=1, keepdims=True) * Z  # along the spheres
        size = float(np.sum(G * G))
        if np.sqrt(size) < INNER_TOLERANCE:
            break
        step *= 2
        for _ in range(50):
            new = Z - step * G
            new /= np.linalg.norm(new, axis=1, keepdims=True)
            reached = float(np.sum(new * (Q @ new))) / 2
            if reached <= value - 1e-4 * step * size:
                break
            step /= 2
        else:
            return Z
        Z, value = new, reached
    return Z
