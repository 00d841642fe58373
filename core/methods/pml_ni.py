"""PML-NI: a low-rank classifier and a sparse identifier of feature-induced noise."""

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.linalg import eigh

from core.methods.base import CandidateEstimator, Matrix, Setting, Step, with_one

STEP = 10
"""Iterations between two looks at the method."""


class PMLNI(CandidateEstimator):
    """Partial multi-label learning with noisy label identification (Xie and Huang, AAAI 2020).

    With Phi = [X, 1]: min 1/2 ||Y' - W Phi'||^2 + lambda/2 ||W||^2 + beta ||U||_* + gamma ||V||_1
    subject to W = U + V, by the augmented Lagrangian method; scores are Phi U'.

    Verified against a public port of the authors' code: the updates, the penalty's growth, both
    stopping rules, the defaults. Found here: V stays exactly zero in every iteration when
    gamma >= beta, as with the defaults: after the shrinkage of U the rest has no singular value
    above beta/mu, hence no entry above gamma/mu. The noise identifier then does nothing. Ours: the
    threshold 0.5 (the port fits thresholds to the *true* labels of the training rows); confidences
    are the scores of the training rows.

    The published loop inverts a (d + 1)^2 matrix and decomposes W in every iteration. Here Phi'Phi
    is diagonalised once, Q S Q'; while V is zero everything is computed in the basis WQ, and
    singular values are shrunk through the L x L Gram matrix.

    Parameters
    ----------
    lam, beta, gamma : weights of ridge, low rank and sparsity
    max_iter : iterations at most; scale : "minmax", "standard" or "none"
    """

    assumes = "False candidates are a sparse linear function of the features, true ones low-rank."
    settings: ClassVar = {
        "lam": Setting(1e-6, 1e6, "Weight of the ridge."),
        "beta": Setting(0, 1e6, "Weight of the low rank."),
        "gamma": Setting(0, 1e6, "Weight of the sparse noise."),
        "max_iter": Setting(1, 100_000, "Iterations at most."),
    }

    def __init__(
        self,
        lam: float = 10.0,
        beta: float = 0.5,
        gamma: float = 0.5,
        max_iter: int = 500,
        scale: str = "minmax",
    ) -> None:
        self.lam, self.beta, self.gamma = lam, beta, gamma
        self.max_iter, self.scale = max_iter, scale

    @property
    def n_steps(self) -> int:
        return -(-self.max_iter // STEP)

    def _iterate(self, X: Any, Y: Matrix, state: Mapping[str, Any]) -> Iterator[Step]:
        Phi = with_one(X)
        B = Phi.T @ Phi
        S, Q = eigh(B.toarray() if hasattr(B, "toarray") else B, driver="evd")
        AQ = np.asarray((Phi.T @ Y).T @ Q)  # in the basis of Q
        found = _Found(np.zeros_like(AQ), np.zeros_like(AQ), np.zeros_like(AQ))
        if state:
            found = _Found(*(state[name] for name in "UVG"), *map(float, state["at"]))
        self._UQ, self._Q, self._V = found.U, Q, found.V
        while found.n < self.max_iter and not found.is_done:
            found = self._solve(found, AQ, S, Q)
            self._UQ, self._V = found.U, found.V
            yield Step(
                lambda: np.asarray(Phi @ self._classifier.T),
                lambda: self._objective(Phi, Y),
                found.arrays,
            )
        self._UQ, self._Q = self._classifier, None  # Q is large

    @property
    def _classifier(self) -> Matrix:
        """U, (L, d + 1); made of UQ when it is asked for: with many features as much
        work as ten iterations."""
        return self._UQ if self._Q is None else np.asarray(self._UQ @ self._Q.T)

    def _scores(self, X: Any) -> Matrix:
        return np.asarray(with_one(X) @ self._classifier.T)

    def _objective(self, Phi: Any, Y: Matrix) -> float:
        U = self._classifier
        W = U + self._V
        rest = float(((Y - Phi @ W.T) ** 2).sum()) + self.lam * float((W**2).sum())
        low_rank = float(np.linalg.norm(U, "nuc"))
        return rest / 2 + self.beta * low_rank + self.gamma * float(np.abs(self._V).sum())

    def _solve(self, found: "_Found", AQ: Matrix, S: Matrix, Q: Matrix) -> "_Found":
        """Return where the next iterations lead; with gamma >= beta V stays zero."""
        U, V, G, mu, done, _ = found
        is_sparse = self.gamma < self.beta
        VQ = V @ Q if is_sparse else 0.0
        is_done = False
        for _ in range(min(STEP, self.max_iter - int(done))):
            done += 1
            before, low = U, U + VQ if is_sparse else U
            W = (AQ + mu * low + G) / (S + (self.lam + mu))
            part = W - G / mu
            U = shrink_singular_values(part - VQ if is_sparse else part, self.beta / mu)
            if is_sparse:
                V = _soft((part - U) @ Q.T, self.gamma / mu)
                VQ = V @ Q
            rest = U - W + VQ if is_sparse else U - W
            moved, size = U - before, max(np.sqrt(np.vdot(W, W)), 1e-300)
            has_split = np.sqrt(np.vdot(rest, rest)) / size < 1e-7
            is_still = mu * np.sqrt(np.vdot(moved, moved)) / size < 1e-5
            if is_still:
                mu = min(1.1 * mu, 1e10)
            G = G + mu * rest
            is_done = bool(has_split and is_still)
            if is_done:
                break
        return _Found(U, V, G, mu, done, is_done)


class _Found(NamedTuple):
    """The iterates: UQ, V, the multipliers, the penalty, and how many iterations led here."""

    U: Matrix
    V: Matrix
    G: Matrix
    mu: float = 1e-4
    n: float = 0
    is_done: float = False

    def arrays(self) -> dict[str, Any]:
        at = np.array([self.mu, self.n, self.is_done])
        return {"U": self.U, "V": self.V, "G": self.G, "at": at}


def shrink_singular_values(M: Matrix, by: float) -> Matrix:
    """Return M with every singular value made smaller by `by`, at least 0.

    Through the eigenvectors of the smaller Gram matrix; a value that is shrunk to nothing need not
    be exact.
    """
    wide = M.shape[0] <= M.shape[1]
    squares, E = np.linalg.eigh(M @ M.T if wide else M.T @ M)
    first = int(np.searchsorted(squares, by * by, side="right"))  # in rising order
    E = E[:, first:]
    factor = 1 - by / np.sqrt(np.maximum(squares[first:], 1e-300))
    return np.asarray((E * factor) @ (E.T @ M) if wide else ((M @ E) * factor) @ E.T)


def _soft(M: Matrix, by: float) -> Matrix:
    return np.asarray(np.sign(M) * np.maximum(np.abs(M) - by, 0))
