"""Labels as sets of names in one column: by the column's name, by its lists, by names that repeat.

The finders that `guessing` asks, each for one way to tell it; true when it found some.
"""

import re

from core.formats.shared.answers import loaded
from core.formats.shared.cells import parse_names
from core.formats.shared.companions import SPLITS
from core.formats.shared.guessing_flags import MAX_RATED, allows_layout
from core.formats.shared.mapping import LABEL_PREFIXES, NO_LABEL
from core.formats.shared.people_columns import find_alike_columns, is_numbered, share_names
from core.formats.shared.profiles import (
    DERIVED,
    MAX_CLASSES,
    RIVALS,
    Kind,
    Profile,
    Roles,
    delimiter_of,
)

SET_NAMES = (
    *("candidate_labels", "candidates", "partial_labels", "labels", "label", "tags", "classes"),
    *("categories", "genres", "choices", "topics", "given_label", "tag_string", "tag_list"),
)
OTHER_SET_NAMES = (
    *("accept", "annotations", "annotation", "answers", "answer", "responses", "response"),
    *("votes", "vote", "judgments", "judgements", "judgment", "judgement", "emotions", "emotion"),
    *("category", "tag", "class", "class_label", "choice", "topic", "genre", "sentiment", "rating"),
    *("predictions", "prediction", "predicted_labels", "attributes", "keywords", "toxicity"),
    *("intent", "intents", "code", "codes", "codings", "result", "results", "taskanswers"),
    *("class_name", "label_name", "labelname", "target_ind"),
)
ENDS_IN_NAMES = re.compile(
    r".*[ _.:-](labels?|tags?|categories|genres?|classes|topics|emotions|findings|keywords)"
    r"([ _](string|list|names?))?|.*[ _](category|class)"
)
ENDS_IN_RATINGS = re.compile(
    r".*[ _.:-](ratings?|answers?|responses?|votes?|judge?ments?|verdicts?)"
)
CERTAIN_NAMES = SET_NAMES[:5]
SEVERAL = 0.1  # of the cells of a column of sets, at least
MAX_TWICE = 0.2  # of the cells that name a label twice
CLASS_NUMBERS = re.compile(r"\s*\d{1,5}(\s*[,;| ]\s*\d{1,5})*\s*")
UNNAMED = re.compile(r"column\d+")  # of a table without a header
SECOND = re.compile(r"(secondary|second|other|additional|further)[ _.-](?P<what>.+)")
FIRST = ("primary", "main", "first", "principal")

REPEATS = (
    "the first column with a few names that come again"  # how reasons begin that are asked about
)
MAX_NAME = 40  # letters of a label, where its column is not called one
_AGAIN = 4  # times that a name stands in the first rows, in the mean


def named_set(roles: Roles) -> bool:
    kinds: tuple[Kind, ...] = ("text", "names", "numbers", "other", "empty")
    if roles.fields.get("row") == "view":  # a class number per view
        kinds = (*kinds, "number", "binary")
    found = roles.named(SET_NAMES, *kinds)
    if found is None and roles.fields.get("row", "item") == "item":
        numbers = roles.named(("labels", "label"), "number")
        found = numbers if numbers is not None and numbers.holds_class_numbers else None
    if found is None or (found.kind == "empty" and list_of_names(roles)):
        return found is not None
    return _take_set(roles, found, f"the column is called {found.name!r}")


def other_named_set(roles: Roles) -> bool:
    """A column of names under a name that may mean something else."""
    kinds: tuple[Kind, ...] = ("text", "names", "other")
    if roles.fields.get("row") == "view":
        kinds = (*kinds, "number", "binary")
    free = [one for one in roles.free.values() if one.kind in kinds]
    free = [one for one in free if not one.is_truth and not roles.is_constant(one.name)]
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
    if found is None or (found.is_wordy and not _splits_into_names(found)):
        return False
    return _take_set(roles, found, f"the column is called {found.name!r}")


def _splits_into_names(one: Profile) -> bool:
    """Whether a few names come again, seldom twice in one cell as the words of a text do."""
    delimiter, _ = delimiter_of(one)
    cells = [str(value).strip().split(delimiter) for value in one.values]
    again = sum(len(set(names)) < len(names) for names in cells)
    known = set().union(*cells)
    return len(known) < len(cells) / 2 and again < MAX_TWICE * len(cells)


