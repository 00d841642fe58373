import numpy as np
import oracles
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import solve_sylvester
from threadpoolctl import threadpool_info, threadpool_limits

from core.engine import columns
from core.engine.balance import balance
from core.engine.graphs import InstanceGraph, build_instance_graph, build_label_graph
from core.engine.propagation import Propagator
from core.errors import ConfigError, DatasetError

N, L = 60, 6


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(3)
    instances = build_instance_graph(rng.standard_normal((N, 5)), k=6)
    Y = (rng.random((N, L)) < 0.4).astype(np.float32)
    return instances, build_label_graph(Y), Y, rng.random((N, L)).astype(np.float32)


def weights(alpha=0.1, beta=0.01, eta=1.0, gamma=0.01, n_steps=200):
    return dict(alpha=alpha, beta=beta, eta=eta, gamma=gamma, n_steps=n_steps)


@pytest.mark.parametrize(
    ("name", "settings_"),
    [
        ("Z_a0p1_b0p01_eta1_g0p01_T200", weights()),
        ("Z_a0p01_b0p1_eta0p1_g0p01_T50", weights(0.01, 0.1, 0.1, n_steps=50)),
    ],
)
def test_pseudo_labels_agree_with_the_authors_code(golden, name, settings_):
    instances = build_instance_graph(golden["X"])
    propagator = Propagator(instances, build_label_graph(golden["candidates"]), **settings_)
    Z = propagator.propagate(golden["candidates"], golden["y_hat"])
    assert np.abs(Z - golden[name]).max() <= 1e-5


@pytest.mark.parametrize(
    "settings_",
    [
        weights(),
        weights(alpha=0),
        weights(beta=0),
        weights(alpha=0, beta=0),
        weights(n_steps=0),
        weights(n_steps=1, gamma=0.4),
        weights(eta=0.1, n_steps=50),
        weights(alpha=20, beta=10, gamma=0.02, n_steps=77),
        weights(alpha=5, gamma=0.16, n_steps=500),
    ],
)
def test_closed_form_equals_the_step_loop(problem, settings_):
    instances, labels, Y, Y_hat = problem
    expected = oracles.step_loop(
        instances.normalized.toarray(), labels.normalized, Y, Y_hat, **settings_
    )
    propagator = Propagator(instances, labels, **settings_)
    assert np.abs(propagator.propagate(Y, Y_hat, rescale=False) - expected).max() <= 1e-5
    rescaled = propagator.propagate(Y, Y_hat)
    assert np.abs(rescaled - oracles.min_max(expected)).max() <= 1e-5


def test_the_default_settings_need_three_products(problem):
    assert Propagator(*problem[:2]).degree == 3


@pytest.mark.parametrize(("alpha", "beta", "eta"), [(0.1, 0.01, 1), (10, 5, 0), (100, 100, 10)])
def test_exact_minimiser_solves_the_sylvester_equation(problem, alpha, beta, eta):
    instances, labels, Y, Y_hat = problem
    W, A_y = instances.normalized.toarray(), labels.normalized.astype(float)
    c = 1 + eta + alpha + beta
    expected = solve_sylvester(
        c * np.eye(N) - alpha * W, -beta * A_y, (Y_hat + eta * Y).astype(float)
    )
    propagator = Propagator(instances, labels, **weights(alpha, beta, eta, n_steps=None))
    assert np.abs(propagator.propagate(Y, Y_hat, rescale=False) - expected).max() <= 1e-5


def test_many_steps_reach_the_minimiser(problem):
    *graphs, Y, Y_hat = problem
    far = Propagator(*graphs, n_steps=5000).propagate(Y, Y_hat, rescale=False)
    exact = Propagator(*graphs, n_steps=None).propagate(Y, Y_hat, rescale=False)
    assert np.abs(far - exact).max() <= 1e-5


def test_objective_terms_are_those_of_the_paper_and_smallest_at_the_minimiser(problem):
    instances, labels, Y, Y_hat = problem
    propagator = Propagator(instances, labels, n_steps=None)
    Z = propagator.propagate(Y, Y_hat, rescale=False)
    W, A_y = instances.normalized.toarray(), labels.normalized
    expected = oracles.objective(W, A_y, Z.astype(float), Y, Y_hat, 0.1, 0.01, 1)
    assert np.allclose(propagator.objective(Z, Y, Y_hat), expected, rtol=1e-4)
    for other in (Y, Y_hat, Z + 0.01):
        assert sum(propagator.objective(other, Y, Y_hat)) > sum(propagator.objective(Z, Y, Y_hat))


