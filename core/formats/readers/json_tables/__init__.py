"""JSON Lines (one object per line) and JSON (a list of objects, or an object of columns).

Owns the text of the file; what its keys mean belongs to `tabular`. Values of a key that are of
several kinds are kept as text.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from core.data.dataset import CandidateDataset
from core.failpoints import failpoint
from core.formats.readers.json_tables.nesting import (
    are_keyed,
    are_label_lists,
    are_records,
    coco_records,
    flattened,
    is_coco,
    keyed_records,
    names_told,
    parts_records,
    records_in,
    split_records,
    ungrouped,
    via_records,
    view_records,
)
from core.formats.readers.json_tables.rows import extended, in_lists, objects_of, without
from core.formats.readers.json_tables.spelling import respelled, text_records
from core.formats.readers.json_tables.tools import with_label_names
from core.formats.readers.json_tables.wide import wide_table
from core.formats.shared.copying import Copied, batches_of, by_instance, copied
from core.formats.shared.findings import Findings, refuse
from core.formats.shared.json_text import load_json
from core.formats.shared.label_files import names_in, with_names_beside
from core.formats.shared.limits import check_rows, check_size
from core.formats.shared.mapping import ColumnMapping, ReadResult, Resolution, guess_mapping
from core.formats.shared.progress import report
from core.formats.shared.tables import record_batch
from core.formats.shared.tabular import MAX_COLUMNS, check_mapping, to_dataset
from core.formats.shared.text import read_text, with_points

CHUNK_VALUES = 2_000_000
CHUNK_BYTES = 2**24
LINE_COST = 3  # bytes that a byte of JSON Lines takes
MAX_LINE = 2**26
MAX_BAD_LINES = 1000
MAX_FIELDS = 1000
CELL = 16  # bytes of a value on its way into a table

Record = Mapping[str, Any]


class Loaded(NamedTuple):
    """The objects of a file as a table; its column of keys, if they have keys; names of classes."""

    table: pa.Table
    key: str | None = None
    names: Sequence[str] = ()


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
        table, key, told = self._loaded(path, findings)
        findings.stop_if_fatal()
        given = mapping or ColumnMapping()
        if key is not None:  # what is stated goes before
            stated = {name: getattr(given, name) for name in given.model_fields_set}
            why = {"id": "the document's keys", "keyed": "it is one object of objects"}
            mapping = ColumnMapping(**{"id": key, "keyed": True, "reasons": why, **stated})
        full = with_names_beside(guess_mapping(table, mapping), table, path, told)
        check_mapping(full, table.column_names, findings)
        dataset = to_dataset(table.to_batches(), full, table.num_rows, findings)
        return ReadResult(dataset, findings.problems(), full, self.NAME)

    def _loaded(self, path: Path, findings: Findings) -> "Loaded":
        """Return the objects as a table, and what the document tells of it."""
        if self.lines:
            check_size(LINE_COST * path.stat().st_size, "JSON Lines")
            wide = wide_table(path)
            return Loaded(_table(_lines(path, findings)) if wide is None else wide)
        return _document(path, findings)

    def write(
        self,
        dataset: CandidateDataset,
        path: Path,
        mapping: ColumnMapping | None = None,
        resolution: Resolution | None = None,
    ) -> None:
        """Write one object per instance: that of its file if it is JSON, its columns otherwise."""
        copy = copied(dataset, mapping, resolution)
        written = None
        if copy is not None:
            written = _copied_objects(copy, dataset, resolution, self.lines)
        made = map(_objects, batches_of(dataset, mapping, resolution))
        keyed = written is not None and copy is not None and copy.mapping.keyed and not self.lines
        if keyed and written is not None:
            written = _keyed(written, dataset.ids)
        between = b"\n" if self.lines else b",\n"
        start, end = (b"{\n", b"\n}\n") if keyed else (b"[\n", b"\n]\n")
        with path.open("wb") as file:
            file.write(b"" if self.lines else start)
            for i, objects in enumerate(made if written is None else written):
                file.write(between if i else b"")
                file.write(between.join(objects))
                failpoint("export.writing")
            file.write(b"\n" if self.lines else end)

    def cells(self, path: Path, verbatim: bool, mapping: ColumnMapping) -> Iterator[pa.RecordBatch]:
        """Give the values of all keys, as columns."""
        findings = Findings()
        table = self._loaded(path, findings).table
        findings.stop_if_fatal()
        yield from table.to_batches()

    def rows(self, path: Path, *, keyed: bool = False) -> Iterator[str] | None:
        """Give the objects as they are written; none where they are not written as objects."""
        if self.lines:
            return _line_texts(path)
        return objects_of(read_text(path, Findings()), keyed=keyed)


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


def _lines(path: Path, findings: Findings) -> Iterator[list[Record]]:
    """Give the objects of a JSON Lines file, some at a time; lines that hold none are findings."""
    bad, n_bytes, done, size = 0, 0, 0, path.stat().st_size
    chunk: list[Record] = []
    for number, text in enumerate(_line_texts(path, blank=True), start=1):
        record, fault = _parsed(text) if text else (None, "")
        if record is not None:
            chunk.append(record)
            n_bytes += len(text)
        elif fault:
            bad += 1
            fix = "Write the line again: it is damaged, cut off, or not JSON."
            findings.add(f"every line must be a JSON object: {fault}", fix, fatal=True, row=number)
        if bad > MAX_BAD_LINES:
            return
        if n_bytes > CHUNK_BYTES:
            yield chunk
            done += n_bytes
            report(min(done, size), size)
            chunk, n_bytes = [], 0
    yield chunk


def _line_texts(path: Path, *, blank: bool = False) -> Iterator[str]:
    with path.open("rb") as file:
        for i, line in enumerate(iter(lambda: file.readline(MAX_LINE), b"")):
            text = line.decode("utf-8" if i else "utf-8-sig", "replace").strip()
            if text or blank:
                yield text


def _copied_objects(
    copy: Copied, dataset: CandidateDataset, resolution: Resolution | None, to_lines: bool
) -> Iterator[list[bytes]] | None:
    """Give the objects of a JSON file with their outcome; none if they cannot be taken as such."""
    source = {"json": JSON, "jsonl": JSONL}.get(copy.original.format)
    kept = tuple(name for name in copy.original.columns if name in set(copy.names))
    if source is None or copy.mapping.layout == "long" or kept != copy.names:
        return None
    if to_lines and copy.mapping.keyed:
        return None  # each object would lose its key
    with copy.original.opened() as path:
        rows = source.rows(path, keyed=copy.mapping.keyed)
        if rows is None or not next(rows, "{").startswith("{"):
            return None
        if not source.lines and 1 + sum(1 for _ in rows) < dataset.n_instances:
            return None  # objects are groups of items
    return _extended(source, copy, dataset, resolution)


def _extended(
    source: RecordFormat, copy: Copied, dataset: CandidateDataset, resolution: Resolution | None
) -> Iterator[list[bytes]]:
    replaced = set(copy.original.columns) - set(copy.names)
    names = [column.name for column in copy.outcome]
    with copy.original.opened() as path:
        given = in_lists(source.rows(path, keyed=copy.mapping.keyed) or iter(()))
        options: dict[str, Any] = {"as_text": False, "instances": copy.instances()}
        for rows, texts in by_instance(given, dataset, resolution, len(names), **options):
            whole = [without(text, replaced) for text in texts] if replaced else texts
            cells = [column.cells(rows) for column in copy.outcome]
            outcome = _objects(record_batch(cells, names, False)) if cells else [b"{}"] * len(texts)
            yield [
                extended(text, more.decode()).encode()
                for text, more in zip(whole, outcome, strict=True)
            ]


def _keyed(written: Iterator[list[bytes]], ids: Sequence[str]) -> Iterator[list[bytes]]:
    """Give objects behind the key that each has."""
    keys = iter(ids)
    for objects in written:
        yield [json.dumps(next(keys), ensure_ascii=False).encode() + b": " + one for one in objects]


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


def _document(path: Path, findings: Findings) -> Loaded:
    found, key, told = load_json(path, findings), None, []
    if isinstance(found, dict):
        told = names_told(found)
        views = coco_records(found) if is_coco(found) else None
        found = views or via_records(found) or split_records(found) or parts_records(found) or found
    if isinstance(found, dict):
        records = None if len(found) > 1 and are_keyed(found) else records_in(found)
        records = records or view_records(found)
        if records is not None:
            found = records
        elif are_keyed(found):
            key, found = keyed_records(found)
        else:
            return _column_table(found, told)
    if isinstance(found, list) and are_label_lists(found):
        found = [{"labels": one} for one in found]
    found = text_records(found) or found
    if not are_records(found):
        fix = 'Write [{"id": 1, …}, …], {"1": {…}, …} by id, or {"id": [1, …], …}.'
        refuse("JSON must be a list of objects, objects by id, or an object of columns", fix)
    return Loaded(_table(_chunks(ungrouped(found))), key, told)


def _column_table(found: Mapping[str, Any], told: Sequence[str]) -> Loaded:
    """`{"a": [1, 2]}`, or pandas' `{"a": {"0": 1, "1": 2}}`; names of classes are no column."""
    if told:
        found = {key: value for key, value in found.items() if list(told) != names_in(value)}
    if len(found) == 1 and are_keyed(inner := next(iter(found.values()))):
        key, records = keyed_records(inner)  # {"classes": […], "labels": {"a.jpg": [0, 2]}}
        return Loaded(_table(_chunks(records)), key, told)
    columns = {
        name: list(value.values()) if isinstance(value, dict) else value
        for name, value in found.items()
    }
    sizes = {len(value) if isinstance(value, list) else -1 for value in columns.values()}
    if len(sizes) != 1 or -1 in sizes:
        fix = "Write every key as a list with one value per instance."
        refuse("columns must be lists of one length", fix, value=sorted(sizes)[:10])
    _check_columns(columns, max(sizes, default=0))
    return Loaded(pa.table({name: _array(value) for name, value in columns.items()}), None, told)


