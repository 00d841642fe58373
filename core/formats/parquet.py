"""Parquet: columns as they are, numbers and lists included."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from core.dataset import CandidateDataset
from core.formats.findings import Findings, refuse
from core.formats.limits import MAX_BYTES, SMALLER
from core.formats.mapping import ColumnMapping, ReadResult, Resolution
from core.formats.tables import batches_of
from core.formats.tabular import MAX_COLUMNS, table_to_dataset

NAME = "parquet"
EXTENSIONS = (".parquet", ".pq")

MAGIC = b"PAR1"


def sniff(head: bytes, path: Path) -> bool:
    return head[:4] == MAGIC


def read(path: Path, mapping: ColumnMapping | None = None) -> ReadResult:
    """Read a Parquet file; what it declares is judged before it is decoded."""
    findings = Findings()
    with pq.ParquetFile(path, memory_map=True) as file:
        _check_size(file.metadata)
        table = file.read()
    dataset, mapping = table_to_dataset(_decoded(table), mapping, findings)
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
    finally:
        if writer is not None:
            writer.close()


def _check_size(metadata: pq.FileMetaData) -> None:
    """A few bytes can declare a billion equal values: refuse before they are spread out."""
    if metadata.num_columns > MAX_COLUMNS:
        rule, fix = f"a table has at most {MAX_COLUMNS:,} columns", "Use a list column."
        refuse(rule, fix, value=f"{metadata.num_columns:,}")
    n_bytes = 4 * metadata.num_rows * metadata.num_columns
    if n_bytes > MAX_BYTES:
        refuse(f"a table may take up {MAX_BYTES:,} bytes", SMALLER, value=f"{n_bytes:,}")


def _decoded(table: pa.Table) -> pa.Table:
    """Spell out dictionary columns: they are a way to store text, not a type of their own."""
    for i, field in enumerate(table.schema):
        if pa.types.is_dictionary(field.type):
            plain = table.column(i).cast(field.type.value_type)
            table = table.set_column(i, field.name, plain)
    return table
