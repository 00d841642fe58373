"""Labels one by one: a row per item and label, perhaps with a value and who said it."""

import re

from core.formats.shared.answers import loaded
from core.formats.shared.cells import parse_names
from core.formats.shared.guessing_features import TEXT_NAMES
from core.formats.shared.guessing_flags import allows_layout
from core.formats.shared.people import ITEM, take_item
from core.formats.shared.profiles import NEARLY_ALL, UNNAMED, Profile, Roles, delimiter_of

VALUE_NAMES = (
    *("value", "label_value", "offered", "present", "candidate", "weight", "vote", "is_true"),
)
PROBABILITY_NAMES = ("confidence", "probability", "prob", "score")
IGNORED = ("ignore",)
PLACE = re.compile(
    r"[xywh][_ ]?(min|max|\d)?|[xy]_?cent(er|re)|(width|height|left|top|right|bottom)|area"
    r"|(on|off)set|((start|end|begin|stop)([ _]?(time|s|ms|sec|seconds|frame))?)|duration|length"
)
TRIPLES = "no header; no item and person come twice, which are taken"
MAX_LABELS = 50
MAX_MARKS = 4
LONGER = "labels may be shorter"  # how reasons begin that are asked about
MARKS = ("_", "-", "/", ":", "|", "#", ".")  # between item and label in one name
LONG_NAMES = (
    *("label", "labels", "labelname", "label_name", "label_id", "tag", "class", "class_name"),
    *("concept",),
)


def find_triples(roles: Roles) -> None:
    """A table without a header of items, people and what each said: item and person never twice.

    Of the two, the column with more names is taken for the items; `questions` asks.
    """
    columns = list(roles.profiles.values())
    stated = not all(map(roles.open, ("id", "labels", "layout")))
    stated = stated or roles.fields.get("row", "view") != "view"
    if stated or len(columns) != 3 or not all(UNNAMED.fullmatch(one.name) for one in columns):
        return
    *two, label = columns
    cells = [roles.cells(one.name) for one in columns]
    n, (n_first, n_second, n_labels) = len(cells[0]), [len(set(column)) for column in cells]
    plain = all(one.kind in ("text", "number", "binary") for one in columns)
    plain = plain and all(one.has_no_spaces for one in two)
    whole = all(one.kind == "text" or all(type(v) is int for v in one.values) for one in columns)
    few = 2 <= n_labels <= min(MAX_LABELS, n / 4, max(n_first, n_second) / 2)
    pairs = len(set(zip(*cells[:2], strict=True)))
    if label.kind == "binary" and pairs == n >= NEARLY_ALL * n_first * n_second:
        return  # every item has each of the others: labels, for seldom is everybody asked
    if not (plain and whole and few and max(n_first, n_second) < n) or pairs < NEARLY_ALL * n:
        return
    item, person = two if n_first >= n_second else two[::-1]
    if roles.fields.get("source") == item.name:
        item, person = person, item
    roles.set("row", "view", f"{TRIPLES}: {item.name!r} for items, {person.name!r} for people")
    roles.take("id", [item.name], f"{item.name!r} has more names than {person.name!r}")
    roles.set("source", person.name)
    roles.free.pop(person.name, None)
    layout = "one_hot" if label.kind == "binary" else "delimited"
    roles.take("labels", [label.name], f"{label.name!r} has few names", layout=layout)
    if layout == "delimited":
        roles.set("delimiter", *delimiter_of(label))


def find_composite_ids(roles: Roles) -> None:
    """Two columns: `ID_7f_epidural` names item and label, the other holds its value.

    Or it is filled where there is the label. Where `left` and `a_left` may both be labels, the
    longer ones are taken; `questions` asks.
    """
    if not all(map(roles.open, ("id", "labels", "layout"))) or "row" in roles.fields:
        return
    columns = [one for one in roles.free.values() if not one.is_outcome]
    if len(columns) != 2 or columns[0].kind != "text" or not columns[0].has_no_spaces:
        return
    key, value = columns
    is_filled = value.kind == "text" and "" in roles.cells(value.name)
    if not (value.kind == "binary" or value.is_probability or is_filled):
        return
    for mark in MARKS:
        found = [labels for n in range(1, MAX_MARKS) if (labels := _labels_behind(key, mark, n))]
        if found:
            why = f"{key.name!r} names an item and, behind {mark!r}, one of {len(found[-1])} labels"
            why = why if len(found) == 1 else f"{LONGER}: {why}"
            roles.take("id", [key.name], why)
            style = "probability" if value.is_probability else "tick" if is_filled else "0/1"
            about = {"layout": "long", "label_after": mark, "label_style": style}
            names = {"label_names": tuple(sorted(found[-1]))} if len(found) > 1 else {}
            roles.take("labels", [value.name], f"{value.name!r} tells of each", **about, **names)
            return


def _labels_behind(key: Profile, mark: str, n: int) -> set[str]:
    """Return what stands behind the last few marks, if it is a label of every item."""
    parts = [str(cell).rsplit(mark, n) for cell in key.values]
    if not all(len(part) == n + 1 and all(part) for part in parts):
        return set()
    pairs = {(item, mark.join(rest)) for item, *rest in parts}
    items, labels = {item for item, _ in pairs}, {label for _, label in pairs}
    are_names = not any(label[:1].isdecimal() for label in labels)
    is_grid = NEARLY_ALL * len(items) * len(labels) <= len(pairs) >= NEARLY_ALL * len(parts)
    few = 2 <= len(labels) <= MAX_LABELS and len(items) > 1
    return labels if are_names and is_grid and few else set()


