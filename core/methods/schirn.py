"""Schirn: sparse noise and predictions of high rank."""

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import numpy as np
from scipy.linalg import eigh

from core.methods.base import CandidateEstimator, Matrix, Setting, Step

RHO_START, RHO_GROWTH, RHO_MAX = 1e-4, 1.1, 10.0


class Schirn(CandidateEstimator):
    """Sparse noise, high-rank labels (Schirn, CVPR 2026).

    min ||XW - (Y - N)||^2 - lambda ||XW||_* + alpha ||N||_1 + beta ||W||^2, 0 <= N <= Y, by ADMM on
    the copy C of XW; the singular values of C *grow*, since low rank is taken for a fault of noisy
    predictions. Scores are XW.

    Verified against the authors' code: every update, N's rounding, the penalty's growth, the start
    from ones, 100 iterations, the shipped weights. Ours: X'X is diagonalised once instead of solved
    in every iteration, singular values are raised through the L x L Gram matrix; the threshold 0.5;
    confidences are the scores of the training rows.

    Parameters
    ----------
    lam, alpha, beta : weights of rank, sparsity of the noise, and ridge; n_iter : iterations
    """

    assumes = "Few candidates are false, and the true labels are not of low rank."
    settings: ClassVar = {
        "lam": Setting(0, 1e3, "Weight of the high rank."),
        "alpha": Setting(0, 1e3, "Weight of the sparse noise."),
        "beta": Setting(1e-6, 1e6, "Weight of the ridge."),
        "n_iter": Setting(1, 10_000, "Iterations."),
    }

    def __init__(
        self,
        lam: float = 0.04,
        alpha: float = 0.5,
        beta: float = 0.1,
        n_iter: int = 100,
        scale: str = "minmax",
    ) -> None:
        self.lam, self.alpha, self.beta = lam, alpha, beta
        self.n_iter, self.scale = n_iter, scale

    @property
    def n_steps(self) -> int:
        return self.n_iter

    def _iterate(self, X: Any, Y: Matrix, state: Mapping[str, Any]) -> Iterator[Step]:
        gram = X.T @ X
        S, Q = eigh(gram.toarray() if hasattr(gram, "toarray") else gram, driver="evd")
        C, Phi = state.get("C", np.ones_like(Y)), state.get("Phi", np.ones_like(Y))
        for at in range(int(state.get("n", 0)), self.n_iter):
            rho = min(RHO_START * RHO_GROWTH**at, RHO_MAX)
            right = Q.T @ np.asarray(X.T @ (rho * C - Phi))
            W = Q @ (right / (2 * self.beta + rho * S)[:, None])
            XW = np.asarray(X @ W)
            N = np.maximum(np.abs(Y - C) - self.alpha / 2, 0) * np.sign(Y - C)
            N = np.floor(np.clip(N, 0, Y) + 0.5)
            omega = 1 + rho / 2
            C = raise_singular_values(
                (2 * Y - 2 * N + Phi + rho * XW) / (2 * omega), self.lam / omega
            )
            Phi = Phi + rho * (XW - C)
            self._W, self.noise_ = W, N
            now = {"C": C, "Phi": Phi, "n": np.array(at + 1)}
            yield Step(
                lambda XW=XW: XW,  # type: ignore[misc]
                lambda XW=XW, N=N, W=W: self._objective(XW, Y, N, W),  # type: ignore[misc]
                lambda now=now: now,  # type: ignore[misc]
            )

    def _objective(self, XW: Matrix, Y: Matrix, N: Matrix, W: Matrix) -> float:
        fit = float(((XW - (Y - N)) ** 2).sum()) + self.beta * float((W**2).sum())
        return fit - self.lam * float(np.linalg.norm(XW, "nuc")) + self.alpha * float(N.sum())

    def _scores(self, X: Any) -> Matrix:
        return np.asarray(X @ self._W)


def raise_singular_values(M: Matrix, by: float) -> Matrix:
    """Return M with every singular value that is not zero made larger by `by`."""
    squares, E = eigh(M.T @ M, driver="evd")
    values = np.sqrt(np.maximum(squares, 0))
    some = values > 1e-7 * max(float(values[-1]), 1e-300)
    E, values = E[:, some], values[some]
    return np.asarray(M + by * ((M @ E) / values) @ E.T)
