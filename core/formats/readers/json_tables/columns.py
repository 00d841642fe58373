"""Objects become a table, the union of their keys, and rows of a table objects again.

Values of a key that are of several kinds are kept as text.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from core.formats.readers.json_tables.nesting import flattened
from core.formats.readers.json_tables.spelling import respelled
from core.formats.readers.json_tables.tools import with_label_names
from core.formats.shared.findings import refuse
from core.formats.shared.limits import check_rows, check_size
from core.formats.shared.tabular import MAX_COLUMNS
from core.formats.shared.text import with_points

CHUNK_VALUES = 2_000_000
MAX_FIELDS = 1000
CELL = 16  # bytes of a value on its way into a table

Record = Mapping[str, Any]


def table_of(chunks_of_records: Iterable[Sequence[Record]]) -> pa.Table:
    """Return objects as a table: the union of their keys, in the order they are met."""
    chunks: dict[str, list[pa.Array]] = {}
    n_rows, n_bytes = 0, 0
    for chunk in chunks_of_records:
        chunk = flattened(respelled(with_label_names(chunk)))
        for name in dict.fromkeys(chain.from_iterable(chunk)):
            chunks.setdefault(name, [pa.nulls(n_rows)] if n_rows else [])
        n_rows += len(chunk)
        check_columns(chunks, n_rows)
        for name, values in _columns(chunk, list(chunks)):
            chunks[name].append(array_of(values))
            n_bytes += chunks[name][-1].nbytes
        check_size(n_bytes)
    return pa.table({name: _joined(arrays) for name, arrays in chunks.items()})


def chunks_of(records: Sequence[Record]) -> Iterator[Sequence[Record]]:
    """Give the objects in runs of a limited number of values."""
    step = max(1, CHUNK_VALUES // max(1, *map(len, records[:100])))
    for start in range(0, len(records), step):
        yield records[start : start + step]


def _columns(chunk: Sequence[Record], names: list[str]) -> Iterator[tuple[str, Sequence[Any]]]:
    if all(list(record) == names for record in chunk):
        return zip(names, zip(*(record.values() for record in chunk), strict=True), strict=True)
    return ((name, [record.get(name) for record in chunk]) for name in names)


def check_columns(columns: Mapping[str, Any], n_rows: int) -> None:
    if len(columns) > MAX_COLUMNS:
        fix = "Put features into one list `features`."
        refuse(f"a table has at most {MAX_COLUMNS:,} columns", fix, value=f"{len(columns):,}")
    check_rows(n_rows)
    check_size(
        CELL * n_rows * len(columns), f"a table of {n_rows:,} rows with {len(columns):,} keys"
    )


def array_of(values: Sequence[Any]) -> pa.Array:
    if not _has_many_fields(values):  # each would become a column as long as the table
        with suppress(pa.ArrowException, OverflowError, UnicodeError):  # values of many kinds
            array = pa.array(values)
            if not (pa.types.is_struct(array.type) and array.type.num_fields == 0):
                return array  # {} alone has no place in Parquet
    return pa.array([_text(value) for value in values], pa.string())


def _has_many_fields(values: Iterable[Any]) -> bool:
    """Whether objects, however deep they lie, have more keys than fit; looks level by level."""
    fields: set[str] = set()
    while len(fields) <= MAX_FIELDS:
        level = [one for one in values if type(one) in (dict, list)]
        objects = [one for one in level if type(one) is dict]
        if not level:
            return False
        fields.update(chain.from_iterable(objects))
        lists = (one for one in level if type(one) is list)
        values = chain(chain.from_iterable(lists), *(one.values() for one in objects))
    return True


def _joined(arrays: Sequence[pa.Array]) -> pa.ChunkedArray:
    """Return the chunks of one column, as text where their kinds do not go together."""
    try:
        tables = [pa.table({"": array}) for array in arrays]
        return pa.concat_tables(tables, promote_options="permissive").column(0)
    except pa.ArrowException:
        texts = [_text(value) for array in arrays for value in array.to_pylist()]
        return pa.chunked_array([pa.array(texts, pa.string())])


def _text(value: Any) -> str | None:
    if value is None:
        return None
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return text.encode("utf-8", "replace").decode()


def objects_in(batch: pa.RecordBatch) -> list[bytes]:
    """Return the rows of a batch as JSON objects."""
    pieces: list[Any] = []
    for i, (name, column) in enumerate(zip(batch.schema.names, batch.columns, strict=True)):
        key = json.dumps(name, ensure_ascii=False)
        pieces += [f"{', ' if i else '{'}{key}: ", _values(column)]
    rows = pc.binary_join_element_wise(*pieces, "}", "")
    return [row.encode() for row in rows.to_pylist()]


def _values(column: pa.Array) -> pa.Array:
    """Return the JSON text of every value of a column."""
    kind = column.type
    if pa.types.is_floating(kind):
        column = pc.if_else(pc.is_finite(column), column, None)
    if pa.types.is_floating(kind):
        return with_points(column).fill_null("null")
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        return column.cast(pa.string()).fill_null("null")
    if pa.types.is_string(kind):
        encoded = column.dictionary_encode()
        texts = [json.dumps(value, ensure_ascii=False) for value in encoded.dictionary.to_pylist()]
        return pa.array(texts, pa.string()).take(encoded.indices).fill_null("null")
    texts = [json.dumps(value, ensure_ascii=False, default=str) for value in column.to_pylist()]
    return pa.array(texts, pa.string())
