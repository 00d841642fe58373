"""The two graphs of PLAIN: who is near whom, and which labels are offered together.

Owns nearest-neighbour search and normalisation. Settled against paper and release:
- s_ij = max(x_i . x_j, 0)^rho, as the paper says; the release cubes the signed cosine, which can
  make a degree negative.
- The k neighbours of a row never include the row itself, told by its index. The release drops the
  first hit, which is another row when rows are duplicated.
- Two labels that nobody has are unrelated (weight 0; the release writes 1e-5).
"""

import csv
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from core.cluster.executors import Executor
from core.data.dataset import MIN_INSTANCES, as_features, as_labels
from core.engine.approximate_search import approximate_search
from core.engine.config import PlainConfig
from core.engine.exact_search import exact_search, sparse_search, torch_search
from core.engine.row_views import NormalizedRows, RowView, ScaledRows, laid_out
from core.errors import DatasetError, Problem

EXACT_LIMIT = 16_384
"""Dense rows up to which neighbours are searched exactly; above, in the nearest cells."""

SPARSE_LIMIT = 65_536
"""Sparse rows up to which neighbours are searched exactly: of made texts cells take longer at
40,000 (9.7 s instead of 8.1), and less at 100,000 (31 instead of 53)."""

_BLOCK = 2**22
"""Similarities held at once by the exact search (16 MB, near a processor's cache)."""

Found = tuple[npt.NDArray[np.float32], npt.NDArray[Any]]


@dataclass(frozen=True, eq=False)
class InstanceGraph:
    """A^x and its normalisation; `recall` is the measured share of true neighbours found."""

    affinity: sp.csr_array  # A^x = S + S^T, (n, n)
    normalized: sp.csr_array  # D^-1/2 A^x D^-1/2, rows without neighbours stay zero
    search: str = "given"
    recall: float | None = None

    @classmethod
    def from_affinity(cls, affinity: Any) -> "InstanceGraph":
        """Return the graph of a non-negative affinity matrix, made symmetric if it is not."""
        A = sp.csr_array(_checked_affinity(sp.csr_array(affinity, dtype=np.float32)))
        return cls(A, _normalized(A))

    @property
    def n_instances(self) -> int:
        return int(self.affinity.shape[0])

    def strongest(self, i: int, limit: int) -> tuple[list[int], list[float]]:
        """Return the neighbours of an instance and the weights of their edges, strongest first."""
        part = slice(self.affinity.indptr[i], self.affinity.indptr[i + 1])
        rows, weights = self.affinity.indices[part], self.affinity.data[part]
        order = np.argsort(-weights, kind="stable")[:limit]
        return rows[order].tolist(), weights[order].tolist()


@dataclass(frozen=True, eq=False)
class LabelGraph:
    """A^y and its normalisation."""

    weights: npt.NDArray[np.float32]  # A^y, (L, L), zero diagonal
    normalized: npt.NDArray[np.float32]  # D^-1/2 A^y D^-1/2

    @classmethod
    def from_weights(cls, weights: Any) -> "LabelGraph":
        """Return the graph of a non-negative weight matrix, made symmetric if it is not."""
        W = weights.toarray() if sp.issparse(weights) else weights
        A = _checked_affinity(sp.csr_array(np.asarray(W, np.float32))).toarray()
        scale = _inverse_sqrt(A.sum(axis=1))
        return cls(A, scale[:, None] * A * scale)

    @property
    def n_labels(self) -> int:
        return int(self.weights.shape[0])


@dataclass(frozen=True, eq=False)
class Neighbors:
    """The nearest rows of every row, the most similar first; a row may be among its own.

    One search serves every graph with fewer neighbours or another exponent.
    """

    cosines: npt.NDArray[np.float32]  # (n, k + 1)
    rows: npt.NDArray[Any]  # (n, k + 1), negative where there is none
    search: str
    recall: float | None

    @property
    def k(self) -> int:
        """The most neighbours a graph can have."""
        return int(self.rows.shape[1]) - 1

    def graph(self, k: int, rho: float) -> InstanceGraph:
        """Return the graph that `build_instance_graph` makes with these settings."""
        k = min(k, self.k)
        S = _similarities(self.cosines[:, : k + 1], self.rows[:, : k + 1], k)
        S.data **= np.float32(rho)
        A = sp.csr_array(S + S.T)
        A.eliminate_zeros()
        return InstanceGraph(A, _normalized(A), self.search, self.recall)


def build_instance_graph(
    X: Any,
    k: int = 10,
    rho: float = 3.0,
    *,
    search: str = "auto",
    seed: int = 0,
    device: str = "cpu",
    executor: Executor | None = None,
    folder: Path | None = None,
) -> InstanceGraph:
    """Connect every instance with its k nearest others by cosine similarity.

    Parameters
    ----------
    X : (n, d) finite array, `ScaledRows` or sparse matrix; rows are brought to unit length here
    k : neighbours per instance, at most n - 1 of which exist
    rho : exponent of the similarity
    search : "exact", "cells", or "auto": exact up to `EXACT_LIMIT` dense rows, or `SPARSE_LIMIT`
        sparse ones
    seed : of the cells and of the sample that recall is measured on
    device : torch device of the search
    executor : runs blocks of cells as tasks
    folder : where a copy of dense rows goes that is too large for memory, while it is needed
    """
    PlainConfig(k=k, rho=rho)
    options: dict[str, Any] = {"search": search, "seed": seed, "device": device}
    options |= {"executor": executor, "folder": folder}
    return find_neighbors(X, k, **options).graph(k, rho)


