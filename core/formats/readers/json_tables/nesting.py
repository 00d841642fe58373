"""JSON documents that are no list of objects, and objects within objects.

A document may be one object of objects by id. An object inside a record is a group of columns,
`text.context`, unless it tells what several sources said.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from core.formats.shared.people_cells import ANSWER_NAMES

KEY = "id"
MAX_GROUP = 50  # keys of an object that becomes columns
SAMPLE = 200
DEPTH = 3

Record = Mapping[str, Any]


def are_keyed(document: Mapping[str, Any]) -> bool:
    """Whether a document is `{"7": {"text": …}, "8": {…}}`, or `{"7": ["sea"], "8": []}`.

    Not pandas' `{"text": {"0": …, "1": …}}`, whose inner keys count rows.
    """
    values = list(document.values())
    if len(values) > 1 and all(isinstance(value, dict) for value in values):
        inner = set(chain.from_iterable(values[:SAMPLE]))
        return bool(inner) and not all(str(key).lstrip("-").isdecimal() for key in inner)
    return _are_label_lists(values)


def _are_label_lists(values: Sequence[Any]) -> bool:
    if len(values) < 2 or not all(isinstance(value, list) for value in values):
        return False
    names = [name for value in values for name in value]
    uneven = len({len(value) for value in values}) > 1
    return uneven and bool(names) and all(isinstance(name, str) for name in names)


def keyed_records(document: Mapping[str, Any]) -> tuple[str, list[Record]]:
    """Return the name of the column of keys, and the objects, each with its key."""
    values = list(document.values())
    known = {key for value in values if isinstance(value, dict) for key in value}
    column = next(name for name in (KEY, "key", "_key", "__key__") if name not in known)
    return column, [
        {column: key, **(value if isinstance(value, dict) else {"labels": value})}
        for key, value in document.items()
    ]


COCO = ("images", "annotations", "categories")


def is_coco(document: Mapping[str, Any]) -> bool:
    """Whether a document lists images, annotations of them, and categories, as COCO has it."""
    lists = (document.get(name) for name in COCO)
    if not all(isinstance(one, list) and one for one in lists):
        return False
    members = chain.from_iterable(document[name] for name in COCO)
    return all(isinstance(one, dict) and _has_plain_ids(one) for one in members)


def _has_plain_ids(one: Mapping[str, Any]) -> bool:
    ids = (one.get(key) for key in ("id", "image_id", "category_id"))
    return not any(isinstance(value, list | dict) for value in ids)


def coco_records(document: Mapping[str, Any]) -> list[Record]:
    """Return the images, each with the names of the categories that are annotated in it."""
    names = {one.get("id"): str(one.get("name")) for one in document["categories"]}
    found: dict[Any, set[str]] = {one.get("id"): set() for one in document["images"]}
    for one in document["annotations"]:
        if one.get("image_id") in found and one.get("category_id") in names:
            found[one["image_id"]].add(names[one["category_id"]])
    return [{**one, "labels": sorted(found[one.get("id")])} for one in document["images"]]


def flattened(records: Sequence[Record], depth: int = DEPTH) -> Sequence[Record]:
    """Return records whose inner objects are columns of their own."""
    groups = set(_groups(records))
    if not groups or not depth:
        return records
    return flattened([dict(_members(record, groups)) for record in records], depth - 1)


def _groups(records: Sequence[Record]) -> Iterator[str]:
    """Give the keys that hold an object with the same few keys in most records."""
    some = records[:SAMPLE]
    nested = {name for record in some for name, value in record.items() if type(value) is dict}
    if not nested:
        return
    for name in dict.fromkeys(chain.from_iterable(some)):
        if name not in nested or str(name).rpartition(".")[2].casefold() in ANSWER_NAMES:
            continue
        held = [record[name] for record in some if record.get(name) is not None]
        if not held or not all(isinstance(value, dict) for value in held):
            continue
        keys = dict.fromkeys(chain.from_iterable(held))
        taken = [f"{name}.{key}" for key in keys]
        same = all(sum(key in value for value in held) >= len(held) / 2 for key in keys)
        is_choice = list(keys) == ["choices"]
        if 0 < len(keys) <= MAX_GROUP and same and not is_choice and not {*some[0]} & {*taken}:
            yield name


def _members(record: Record, groups: set[str]) -> Iterator[tuple[str, Any]]:
    for name, value in record.items():
        if name in groups and isinstance(value, dict):
            for key, inner in value.items():
                yield f"{name}.{key}", inner
        else:
            yield name, value
