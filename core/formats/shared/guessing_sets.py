"""Labels as sets of names in one column: by the column's name, by its lists, by names that repeat.

The finders that `guessing` asks, each for one way to tell it; true when it found some.
"""

import re

from core.formats.shared.answers import loaded
from core.formats.shared.cells import PLACED, parse_names
from core.formats.shared.companions import SPLITS
from core.formats.shared.guessing_flags import MAX_RATED
from core.formats.shared.people_columns import find_alike_columns, is_numbered, share_names
from core.formats.shared.profiles import (
    DERIVED,
    MAX_CLASSES,
    RIVALS,
    UNNAMED,
    Kind,
    Profile,
    Roles,
    delimiter_of,
)
from core.formats.shared.set_columns import (
    AGAIN,
    ENDS_IN_NAMES,
    MAX_NAME,
    OTHER_SET_NAMES,
    SECOND,
    SET_NAMES,
    is_few_names,
    lists_several,
    splits_into_names,
    take_set,
)

ENDS_IN_RATINGS = re.compile(
    r".*[ _.:-](ratings?|answers?|responses?|votes?|judge?ments?|verdicts?)"
)
CLASS_NUMBERS = re.compile(r"\s*\d{1,5}(\s*[,;| ]\s*\d{1,5})*\s*")
CLEAR = ("|", ";", "#", ",")  # between names: no word of a text holds them
REPEATS = (
    "taken: the first with a few names that come again"  # how reasons begin that are asked about
)


def named_set(roles: Roles) -> bool:
    kinds: tuple[Kind, ...] = ("text", "names", "numbers", "other", "empty")
    if roles.fields.get("row") == "view":  # a class number per view
        kinds = (*kinds, "number", "binary")
    found = roles.named(SET_NAMES, *kinds)
    if found is not None and found.values and set(map(type, found.values)) == {bool}:
        return False  # yes or no about one label
    if found is None and roles.fields.get("row", "item") == "item":
        numbers = roles.named(("labels", "label"), "number")
        found = numbers if numbers is not None and numbers.holds_class_numbers else None
    if found is None or (found.kind == "empty" and list_of_names(roles)):
        return found is not None
    return take_set(roles, found, f"the column is called {found.name!r}")


def other_named_set(roles: Roles) -> bool:
    """A column of names under a name that may mean something else."""
    kinds: tuple[Kind, ...] = ("text", "names", "other")
    if roles.fields.get("row") == "view":
        kinds = (*kinds, "number", "binary")
    free = [one for one in roles.free.values() if one.kind in kinds]
    free = [one for one in free if not one.is_truth and not roles.is_constant(one.name)]
    free = [one for one in free if not _names_each_row(one)]
    by_key = {one.key: one for one in reversed(free)}
    by_last = {one.last_key: one for one in reversed(free)}
    ends = [one for one in free if ENDS_IN_NAMES.fullmatch(one.key) and not DERIVED.match(one.key)]
    if roles.fields.get("row") == "view":
        ends += [one for one in free if is_numbered(one.key)]
        rated = [one for one in free if ENDS_IN_RATINGS.fullmatch(one.key) and not one.is_wordy]
        rated = [one for one in rated if roles.fields.get("id")]
        ends += [one for one in rated if roles.differs_between_views(one)]
    if roles.fields.get("row") != "view" and _same_names_by_people(ends):
        return find_alike_columns(roles)
    ends.sort(key=lambda one: one.kind in ("number", "binary"))
    named = (by_key[name] for name in OTHER_SET_NAMES if name in by_key)
    parts = (by_last[name] for name in (*SET_NAMES, *OTHER_SET_NAMES) if name in by_last)
    found = next((one for group in (ends, named, parts) for one in group), None)
    if found is None or (found.is_wordy and not splits_into_names(found)):
        return False
    return take_set(roles, found, f"the column is called {found.name!r}")


def _names_each_row(one: Profile) -> bool:
    """Whether every cell is another name, as ids are."""
    return (
        one.kind == "text"
        and one.distinct
        and one.has_no_spaces
        and len(one.values) > MAX_CLASSES / 10
    )