def varying_names(roles: Roles) -> bool:
    """In rows of views: the only column of a few names that differ between views of an item."""
    if roles.fields.get("row") != "view" or roles.fields.get("id") is None:
        return False
    texts = [one for one in roles.free.values() if one.kind in ("text", "names")]
    texts = [one for one in texts if not one.is_wordy and not one.is_outcome and not one.is_truth]
    texts = [one for one in texts if not _is_about_people(roles, one)]
    few = [one for one in texts if len(set(map(str, one.values))) <= max(10, len(one.values) / 5)]
    few = few or [one for one in texts if _is_few_names(one)]
    numbers = [one for one in roles.free.values() if one.holds_class_numbers]
    rated = [one for one in numbers if len(set(one.values)) <= MAX_RATED]
    for kind, columns in (("names", few), ("numbers", rated)):
        found = [one for one in columns if roles.differs_between_views(one)]
        if len(found) == 1:
            why = f"only {found[0].name!r} holds a few {kind} that differ between views"
            return _take_set(roles, found[0], why)
    return False


def _is_about_people(roles: Roles, one: Profile) -> bool:
    """Whether nobody who views items ever has another value: their country, not their answer."""
    source = roles.fields.get("source")
    return source is not None and not roles.differs_between(source, one)


def class_numbers(roles: Roles) -> bool:
    """Cells such as 27 or 4,27: numbers of classes, several in some of them."""
    for one in roles.free.values():
        texts = [str(value) for value in one.values] if one.kind == "text" else []
        if (
            texts
            and all(map(CLASS_NUMBERS.fullmatch, texts))
            and not all(map(str.isdecimal, texts))
        ):
            return _take_set(roles, one, f"{one.name!r} holds lists of class numbers")
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
                return _take_set(roles, one, f"no header; values of {one.name!r} repeat")
    return False


def list_of_names(roles: Roles) -> bool:
    free = [one for one in roles.free.values() if not one.is_outcome]
    found = [one for one in free if one.kind == "names" and any(one.values)]
    found += [one for one in free if _lists_objects(one) and _lists_few_names(one)]
    found = found or [one for one in free if _are_ticks(one)]
    if len(found) > 1:
        found = [one for one in found if _repeats_names(one)]
    return len(found) == 1 and _take_set(roles, found[0], "the only column with lists of names")


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
    free = [one for one in roles.free.values() if not one.is_outcome and not one.is_truth]
    for one in free:
        if roles.is_constant(one.name):
            continue
        is_object = one.kind == "other" and all(isinstance(value, dict) for value in one.values)
        if one.kind != "text" and not is_object:
            continue
        if is_object or all(str(value).strip()[:1] in ("[", "{", "") for value in one.values):
            if _lists_few_names(one):
                return _take_set(roles, one, f"lists of few names fill {one.name!r}")
            continue
        for delimiter in ("|", ";", "#"):
            split = [set(str(value).split(delimiter)) - {""} for value in one.values]
            several = sum(len(names) > 1 for names in split)
            known = set().union(*split)
            is_short = max(map(len, known), default=0) <= MAX_NAME
            if several >= 0.3 * len(split) and len(known) < len(split) / 2 and is_short:
                if find_alike_columns(roles, one):
                    return True
                return _take_set(roles, one, f"few names joined by {delimiter!r} fill {one.name!r}")
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


def names_with_commas(roles: Roles) -> bool:
    """The only text column whose cells are a few short names, several with commas between."""
    found = []
    for one in roles.free.values():
        cells = [] if one.is_outcome or one.kind != "text" else list(map(str, one.values))
        names = [[name.strip() for name in cell.split(",")] for cell in cells]
        several = sum(len(each) > 1 for each in names)
        known = {name for each in names for name in each}
        is_short = max(map(len, known), default=MAX_NAME) < MAX_NAME
        if cells and is_short and several >= 0.1 * len(cells) and 4 * len(known) < len(cells):
            found.append(one)
    why = "the only column with a few names between commas"
    return len(found) == 1 and _take_set(roles, found[0], why)


def names_that_repeat(roles: Roles) -> bool:
    found = _columns_that_repeat(roles)
    if not found or len(roles.profiles) < 2:
        return False
    others = ", ".join(repr(one.name) for one in found[1:])
    return _take_set(roles, found[0], REPEATS + RIVALS * bool(others) + others)


def _take_set(roles: Roles, one: Profile, reason: str) -> bool:
    if not allows_layout(roles, "delimited"):
        return False
    delimiter, why = delimiter_of(one)
    beside = _more_of_a_view if roles.fields.get("row") == "view" else _first_beside_second
    more = beside(roles, one, delimiter)
    reason += "".join(f"; {name!r} holds the same names" for name in more)
    rivals = [] if RIVALS in reason else [x for x in _rivals(roles, one) if x not in more]
    reason += RIVALS * bool(rivals) + ", ".join(map(repr, rivals))
    roles.take("labels", [one.name, *more], reason, layout="delimited")
    roles.set("delimiter", delimiter, why)
    if roles.open("no_label"):
        roles.set("no_label", _no_label_words(one, delimiter))
    return True