def find_neighbors(
    X: Any,
    k: int,
    *,
    search: str = "auto",
    seed: int = 0,
    device: str = "cpu",
    executor: Executor | None = None,
    folder: Path | None = None,
) -> Neighbors:
    """Search the k nearest other rows of every row; parameters as of `build_instance_graph`."""
    problems: list[Problem] = []
    X = X if isinstance(X, ScaledRows) else as_features(X, problems)
    if not problems and X.shape[0] < MIN_INSTANCES:
        few = f"a graph needs at least {MIN_INSTANCES} instances"
        problems.append(Problem(few, "Add instances.", fatal=True, value=str(X.shape[0])))
    if problems:
        raise DatasetError(problems)
    n = X.shape[0]
    k = min(k, n - 1)
    is_sparse = sp.issparse(X)
    unit = _unit_sparse(X) if is_sparse else _unit_dense(X)
    if search == "cells" or (search == "auto" and n > (SPARSE_LIMIT if is_sparse else EXACT_LIMIT)):
        found = approximate_search(unit, k + 1, seed, device, executor, folder)
        cosines, rows, recall = found
        return Neighbors(cosines, rows, "cells", recall)
    if is_sparse:
        return Neighbors(*_nearest_sparse(unit, k), "sparse", 1.0)
    return Neighbors(*_nearest_exact(laid_out(unit), k, device), "exact", 1.0)


def build_label_graph(Y: Any) -> LabelGraph:
    """Connect labels by how often they are candidates of the same instance.

    a_ij = |i and j| / (|i| + |j|), counted over candidates.
    """
    problems: list[Problem] = []
    Y = as_labels(Y, "candidates", problems).astype(np.float32)
    if problems:
        raise DatasetError(problems)
    together = Y.T @ Y
    counts = np.diag(together)
    A = together / np.maximum(counts[:, None] + counts, 1)
    np.fill_diagonal(A, 0)
    return LabelGraph.from_weights(A)


def sparse_tensor(A: sp.csr_array, device: Any) -> Any:
    """Return a sparse matrix as a torch tensor on a device, or near one that has no such product.

    On the CPU both share their memory.
    """
    import torch

    # MPS has no sparse CSR product; its memory is the host's.
    device = torch.device("cpu") if torch.device(device).type == "mps" else device
    starts, columns, values = (
        torch.as_tensor(part, device=device) for part in (A.indptr, A.indices, A.data)
    )
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta")
        return torch.sparse_csr_tensor(starts, columns, values, size=A.shape, check_invariants=True)


def read_instance_graph(path: Path | str, ids: Sequence[str]) -> InstanceGraph:
    """Read an instance graph the user knows, replacing the one built from features."""
    return InstanceGraph.from_affinity(_read_edges(Path(path), ids, "instance"))


def read_label_graph(path: Path | str, label_names: Sequence[str]) -> LabelGraph:
    """Read a label graph the user knows, replacing the one built from candidates."""
    return LabelGraph.from_weights(_read_edges(Path(path), label_names, "label"))


def _unit_sparse(X: sp.csr_array) -> sp.csr_array:
    norms = np.sqrt(np.asarray(X.multiply(X).sum(axis=1), dtype=np.float64)).ravel()
    scale = np.divide(1, norms, out=np.zeros_like(norms), where=norms > 0)
    return sp.csr_array(sp.diags_array(scale, format="csr") @ X, dtype=np.float32)


def _unit_dense(X: RowView) -> NormalizedRows:
    unit = NormalizedRows(X)
    if not unit.are_finite:  # scaled beyond what a number can be
        problems: list[Problem] = []
        as_features(np.asarray(X), problems)
        raise DatasetError(problems)
    return unit


def _nearest_sparse(X: sp.csr_array, k: int) -> Found:
    """Search by all threads."""
    import torch

    return sparse_search(X, X, k + 1, torch.get_num_threads())


def _nearest_exact(X: npt.NDArray[np.float32], k: int, device: str) -> Found:
    """Search by blocks of a matrix product: what faiss's flat index does, 2 to 4 times faster.

    A GPU has more memory than a processor has cache, and a search of its own.
    """
    search = torch_search(device, _BLOCK) if device == "cpu" else exact_search(device)
    return search(X, X, k + 1)


