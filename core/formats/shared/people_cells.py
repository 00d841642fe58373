"""Cells that hold what several sources said: which column they are in, and how they are spelled."""

import re
from collections.abc import Sequence
from itertools import islice
from math import inf
from typing import Any

from core.formats.shared.answer_texts import COUNTED, counts_in, parts_of, who_said
from core.formats.shared.answers import (
    LABEL_KEYS,
    SOURCE_KEYS,
    key_among,
    label_in,
    loaded,
    one_by_one,
)
from core.formats.shared.cells import parse_names
from core.formats.shared.mapping import LABEL_PREFIXES
from core.formats.shared.people_names import PERSON, WHO, is_called_person, is_person
from core.formats.shared.profiles import RIVALS, Profile, Roles, delimiter_of

ANSWER_NAMES = (
    *("annotations", "annotation", "annotators", "answers", "responses", "judgments", "judgements"),
    *("votes", "label_counter", "label_counts", "label_count", "vote_counts", "counts", "raters"),
    *(
        "annotator_labels",
        "annotator labels",
        "labels_by_annotator",
        "rater_labels",
        "worker_labels",
    ),
    *(
        "weak_labels",
        "lf_votes",
        "lf_labels",
        "raw_labels",
        "crowd_labels",
        "labels",
        "label",
        "ratings",
        "old_labels",
        "all_labels",
    ),
)
PLURAL = re.compile(rf"(anon_)?({WHO})([ _]?(id|name)s?)?|(id|name)s?_of_({WHO})", re.IGNORECASE)
PLAIN_SETS = (
    "categories",
    "genres",
    "tags",
    "topics",
    "classes",
    "choices",
    "concepts",
    "keywords",
)
STATED_CANDIDATES = ("candidate_labels", "candidates", "partial_labels")
_SURELY_SOURCES = tuple(k for k in SOURCE_KEYS if k not in ("name", "id", "source", "by"))
PLACES = ("start", "startoffset", "begin", "offset", "span", "bbox", "points", "boundingbox")
MIN_REPEATED = 0.2  # of lists that name a label twice: one label per person, not a set
MAX_COUNTED = 200  # labels with a column of counts
BY = ("by_source", "by_label")
EITHER_WAY = "who chose a label, or what somebody chose"  # how reasons begin that are asked about
MAX_STEPS = 10  # of a scale, or classes, that lists of numbers tell
MAX_SAMPLE = 200


def find_answers(roles: Roles) -> None:
    """A column whose cells hold the answers of all sources."""
    if roles.named(STATED_CANDIDATES) is not None:
        return
    last = {one.last_key: one for one in reversed(roles.free.values())}
    named = [roles.named([name]) or last.get(name) for name in ANSWER_NAMES]
    plain = roles.named(PLAIN_SETS, "text", "names", "other")
    has_set = plain is not None and not roles.is_constant(plain.name)
    flags = [one for one in roles.free.values() if one.kind != "other"]
    has_set = has_set or any(one.name.startswith(LABEL_PREFIXES[:2]) for one in flags)
    has_set = has_set or any(_is_set(roles.named([name])) for name in ("labels", "label"))
    kinds = ("other", "text", "names")  # lists of names last: they may be anything
    rest = [one for one in roles.free.values() if one.kind in kinds and not has_set]
    rest.sort(key=lambda one: one.kind == "names")
    known = dict.fromkeys([*(one for one in named if one is not None), *rest])
    for one in known:
        shape, beside = _told(roles, one)
        if shape is None:
            continue
        _ask_which_way(roles, one, shape)
        others = [other for other in known if other not in (one, beside)]
        rivals = [other for other in others if _is_like(roles, other, shape, beside)]
        why = f"{one.name!r} holds {_DESCRIBED[shape]}"
        why += RIVALS * bool(rivals) + ", ".join(repr(other.name) for other in rivals)
        roles.take("labels", [one.name], why, layout="answers", answers=shape)
        roles.set("delimiter", _inner_delimiter(one, shape))
        if shape == "lists" and _are_class_numbers(one):
            roles.set("not_asked", ("-1",), "-1 among class numbers says nothing")
        if beside is not None:
            what = "has the score of each label" if shape == "scored" else "names who answered"
            roles.set("source", beside.name, f"{beside.name!r} {what}")
            roles.free.pop(beside.name, None)
        return


