"""Hugging Face's `ClassLabel`: names of classes that are numbers in a table, told by its schema."""

import json
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

METADATA = b"huggingface"


def class_names(schema: pa.Schema) -> dict[str, list[str]]:
    """Return the class names of every column of numbers, or of lists of them, that has such."""
    try:
        features = json.loads((schema.metadata or {})[METADATA])["info"]["features"]
        items = [(str(name), class_names_of(feature)) for name, feature in features.items()]
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError):
        return {}
    return {name: names for name, names in items if names and name in schema.names}


def class_names_of(feature: Any) -> list[str]:
    """Return the names of a described column of classes, or of lists of them."""
    if isinstance(feature, list) and len(feature) == 1:  # how lists were described once
        feature = feature[0]
    while isinstance(feature, Mapping) and isinstance(feature.get("feature"), Mapping):
        feature = feature["feature"]
    if not isinstance(feature, Mapping) or feature.get("_type") != "ClassLabel":
        return []
    names = feature.get("names")
    return list(map(str, names)) if isinstance(names, list) else []


def with_names(batch: pa.RecordBatch, classes: Mapping[str, list[str]]) -> pa.RecordBatch:
    """Return the batch with names in place of class numbers; a number without a name is null."""
    columns = [
        _named(column, classes[name]) if name in classes else column
        for name, column in zip(batch.schema.names, batch.columns, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def _named(column: pa.Array, names: list[str]) -> pa.Array:
    kind = column.type
    if pa.types.is_integer(kind):
        known = pc.and_(pc.greater_equal(column, 0), pc.less(column, len(names)))
        return pa.array(names, pa.string()).take(pc.if_else(known, column, None))
    if pa.types.is_list(kind) and pa.types.is_integer(kind.value_type):
        known = dict(enumerate(names))
        rows = column.to_pylist()
        named = [None if row is None else [known[j] for j in row if j in known] for row in rows]
        return pa.array(named, pa.list_(pa.string()))
    return column
