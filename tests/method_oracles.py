"""The compared methods as published, dense and step by step, written for reading, not for speed."""

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls
from sklearn.svm import LinearSVC

Matrix = NDArray[np.float64]


def nearest(X: Matrix, queries: Matrix, k: int, same: bool) -> NDArray[np.intp]:
    found = []
    for i, x in enumerate(queries):
        distance = np.linalg.norm(X - x, axis=1)
        if same:
            distance[i] = np.inf
        found.append(np.argsort(distance, kind="stable")[:k])
    return np.array(found)


def ml_knn(X: Matrix, Y: Matrix, queries: Matrix, k: int, s: float) -> Matrix:
    n, n_labels = Y.shape
    train, test = nearest(X, X, k, True), nearest(X, queries, k, False)
    scores = np.zeros((len(queries), n_labels))
    for j in range(n_labels):
        prior = (s + Y[:, j].sum()) / (2 * s + n)
        having, lacking = np.zeros(k + 1), np.zeros(k + 1)
        for i in range(n):
            c = int(Y[train[i], j].sum())
            (having if Y[i, j] else lacking)[c] += 1
        having = (s + having) / (s * (k + 1) + having.sum())
        lacking = (s + lacking) / (s * (k + 1) + lacking.sum())
        for i, near in enumerate(test):
            c = int(Y[near, j].sum())
            true, false = prior * having[c], (1 - prior) * lacking[c]
            scores[i, j] = true / (true + false)
    return scores


def pml_ni(X: Matrix, Y: Matrix, lam: float, beta: float, gamma: float, n_iter: int):
    """The augmented Lagrangian loop: an inverse and an SVD in every iteration. Returns U, V, W."""
    Phi = np.hstack([X, np.ones((len(X), 1))])
    A, B = Y.T @ Phi, Phi.T @ Phi
    W = U = V = G = np.zeros_like(A)
    mu = 1e-4
    for _ in range(n_iter):
        W = (A + mu * U + mu * V + G) @ np.linalg.inv(B + (lam + mu) * np.eye(len(B)))
        before = U
        left, values, right = np.linalg.svd(W - V - G / mu, full_matrices=False)
        U = left @ np.diag(np.maximum(values - beta / mu, 0)) @ right
        rest = W - U - G / mu
        V = np.sign(rest) * np.maximum(np.abs(rest) - gamma / mu, 0)
        split = np.linalg.norm(W - U - V) / np.linalg.norm(W) < 1e-7
        still = mu * np.linalg.norm(U - before) / np.linalg.norm(W) < 1e-5
        if still:
            mu = min(1.1 * mu, 1e10)
        G = G + mu * (U + V - W)
        if split and still:
            break
    return U, V, W


def glocal_objective(X, Y, groups, U, V, W, Z, w) -> float:
    """Columns are instances here, as in the paper: X d x n, Y L x n, V k x n."""
    n = X.shape[1]
    F = U @ W.T @ X
    value = ((Y - U @ V) ** 2).sum() / 2 + w.la / 2 * ((V - W.T @ X) ** 2).sum()
    for at, z in zip(groups, Z, strict=True):
        M = z @ z.T
        value += w.l2 * len(at) / n / 2 * np.trace(F.T @ M @ F)
        value += w.l1 / 2 * np.trace(F[:, at].T @ M @ F[:, at])
    return value + (w.l3 * (V**2).sum() + w.l4 * (U**2).sum() + w.l5 * (W**2).sum()) / 2


def glocal_gradients(X, Y, groups, U, V, W, Z, w):
    """The gradients of V, U and W, every product taken from the whole matrices."""
    n = X.shape[1]
    g_V = U.T @ (U @ V - Y) + w.la * (V - W.T @ X) + w.l3 * V
    g_U = (U @ V - Y) @ V.T + w.l4 * U
    g_W = w.la * X @ (X.T @ W - V.T) + w.l5 * W
    for at, z in zip(groups, Z, strict=True):
        M, own = z @ z.T, X[:, at]
        both = w.l2 * len(at) / n * (X @ X.T) + w.l1 * (own @ own.T)
        g_U = g_U + M @ U @ (W.T @ both @ W)
        g_W = g_W + both @ W @ (U.T @ M @ U)
    return {"V": g_V, "U": g_U, "W": g_W}


