"""CSV and TSV: any separator, quoted newlines, Excel's habits; read in a stream, written in chunks.

Owns the text of the file: encoding, separator, decimal mark, quoting, and the escape that keeps
a spreadsheet from running a cell as a formula. What columns mean belongs to `tabular`.
"""

import codecs
import csv
import io
import re
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import IO, Any, Literal

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv

from core.dataset import CandidateDataset
from core.errors import DatasetError
from core.formats.findings import Findings, refuse
from core.formats.mapping import ColumnMapping, ReadResult, Resolution, guess_mapping
from core.formats.tables import batches_of, column_names
from core.formats.tabular import MAX_COLUMNS, check_mapping, to_dataset

Separator = Literal[",", ";", "\t", "|"]

SEPARATORS: tuple[Separator, ...] = ("\t", ";", ",", "|")
SCAN_BYTES = 2**22
SAMPLE_BYTES = 2**20
MIN_BLOCK, MAX_BLOCK = 2**21, 2**28
MAX_HEADER = 2**25
PIECE_BYTES = 2**24
DECIMAL_COMMA = r"\A\s*[+-]?(\d+|\d*,\d+)([eE][+-]?\d+)?\s*\z"
FORMULA = r"\A'*[=+\-@\t\r]"
ESCAPED = r"\A'('*[=+\-@\t\r])"
NUMBER = r"\A[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\z"


@dataclass(frozen=True)
class DelimitedFormat:
    """A family of text tables, told apart by what stands between the cells."""

    NAME: str
    EXTENSIONS: tuple[str, ...]
    separator: Separator

    def sniff(self, head: bytes, path: Path) -> bool:
        """Whether the first line is text that this separator cuts into several names."""
        try:
            text = _decoded_head(head)
            is_other = "\0" in text[:1000] or text.lstrip()[:1] in ("{", "[")
            found = None if is_other else _separator(text)
        except (UnicodeError, csv.Error):
            return False
        return found is not None and (found == "\t") == (self.separator == "\t")

    def read(self, path: Path, mapping: ColumnMapping | None = None) -> ReadResult:
        """Read a text table in one stream, with the types that its first rows have."""
        notes = Findings()
        with _as_utf8(path, notes) as text:
            source = _open(text, notes)
            try:
                dataset, full, found = _load(source, mapping)
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
    ) -> None:
        """Write the columns of the mapping, and the resolved labels when there are any."""
        stated = mapping.separator if mapping is not None else None
        tab = self.separator == "\t"
        separator = self.separator if stated is None or tab or stated == "\t" else stated
        decimal = mapping.decimal if mapping is not None and separator != "," else "."
        names = pa.array(column_names(dataset, mapping, resolution), pa.string())
        with path.open("wb") as file:
            file.write(codecs.BOM_UTF8 if mapping is not None and mapping.bom else b"")
            file.write((separator.join(_quoted(names, separator).to_pylist()) + "\n").encode())
            for batch in batches_of(dataset, mapping, resolution, as_text=True):
                cells = [_cells(column, separator, decimal) for column in batch.columns]
                file.write(_lines(cells, separator))


CSV = DelimitedFormat("csv", (".csv", ".txt"), ",")
TSV = DelimitedFormat("tsv", (".tsv", ".tab"), "\t")


@dataclass(frozen=True)
class _Text:
    """A UTF-8 file, looked through once."""

    path: Path
    n_lines: int
    bom: bool
    quoted: bool


@dataclass(frozen=True)
class _Source:
    """A text table whose first line is understood, and where its rows begin."""

    text: _Text
    names: tuple[str, ...]
    offset: int
    separator: Separator
    block: int
    decimal: Literal[".", ","] = "."


class _NotUtf8Error(Exception):
    pass


@contextmanager
def _as_utf8(path: Path, findings: Findings) -> Iterator[_Text]:
    """Give the file as UTF-8: itself, or a temporary copy when it is something else."""
    with path.open("rb") as file:
        start = file.read(4)
    if start[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        with _transcoded(path, "utf-16") as copy:
            yield _scan(copy)
        return
    try:
        text = _scan(path)
    except _NotUtf8Error:
        fix = "Save the file as UTF-8 if names look wrong."
        findings.add("the file is not UTF-8; it was read as Latin-1", fix)
        with _transcoded(path, "latin-1") as copy:
            yield _scan(copy)
        return
    if text.n_lines == 0:  # a file of one line, or of an old Mac
        with _transcoded(path, "utf-8-sig") as copy:
            yield _scan(copy)
        return
    yield text


def _scan(path: Path) -> _Text:
    decoder = codecs.getincrementaldecoder("utf-8")()
    n_lines, quoted = 0, False
    with path.open("rb") as file:
        bom = file.read(3) == codecs.BOM_UTF8
        file.seek(0)
        while block := file.read(SCAN_BYTES):
            n_lines += block.count(b"\n")
            quoted = quoted or b'"' in block
            pending = decoder.getstate()[0]
            if pending or not block.isascii():
                _decode(decoder, block)
    _decode(decoder, b"", final=True)
    return _Text(path, n_lines, bom, quoted)


def _decode(decoder: codecs.IncrementalDecoder, block: bytes, final: bool = False) -> None:
    try:
        decoder.decode(block, final)
    except UnicodeDecodeError:
        raise _NotUtf8Error from None


@contextmanager
def _transcoded(path: Path, encoding: str) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder, path.name)
        with (
            path.open(encoding=encoding, newline="") as old,
            copy.open("w", encoding="utf-8", newline="") as new,
        ):
            lines_end_in_cr = "\n" not in old.read(2**16)
            old.seek(0)
            while text := old.read(SCAN_BYTES):
                new.write(text.replace("\r", "\n") if lines_end_in_cr else text)
        yield copy


