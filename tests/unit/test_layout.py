import numpy as np
import pytest
import scipy.sparse as sp

from core.engine.graphs import build_instance_graph
from core.runs.layout import pca_layout, umap_layout

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("as_matrix", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("d", [1, 2, 8])
def test_pca_puts_everything_on_a_square_map(as_matrix, d):
    layout = pca_layout(as_matrix(RNG.random((30, d)).astype("f4")))
    assert layout.shape == (30, 2)
    assert np.isfinite(layout).all()
    assert np.abs(layout).max() == pytest.approx(1)


def test_umap_keeps_clusters_together():
    centres = 5 * RNG.standard_normal((3, 10))
    cluster = np.repeat(np.arange(3), 40)
    X = (centres[cluster] + RNG.standard_normal((120, 10))).astype("f4")
    layout = umap_layout(build_instance_graph(X, k=8), pca_layout(X))
    middles = np.stack([layout[cluster == c].mean(axis=0) for c in range(3)])
    nearest = np.linalg.norm(layout[:, None] - middles, axis=2).argmin(axis=1)
    assert (nearest == cluster).mean() > 0.95
    assert np.array_equal(layout, umap_layout(build_instance_graph(X, k=8), pca_layout(X)))
