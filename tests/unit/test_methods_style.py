"""The methods known in part, and two recent ones, beside their formulas written out."""

import method_oracles as oracle
import numpy as np
import pytest
import torch
from scipy.optimize import approx_fprime, minimize

from core.bench.data import clusters
from core.data.noise import uniform_candidates
from core.errors import DatasetError
from core.methods.apml import APMLStyle
from core.methods.comes import COMESHL
from core.methods.hale import HALEStyle, match
from core.methods.neighbors import Neighbors
from core.methods.pml_fp import PMLFPStyle
from core.methods.pml_lc import PMLLCStyle, Pull, Ranking, project
from core.methods.pml_md import PMLMD, helpful, ranking_gradient
from core.methods.pml_mt import PMLMTStyle
from core.methods.propml import ProPML
from core.methods.schirn import Schirn, raise_singular_values

RNG = np.random.default_rng(0)


def small(n=40, d=6, n_labels=5):
    one = clusters(n, d, n_labels)
    return one.X.astype(np.float64), one.noisy(1, 0).astype(np.float64)


def test_the_multiplicative_update_is_the_matching_with_changing_affinities():
    _, Y = small(15)
    S = np.abs(RNG.standard_normal((15, 15)))
    S = S + S.T
    C = Y.T @ Y / len(Y) + np.eye(5)
    ours = match(S, C, Y, memory=1.0, sweeps=4)
    np.testing.assert_allclose(ours, oracle.hale(S, C, Y, 4), atol=1e-9)


def two_label_clusters():
    """Four clusters, each with two of six labels, both always true, and two false per row."""
    rng = np.random.default_rng(2)
    labels = np.array(
        [[1, 1, 0, 0, 0, 0], [0, 0, 1, 1, 0, 0], [0, 0, 0, 0, 1, 1], [1, 0, 0, 1, 0, 0]]
    )
    at = rng.integers(0, 4, 200)
    truth = labels[at].astype(np.uint8)
    X = (4 * rng.standard_normal((4, 5)))[at] + rng.standard_normal((200, 5))
    return X, uniform_candidates(truth, 2, 0), truth


def test_rows_with_two_true_labels_keep_two_in_hale_style():
    X, Y, truth = two_label_clusters()
    kept = HALEStyle().fit(X, Y).confidences_ > 0.5
    assert kept[truth > 0].mean() > 0.95
    assert truth[kept].mean() > truth[Y > 0].mean() + 0.1
    one_wins = HALEStyle(memory=1.0).fit(X, Y).confidences_ > 0.5
    assert one_wins.sum(axis=1).mean() < 1.1  # what the smaller memory is for


def test_hale_style_leaves_single_candidates_and_follows_a_permutation():
    X, Y, _ = two_label_clusters()
    alone = np.eye(6)[RNG.integers(0, 6, len(X))]
    assert np.array_equal(HALEStyle().fit(X, alone).confidences_, alone)
    rows, labels = RNG.permutation(len(X)), RNG.permutation(6)
    one, other = HALEStyle().fit(X, Y), HALEStyle().fit(X[rows], Y[rows][:, labels])
    np.testing.assert_allclose(one.confidences_[rows][:, labels], other.confidences_, atol=1e-6)
    np.testing.assert_allclose(
        one.decision_function(X[:9])[:, labels], other.decision_function(X[:9]), atol=1e-6
    )


def test_simplex_weights_are_the_best_on_the_simplex():
    X, _ = small(30, 8)
    near = Neighbors(X, 4)
    _, rows = near.of()
    weights, *_ = near.simplex_weights(X, rows)
    np.testing.assert_allclose(weights.sum(axis=1), 1)
    for i in range(5):
        N = X[rows[i]]
        best = minimize(
            lambda w, N=N, i=i: ((N.T @ w - X[i]) ** 2).sum(),
            np.full(4, 0.25),
            bounds=[(0, 1)] * 4,
            constraints={"type": "eq", "fun": lambda w: w.sum() - 1},
        )
        np.testing.assert_allclose(weights[i], best.x, atol=2e-3)