def _rivals(roles: Roles, one: Profile) -> list[str]:
    """Return other columns that may as well hold the labels of an item.

    They have several names in a cell; and are called categories, tags or the like as this one is,
    or this one is not. Or all are called `label_topic`, `label_tone`.
    """
    others = [other for other in roles.free.values() if other is not one and not other.is_truth]
    others = [other for other in others if not (other.is_outcome or other.is_picture)]
    others = [other for other in others if other.kind in ("text", "names", "other")]
    few = [other for other in others if _is_few_names(other)]
    if one.name.startswith(LABEL_PREFIXES):
        return [other.name for other in few if other.name.startswith(LABEL_PREFIXES)]
    if one.key in CERTAIN_NAMES or roles.fields.get("row", "item") != "item":
        return []
    is_called = one.key in SET_NAMES or ENDS_IN_NAMES.fullmatch(one.key)
    may_be = [other for other in few if not is_called or _is_called_set(other)]
    return [other.name for other in may_be if _lists_several(other)]


def _is_called_set(one: Profile) -> bool:
    return one.key in (*SET_NAMES, *OTHER_SET_NAMES) or bool(ENDS_IN_NAMES.fullmatch(one.key))


def _lists_several(one: Profile) -> bool:
    """Whether some cells hold several names."""
    delimiter, _ = delimiter_of(one)
    several = sum(len(parse_names(value, delimiter)) > 1 for value in one.values)
    return several >= SEVERAL * len(one.values)


def _more_of_a_view(roles: Roles, one: Profile, delimiter: str | None) -> list[str]:
    """Return columns of the same names that differ between views: a person's second label."""
    texts = [other for other in roles.free.values() if other.kind == one.kind and other is not one]
    texts = [other for other in texts if not (other.is_outcome or other.is_truth or other.is_wordy)]
    texts = [other for other in texts if roles.fields.get("id") and one.kind in ("text", "names")]
    found = [other for other in texts if share_names([one, other], delimiter)]
    return [other.name for other in found if roles.differs_between_views(other)]


def _first_beside_second(roles: Roles, one: Profile, delimiter: str | None) -> list[str]:
    """Return `primary_label`, where `secondary_labels` holds what else is there."""
    match = SECOND.fullmatch(one.key)
    if match is None:
        return []
    stem = match["what"].removesuffix("s")
    called = re.compile(rf"({'|'.join(FIRST)})[ _.-]{re.escape(stem)}s?")
    texts = [other for other in roles.free.values() if other.kind in ("text", "names")]
    found = [other for other in texts if called.fullmatch(other.key)]
    return [other.name for other in found if share_names([one, other], delimiter)]


def _same_names_by_people(columns: list[Profile]) -> bool:
    """Whether columns called alike, `clip_labels` and `human_labels`, hold the same names."""
    if len(columns) < 2 or any(SECOND.fullmatch(one.key) for one in columns):
        return False
    return share_names(columns, delimiter_of(columns[0])[0])


def _columns_that_repeat(roles: Roles) -> list[Profile]:
    """Return the columns of a few short names each, whatever they are called."""
    texts = [one for one in roles.free.values() if one.kind in ("text", "names")]
    texts = [one for one in texts if not (one.is_outcome or one.is_truth or one.is_wordy)]
    texts = [one for one in texts if not (one.is_never_feature or one.is_picture)]
    texts = [one for one in texts if not _is_about_people(roles, one)]
    return [one for one in texts if not one.holds_marks and _is_few_names(one)]


def _is_few_names(one: Profile) -> bool:
    delimiter, _ = delimiter_of(one)
    try:
        cells = [set(parse_names(value, delimiter)) for value in one.values]
    except ValueError:  # lists of something else
        return False
    names = set().union(*cells)
    is_split = {name.casefold() for name in names} <= SPLITS
    few = 2 <= len(names) <= MAX_CLASSES and _AGAIN * len(names) <= sum(map(len, cells))
    return few and not is_split and max(map(len, names)) <= MAX_NAME


def _no_label_words(one: Profile, delimiter: str | None) -> tuple[str, ...]:
    """Return the words for no label; one that stands beside labels is a label."""
    beside: set[str] = set()
    for value in one.values:
        parts = str(value).strip("[]").split(delimiter or ",")
        if len(parts) > 1:
            beside.update(part.strip(" '\"").casefold() for part in parts)
    return tuple(word for word in NO_LABEL if word not in beside)
