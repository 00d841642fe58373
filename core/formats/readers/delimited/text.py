"""Rows of a CSV file as text: quotes, and the escape that keeps a spreadsheet from running a cell.

Cells that came from a text file are not escaped: they go out as they came.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from core.data.dataset import CandidateDataset
from core.formats.shared.copying import Copied, batches_of, by_instance, column_names
from core.formats.shared.list_features import is_number
from core.formats.shared.mapping import ColumnMapping, Resolution
from core.formats.shared.original import names_are_beside
from core.formats.shared.text import with_points

FORMULA = r"\A'*[=+\-@\t\r]"
ESCAPED = r"\A'('*[=+\-@\t\r])"
NUMBER = r"\A[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\z"


def unescaped(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Undo exactly what `escaped` does."""
    columns = [
        pc.replace_substring_regex(column, ESCAPED, r"\1", max_replacements=1)
        if pa.types.is_string(column.type)
        else column
        for column in batch.columns
    ]
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def _escaped(texts: pa.Array) -> pa.Array:
    """Put ' before text that a spreadsheet would run as a formula; numbers are left alone."""
    runs = pc.match_substring_regex(texts, FORMULA)
    runs = pc.and_not(runs, pc.match_substring_regex(texts, NUMBER))
    return pc.if_else(runs, pc.binary_join_element_wise("'", texts, ""), texts)


def _quoted(
    texts: pa.Array, separator: str, *, verbatim: bool = False, escape: bool = True
) -> pa.Array:
    texts = texts if verbatim or not escape else _escaped(texts)
    empty = "" if verbatim else r"|\A\z"
    special = pc.match_substring_regex(texts, f'[{re.escape(separator)}"\r\n]|\\A\\s|\\s\\z{empty}')
    doubled = pc.replace_substring(texts, '"', '""')
    return pc.if_else(special, pc.binary_join_element_wise('"', doubled, '"', ""), texts)


def _cells(
    column: pa.Array,
    separator: str,
    decimal: str,
    *,
    verbatim: bool = False,
    escape: bool = True,
) -> pa.Array:
    kind = column.type
    texts = with_points(column) if pa.types.is_floating(kind) else _as_strings(column)
    if not (is_number(kind) or pa.types.is_temporal(kind)):
        quoted = _quoted(texts, separator, verbatim=verbatim, escape=escape)
        return quoted.fill_null("")
    if pa.types.is_floating(kind) and decimal == ",":
        texts = pc.replace_substring(texts, ".", ",")
    return texts.fill_null("") if texts.null_count else texts


def _as_strings(column: pa.Array) -> pa.Array:
    try:
        return column.cast(pa.string())
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid):  # such as bytes that are no text
        texts = [None if value is None else str(value) for value in column.to_pylist()]
        return pa.array(texts, pa.string())


def _lines(cells: list[pa.Array], separator: str, end: str = "\n") -> bytes:
    ends = pc.binary_join_element_wise(cells[-1], "", end)
    rows = pc.binary_join_element_wise(*cells[:-1], ends, separator)
    return b"".join(rows.cast(pa.binary()).to_pylist())


def made_rows(
    copy: Copied | None,
    dataset: CandidateDataset,
    mapping: ColumnMapping | None,
    resolution: Resolution | None,
    separator: str,
    *,
    escape: bool = True,
) -> Iterator[bytes]:
    """Give header and rows cell by cell: those of a text file with its text, quoted as needed."""
    decimal = mapping.decimal if mapping is not None and separator != "," else "."
    names = column_names(dataset, mapping, resolution)
    is_text = copy is not None and copy.original.format in ("csv", "tsv")
    verbatim = set(copy.names) if copy is not None and is_text else set()
    points = set(mapping.features) if mapping and mapping.decimal != decimal else set()
    header = _quoted(pa.array(names, pa.string()), separator, escape=escape).to_pylist()
    yield (separator.join(header) + "\n").encode()
    for batch in batches_of(dataset, mapping, resolution, as_text=True):
        cells = []
        for name, column in zip(names, batch.columns, strict=True):
            if name in points & verbatim:
                column = pc.replace_substring(column, ",", ".")
            options = {"verbatim": name in verbatim, "escape": escape}
            cells.append(_cells(column, separator, decimal, **options))
        yield _lines(cells, separator)


def copied_rows(
    header: str,
    given: Iterable[list[bytes]],
    copy: Copied,
    dataset: CandidateDataset,
    resolution: Resolution | None,
    *,
    escape: bool = True,
) -> Iterator[bytes]:
    """Give header and rows of a file byte for byte, each with its outcome behind it."""
    separator = str(copy.mapping.separator)
    end = "\r\n" if header.endswith("\r\n") else "\n"
    names = pa.array([column.name for column in copy.outcome], pa.string())
    added = _quoted(names, separator, escape=escape).to_pylist()
    if not header and (added or names_are_beside(dataset)):  # what is beside it names columns too
        header = separator.join(copy.names)
    if header:
        yield (separator.join([header.rstrip("\r\n"), *added]) + end).encode()
    options: dict[str, Any] = {"as_text": True, "instances": copy.instances()}
    for rows, records in by_instance(given, dataset, resolution, 1 + len(added), **options):
        outcome = [column.cells(rows) for column in copy.outcome]
        cells = [_cells(column, separator, ".", escape=escape) for column in outcome]
        yield _lines([pa.array(records, pa.string()), *cells], separator, end)
