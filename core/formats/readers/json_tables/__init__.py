"""JSON Lines (one object per line) and JSON (a list of objects, or an object of columns).

Owns the text of the file; `columns` makes a table of its objects, and what keys mean belongs to
`tabular`.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from core.data.dataset import CandidateDataset
from core.failpoints import failpoint
from core.formats.readers.json_tables.columns import (
    array_of,
    check_columns,
    chunks_of,
    objects_in,
    table_of,
)
from core.formats.readers.json_tables.nesting import (
    are_keyed,
    are_label_lists,
    are_records,
    coco_records,
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
from core.formats.readers.json_tables.spelling import lone_record, text_records
from core.formats.readers.json_tables.wide import wide_table
from core.formats.shared.copying import Copied, batches_of, by_instance, copied
from core.formats.shared.findings import Findings, refuse
from core.formats.shared.json_text import load_json
from core.formats.shared.label_files import names_in, with_names_beside
from core.formats.shared.limits import check_size
from core.formats.shared.mapping import ColumnMapping, ReadResult, Resolution, guess_mapping
from core.formats.shared.progress import report
from core.formats.shared.tables import record_batch
from core.formats.shared.tabular import check_mapping, to_dataset
from core.formats.shared.text import read_text

CHUNK_BYTES = 2**24
LINE_COST = 3  # bytes that a byte of JSON Lines takes
MAX_LINE = 2**26
MAX_BAD_LINES = 1000

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
            return Loaded(table_of(_lines(path, findings)) if wide is None else wide)
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
        made = map(objects_in, batches_of(dataset, mapping, resolution))
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
            outcome = (
                objects_in(record_batch(cells, names, False)) if cells else [b"{}"] * len(texts)
            )
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
        parts = split_records(found) or parts_records(found) or lone_record(found)
        found = views or via_records(found) or parts or found
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
    return Loaded(table_of(chunks_of(ungrouped(found))), key, told)


def _column_table(found: Mapping[str, Any], told: Sequence[str]) -> Loaded:
    """`{"a": [1, 2]}`, or pandas' `{"a": {"0": 1, "1": 2}}`; names of classes are no column."""
    if told:
        found = {key: value for key, value in found.items() if list(told) != names_in(value)}
    if len(found) == 1 and are_keyed(inner := next(iter(found.values()))):
        key, records = keyed_records(inner)  # {"classes": […], "labels": {"a.jpg": [0, 2]}}
        return Loaded(table_of(chunks_of(records)), key, told)
    columns = {
        name: list(value.values()) if isinstance(value, dict) else value
        for name, value in found.items()
    }
    sizes = {len(value) if isinstance(value, list) else -1 for value in columns.values()}
    if len(sizes) != 1 or -1 in sizes:
        fix = "Write every key as a list with one value per instance."
        refuse("columns must be lists of one length", fix, value=sorted(sizes)[:10])
    check_columns(columns, max(sizes, default=0))
    return Loaded(pa.table({name: array_of(value) for name, value in columns.items()}), None, told)
