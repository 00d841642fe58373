"""Answers inside records as a few tools spell them, made into objects by source or by label.

`[["anna", ["sea"]], …]` pairs who with what; `[{"label": "sea", "annotated_by": [{"annotator":
"anna"}]}]` says who chose each label; `[{"label": "sea", "score":
0.9}, …]` is what a model gave to every label, where nothing else names labels. Soft labels are
shares by class number.
"""

import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from core.formats.shared.answers import LABEL_KEYS, SOURCE_KEYS, key_among

SAMPLE = 200
SCORES = ("score", "scores", "probability", "confidence", "prob")
WEIGHTS = (*SCORES, "value", "weight")
NAME_LISTS = ("name", "names", "label", "labels")
PEOPLE = tuple(key for key in SOURCE_KEYS if key not in ("name", "id", "source", "by"))
SOFT = re.compile(r"soft[ _-]?labels?", re.IGNORECASE)
TOLERANCE = 0.01  # of shares that are rounded
MAX_SCORED = 50  # labels; as many as an object may have keys that becomes columns

Record = Mapping[str, Any]


def text_records(found: Any) -> list[Record] | None:
    """Return the records of spaCy's `[["red sky", {"cats": {"sea": 1.0}}], …]`."""
    pairs = found if isinstance(found, list) else []
    pairs = [one for one in pairs if isinstance(one, list) and len(one) == 2]
    are_such = all(isinstance(text, str) and isinstance(about, dict) for text, about in pairs)
    is_whole = bool(pairs) and len(pairs) == len(found)
    return [{"text": text, **about} for text, about in pairs] if is_whole and are_such else None


def lone_record(document: Record) -> list[Record] | None:
    """Return the one item of `{"sequence": "red sky", "labels": ["sea", …], "scores": [0.9, …]}`.

    A text among its values tells it from columns.
    """
    labels, scores = (document.get(key_among(document, keys)) for keys in (LABEL_KEYS, SCORES))
    are_lists = isinstance(labels, list) and isinstance(scores, list)
    has_text = any(isinstance(value, str) for value in document.values())
    return [document] if are_lists and has_text else None


def respelled(records: Sequence[Record]) -> Sequence[Record]:
    """Return records with such cells as objects of answers."""
    some = records[:SAMPLE]
    for name in {key for one in some for key, value in one.items() if isinstance(value, dict)}:
        if all(map(_is_weighed, (one[name] for one in some if one.get(name) is not None))):
            records = [_changed(one, name, _weights) for one in records]
    names = {key for one in some for key, value in one.items() if isinstance(value, list) and value}
    for name in names:
        cells = [one[name] for one in some if one.get(name) is not None]
        if not all(isinstance(cell, list) for cell in cells):
            continue
        for is_such, change in (
            (partial(_share_out, name), _by_number),
            (_pair_people, dict),
            (_score_all, _by_label),
            (_tell_people, _by_person),
        ):
            if is_such(cells) and (change is not _by_label or not _has_labels(some, name)):
                records = [_changed(one, name, change) for one in records]
                break
    return records


def _changed(record: Record, name: str, change: Any) -> Record:
    cell = record.get(name)
    try:
        return {**record, name: change(cell)} if isinstance(cell, list | dict) else record
    except (TypeError, ValueError, KeyError, AttributeError):  # a cell unlike the others
        return record


def _is_weighed(cell: Any) -> bool:
    """Whether a cell is `{"sea": {"value": 0.9, …}}` or `{"name": ["sea"], "value": [0.9], …}`."""
    try:
        weights = list(_weights(cell).values())
    except (TypeError, ValueError, KeyError, AttributeError):
        return False
    return bool(weights) and all(isinstance(v, int | float) and 0 <= v <= 1 for v in weights)


def _weights(cell: Mapping[str, Any]) -> dict[str, Any]:
    names, scores = key_among(cell, NAME_LISTS), key_among(cell, WEIGHTS)
    if names is not None and scores is not None:
        return dict(zip(cell[names], cell[scores], strict=True))
    return {label: about[key_among(about, WEIGHTS)] for label, about in cell.items()}