def _steps(X, Y, groups, values, name, w, n_steps=60, tolerance=1e-5):
    """Steepest descent on one of V, U, W; the exact step from the gradient's change (quadratic)."""
    for _ in range(n_steps):
        G = glocal_gradients(X, Y, groups, **values, w=w)[name]
        if np.linalg.norm(G) < tolerance:
            break
        moved = {**values, name: values[name] + G}
        curved = glocal_gradients(X, Y, groups, **moved, w=w)[name] - G
        values = {**values, name: values[name] - (G**2).sum() / (G * curved).sum() * G}
    return values


def _z_steps(X, groups, m, values, w, n_steps=60, tolerance=1e-5):
    n, (at, z) = X.shape[1], (groups[m], values["Z"][m])
    F = values["U"] @ values["W"].T @ X
    share = w.l2 * len(at) / n

    def cost(z):
        M = z @ z.T
        own = F[:, at]
        return (share * np.trace(F.T @ M @ F) + w.l1 * np.trace(own.T @ M @ own)) / 2

    step = 1.0
    for _ in range(n_steps):
        G = share * F @ (F.T @ z) + w.l1 * F[:, at] @ (F[:, at].T @ z)
        G = G - (G * z).sum(axis=1, keepdims=True) * z
        size = (G**2).sum()
        if np.sqrt(size) < tolerance:
            break
        step *= 2
        for _ in range(50):
            new = z - step * G
            new = new / np.linalg.norm(new, axis=1, keepdims=True)
            if cost(new) <= cost(z) - 1e-4 * step * size:
                break
            step /= 2
        else:
            break
        z = new
    return z


def glocal(X, Y, groups, U, V, Z, w, max_iter):
    """The published loop; returns U, W. X d x n, Y L x n of -1 and 1, Z a list."""
    Z = [z / np.linalg.norm(z, axis=1, keepdims=True) for z in Z]
    values = {"U": U, "V": V, "W": np.zeros((len(X), U.shape[1])), "Z": Z}
    no_z = [np.zeros_like(z) for z in Z]
    value = np.inf
    for _ in range(max_iter):
        for name in ("V", "U", "W"):
            values = _steps(X, Y, groups, {**values, "Z": no_z}, name, w)
        before, value = value, glocal_objective(X, Y, groups, **values, w=w)
        if abs(before - value) <= 1e-3 * value:
            break
    values["Z"], fits = Z, []
    for _ in range(max_iter):
        values["Z"] = [_z_steps(X, groups, m, values, w) for m in range(len(groups))]
        for name in ("V", "U", "W"):
            values = _steps(X, Y, groups, values, name, w)
        fits.append(((Y - values["U"] @ values["V"]) ** 2).sum() / 2)
        if len(fits) > 3 and max(fits[-4:]) - min(fits[-4:]) <= 1e-6 * fits[-1]:
            break
    return values["U"], values["W"]


def particle_confidences(X: Matrix, Y: Matrix, k: int, a: float) -> Matrix:
    n = len(X)
    T = np.zeros((n, n))
    for i, near in enumerate(nearest(X, X, k, True)):
        w = nnls(X[near].T, X[i])[0]
        if w.sum() > 0:
            T[i, near] = w / w.sum()
    P = Y.astype(float)
    for _ in range(1000):
        before = P
        P = (a * T @ P + (1 - a) * Y) * Y
        total = P.sum(axis=1, keepdims=True)
        P = np.where(total > 0, P / np.where(total > 0, total, 1), 0)
        if np.linalg.norm(P - before) < 1e-5:
            break
    found = P.sum(axis=0)
    P = P * np.where(found > 0, Y.sum(axis=0) / np.where(found > 0, found, 1), 0)
    return min_max_rows(P) * Y


def particle_credible(X, Y, k, a, thr, splits) -> NDArray[np.bool_]:
    votes = np.zeros(Y.shape)
    for train, test in splits:
        P = particle_confidences(X[train], Y[train], k, a)
        for i, near in zip(test, nearest(X[train], X[test], k, False), strict=True):
            distance = np.linalg.norm(X[train][near] - X[i], axis=1)
            for j, d in zip(near, distance, strict=True):
                votes[i] += (1 - d / distance.sum()) * P[j]
    high = min_max_rows(votes) >= thr
    return np.array(
        [row & y if (row & y).any() else row for row, y in zip(high, Y > 0, strict=True)]
    )


