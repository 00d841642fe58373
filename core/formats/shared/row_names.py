"""What rows and columns of a table are called by: items, people and labels, two in one name."""

from array import array
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from core.formats.shared.blocks import BLOCK_ROWS
from core.formats.shared.mapping import NESTED, ColumnMapping

SEPARATORS = " _.-:/|"
ONE_LABEL = "yes"  # what people say whose columns name no label


def cells_of(column: pa.ChunkedArray) -> Iterator[Any]:
    """Give a column's cells as Python objects, few at a time."""
    for chunk in column.chunks if isinstance(column, pa.ChunkedArray) else (column,):
        for start in range(0, len(chunk), BLOCK_ROWS):
            yield from chunk.slice(start, BLOCK_ROWS).to_pylist()


def people_labels(mapping: ColumnMapping) -> tuple[str, ...]:
    """Return the label of each column of a table with a column per person and label."""
    pairs = zip(mapping.labels, mapping.sources, strict=True)
    return tuple(
        _without(source, NESTED.sub("", column)).strip(SEPARATORS) or ONE_LABEL
        for column, source in pairs
    )


def _without(source: str, column: str) -> str:
    """Return a column's name without its source, at the end if it is there."""
    return column.removesuffix(source) if column.endswith(source) else column.replace(source, "", 1)


def instances_of(keys: Any) -> tuple[npt.NDArray[np.int64], list[int]]:
    """Return the instance of every row, and the row in which each instance is met first."""
    seen: dict[str, int] = {}
    first = array("q")
    rows = array("q")
    for i, key in enumerate(keys):
        row = seen.setdefault(str(key), len(seen))
        if row == len(first):
            first.append(i)
        rows.append(row)
    return np.frombuffer(rows, np.int64) if rows else np.zeros(0, np.int64), first.tolist()


def items_and_labels(table: pa.Table, mapping: ColumnMapping) -> tuple[list[Any], list[Any]]:
    """Return the item and the label of every row of a long table."""
    keys, mark = list(cells_of(table.column(mapping.id))), mapping.label_after
    if mark is None:
        return keys, list(cells_of(table.column(mapping.labels[0])))
    parts = [_cut("" if key is None else str(key), mark, mapping.label_names) for key in keys]
    return [item or label for item, label in parts], [
        label if item else None for item, label in parts
    ]


def _cut(key: str, mark: str, names: tuple[str, ...]) -> tuple[str, str]:
    """Return the item and the label that one name tells; the label is one of these, if stated."""
    ends = [name for name in names if key.endswith(mark + name)]
    label = max(ends, key=len, default=key.rpartition(mark)[2])
    return key.removesuffix(label).removesuffix(mark), label
