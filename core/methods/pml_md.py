"""PML-MD: confidences from a few verified rows."""

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from core.errors import DatasetError, Problem
from core.methods.base import CandidateEstimator, Matrix, Setting, Step, row_min_max, with_one


class PMLMD(CandidateEstimator):
    """Partial multi-label learning with meta disambiguation (Xie, Sun and Huang, KDD 2021).

    A linear model f minimises, over rows, R(f, p) = 1/(L-1) sum_jk max(0, p_j - p_k)
    max(0, 1 - (f_j - f_k)). The confidences p of a batch are those that would have helped the
    verified rows V: with weights eps = 0, one virtual step of the model on R(f, eps) and
    g = d R(f_V, truth) / d eps; p = max(0, -g) Y, rows divided by their maximum. Then a real step.

    Verified against a public port of the authors' code: loss, virtual step, confidences, linear
    model, SGD with momentum. Ours: the derivative is written out. At eps = 0 the virtual step stays
    where it is, so with u_i = x_i' dR_V/dW and a_jk = [f_j - f_k < 1] + [f_k - f_j < 1],
    -g_ij is proportional to sum_k a_jk (u_ik - u_ij); learning rate, batches and epochs; verified
    rows are learned with their truth; confidences are taken once more at the end.

    Parameters
    ----------
    learning_rate, momentum, weight_decay, batch_size, epochs : of the steps; seed : of their order
    """

    assumes = "Some rows are verified; a candidate is true where learning it helps those rows."
    settings: ClassVar = {
        "learning_rate": Setting(1e-6, 10, "Step size."),
        "momentum": Setting(0, 0.999, "Momentum of the steps."),
        "weight_decay": Setting(0, 1, "Shrinkage of the weights."),
        "batch_size": Setting(1, 1e6, "Instances per step."),
        "epochs": Setting(1, 100_000, "Passes over the data."),
    }

    def __init__(
        self,
        learning_rate: float = 0.05,
        momentum: float = 0.9,
        weight_decay: float = 1e-4,
        batch_size: int = 64,
        epochs: int = 50,
        scale: str = "standard",
        seed: int = 0,
    ) -> None:
        self.learning_rate, self.momentum, self.weight_decay = learning_rate, momentum, weight_decay
        self.batch_size, self.epochs, self.scale, self.seed = batch_size, epochs, scale, seed

    def fit(
        self, X: Any, Y: Any = None, votes: Any = None, verified: Any = None, *, y: Any = None
    ) -> Self:
        """Learn; `verified` is (n, L): 0 and 1 in rows whose true labels are known, else NaN."""
        self.learn_from(verified)
        return super().fit(X, Y, votes, y=y)

    def learn_from(self, verified: Any) -> Self:
        """Take the verified rows; `fit` does it."""
        rule = "verified rows are needed: (n, L) with 0 and 1 where the truth is known, else NaN"
        V = np.asarray([] if verified is None else verified, np.float64)
        if V.ndim != 2 or not np.isfinite(V).all(axis=1).any():
            fix = "Decide all candidates of some instances, or give fit(X, Y, verified=...)."
            raise DatasetError([Problem(rule, fix, True, value=str(V.shape))])
        self._verified = V
        return self

    @property
    def n_steps(self) -> int:
        return self.epochs

    def _iterate(self, X: Any, Y: Matrix, state: Mapping[str, Any]) -> Iterator[Step]:
        Phi, n = with_one(X), len(Y)
        known = np.flatnonzero(np.isfinite(self._verified).all(axis=1))
        Phi_V, truth = Phi[known], self._verified[known]
        is_known = np.isin(np.arange(n), known)
        rng = np.random.default_rng(self.seed)
        W = state.get("W", np.zeros((Phi.shape[1], Y.shape[1])))
        velocity = state.get("velocity", np.zeros_like(W))
        done = int(state.get("epoch", 0))
        for _ in range(done):
            rng.permutation(n)  # as the epochs before drew theirs

        def confidences(at: npt.NDArray[Any]) -> Matrix:
            slope = np.asarray(Phi_V.T @ ranking_gradient(np.asarray(Phi_V @ W), truth))
            found = helpful(np.asarray(Phi[at] @ W), np.asarray(Phi[at] @ slope)) * Y[at]
            found /= np.maximum(found.max(axis=1, keepdims=True), 1e-300)
            true = np.nan_to_num(self._verified[at])
            return np.asarray(np.where(is_known[at, None], true, found))

        def everywhere() -> Matrix:
            step = max(1, 2**22 // Y.shape[1] ** 2)
            return np.concatenate(
                [confidences(np.arange(a, min(a + step, n))) for a in range(0, n, step)]
            )

        for epoch in range(done, self.epochs):
            order = rng.permutation(n)
            for start in range(0, n, self.batch_size):
                at = order[start : start + self.batch_size]
                G = ranking_gradient(np.asarray(Phi[at] @ W), confidences(at))
                velocity = self.momentum * velocity + np.asarray(Phi[at].T @ G)
                velocity += self.weight_decay * W
                W = W - self.learning_rate * velocity
            self._W = W
            now = {"W": W, "velocity": velocity, "epoch": np.array(epoch + 1)}
            yield Step(
                everywhere,
                lambda W=W: ranking_loss(np.asarray(Phi_V @ W), truth),  # type: ignore[misc]
                lambda now=now: now,  # type: ignore[misc]
            )

    def _scores(self, X: Any) -> Matrix:
        return row_min_max(np.asarray(with_one(X) @ self._W))


def ranking_loss(F: Matrix, P: Matrix) -> float:
    """Return the mean over rows of R(f, p)."""
    slack = np.maximum(1 - (F[:, :, None] - F[:, None, :]), 0)
    each = np.maximum(P[:, :, None] - P[:, None, :], 0) * slack
    return float(each.sum() / (len(F) * max(F.shape[1] - 1, 1)))


def ranking_gradient(F: Matrix, P: Matrix) -> Matrix:
    """Return the gradient in F of the mean over rows of R(f, p)."""
    n, n_labels = F.shape
    violated = (F[:, :, None] - F[:, None, :]) < 1  # f_j - f_k
    D = np.where(violated, np.maximum(P[:, :, None] - P[:, None, :], 0), 0)
    return np.asarray((D.sum(axis=1) - D.sum(axis=2)) / (n * max(n_labels - 1, 1)))


def helpful(F: Matrix, U: Matrix) -> Matrix:
    """Return max(0, sum_k a_jk (u_k - u_j)): how much a label helps the verified rows."""
    apart = np.abs(F[:, :, None] - F[:, None, :]) >= 1
    A = np.where(apart, 1.0, 2.0)
    return np.asarray(np.maximum(np.einsum("njk,nk->nj", A, U) - A.sum(axis=2) * U, 0))