def particle_votes(X, Y, credible, queries, C):
    """Votes of the pair and virtual models, one model and one row at a time: (real, virtual)."""
    n_labels = Y.shape[1]
    X, queries = (np.hstack([M, np.ones((len(M), 1))]) for M in (X, queries))

    def model(one, other):
        if not one.any() or not other.any():
            return None, 0.0
        rows = np.vstack([X[one], X[other]])
        y = np.array([1] * one.sum() + [-1] * other.sum())
        svm = LinearSVC(C=C, dual=False, fit_intercept=False, tol=1e-5).fit(rows, y)
        return svm, svm.score(rows, y)

    real, virtual = np.zeros((len(queries), n_labels)), np.zeros(len(queries))
    for p in range(n_labels):
        for q in range(p + 1, n_labels):
            svm, accuracy = model(credible[:, p] & (Y[:, q] == 0), credible[:, q] & (Y[:, p] == 0))
            for i, x in enumerate(queries):
                if svm is not None:
                    real[i, p if svm.predict([x])[0] > 0 else q] += accuracy
        svm, accuracy = model(credible[:, p], Y[:, p] == 0)
        for i, x in enumerate(queries):
            if svm is not None and svm.predict([x])[0] > 0:
                real[i, p] += accuracy
            else:
                virtual[i] += accuracy
    return np.ceil(real), np.ceil(virtual)


def min_max_rows(M: Matrix) -> Matrix:
    low, high = M.min(axis=1, keepdims=True), M.max(axis=1, keepdims=True)
    return np.where(high > low, (M - low) / np.where(high > low, high - low, 1), 0.5)


def hale(S: Matrix, C: Matrix, Y: Matrix, sweeps: int) -> Matrix:
    """The matching with affinities that change, as in the one-to-one method's code: A over all
    pairs of candidate cells, its rows rescaled by p_new / p_old; rows of P divided by their top."""
    cells = np.argwhere(Y > 0)
    A = np.array([[S[i, j] * C[p, q] for j, q in cells] for i, p in cells])
    p = np.ones(len(cells))
    for _ in range(sweeps):
        new = A @ p
        for i in range(len(Y)):
            new[cells[:, 0] == i] /= new[cells[:, 0] == i].max()
        A = (new / p)[:, None] * A
        p = new
    P = np.zeros(Y.shape)
    P[cells[:, 0], cells[:, 1]] = p
    return P


def ranking_loss(f: Matrix, p: Matrix, power: int = 1) -> float:
    """1/(L-1) sum_jk max(0, p_j - p_k) max(0, 1 - (f_j - f_k))^power of one row."""
    total = 0.0
    for j in range(len(f)):
        for k in range(len(f)):
            total += max(0, p[j] - p[k]) * max(0, 1 - (f[j] - f[k])) ** power
    return total / (len(f) - 1)


def schirn(X: Matrix, Y: Matrix, lam, alpha, beta, n_iter) -> tuple[Matrix, Matrix]:
    rho, N = 1e-4, np.zeros(Y.shape)
    C, Phi = np.ones(Y.shape), np.ones(Y.shape)
    for _ in range(n_iter):
        left = 2 * beta * np.eye(X.shape[1]) + rho * X.T @ X
        W = np.linalg.solve(left, rho * X.T @ C - X.T @ Phi)
        N = np.sign(Y - C) * np.maximum(np.abs(Y - C) - alpha / 2, 0)
        N = (np.minimum(np.maximum(N, 0), Y) >= 0.5).astype(float)
        omega = 1 + rho / 2
        T = (2 * Y - 2 * N + Phi + rho * X @ W) / (2 * omega)
        U, values, V = np.linalg.svd(T, full_matrices=False)
        C = U @ np.diag(values + lam / omega) @ V
        Phi = Phi + rho * (X @ W - C)
        rho = min(1.1 * rho, 10)
    return W, N