def _told(roles: Roles, one: Profile) -> tuple[str | None, Profile | None]:
    """Return how a column tells the answers of all, if it does, and the column it needs for it."""
    if one.is_outcome or one.is_truth:
        return None, None
    shape, beside = "parallel", _beside(roles, one)
    if beside is None and (beside := _scores_beside(roles, one)) is not None:
        shape = "scored"
    found = shape if beside is not None else _shape(one, one.last_key in ANSWER_NAMES)
    stated = roles.fields.get("answers")
    found = stated if {stated, found} <= set(BY) else found
    return (found, beside) if stated in (None, found) else (None, None)


def _is_like(roles: Roles, one: Profile, shape: str, beside: Profile | None) -> bool:
    """Whether a column holds answers of people who are named, as another does."""
    if shape not in (*BY, "objects", "parallel") or roles.is_constant(one.name):
        return False
    return _told(roles, one) == (shape, beside)


def _ask_which_way(roles: Roles, one: Profile, shape: str) -> None:
    """Say in the reason that objects may be by label as well as by source."""
    cells = [cell for value in islice(one.values, MAX_SAMPLE) if (cell := loaded(value))]
    if shape in BY and all(isinstance(cell, dict) for cell in cells):
        values = [value for cell in cells for value in cell.values() if value is not None]
        if _are_lists_of_names(values) and not _turn_of(cells)[1]:
            roles.set("answers", shape, f"{EITHER_WAY}: {shape}")


def _is_set(one: Profile | None) -> bool:
    """Whether cells are lists of one item's names, none of them twice."""
    if one is None or _shape(one, is_named=True) is not None:
        return False
    cells = [loaded(value) for value in islice(one.values, MAX_SAMPLE)]
    return all(isinstance(cell, list) for cell in cells) and any(len(cell) > 1 for cell in cells)


_DESCRIBED = {
    "by_source": "an object with every source's labels",
    "by_label": "an object with everybody who chose a label",
    "lists": "a list with one element per source",
    "objects": "a list of answers, each with its label",
    "counts": "how many chose each label",
    "parallel": "one answer per source of a list beside it",
    "scored": "labels, each with a score in a list beside it",
}


def _shape(one: Profile, is_named: bool) -> str | None:
    cells = [loaded(value) for value in islice(one.values, MAX_SAMPLE)]
    cells = [cell for cell in cells if cell is not None and cell != ""]
    if not cells:
        return None
    if all(isinstance(cell, dict) for cell in cells):
        return _object_shape(cells, is_named)
    if all(isinstance(cell, str) for cell in cells):
        if _count_in_texts(one, cells):
            return "counts"
        if _say_who_said(cells):
            return "by_source"
        delimiter = delimiter_of(one)[0]
        is_list = delimiter not in (None, " ", ",") and _are_of_people(
            [[part.strip() for part in cell.split(delimiter)] for cell in cells]
        )
        return "lists" if is_list else None
    if not all(isinstance(cell, list) for cell in cells) or not any(cells):
        return None
    parts = [part for cell in cells for part in cell if part is not None]
    if parts and all(isinstance(part, dict) for part in parts):
        if not any(key_among(part, _SURELY_SOURCES) for part in parts) and _are_sets(cells):
            return None  # labels as objects, with their names
        said = [label_in(part) for part in parts]
        are_weights = any(isinstance(one, float) and one % 1 for one in said)
        return None if None in said or are_weights else "objects"
    if parts and all(isinstance(part, list) for part in parts):
        flat = [name for part in parts for name in part]
        is_plain = {type(name) for name in flat} in (set(), {str}, {int})  # no [0, 3, "sea"]
        is_plain = is_plain and not Profile("", "text", flat).is_wordy
        return "lists" if is_plain and (is_named or _agree(cells)) else None
    if is_named and (_are_class_numbers(one) or _are_votes(one, cells)):
        return "lists"
    if parts and all(isinstance(part, str | int) for part in parts) and one.kind != "numbers":
        return "lists" if _are_of_people(cells, is_named=is_named) else None
    return None


def _are_of_people(cells: Sequence[Sequence[Any]], *, is_named: bool = False) -> bool:
    """Whether lists name a label twice now and then, as people do who agree; else of one length."""
    parts = [part for cell in cells for part in cell]
    again = sum(len(set(cell)) < len(cell) for cell in cells)
    few = len(set(parts)) <= max(10, len(parts) / 3)
    is_even = is_named or len({len(cell) for cell in cells}) == 1
    return few and is_even and again >= MIN_REPEATED * len(cells)


