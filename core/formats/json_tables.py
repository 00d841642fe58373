"""JSON Lines (one object per line) and JSON (a list of objects, or an object of columns).

Owns the text of the file; what its keys mean belongs to `tabular`. Values of a key that are of
several kinds are kept as text.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from core.dataset import CandidateDataset
from core.formats.findings import Findings, refuse
from core.formats.json_text import load_json
from core.formats.mapping import ColumnMapping, ReadResult, Resolution
from core.formats.tables import batches_of
from core.formats.tabular import MAX_COLUMNS, table_to_dataset

CHUNK_VALUES = 2_000_000
MAX_LINE = 2**26
MAX_BAD_LINES = 1000
MAX_JSON_BYTES = 2**29

Record = Mapping[str, Any]


@dataclass(frozen=True)
class RecordFormat:
    """A family of JSON files: objects on lines of their own, or one document."""

    NAME: str
    EXTENSIONS: tuple[str, ...]
    lines: bool

    def sniff(self, head: bytes, path: Path) -> bool:
        """Whether the file begins like JSON, and holds one object per line or not."""
        start = head.removeprefix(b"\xef\xbb\xbf").lstrip()
        if start[:1] == b"[":
            return not self.lines
        return start[:1] == b"{" and _has_objects_on_lines(start, path) == self.lines

    def read(self, path: Path, mapping: ColumnMapping | None = None) -> ReadResult:
        """Read the objects as rows of a table."""
        findings = Findings()
        table = _table(_lines(path, findings)) if self.lines else _document(path, findings)
        findings.stop_if_fatal()
        dataset, mapping = table_to_dataset(table, mapping, findings)
        return ReadResult(dataset, findings.problems(), mapping, self.NAME)

    def write(
        self,
        dataset: CandidateDataset,
        path: Path,
        mapping: ColumnMapping | None = None,
        resolution: Resolution | None = None,
    ) -> None:
        """Write one object per instance, its keys in the order of the columns."""
        between = b"\n" if self.lines else b",\n"
        with path.open("wb") as file:
            file.write(b"" if self.lines else b"[\n")
            for i, batch in enumerate(batches_of(dataset, mapping, resolution)):
                file.write(between if i else b"")
                file.write(between.join(_objects(batch)))
            file.write(b"\n" if self.lines else b"\n]\n")


JSONL = RecordFormat("jsonl", (".jsonl", ".ndjson", ".jsonlines"), lines=True)
JSON = RecordFormat("json", (".json",), lines=False)


def _has_objects_on_lines(start: bytes, path: Path) -> bool:
    first, _, rest = start.partition(b"\n")
    if path.suffix.lower() in JSONL.EXTENSIONS:
        return True
    try:
        return isinstance(json.loads(first), dict) and rest.lstrip()[:1] == b"{"
    except (ValueError, RecursionError):
        return False


def _lines(path: Path, findings: Findings) -> Iterator[Record]:
    """Give the objects of a JSON Lines file; lines that hold none are findings."""
    bad = 0
    with path.open("rb") as file:
        for number, line in enumerate(iter(lambda: file.readline(MAX_LINE), b""), start=1):
            text = line.decode("utf-8-sig" if number == 1 else "utf-8", "replace").strip()
            record, fault = _parsed(text) if text else (None, "")
            if record is not None:
                yield record
            elif fault:
                bad += 1
                fix = "Write the line again: it is damaged, cut off, or not JSON."
                findings.add(
                    f"every line must be a JSON object: {fault}", fix, fatal=True, row=number
                )
            if bad > MAX_BAD_LINES:
                return


def _parsed(text: str) -> tuple[Record | None, str]:
    try:
        record = json.loads(text)
    except RecursionError:
        return None, "it is nested too deep"
    except ValueError as error:
        return None, error.msg if isinstance(
            error, json.JSONDecodeError
        ) else "a number is too long"
    return (record, "") if isinstance(record, dict) else (None, f"it is a {type(record).__name__}")


def _document(path: Path, findings: Findings) -> pa.Table:
    if path.stat().st_size > MAX_JSON_BYTES:
        fix = "Write it as JSON Lines or Parquet."
        refuse(f"a JSON file may have {MAX_JSON_BYTES:,} bytes", fix, value=path.stat().st_size)
    found = load_json(path, findings)
    if isinstance(found, dict):
        lists = [value for value in found.values() if _are_records(value)]
        if len(lists) != 1:
            return _column_table(found)
        found = lists[0]
    if not _are_records(found):
        fix = 'Write [{"id": 1, …}, …], or {"id": [1, …], …}.'
        refuse("JSON must be a list of objects or an object of columns", fix)
    return _table(found)


def _are_records(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(one, dict) for one in value)


def _column_table(found: Mapping[str, Any]) -> pa.Table:
    """`{"a": [1, 2]}`, or pandas' `{"a": {"0": 1, "1": 2}}`."""
    columns = {
        name: list(value.values()) if isinstance(value, dict) else value
        for name, value in found.items()
    }
    sizes = {len(value) if isinstance(value, list) else -1 for value in columns.values()}
    if len(sizes) != 1 or -1 in sizes:
        fix = "Write every key as a list with one value per instance."
        refuse("columns must be lists of one length", fix, value=sorted(sizes)[:10])
    _check_columns(columns)
    return pa.table({name: _array(value) for name, value in columns.items()})


def _table(records: Iterable[Record]) -> pa.Table:
    """Return objects as a table: the union of their keys, in the order they are met."""
    chunks: dict[str, list[pa.Array]] = {}
    n_rows = 0
    for chunk in _chunks(iter(records)):
        for name in dict.fromkeys(chain.from_iterable(chunk)):
            chunks.setdefault(name, [pa.nulls(n_rows)] if n_rows else [])
        _check_columns(chunks)
        for name, values in _columns(chunk, list(chunks)):
            chunks[name].append(_array(values))
        n_rows += len(chunk)
    return pa.table({name: _joined(arrays) for name, arrays in chunks.items()})


def _chunks(records: Iterator[Record]) -> Iterator[list[Record]]:
    """Give the objects in runs of a limited number of values."""
    while (first := next(records, None)) is not None:
        n_rows = max(1, CHUNK_VALUES // max(1, len(first)))
        yield [first, *islice(records, n_rows - 1)]


def _columns(chunk: Sequence[Record], names: list[str]) -> Iterator[tuple[str, Sequence[Any]]]:
    if all(list(record) == names for record in chunk):
        return zip(names, zip(*(record.values() for record in chunk), strict=True), strict=True)
    return ((name, [record.get(name) for record in chunk]) for name in names)


def _check_columns(columns: Mapping[str, Any]) -> None:
    if len(columns) > MAX_COLUMNS:
        fix = "Put features into one list `features`."
        refuse(f"a table has at most {MAX_COLUMNS:,} columns", fix, value=f"{len(columns):,}")


def _array(values: Sequence[Any]) -> pa.Array:
    try:
        return pa.array(values)
    except (pa.ArrowException, OverflowError, UnicodeError, ValueError, TypeError):
        return pa.array([_text(value) for value in values], pa.string())


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


def _objects(batch: pa.RecordBatch) -> list[bytes]:
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
    if pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        return column.cast(pa.string()).fill_null("null")
    if pa.types.is_string(kind):
        encoded = column.dictionary_encode()
        texts = [json.dumps(value, ensure_ascii=False) for value in encoded.dictionary.to_pylist()]
        return pa.array(texts, pa.string()).take(encoded.indices).fill_null("null")
    texts = [json.dumps(value, ensure_ascii=False, default=str) for value in column.to_pylist()]
    return pa.array(texts, pa.string())
