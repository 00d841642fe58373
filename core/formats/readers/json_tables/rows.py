"""The objects of a JSON file as text, numbers and escapes as they are written."""

import json
import re
from collections.abc import Callable, Collection, Iterator
from itertools import islice

SPACE = re.compile(r"[ \t\n\r]*")
ROWS = 10_000  # given at a time

_decode: Callable[[str, int], tuple[object, int]] = json.JSONDecoder().raw_decode


def in_lists(objects: Iterator[str]) -> Iterator[list[str]]:
    while rows := list(islice(objects, ROWS)):
        yield rows


def objects_of(document: str, *, keyed: bool = False) -> Iterator[str] | None:
    """Give the objects of a list, or of the only list of objects in an object; none without one.

    Where objects are `keyed`, their document is an object, and they are its members.
    """
    document = document.strip()
    if document[:1] == "[":
        return _elements(document)
    if keyed:
        members = (value for _, value in _members(document))
        return members if _is_object(next(_members(document))[1]) else None
    values = [value for _, value in _members(document) if value[0] == "["]
    lists = [value for value in values if SPACE.sub("", value[1:20])[:1] == "{"]
    return _elements(lists[0]) if len(lists) == 1 else None


def _is_object(text: str) -> bool:
    return text[:1] == "{"


def without(row: str, names: Collection[str]) -> str:
    """Return an object without these keys, the others as they are written."""
    kept = [f"{_text(key)}: {value}" for key, value in _members(row) if key not in names]
    return "{" + ", ".join(kept) + "}"


def extended(row: str, members: str) -> str:
    """Return an object, on one line, with the members of another one behind its own."""
    row = row.replace("\r", " ").replace("\n", " ").rstrip()
    if members == "{}":
        return row
    own = row[:-1].rstrip()
    return own + (", " if own != "{" else "") + members[1:]


def _text(key: str) -> str:
    return json.dumps(key, ensure_ascii=False)


def _elements(text: str) -> Iterator[str]:
    at = _after_space(text, 1)
    while text[at] != "]":
        _, end = _decode(text, at)
        yield text[at:end]
        at = _next(text, end)


def _members(text: str) -> Iterator[tuple[str, str]]:
    at = _after_space(text, 1)
    while text[at] != "}":
        key, end = _decode(text, at)
        start = _after_space(text, text.index(":", end) + 1)
        _, end = _decode(text, start)
        yield str(key), text[start:end]
        at = _next(text, end)


def _next(text: str, at: int) -> int:
    at = _after_space(text, at)
    return _after_space(text, at + 1) if text[at] == "," else at


def _after_space(text: str, at: int) -> int:
    found = SPACE.match(text, at)
    return found.end() if found else at