def test_the_ranking_loss_and_its_gradients_are_those_of_the_formula():
    _, Y = small(8)
    F, P = RNG.standard_normal(Y.shape), RNG.random(Y.shape) * Y
    ranking = Ranking(Y, C1=2.0)
    expected = [2 * oracle.ranking_loss(f, p, power=2) for f, p in zip(F, P, strict=True)]
    np.testing.assert_allclose(ranking.row_values(F, P), expected)
    value, G = ranking.loss(F, P)
    assert value == pytest.approx(sum(expected))
    numeric = approx_fprime(F.ravel(), lambda f: ranking.loss(f.reshape(F.shape), P)[0], 1e-7)
    np.testing.assert_allclose(G.ravel(), numeric, atol=1e-4)
    slope = approx_fprime(
        P.ravel(), lambda p: ranking.row_values(F, p.reshape(P.shape)).sum(), 1e-8
    )
    offered = Y.ravel() > 0
    ours = ranking._confidence_gradient(F, P).ravel()
    np.testing.assert_allclose(ours[offered], slope[offered], atol=1e-4)


def test_confidences_are_projected_to_the_nearest_allowed_point():
    Y = np.array([[1, 1, 1, 0], [1, 1, 0, 0], [0, 0, 0, 0], [1, 0, 0, 0]], float)
    P = np.array([[0.2, -0.3, 0.1, 5], [0.9, 0.8, 1, 1], [1, 1, 1, 1], [-2, 1, 1, 1]], float)
    found = project(P, Y)
    for p, y, ours in zip(P[:2], Y[:2], found[:2], strict=True):
        best = minimize(
            lambda q, p=p, y=y: ((q - p * y) ** 2).sum(),
            y / y.sum(),
            bounds=[(0, one) for one in y],
            constraints={"type": "ineq", "fun": lambda q: q.sum() - 1},
        )
        np.testing.assert_allclose(ours, best.x, atol=1e-4)
    assert np.array_equal(found[2:], [[0, 0, 0, 0], [1, 0, 0, 0]])


@pytest.mark.parametrize("method", [PMLLCStyle(max_iter=200), PMLFPStyle(max_iter=200)], ids=repr)
def test_every_half_step_descends_and_order_does_not_matter(method):
    X, Y = small(60)
    one = method.fit(X, Y)
    halves = np.array(one.objectives_).reshape(-1, 2)
    assert (halves[:, 1] <= halves[:, 0]).all()
    if isinstance(method, PMLFPStyle):  # prototypes move between rounds, also downhill
        assert halves[-1, 1] < halves[0, 0]
    else:
        assert (np.diff(one.objectives_) <= 1e-6 * one.objectives_[0]).all()
    scores, confidences = one.decision_function(X), one.confidences_
    rows, labels = RNG.permutation(len(X)), RNG.permutation(Y.shape[1])
    other = method.fit(X[rows], Y[rows][:, labels])
    # L-BFGS sums in another order, and rounds of steps carry that on.
    np.testing.assert_allclose(scores[:, labels], other.decision_function(X), atol=0.06)
    np.testing.assert_allclose(confidences[rows][:, labels], other.confidences_, atol=0.06)


def test_a_pull_is_a_quadratic_form():
    Q, c, P = np.array([[2.0, -1], [-1, 1]]), np.array([[1.0, 2]]), np.array([[3.0, 4]])
    pull = Pull(Q, c)
    assert pull.row_values(P)[0] == 2 * 9 - 2 * 12 + 16 + 3 + 8
    np.testing.assert_allclose(pull.gradient(P), [[5, 4]])


def test_schirn_takes_the_published_steps():
    X, Y = small(50)
    model = Schirn(scale="none").fit(X, Y)
    W, N = oracle.schirn(X, Y, 0.04, 0.5, 0.1, 100)
    np.testing.assert_allclose(model._W, W, atol=1e-5)
    assert np.array_equal(model.noise_, N)
    M = RNG.standard_normal((9, 4))
    U, values, V = np.linalg.svd(M, full_matrices=False)
    np.testing.assert_allclose(raise_singular_values(M, 0.3), U @ np.diag(values + 0.3) @ V)