def _count_in_texts(one: Profile, cells: Sequence[str]) -> bool:
    """Whether texts are a few labels, each with how many said so: `anger (2), joy (1)`."""
    delimiter, _ = delimiter_of(one)
    parts = [part.strip() for cell in cells for part in cell.split(delimiter or "\0")]
    if 2 * sum(COUNTED.fullmatch(part) is not None for part in parts) < len(parts):
        return False
    counts = [counts_in(cell, delimiter) for cell in cells]
    known = {name for each in counts for name in each}
    most = max((n for each in counts for n in each.values()), default=0)
    return 1 < most <= MAX_COUNTED and len(known) <= max(10, len(cells) / 3)


def _say_who_said(cells: Sequence[str]) -> bool:
    """Whether texts are pairs such as `anna: joy; bob: joy`; parts of a thing share no names."""
    try:
        each = [who_said(cell) for cell in cells]
    except ValueError:
        return False
    said: dict[str, set[str]] = {}
    for cell in each:
        for who, label in cell.items():
            said.setdefault(who, set()).add(label)
    names = set().union(*said.values())
    few = (
        1 < len(said) <= len(cells) / 2
        and max(map(len, each)) > 1
        and len(names) <= max(10, len(cells) / 3)
    )
    return few and sum(map(len, said.values())) > len(names)


def _agree(cells: Sequence[Any]) -> bool:
    """Whether lists in one cell share names now and then, as people do who agree."""
    shared = 0
    for cell in cells:
        sets = [set(map(str, part)) - {""} for part in cell if part]
        shared += sum(map(len, sets)) > len(set().union(*sets))
    return shared >= MIN_REPEATED * len(cells)


def _are_sets(cells: Sequence[Any]) -> bool:
    """Whether lists of objects seldom name a label twice, as the answers of several people do.

    What is marked in a text or picture is nobody's answer about all of it.
    """
    if any(key_among(part, PLACES) is not None for cell in cells for part in cell or () if part):
        return True
    try:
        each = [parse_names(cell, None) for cell in cells]
    except ValueError:
        return False
    again = sum(len(set(names)) < len(names) for names in each)
    return again < MIN_REPEATED * len(each)


def _are_class_numbers(one: Profile) -> bool:
    """Whether lists hold a class number per source, -1 where it said nothing."""
    cells = [loaded(value) for value in islice(one.values, MAX_SAMPLE)]
    if not all(isinstance(cell, list) for cell in cells):
        return False
    parts = {part for cell in cells for part in cell if not isinstance(part, list | dict)}
    return -1 in parts and len(parts) > 2 and all(type(part) is int for part in parts)


def _are_votes(one: Profile, cells: Sequence[Any]) -> bool:
    """Whether lists of one length hold a class number per source: `[0, 1, 1]`.

    Called labels they may say of every label whether it is there.
    """
    parts = [part for cell in cells for part in cell]
    are_classes = all(type(part) is int and 0 <= part <= MAX_STEPS for part in parts)
    return one.kind == "numbers" and are_classes and one.last_key not in ("labels", "label")


def _object_shape(cells: Sequence[dict[str, Any]], is_named: bool) -> str | None:
    values = [value for cell in cells for value in cell.values() if value is not None]
    keys = {str(key) for cell in cells for key in cell}
    are_people = all(PERSON.fullmatch(key) for key in keys)
    are_lists = _are_lists_of_names(values)
    if not values or not (is_named or are_people or (are_lists and tell_people(cells))):
        return None
    if key_among(dict.fromkeys(keys), LABEL_KEYS) is not None and _are_objects(cells):
        said = [label_in(one) for cell in cells for one in one_by_one(cell)]
        return None if any(isinstance(one, float) and one % 1 for one in said) else "objects"
    if are_lists:
        return _turn_of(cells)[0]
    if all(type(value) in (int, float) for value in values) and not are_people:
        whole = all(0 <= value < inf and value == int(value) for value in values if value == value)
        return "counts" if whole and max(values) > 1 else None
    if not are_people and all(isinstance(value, bool) for value in values):
        return None  # which of its labels an item has
    kinds = (str, int, list, dict, bool)
    return "by_source" if all(isinstance(value, kinds) for value in values) else None


