"""The nearest rows among some by comparing with all of them, by the library that suits them.

Sparse rows are sparse_dot_topn's. Dense ones are faiss's on the processor; on a GPU too, where it
was built for one (the packages faiss-gpu; with cuVS where it was built with that), else, and on any
other device, they are compared by torch's matrix product in blocks.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from core.engine.row_views import Rows

Search = Callable[[Any, Any, int], tuple[Any, Any]]
"""Of queries among rows: the k largest products of each, and their places."""

_PRODUCTS = 2**26
"""Held at once by the search with torch (256 MB)."""

_GPU_BYTES = 2**30
"""Of rows, and a quarter of it of queries, that faiss brings to a GPU at once."""


def exact_search(device: str) -> Search:
    """Return the search of a torch device."""
    import faiss
    import torch

    at = torch.device(device)
    if at.type == "cpu":
        return faiss_search
    if at.type == "cuda" and faiss.get_num_gpus():
        return faiss_gpu_search(at.index)
    return torch_search(device)


def faiss_search(queries: Rows, rows: Rows, k: int) -> tuple[Any, Any]:
    """Search with faiss on the processor."""
    import faiss

    return faiss.knn(queries, rows, k, metric=faiss.METRIC_INNER_PRODUCT)


def faiss_gpu_search(number: int | None) -> Search:
    """Return the search with faiss on a GPU; without a number it is the current one."""
    import faiss

    resources = faiss.StandardGpuResources()
    options: dict[str, Any] = {
        "metric": faiss.METRIC_INNER_PRODUCT,
        "device": -1 if number is None else number,
        "use_cuvs": "CUVS" in faiss.get_compile_options(),
        "vectorsMemoryLimit": _GPU_BYTES,
        "queriesMemoryLimit": _GPU_BYTES // 4,
    }

    def search(queries: Rows, rows: Rows, k: int) -> tuple[Any, Any]:
        return faiss.knn_gpu(resources, queries, rows, k, **options)

    return search


def sparse_search(queries: Any, rows: Any, k: int, n_threads: int = 1) -> tuple[Any, Any]:
    """Search sparse rows by a product of which each query keeps its largest values.

    Where fewer than k are above 0 the places are -1. Threads share the queries.
    """
    from sparse_dot_topn import sp_matmul_topn

    options = {"sort": True, "threshold": 0.0, "n_threads": n_threads}
    columns = sp.csr_matrix(rows).T.tocsr()
    S = sp.csr_array(sp_matmul_topn(sp.csr_matrix(queries), columns, top_n=k, **options))
    counts = np.diff(S.indptr)
    query, place = np.repeat(np.arange(len(counts)), counts), np.arange(S.nnz)
    place -= np.repeat(S.indptr[:-1], counts)
    cosines = np.zeros((len(counts), k), np.float32)
    places = np.full((len(counts), k), -1)
    cosines[query, place], places[query, place] = S.data, S.indices
    return cosines, places


def torch_search(device: str, at_once: int = _PRODUCTS) -> Search:
    """Return the search by blocks of a matrix product on a device."""
    import torch

    def search(queries: Rows, rows: Rows, k: int) -> tuple[Any, Any]:
        right = torch.as_tensor(rows, device=device)
        left = right if queries is rows else torch.as_tensor(queries, device=device)
        best = [
            torch.topk(part @ right.T, k)
            for part in torch.split(left, max(at_once // len(rows), 1))
        ]
        cosines, places = (torch.cat(part).cpu().numpy() for part in zip(*best, strict=True))
        return cosines, places

    return search