def _others(
    neighbors: npt.NDArray[Any], queries: npt.NDArray[Any], k: int
) -> npt.NDArray[np.bool_]:
    """Mark the first k hits of each query that are another row."""
    others = (neighbors != queries[:, None]) & (neighbors >= 0)
    marked: npt.NDArray[np.bool_] = others & (np.cumsum(others, axis=1) <= k)
    return marked


def _similarities(
    cosines: npt.NDArray[np.float32], neighbors: npt.NDArray[Any], k: int
) -> sp.csr_array:
    n = len(neighbors)
    kept = _others(neighbors, np.arange(n), k) & (cosines > 0)
    starts = np.concatenate([[0], np.cumsum(kept.sum(axis=1))])
    data = np.clip(cosines[kept], 0, 1).astype(np.float32)
    return sp.csr_array((data, neighbors[kept].astype(np.int64), starts), shape=(n, n))


def _normalized(A: sp.csr_array) -> sp.csr_array:
    """Return D^-1/2 A D^-1/2; rows without neighbours stay zero. Sorts A's indices."""
    A.sort_indices()
    scale = _inverse_sqrt(A.sum(axis=1))
    data = A.data * (np.repeat(scale, np.diff(A.indptr)) * scale[A.indices])
    return sp.csr_array((data, A.indices, A.indptr), shape=A.shape)


def _inverse_sqrt(degrees: Any) -> npt.NDArray[np.float32]:
    d = np.asarray(degrees, dtype=np.float64).ravel()
    return np.divide(1, np.sqrt(d), out=np.zeros_like(d), where=d > 0).astype(np.float32)


def _checked_affinity(A: sp.csr_array) -> sp.csr_array:
    if A.shape[0] != A.shape[1]:
        square = "a graph must be a square matrix"
        raise DatasetError([Problem(square, "Give one row per node.", True, value=str(A.shape))])
    if A.nnz and not (np.isfinite(A.data).all() and A.data.min() >= 0):
        weights = "graph weights must be finite and not negative"
        raise DatasetError([Problem(weights, "Correct the weights.", fatal=True)])
    A = sp.csr_array(A - sp.diags_array(A.diagonal(), format="csr"))
    A.eliminate_zeros()
    return A if abs(A - A.T).sum() == 0 else sp.csr_array(A + A.T)


def _read_edges(path: Path, names: Sequence[str], what: str) -> sp.csr_array:
    """Read (source, target, weight) from CSV, or a sparse matrix or such columns from NPZ."""
    try:
        rows = _read_arrays(path) if path.suffix == ".npz" else _read_rows(path)
    except (OSError, ValueError, TypeError, EOFError, csv.Error, BadZipFile) as error:
        unreadable = f"the {what} graph cannot be read: {error}"
        fix = "Give a CSV of source, target, weight, or an NPZ of plain arrays."
        raise DatasetError([Problem(unreadable, fix, True)]) from None
    if isinstance(rows, dict):
        return _npz_edges(rows, names, what)
    if rows and [cell.strip().lower() for cell in rows[0][:2]] == ["source", "target"]:
        rows = rows[1:]
    place = {name: at for at, name in enumerate(names)}
    problems, edges = [], []
    for line, row in enumerate(rows, start=1):
        try:
            edges.append((place[row[0]], place[row[1]], float(row[2]) if len(row) > 2 else 1.0))
        except (KeyError, ValueError, IndexError):
            wrong = f"an edge must be two known {what}s and a number"
            problems.append(Problem(wrong, "Correct the line.", True, line, None, ",".join(row)))
    if problems:
        raise DatasetError(problems[:20])
    source, target, weight = np.array(edges, dtype=np.float64).reshape(-1, 3).T
    return _sparse(source.astype(int), target.astype(int), weight, len(names))


def _read_arrays(path: Path) -> dict[str, Any]:
    with np.load(path, allow_pickle=False) as arrays:
        return {name: arrays[name] for name in arrays.files}


def _read_rows(path: Path) -> list[list[str]]:
    with path.open(newline="", encoding="utf-8-sig") as file:
        return [row for row in csv.reader(file) if row]


def _npz_edges(columns: Mapping[str, Any], names: Sequence[str], what: str) -> sp.csr_array:
    n = len(names)
    try:
        if "indptr" in columns:
            parts = (columns["data"], columns["indices"], columns["indptr"])
            matrix = sp.csr_array(parts, shape=tuple(columns["shape"]))
            matrix.check_format()
        else:
            source, target = columns["source"], columns["target"]
            matrix = _sparse(source, target, columns.get("weight", np.ones(len(source))), n)
        if matrix.shape == (n, n):
            return matrix
        found = str(matrix.shape)
    except (KeyError, ValueError, IndexError, TypeError) as error:
        found = str(error)
    wrong = f"the {what} graph must be a sparse matrix of {n} nodes, or source, target, weight"
    raise DatasetError([Problem(wrong, "Correct the file.", fatal=True, value=found)])


def _sparse(source: Any, target: Any, weight: Any, n: int) -> sp.csr_array:
    return sp.csr_array(
        sp.coo_array((np.asarray(weight, np.float32), (source, target)), shape=(n, n))
    )
