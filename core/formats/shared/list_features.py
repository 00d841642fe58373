"""Numbers out of columns: of any type, and of lists that are one row of features each."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import scipy.sparse as sp

from core.data.dataset import Features
from core.formats.shared.cells import parse_number, parse_numbers, parse_word
from core.formats.shared.findings import Findings
from core.formats.shared.limits import check_shape, check_size
from core.formats.shared.row_names import cells_of

MAX_BAD_LISTS = 1_000


def is_number(kind: pa.DataType) -> bool:
    types = pa.types
    exact = types.is_integer(kind) or types.is_boolean(kind) or types.is_decimal(kind)
    return bool(exact or types.is_floating(kind))


def as_floats(column: pa.Array) -> npt.NDArray[np.floating[Any]]:
    """Return numbers as they are if they are floats, else as float64; missing ones are NaN."""
    if not (pa.types.is_float32(column.type) or pa.types.is_float64(column.type)):
        column = column.cast(pa.float64(), safe=False)  # 17 digits are rounded, not refused
    values: npt.NDArray[np.floating[Any]] = column.to_numpy(zero_copy_only=False)
    return values


def parsed_floats(
    column: pa.Array, decimal: str, kind: pa.DataType
) -> tuple[npt.NDArray[np.floating[Any]], list[int]]:
    """Return text as numbers of this kind, and the places of cells that are none.

    All at once if it can be, else cell by cell.
    """
    try:
        spelled = pc.replace_substring(column, decimal, ".") if decimal == "," else column
        blank = pc.equal(spelled, "")
        return as_floats(pc.if_else(blank, None, spelled).cast(kind)), []
    except pa.ArrowInvalid:
        pass
    texts = [text or "" for text in column.to_pylist()]
    values = [parse_number(text, decimal) for text in texts]
    words = [parse_word(text) for text in texts] if None in values else values
    values = words if words.count(None) < values.count(None) else values
    numbers = np.array([0.0 if value is None else value for value in values], np.float64)
    with np.errstate(over="ignore"):
        made = numbers.astype(kind.to_pandas_dtype())
    return made, [i for i, value in enumerate(values) if value is None]


def filled(features: Features, names: Sequence[str], findings: Findings) -> Features:
    """Return features whose missing numbers are the mean of their columns, which is told."""
    values = features.data if sp.issparse(features) else features
    with np.errstate(over="ignore", invalid="ignore"):
        if not np.isnan(np.sum(values)):  # one pass without a temporary
            return features
    table = features.tocsc() if sp.issparse(features) else features
    for j in range(table.shape[1]):
        if sp.issparse(table):
            column = table.data[table.indptr[j] : table.indptr[j + 1]]
        else:
            column = table[:, j]
        missing = np.isnan(column)
        n_missing = int(missing.sum())
        if n_missing:
            n_known = table.shape[0] - n_missing
            mean = float(np.sum(column[~missing], dtype=np.float64)) / n_known if n_known else 0.0
            column[missing] = mean
            fix = "Fill it in if something else is meant, or drop the column."
            rule = "a feature has missing numbers: they became the mean of the others"
            findings.add(rule, fix, column=names[j], value=f"{n_missing:,} missing")
    return table.tocsr() if sp.issparse(table) else table


def list_features(
    column: pa.ChunkedArray,
    name: str,
    findings: Findings,
    dtype: type[np.floating[Any]] = np.float32,
) -> Features:
    """Return the (n, d) features of a column of lists, native or written as text."""
    types, kind = pa.types, column.type
    native = types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)
    if native and is_number(kind.value_type):
        lengths = pc.list_value_length(column).fill_null(0).to_numpy()
        return _joined(column.chunks, lengths, name, findings, dtype)
    rows: list[npt.NDArray[np.floating[Any]]] = []
    n_bytes = 0
    for i, cell in enumerate(cells_of(column)):
        rows.append(_number_row(cell, i, name, findings, dtype))
        n_bytes += rows[-1].nbytes
        check_size(n_bytes, "the features")
    return _joined(rows, np.array([row.size for row in rows]), name, findings, dtype)


def _joined(
    parts: Sequence[Any],
    lengths: npt.NDArray[Any],
    name: str,
    findings: Findings,
    dtype: type[np.floating[Any]],
) -> npt.NDArray[np.floating[Any]]:
    """Return lists of equally many numbers as one table."""
    width = int(lengths.max())
    for i in np.flatnonzero(lengths != width)[:MAX_BAD_LISTS].tolist():
        rule, fix = f"every list of features must have {width} numbers", "Make it as long."
        findings.add(rule, fix, fatal=True, row=i + 1, column=name, value=str(lengths[i]))
    check_shape(len(lengths), width, 0)
    findings.stop_if_fatal()
    check_size(np.dtype(dtype).itemsize * len(lengths) * width, "the features")
    table = np.empty(len(lengths) * width, dtype)
    at = 0
    for part in parts:
        numbers = part if isinstance(part, np.ndarray) else as_floats(part.flatten())
        with np.errstate(over="ignore"):
            table[at : at + len(numbers)] = numbers
        at += len(numbers)
    return table.reshape(len(lengths), width)


def _number_row(
    cell: Any, i: int, name: str, findings: Findings, dtype: type[np.floating[Any]]
) -> npt.NDArray[np.floating[Any]]:
    try:
        row = parse_numbers(cell, dtype)
        if row.ndim == 1:
            return row
    except ValueError:
        pass
    rule, fix = "a cell must hold a list of numbers", "Correct it, e.g. [0.5, 1.0]."
    findings.add(rule, fix, fatal=True, row=i + 1, column=name, value=cell)
    return np.zeros(0, dtype)
