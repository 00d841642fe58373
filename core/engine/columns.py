"""Propagation by label columns, so that workers who hold some exchange nothing while they solve.

With the label graph diagonalised, A_y = Q diag(mu) Q', column l of Z Q is a system of its own: the
operator M of `core.engine.propagation` is there (alpha A_x + beta mu_l) / h, and the same expansion
gives the same Z. Here (`Columns`) and by tasks (`ColumnPropagation`) it has the same bits, however
many workers there are: a column's do not depend on those beside it, and rows are multiplied by Q in
the same pieces.

Training has rows. Each of P blocks of rows is multiplied by Q and cut into P blocks of columns;
those are solved, cut into rows again and multiplied by Q'. Blocks are files: of 4 n L bytes each
way, what stays with the block of the same number need not move, so an epoch moves
2 * 4 n L (P - 1) / P bytes. Clamped decisions weigh single cells, which Q does not diagonalise:
they are solved where they are made (`Propagator.clamped`).
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import torch
from threadpoolctl import ThreadpoolController

from core.cluster.executors import Executor, Item
from core.cluster.shared_arrays import blocks, load, remove, save
from core.engine.graphs import LabelGraph
from core.engine.propagation import Matrix, Propagator

_PIECE, _PIECES = 256, 64
"""Rows multiplied by Q at once, and such pieces that a thread takes at once."""

_ROWS = 4096
"""Rows that are added up at once: they stay near a processor, and no further matrix is made."""

_WIDTH = 32
"""Columns solved at once, by a thread. 200,000 x 50: .37 s of the processor, .51 with 16, .34 with
all at once, which needs the memory of six n x L matrices; with the label graph as it is .49."""


class System(NamedTuple):
    """The systems of all columns."""

    Q: npt.NDArray[np.float64]  # (L, L)
    shift: Matrix  # (L,)
    coefficients: Matrix  # (2, degree + 1)

    @classmethod
    def of(cls, propagator: Propagator, label_graph: LabelGraph) -> "System":
        mu, Q = np.linalg.eigh(label_graph.normalized.astype(np.float64))
        h = propagator.alpha + propagator.beta
        shift = (mu * (2 * propagator.beta / h if h else 0)).astype(np.float32)
        return cls(Q, shift, np.array(propagator.coefficients, np.float32))


@cache
def _numpy_threads() -> ThreadpoolController:
    return ThreadpoolController().select(internal_api="openblas")


Run = Callable[[Callable[[int], None], Sequence[int]], None]
"""Calls a function with every number."""


def _one_by_one(work: Callable[[int], None], items: Sequence[int]) -> None:
    for item in items:
        work(item)


class Columns:
    """Z of one data set, solved here.

    By threads of our own: those of numpy's products wait busily for each other, which beside other
    programs takes the time many times over.
    """

    def __init__(self, propagator: Propagator, label_graph: LabelGraph, Y: Any) -> None:
        self._system = System.of(propagator, label_graph)
        self._A = propagator.instance_weights
        ends = [*range(0, len(self._system.shift), _WIDTH), len(self._system.shift)]
        self._columns = list(pairwise(ends))
        with self._threads() as run:
            self._Y = _rotated(np.asarray(Y, np.float32), self._system.Q, self._columns, run)

    def propagate(self, Y_hat: Matrix) -> Matrix:
        """Return Z, (n, L), not rescaled."""
        Q, shift, coefficients = self._system

        def solve(at: int) -> None:
            own = slice(*self._columns[at])
            parts[at] = _clenshaw(self._A, shift[own], coefficients, self._Y[at], parts[at])

        with self._threads() as run:
            parts = _rotated(Y_hat, Q, self._columns, run)
            run(solve, range(len(parts)))
            return _rotated_back(parts, Q, run)

    @contextmanager
    def _threads(self) -> Iterator[Run]:
        with (
            _numpy_threads().limit(limits=1),
            ThreadPoolExecutor(torch.get_num_threads()) as threads,
        ):

            def run(work: Callable[[int], None], items: Sequence[int]) -> None:
                list(threads.map(work, items))

            yield run


class ColumnPropagation:
    """Z of one data set by tasks: every worker needs the instance graph, and some columns.

    Parameters
    ----------
    propagator : weights and instance graph; label_graph : the propagator's
    Y : (n, L) the candidates
    """

    def __init__(
        self, propagator: Propagator, label_graph: LabelGraph, Y: Any, executor: Executor
    ) -> None:
        n, n_labels = propagator.shape
        n_blocks = min(executor.n_workers, n_labels)
        self._executor, self._step, self.moved = executor, 0, 0
        self._columns = blocks(n_labels, n_blocks)
        pieces = blocks(-(-n // _PIECE), n_blocks)
        self._rows = [(first * _PIECE, min(last * _PIECE, n)) for first, last in pieces]
        A, folder = propagator.instance_weights, executor.folder
        arrays = {
            "data": A.data,
            "indices": A.indices,
            "indptr": A.indptr.astype(A.indices.dtype, copy=False),
            **System.of(propagator, label_graph)._asdict(),
        }
        self._given: Item = {
            name: save(folder / f"columns-{name}.npy", array) for name, array in arrays.items()
        }
        self._Y = self._to_columns(np.asarray(Y, np.float32), "Y")

    def propagate(self, Y_hat: Matrix) -> Matrix:
        """Return Z, (n, L), not rescaled; `moved` is then what blocks sent to other blocks."""
        self._step += 1
        parts = self._to_columns(Y_hat, f"Y_hat-{self._step}")
        solved = self._map(
            _solve_columns,
            [
                {
                    "Y": Y,
                    "Y_hat": own,
                    "columns": at,
                    "rows": self._rows,
                    "name": f"Z-{self._step}-{q}",
                }
                for q, (Y, own, at) in enumerate(
                    zip(_turned(self._Y), _turned(parts), self._columns, strict=True)
                )
            ],
        )
        self.moved = _sent(parts) + _sent(solved)
        remove([path for row in parts for path in row])
        items = [
            {"parts": own, "name": f"rows-{self._step}-{p}"}
            for p, own in enumerate(_turned(solved))
        ]
        found = self._map(_to_rows, items)
        Z: Matrix = np.concatenate([load(path) for path in found])
        remove([*found, *(path for row in solved for path in row)])
        return Z

    def _to_columns(self, values: Matrix, name: str) -> list[list[str]]:
        """Return the files of every block of rows, by blocks of columns."""
        given = save(self._executor.folder / f"{name}.npy", values)
        items = [
            {"values": given, "rows": at, "columns": self._columns, "name": f"{name}-{p}"}
            for p, at in enumerate(self._rows)
        ]
        found = self._map(_to_columns, items)
        remove([given])
        return found

    def _map(self, task: Any, items: list[Item]) -> list[Any]:
        common = {**self._given, "folder": str(self._executor.folder)}
        return list(self._executor.map(task, [common | one for one in items], "propagation"))


def _to_columns(item: Item) -> list[str]:
    """Task: multiply some rows by Q; write each block of columns."""
    first, last = item["rows"]
    parts = _rotated(load(item["values"])[first:last], load(item["Q"]), item["columns"])
    return [save(_file(item, at), part) for at, part in enumerate(parts)]


def _solve_columns(item: Item) -> list[str]:
    """Task: solve some columns; write each block of rows."""
    Y, Y_hat = (np.concatenate([load(path) for path in item[name]]) for name in ("Y", "Y_hat"))
    a, b = item["columns"]
    parts = tuple(load(item[name]) for name in ("data", "indices", "indptr"))
    A = sp.csr_array(parts, shape=(len(Y), len(Y)))
    Z = _clenshaw(A, load(item["shift"])[a:b], load(item["coefficients"]), Y, Y_hat)
    return [save(_file(item, at), Z[first:last]) for at, (first, last) in enumerate(item["rows"])]


def _to_rows(item: Item) -> str:
    """Task: bring some rows together and multiply them by Q'."""
    parts = [load(path) for path in item["parts"]]
    return save(_file(item, 0), _rotated_back(parts, load(item["Q"])))