def test_pml_md_confidences_are_the_derivative_of_a_virtual_step():
    """Autograd through the virtual step gives what is written out."""
    X, Y = small(6)
    V, truth = RNG.standard_normal((3, 6)), (RNG.random((3, 5)) < 0.4).astype(float)
    W = torch.tensor(0.3 * RNG.standard_normal((6, 5)), requires_grad=True)
    eps = torch.zeros(Y.shape, dtype=torch.float64, requires_grad=True)

    def loss(F, P):
        pairs = (P[:, :, None] - P[:, None, :]).clamp(min=0)
        slack = (1 - (F[:, :, None] - F[:, None, :])).clamp(min=0)
        return (pairs * slack).sum() / (len(F) * (F.shape[1] - 1))

    (step,) = torch.autograd.grad(loss(torch.tensor(X) @ W, eps), W, create_graph=True)
    on_verified = loss(torch.tensor(V) @ (W - 0.1 * step), torch.tensor(truth))
    (g,) = torch.autograd.grad(on_verified, eps)
    W = W.detach().numpy()
    slope = V.T @ ranking_gradient(V @ W, truth)
    ours = helpful(X @ W, X @ slope)
    theirs = np.maximum(-g.numpy(), 0) * 6 * 4 / 0.1
    np.testing.assert_allclose(ours, theirs, atol=1e-9)


def test_pml_md_needs_verified_rows_and_uses_them():
    X, Y, truth = two_label_clusters()
    with pytest.raises(DatasetError, match="verified rows are needed"):
        PMLMD().fit(X, Y)
    verified = np.full(Y.shape, np.nan)
    verified[:30] = truth[:30]
    model = PMLMD(epochs=20).fit(X, Y, verified=verified)
    unseen = slice(30, None)
    true, false = (
        model.confidences_[unseen][(truth[unseen] == kind) & (Y[unseen] > 0)].mean()
        for kind in (1, 0)
    )
    assert true > false + 0.3


def test_pml_mt_style_without_teaching_is_two_networks_on_the_candidates():
    X, Y, truth = two_label_clusters()
    alone = PMLMTStyle(keep=1.0, epochs=6).fit(X, Y)
    assert np.array_equal(alone.confidences_, Y)
    taught = PMLMTStyle(epochs=20, learning_rate=0.01).fit(X, Y).confidences_
    assert taught[truth > 0].mean() > taught[(truth == 0) & (Y > 0)].mean() + 0.1


def test_apml_style_removes_false_candidates_more_than_true_ones():
    X, Y, truth = two_label_clusters()
    found = APMLStyle(epochs=30, learning_rate=0.01, s=0.3).fit(X, Y).confidences_
    assert found[truth > 0].mean() > found[(truth == 0) & (Y > 0)].mean() + 0.1
    kept = APMLStyle(epochs=5, learning_rate=0.01, s=1000).fit(X, Y).confidences_
    assert kept[Y > 0].min() > 0.9  # too dear to remove


def test_propmls_loss_is_the_formula():
    f, Y = (
        RNG.standard_normal((4, 5)),
        np.array([[1, 1, 0, 0, 0], [1] * 5, [0] * 5, [0, 0, 0, 1, 0]]),
    )
    sigma = 1 / (1 + np.exp(-f))
    expected = 0.0
    for s, y in zip(sigma, Y > 0, strict=True):
        expected -= (np.log(s[y].sum()) if y.any() else 0) + 2 * np.log(1 - s[~y]).sum()
    found = ProPML(alpha=2.0)._loss(torch.tensor(f), torch.tensor(Y), None)
    assert float(found) == pytest.approx(expected / 4)


def test_comes_loss_is_the_formula_and_the_risk_on_clean_labels():
    f, Y = RNG.standard_normal((60, 3)), (RNG.random((60, 3)) < 0.4).astype(float)
    as_true, as_false = np.log1p(np.exp(-f)), np.log1p(np.exp(f))
    expected = 0.0
    for j in range(3):
        left, lacking = Y[:, j] == 0, 1 - 0.7 * Y[:, j].mean()
        expected += abs(as_true[:, j].mean() - lacking * as_true[left, j].mean())
        expected += lacking * as_false[left, j].mean()
    rates = torch.tensor(Y.mean(axis=0))
    found = COMESHL(true_share=0.7)._loss(torch.tensor(f), torch.tensor(Y), rates)
    assert float(found) == pytest.approx(expected / 3)
    clean = COMESHL(true_share=1.0)._loss(torch.tensor(f), torch.tensor(Y), rates)
    assert float(clean) == pytest.approx(np.where(Y > 0, as_true, as_false).mean())
