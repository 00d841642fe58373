from dataclasses import replace

import faiss
import numpy as np
import oracles
import pytest
import scipy.sparse as sp
import sparse_dot_topn
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from local_executor import LocalExecutor

from core.engine import approximate_search as searches
from core.engine.approximate_search import TARGET, approximate_search
from core.engine.exact_search import faiss_search
from core.engine.graphs import (
    InstanceGraph,
    LabelGraph,
    build_instance_graph,
    build_label_graph,
    find_neighbors,
    read_instance_graph,
    read_label_graph,
)
from core.engine.scaling import Standardizer
from core.errors import ConfigError, DatasetError

RNG = np.random.default_rng(0)


def test_graphs_agree_with_the_authors_code(golden):
    n = len(golden["X"])
    W = sp.csr_array((golden["W_data"], golden["W_indices"], golden["W_indptr"]), shape=(n, n))
    assert abs(build_instance_graph(golden["X"]).normalized - W).max() <= 1e-5
    assert np.abs(build_label_graph(golden["candidates"]).normalized - golden["A_y"]).max() <= 1e-5


@pytest.mark.parametrize("rho", [1.0, 3.0])
def test_instance_graph_equals_brute_force(rho):
    X = RNG.standard_normal((80, 6))
    graph = build_instance_graph(X, k=5, rho=rho)
    assert np.allclose(graph.normalized.toarray(), oracles.instance_graph(X, 5, rho), atol=1e-6)
    assert graph.recall == 1.0


def test_sparse_features_give_the_graph_of_the_dense_ones():
    X = sp.random_array((120, 40), density=0.2, rng=1, format="csr")
    sparse, dense = build_instance_graph(X, k=6), build_instance_graph(X.toarray(), k=6)
    assert sparse.search == "sparse"
    assert abs(sparse.normalized - dense.normalized).max() < 1e-6


def test_sparse_rows_share_the_threads_and_the_graph_is_the_same_bit_for_bit(monkeypatch):
    X = sp.random_array((300, 40), density=0.2, rng=RNG, dtype=np.float32).tocsr()
    X.data = np.round(X.data, 1)  # with ties
    asked, search = [], sparse_dot_topn.sp_matmul_topn

    def told(*args, **options):
        asked.append(options["n_threads"])
        return search(*args, **options)

    monkeypatch.setattr(sparse_dot_topn, "sp_matmul_topn", told)
    found = []
    for n in (1, 3):
        monkeypatch.setattr(torch, "get_num_threads", lambda n=n: n)
        found.append(find_neighbors(X, 6))
    assert asked == [1, 3]
    assert np.array_equal(found[0].rows, found[1].rows)
    assert np.array_equal(found[0].cosines, found[1].cosines)


def test_instance_graph_ignores_self_when_rows_are_duplicated():
    X = np.repeat(RNG.standard_normal((5, 4)), 30, axis=0)
    for features in (X, sp.csr_array(X)):
        graph = build_instance_graph(features, k=4)
        assert graph.affinity.diagonal().sum() == 0
        assert (np.diff(graph.affinity.indptr) >= 4).all()


@pytest.mark.parametrize("as_matrix", [np.asarray, sp.csr_array])
def test_a_row_without_features_is_isolated_and_nothing_is_nan(as_matrix):
    X = RNG.random((20, 3))
    X[7] = 0
    graph = build_instance_graph(as_matrix(X), k=3)
    assert graph.normalized[[7]].nnz == 0
    assert np.isfinite(graph.normalized.data).all()


def test_more_neighbours_than_instances_connects_all():
    graph = build_instance_graph(RNG.random((6, 3)), k=50)
    assert (np.diff(graph.affinity.indptr) == 5).all()


def test_opposite_instances_are_not_connected():
    X = np.array([[1.0, 0], [1, 0.1], [-1, 0], [-1, 0.1]])
    assert build_instance_graph(X, k=3).affinity[[0], [2]] == 0


