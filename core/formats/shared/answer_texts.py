"""Answers of several people written as text: `anna: joy; bob: fear`, `anger (2), joy`."""

import re
from typing import Any

PAIR = re.compile(r"\s*(?P<who>[^\W\d][^:=]{0,40}?)\s*(:|=)\s*(?P<said>[^:=]{1,80}?)\s*")
COUNTED = re.compile(
    r"(?P<label>[^\d\W].*?)\s*([(\[]\s*(?P<one>\d{1,4})\s*[)\]]|[:=]\s*(?P<other>\d{1,4}))"
)


def parts_of(cell: Any) -> list[Any]:
    """Return the elements of a list, or of text with commas, semicolons or bars between them."""
    if isinstance(cell, list):
        return cell
    if cell is None or cell != cell or str(cell).strip() == "":
        return []
    text = str(cell)
    between = next((one for one in ("|", ";", ",") if one in text), None)
    return [part.strip() for part in text.split(between)] if between else [text.strip()]


def who_said(text: str) -> dict[str, str]:
    """Return who said what in `anna: joy; bob: fear`; ValueError where a text is no such pairs."""
    for between in ("\n", ";", "|", ","):
        parts = [PAIR.fullmatch(part) for part in text.split(between) if part.strip()]
        if None not in parts:
            return {part["who"]: part["said"] for part in parts if part is not None}
    raise ValueError("not who said what")


def counts_in(text: str, delimiter: str | None) -> dict[str, int]:
    """Return how many said each label in `anger (2), joy`: one where it does not say."""
    parts = [part.strip() for part in (text.split(delimiter) if delimiter else [text])]
    counts: dict[str, int] = {}
    for part in filter(None, parts):
        match = COUNTED.fullmatch(part)
        label, n = (part, 1) if match is None else (match["label"], match["one"] or match["other"])
        counts[label] = counts.get(label, 0) + int(n)
    return counts
