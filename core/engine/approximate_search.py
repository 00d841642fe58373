"""Nearest neighbours of many rows: k-means cells, exact search in those nearest to each row.

Cells are clusters of rows here, not those of an instance and a label.

Every row belongs to its nearest cell and is compared with the rows of its p nearest ones. Cells
have the same size whatever the number of rows, so that the work of a row stays the same. p is the
least whose recall, measured on exact searches of a sample, reaches `TARGET`; on data without
clusters recall gives way at `_MOST`, not time.

Many centres are in groups, found by k-means too: a row is compared with the centres of the nearest
sixth of the groups. What that misses is in the recall.

Comparisons are matrix products. A cell's rows are one piece of work for one thread, and no thread
waits for another: on a busy machine those of OpenMP do, and busily.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits

from core.cluster.executors import Executor, Item
from core.cluster.shared_arrays import blocks, load, remove, save
from core.engine.exact_search import Rows, Search, exact_search, faiss_search

TARGET = 0.93
"""Recall from which on more cells are not worth their time."""

_SIZE = 512
"""Rows of a cell, on average."""

_FLAT, _GROUPS = 1024, 6
"""Centres up to which all are compared; beyond, those of one in so many groups."""

_MOST = 32
"""Cells searched for a row at most."""

_POINTS = 32
"""Rows per centre from which these are found."""

_QUERIES = 1000
"""Rows whose exact neighbours are searched to measure recall."""

_FEW_VALUES = 2048
"""Of queries, from which on their comparisons are a matrix product."""

_BLOCK = 8192
"""Rows that find their cells at once."""

_TASK_ROWS = 65_536
"""Rows of a task on a cluster at most."""


def approximate_search(
    X: Rows, k: int, seed: int = 0, device: str = "cpu", executor: Executor | None = None
) -> tuple[Rows, Any, float]:
    """Return the k rows most similar to every row, itself likely among them: cosines, rows, recall.

    Parameters
    ----------
    X : (n, d), rows of length 1
    device : where products are computed; the result may differ there in the last digit
    executor : runs blocks of rows and of cells as tasks, on the CPU; the result is the same
    """
    search = exact_search(device)
    with _threads(device) as threads:
        centres = _Centres.of(X, seed, search)
        p, recall = _probes(X, centres, k, seed, search, threads)
        if executor is not None:
            return (*_search_by_tasks(X, centres, p, k, executor), recall)
        cells = _Cells.of(X, _nearest(X, centres, p, search, threads), len(centres.rows))
        cosines, rows = np.empty((len(X), k), np.float32), np.empty((len(X), k), np.int32)

        def work(cell: int) -> None:
            at = cells.rows[cells.starts[cell] : cells.starts[cell + 1]]
            cosines[at], rows[at] = cells.neighbors(cell, k, search)

        list(threads.map(work, range(len(centres.rows))))
    return cosines, rows, recall


@dataclass(frozen=True, eq=False)
class _Centres:
    """The centres of cells, one group after the other."""

    rows: Rows  # (cells, d)
    groups: Rows  # (groups, d)
    starts: npt.NDArray[np.intp]  # (groups + 1,)

    @classmethod
    def of(cls, X: Rows, seed: int, search: Search) -> "_Centres":
        n, rng = len(X), np.random.default_rng(seed)
        n_cells = max(n // _SIZE, 1)
        if n_cells <= _FLAT:
            flat = _means(X, n_cells, seed)
            return cls(flat, flat.mean(axis=0)[None], np.array([0, len(flat)]))
        some = X[np.sort(rng.choice(n, _POINTS * n_cells, replace=False))]
        groups = _means(some, round(n_cells**0.5), seed)
        home = search(some, groups, 1)[1].ravel()
        parts = [some[home == group] for group in range(len(groups))]
        sizes = [max(round(n_cells * len(part) / len(some)), 1) for part in parts]
        centres = [_means(part, m, seed) for part, m in zip(parts, sizes, strict=True) if len(part)]
        kept = np.array([len(part) > 0 for part in parts])
        starts = np.cumsum([0, *(len(one) for one in centres)])
        return cls(np.concatenate(centres), groups[kept], starts)

    def nearest(self, X: Rows, p: int, search: Search) -> npt.NDArray[np.int32]:
        """Return the p nearest centres of every row, the nearest first."""
        if len(self.groups) == 1:
            return np.asarray(search(X, self.rows, p)[1], np.int32)
        near = search(X, self.groups, -(-len(self.groups) // _GROUPS))[1]
        return _among(X, near, self.rows, self.starts, p, search)[1]


@dataclass(frozen=True, eq=False)
class _Cells:
    """Rows in the order of their cells."""

    X: Rows  # (n, d)
    rows: npt.NDArray[np.int32]  # (n,) which row each of them is
    near: npt.NDArray[np.int32]  # (n, p) the cells nearest to each, its own first
    starts: npt.NDArray[np.intp]  # (cells + 1,)

    @classmethod
    def of(cls, X: Rows, near: npt.NDArray[np.int32], n_cells: int) -> "_Cells":
        rows = np.argsort(near[:, 0], kind="stable").astype(np.int32)
        near = near[rows]
        starts = np.searchsorted(near[:, 0], np.arange(n_cells + 1))
        return cls(X[rows], rows, near, starts)

    def neighbors(self, cell: int, k: int, search: Search) -> tuple[Rows, Any]:
        """Return cosines and rows of the k nearest to every row of a cell."""
        own = slice(self.starts[cell], self.starts[cell + 1])
        found = _among(self.X[own], self.near[own], self.X, self.starts, k, search)
        cosines, places = found
        return cosines, np.where(places < 0, -1, self.rows[places])


def _among(
    X: Rows, near: npt.NDArray[Any], rows: Rows, starts: npt.NDArray[Any], k: int, search: Search
) -> tuple[Rows, npt.NDArray[np.int32]]:
    """Search each row's k nearest among the `rows` of its near parts; these begin at `starts`."""
    cosines = np.full((*near.shape, k), -np.inf, np.float32)
    places = np.full((*near.shape, k), -1, np.int32)
    order = np.argsort(near, axis=None, kind="stable")
    others, begin = np.unique(near.ravel()[order], return_index=True)
    for other, at in zip(others, np.split(order, begin[1:]), strict=True):
        if other < 0:  # fewer are near than were asked for
            continue
        first, last = starts[other : other + 2]
        query, probe = np.divmod(at, near.shape[1])
        some = min(k, int(last - first))
        if some:
            best, found = search(X[query], rows[first:last], some)
            cosines[query, probe, :some], places[query, probe, :some] = best, found + first
    cosines, places = (part.reshape(len(X), -1) for part in (cosines, places))
    if cosines.shape[1] > 2 * k:  # sorting all would take a tenth of the search
        top = np.argpartition(-cosines, k - 1, axis=1)[:, :k]
        cosines, places = (np.take_along_axis(part, top, axis=1) for part in (cosines, places))
    best = np.argsort(-cosines, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(cosines, best, axis=1), np.take_along_axis(places, best, axis=1)


def _means(X: Rows, n_means: int, seed: int) -> Rows:
    import faiss

    options = {"niter": 8, "max_points_per_centroid": _POINTS, "min_points_per_centroid": 1}
    means = faiss.Kmeans(X.shape[1], n_means, spherical=True, seed=seed + 1, **options)
    means.train(X)
    return np.asarray(means.centroids, np.float32)


def _probes(
    X: Rows, centres: _Centres, k: int, seed: int, search: Search, threads: ThreadPoolExecutor
) -> tuple[int, float]:
    """Return how many cells to search for a row, and what share of its nearest is in them."""
    n, most = len(X), min(_MOST, len(centres.rows))
    queries = np.random.default_rng(seed).choice(n, min(_QUERIES, n), replace=False)
    parts = np.array_split(X[queries], 4)
    exact = np.concatenate([part[1] for part in threads.map(lambda q: search(q, X, k), parts)])
    near = _nearest(X[queries], centres, most, search, threads)
    home = _nearest(X[exact.ravel()], centres, 1, search, threads).reshape(exact.shape)
    others = exact != queries[:, None]
    reached = (home[:, :, None] == near[:, None, :])[others]
    recall = np.cumsum(reached, axis=1).mean(axis=0)
    p = int(np.argmax(recall >= TARGET)) + 1 if recall[-1] >= TARGET else most
    return p, float(recall[p - 1])


def _nearest(
    X: Rows, centres: _Centres, p: int, search: Search, threads: ThreadPoolExecutor
) -> npt.NDArray[np.int32]:
    parts = np.split(X, range(_BLOCK, len(X), _BLOCK))
    found = threads.map(lambda part: centres.nearest(part, p, search), parts)
    return np.concatenate(list(found))


@contextmanager
def _threads(device: str) -> Iterator[ThreadPoolExecutor]:
    """Give as many threads as torch may use, each alone in its products."""
    import faiss
    import torch

    n = torch.get_num_threads() if device == "cpu" else 1
    pool = ThreadPoolExecutor(n, initializer=faiss.omp_set_num_threads, initargs=(1,))
    # faiss would compare fewer than a thousand queries one by one; products take half the time.
    before, faiss.cvar.distance_compute_blas_threshold = (
        faiss.cvar.distance_compute_blas_threshold,
        _FEW_VALUES,
    )
    try:
        with threadpool_limits(1), pool:
            yield pool
    finally:
        faiss.cvar.distance_compute_blas_threshold = before


def _search_by_tasks(
    X: Rows, centres: _Centres, p: int, k: int, executor: Executor
) -> tuple[Rows, npt.NDArray[np.int32]]:
    """Return cosines and rows of the k nearest, found by blocks of rows and then of cells."""
    folder, n_blocks = executor.folder, max(4 * executor.n_workers, len(X) // _TASK_ROWS)
    given: Item = {
        name: save(folder / f"{name}.npy", getattr(centres, name))
        for name in ("rows", "groups", "starts")
    }
    given["X"] = save(folder / "X.npy", X)
    items = [
        {**given, "p": p, "from": first, "to": last, "out": str(folder / f"near-{first}.npy")}
        for first, last in blocks(len(X), n_blocks)
    ]
    found = list(executor.map(_find_cells, items, "cells of rows"))
    cells = _Cells.of(X, np.concatenate([load(path) for path in found]), len(centres.rows))
    remove([*given.values(), *found])
    given = {
        name: save(folder / f"{name}.npy", getattr(cells, name))
        for name in ("X", "rows", "near", "starts")
    }
    # Blocks of cells with nearly as many rows each.
    ends = np.searchsorted(cells.starts, [last for _, last in blocks(len(X), n_blocks)])
    items = [
        {**given, "k": k, "from": first, "to": last, "out": str(folder / f"near-{first}.npy")}
        for first, last in pairwise([0, *np.unique(ends).tolist()])
    ]
    cosines, rows = np.empty((len(X), k), np.float32), np.empty((len(X), k), np.int32)
    for item, path in zip(items, executor.map(_find_neighbors, items, "neighbours"), strict=True):
        at = cells.rows[cells.starts[item["from"]] : cells.starts[item["to"]]]
        both = load(path)
        cosines[at], rows[at] = both["cosines"], both["rows"]
        remove([path])
    remove(list(given.values()))
    return cosines, rows


def _find_cells(item: Item) -> str:
    """Task: find the cells nearest to some rows."""
    X = load(item["X"])[item["from"] : item["to"]]
    centres = _Centres(*(load(item[name]) for name in ("rows", "groups", "starts")))
    with _threads("cpu") as threads:
        return save(item["out"], _nearest(X, centres, item["p"], faiss_search, threads))


def _find_neighbors(item: Item) -> str:
    """Task: find the nearest rows of all rows of some cells."""
    cells = _Cells(*(load(item[name]) for name in ("X", "rows", "near", "starts")))
    first, last = cells.starts[item["from"]], cells.starts[item["to"]]
    k = item["k"]
    out = np.empty((last - first, k), [("cosines", np.float32), ("rows", np.int32)])
    with _threads("cpu"):
        for cell in range(item["from"], item["to"]):
            at = slice(cells.starts[cell] - first, cells.starts[cell + 1] - first)
            out["cosines"][at], out["rows"][at] = cells.neighbors(cell, k, faiss_search)
    return save(item["out"], out)