def _rotated(
    rows: Matrix,
    Q: npt.NDArray[np.float64],
    columns: Sequence[Sequence[int]],
    run: Run = _one_by_one,
) -> list[Matrix]:
    """Return columns of rows times Q, in double precision, by pieces that begin where those of all
    rows do."""
    out = [np.empty((len(rows), last - first), np.float32) for first, last in columns]

    def rotate(first_row: int) -> None:
        for at in _pieces(first_row, len(rows)):
            piece = rows[at] @ Q
            for part, (first, last) in zip(out, columns, strict=True):
                part[at] = piece[:, first:last]

    run(rotate, range(0, len(rows), _PIECE * _PIECES))
    return out


def _rotated_back(
    parts: list[Matrix], Q: npt.NDArray[np.float64], run: Run = _one_by_one
) -> Matrix:
    """Return rows whose columns these are, times Q', likewise."""
    out = np.empty((len(parts[0]), len(Q)), np.float32)

    def rotate(first_row: int) -> None:
        for at in _pieces(first_row, len(out)):
            out[at] = np.concatenate([part[at] for part in parts], axis=1) @ Q.T

    run(rotate, range(0, len(out), _PIECE * _PIECES))
    return out


def _pieces(first_row: int, n: int) -> list[slice]:
    last = min(first_row + _PIECE * _PIECES, n)
    return [slice(at, min(at + _PIECE, n)) for at in range(first_row, last, _PIECE)]


def _clenshaw(A: sp.csr_array, shift: Matrix, weights: Matrix, Y: Matrix, Y_hat: Matrix) -> Matrix:
    """Return sum_k T_k(M) (c_k Y + d_k Y_hat) with 2 M(Z) = A Z + Z diag(shift)."""
    c, d = weights
    b, b_next = c[-1] * Y, None
    for at in _row_blocks(len(Y)):
        b[at] += d[-1] * Y_hat[at]
    for k in range(len(c) - 2, -1, -1):
        out = A @ b
        for at in _row_blocks(len(Y)):
            part = out[at]
            part += b[at] * shift
            if k == 0:
                part *= np.float32(0.5)
            if b_next is not None:
                part -= b_next[at]
            part += c[k] * Y[at]
            part += d[k] * Y_hat[at]
        b, b_next = out, b
    return np.asarray(b, np.float32)


def _row_blocks(n: int) -> list[slice]:
    return [slice(at, at + _ROWS) for at in range(0, n, _ROWS)]


def _file(item: Item, at: int) -> Path:
    return Path(item["folder"]) / f"{item['name']}-{at}.npy"


def _turned(files: list[list[str]]) -> list[list[str]]:
    return [list(column) for column in zip(*files, strict=True)]


def _sent(files: list[list[str]]) -> int:
    """Return the bytes that blocks wrote for blocks of another number."""
    return sum(
        load(path).nbytes
        for source, row in enumerate(files)
        for to, path in enumerate(row)
        if source != to
    )
