"""Label Studio's CSV and TSV exports: one row per annotation, as the records of its JSON_MIN."""

import csv
import io
from pathlib import Path
from typing import Any

from core.formats.shared.answers import loaded
from core.formats.shared.findings import Findings
from core.formats.shared.limits import check_size
from core.formats.shared.text import read_text

COST = 8  # bytes that a byte of text takes as records


def table_records(path: Path, findings: Findings) -> list[dict[str, Any]]:
    """Return the rows as records; lists and objects as what they are, empty cells left out."""
    check_size(COST * path.stat().st_size)
    text = read_text(path, findings)
    header = text.split("\n", 1)[0]
    rows = csv.DictReader(io.StringIO(text, newline=""), delimiter="\t" if "\t" in header else ",")
    return [{key: loaded(cell) for key, cell in row.items() if key and cell} for row in rows]
