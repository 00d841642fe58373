"""JSON documents that are no list of objects, and objects within objects.

A document may be one object of objects by id. An object inside a record is a group of columns,
`text.context`, unless it tells what several sources said.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from core.formats.shared.answers import LABEL_KEYS, SOURCE_KEYS, key_among
from core.formats.shared.cells import parse_names
from core.formats.shared.class_labels import class_names_of
from core.formats.shared.companions import NAMES, SPLITS
from core.formats.shared.findings import refuse
from core.formats.shared.label_files import names_in
from core.formats.shared.people_cells import ANSWER_NAMES, tell_people
from core.formats.shared.profiles import PICTURE

KEY, IMAGE = "id", "image"
MAX_GROUP = 50  # keys of an object that becomes columns
SAMPLE = 200
DEPTH = 3
MIN_ITEMS = 10  # of people who have an object each
SHARED = 1.2  # answers per item, at least
LONGER = 3  # times as many objects as in any other list of a document

Record = Mapping[str, Any]


def are_keyed(document: Any) -> bool:
    """Whether a document is `{"7": {"text": …}, "8": {…}}`, or `{"7": ["sea"], "8": []}`.

    Not pandas' `{"text": {"0": …, "1": …}}`, whose inner keys count rows.
    """
    values = list(document.values()) if isinstance(document, dict) else []
    if len(values) > 1 and all(isinstance(value, dict) for value in values):
        inner = set(chain.from_iterable(values[:SAMPLE]))
        return bool(inner) and not all(str(key).lstrip("-").isdecimal() for key in inner)
    if len(values) > 1 and all(isinstance(value, str) for value in values):
        return 2 * len(set(values)) < len(values)  # {"a.jpg": "sea", "b.jpg": "sea"}
    return _are_label_lists(values)


def view_records(document: Mapping[str, Any]) -> list[Record] | None:
    """Return the views in `{"anna": {"7": ["sea"], "8": []}, "bob": {"7": …}}`.

    Items are many and several people's, and what is said of them comes again.
    """
    held = [value for value in document.values() if isinstance(value, dict)]
    items = {key for value in held for key in value}
    said = [one for value in held for one in value.values()]
    if len(held) < max(2, len(document)) or len(items) < max(MIN_ITEMS, LONGER * len(held)):
        return None
    if len(said) < SHARED * len(items) or not all(map(_is_answer, said)):
        return None
    fields = key_among(dict.fromkeys(items), (*LABEL_KEYS, *SOURCE_KEYS, "text"))
    if fields is not None or LONGER * len(set(map(str, said))) > len(said):
        return None
    return [
        {"item": item, "annotator": who, "labels": one}
        for who, value in document.items()
        for item, one in value.items()
    ]


def _is_answer(said: Any) -> bool:
    if isinstance(said, list):
        return all(isinstance(name, str) for name in said)
    return isinstance(said, bool) or (isinstance(said, str) and len(said) < MAX_GROUP)


def parts_records(document: Mapping[str, Any]) -> list[Record] | None:
    """Return the records of `{"train": [{…}], "test": [{…}]}`, each with where it is from."""
    given = {key: value for key, value in document.items() if are_records(value)}
    if len(given) < 2 or not all(str(key).casefold() in SPLITS for key in given):
        return None
    return [{"split": key, **one} for key, value in given.items() for one in value]


def names_told(document: Mapping[str, Any]) -> list[str]:
    """Return the names of classes that a document tells beside its items."""
    for key, value in document.items():
        if NAMES.search(str(key)) and isinstance(value, list | dict) and value:
            names = names_in(value)
            if len(names) > 1 and len(set(names)) == len(names):
                return names
    features = document.get("features")  # of the server of Hugging Face's data sets
    listed = features if isinstance(features, list) else []
    told = {str(one.get("name")): one.get("type") for one in listed if isinstance(one, dict)}
    found = [names for names in map(class_names_of, told.values()) if names]
    return found[0] if len(found) == 1 else []


def _are_label_lists(values: Sequence[Any]) -> bool:
    if len(values) < 2 or not all(isinstance(value, list) for value in values):
        return False
    names = [name for value in values for name in value]
    uneven = len({len(value) for value in values}) > 1
    return uneven and bool(names) and {*map(type, names)} in ({str}, {int})


def keyed_records(document: Mapping[str, Any]) -> tuple[str, list[Record]]:
    """Return the name of the column of keys, and the objects, each with its key."""
    values = list(document.values())
    known = {key for value in values if isinstance(value, dict) for key in value}
    column = next(name for name in (KEY, "key", "_key", "__key__") if name not in known)
    are_pictures = all(PICTURE.search(str(key)) for key in document) and IMAGE not in known
    keys = (column, IMAGE) if are_pictures else (column,)
    return column, [
        {**dict.fromkeys(keys, key), **(value if isinstance(value, dict) else {"labels": value})}
        for key, value in document.items()
    ]


COCO = ("images", "annotations")
IMAGE_KEYS = ("image_id", "imageId")
CLASS_KEYS = ("category_id", "labelId", "label_id", "label", "labels", "category")


def is_coco(document: Mapping[str, Any]) -> bool:
    """Whether a document lists images and annotations of them, as COCO has it."""
    lists = [document.get(name) for name in COCO]
    if not all(isinstance(one, list) and one for one in lists):
        return False
    given = [name for name in (*COCO, "categories") if isinstance(document.get(name), list)]
    members = chain.from_iterable(document[name] for name in given)
    if not all(isinstance(one, dict) and _has_plain_ids(one) for one in members):
        return False
    first = document["annotations"][0]
    return any(key in first for key in IMAGE_KEYS) and any(key in first for key in CLASS_KEYS)


def _has_plain_ids(one: Mapping[str, Any]) -> bool:
    ids = (one.get(key) for key in ("id", *IMAGE_KEYS))
    return not any(isinstance(value, list | dict) for value in ids)


def coco_records(document: Mapping[str, Any]) -> list[Record]:
    """Return the images, each with the names of the categories that are annotated in it."""
    names = {one.get("id"): str(one.get("name")) for one in document.get("categories") or ()}
    found: dict[Any, set[str]] = {_image_of(one, ("id",)): set() for one in document["images"]}
    for one in document["annotations"]:
        said = next((one[key] for key in CLASS_KEYS if key in one), None)
        image, classes = _image_of(one), said if isinstance(said, list) else [said]
        plain = [name for name in classes if isinstance(name, str | int)]
        if image in found:
            known = [names.get(name) for name in plain] if names else list(map(str, plain))
            found[image].update(name for name in known if name is not None)
    return [{**one, "labels": sorted(found[_image_of(one, ("id",))])} for one in document["images"]]


def _image_of(one: Mapping[str, Any], before: Sequence[str] = ()) -> Any:
    return next((one[key] for key in (*before, *IMAGE_KEYS) if key in one), None)


VIA = "_via_img_metadata"  # in a project of the VGG Image Annotator


def via_records(document: Mapping[str, Any]) -> list[Record] | None:
    """Return the pictures of the VGG Image Annotator, each with the options chosen in it."""
    pictures = document.get(VIA, document)
    held = list(pictures.values()) if isinstance(pictures, dict) else []
    if not held or not all(_is_of_via(one) for one in held):
        return None
    return [
        {
            **{key: value for key, value in one.items() if key not in ("regions", "size")},
            "file_size": one.get("size"),
            "labels": _options_of_via(one),
        }
        for one in held
    ]


def _is_of_via(one: Any) -> bool:
    about = one.get("regions") if isinstance(one, dict) else None
    return isinstance(about, list | dict) and "filename" in one


def _options_of_via(picture: Mapping[str, Any]) -> list[str]:
    """Return what its regions are, or where there is nothing, what all of it is."""
    regions = picture["regions"]
    parts = list(regions.values()) if isinstance(regions, dict) else regions
    told = [one.get("region_attributes") for one in parts if isinstance(one, dict)]
    for given in (told, [picture.get("file_attributes")]):
        try:
            found = [parse_names(one, None) for one in given if isinstance(one, dict) and one]
        except ValueError:
            rule = "what was chosen of a region must be a name, or options that are true or false"
            refuse(rule, "Correct its attributes.", value=str(picture["filename"]))
        if any(found):
            return sorted({name for names in found for name in names})
    return []


def split_records(document: Mapping[str, Any]) -> list[Record] | None:
    """Return the rows of pandas' `{"columns": ["a", …], "index": […], "data": [[1, …], …]}`."""
    columns, rows = document.get("columns"), document.get("data")
    if not (isinstance(columns, list) and isinstance(rows, list) and len(document) <= 3):
        return None
    if not all(isinstance(row, list) and len(row) == len(columns) for row in rows):
        return None
    return [dict(zip(map(str, columns), row, strict=True)) for row in rows]