@pytest.mark.parametrize("n_steps", [0, 20, 200, None])
def test_evidence_adds_up_to_the_value(problem, n_steps):
    instances, labels, Y, Y_hat = problem
    propagator = Propagator(instances, labels, **weights(alpha=2, beta=1, n_steps=n_steps))
    Z = propagator.propagate(Y, Y_hat, rescale=False)
    for i, j in ((0, 0), (17, 3), (N - 1, L - 1)):
        evidence = propagator.evidence(i, j)
        assert evidence.value == pytest.approx(Z[i, j], abs=1e-5)
        assert evidence.votes.sum() == pytest.approx(Z[i, j], abs=1e-5)


@pytest.mark.parametrize(("alpha", "beta"), [(0.1, 0.01), (1.0, 0.5), (0.3, 0), (0, 0.3), (0, 0)])
def test_evidence_by_powers_of_the_graphs_is_that_of_the_whole_matrix(problem, alpha, beta):
    instances, labels, Y, _ = problem
    propagator = Propagator(instances, labels, **weights(alpha=alpha, beta=beta))
    assert propagator.degree <= 12
    for spread in zip(
        propagator._spread(9, 2, propagator._q, Y),
        propagator._spread_dense(9, 2, propagator._q, Y),
        strict=True,
    ):
        np.testing.assert_allclose(*spread, atol=1e-6)


def test_evidence_names_what_changing_a_candidate_would_do(problem):
    instances, labels, Y, Y_hat = problem
    propagator = Propagator(instances, labels, **weights(alpha=2, beta=1))
    Z = propagator.propagate(Y, Y_hat, rescale=False)
    neighbor = instances.affinity.indices[instances.affinity.indptr[4]]
    without = Y.copy()
    without[neighbor] = 0
    blank = Y_hat.copy()
    blank[neighbor] = 0
    expected = Z[4, 2] - propagator.propagate(without, blank, rescale=False)[4, 2]
    assert propagator.evidence(4, 2, Y, Y_hat).votes[neighbor] == pytest.approx(expected, abs=1e-5)


def test_evidence_needs_matrices_and_an_existing_cell(problem):
    *graphs, Y, Y_hat = problem
    with pytest.raises(ConfigError):
        Propagator(*graphs).evidence(0, 0)
    with pytest.raises(ConfigError):
        Propagator(*graphs).evidence(0, L, Y, Y_hat)


def test_clamped_cells_are_exact_and_the_rest_solves_the_system(problem):
    instances, labels, Y, Y_hat = problem
    decided = np.full((N, L), np.nan)
    rng = np.random.default_rng(0)
    at = rng.random((N, L)) < 0.15
    decided[at] = rng.integers(0, 2, at.sum())
    propagator = Propagator(instances, labels, **weights(alpha=2, beta=0.5))
    Z = propagator.clamped(Y, Y_hat, decided)
    assert (Z[at] == decided[at]).all()

    W, A_y = instances.normalized.toarray(), labels.normalized
    K = 4.5 * np.eye(N * L) - 2 * np.kron(W, np.eye(L)) - 0.5 * np.kron(np.eye(N), A_y)
    held, b = at.ravel(), (Y_hat + Y).ravel().astype(float)
    free = ~held
    rest = b[free] - K[np.ix_(free, held)] @ decided.ravel()[held]
    expected = np.linalg.solve(K[np.ix_(free, free)], rest)
    assert np.abs(Z.ravel()[free] - expected).max() <= 1e-5


def test_clamping_nothing_is_the_minimiser_and_a_mapping_says_the_same(problem):
    *graphs, Y, Y_hat = problem
    propagator = Propagator(*graphs, n_steps=None)
    exact = propagator.propagate(Y, Y_hat, rescale=False)
    assert np.abs(propagator.clamped(Y, Y_hat, {}) - exact).max() <= 1e-5
    table = np.full((N, L), -1)
    table[3, 1], table[5, 0] = 1, 0
    by_table = propagator.clamped(Y, Y_hat, table)
    assert np.allclose(by_table, propagator.clamped(Y, Y_hat, {(3, 1): 1, (5, 0): 0}))
    with pytest.raises(DatasetError):
        propagator.clamped(Y, Y_hat, {(3, 1): 0.5})


