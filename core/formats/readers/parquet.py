"""Parquet: columns as they are, numbers and lists included; read batch by batch."""

import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from core.data.dataset import CandidateDataset
from core.failpoints import failpoint
from core.formats.shared.class_labels import class_names, with_names
from core.formats.shared.copying import batches_of
from core.formats.shared.findings import Findings, refuse
from core.formats.shared.limits import check_cells, check_rows, check_shape, check_size
from core.formats.shared.mapping import ColumnMapping, ReadResult, Resolution, guess_mapping
from core.formats.shared.tabular import MAX_COLUMNS, check_mapping, to_dataset

NAME = "parquet"
EXTENSIONS = (".parquet", ".pq")

MAGIC = b"PAR1"
DAMAGED = "Write it again from its source: it is damaged or cut off."
# What pyarrow raises on a file that is none, is cut off, or names its columns in other letters.
BAD_FILE = (pa.ArrowException, OSError, UnicodeDecodeError)
BATCH_VALUES = 4_000_000
BATCH_ROWS = 100_000
LISTED_VALUE = 8  # bytes
COUNT_LISTED = """
import sys, pyarrow.parquet
file = pyarrow.parquet.read_metadata(sys.argv[1])
lists = [j for j in range(file.num_columns) if file.schema.column(j).max_repetition_level]
groups = map(file.row_group, range(file.num_row_groups))
print(sum(max(0, group.column(j).num_values) for group in groups for j in lists))
"""
MAX_DEPTH = 16  # of lists within lists


def sniff(head: bytes, path: Path) -> bool:
    return head[:4] == MAGIC


def read(path: Path, mapping: ColumnMapping | None = None) -> ReadResult:
    """Read a Parquet file; what it declares and what comes out is judged before it is spread."""
    findings = Findings()
    try:
        metadata = pq.read_metadata(path, memory_map=True)
    except BAD_FILE as error:
        refuse(f"the Parquet file cannot be read: {error}", DAMAGED)
    _check_metadata(metadata, path)
    classes = class_names(pq.read_schema(path, memory_map=True))
    batches = _batches(path, metadata)
    if classes:
        batches = (with_names(batch, classes) for batch in batches)
    first = next(batches, None)
    if first is None:
        refuse("a table needs rows", "Add instances.", value="no rows")
    twice = sorted(name for name, n in Counter(first.schema.names).items() if n > 1)
    if twice:
        refuse("columns must have different names", "Rename them.", value=twice[:20])
    mapping = guess_mapping(pa.Table.from_batches([first]), mapping)
    if len(mapping.labels) == 1 and not mapping.label_names:
        names = tuple(classes.get(mapping.labels[0], ()))
        mapping = mapping.model_copy(update={"label_names": names})
    check_mapping(mapping, first.schema.names, findings)
    dataset = to_dataset(chain([first], batches), mapping, metadata.num_rows, findings)
    return ReadResult(dataset, findings.problems(), mapping, NAME)


def write(
    dataset: CandidateDataset,
    path: Path,
    mapping: ColumnMapping | None = None,
    resolution: Resolution | None = None,
) -> None:
    """Write one file, compressed, a few row groups."""
    writer = None
    try:
        for batch in batches_of(dataset, mapping, resolution):
            writer = writer or pq.ParquetWriter(path, batch.schema)
            writer.write_batch(batch)
            failpoint("export.writing")
    finally:
        if writer is not None:
            writer.close()


def cells(path: Path, verbatim: bool, mapping: ColumnMapping) -> Iterator[pa.RecordBatch]:
    """Give the columns as they are, with the types of the file."""
    with pq.ParquetFile(path, memory_map=True) as file:
        _check_metadata(file.metadata, path)
        yield from file.iter_batches()