def records_in(document: Mapping[str, Any]) -> list[Record] | None:
    """Return the one list of objects in a document, or the one that is far longer than others."""
    lists = [value for value in document.values() if are_records(value)]
    lists.sort(key=len)
    if not lists or (len(lists) > 1 and len(lists[-1]) < LONGER * len(lists[-2])):
        return None
    return list(lists[-1])


def are_records(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(one, dict) for one in value)


def are_label_lists(document: Sequence[Any]) -> bool:
    """Whether a document is a list of lists of few names or class numbers, also one per person.

    Lists of one length are rows of a matrix, or pairs.
    """
    some = [one for one in document if isinstance(one, list)]
    inner = [part for one in some for part in one]
    if all(isinstance(part, list) for part in inner):
        inner = [name for part in inner for name in part]
    elif len({len(one) for one in some}) == 1:
        return False
    plain = bool(inner) and all(type(name) in (str, int) for name in inner)
    return plain and len(some) == len(document) and 2 * len(set(inner)) < len(inner)


def ungrouped(records: Sequence[Record]) -> Sequence[Record]:
    """Return the items of groups such as `{"Corpus": "a", "Tweets": [{…}, …]}`.

    An item says itself what it is about and holds a list of answers; an answer holds none.
    """
    some = records[:SAMPLE]
    groups = {key for one in some for key, value in one.items() if are_records(value)}
    if len(groups) != 1:
        return records
    (group,) = groups
    held = [one[group] for one in some if are_records(one.get(group))]
    items = [item for value in held for item in value[:SAMPLE]]
    if len(held) < len(some) or len(items) < LONGER * len(held):
        return records
    inner = [key for key in items[0] if all(are_records(item.get(key)) for item in items[:5])]
    has_people = any(key_among(item, SOURCE_KEYS[:-5]) is not None for item in items)
    outer = [{key: value for key, value in one.items() if key != group} for one in some]
    have_texts = all(map(_is_labelled_text, items)) and not any(map(_is_labelled, outer))
    have_texts = have_texts and not any(map(_has_text, outer))
    if has_people or not (inner or have_texts):
        return records
    return [
        {**{key: value for key, value in one.items() if key != group}, **item}
        for one in records
        for item in one[group]
        if isinstance(item, dict)
    ]


