"""Names of classes in a file beside the data, where the data holds their numbers."""

import json
import re
from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa

from core.formats.shared.cells import parse_names
from core.formats.shared.companions import LISTS, MAX_LIST, NAMES, describes
from core.formats.shared.mapping import ColumnMapping
from core.formats.shared.profiles import UNNAMED
from core.formats.shared.row_names import cells_of

MAX_FILES = 200
MAX_NAME = 200
MAX_UNUSED = 3  # names per number that is met: more are a list of something else
ROWS = 20_000
MOST = 1000
MAX_DIGITS = 6


def with_names_beside(
    mapping: ColumnMapping, sample: pa.Table, path: Path, told: Sequence[str] = ()
) -> ColumnMapping:
    """Return the mapping with the labels' names, if cells hold numbers and a file beside has names.

    Or the document itself has: those that are `told`.

    The file has a name per line, at least as many as the largest number asks for and not many more;
    of several that which is called most like the data.
    """
    if mapping.label_names or not mapping.labels:
        return mapping
    if mapping.layout == "one_hot":
        return _with_names_of_columns(mapping, path)
    numbers = _class_numbers(mapping, sample)
    if not numbers or not path.parent.is_dir():
        return mapping
    rated = [(_likeness(file, path), file.name, names) for file, names in _lists_beside(path)]
    rated += [(MOST, "the document", names) for names in (list(told),) if names]
    rated = [one for one in rated if len(one[2]) <= MAX_UNUSED * len(numbers) + MAX_UNUSED]
    fitting = [one for one in rated if one[0] and len(one[2]) > max(numbers) - (min(numbers) > 0)]
    if not fitting:
        return mapping
    _, file, names = max(fitting, key=lambda one: (one[0], -len(one[2])))
    first = 1 if min(numbers) > 0 and len(names) == max(numbers) else 0
    why = f"class numbers are names of {file} beside it, counted from {first}"
    found = {"label_names": tuple(names), "numbered_from": first}
    return mapping.model_copy(update={**found, "reasons": {**mapping.reasons, "label_names": why}})


def _with_names_of_columns(mapping: ColumnMapping, path: Path) -> ColumnMapping:
    """Return the mapping with as many names as columns of 0/1 have none, if a file has them."""
    if not all(map(UNNAMED.fullmatch, mapping.labels)) or not path.parent.is_dir():
        return mapping
    files = [one for one in _lists_beside(path) if len(one[1]) == len(mapping.labels)]
    if not files:
        return mapping
    file, names = max(files, key=lambda one: _likeness(one[0], path))
    reasons = {**mapping.reasons, "label_names": f"columns are named in {file.name} beside it"}
    return mapping.model_copy(update={"label_names": tuple(names), "reasons": reasons})


def _class_numbers(mapping: ColumnMapping, sample: pa.Table) -> set[int]:
    found: set[int] = set()
    for column in mapping.labels[:1] if mapping.layout == "long" else mapping.labels:
        for cell in islice(cells_of(sample.column(column)), ROWS):
            try:
                names = parse_names(cell, mapping.delimiter)
            except ValueError:
                return set()
            names = [name for name in names if name not in mapping.not_asked]
            if not all(name.isdecimal() and len(name) < 6 for name in names):
                return set()
            found.update(map(int, names))
    return found


def _lists_beside(path: Path) -> Iterable[tuple[Path, list[str]]]:
    for file in islice(sorted(path.parent.iterdir()), MAX_FILES):
        is_list = file.suffix.lower() in LISTS or (file.suffix == ".json" and describes(file.name))
        if not is_list or file.name == path.name or not file.is_file():
            continue
        if file.is_symlink() or file.stat().st_size > MAX_LIST:
            continue
        try:
            text = file.read_text("utf-8-sig")
            lines = _listed(text) if file.suffix == ".json" else text.splitlines()
        except (OSError, ValueError, RecursionError):
            continue
        names = [line.strip() for line in lines if line.strip()]
        if len(names) > 1 and len(set(names)) == len(names) and max(map(len, names)) <= MAX_NAME:
            yield file, names


def _listed(text: str) -> list[str]:
    return names_in(json.loads(text))


def names_in(found: Any) -> list[str]:
    """Return the names in `["sea"]`, `{"0": "sea"}`, `{"sea": 0}`, `[{"id": 0, "name": "sea"}]`."""
    if isinstance(found, list) and all(isinstance(one, dict) for one in found):
        found = {str(one.get("id", k)): one.get("name") for k, one in enumerate(found)}
    if isinstance(found, dict):
        pairs = [(k, v) if str(k).isdecimal() else (str(v), k) for k, v in found.items()]
        by_number = {int(k): v for k, v in pairs if k.isdecimal() and len(k) < MAX_DIGITS}
        whole = sorted(by_number) == list(range(len(found)))
        found = [by_number[k] for k in sorted(by_number)] if whole else []
    return [one for one in found if isinstance(one, str)] if isinstance(found, list) else []


def _likeness(file: Path, path: Path) -> int:
    """Return how many words the names of two files share, and one if one speaks of names."""
    words = set(re.split(r"[\W_]+", file.stem.casefold())) & set(
        re.split(r"[\W_]+", path.stem.casefold())
    )
    return 2 * len(words - {""}) + bool(NAMES.search(file.stem))
