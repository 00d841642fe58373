"""The rows of a CSV file as bytes, quotes and all, cut where pyarrow's parser ends a row.

A quote counts only at the beginning of a cell; a line that is empty is no row.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from core.errors import ExportError

PIECE_BYTES = 2**24


def rows_of(path: Path, offset: int, separator: str, *, quoted: bool) -> Iterator[list[bytes]]:
    """Give the rows from this place of the file on, without their line ends."""
    with path.open("rb") as file:
        file.seek(offset)
        if not quoted:
            while piece := file.read(PIECE_BYTES) + file.readline():
                yield [row for row in piece.splitlines() if row]
            return
        pattern, rest, at_end = _pattern(separator), b"", False
        while not at_end:
            piece = file.read(PIECE_BYTES)
            at_end = not piece
            rows, rest = _split(rest + piece, pattern, at_end)
            yield rows
    if rest:
        raise ExportError("The rows of the file cannot be told apart.", str(rest[:80]))


def _pattern(separator: str) -> re.Pattern[bytes]:
    plain = f"[^{re.escape(separator)}\r\n]*+"
    cell = f'(?:"(?:[^"]++|"")*+"{plain}|(?!"){plain})'
    row = f"({cell}(?:{re.escape(separator)}{cell})*+)(?:\r\n|\r|\n|\\Z)"
    return re.compile(row.encode())


def _split(text: bytes, pattern: re.Pattern[bytes], at_end: bool) -> tuple[list[bytes], bytes]:
    """Return the rows that are whole, and the rest."""
    rows, at = [], 0
    while at < len(text):
        found = pattern.match(text, at)
        if found is None or (found.end() == len(text) and not at_end):
            break
        if found[1]:
            rows.append(found[1])
        at = found.end()
    return rows, text[at:]