def _decoded_head(head: bytes) -> str:
    if head[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        return codecs.getincrementaldecoder("utf-16")().decode(head)
    try:
        return codecs.getincrementaldecoder("utf-8-sig")().decode(head)
    except UnicodeDecodeError:
        return head.decode("latin-1")


def _open(text: _Text, findings: Findings) -> _Source:
    """Understand the first line: separator, column names, where the rows begin."""
    with text.path.open("rb") as file:
        file.seek(3 if text.bom else 0)
        stated, line = _stated_separator(file)
        header = _whole_record(file, line)
        offset = file.tell()
        rest = file.read(2**16).decode("utf-8", "replace")
    separator = stated or _separator(header + rest)
    if separator is None:
        fix = "Separate columns by comma, semicolon, tab or |."
        refuse("the first line must name several columns", fix, value=header[:80])
    names = _unique(
        next(csv.reader(io.StringIO(header, newline=""), delimiter=separator)), findings
    )
    longest = max(len(header), len(rest.split("\n", 1)[0]))
    block = min(MAX_BLOCK, max(MIN_BLOCK, 64 * longest))
    return _Source(text, names, offset, separator, block)


def _stated_separator(file: IO[bytes]) -> tuple[Separator | None, str]:
    """Excel may begin a file with `sep=;`."""
    line = file.readline(MAX_HEADER).decode()
    found = re.fullmatch(r'"?sep=([,;|\t])"?\s*', line, re.IGNORECASE)
    if found is None:
        return None, line
    stated = next(one for one in SEPARATORS if one == found[1])
    return stated, file.readline(MAX_HEADER).decode()


def _whole_record(file: IO[bytes], line: str) -> str:
    """Return the header from its first line on: a quoted name may span several."""
    while line.count('"') % 2 and len(line) < MAX_HEADER:
        more = file.readline(MAX_HEADER).decode()
        if not more:
            break
        line += more
    if line.count('"') % 2 or len(line) >= MAX_HEADER:
        refuse("the first line must name the columns", "Check its quotes.", value=line[:80])
    return line


def _separator(text: str) -> Separator | None:
    """Return what cuts the header into several cells and the next lines into as many."""
    rated = [(*_fit(text, separator), separator) for separator in SEPARATORS]
    _, n_cells, best = max(rated, key=lambda one: one[:2])
    return best if n_cells > 1 else None


def _fit(text: str, separator: Separator) -> tuple[float, int]:
    """Return which share of the first lines has as many cells as the header, and how many."""
    records = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
    try:
        header = next((record for record in records if record), [])
        sizes = [len(record) for record in islice(records, 20) if record][:-1]
    except csv.Error:  # a cell without end: not this separator
        return 0.0, 0
    agree = sum(size == len(header) for size in sizes)
    return ((1 + agree) / (1 + len(sizes)), len(header)) if len(header) > 1 else (0.0, 0)


def _unique(names: list[str], findings: Findings) -> tuple[str, ...]:
    if len(names) > MAX_COLUMNS:
        fix = "Use a list column, or a sparse format such as svmlight."
        refuse(f"a table has at most {MAX_COLUMNS:,} columns", fix, value=f"{len(names):,}")
    names = [re.sub(ESCAPED, r"\1", name) for name in names]
    seen: dict[str, int] = {}
    for i, name in enumerate(names):
        if name in seen:
            findings.add("two columns have the same name", "Rename one.", column=name)
            names[i] = next(
                new for k in range(2, len(names) + 2) if (new := f"{name}_{k}") not in seen
            )
        seen[names[i]] = i
    return tuple(names)


def _load(
    source: _Source, given: ColumnMapping | None
) -> tuple[CandidateDataset, ColumnMapping, Findings]:
    """Read all rows with the types their first ones have; if a cell does not fit, with care."""
    source, sample = _sampled(source)
    facts = {"separator": source.separator, "decimal": source.decimal, "bom": source.text.bom}
    mapping = guess_mapping(sample, given).model_copy(update={**facts, "numeric_id": False})
    check_mapping(mapping, source.names, Findings())
    careful = dict.fromkeys(source.names, pa.string())
    types = _types(mapping, sample.schema)
    in_pieces = not source.text.quoted
    while True:
        findings = Findings()
        batches = _pieces(source, types) if in_pieces else _stream(source, types, findings)
        try:
            return (
                to_dataset(_ahead(batches), mapping, source.text.n_lines + 1, findings),
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


def _cuts_a_row(error: Exception) -> bool:
    return "straddl" in str(error)


def _sampled(source: _Source) -> tuple[_Source, pa.Table]:
    """Return the first rows, read with the decimal mark that makes sense of them."""
    sample = _sample(source)
    if source.separator != "," and _has_decimal_commas(sample):
        source = replace(source, decimal=",")
        sample = _sample(source)
    return source, sample


def _sample(source: _Source) -> pa.Table:
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


def _beginning(source: _Source, n_bytes: int) -> tuple[bytes, bool]:
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
        types |= dict.fromkeys(mapping.features, pa.float32())
    labels = mapping.labels if mapping.layout == "one_hot" else ()
    truth = mapping.truth if mapping.truth_layout == "one_hot" else ()
    return types | {name: _flag_type(sample.field(name).type) for name in (*labels, *truth)}


def _flag_type(seen: pa.DataType) -> pa.DataType:
    if pa.types.is_boolean(seen):
        return pa.bool_()
    return pa.float32() if pa.types.is_floating(seen) else pa.int8()


def _pieces(source: _Source, types: dict[str, pa.DataType]) -> Iterator[pa.RecordBatch]:
    """Give all rows of a file without quotes, in which every line is a row.

    Such a file can be cut anywhere between lines, and its pieces be parsed on all processors.
    """
    with source.text.path.open("rb") as file:
        file.seek(source.offset)
        while piece := file.read(PIECE_BYTES) + file.readline():
            table = pacsv.read_csv(pa.BufferReader(piece), **_options(source, types))
            yield from map(_unescaped, table.to_batches())


def _stream(
    source: _Source, types: dict[str, pa.DataType], findings: Findings
) -> Iterator[pa.RecordBatch]:
    """Give all rows in batches; rows of the wrong length are findings."""
    with pa.OSFile(str(source.text.path)) as file:
        file.seek(source.offset)
        yield from _parsed(file, source, types, findings)


def _parsed(
    file: pa.NativeFile, source: _Source, types: dict[str, pa.DataType], findings: Findings
) -> Iterator[pa.RecordBatch]:
    """Give what pyarrow makes of a file of its own.

    It reads ahead in its threads: from a file of Python's, one that still reads when the program
    ends would take the program down with it.
    """
    try:
        reader = _reader(file, source, types, findings)
    except pa.ArrowInvalid as error:
        if "Empty CSV" in str(error):
            return
        raise
    with reader:
        for batch in reader:
            yield _unescaped(batch)


def _ahead(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Give the same batches, the next one parsed by another thread meanwhile."""
    with ThreadPoolExecutor(1) as pool:
        coming = pool.submit(next, batches, None)
        while (batch := coming.result()) is not None:
            coming = pool.submit(next, batches, None)
            yield batch


def _reader(
    file: pa.NativeFile, source: _Source, types: dict[str, pa.DataType], findings: Findings
) -> Any:
    return pacsv.open_csv(file, **_options(source, types, _wrong_length(findings)))


def _options(
    source: _Source,
    types: dict[str, pa.DataType],
    invalid_row_handler: Callable[[Any], str] | None = None,
) -> dict[str, Any]:
    columns = list(source.names)
    return {
        "read_options": pacsv.ReadOptions(column_names=columns, block_size=source.block),
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
        findings.add(rule, "Check separators and quotes.", fatal=True, row=row.number, value=found)
        return "skip"

    return refuse_row


def _unescaped(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Undo exactly what `_escaped` does."""
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


def _quoted(texts: pa.Array, separator: str) -> pa.Array:
    texts = _escaped(texts)
    special = pc.match_substring_regex(texts, f'[{re.escape(separator)}"\r\n]|\\A\\s|\\s\\z|\\A\\z')
    doubled = pc.replace_substring(texts, '"', '""')
    return pc.if_else(special, pc.binary_join_element_wise('"', doubled, '"', ""), texts)


def _cells(column: pa.Array, separator: str, decimal: str) -> pa.Array:
    if pa.types.is_string(column.type):
        return _quoted(column, separator).fill_null("")
    texts = column.cast(pa.string())
    if pa.types.is_floating(column.type) and decimal == ",":
        texts = pc.replace_substring(texts, ".", ",")
    return texts.fill_null("") if texts.null_count else texts


def _lines(cells: list[pa.Array], separator: str) -> bytes:
    ends = pc.binary_join_element_wise(cells[-1], "", "\n")
    rows = pc.binary_join_element_wise(*cells[:-1], ends, separator)
    return b"".join(rows.cast(pa.binary()).to_pylist())
