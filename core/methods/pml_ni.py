"""PML-NI: a low-rank classifier and a sparse identifier of feature-induced noise."""

from typing import Any, ClassVar

import numpy as np
from scipy.linalg import eigh

from core.methods.base import CandidateEstimator, Matrix, Setting, with_one


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

    def _fit(self, X: Any, Y: Matrix) -> Matrix:
        Phi = with_one(X)
        B = Phi.T @ Phi
        S, Q = eigh(B.toarray() if hasattr(B, "toarray") else B, driver="evd")
        AQ = np.asarray((Phi.T @ Y).T @ Q)  # in the basis of Q
        U, V = self._solve(AQ, S, Q)
        self._U, self._V = U @ Q.T, V
        return np.asarray(Phi @ self._U.T)

    def _scores(self, X: Any) -> Matrix:
        return np.asarray(with_one(X) @ self._U.T)

    def _solve(self, AQ: Matrix, S: Matrix, Q: Matrix) -> tuple[Matrix, Matrix]:
        """Return UQ and V."""
        always_low_rank = self.gamma >= self.beta
        U, G = np.zeros_like(AQ), np.zeros_like(AQ)
        V, VQ = np.zeros_like(AQ), np.zeros_like(AQ)
        mu = 1e-4
        for _ in range(self.max_iter):
            W = (AQ + mu * (U + VQ) + G) / (S + self.lam + mu)
            before = U
            U = shrink_singular_values(W - VQ - G / mu, self.beta / mu)
            if not always_low_rank:
                V = _soft((W - U - G / mu) @ Q.T, self.gamma / mu)
                VQ = V @ Q
            size = max(float(np.linalg.norm(W)), 1e-300)
            rest = U + VQ - W
            has_split = float(np.linalg.norm(rest)) / size < 1e-7
            is_still = mu * float(np.linalg.norm(U - before)) / size < 1e-5
            if is_still:
                mu = min(1.1 * mu, 1e10)
            G += mu * rest
            if has_split and is_still:
                break
        return U, V


def shrink_singular_values(M: Matrix, by: float) -> Matrix:
    """Return M with every singular value made smaller by `by`, at least 0.

    Through the eigenvectors of the smaller Gram matrix; a value that is shrunk to nothing need not
    be exact.
    """
    wide = M.shape[0] <= M.shape[1]
    squares, E = eigh(M @ M.T if wide else M.T @ M, driver="evd")
    values = np.sqrt(np.maximum(squares, 0))
    factor = np.maximum(1 - by / np.maximum(values, 1e-300), 0)
    kept = factor > 0
    E, factor = E[:, kept], factor[kept]
    return np.asarray((E * factor) @ (E.T @ M) if wide else ((M @ E) * factor) @ E.T)


def _soft(M: Matrix, by: float) -> Matrix:
    return np.asarray(np.sign(M) * np.maximum(np.abs(M) - by, 0))
