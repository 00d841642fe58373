"""The nearest rows among some by comparing with all of them, by the library that suits a device.

On the processor that is faiss; on a GPU faiss too, where it was built for one (the packages
faiss-gpu; with cuVS where it was built with that), else, and on any other device, torch's matrix
product in blocks.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

Rows = npt.NDArray[np.float32]
Search = Callable[[Rows, Rows, int], tuple[Any, Any]]
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