def test_approximate_graph_reports_the_recall_it_reaches():
    centres = RNG.standard_normal((40, 16))
    X = (centres[RNG.integers(0, 40, 4000)] + 0.3 * RNG.standard_normal((4000, 16))).astype("f4")
    approximate, exact = build_instance_graph(X, search="cells"), build_instance_graph(X)
    assert approximate.search == "cells"
    found = (approximate.affinity > 0).multiply(exact.affinity > 0).nnz / exact.affinity.nnz
    assert approximate.recall >= 0.9
    assert found == pytest.approx(approximate.recall, abs=0.05)


def test_centres_in_groups_are_found_without_comparing_with_all(monkeypatch):
    X = np.random.default_rng(0).standard_normal((2000, 8)).astype(np.float32)
    monkeypatch.setattr("core.engine.approximate_search._SIZE", 40)
    flat = build_instance_graph(X, search="cells")
    monkeypatch.setattr("core.engine.approximate_search._FLAT", 10)
    compared = []

    def searching(queries, rows, k, search=faiss_search):
        compared.append(len(rows))
        return search(queries, rows, k)

    monkeypatch.setattr(searches, "exact_search", lambda device: searching)
    grouped = build_instance_graph(X, search="cells")
    assert compared.count(7) > 2  # groups, instead of all 50 centres
    assert grouped.recall > flat.recall - 0.15  # two of seven groups are few
    assert abs(grouped.affinity.nnz / flat.affinity.nnz - 1) < 0.05


def test_cells_find_the_same_rows_whatever_the_threads_and_the_library():
    X = RNG.standard_normal((3000, 24)).astype(np.float32)
    X[:30] = X[0]  # more alike than a row has neighbours
    X[40] = 0
    X /= np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-9)
    before = torch.get_num_threads()
    found = []
    for n_threads in (1, 3):
        torch.set_num_threads(n_threads)
        found.append(approximate_search(X, 6))
    torch.set_num_threads(before)
    assert all(np.array_equal(one, other) for one, other in zip(*found, strict=True))
    cosines, rows, recall = found[0]
    assert np.allclose(cosines, (X[:, None] * X[rows]).sum(axis=2), atol=1e-6)
    by_torch = approximate_search(X, 6, device="cpu:0")  # as on a device that faiss does not know
    assert np.allclose(by_torch[0], cosines, atol=1e-6)
    assert by_torch[2] == pytest.approx(recall, abs=0.01)


def same_bits(one, other):
    return one.recall == other.recall and all(
        np.array_equal(getattr(one, name), getattr(other, name)) for name in ("cosines", "rows")
    )


def test_rows_of_a_file_scaled_as_they_are_asked_for_have_the_same_neighbours(
    tmp_path, monkeypatch
):
    X = (3 + 2 * RNG.standard_normal((5000, 12))).astype(np.float32)
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    scaling = Standardizer.fit(X)
    kept = [find_neighbors(scaling.apply(X), 6, search=how) for how in ("cells", "exact")]
    monkeypatch.setattr("core.engine.scaling._KEPT_VALUES", 0)
    monkeypatch.setattr("core.engine.approximate_search._IN_MEMORY", 0)
    view = scaling.view(mapped)
    for how, one in zip(("cells", "exact"), kept, strict=True):
        assert same_bits(find_neighbors(view, 6, search=how, folder=tmp_path), one)
    assert [path.name for path in tmp_path.iterdir()] == ["X.npy"]


def test_features_that_cannot_be_scaled_are_refused(monkeypatch):
    monkeypatch.setattr("core.engine.scaling._KEPT_VALUES", 0)
    X = RNG.random((20, 2)).astype(np.float32)
    scaling = replace(Standardizer.fit(X), scale=np.array([1e-45, 1.0]))
    with np.errstate(over="ignore"), pytest.raises(DatasetError, match="finite"):
        find_neighbors(scaling.view(X), 3)


