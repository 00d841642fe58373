"""The text of a CSV file: which encoding, how many lines, as UTF-8 with as many cells in every row.

A file that is something else is copied, for as long as it is read.
"""

import codecs
import csv
import io
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, islice, takewhile
from math import isclose
from pathlib import Path
from typing import Any

from core.errors import DatasetError, Problem
from core.formats.readers.delimited.head import has_header, n_headers, one_header, separator_of
from core.formats.shared.cells import parse_number
from core.formats.shared.findings import Findings

SCAN_BYTES = 2**22
SAMPLE, ROWS = 2**18, 500  # looked at to tell ragged rows from damaged ones
IMPORT = '{"ImportId"'  # of Qualtrics
EMPTY = b",;|\t \r\n"  # all that rows without anything hold
MIN_ROWS, MIN_SUMS = 5, 2  # above a row of sums, and in it
MIN_UNEVEN = 0.2  # of them


@dataclass(frozen=True)
class Text:
    """A UTF-8 file, looked through once."""

    path: Path
    n_lines: int
    bom: bool
    quoted: bool


class _NotUtf8Error(Exception):
    pass


@contextmanager
def as_utf8(path: Path, findings: Findings) -> Iterator[Text]:
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


def _scan(path: Path) -> Text:
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
    return Text(path, n_lines, bom, quoted)


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
            try:
                lines_end_in_cr = "\n" not in old.read(2**16)
                old.seek(0)
                while text := old.read(SCAN_BYTES):
                    new.write(text.replace("\r", "\n") if lines_end_in_cr else text)
            except UnicodeDecodeError:
                fix = "Save it as UTF-8; it may have been cut off."
                found = Problem(f"the file is not {encoding} throughout", fix, fatal=True)
                raise DatasetError([found]) from None
        yield copy


def decoded_head(head: bytes) -> str:
    if head[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        return codecs.getincrementaldecoder("utf-16")("replace").decode(head)
    try:
        return codecs.getincrementaldecoder("utf-8-sig")().decode(head)
    except UnicodeDecodeError:
        return head.decode("latin-1")


# ------------------------------------------------------------ remarks, and spaces before quotes


@contextmanager
def without_remarks(text: Text) -> Iterator[Text]:
    """Give the text without remarks before the table, which begin with #, and spaces before quotes.

    The last remark is the header where it has as many cells as a row.
    """
    with text.path.open(encoding="utf-8-sig", newline="") as file:
        lines = file.read(SAMPLE).splitlines()
    remarks = list(takewhile(lambda line: line.startswith("#"), lines))
    is_spaced = any(', "' in line for line in lines) and not any(',"' in line for line in lines)
    if not remarks and not is_spaced:
        yield text
        return
    first = "".join(lines[len(remarks) : len(remarks) + 1])
    between = max(",;\t|", key=lambda one: _n_cells(first, one))
    if remarks and _n_cells(remarks[0], between) == _n_cells(first, between):
        remarks = []  # then it is the header, or a row
    is_spaced = is_spaced and between == ","
    if not remarks and not is_spaced:
        yield text
        return
    has_names = bool(remarks) and _n_cells(remarks[-1], between) == _n_cells(first, between)
    header = [remarks[-1][1:]] if has_names else []

    def rows(lines: Iterator[str]) -> Iterator[list[str]]:
        kept = chain(header, islice(lines, len(remarks), None))
        return csv.reader(kept, delimiter=between, skipinitialspace=is_spaced)

    with _rewritten(text, rows, between) as copy:
        yield copy


@contextmanager
def without_questions(text: Text) -> Iterator[Text]:
    """Give the text of a survey by Qualtrics without the two rows that tell what columns ask."""
    with text.path.open(encoding="utf-8-sig", newline="") as file:
        head = file.read(SAMPLE)
    rows = list(islice(csv.reader(io.StringIO(head)), 3)) if "ImportId" in head else []
    if len(rows) < 3 or not all(cell.startswith(IMPORT) for cell in rows[2] if cell):
        yield text
        return

    def answers(lines: Iterator[str]) -> Iterator[list[str]]:
        given = csv.reader(lines)
        return chain(islice(given, 1), islice(given, 2, None))

    with _rewritten(text, answers, ",") as copy:
        yield copy


@contextmanager
def with_one_header(text: Text, findings: Findings, stated: bool | None) -> Iterator[Text]:
    """Give the text with one line of names where it has two or three, one above the other.

    A name is what the lowest line says, behind what stands above it where that comes twice. What
    is below is copied as it is, and all of it where it is stated that no line names columns.
    """
    if stated is False:
        yield text
        return
    with text.path.open(encoding="utf-8-sig", newline="") as file:
        head = file.read(SAMPLE)
    between = separator_of(head)
    n = n_headers(head, between) if between is not None and has_header(head, between) else 1
    if between is None or n == 1:
        yield text
        return
    fix = "Nothing to do, unless one of them is an item. An export has one line of names."
    findings.add(f"{n} lines together name the columns", fix)
    end = "\r\n" if "\r\n" in head else "\n"
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder, text.path.name)
        with (
            text.path.open(encoding="utf-8-sig", newline="") as old,
            copy.open("w", encoding="utf-8", newline="") as new,
        ):
            given = filter(None, csv.reader(old, delimiter=between))
            names = one_header(list(islice(given, n)))
            csv.writer(new, delimiter=between, lineterminator=end).writerow(names)
            shutil.copyfileobj(old, new)
        yield _scan(copy)


