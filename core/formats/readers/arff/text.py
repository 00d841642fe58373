"""The text of ARFF files: attributes, quoting, dense and sparse rows.

Owns the syntax only; what the columns mean belongs to `readers.arff`. Every value becomes a
number at once (a nominal one its place in the declaration), texts are kept apart, so that a wide
sparse file costs what it stores. Written here because a refusal has to name row and column.
"""

import re
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from math import nan
from typing import Any

import numpy as np
import scipy.sparse as sp

from core.formats.shared.findings import Findings, refuse
from core.formats.shared.limits import MAX_FEATURES, check_shape, check_size

TEXT = 64  # bytes of a text
NUMERIC = ("numeric", "real", "integer")
TEXTUAL = ("string", "date")
HEADER = re.compile(
    r"@(relation|attribute|data|(?:in|out)puts?)\b[ \t]*(.*)", re.IGNORECASE | re.DOTALL
)
SPECIAL = re.compile(r"['\"?%\\]")
WORD = r"""[^\s'"{}%?,]+"""
SIMPLE = re.compile(
    rf"({WORD})\s+(?:(numeric|real|integer)|{{({WORD}(?:,\s*{WORD})*)}})", re.IGNORECASE
)
PLAIN = re.compile(r"[A-Za-z0-9_.+-]+")
TOKEN = re.compile(r"""\s*(?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)"|([^\s,{}%'"]+)|([,{}%]))""")
ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
UNESCAPED = {"n": "\n", "r": "\r", "t": "\t"}
ESCAPED = {"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}

Token = str | None  # None is a missing value, an unquoted question mark


@dataclass(frozen=True)
class Attribute:
    """One declared column; `values` are those of a nominal one, None otherwise."""

    name: str
    is_text: bool = False
    values: tuple[str, ...] | None = None


@dataclass
class Table:
    """A parsed file: numbers by row and attribute, and the texts of textual attributes."""

    relation: str
    attributes: list[Attribute]
    numbers: Any = None  # (n, n_attributes) of float32, or float64 if asked for, dense or CSR
    texts: dict[int, list[str]] = field(default_factory=dict)
    outputs: list[str] = field(default_factory=list)  # KEEL names its labels


def parse(text: Iterable[str], findings: Findings, *, exact: bool = False) -> Table:
    """Return the table in these lines; what is wrong with it goes to `findings`.

    `exact` keeps the numbers as float64, which is what ARFF's are.
    """
    lines = enumerate(text, start=1)
    table = _header(lines, findings)
    findings.stop_if_fatal()
    if not table.attributes:
        refuse("an ARFF file declares its columns by @attribute", "Add the header.")
    rows = _Rows(table.attributes, findings, "d" if exact else "f")
    for number, line in lines:
        line = line.strip()
        if line and not line.startswith("%"):
            rows.add(number, line)
    findings.stop_if_fatal()
    table.numbers, table.texts = rows.numbers(), rows.texts()
    return table


def _header(lines: Iterator[tuple[int, str]], findings: Findings) -> Table:
    table = Table("", [])
    for number, line in lines:
        match = HEADER.match(line.strip())
        word = match[1].lower() if match else ""
        if word == "data":
            return table
        if match and word == "relation":
            table.relation = "".join(token or "?" for token in tokens(match[2])[:1])
        elif match and word in ("output", "outputs"):
            table.outputs = [str(token) for token in tokens(match[2]) if token != SEPARATOR]
        elif match and word in ("input", "inputs"):
            continue
        elif match:
            table.attributes.append(_attribute(match[2], number, findings))
        elif line.strip() and not line.lstrip().startswith("%"):
            fix = "Begin comments with %."
            findings.add("this line is no ARFF header", fix, fatal=True, row=number, value=line)
        if len(table.attributes) > MAX_FEATURES:
            check_shape(0, len(table.attributes), 0)
    refuse("an ARFF file must have a line @data", "The file is cut off: write it again.")


def _attribute(text: str, number: int, findings: Findings) -> Attribute:
    if simple := SIMPLE.fullmatch(text):  # nearly all of them; files have many thousands
        return Attribute(simple[1], values=None if simple[2] else _plain_values(simple[3]))
    parts = tokens(text)
    name, kind = (str(parts[0]), parts[1:]) if parts else ("", [])
    word = str(kind[0]).lower() if kind else ""
    if word in NUMERIC or word.partition("[")[0] in NUMERIC:  # KEEL: real [0.0, 1.0]
        return Attribute(name)
    if word in TEXTUAL:
        return Attribute(name, is_text=True)
    if word == "{" and kind[-1] == "}":
        values = (str("?" if v is None else v) for v in kind[1:-1] if v != SEPARATOR)
        return Attribute(name, values=tuple(values))
    rule = "an attribute must be numeric, string, date or {a,b,...}"
    findings.add(rule, "Correct the type.", fatal=True, row=number, column=name, value=word)
    return Attribute(name)


@lru_cache(maxsize=64)
def _plain_values(text: str) -> tuple[str, ...]:
    return tuple(value.strip() for value in text.split(","))


class _Mark(str):
    """A comma or brace of the syntax, not a quoted one."""


SEPARATOR = _Mark(",")


def tokens(text: str) -> list[Token]:
    """Return the words of a line with quotes undone, up to a comment."""
    found: list[Token] = []
    position, end = 0, len(text.rstrip())
    while position < end:
        match = TOKEN.match(text, position)
        if match is None:
            refuse(
                "quotation marks must come in pairs", "Close the quotation.", value=text[position:]
            )
        position = match.end()
        single, double, bare, mark = match.groups()
        if mark == "%":
            break
        if mark or bare:
            found.append(_Mark(mark) if mark else None if bare == "?" else bare)
        else:
            found.append(unquoted(single if single is not None else double))
    return found


def unquoted(text: str) -> str:
    def plain(match: re.Match[str]) -> str:
        code = match[1]
        return chr(int(code[1:], 16)) if len(code) == 5 else UNESCAPED.get(code, code)

    return ESCAPE.sub(plain, text) if "\\" in text else text


def quoted(text: str) -> str:
    """Return a name or value as ARFF writes it; odd ones in the quotes that they do not hold.

    A backslash is written only where nothing else helps: liac-arff leaves it in names.
    """
    if PLAIN.fullmatch(text):
        return text
    mark = '"' if "'" in text and '"' not in text else "'"
    escaped = ESCAPED | {mark: f"\\{mark}"}
    return mark + "".join(escaped.get(character, character) for character in text) + mark


class _Rows:
    """Turns lines into numbers as they come; sparse when the first row is."""

    def __init__(self, attributes: Sequence[Attribute], findings: Findings, type_code: str) -> None:
        self.attributes, self.findings = attributes, findings
        self.decoders = [_decoder(attribute) for attribute in attributes]
        self.given: dict[int, dict[int, str]] = {}  # by attribute and row: texts
        for j in (j for j, attribute in enumerate(attributes) if attribute.is_text):
            self.given[j] = {}
        self.is_sparse: bool | None = None
        self.values: array[float] = array(type_code)
        self.columns, self.counts = array("q"), array("q")

    def add(self, number: int, line: str) -> None:
        if self.is_sparse is None:
            self.is_sparse = line.startswith("{")
        columns, cells = self._split(number, line)
        try:
            numbers = [self.decoders[j](cell) for j, cell in zip(columns, cells, strict=True)]
        except _NOT_A_VALUE:
            self._report(number, columns, cells)
            return
        self._store(columns, numbers)
        for j, cell in zip(columns, cells, strict=True) if self.given else ():
            if cell and j in self.given:
                self.given[j][len(self.counts) - 1] = cell

    def _split(self, number: int, line: str) -> tuple[Sequence[int], Sequence[Token]]:
        """Return the columns and cells of a row, or of none when it has the wrong count."""
        is_sparse = line.startswith("{")
        if SPECIAL.search(line):
            cells = [token for token in tokens(line) if not isinstance(token, _Mark)]
        elif is_sparse:
            cells = [*line.strip("{}").replace(",", " ").split()]
        else:
            cells = [cell.strip() for cell in line.split(",")]
        return self._pairs(number, cells) if is_sparse else self._whole(number, cells)

    def _whole(self, number: int, cells: list[Token]) -> tuple[Sequence[int], Sequence[Token]]:
        width = len(self.attributes)
        if len(cells) == width:
            return range(width), cells
        rule = f"a row must have as many values as there are attributes ({width})"
        self.findings.add(rule, "Complete the row.", fatal=True, row=number, value=len(cells))
        return (), ()

    def _pairs(self, number: int, cells: list[Token]) -> tuple[Sequence[int], Sequence[Token]]:
        width = len(self.attributes)
        try:
            columns = [int(cell or "") for cell in cells[::2]]
        except ValueError:
            columns = [-1]
        are_good = len(columns) == len(cells) / 2 == len(set(columns))
        if are_good and 0 <= min(columns, default=0) <= max(columns, default=0) < width:
            return columns, cells[1::2]
        rule = f"a sparse row must be {{column value, ...}} with different columns below {width}"
        text = " ".join(str(cell) for cell in cells)
        self.findings.add(rule, "Correct the row.", fatal=True, row=number, value=text)
        return (), ()

    def _store(self, columns: Sequence[int], numbers: list[float]) -> None:
        if self.is_sparse:
            self.columns.extend(columns)
        elif len(numbers) < len(self.attributes):  # a sparse row in a dense file
            given = dict(zip(columns, numbers, strict=True))
            numbers = [given.get(j, 0.0) for j in range(len(self.attributes))]
        self.values.extend(numbers)
        self.counts.append(len(numbers))

    def _report(self, number: int, columns: Sequence[int], cells: Sequence[Token]) -> None:
        for j, cell in zip(columns, cells, strict=True):
            name = self.attributes[j].name
            try:
                self.decoders[j](cell)
            except _NOT_A_VALUE:
                if self.attributes[j].values is None:
                    rule, fix = "a number is needed here", "Correct the value."
                else:
                    rule, fix = "the value must be one the attribute declares", "Declare it."
                self.findings.add(rule, fix, fatal=True, row=number, column=name, value=cell)

    def texts(self) -> dict[int, list[str]]:
        """Return the texts of every row, by attribute; those not given are empty."""
        n = len(self.counts)
        check_size(TEXT * n * len(self.given), f"{len(self.given):,} attributes of text")
        return {j: [given.get(i, "") for i in range(n)] for j, given in self.given.items()}

    def numbers(self) -> Any:
        """Return what was stored as (n, attributes) numbers, dense or CSR."""
        n, width = len(self.counts), len(self.attributes)
        dtype = np.dtype(self.values.typecode)
        values = np.frombuffer(self.values, dtype) if self.values else np.empty(0, dtype)
        if not self.is_sparse:
            return values.reshape(n, width)
        indptr = np.concatenate([[0], np.cumsum(np.asarray(self.counts, np.int64))])
        numbers = sp.csr_array((values, np.asarray(self.columns), indptr), shape=(n, width))
        numbers.sum_duplicates()  # sorts; nothing occurs twice
        numbers.eliminate_zeros()
        return numbers


_NOT_A_VALUE = (ValueError, KeyError, TypeError)
"""What `float` and the dictionary of an attribute's values raise on any other cell."""


def _decoder(attribute: Attribute) -> Callable[[Any], float]:
    if attribute.is_text:
        return lambda cell: 0.0
    if attribute.values is None:
        return lambda cell: nan if cell is None else float(cell)
    return _decoder_of(attribute.values)


@lru_cache(maxsize=64)
def _decoder_of(values: tuple[str, ...]) -> Callable[[Any], float]:
    codes: dict[Token, float] = {value: float(code) for code, value in enumerate(values)}
    return {**codes, None: nan}.__getitem__
