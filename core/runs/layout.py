"""Where instances stand on the map: two coordinates each, made once per run.

PCA is there at once. UMAP lays out the instance graph the run already has: no second search, and
what is near on the map is what propagates.
"""

import warnings

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from core.data.dataset import Features
from core.engine.graphs import InstanceGraph

Layout = npt.NDArray[np.float32]


def pca_layout(features: Features, seed: int = 0) -> Layout:
    """Return the first two principal components, scaled to [-1, 1]; sparse rows stay sparse."""
    from sklearn.decomposition import PCA, TruncatedSVD

    if features.shape[1] < 3:
        flat = np.zeros((features.shape[0], 2))
        flat[:, : features.shape[1]] = features.toarray() if sp.issparse(features) else features
        return _scaled(flat)
    if sp.issparse(features):
        return _scaled(TruncatedSVD(2, random_state=seed).fit_transform(features))
    return _scaled(PCA(2, svd_solver="randomized", random_state=seed).fit_transform(features))


def umap_layout(graph: InstanceGraph, start: Layout, seed: int = 0) -> Layout:
    """Return the UMAP embedding of the instance graph, begun at an earlier layout."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from umap.umap_ import find_ab_params, simplicial_set_embedding

        a, b = find_ab_params(1.0, 0.1)
        n = graph.n_instances
        weights = graph.affinity.tocoo()
        weights.data = weights.data / max(float(weights.data.max(initial=0)), 1e-12)
        jitter = np.random.default_rng(seed).normal(scale=1e-3, size=start.shape)
        embedding, _ = simplicial_set_embedding(
            data=np.zeros((n, 1), np.float32),
            graph=weights,
            n_components=2,
            initial_alpha=1.0,
            a=a,
            b=b,
            gamma=1.0,
            negative_sample_rate=5,
            n_epochs=200 if n > 10_000 else 500,
            init=(10 * start + jitter).astype(np.float32),
            random_state=np.random.RandomState(seed),
            metric="euclidean",
            metric_kwds={},
            densmap=False,
            densmap_kwds={},
            output_dens=False,
            parallel=False,
        )
    return _scaled(embedding)


def _scaled(points: npt.NDArray[np.floating]) -> Layout:
    """Bring both axes to [-1, 1] around the middle, with one scale."""
    points = np.nan_to_num(np.asarray(points, np.float64))
    middle = (points.max(axis=0) + points.min(axis=0)) / 2
    reach = np.abs(points - middle).max()
    return np.asarray((points - middle) / (reach or 1), np.float32)