def _share_out(name: str, cells: Sequence[list[Any]]) -> bool:
    """Whether the cells of a soft label are lists of one length of shares that add up to one."""
    if not SOFT.fullmatch(name):
        return False
    plain = all(isinstance(v, int | float) and 0 <= v <= 1 for cell in cells for v in cell)
    one_length = len({len(cell) for cell in cells}) == 1 and 1 < len(cells[0]) <= MAX_SCORED
    return plain and one_length and all(abs(sum(cell) - 1) < TOLERANCE for cell in cells)


def _by_number(cell: Sequence[Any]) -> dict[str, Any]:
    return {str(j): share for j, share in enumerate(cell)}


def _pair_people(cells: Sequence[list[Any]]) -> bool:
    """Whether cells pair someone with labels: nobody comes twice in a cell, labels now and then."""
    pairs = [pair for cell in cells for pair in cell]
    if len(cells) < 2 or not all(isinstance(pair, list) and len(pair) == 2 for pair in pairs):
        return False
    if not all(isinstance(who, str) and isinstance(said, list | str) for who, said in pairs):
        return False
    firsts = [[who for who, _ in cell] for cell in cells]
    if any(len(set(each)) < len(each) for each in firsts):
        return False
    again = sum(len({str(said) for _, said in cell}) < len(cell) for cell in cells)
    people = {who for each in firsts for who in each}
    return 1 < len(people) < len(pairs) / 2 and 5 * again >= len(cells)


def _score_all(cells: Sequence[list[Any]]) -> bool:
    """Whether cells list the same labels, each with a number from 0 to 1."""
    if not all(isinstance(part, dict) for cell in cells for part in cell):
        return False
    known = {frozenset(_by_label(cell)) for cell in cells}
    values = [value for cell in cells for value in _by_label(cell).values()]
    are_shares = all(isinstance(v, int | float) and 0 <= v <= 1 for v in values)
    return len(known) == 1 and 1 < len(*known) <= MAX_SCORED and len(cells) > 1 and are_shares


def _has_labels(records: Sequence[Record], scores: str) -> bool:
    """Whether something beside the scores is a list of names, or is called labels."""
    rest = [(k, v) for one in records for k, v in one.items() if k != scores and v is not None]
    lists = any(isinstance(v, list) and v and isinstance(v[0], str) for _, v in rest)
    return lists or any(key_among({k: v}, LABEL_KEYS) is not None for k, v in rest)


def _by_label(cell: Sequence[Any]) -> dict[str, Any]:
    found = {}
    for part in cell:
        label, score = key_among(part, LABEL_KEYS), key_among(part, SCORES)
        if label is not None and score is not None and isinstance(part[label], str):
            found[part[label]] = part[score]
    return found


def _tell_people(cells: Sequence[list[Any]]) -> bool:
    """Whether cells list labels, each with the people who chose it."""
    parts = [part for cell in cells for part in cell]
    if not parts or not all(isinstance(part, dict) for part in parts):
        return False
    return all(_people_in(part) is not None for part in parts)


def _people_in(part: Record) -> tuple[str, list[str]] | None:
    label = key_among(part, LABEL_KEYS)
    for people in part.values():
        if isinstance(people, list) and people and all(isinstance(one, dict) for one in people):
            keys = [key_among(one, PEOPLE) for one in people]
            if label is not None and isinstance(part[label], str) and None not in keys:
                who = [str(one[key]) for one, key in zip(people, keys, strict=True)]
                return part[label], who
    return None


def _by_person(cell: Sequence[Any]) -> list[Any]:
    found: dict[str, list[str]] = {}
    for part in cell:
        label, people = _people_in(part) or ("", [])
        for who in people:
            found.setdefault(who, []).append(label)
    return [{"annotator": who, "labels": labels} for who, labels in found.items()]
