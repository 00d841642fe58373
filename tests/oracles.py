"""Dense numpy twins of the paper's formulas, written for reading, not for speed."""

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]


def instance_graph(X: Matrix, k: int, rho: float) -> Matrix:
    """D^-1/2 (S + S^T) D^-1/2 by brute force."""
    norms = np.linalg.norm(X, axis=1, keepdims=True)
    U = np.divide(X, norms, where=norms > 0, out=np.zeros_like(X, dtype=float))
    C = U @ U.T
    np.fill_diagonal(C, -np.inf)
    S = np.zeros_like(C)
    for i, row in enumerate(C):
        for j in np.argsort(-row, kind="stable")[:k]:
            S[i, j] = max(row[j], 0) ** rho
    return normalize(S + S.T)


def label_graph(Y: Matrix) -> Matrix:
    n_labels = Y.shape[1]
    A = np.zeros((n_labels, n_labels))
    for i in range(n_labels):
        for j in range(n_labels):
            total = Y[:, i].sum() + Y[:, j].sum()
            if i != j and total:
                A[i, j] = (Y[:, i] * Y[:, j]).sum() / total
    return normalize(A)


def normalize(A: Matrix) -> Matrix:
    d = A.sum(axis=1)
    s = np.where(d > 0, 1 / np.sqrt(np.where(d > 0, d, 1)), 0)
    return s[:, None] * A * s


def step_loop(
    W: Matrix, A_y: Matrix, Y: Matrix, Y_hat: Matrix, alpha, beta, eta, gamma, n_steps
) -> Matrix:
    """The paper's gradient descent on Eq. (2), step by step from Z = Y."""
    Z = Y.astype(float)
    for _ in range(n_steps):
        gradient = (1 + eta) * Z + alpha * (Z - W @ Z) + beta * (Z - Z @ A_y) - (Y_hat + eta * Y)
        Z = Z - gamma * gradient
    return Z


def objective(W: Matrix, A_y: Matrix, Z, Y, Y_hat, alpha, beta, eta) -> tuple[float, ...]:
    """The four terms of Eq. (2)."""
    n, n_labels = Z.shape
    return (
        ((Z - Y_hat) ** 2).sum() / 2,
        eta * ((Z - Y) ** 2).sum() / 2,
        alpha * np.trace(Z.T @ (np.eye(n) - W) @ Z) / 2,
        beta * np.trace(Z @ (np.eye(n_labels) - A_y) @ Z.T) / 2,
    )


def min_max(Z: Matrix) -> Matrix:
    low, high = Z.min(axis=0), Z.max(axis=0)
    return (Z - low) / (high - low)