def varying_names(roles: Roles) -> bool:
    """In rows of views: the only column of a few names that differ between views of an item."""
    if roles.fields.get("row") != "view" or roles.fields.get("id") is None:
        return False
    texts = [one for one in roles.may_be_labels if one.kind in ("text", "names")]
    texts = [one for one in texts if not (one.is_wordy or _is_about_people(roles, one))]
    few = [one for one in texts if len(set(map(str, one.values))) <= max(10, len(one.values) / 5)]
    few = few or [one for one in texts if is_few_names(one)]
    numbers = [one for one in roles.free.values() if one.holds_class_numbers]
    rated = [one for one in numbers if len(set(one.values)) <= MAX_RATED]
    for kind, columns in (("names", few), ("numbers", rated)):
        found = [one for one in columns if roles.differs_between_views(one)]
        if len(found) == 1:
            why = f"only {found[0].name!r} holds a few {kind} that differ between views"
            return take_set(roles, found[0], why)
    return False


def _is_about_people(roles: Roles, one: Profile) -> bool:
    """Whether nobody who views items ever has another value: their country, not their answer."""
    source = roles.fields.get("source")
    return source is not None and not roles.differs_between(source, one)


def class_numbers(roles: Roles) -> bool:
    """Cells such as 27 or 4,27: numbers of classes, several in some; or names with boxes."""
    for one in roles.free.values():
        texts = [str(value) for value in one.values] if one.kind == "text" else []
        if (
            texts
            and all(map(CLASS_NUMBERS.fullmatch, texts))
            and not all(map(str.isdecimal, texts))
        ):
            return take_set(roles, one, f"{one.name!r} holds lists of class numbers")
        if texts and delimiter_of(one)[0] == PLACED:
            return take_set(roles, one, f"{one.name!r} holds names and where each is seen")
    return False


def unnamed_set(roles: Roles) -> bool:
    """In a table without a header: the column of texts that repeat."""
    free = [one for one in roles.free.values() if UNNAMED.fullmatch(one.name)]
    free = [one for one in free if not SPLITS.issuperset(map(str, one.values))]
    for one in reversed(free):
        if one.kind in ("text", "names", "number") and not one.distinct and not one.is_picture:
            delimiter, _ = delimiter_of(one)
            names = {name for value in one.values for name in str(value).split(delimiter)}
            if 1 < len(names) < max(3, len(one.values)):
                return take_set(roles, one, f"no header; values of {one.name!r} repeat")
    return False


def list_of_names(roles: Roles) -> bool:
    free = [one for one in roles.free.values() if not one.is_outcome]
    found = [one for one in free if one.kind == "names" and any(one.values)]
    found = [one for one in found if not _are_all_different(one)]
    found += [one for one in free if _lists_objects(one) and _lists_few_names(one)]
    found = found or [one for one in free if _are_ticks(one)]
    if len(found) > 1:
        found = [one for one in found if _repeats_names(one)]
    return len(found) == 1 and take_set(roles, found[0], "the only column with lists of names")


def _are_all_different(one: Profile) -> bool:
    """Whether nothing is ever listed twice, as ids are."""
    names = [name for value in one.values for name in value]
    return len(set(names)) == len(names) > len(one.values) / 2 > 1


def _lists_objects(one: Profile) -> bool:
    """Whether cells are lists of objects; lists of numbers may be anything."""
    parts = [value[:1] for value in one.values if isinstance(value, list)]
    return len(parts) == len(one.values) and any(
        isinstance(p, dict) for part in parts for p in part
    )


def _are_ticks(one: Profile) -> bool:
    """Whether cells are objects that say true or false of several names."""
    ticks = [cell for cell in one.values if isinstance(cell, dict) and len(cell) > 1]
    said = [value for cell in ticks for value in cell.values() if value is not None]
    return 0 < len(ticks) == len(one.values) and all(type(value) is bool for value in said)


