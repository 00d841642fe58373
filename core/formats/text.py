"""Bytes to text and numbers to text, the same way in every text format of this package."""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from core.formats.findings import Findings


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


def number_texts(values: npt.NDArray[np.float32]) -> list[str]:
    """Return the shortest text of each number that reads back as the same float32."""
    texts: list[str] = np.asarray(values, np.float32).astype("U").tolist()
    return [text.removesuffix(".0") for text in texts]


def as_float32(values: Any) -> npt.NDArray[np.float32]:
    """Return numbers or their texts as float32; too large ones become infinite."""
    with np.errstate(over="ignore"):
        return np.asarray(values, np.float64).astype(np.float32)
