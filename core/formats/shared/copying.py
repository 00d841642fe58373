"""A table of the user's own columns, copied from the file they came in, and what was found out.

Owns when columns are copied and when they are made anew (`tables`), and what the cells of a text
file become in a file with types: numbers where nothing of their value is lost, text otherwise.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import compress
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from core.data.dataset import CandidateDataset
from core.errors import ExportError
from core.formats.shared import tables
from core.formats.shared.mapping import ColumnMapping, Resolution
from core.formats.shared.original import Original
from core.formats.shared.row_names import cells_of, instances_of, items_and_labels
from core.formats.shared.tables import CHUNK_CELLS, Column, Rows

DECIMAL = r"\A-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d{1,2})?\z"
NOT_DIGITS = r"\A-?[0.]*|\.|[eE].*"
SAMPLE = 100
EXACT_DIGITS = 15  # of a decimal number that float64 always gives back
BOOLEAN = r"\A(true|false|True|False|TRUE|FALSE)?\z"
VALUES = (pa.int64(), pa.float64(), pa.bool_())
LISTS = (pa.list_(pa.float64()), pa.list_(pa.string()))
# What a reader finds out about a text table itself, which an export may have changed.
FACTS = {"columns", "reasons", "header", "separator", "decimal", "bom", "keyed"}


@dataclass(frozen=True)
class Copied:
    """Which columns of a file go into the export, and which follow them."""

    original: Original
    mapping: ColumnMapping
    names: tuple[str, ...]
    outcome: tuple[Column, ...]

    @property
    def are_rows_whole(self) -> bool:
        """Whether a row of the file can be taken as it is, and its outcome be put behind it."""
        return self.names == self.original.columns and self.mapping.layout != "long"

    def instances(self) -> npt.NDArray[np.int64] | None:
        """Return the instance of each row of the file; none where that is its number."""
        if self.mapping.row != "view":
            return None
        key = str(self.original.mapping.id)
        batches = self.original.batches()
        cells = (cell for batch in batches for cell in cells_of(batch.column(key)))
        return instances_of(cells)[0]

    @property
    def header(self) -> list[str]:
        return [*self.names, *(column.name for column in self.outcome)]


def copied(
    dataset: CandidateDataset, mapping: ColumnMapping | None, resolution: Resolution | None
) -> Copied | None:
    """Return what to copy for this data set and mapping; none if its columns are made anew."""
    original = dataset.original
    if original is None or not original.columns:
        return None
    order = original.columns if mapping is None or not mapping.columns else mapping.columns
    if not set(original.columns).issuperset(order):
        return None
    mapping = original.mapping if mapping is None else mapping
    outcome = () if resolution is None else tables.outcome_columns(dataset, mapping, resolution)
    added = {column.name for column in outcome}
    names = tuple(name for name in order if name not in added)
    return Copied(original, mapping, names, tuple(outcome))


def written_mapping(dataset: CandidateDataset, mapping: ColumnMapping | None) -> ColumnMapping:
    """Return how the columns of a written table are to be understood."""
    if dataset.original is not None and dataset.original.columns:
        mapping = mapping or dataset.original.mapping
    mapping = mapping or tables.default_mapping(dataset)
    return ColumnMapping(**mapping.model_dump(exclude_unset=True, exclude=FACTS))


def column_names(
    dataset: CandidateDataset, mapping: ColumnMapping | None, resolution: Resolution | None
) -> list[str]:
    """Return the header that `batches_of` writes below."""
    copy = copied(dataset, mapping, resolution)
    return tables.column_names(dataset, mapping, resolution) if copy is None else copy.header


def batches_of(
    dataset: CandidateDataset,
    mapping: ColumnMapping | None,
    resolution: Resolution | None,
    *,
    as_text: bool = False,
) -> Iterator[pa.RecordBatch]:
    """Give the rows to write; lists become text where the file has no lists."""
    copy = copied(dataset, mapping, resolution)
    if copy is None:
        return tables.batches_of(dataset, mapping, resolution, as_text=as_text)
    if copy.mapping.layout == "long":
        return _long_batches(copy, dataset, resolution, as_text)
    return _batches(copy, dataset, resolution, as_text)


def by_instance(
    pieces: Iterable[Any],
    dataset: CandidateDataset,
    resolution: Resolution | None,
    width: int,
    *,
    as_text: bool,
    instances: npt.NDArray[np.int64] | None = None,
) -> Iterator[tuple[Rows, Any]]:
    """Cut what comes in lists or batches of rows into parts of limited size, with their instances.

    Rows beyond the data set are left out: it may be the beginning of the file. `instances` says
    whose view each row is, where rows are views.
    """
    n_rows = dataset.n_instances if instances is None else len(instances)
    start, step = 0, max(1, CHUNK_CELLS // max(1, width))
    for piece in pieces:
        for at in range(0, len(piece), step):
            part = piece[at : at + step][: n_rows - start]
            end = start + len(part)
            whose = None if instances is None else instances[start:end]
            if whose is not None and (whose >= dataset.n_instances).any():
                part, whose = _known(part, whose, dataset.n_instances)
            if len(part):
                yield Rows(dataset, resolution, start, start + len(part), as_text, whose), part
            start = end
    if start < n_rows:
        found = f"{start:,} of {n_rows:,} rows"
        raise ExportError("The file does not have all rows that were read.", found)


def _known(part: Any, whose: npt.NDArray[np.int64], n: int) -> tuple[Any, npt.NDArray[np.int64]]:
    keep = whose < n
    if isinstance(part, list):
        return list(compress(part, keep.tolist())), whose[keep]
    return part.filter(pa.array(keep)), whose[keep]


def _batches(
    copy: Copied, dataset: CandidateDataset, resolution: Resolution | None, as_text: bool
) -> Iterator[pa.RecordBatch]:
    types = {} if as_text else _types(copy)
    decimal = copy.mapping.decimal
    given = copy.original.batches(verbatim=as_text)
    options: dict[str, Any] = {"as_text": as_text, "instances": copy.instances()}
    for rows, batch in by_instance(given, dataset, resolution, len(copy.header), **options):
        cells = [_typed(batch.column(name), types.get(name), decimal) for name in copy.names]
        cells += [column.cells(rows) for column in copy.outcome]
        yield _batch(batch.schema, cells, copy.header, as_text)


def _batch(
    given: pa.Schema, cells: list[pa.Array], names: list[str], as_text: bool
) -> pa.RecordBatch:
    """Return the columns as a batch; those that were not changed keep what their file says."""
    if as_text:
        return tables.record_batch(cells, names, as_text)
    known = {name: given.field(name) for name in given.names}
    fields = [
        known[name] if name in known and known[name].type == one.type else pa.field(name, one.type)
        for name, one in zip(names, cells, strict=True)
    ]
    return pa.RecordBatch.from_arrays(cells, schema=pa.schema(fields, given.metadata))


# ----------------------------------------------------------------------- types of a text file


def _types(copy: Copied) -> dict[str, pa.DataType]:
    """Return the types that columns with a meaning can have without loss, where they are text."""
    mapping = copy.mapping
    lists = set(mapping.features) if mapping.feature_layout == "list" else set()
    lists |= set(mapping.labels) if mapping.layout in ("delimited", "answers") else set()
    roles = {*mapping.labels, *mapping.truth, *mapping.features} & set(copy.names)
    possible = {name: list(LISTS if name in lists else VALUES) for name in roles}
    for batch in copy.original.batches():
        for name, kinds in possible.items():
            column = batch.column(name)
            if not pa.types.is_string(column.type):
                kinds.clear()
            for part in (column[:SAMPLE], column):  # a type that fails does so at great length
                kinds[:] = [kind for kind in kinds if _fits(part, kind, mapping.decimal)]
        if not any(possible.values()):
            break
    return {name: kinds[0] for name, kinds in possible.items() if kinds}


def _fits(texts: pa.Array, kind: pa.DataType, decimal: str) -> bool:
    """Whether text can become this type and nothing of its value is lost."""
    if pa.types.is_boolean(kind):
        return _all_match(texts, BOOLEAN)
    texts = pc.replace_substring(texts, decimal, ".") if decimal == "," else texts
    try:
        typed = _typed(texts, kind, ".")
    except (pa.ArrowException, ValueError, RecursionError):  # pyarrow and json on other text
        return False
    if pa.types.is_list(kind):
        return True
    changed = texts.filter(pc.not_equal(typed.cast(pa.string()).fill_null(""), texts))
    if not len(changed):
        return True
    if pa.types.is_integer(kind) or not _all_match(changed, DECIMAL):
        return False
    digits = pc.utf8_length(pc.replace_substring_regex(changed, NOT_DIGITS, ""))
    return bool(pc.max(digits).as_py() <= EXACT_DIGITS)


def _all_match(texts: pa.Array, pattern: str) -> bool:
    return pc.all(pc.match_substring_regex(texts, pattern)).as_py() is not False


def _typed(column: pa.Array, kind: pa.DataType | None, decimal: str) -> pa.Array:
    if kind is None:
        return column
    if pa.types.is_list(kind):
        return pa.array([json.loads(text) if text else None for text in column.to_pylist()], kind)
    texts = pc.replace_substring(column, decimal, ".") if decimal == "," else column
    return pc.if_else(pc.equal(texts, ""), None, texts).cast(kind)


# --------------------------------------------------------------------------------- long files


def _long_batches(
    copy: Copied, dataset: CandidateDataset, resolution: Resolution | None, as_text: bool
) -> Iterator[pa.RecordBatch]:
    """Give the rows as they came, then one for every resolved cell that had none."""
    mapping = copy.mapping
    table = pa.Table.from_batches(copy.original.batches(verbatim=as_text)).select(copy.names)
    instances, labels = _long_cells(copy, dataset)
    shown = instances < dataset.n_instances
    table, instances, labels = table.filter(pa.array(shown)), instances[shown], labels[shown]
    if resolution is not None:
        unlisted = resolution.labels > 0
        unlisted[instances[labels >= 0], labels[labels >= 0]] = False
        more = np.nonzero(unlisted)
        table = pa.concat_tables(
            [table, _more_rows(table.schema, mapping, dataset, more)], promote_options="permissive"
        )
        instances, labels = np.append(instances, more[0]), np.append(labels, more[1])
        added = tables.long_outcome(resolution, (instances, labels), labels >= 0)
        for name, values in added.items():
            table = table.append_column(name, values)
    for batch in table.combine_chunks().to_batches():
        yield tables.record_batch(batch.columns, table.column_names, as_text)


def _long_cells(copy: Copied, dataset: CandidateDataset) -> tuple[Any, Any]:
    """Return the instance and the label of every row; -1 for no label."""
    table = pa.Table.from_batches(copy.original.batches())
    items, names = items_and_labels(table, copy.mapping)
    labels = [dataset.label_of.get(str(name), -1) for name in names]
    return instances_of(items)[0], np.array(labels)


def _more_rows(
    schema: pa.Schema, mapping: ColumnMapping, dataset: CandidateDataset, at: Any
) -> pa.Table:
    items, names = [dataset.ids[i] for i in at[0]], [dataset.label_names[j] for j in at[1]]
    mark, nothing = mapping.label_after, ["0"] * len(at[0])
    if mark is None:
        cells = {str(mapping.id): items, mapping.labels[0]: names}
        cells |= {name: nothing for name in mapping.labels[1:]}
    else:
        both = [item + mark + name for item, name in zip(items, names, strict=True)]
        cells = {str(mapping.id): both, mapping.labels[0]: nothing}
    columns = [
        pa.array(cells[field.name], pa.string()).cast(field.type)
        if field.name in cells
        else pa.nulls(len(at[0]), field.type)
        for field in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)
