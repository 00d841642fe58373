"""CSV and TSV: any separator, quoted newlines, Excel's habits; read in a stream, written in chunks.

Owns the text of the file: encoding, separator, decimal mark, quoting, and the escape that keeps
a spreadsheet from running a cell as a formula. What columns mean belongs to `tabular`.
"""

import codecs
import csv
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv

from core.data.dataset import CandidateDataset
from core.errors import DatasetError
from core.failpoints import failpoint
from core.formats.readers.delimited.encoding import decoded_head
from core.formats.readers.delimited.head import Separator, separator_of
from core.formats.readers.delimited.rows import rows_of
from core.formats.readers.delimited.source import MAX_BLOCK, Source, opened
from core.formats.readers.delimited.text import copied_rows, made_rows, unescaped
from core.formats.shared.copying import Copied, copied
from core.formats.shared.findings import Findings, refuse
from core.formats.shared.folding import is_folded
from core.formats.shared.label_files import with_names_beside
from core.formats.shared.list_features import is_number
from core.formats.shared.mapping import ColumnMapping, ReadResult, Resolution, guess_mapping
from core.formats.shared.progress import ahead, report
from core.formats.shared.tabular import check_mapping, to_dataset

SAMPLE_BYTES = 2**20
PIECE_BYTES = 2**24
MIN_COLUMNS = 3  # of rows that are told from lines of a text
DECIMAL_COMMA = r"\A\s*[+-]?(\d+|\d*,\d+)([eE][+-]?\d+)?\s*\z"


@dataclass(frozen=True)
class DelimitedFormat:
    """A family of text tables, told apart by what stands between the cells."""

    NAME: str
    EXTENSIONS: tuple[str, ...]
    separator: Separator
    NOTE: str = ""

    def sniff(self, head: bytes, path: Path) -> bool:
        """Whether the first line is text that this separator cuts into several names."""
        try:
            text = decoded_head(head)
            is_other = "\0" in text[:1000] or text.lstrip()[:1] in ("{", "[")
            found = None if is_other else separator_of(text)
        except (UnicodeError, csv.Error):
            return False
        return found is not None and (found == "\t") == (self.separator == "\t")

    def read(self, path: Path, mapping: ColumnMapping | None = None) -> ReadResult:
        """Read a text table in one stream, with the types that its first rows have."""
        notes = Findings()
        with opened(path, notes, mapping) as source:
            try:
                dataset, full, found = _load(source, mapping, path)
            except DatasetError as error:
                problems = [*notes.problems(), *error.problems]
                raise DatasetError(problems, error.title, error.mapping) from None
        return ReadResult(dataset, (*notes.problems(), *found.problems()), full, self.NAME)

    def write(
        self,
        dataset: CandidateDataset,
        path: Path,
        mapping: ColumnMapping | None = None,
        resolution: Resolution | None = None,
        *,
        bom: bool = False,
        escape: bool = True,
    ) -> None:
        """Write the columns of the mapping, and the resolved labels when there are any.

        `bom` begins the file as spreadsheets want it; without `escape`, text that one would run as
        a formula is written as it is.
        """
        copy = copied(dataset, mapping, resolution)
        mapping = mapping if copy is None else copy.mapping
        stated = mapping.separator if mapping is not None else None
        stated = None if stated == " " else stated  # names and reasons have spaces
        tab = self.separator == "\t"
        separator = self.separator if stated is None or tab or stated == "\t" else stated
        with path.open("wb") as file:
            has_bom = bom or (mapping is not None and mapping.bom)
            file.write(codecs.BOM_UTF8 if has_bom else b"")
            if copy is not None and copy.are_rows_whole and separator == stated:
                blocks = _copied_rows(copy, dataset, resolution, escape)
            else:
                blocks = made_rows(copy, dataset, mapping, resolution, separator, escape=escape)
            for block in blocks:
                file.write(block)
                failpoint("export.writing")

    def cells(self, path: Path, verbatim: bool, mapping: ColumnMapping) -> Iterator[pa.RecordBatch]:
        """Give all cells as text."""
        with opened(path, Findings(), mapping) as source:
            text = source.text
            types = dict.fromkeys(source.names, pa.string())
            for rows in rows_of(text.path, source.offset, source.separator, quoted=text.quoted):
                piece = b"\n".join(rows) + b"\n"
                options = _options(replace(source, block=len(piece) + 1), types)
                table = pacsv.read_csv(pa.BufferReader(piece), **options) if rows else None
                for batch in table.to_batches() if table is not None else ():
                    yield batch if verbatim else unescaped(batch)


NOTE = (
    "Text that begins with = + - @ has a ' before it, so that no spreadsheet runs it as a formula; "
    "this program takes it away again. The format csv-raw leaves such text alone."
)
CSV = DelimitedFormat("csv", (".csv", ".txt"), ",", NOTE)
TSV = DelimitedFormat("tsv", (".tsv", ".tab"), "\t", NOTE)