def test_centres_are_those_that_faiss_finds_of_all_rows():
    X = RNG.standard_normal((3000, 6)).astype(np.float32)
    options = {"niter": 8, "max_points_per_centroid": 32, "min_points_per_centroid": 1}
    whole = faiss.Kmeans(6, 5, spherical=True, seed=1, **options)
    whole.train(X)
    assert np.array_equal(searches._means(X, 5, 0), whole.centroids)


def test_many_sparse_rows_are_searched_in_cells(monkeypatch):
    topics = RNG.integers(0, 8, 3000)
    words = np.where(RNG.random((3000, 12)) < 0.8, 40 * topics[:, None], 0)
    words = words + RNG.integers(0, 40, (3000, 12))
    words[7] = 400  # a word nobody else has
    X = sp.csr_array((np.ones(words.size), (np.repeat(np.arange(3000), 12), words.ravel())))
    X = sp.csr_array(X[:, :400])
    exact = find_neighbors(X, 6)
    monkeypatch.setattr("core.engine.graphs.SPARSE_LIMIT", 2000)
    monkeypatch.setattr("core.engine.approximate_search._SIZE", 150)
    found = []
    for n_threads in (1, 3):
        monkeypatch.setattr(torch, "get_num_threads", lambda n=n_threads: n)
        found.append(find_neighbors(X, 6))
    assert same_bits(*found)
    some = found[0]
    assert (exact.search, some.search) == ("sparse", "cells")
    assert (some.rows[7] == -1).all()
    near = np.sort(some.cosines[:, :7]) >= np.sort(exact.cosines)[:, :1]  # whichever of equals
    assert near[some.rows[:, 0] >= 0].mean() > 0.9
    assert some.recall >= 0.9
    assert abs(some.graph(6, 3.0).affinity).diagonal().sum() == 0


@pytest.mark.parametrize("n_workers", [0, 2])
def test_rows_of_few_kinds_leave_cells_empty(tmp_path, n_workers):
    X = np.repeat(np.eye(2, 8, dtype=np.float32), 1000, axis=0)
    executor = LocalExecutor(tmp_path, n_workers) if n_workers else None
    found = find_neighbors(X, 5, search="cells", executor=executor)
    assert np.allclose(found.cosines, 1, atol=1e-6)


@pytest.mark.parametrize("n_columns", [1, 9, 300])
def test_many_sparse_rows_of_few_kinds_leave_cells_empty(n_columns):
    kinds = np.eye(min(n_columns, 2), n_columns, dtype=np.float32)
    X = sp.csr_array(np.repeat(kinds, 5000, axis=0))
    assert (find_neighbors(X, 5, search="cells").cosines == 1).all()


def test_recall_gives_way_where_nothing_is_near(monkeypatch):
    monkeypatch.setattr("core.engine.approximate_search._MOST", 2)
    X = RNG.standard_normal((6000, 64))
    some, exact = find_neighbors(X, 10, search="cells"), find_neighbors(X, 10)
    found = (some.rows[:, :, None] == exact.rows[:, None, 1:]).any(axis=1).mean()
    assert found == pytest.approx(some.recall, abs=0.02)
    assert some.recall < TARGET


@settings(max_examples=40, deadline=None)
@given(
    X=hnp.arrays(
        np.float32,
        hnp.array_shapes(min_dims=2, max_dims=2, min_side=3, max_side=12),
        elements=st.floats(-10, 10, width=32),
    ),
    k=st.integers(1, 15),
)
def test_normalised_graph_is_symmetric_with_spectrum_in_minus_one_to_one(X, k):
    W = build_instance_graph(X, k=k).normalized.toarray().astype(float)
    assert np.isfinite(W).all()
    assert (W >= 0).all()
    assert np.allclose(W, W.T, atol=1e-6)
    assert np.diag(W).sum() == 0
    assert np.abs(np.linalg.eigvalsh(W)).max() <= 1 + 1e-5


