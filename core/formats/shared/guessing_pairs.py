"""An item and a label in every row, under names of their own: `clip_id,instrument,contains`.

What `guessing_long` finds by names is found here by content: an item comes several times, never
with the same label. With a yes or no beside it the label may be called anything; alone it must be
called a code or a class.
"""

import re
from collections.abc import Sequence

from core.formats.shared.cells import UNSURE
from core.formats.shared.guessing_flags import YES_NO_UNSURE, allows_layout
from core.formats.shared.people import ITEM, take_item
from core.formats.shared.profiles import NEARLY_ALL, UNNAMED, Profile, Roles

PAIRS = "one label of an item in each row"  # how reasons begin that are asked about
REPEATS = 1.5  # rows per item, at least
MIN_AGAIN = 5  # rows of an item (and person) that was there before
MAX_LABELS = 200
MAX_BESIDE = 3  # numbers that a row of one label holds
KEY = re.compile(r".*[ _.]?(id|key)")
CODE = re.compile(r"(.*[ _.-])?(codes?|labels?|class|category|tag|term|concept)([ _.-]?id)?")


def labels_by_content(roles: Roles) -> bool:
    if not allows_layout(roles, "long"):
        return False
    is_view = roles.fields.get("row") == "view"
    if not is_view and roles.fields.get("row", "item") != "item":
        return False
    for item in _items(roles):
        beside = [name for name in (roles.fields.get("source"),) if is_view and name is not None]
        label = _label(roles, [item.name, *beside])
        value = None if label is None else _value(roles, label)
        is_told = value is not None and len(value.values) == 1  # 1 in every row
        is_unnamed = UNNAMED.fullmatch(item.name) and not is_told
        if label is None or (is_unnamed and not _is_grid(roles, item, label)):
            continue
        if value is None and (is_view or not CODE.fullmatch(label.key)):
            continue
        _take(roles, item, label, value)
        return True
    return False


def _items(roles: Roles) -> list[Profile]:
    """Return the columns that may name items, the finest first."""
    stated = roles.column_of("id")
    if stated is not None:
        return [stated]
    free = [one for one in roles.free.values() if one.kind in ("text", "number")]
    called = [one for one in free if ITEM.fullmatch(one.last_key) or KEY.fullmatch(one.last_key)]
    called += [one for one in free if UNNAMED.fullmatch(one.name)]
    called = [one for one in called if one.has_no_spaces and not one.distinct]
    return sorted(called, key=lambda one: -len(set(roles.cells(one.name))))


def _label(roles: Roles, keys: Sequence[str]) -> Profile | None:
    """Return the only column of few names that differ within each item (of each person)."""
    groups = list(zip(*(roles.cells(name) for name in keys), strict=True))
    items = {group[0] for group in groups}
    if len(groups) < REPEATS * len(items) or len(groups) < len(set(groups)) + MIN_AGAIN:
        return None
    free = [one for one in roles.free.values() if one.name not in keys and not one.is_outcome]
    texts = [one for one in free if one.kind == "text" and not roles.is_constant(one.name)]
    texts = [one for one in texts if not _says_yes_or_no(one)]
    told = [one for one in free if one.kind == "number" and not one.is_never_feature]
    texts = [one for one in texts if not _is_about(roles, one, texts)]
    says_more = len(texts) > 1 or any(one.is_wordy for one in texts) or len(told) > MAX_BESIDE
    if len(keys) == 1 and says_more:
        return None  # then rows are items
    codes = [one for one in free if one.kind == "number" and _may_be_code(one)]
    found = [one for one in (*texts, *codes) if _tells_apart(roles, one, groups)]
    return found[0] if len(found) == 1 else None


def _is_about(roles: Roles, one: Profile, texts: Sequence[Profile]) -> bool:
    """Whether a column says something of a code beside it: the branch of each term."""
    codes = [other for other in texts if other is not one and CODE.fullmatch(other.key)]
    return any(not roles.differs_between(code.name, one) for code in codes)


def _may_be_code(one: Profile) -> bool:
    return any(like.fullmatch(one.key) for like in (CODE, KEY, UNNAMED))


def _is_grid(roles: Roles, item: Profile, label: Profile) -> bool:
    """Whether nearly every item comes with every label, as columns without names must."""
    n_items, n_labels = (len(set(roles.cells(one.name))) for one in (item, label))
    return len(roles.cells(item.name)) >= NEARLY_ALL * n_items * n_labels


def _tells_apart(roles: Roles, one: Profile, groups: Sequence[object]) -> bool:
    """Whether a column has few names, and none of them twice in a group."""
    cells = roles.cells(one.name)
    most = len(cells) if CODE.fullmatch(one.key) else MAX_LABELS
    few = 1 < len(set(cells)) <= min(most, len(cells) / 3)
    return few and not one.is_wordy and len(set(zip(groups, cells, strict=True))) == len(cells)


def _value(roles: Roles, label: Profile) -> Profile | None:
    """Return the only column that says yes or no of each label; else of its probability."""
    free = [one for one in roles.free.values() if one is not label and not one.is_outcome]
    said = [one for one in free if one.kind == "text" and _says_yes_or_no(one)]
    flags = [one for one in free if one.kind == "binary" and len(one.values) == 2]
    flags = flags or [one for one in free if UNNAMED.fullmatch(one.name) and one.values == [1]]
    shares = [one for one in free if one.is_probability]
    return next((found[0] for found in (said, flags, shares) if len(found) == 1), None)


def _says_yes_or_no(one: Profile) -> bool:
    return {"yes", "no"} <= {str(value).strip().casefold() for value in one.values} <= YES_NO_UNSURE


def _take(roles: Roles, item: Profile, label: Profile, value: Profile | None) -> None:
    take_item(roles, item, f"labels of one item share {item.name!r}")
    columns = [label.name] if value is None else [label.name, value.name]
    if value is not None and value.is_probability:
        roles.set("label_style", "probability")
    elif value is not None and value.kind == "text":
        roles.set("not_asked", UNSURE, "who is unsure says neither yes nor no")
    roles.take("labels", columns, f"{PAIRS}: {label.name!r} never repeats in one", layout="long")