@contextmanager
def without_totals(text: Text, findings: Findings) -> Iterator[Text]:
    """Give the text without a last row that holds the sums of the others."""
    at = _start_of_totals(text)
    if at is None:
        yield text
        return
    fix = "Nothing to do, unless it is an item. An export leaves it out."
    findings.add("the last row holds the sums of those above it and is passed over", fix)
    with _cut(text, at) as copy:
        yield copy


def _start_of_totals(text: Text) -> int | None:
    """Return where a last row of sums begins; none if the last row is like the others."""
    with text.path.open("rb") as file:
        size = file.seek(0, io.SEEK_END)
        start = file.seek(max(0, size - SAMPLE))
        tail = file.read().rstrip()
    at = start + tail.rfind(b"\n") + 1
    if tail[at - start :].count(b'"') % 2:  # it began on a line above
        return None
    with text.path.open(encoding="utf-8-sig", newline="") as file:
        between = separator_of(file.read(SAMPLE))
    if between is None or at <= start or not _may_be_sums(tail.decode("utf-8", "replace"), between):
        return None
    with text.path.open(encoding="utf-8-sig", newline="") as file:
        rows = csv.reader(file, delimiter=between)
        return at if next(rows, None) and _ends_in_sums(rows) else None


def _may_be_sums(tail: str, between: str) -> bool:
    """Whether the last row is at least the sum of the few above it: a quick look."""
    try:
        rows = list(csv.reader(io.StringIO(tail), delimiter=between))[-ROWS:]
    except csv.Error:
        return False
    return len(rows) > MIN_ROWS and _ends_in_sums(iter(rows[1:]), exactly=False)


def _ends_in_sums(rows: Iterator[list[str]], *, exactly: bool = True) -> bool:
    """Whether every number of the last row is the sum of those above it, and there are several."""
    sums: dict[int, float] = {}
    last: dict[int, float] = {}
    for row in rows:
        for j, value in last.items():
            sums[j] = sums.get(j, 0.0) + value
        numbers = {j: parse_number(cell) for j, cell in enumerate(row)}
        last = {j: value for j, value in numbers.items() if value is not None and value == value}
    found = [(value, sums.get(j, 0.0)) for j, value in last.items()]
    if not all(isclose(a, b) if exactly else a >= b for a, b in found):
        return False
    return len(found) < len(row) and sum(b > 0 for _, b in found) >= MIN_SUMS


@contextmanager
def without_empty_end(text: Text) -> Iterator[Text]:
    """Give the text without rows of empty cells at its end, as spreadsheets leave them."""
    with text.path.open("rb") as file:
        size = file.seek(0, io.SEEK_END)
        start = file.seek(max(0, size - SAMPLE))
        tail = file.read()
    filled = len(tail.rstrip(EMPTY))
    end = tail.find(b"\n", filled) + 1
    if not filled or not end or not tail[end:].strip():
        yield text
        return
    with _cut(text, start + end) as copy:
        yield copy


@contextmanager
def _cut(text: Text, size: int) -> Iterator[Text]:
    """Give the first bytes of a text."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(shutil.copyfile(text.path, Path(folder, text.path.name)))
        with copy.open("r+b") as file:
            file.truncate(size)
        yield _scan(copy)


@contextmanager
def _rewritten(text: Text, rows: Callable[[Iterator[str]], Any], separator: str) -> Iterator[Text]:
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder, text.path.name)
        with (
            text.path.open(encoding="utf-8-sig", newline="") as old,
            copy.open("w", encoding="utf-8", newline="") as new,
        ):
            csv.writer(new, delimiter=separator, lineterminator="\n").writerows(rows(old))
        yield _scan(copy)


def _n_cells(line: str, separator: str) -> int:
    return len(next(csv.reader([line], delimiter=separator, skipinitialspace=True), []))


# ------------------------------------------------------------------------ rows of unequal length


@contextmanager
def even_rows(text: Text, separator: str, width: int) -> Iterator[Text]:
    """Give the text with `width` cells in each row: what is more joins the last, as a list of tags.

    It is itself where rows are even, and where they are uneven in no such way: then it is damaged.
    """
    between = _between(text.path, separator, width)
    if between is None:
        yield text
        return
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder, text.path.name)
        with (
            text.path.open(encoding="utf-8-sig", newline="") as old,
            copy.open("w", encoding="utf-8", newline="") as new,
        ):
            writer = csv.writer(new, delimiter=separator, lineterminator="\n")
            for row in csv.reader(old, delimiter=separator):
                kept, tags = row[: width - 1], [tag for tag in row[width - 1 :] if tag.strip()]
                kept += [""] * (width - 1 - len(kept))
                if row:
                    writer.writerow([*kept, between.join(tag.strip() for tag in tags)])
        yield _scan(copy)


def _between(path: Path, separator: str, width: int) -> str | None:
    """Return what to put between the tags of a ragged file; None if it is not ragged."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        head = file.read(SAMPLE)
    try:
        rows = [row for row in islice(csv.reader(io.StringIO(head), delimiter=separator), ROWS)]
    except csv.Error:
        return None
    sizes = [len(row) for row in rows[1:-1] if row]
    uneven = sum(size != width for size in sizes)
    longer = sum(size > width for size in sizes)
    if not sizes or uneven < MIN_UNEVEN * len(sizes) or min(sizes) < width - 1 or not longer:
        return None
    if len(set(sizes)) == 1:  # even, but for the header
        return None
    return next((one for one in "|;#" if one not in head), None)
