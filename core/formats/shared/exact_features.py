"""Features of a table as precise as its file has them: a data set's own are float32."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from core.data.dataset import Features
from core.formats.shared.blocks import FeatureBlock
from core.formats.shared.findings import Findings
from core.formats.shared.folding import repeats_items
from core.formats.shared.list_features import as_floats, is_number, list_features, parsed_floats
from core.formats.shared.mapping import ColumnMapping


def table_features(batches: Iterator[pa.RecordBatch], mapping: ColumnMapping) -> Features | None:
    """Return the numbers of a file's instances as float64; none if features are no such numbers."""
    if not mapping.features or mapping.feature_layout not in ("columns", "list"):
        return None
    batches = _first_rows(batches, mapping)
    if mapping.feature_layout == "list":
        name = mapping.features[0]
        lists = pa.chunked_array([batch.column(name) for batch in batches])
        return list_features(lists, name, Findings(), np.float64)
    block = FeatureBlock(len(mapping.features), 1, np.float64)
    for batch in batches:
        block.add([_numbers(batch.column(name), mapping.decimal) for name in mapping.features])
    return block.array()


def _first_rows(
    batches: Iterator[pa.RecordBatch], mapping: ColumnMapping
) -> Iterator[pa.RecordBatch]:
    """Give the rows that instances take their features from: where views repeat, the first."""
    if not repeats_items(mapping):
        yield from batches
        return
    seen: set[str] = set()
    for batch in batches:
        first = []
        for i, key in enumerate(map(str, batch.column(mapping.id).to_pylist())):
            if key not in seen:
                seen.add(key)
                first.append(i)
        yield batch.take(pa.array(first, pa.int64()))


def _numbers(column: pa.Array, decimal: str) -> npt.NDArray[np.floating[Any]]:
    if is_number(column.type) or pa.types.is_null(column.type):
        return as_floats(column)
    return parsed_floats(column, decimal, pa.float64())[0]