def _table(chunks_of_records: Iterable[Sequence[Record]]) -> pa.Table:
    """Return objects as a table: the union of their keys, in the order they are met."""
    chunks: dict[str, list[pa.Array]] = {}
    n_rows, n_bytes = 0, 0
    for chunk in chunks_of_records:
        chunk = flattened(respelled(with_label_names(chunk)))
        for name in dict.fromkeys(chain.from_iterable(chunk)):
            chunks.setdefault(name, [pa.nulls(n_rows)] if n_rows else [])
        n_rows += len(chunk)
        _check_columns(chunks, n_rows)
        for name, values in _columns(chunk, list(chunks)):
            chunks[name].append(_array(values))
            n_bytes += chunks[name][-1].nbytes
        check_size(n_bytes)
    return pa.table({name: _joined(arrays) for name, arrays in chunks.items()})


def _chunks(records: Sequence[Record]) -> Iterator[Sequence[Record]]:
    """Give the objects in runs of a limited number of values."""
    step = max(1, CHUNK_VALUES // max(1, *map(len, records[:100])))
    for start in range(0, len(records), step):
        yield records[start : start + step]


def _columns(chunk: Sequence[Record], names: list[str]) -> Iterator[tuple[str, Sequence[Any]]]:
    if all(list(record) == names for record in chunk):
        return zip(names, zip(*(record.values() for record in chunk), strict=True), strict=True)
    return ((name, [record.get(name) for record in chunk]) for name in names)


def _check_columns(columns: Mapping[str, Any], n_rows: int) -> None:
    if len(columns) > MAX_COLUMNS:
        fix = "Put features into one list `features`."
        refuse(f"a table has at most {MAX_COLUMNS:,} columns", fix, value=f"{len(columns):,}")
    check_rows(n_rows)
    check_size(
        CELL * n_rows * len(columns), f"a table of {n_rows:,} rows with {len(columns):,} keys"
    )


def _array(values: Sequence[Any]) -> pa.Array:
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