def _load(
    source: Source, given: ColumnMapping | None, path: Path
) -> tuple[CandidateDataset, ColumnMapping, Findings]:
    """Read all rows with the types their first ones have; if a cell does not fit, with care."""
    source, sample = _sampled(source)
    facts = {"separator": source.separator, "decimal": source.decimal, "bom": source.text.bom}
    facts |= {"header": bool(source.header), "numeric_id": False}
    mapping = guess_mapping(sample, given).model_copy(update=facts)
    mapping = with_names_beside(mapping, sample, path)
    check_mapping(mapping, source.names, Findings())
    careful = dict.fromkeys(source.names, pa.string())
    types = _types(mapping, sample.schema)
    in_pieces = not source.text.quoted
    while True:
        findings = Findings()
        batches = _pieces(source, types) if in_pieces else _stream(source, types, findings)
        try:
            return (
                to_dataset(ahead(batches), mapping, _most_rows(source), findings),
                mapping,
                findings,
            )
        except pa.ArrowInvalid as error:
            if in_pieces:  # a row in a stream has a number to be told by
                in_pieces = False
            elif _cuts_a_row(error) and source.block < MAX_BLOCK:
                source = replace(source, block=4 * source.block)
            elif types is not careful:
                types = careful
            else:
                raise


def _most_rows(source: Source) -> int:
    """Return how many rows there can be: a row takes a line, and a byte per cell."""
    n_bytes = source.text.path.stat().st_size
    return min(source.text.n_lines + 1, n_bytes // len(source.names) + 1)


def _cuts_a_row(error: Exception) -> bool:
    return "straddl" in str(error)


def _sampled(source: Source) -> tuple[Source, pa.Table]:
    """Return the first rows, read with the decimal mark that makes sense of them."""
    sample = _sample(source)
    if source.separator != "," and _has_decimal_commas(sample):
        source = replace(source, decimal=",")
        sample = _sample(source)
    return source, sample


def _sample(source: Source) -> pa.Table:
    """Return the first rows with the types that pyarrow infers for them."""
    n_bytes = SAMPLE_BYTES
    while True:
        findings = Findings()
        head, is_all = _beginning(source, n_bytes)
        piece = replace(source, offset=0, block=len(head) + 1)
        batches = list(_parsed(pa.BufferReader(head), piece, {}, findings))
        if any(batch.num_rows for batch in batches):
            return pa.Table.from_batches(batches)
        if is_all:
            findings.stop_if_fatal()
            refuse("a table needs rows below its header", "Add instances.", value="no rows")
        n_bytes *= 8


def _beginning(source: Source, n_bytes: int) -> tuple[bytes, bool]:
    """Return whole lines from where the rows begin, and whether these are all."""
    with source.text.path.open("rb") as file:
        file.seek(source.offset)
        head = file.read(min(n_bytes, MAX_BLOCK))
    if len(head) < n_bytes:
        return head, True
    return head[: head.rfind(b"\n") + 1], False


def _has_decimal_commas(sample: pa.Table) -> bool:
    texts = (column.drop_null() for column in sample.columns if pa.types.is_string(column.type))
    return any(
        pc.any(pc.match_substring(values, ",")).as_py()
        and pc.all(pc.match_substring_regex(values, DECIMAL_COMMA)).as_py()
        for values in texts
    )


def _types(mapping: ColumnMapping, sample: pa.Schema) -> dict[str, pa.DataType]:
    types = dict.fromkeys(mapping.columns, pa.string())
    if mapping.feature_layout == "columns":
        types |= {name: _feature_type(sample.field(name).type) for name in mapping.features}
    labels = mapping.labels if mapping.layout == "one_hot" and not is_folded(mapping) else ()
    truth = mapping.truth if mapping.truth_layout == "one_hot" else ()
    types |= {name: _flag_type(sample.field(name).type) for name in (*labels, *truth)}
    places = mapping.labels if mapping.layout == "delimited" and len(mapping.labels) > 1 else ()
    places = () if is_folded(mapping) else places
    floats = [name for name in places if pa.types.is_floating(sample.field(name).type)]
    return types | dict.fromkeys(floats, pa.float64())  # 3.0, where pandas left gaps, is class 3


def _feature_type(seen: pa.DataType) -> pa.DataType:
    if pa.types.is_boolean(seen):
        return pa.bool_()
    return pa.float32() if is_number(seen) else pa.string()  # text that is to be made sense of


def _flag_type(seen: pa.DataType) -> pa.DataType:
    if pa.types.is_boolean(seen) or pa.types.is_string(seen):
        return seen  # text that is to be made sense of
    return pa.float32() if pa.types.is_floating(seen) else pa.int8()


def _pieces(source: Source, types: dict[str, pa.DataType]) -> Iterator[pa.RecordBatch]:
    """Give all rows of a file without quotes, in which every line is a row.

    Such a file can be cut anywhere between lines, and its pieces be parsed on all processors.
    """
    with source.text.path.open("rb") as file:
        size = source.text.path.stat().st_size
        file.seek(source.offset)
        while piece := file.read(PIECE_BYTES) + file.readline():
            table = pacsv.read_csv(pa.BufferReader(piece), **_options(source, types))
            yield from map(unescaped, table.to_batches())
            report(file.tell(), size)


def _stream(
    source: Source, types: dict[str, pa.DataType], findings: Findings
) -> Iterator[pa.RecordBatch]:
    """Give all rows in batches; rows of the wrong length are findings."""
    n_rows = 0
    with pa.OSFile(str(source.text.path)) as file:
        file.seek(source.offset)
        for batch in _parsed(file, source, types, findings):
            if source.text.quoted:
                _find_open_quotes(batch, n_rows, source, findings)
            n_rows += batch.num_rows
            yield batch


def _find_open_quotes(
    batch: pa.RecordBatch, n_before: int, source: Source, findings: Findings
) -> None:
    """Point out cells that hold lines like rows: after a quote that nobody closed."""
    between = re.escape(source.separator)
    if len(source.names) < MIN_COLUMNS:
        return
    line = rf"(?m)^[^\n{between}]*({between}[^\n{between}]*){{{len(source.names) - 1}}}$"
    rule = "a cell holds lines that look like rows: is a quote in it not closed?"
    fix = "Close it, or write it twice: what followed became text of this cell."
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        is_text = pa.types.is_string(column.type)
        if not is_text or not pc.any(pc.match_substring(column, "\n")).as_py():
            continue
        rows = pc.count_substring_regex(column, line).fill_null(0)
        lines = pc.add(pc.count_substring(column, "\n").fill_null(0), 1)
        open_ones = pc.and_(pc.greater(rows, 1), pc.greater_equal(pc.multiply(rows, 2), lines))
        for i in pc.indices_nonzero(open_ones).to_pylist():
            findings.add(rule, fix, row=n_before + i + 1, column=name, value=f"{rows[i]} lines")


def _parsed(
    file: pa.NativeFile, source: Source, types: dict[str, pa.DataType], findings: Findings
) -> Iterator[pa.RecordBatch]:
    """Give what pyarrow makes of a file of its own.

    It reads ahead in its threads: from a file of Python's, one that still reads when the program
    ends would take the program down with it.
    """
    try:
        reader = _reader(file, source, types, findings)
        with reader:
            for batch in reader:
                yield unescaped(batch)
                report(file.tell(), file.size())
    except pa.ArrowInvalid as error:
        if "Empty CSV" in str(error):
            return
        if findings.is_full:
            findings.stop_if_fatal()
        raise


def _reader(
    file: pa.NativeFile, source: Source, types: dict[str, pa.DataType], findings: Findings
) -> Any:
    return pacsv.open_csv(file, **_options(source, types, _wrong_length(findings)))


def _options(
    source: Source,
    types: dict[str, pa.DataType],
    invalid_row_handler: Callable[[Any], str] | None = None,
) -> dict[str, Any]:
    read = pacsv.ReadOptions(
        column_names=list(source.names),
        block_size=source.block,
        use_threads=invalid_row_handler is None,  # with threads pyarrow knows no row's number
    )
    return {
        "read_options": read,
        "parse_options": pacsv.ParseOptions(
            delimiter=source.separator,
            newlines_in_values=source.text.quoted,
            invalid_row_handler=invalid_row_handler,
        ),
        "convert_options": pacsv.ConvertOptions(
            column_types=types, decimal_point=source.decimal, strings_can_be_null=False
        ),
    }


def _wrong_length(findings: Findings) -> Callable[[Any], str]:
    def refuse_row(row: Any) -> str:
        rule = f"every row must have {row.expected_columns} cells"
        found = f"{row.actual_columns} in {row.text[:60]!r}"
        fix = "Check separators and quotes."
        try:
            findings.add(rule, fix, fatal=True, row=row.number, value=found)
        except DatasetError:  # pyarrow lets nothing through; `_parsed` raises it again
            return "error"
        return "skip"

    return refuse_row


def _copied_rows(
    copy: Copied, dataset: CandidateDataset, resolution: Resolution | None, escape: bool
) -> Iterator[bytes]:
    with (
        copy.original.opened() as path,
        opened(path, Findings(), copy.original.mapping) as source,
    ):
        text = source.text
        rows = rows_of(text.path, source.offset, source.separator, quoted=text.quoted)
        yield from copied_rows(source.header, rows, copy, dataset, resolution, escape=escape)
