"""A text table before its rows: its first line understood, its rows of one length."""

import csv
import io
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from core.formats.readers.delimited.encoding import (
    ROWS,
    Text,
    as_utf8,
    even_rows,
    with_one_header,
    without_empty_end,
    without_questions,
    without_remarks,
    without_totals,
)
from core.formats.readers.delimited.head import (
    Separator,
    has_header,
    separator_of,
    stated_separator,
    whole_record,
)
from core.formats.readers.delimited.text import ESCAPED
from core.formats.shared.findings import Findings, refuse
from core.formats.shared.mapping import ColumnMapping
from core.formats.shared.tabular import MAX_COLUMNS

MIN_BLOCK, MAX_BLOCK = 2**21, 2**28


@dataclass(frozen=True)
class Source:
    """A text table whose first line is understood, and where its rows begin."""

    text: Text
    names: tuple[str, ...]
    header: str
    offset: int
    separator: Separator
    block: int
    decimal: Literal[".", ","] = "."
    is_whole: bool = True  # not a copy whose rows were evened


@contextmanager
def opened(path: Path, findings: Findings, given: ColumnMapping | None) -> Iterator[Source]:
    """Give the file with its first line understood and its rows of one length."""
    stated = given.header if given is not None and "header" in given.model_fields_set else None
    try:
        yield from _sources(path, findings, stated)
    except csv.Error as error:
        refuse(f"rows cannot be told apart: {error}", "Check quotes and line ends.")


def _sources(path: Path, findings: Findings, stated: bool | None) -> Iterator[Source]:
    with (
        as_utf8(path, findings) as whole,
        without_remarks(whole) as table,
        without_questions(table) as answers,
        with_one_header(answers, findings, stated) as headed,
        without_empty_end(headed) as ended,
        without_totals(ended, findings) as text,
    ):
        source = _open(text, findings, stated)
        with even_rows(text, source.separator, len(source.names)) as even:
            if even is text:
                yield source
                return
            fix = "Nothing to do, unless the cells are something else."
            findings.add("rows are of unequal length; the last cells are one list", fix)
            evened = _open(even, Findings(), bool(source.header), source.separator)
            yield replace(evened, is_whole=False)


def _open(
    text: Text, findings: Findings, has_names: bool | None, known: Separator | None = None
) -> Source:
    """Understand the first line: separator, column names, where the rows begin."""
    with text.path.open("rb") as file:
        file.seek(3 if text.bom else 0)
        stated, line, start = stated_separator(file)
        header = whole_record(file, line)
        offset = file.tell()
        rest = file.read(2**16).decode("utf-8", "replace")
    separator = known or stated or separator_of(header + rest)
    if separator is None:
        fix = "Separate columns by comma, semicolon, tab or |."
        refuse("the first line must name several columns", fix, value=header[:80])
    names = next(csv.reader(io.StringIO(header, newline=""), delimiter=separator))
    longest = max(len(header), len(rest.split("\n", 1)[0]))
    block = min(MAX_BLOCK, max(MIN_BLOCK, 64 * longest))
    if has_names is None:
        has_names = has_header(header + rest, separator)
    if not has_names:
        sizes = [len(row) for row in csv.reader(io.StringIO(header + rest), delimiter=separator)]
        width = min(len(names), *(size for size in sizes[:ROWS] if size > 1), len(names))
        if separator == " " and len(set(sizes[:ROWS])) > 1:  # an id and its labels
            width = 2
        numbered = tuple(f"column{j + 1}" for j in range(width))
        return Source(text, numbered, "", start, separator, block)
    return Source(text, _unique(names, findings), header, offset, separator, block)


def _unique(names: list[str], findings: Findings) -> tuple[str, ...]:
    if len(names) > MAX_COLUMNS:
        fix = "Use a list column, or a sparse format such as svmlight."
        refuse(f"a table has at most {MAX_COLUMNS:,} columns", fix, value=f"{len(names):,}")
    names = [re.sub(ESCAPED, r"\1", name) for name in names]
    seen: set[str] = set()
    endings: Counter[str] = Counter()  # how often a name was numbered already
    for i, name in enumerate(names):
        if name in seen:
            findings.add("two columns have the same name", "Rename one.", column=name)
            while names[i] in seen:
                endings[name] += 1
                names[i] = f"{name}_{endings[name] + 1}"
        seen.add(names[i])
    return tuple(names)