def test_on_a_torch_device_the_result_is_the_same(problem):
    import torch

    *graphs, Y, Y_hat = problem
    for settings_ in (weights(), weights(alpha=0), weights(beta=0), weights(n_steps=None)):
        propagator = Propagator(*graphs, **settings_)
        moved = propagator.to(torch.device("cpu"))
        Z = moved.propagate(torch.from_numpy(Y), torch.from_numpy(Y_hat))
        assert np.abs(Z.numpy() - propagator.propagate(Y, Y_hat)).max() <= 1e-6


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 1000), n=st.integers(3, 15), n_labels=st.integers(1, 5))
def test_pseudo_labels_are_finite_in_zero_to_one_and_follow_permutations(seed, n, n_labels):
    rng = np.random.default_rng(seed)
    X, Y = rng.standard_normal((n, 3)), (rng.random((n, n_labels)) < 0.5).astype(np.float32)
    X[0] = 0
    Y_hat = rng.random((n, n_labels)).astype(np.float32)

    def run(rows, columns):
        instances = build_instance_graph(X[rows], k=3)
        labels = build_label_graph(Y[rows][:, columns])
        return Propagator(instances, labels).propagate(Y[rows][:, columns], Y_hat[rows][:, columns])

    Z = run(np.arange(n), np.arange(n_labels))
    assert np.isfinite(Z).all()
    assert Z.min() >= 0
    assert Z.max() <= 1
    rows, columns = rng.permutation(n), rng.permutation(n_labels)
    assert np.allclose(run(rows, columns), Z[rows][:, columns], atol=2e-4)


def test_balance_clips_what_has_no_order_to_stretch():
    Y = np.array([[1, 0, 1], [1, 0, 0], [1, 0, 1]], np.float32)
    Z = np.array([[0.8, 0.1, 0.2], [0.8, 0.3, 0.1], [0.8, 0.2, 0.6]], np.float32)
    balanced = balance(Z, Y, "minmax")
    assert np.allclose(balanced, [[0.8, 0, 0.2], [0.8, 0, 0], [0.8, 0, 1]], atol=1e-6)
    assert np.allclose(balance(Z, Y, "mask"), Z * Y)
    assert balance(Z, Y, "none") is Z


@pytest.mark.parametrize(
    "settings_",
    [{"alpha": -1}, {"gamma": 0}, {"eta": np.nan}, {"n_steps": -1}, {"gamma": 1.0, "alpha": 1}],
)
def test_weights_out_of_range_are_refused(problem, settings_):
    with pytest.raises(ConfigError):
        Propagator(*problem[:2], **settings_)


def test_labels_of_another_shape_or_not_finite_are_refused(problem):
    *graphs, Y, Y_hat = problem
    with pytest.raises(DatasetError):
        Propagator(*graphs).propagate(Y[:-1], Y_hat[:-1])
    with pytest.raises(DatasetError):
        Propagator(*graphs).propagate(Y, np.full_like(Y_hat, np.nan))


def test_an_isolated_instance_keeps_its_own_evidence():
    instances = InstanceGraph.from_affinity(np.zeros((3, 3)))
    labels = build_label_graph(np.eye(3))
    Y = np.eye(3, dtype=np.float32)
    Z = Propagator(instances, labels, **weights(beta=0, n_steps=None)).propagate(
        Y, Y, rescale=False
    )
    assert np.allclose(Z, Y * 2 / 2.1, atol=1e-6)


@pytest.mark.parametrize(("alpha", "beta"), [(0.1, 0.01), (2.0, 0.5), (0.0, 0.3), (0.5, 0.0)])
def test_decisions_one_after_another_reach_the_clamped_solution(problem, alpha, beta):
    instances, labels, Y, Y_hat = problem
    propagator = Propagator(instances, labels, alpha=alpha, beta=beta, n_steps=None)
    decided = np.full(Y.shape, np.nan, np.float32)
    Z = propagator.clamped(Y, Y_hat, decided)
    for i, j, value in [(3, 2, 1), (3, 4, 0), (17, 2, 0), (3, 2, np.nan), (17, 2, 1)]:
        decided[i, j] = value
        change = value - Z[i, j]
        if np.isnan(value):
            change = propagator.residual(Z, Y, Y_hat, np.array([i]), np.array([j]))[0]
        propagator.reclamped(Z, decided >= 0, [i], [j], [change])
        assert np.abs(Z - propagator.clamped(Y, Y_hat, decided)).max() < 2e-4


def test_columns_are_solved_without_threads_that_wait_busily(problem, monkeypatch):
    instances, labels, Y, Y_hat = problem
    propagator = Propagator(instances, labels, **weights(n_steps=None))
    solve, seen = columns._clenshaw, []

    def watched(*args):
        seen.extend(one for one in threadpool_info() if one["internal_api"] == "openblas")
        return solve(*args)

    monkeypatch.setattr(columns, "_clenshaw", watched)
    with threadpool_limits(2):
        Z = columns.Columns(propagator, labels, Y).propagate(Y_hat)
    assert {one["num_threads"] for one in seen} == {1}
    assert np.abs(Z - propagator.propagate(Y, Y_hat, rescale=False)).max() < 1e-5
