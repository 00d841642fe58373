"""The first line of a CSV file: what separates cells, names of columns, or already a row."""

import csv
import io
import re
from collections import Counter
from collections.abc import Sequence
from itertools import islice, pairwise
from typing import IO, Literal

from core.formats.shared.cells import parse_number
from core.formats.shared.findings import refuse

Separator = Literal[",", ";", "\t", "|", " "]

SEPARATORS: tuple[Separator, ...] = ("\t", ";", ",", "|")
MAX_HEADER = 2**25

ROWS = 50
FILE = re.compile(r"[^\s]+\.\w{2,5}")
NUMBERS = re.compile(r"\s*\d+(\s*[,;| ]\s*\d+)*\s*")
LIST = re.compile(r"\s*[|;,]\s*")
MOSTLY = 0.8
MAX_SPACED = 1000  # lines looked at
DIGIT = re.compile(r"\d")
TWICE = 2  # times that a name stands in the first lines, in the mean
MAX_HEADERS, MIN_BELOW, MIN_NAMED = 3, 3, 2  # lines of names, rows below, names of numbers


def has_header(text: str, separator: str) -> bool:
    """Whether the first line names the columns; text that is no table has one too."""
    try:
        records = list(islice(csv.reader(io.StringIO(text, newline=""), delimiter=separator), ROWS))
    except csv.Error:
        return True
    records = [one for one in records if one]
    if separator == " " or len(records) < 4:
        return separator != " "
    first, rows = records[0], records[1:-1]
    columns = [[row[j].strip() for row in rows if j < len(row)] for j in range(len(first))]
    found = [_speaks(cell.strip(), below) for cell, below in zip(first, columns, strict=True)]
    return "name" in found or "cell" not in found or _are_counted(first)


def n_headers(text: str, separator: str) -> int:
    """Return how many lines name the columns: those above numbers that hold none themselves.

    pandas writes one more below, with nothing but the name of the first column.
    """
    try:
        records = list(islice(csv.reader(io.StringIO(text, newline=""), delimiter=separator), ROWS))
    except csv.Error:
        return 1
    records = [one for one in records[:-1] if one]
    n = 1
    while n < MAX_HEADERS and len(records) > n + MIN_BELOW and _names_again(records, n):
        n += 1
    return n


def _names_again(records: Sequence[Sequence[str]], n: int) -> bool:
    row, below = [cell.strip() for cell in records[n]], records[n + 1 :]
    above = records[0]
    if len(row) != len(above) or any(map(_is_number, row)):
        return False
    if n > 1 and row[0] and not any(row[1:]) and not above[0]:
        return True
    columns = [[one[j].strip() for one in below if j < len(one)] for j in range(len(row))]
    named = {
        cell
        for cell, column in zip(row, columns, strict=True)
        if (filled := [one for one in column if one]) and _share_of_numbers(filled) == 1
    }
    return len(named - {""}) >= MIN_NAMED


def one_header(records: Sequence[Sequence[str]]) -> list[str]:
    """Return the names that several lines give; what is left empty goes on from the left."""
    *upper, lowest = [[cell.strip() for cell in record] for record in records]
    if sum(map(bool, lowest)) == 1:  # the name of the first column alone
        *upper, middle = upper
        lowest = [a or b for a, b in zip(lowest, middle, strict=True)]
    above = [""] * len(lowest)
    for row in upper:
        last = ""
        for j, cell in enumerate(row):
            last = cell or last
            above[j] = last if lowest[j] else cell or above[j]
    often = Counter(lowest)
    return [
        (f"{group}.{name}" if often[name] > 1 and group else name) if name else group
        for group, name in zip(above, lowest, strict=True)
    ]


def _speaks(cell: str, below: Sequence[str]) -> str:
    """Return whether a first cell is like those below it, unlike them, or neither."""
    below = [one for one in below if one]
    if not below:
        return ""
    if _share_of_numbers(below) >= MOSTLY:
        return "cell" if _is_number(cell) else "name" if cell else ""
    if sum(bool(FILE.fullmatch(one)) for one in below) >= MOSTLY * len(below):
        endings = {one.rpartition(".")[2] for one in below}  # Input.song names no file
        return "cell" if cell.rpartition(".")[2] in endings else "name"
    return "cell" if cell and (cell in below or _lists_names_of(cell, below)) else ""


def _lists_names_of(cell: str, below: Sequence[str]) -> bool:
    """Whether a cell is a list such as `sea|sky` of names that other cells list too."""
    names = set(LIST.split(cell))
    return len(names) > 1 and names <= {name for one in below for name in LIST.split(one)}


def _is_number(cell: str) -> bool:
    return bool(cell) and (parse_number(cell) is not None or bool(NUMBERS.fullmatch(cell)))


def _share_of_numbers(cells: Sequence[str]) -> float:
    return sum(map(_is_number, cells)) / len(cells)


def _are_counted(cells: Sequence[str]) -> bool:
    """Whether numbers among the names only count columns: 0, 1, 2 …"""
    numbers = [int(cell) for cell in cells if cell.strip().isdecimal()]
    return len(numbers) > 1 and all(b - a == 1 for a, b in pairwise(numbers))


def stated_separator(file: IO[bytes]) -> tuple[Separator | None, str, int]:
    """Excel may begin a file with `sep=;`. Return it, the next line, and where that begins.

    Empty lines before it are passed over.
    """
    start, line = file.tell(), file.readline(MAX_HEADER).decode()
    while line in ("\n", "\r\n"):
        start, line = file.tell(), file.readline(MAX_HEADER).decode()
    found = re.fullmatch(r'"?sep=([,;|\t])"?\s*', line, re.IGNORECASE)
    if found is None:
        return None, line, start
    stated = next(one for one in SEPARATORS if one == found[1])
    start = file.tell()
    return stated, file.readline(MAX_HEADER).decode(), start


def whole_record(file: IO[bytes], line: str) -> str:
    """Return the header from its first line on: a quoted name may span several."""
    while line.count('"') % 2 and len(line) < MAX_HEADER:
        more = file.readline(MAX_HEADER).decode()
        if not more:
            break
        line += more
    if line.count('"') % 2 or len(line) >= MAX_HEADER:
        refuse("the first line must name the columns", "Check its quotes.", value=line[:80])
    return line


def separator_of(text: str) -> Separator | None:
    """Return what cuts the header into several cells and the next lines into as many."""
    rated = [(*_fit(text, separator), separator) for separator in SEPARATORS]
    _, n_cells, best = max(rated, key=lambda one: one[:2])
    if n_cells > 1:
        return best
    return " " if _are_spaced(text) else None


def _are_spaced(text: str) -> bool:
    """Whether lines have one space between numbers, `E11 2286 1`, or an id and its labels."""
    lines = [line.rstrip().split(" ") for line in text.splitlines()[:MAX_SPACED]]
    lines = lines[:-1] if len(lines) > 1 else lines
    if '"' in text[:1000] or not lines or min(map(len, lines)) < 2:
        return False
    are_even = len({len(line) for line in lines[:ROWS]}) == 1
    mostly = all(_is_number(cell) for line in lines[:ROWS] for cell in line[1:])
    return (are_even and mostly) or _are_ids_with_names(lines)


def _are_ids_with_names(lines: Sequence[Sequence[str]]) -> bool:
    """Whether lines are another id each, with a number in it, and few names that come again."""
    ids, names = [line[0] for line in lines], [name for line in lines for name in line[1:]]
    are_ids = len(set(ids)) == len(ids) and all(DIGIT.search(one) for one in ids)
    return are_ids and TWICE * len(set(names)) <= len(names)


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