def _is_labelled(record: Record) -> bool:
    return key_among(record, LABEL_KEYS) is not None


def _is_labelled_text(record: Record) -> bool:
    return _is_labelled(record) and _has_text(record)


def _has_text(record: Record) -> bool:
    texts = [value for value in record.values() if isinstance(value, str)]
    return any(text.count(" ") >= LONGER for text in texts)


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
        held = [record[name] for record in some if record.get(name) is not None]
        if name not in nested or not all(isinstance(value, dict) for value in held):
            continue
        if tell_people(held):
            continue
        is_named = str(name).rpartition(".")[2].casefold() in ANSWER_NAMES
        if is_named and not all(_is_about_one(value) for value in held):
            continue
        keys = dict.fromkeys(chain.from_iterable(held))
        taken = [f"{name}.{key}" for key in keys]
        same = all(sum(key in value for value in held) >= len(held) / 2 for key in keys)
        is_choice = list(keys) == ["choices"]
        if 0 < len(keys) <= MAX_GROUP and same and not is_choice and not {*some[0]} & {*taken}:
            yield name


def _is_about_one(value: Record) -> bool:
    """Whether an object called answers is none of several people: labels and a remark.

    Or the answers to each question, which are lists of objects.
    """
    if value and all(are_records(one) for one in value.values()):
        return True
    n_lists = sum(isinstance(one, list) for one in value.values())
    is_labelled = key_among(value, LABEL_KEYS) is not None and key_among(value, SOURCE_KEYS) is None
    return is_labelled and n_lists < 2


def _members(record: Record, groups: set[str]) -> Iterator[tuple[str, Any]]:
    for name, value in record.items():
        if name in groups and isinstance(value, dict):
            for key, inner in value.items():
                yield f"{name}.{key}", inner
        else:
            yield name, value
