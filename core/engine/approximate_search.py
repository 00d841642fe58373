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

Cells of sparse rows are found in fewer, dense dimensions; the rows that are compared in them, and
those that recall is measured on, are the sparse ones.

Of dense rows one copy is made, in the order of their cells; else they are read some at a time, so
that what they are made of may be larger than memory.
"""

import math
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from threadpoolctl import threadpool_limits

from core.cluster.executors import Executor, Item
from core.cluster.shared_arrays import blocks, load, remove, save, save_parts
from core.engine.exact_search import Search, exact_search, faiss_search, sparse_search
from core.engine.row_views import ReducedRows, Rows, RowView, in_blocks, laid_out

TARGET = 0.93
"""Recall from which on more cells are not worth their time."""

_SIZE = 512
"""Rows of a cell, on average."""

_FLAT, _GROUPS = 1024, 6
"""Centres up to which all are compared; beyond, those of one in so many groups."""

_MOST, _SPARSE_MOST = 32, 128
"""Cells searched for a row at most; their centres tell less of sparse rows."""

_POINTS = 32
"""Rows per centre from which these are found."""

_QUERIES = 1000
"""Rows whose exact neighbours are searched to measure recall."""

_FEW_VALUES = 2048
"""Of queries, from which on their comparisons are a matrix product."""

_BLOCK = 8192
"""Rows that find their cells at once."""

_SPARSE_AT_ONCE = 8
"""Cells whose sparse rows are compared at once: their products take less time than a call."""

_IN_MEMORY = 2**28
"""Values of dense rows that are kept in memory in the order of cells (1 GB)."""

_TASK_ROWS = 65_536
"""Rows of a task on a cluster at most."""


def approximate_search(
    X: Any,
    k: int,
    seed: int = 0,
    device: str = "cpu",
    executor: Executor | None = None,
    folder: Path | None = None,
) -> tuple[Rows, Any, float]:
    """Return the k rows most similar to every row, itself likely among them: cosines, rows, recall.

    Parameters
    ----------
    X : (n, d), rows of length 1: an array, a view or a sparse matrix
    device : where products are computed; the result may differ there in the last digit
    executor : runs blocks of dense rows and of cells as tasks, on the CPU; the result is the same
    folder : where dense rows go in the order of their cells, if they are too many for memory
    """
    with _threads(device) as threads:
        given = _Compared.of(X, seed, device)
        centres = _Centres.of(given.points, seed, exact_search(device))
        p, recall = _probes(given, centres, k, seed, threads)
        if executor is not None and given.points is X:
            return (*_search_by_tasks(X, centres, p, k, executor), recall)
        near = _nearest(given.points, centres, p, threads)
        n, n_cells = len(near), len(centres.rows)
        cells = _Cells.of(near, n_cells, lambda order: _in_order(X, order, folder))
        cosines, rows = np.empty((n, k), np.float32), np.empty((n, k), np.int32)

        def work(first: int) -> None:
            last = min(first + given.at_once, n_cells)
            at = cells.rows[cells.starts[first] : cells.starts[last]]
            cosines[at], rows[at] = cells.neighbors(first, last, k, given.search)

        list(threads.map(work, range(0, n_cells, given.at_once)))
    return cosines, rows, recall


class _Compared(NamedTuple):
    """Rows, and how they are put into cells and compared there."""

    rows: Any  # (n, d)
    points: RowView  # the same, dense: what cells are made of
    search: Search  # of rows
    at_once: int  # the cells whose rows are compared by one call
    most: int  # of cells searched for a row

    @classmethod
    def of(cls, X: Any, seed: int, device: str) -> "_Compared":
        if sp.issparse(X):
            return cls(X, ReducedRows(X, seed), sparse_search, _SPARSE_AT_ONCE, _SPARSE_MOST)
        return cls(X, X, exact_search(device), 1, _MOST)


@dataclass(frozen=True, eq=False)
class _Centres:
    """The centres of cells, one group after the other."""

    rows: Rows  # (cells, d)
    groups: Rows  # (groups, d)
    starts: npt.NDArray[np.intp]  # (groups + 1,)
    search: Search  # of dense rows

    @classmethod
    def of(cls, X: RowView, seed: int, search: Search) -> "_Centres":
        n, rng = len(X), np.random.default_rng(seed)
        n_cells = max(n // _SIZE, 1)
        if n_cells <= _FLAT:
            flat = _means(X, n_cells, seed)
            return cls(flat, flat.mean(axis=0)[None], np.array([0, len(flat)]), search)
        some = X[np.sort(rng.choice(n, _POINTS * n_cells, replace=False))]
        groups = _means(some, round(n_cells**0.5), seed)
        home = search(some, groups, 1)[1].ravel()
        parts = [some[home == group] for group in range(len(groups))]
        sizes = [max(round(n_cells * len(part) / len(some)), 1) for part in parts]
        centres = [_means(part, m, seed) for part, m in zip(parts, sizes, strict=True) if len(part)]
        kept = np.array([len(part) > 0 for part in parts])
        starts = np.cumsum([0, *(len(one) for one in centres)])
        return cls(np.concatenate(centres), groups[kept], starts, search)

    def nearest(self, X: Rows, p: int) -> npt.NDArray[np.int32]:
        """Return the p nearest centres of every row, the nearest first."""
        if len(self.groups) == 1:
            return np.asarray(self.search(X, self.rows, p)[1], np.int32)
        near = self.search(X, self.groups, -(-len(self.groups) // _GROUPS))[1]
        return _among(X, near, self.rows, self.starts, p, self.search)[1]


@dataclass(frozen=True, eq=False)
class _Cells:
    """Rows in the order of their cells."""

    X: Any  # (n, d), an array or a sparse matrix; of tasks the path of one
    rows: npt.NDArray[np.int32]  # (n,) which row each of them is
    near: npt.NDArray[np.int32]  # (n, p) the cells nearest to each, its own first
    starts: npt.NDArray[np.intp]  # (cells + 1,)

    @classmethod
    def of(
        cls, near: npt.NDArray[np.int32], n_cells: int, in_order: Callable[[Any], Any]
    ) -> "_Cells":
        """Sort rows into their nearest cells; `in_order` gives them in an order."""
        rows = np.argsort(near[:, 0], kind="stable").astype(np.int32)
        near = near[rows]
        starts = np.searchsorted(near[:, 0], np.arange(n_cells + 1))
        return cls(in_order(rows), rows, near, starts)

    def neighbors(self, first: int, last: int, k: int, search: Search) -> tuple[Rows, Any]:
        """Return cosines and rows of the k nearest to every row of some cells."""
        own = slice(self.starts[first], self.starts[last])
        found = _among(self.X[own], self.near[own], self.X, self.starts, k, search)
        cosines, places = found
        return cosines, np.where(places < 0, -1, self.rows[places])


def _among(
    X: Any, near: npt.NDArray[Any], rows: Any, starts: npt.NDArray[Any], k: int, search: Search
) -> tuple[Rows, npt.NDArray[np.int32]]:
    """Search each row's k nearest among the `rows` of its near parts; these begin at `starts`."""
    cosines = np.full((*near.shape, k), -np.inf, np.float32)
    places = np.full((*near.shape, k), -1, np.int32)
    order = np.argsort(near, axis=None, kind="stable")
    others, begin = np.unique(near.ravel()[order], return_index=True)
    for other, at in zip(others, np.split(order, begin)[1:], strict=True):
        if other < 0:  # fewer are near than were asked for
            continue
        first, last = starts[other : other + 2]
        query, probe = np.divmod(at, near.shape[1])
        some = min(k, int(last - first))
        if some:
            best, found = search(X[query], rows[first:last], some)
            cosines[query, probe, :some] = best
            places[query, probe, :some] = np.where(found < 0, -1, found + first)
    cosines, places = (part.reshape(len(near), near.shape[1] * k) for part in (cosines, places))
    if cosines.shape[1] > 2 * k:  # sorting all would take a tenth of the search
        top = np.argpartition(-cosines, k - 1, axis=1)[:, :k]
        cosines, places = (np.take_along_axis(part, top, axis=1) for part in (cosines, places))
    best = np.argsort(-cosines, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(cosines, best, axis=1), np.take_along_axis(places, best, axis=1)


def _in_order(X: Any, order: npt.NDArray[np.int32], folder: Path | None) -> Any:
    """Return all rows in this order; many dense ones in a file without a name that goes with it."""
    if sp.issparse(X):
        return X[order]
    if folder is None or math.prod(X.shape) <= _IN_MEMORY:
        return laid_out(X, order)
    with TemporaryFile(dir=folder) as file:
        for part in in_blocks(X, order):
            file.write(part.data)
        file.flush()
        return np.memmap(file, np.float32, "c", shape=X.shape)


def _means(X: RowView, n_means: int, seed: int) -> Rows:
    import faiss

    if len(X) > _POINTS * n_means:  # as faiss would choose them of all rows in memory
        order = np.empty(len(X), np.int32)
        faiss.rand_perm(faiss.swig_ptr(order), len(X), seed + 1)  # type: ignore[attr-defined]
        X = X[order[: _POINTS * n_means]]
    options = {"niter": 8, "max_points_per_centroid": _POINTS, "min_points_per_centroid": 1}
    means = faiss.Kmeans(X.shape[1], n_means, spherical=True, seed=seed + 1, **options)
    means.train(X[:])
    return np.asarray(means.centroids, np.float32)


def _probes(
    given: _Compared, centres: _Centres, k: int, seed: int, threads: ThreadPoolExecutor
) -> tuple[int, float]:
    """Return how many cells to search for a row, and what share of its nearest is in them."""
    n, most = len(given.points), min(given.most, len(centres.rows))
    queries = np.random.default_rng(seed).choice(n, min(_QUERIES, n), replace=False)
    exact = _exact(given, queries, k, threads)
    near = _nearest(given.points[queries], centres, most, threads)
    home = _nearest(given.points[exact.ravel()], centres, 1, threads).reshape(exact.shape)
    others = (exact != queries[:, None]) & (exact >= 0)
    if not others.any():
        return 1, 1.0
    reached = (home[:, :, None] == near[:, None, :])[others]
    recall = np.cumsum(reached, axis=1).mean(axis=0)
    p = int(np.argmax(recall >= TARGET)) + 1 if recall[-1] >= TARGET else most
    return p, float(recall[p - 1])


def _exact(
    given: _Compared, queries: npt.NDArray[Any], k: int, threads: ThreadPoolExecutor
) -> npt.NDArray[Any]:
    """Return the k nearest of all rows to a few, comparing with some at a time."""
    X, search = given.rows, given.search
    parts = [X[some] for some in np.array_split(queries, 4)]

    def among(at: int) -> tuple[Any, Any]:
        rows = X[at : at + _BLOCK]
        some = min(k, rows.shape[0])
        cosines, places = (
            np.concatenate(both)
            for both in zip(*(search(part, rows, some) for part in parts), strict=True)
        )
        return cosines, np.where(places < 0, -1, places + at)

    found = threads.map(among, range(0, X.shape[0], _BLOCK))
    cosines, places = (np.concatenate(both, axis=1) for both in zip(*found, strict=True))
    best = np.argsort(-cosines, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(places, best, axis=1)


def _nearest(
    X: RowView, centres: _Centres, p: int, threads: ThreadPoolExecutor
) -> npt.NDArray[np.int32]:
    found = threads.map(
        lambda at: centres.nearest(X[at : at + _BLOCK], p), range(0, len(X), _BLOCK)
    )
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
    X: RowView, centres: _Centres, p: int, k: int, executor: Executor
) -> tuple[Rows, npt.NDArray[np.int32]]:
    """Return cosines and rows of the k nearest, found by blocks of rows and then of cells."""
    n, folder = len(X), executor.folder
    n_blocks = max(4 * executor.n_workers, n // _TASK_ROWS)
    given: Item = {
        name: save(folder / f"{name}.npy", getattr(centres, name))
        for name in ("rows", "groups", "starts")
    }
    given["X"] = save_parts(folder / "X.npy", X.shape, in_blocks(X))
    items = [
        {**given, "p": p, "from": first, "to": last, "out": str(folder / f"near-{first}.npy")}
        for first, last in blocks(n, n_blocks)
    ]
    found = list(executor.map(_find_cells, items, "cells of rows"))
    near = np.concatenate([load(path) for path in found])
    remove([*given.values(), *found])
    path = folder / "cells.npy"
    cells = _Cells.of(
        near, len(centres.rows), lambda order: save_parts(path, X.shape, in_blocks(X, order))
    )
    given = {"X": cells.X} | {
        name: save(folder / f"{name}.npy", getattr(cells, name))
        for name in ("rows", "near", "starts")
    }
    # Blocks of cells with nearly as many rows each.
    ends = np.searchsorted(cells.starts, [last for _, last in blocks(n, n_blocks)])
    items = [
        {**given, "k": k, "from": first, "to": last, "out": str(folder / f"near-{first}.npy")}
        for first, last in pairwise([0, *np.unique(ends).tolist()])
    ]
    cosines, rows = np.empty((n, k), np.float32), np.empty((n, k), np.int32)
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
    rows, groups, starts = (load(item[name]) for name in ("rows", "groups", "starts"))
    centres = _Centres(rows, groups, starts, faiss_search)
    with _threads("cpu") as threads:
        return save(item["out"], _nearest(X, centres, item["p"], threads))


def _find_neighbors(item: Item) -> str:
    """Task: find the nearest rows of all rows of some cells."""
    cells = _Cells(*(load(item[name]) for name in ("X", "rows", "near", "starts")))
    first, last = cells.starts[item["from"]], cells.starts[item["to"]]
    k = item["k"]
    out = np.empty((last - first, k), [("cosines", np.float32), ("rows", np.int32)])
    with _threads("cpu"):
        for cell in range(item["from"], item["to"]):
            at = slice(cells.starts[cell] - first, cells.starts[cell + 1] - first)
            found = cells.neighbors(cell, cell + 1, k, faiss_search)
            out["cosines"][at], out["rows"][at] = found
    return save(item["out"], out)