def marked_regions(roles: Roles) -> bool:
    """Rows of the VGG Image Annotator: a region of a picture, its options in an object."""
    item = roles.column_of("id") or roles.named(["filename", "#filename"], "text")
    if item is None or roles.named(["region_shape_attributes"]) is None:
        return False
    for one in map(roles.named, (["region_attributes"], ["file_attributes"])):
        if one is not None and allows_layout(roles, "long") and _name_options(one):
            take_item(roles, item, f"regions of one picture share {item.name!r}")
            why = f"{one.name!r} holds the options that were chosen"
            roles.take("labels", [one.name], why, layout="long", answers="objects")
            return True
    return False


def _name_options(one: Profile) -> bool:
    cells = [loaded(value) for value in one.values]
    try:
        return any(parse_names(cell, None) for cell in cells if isinstance(cell, dict) and cell)
    except ValueError:
        return False


def long_labels(roles: Roles) -> bool:
    label = roles.named(LONG_NAMES, "text", "number", "binary", "empty") or _timed_label(roles)
    if label is None or not allows_layout(roles, "long"):
        return False
    accepted = _accepted(roles)
    value = accepted or roles.named(VALUE_NAMES, "binary", "number", "text") or _probability(roles)
    id_column = roles.column_of("id") or _repeated_item(roles, label, value)
    if accepted is not None and id_column is None:
        id_column = roles.named(("_input_hash", *TEXT_NAMES))
    if id_column is None:
        return False
    if roles.fields.get("row") == "view":
        return _long_views(roles, label)
    repeats = 1 - len(set(map(str, id_column.values))) / max(1, len(id_column.values))
    if value is None and (label.key in ("labels", "class", "tag") or repeats < 0.2):
        return False
    if value is not None and accepted is None and repeats == 0 and len(roles.profiles) > 3:
        return False
    take_item(roles, id_column, f"labels of one item share {id_column.name!r}")
    if value is not None and value.is_probability:
        roles.set("label_style", "probability")
    columns = [label.name] if value is None else [label.name, value.name]
    why = "ids repeat" if value is None else f"there is a column {value.name!r} beside it"
    roles.take("labels", columns, f"{label.name!r} names one label per row: {why}", layout="long")
    return True


def _timed_label(roles: Roles) -> Profile | None:
    """Return the label of a sound's or a film's event: it begins and ends somewhere."""
    if sum(PLACE.fullmatch(one.key) is not None for one in roles.free.values()) < 2:
        return None
    ends = [one for one in roles.free.values() if one.key.endswith(("_label", "_class"))]
    return ends[0] if len(ends) == 1 and ends[0].kind == "text" else None


def _probability(roles: Roles) -> Profile | None:
    found = roles.named(PROBABILITY_NAMES, "binary", "number")
    fits = found is not None and (found.kind == "binary" or found.is_probability)
    return found if fits else None


def _accepted(roles: Roles) -> Profile | None:
    """Return Prodigy's column of accept, reject and ignore, which is no answer."""
    found = roles.named(["answer"], "text")
    if found is None or not {"accept"} <= {*found.values} <= {"accept", "reject", *IGNORED}:
        return None
    roles.set("not_asked", IGNORED)
    return found


def _repeated_item(roles: Roles, label: Profile, value: Profile | None) -> Profile | None:
    """Return the column that names an item again for each of its labels, where each has a value."""
    if value is None:
        return _marked_item(roles, label)
    for one in roles.free.values():
        is_item = ITEM.fullmatch(one.last_key) and one.name not in (label.name, value.name)
        if is_item and not one.distinct:
            pairs = list(zip(roles.cells(one.name), roles.cells(label.name), strict=True))
            return one if len(set(pairs)) == len(pairs) else None
    return None


def _marked_item(roles: Roles, label: Profile) -> Profile | None:
    """Return the column that names an item again for whatever is marked in it.

    Rows that have another text or other numbers, but for where the mark is, are items themselves.
    """
    rest = [one for one in roles.free.values() if one is not label and one.kind != "empty"]
    items = [one for one in rest if ITEM.fullmatch(one.last_key) or one.is_picture]
    for item in [one for one in items if not one.distinct and one.kind in ("text", "number")]:
        told = [one for one in rest if one is not item and not PLACE.fullmatch(one.key)]
        told = [one for one in told if one.is_wordy or one.kind in ("number", "binary", "numbers")]
        told = [one for one in told if not one.is_never_feature]
        if not any(roles.differs_between(item.name, one) for one in told):
            return item
    return None


def _long_views(roles: Roles, label: Profile) -> bool:
    """A row per item, rater and label, with the rater's yes or no."""
    value = _accepted(roles) or roles.named(VALUE_NAMES, "binary") or _probability(roles)
    value = value or _yes_or_no(roles, label)
    if value is None:
        return False
    if value.is_probability:
        roles.set("label_style", "probability")
    why = f"{value.name!r} tells what each view says of the label in {label.name!r}"
    roles.take("labels", [label.name, value.name], why, layout="long")
    return True


def _yes_or_no(roles: Roles, label: Profile) -> Profile | None:
    """Return the only column of yes and no, where a person says one of each label of an item."""
    item, person = roles.fields["id"], roles.fields.get("source")
    if person is None:
        return None
    views = list(zip(roles.cells(item), roles.cells(person), strict=True))
    answers = set(zip(views, roles.cells(label.name), strict=True))
    marks = [one for one in roles.free.values() if one is not label and one.holds_marks]
    marks = [one for one in marks if roles.differs_between_views(one)]
    each_once = len(set(views)) < len(answers) == len(views)
    return marks[0] if len(marks) == 1 and each_once else None