def _are_lists_of_names(values: Sequence[Any]) -> bool:
    """Whether these are lists of names, not all of them empty."""
    if not any(values) or not all(isinstance(value, list) for value in values):
        return False
    return all(isinstance(name, str) for value in values for name in value)


def tell_people(cells: Sequence[dict[str, Any]]) -> bool:
    """Whether objects are labels with who chose each: `{"sea": ["anna@x.org", "r2"]}`."""
    values = [value for cell in cells for value in cell.values() if value is not None]
    if not _are_lists_of_names(values) or _turn_of(cells)[0] != "by_label":
        return False
    return all(is_person(name) for value in values for name in value)


def _turn_of(cells: Sequence[dict[str, Any]]) -> tuple[str, bool]:
    """Return whether objects of lists are by source or by label, and whether that is certain.

    One side is spelled like people; else those are people of whom as many answer every time,
    but not always the same.
    """
    held = [{k: v for k, v in cell.items() if v is not None} for cell in cells]
    keys = {str(key) for cell in held for key in cell}
    inner = [{name for value in cell.values() for name in value} for cell in held]
    names = set().union(*inner)
    are_people = all(map(is_called_person, keys)), all(map(is_called_person, names))
    if are_people[0] != are_people[1] and len(names) > 1:
        return ("by_label" if are_people[1] else "by_source"), True
    sizes = {len(one) for one in inner}
    is_turned = len(sizes) == 1 and 1 < max(sizes) < len(names)
    return ("by_label" if is_turned else "by_source"), False


def _are_objects(cells: Sequence[dict[str, Any]]) -> bool:
    """Whether every object has a list of labels, and another list as long."""
    for cell in cells:
        each = one_by_one(cell)
        if not each or len(each[0]) < 2 or key_among(each[0], LABEL_KEYS) is None:
            return False
    return True


def _beside(roles: Roles, one: Profile) -> Profile | None:
    """Return the column with as many sources in every cell as this one has answers."""
    if one.kind == "number" or one.kind == "binary":
        return None
    for other in roles.free.values():
        if other is one or not PLURAL.fullmatch(other.last_key):
            continue
        sizes = [
            (len(parts_of(loaded(a))), len(parts_of(loaded(b))))
            for a, b in zip(roles.cells(one.name), roles.cells(other.name), strict=True)
            if not isinstance(loaded(a), dict)
        ][:MAX_SAMPLE]
        same = sum(a == b for a, b in sizes)
        if sizes and same >= 0.95 * len(sizes) and max(a for a, _ in sizes) > 1:
            return other
    return None


def _scores_beside(roles: Roles, one: Profile) -> Profile | None:
    """Return the column with a number from 0 to 1 for every label of this one's lists."""
    if one.kind not in ("names", "text"):
        return None
    labels = [loaded(cell) for cell in roles.cells(one.name)[:MAX_SAMPLE]]
    if not all(isinstance(cell, list) and len(set(map(str, cell))) == len(cell) for cell in labels):
        return None
    others = [other for other in roles.free.values() if other.kind in ("numbers", "other", "text")]
    for other in others:
        scores = [loaded(cell) for cell in roles.cells(other.name)[:MAX_SAMPLE]]
        if [len(cell) if isinstance(cell, list) else -1 for cell in scores] != [*map(len, labels)]:
            continue
        values = [value for cell in scores for value in cell]
        are_shares = all(isinstance(value, int | float) and 0 <= value <= 1 for value in values)
        if are_shares and any(value % 1 for value in values) and max(map(len, labels)) > 1:
            return other
    return None


def _inner_delimiter(one: Profile, shape: str) -> str | None:
    """Return what stands between the labels of one answer, where they are text."""
    texts = []
    if (
        shape in ("counts", "lists")
        and one.kind == "text"
        and isinstance(loaded(one.values[0]), str)
    ):
        return delimiter_of(one)[0]
    for value in islice(one.values, MAX_SAMPLE):
        cell = loaded(value)
        if shape == "parallel":
            parts = parts_of(cell)
        elif isinstance(cell, dict):
            parts = list(cell.values())
        else:
            parts = [label_in(p) if isinstance(p, dict) else p for p in (cell or [])]
        texts += [part for part in parts if isinstance(part, str)]
    return delimiter_of(Profile("", "text", texts))[0] if texts else ","