def test_permuting_instances_permutes_the_graph():
    X, order = RNG.standard_normal((50, 5)), RNG.permutation(50)
    W = build_instance_graph(X, k=4).normalized.toarray()
    assert np.allclose(
        build_instance_graph(X[order], k=4).normalized.toarray(), W[order][:, order], atol=1e-6
    )


def test_label_graph_equals_the_formula_and_survives_empty_labels():
    Y = (RNG.random((60, 7)) < 0.4).astype(float)
    Y[:, [2, 5]] = 0
    graph = build_label_graph(Y)
    assert np.allclose(graph.normalized, oracles.label_graph(Y), atol=1e-6)
    assert (graph.weights[2] == 0).all()


def test_a_single_label_has_no_relations():
    assert build_label_graph(np.ones((5, 1))).normalized.tolist() == [[0.0]]


@pytest.mark.parametrize(
    ("X", "k"), [([[np.nan, 1], [1, 1], [2, 1]], 1), (np.ones((2, 2)), 1), ([1.0, 2.0, 3.0], 1)]
)
def test_unusable_features_are_refused(X, k):
    with pytest.raises(DatasetError):
        build_instance_graph(X, k=k)


@pytest.mark.parametrize("settings_", [{"k": 0}, {"rho": 0.0}, {"rho": float("nan")}])
def test_settings_out_of_range_are_refused(settings_):
    with pytest.raises(ConfigError):
        build_instance_graph(np.eye(4), **settings_)


def test_user_graph_from_csv_names_instances(tmp_path):
    path = tmp_path / "edges.csv"
    path.write_text("source,target,weight\na,b,2\nb,c,1\n")
    graph = read_instance_graph(path, ["a", "b", "c"])
    assert graph.affinity.toarray().tolist() == [[0, 2, 0], [2, 0, 1], [0, 1, 0]]


def test_user_graph_from_npz_matrix_or_columns(tmp_path):
    A = np.array([[0, 1.5, 0], [1.5, 0, 0], [0, 0, 0]])
    sp.save_npz(tmp_path / "matrix.npz", sp.csr_array(A))
    np.savez(tmp_path / "columns.npz", source=[0], target=[1], weight=[1.5])
    for name in ("matrix.npz", "columns.npz"):
        assert np.allclose(read_label_graph(tmp_path / name, ["x", "y", "z"]).weights, A)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("gone.csv", None),
        ("gone.npz", None),
        ("latin.csv", "é,b,1".encode("latin-1")),
        ("cut.npz", b"PK\x03\x04"),
        ("empty.npz", b""),
    ],
)
def test_a_graph_that_cannot_be_read_is_told(tmp_path, name, content):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(DatasetError, match="graph cannot be read"):
        read_instance_graph(tmp_path / name, ["a", "b", "c"])


@pytest.mark.parametrize("text", ["a,zzz,1\n", "a,b,much\n", "a,b,-1\n", "a\n"])
def test_a_bad_edge_is_named(tmp_path, text):
    path = tmp_path / "edges.csv"
    path.write_text(text)
    with pytest.raises(DatasetError):
        read_instance_graph(path, ["a", "b"])


def test_a_pickled_graph_is_refused(tmp_path):
    path = tmp_path / "edges.npz"
    np.savez(path, source=np.array([{}], dtype=object), target=[1])
    with pytest.raises(DatasetError):
        read_label_graph(path, ["x", "y"])


def test_given_graphs_must_be_square_and_not_negative():
    for wrong in (np.ones((2, 3)), -np.ones((2, 2)), np.full((2, 2), np.nan)):
        with pytest.raises(DatasetError):
            InstanceGraph.from_affinity(wrong)
        with pytest.raises(DatasetError):
            LabelGraph.from_weights(wrong)
