"""Bytes to text and numbers to text, the same way in every text format of this package."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from core.formats.shared.findings import Findings
from core.formats.shared.limits import check_rows, check_size

LINE_COST = 8  # bytes that a byte of text takes, and the patience it takes, on its way to numbers


def decoded(raw: bytes, findings: Findings) -> str:
    """Return UTF-8 text (a byte-order mark is dropped), or Latin-1 with a finding that says so."""
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        fix = "Save the file as UTF-8 if names look wrong."
        findings.add("the file is not UTF-8; read as Latin-1", fix, value=raw[error.start])
        return raw.decode("latin-1")


def read_text(path: Path, findings: Findings) -> str:
    return decoded(path.read_bytes(), findings)


def read_lines(path: Path, findings: Findings) -> Iterator[str]:
    """Give the lines of a file that is parsed line by line, without their ends."""
    check_size(LINE_COST * path.stat().st_size, "text that is read line by line")
    with path.open("rb") as file:
        check_rows(sum(block.count(b"\n") for block in iter(lambda: file.read(2**20), b"")))
    return iter(read_text(path, findings).split("\n"))


def number_texts(values: npt.NDArray[Any]) -> list[str]:
    """Return the shortest text of each number that reads back as the same one."""
    # Arrow's text is as short as NumPy's and takes a third of the time.
    texts: list[str] = pa.array(np.asarray(values)).cast(pa.string()).to_pylist()
    return texts


def with_points(numbers: pa.Array) -> pa.Array:
    """Return the texts of floats, each with a point.

    Programs take a column that begins with many times `0` for whole numbers, and fail later.
    """
    return pc.replace_substring_regex(numbers.cast(pa.string()), r"\A(-?\d+)\z", r"\1.0")


def as_float32(values: Any) -> npt.NDArray[np.float32]:
    """Return numbers or their texts as float32; too large ones become infinite."""
    with np.errstate(over="ignore"):
        return np.asarray(values, np.float64).astype(np.float32)