def _repeats_names(one: Profile) -> bool:
    """Whether lists hold names that come again, not the parts of a text."""
    if one.kind == "other":
        return True
    names = [name for value in one.values for name in value if isinstance(name, str)]
    return 2 * len(set(names)) < len(names) and max(map(len, names), default=0) <= MAX_NAME


def set_like_text(roles: Roles) -> bool:
    """A text column such as `Action|Comedy`: few names, many cells, a clear delimiter."""
    for one in roles.may_be_labels:
        if roles.is_constant(one.name):
            continue
        is_object = one.kind == "other" and all(isinstance(value, dict) for value in one.values)
        if one.kind != "text" and not is_object:
            continue
        if is_object or all(str(value).strip()[:1] in ("[", "{", "") for value in one.values):
            if _lists_few_names(one):
                return take_set(roles, one, f"lists of few names fill {one.name!r}")
            continue
        for delimiter in ("|", ";", "#"):
            split = [set(str(value).split(delimiter)) - {""} for value in one.values]
            several = sum(len(names) > 1 for names in split)
            known = set().union(*split)
            is_short = max(map(len, known), default=0) <= MAX_NAME
            if several >= 0.3 * len(split) and len(known) < len(split) / 2 and is_short:
                if find_alike_columns(roles, one):
                    return True
                return take_set(roles, one, f"few names joined by {delimiter!r} fill {one.name!r}")
    return False


def _lists_few_names(one: Profile) -> bool:
    """Whether cells are lists of a few names, or objects of them that are not all alike."""
    keys = {frozenset(cell) for value in one.values if isinstance(cell := loaded(value), dict)}
    if len(keys) == 1:
        return False
    try:
        cells = [frozenset(parse_names(value, None)) for value in one.values]
    except ValueError:  # lists of something else
        return False
    known = frozenset().union(*cells)
    differ = len(set(cells)) > 1 or len(cells) == 1  # scores of all labels are no labels
    return bool(known) and differ and len(known) < len(cells) / 2


def names_that_repeat(roles: Roles) -> bool:
    found = sorted(_columns_that_repeat(roles), key=lambda one: not lists_several(one))
    if not found or len(roles.profiles) < 2:
        return False
    sets = [one for one in found if delimiter_of(one)[0] in CLEAR and lists_several(one)]
    if len(sets) == 1:
        return take_set(roles, sets[0], "the only column with a few names, several in some cells")
    others = ", ".join(repr(one.name) for one in found[1:])
    return take_set(roles, found[0], REPEATS + RIVALS * bool(others) + others)


def only_column(roles: Roles) -> bool:
    """What stands beside names of items and nothing else: a few names or numbers of classes."""
    free = [one for one in roles.free.values() if not one.is_outcome and one.kind != "empty"]
    told = [one for one in free if not (one.is_picture or roles.is_constant(one.name))]
    told = [one for one in told if not (one.kind == "text" and one.distinct)]
    is_few = len(told) == 1 and (told[0].holds_class_numbers or told[0].kind in ("text", "names"))
    if (
        not is_few
        or len(roles.profiles) < 2
        or AGAIN * len(set(map(str, told[0].values))) > len(told[0].values)
    ):
        return False
    return take_set(roles, told[0], f"{REPEATS}, beside names of items")


def _same_names_by_people(columns: list[Profile]) -> bool:
    """Whether columns called alike, `clip_labels` and `human_labels`, hold the same names."""
    if len(columns) < 2 or any(SECOND.fullmatch(one.key) for one in columns):
        return False
    return share_names(columns, delimiter_of(columns[0])[0])


def _columns_that_repeat(roles: Roles) -> list[Profile]:
    """Return the columns of a few short names each, whatever they are called."""
    texts = [one for one in roles.may_be_labels if one.kind in ("text", "names")]
    texts = [one for one in texts if not one.is_wordy or _joins_names(one)]
    texts = [one for one in texts if not (one.is_never_feature or one.is_picture)]
    texts = [one for one in texts if not _is_about_people(roles, one)]
    return [one for one in texts if not one.holds_marks and is_few_names(one)]


def _joins_names(one: Profile) -> bool:
    return delimiter_of(one)[0] in CLEAR and splits_into_names(one)