def _check_metadata(metadata: pq.FileMetaData, path: Path) -> None:
    """A few bytes can declare a billion equal values: refuse before they are spread out."""
    if metadata.num_columns > MAX_COLUMNS:
        rule, fix = f"a table has at most {MAX_COLUMNS:,} columns", "Use a list column."
        refuse(rule, fix, value=f"{metadata.num_columns:,}")
    check_rows(metadata.num_rows)
    n_nested = n_bytes = 0
    for column in map(metadata.schema.column, range(metadata.num_columns)):
        if column.max_repetition_level > MAX_DEPTH or column.max_definition_level > 2 * MAX_DEPTH:
            rule = f"lists may lie within each other {MAX_DEPTH} deep"
            refuse(rule, "Drop the column.", column=column.path)
        n_nested += column.max_repetition_level > 0
        n_bytes += metadata.num_rows * max(0, column.length)  # of texts of one length
    n_listed = _listed_values(path) if n_nested else 0
    check_cells(metadata.num_rows * (metadata.num_columns - n_nested) + n_listed)
    check_size(n_bytes + LISTED_VALUE * n_listed)


def _listed_values(path: Path) -> int:
    """Return how many values are in lists; asked in a process of its own.

    pyarrow ends its process when a damaged file contradicts itself there.
    """
    command = [sys.executable, "-I", "-c", COUNT_LISTED, str(path)]
    child = subprocess.run(command, capture_output=True, check=False)
    if child.returncode:
        refuse("the Parquet file contradicts itself", DAMAGED, value=f"exit {child.returncode}")
    return int(child.stdout)


def _batches(path: Path, metadata: pq.FileMetaData) -> Iterator[pa.RecordBatch]:
    """Give all rows in batches, texts spelled out once it is known how long they get.

    Texts are read as places in a dictionary: a long one may be repeated a million times.
    """
    leaves = [metadata.schema.column(j) for j in range(metadata.num_columns)]
    texts = [leaf.path for leaf in leaves if leaf.physical_type == "BYTE_ARRAY"]
    nested = any(leaf.max_repetition_level for leaf in leaves if leaf.path in texts)
    groups = list(range(metadata.num_row_groups))
    n_rows = max(1, min(BATCH_ROWS, BATCH_VALUES // max(1, len(leaves))))
    n_bytes = 0
    try:
        with pq.ParquetFile(path, memory_map=True, read_dictionary=texts) as file:
            for some in [[group] for group in groups] if nested else [groups]:
                for batch in file.iter_batches(n_rows, row_groups=some):
                    batch.validate(full=True)
                    n_bytes += sum(map(_spelled_bytes, batch.columns))
                    check_size(n_bytes, "its text")
                    _check_lengths(batch)
                    yield _spelled_out(batch)
    except BAD_FILE as error:
        refuse(f"the Parquet file cannot be read: {error}", DAMAGED)


def _check_lengths(batch: pa.RecordBatch) -> None:
    """Refuse a list that could not be one row of features before it is looked at."""
    for column in batch.columns:
        if pa.types.is_list(column.type) or pa.types.is_large_list(column.type):
            check_shape(1, pc.max(pc.list_value_length(column)).as_py() or 0, 0)


def _spelled_bytes(array: pa.Array) -> int:
    """Return how many bytes the texts of an array have once they are spelled out."""
    kind = array.type
    if pa.types.is_dictionary(kind):
        lengths = pc.binary_length(array.dictionary).take(array.indices)
        return int(pc.sum(lengths, min_count=0).as_py())
    if pa.types.is_struct(kind):
        return sum(map(_spelled_bytes, array.flatten()))
    if pa.types.is_map(kind):
        return _spelled_bytes(array.keys) + _spelled_bytes(array.items)
    return _spelled_bytes(array.flatten()) if pa.types.is_nested(kind) else 0


def _spelled_out(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Dictionaries are a way to store text, not a type of their own."""
    columns = [column.cast(_plain_type(column.type)) for column in batch.columns]
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def _plain_type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_dictionary(kind):
        return kind.value_type
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_plain_type(kind.value_type)))
    if pa.types.is_large_list(kind):
        return pa.large_list(kind.value_field.with_type(_plain_type(kind.value_type)))
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(kind.value_field.with_type(_plain_type(kind.value_type)), kind.list_size)
    if pa.types.is_map(kind):
        return pa.map_(_plain_type(kind.key_type), _plain_type(kind.item_type))
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_plain_type(field.type)) for field in kind])
    return kind
