"""A column of label sets takes its role: what else may hold labels, which words are none."""

import re
from collections.abc import Sequence

from core.formats.shared.cells import parse_names
from core.formats.shared.companions import SPLITS
from core.formats.shared.guessing_flags import BY_PLACE, allows_layout
from core.formats.shared.mapping import LABEL_PREFIXES, NO_LABEL
from core.formats.shared.people_columns import is_numbered, share_names
from core.formats.shared.profiles import MAX_CLASSES, RIVALS, Profile, Roles, delimiter_of

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
CERTAIN_NAMES = SET_NAMES[:5]
SEVERAL = 0.1  # of the cells of a column of sets, at least
MAX_TWICE = 0.2  # of the cells that name a label twice
PLACES = "columns of class numbers, filled from the left"  # how reasons begin that are asked about
SECOND = re.compile(r"(secondary|second|other|additional|further)[ _.-](?P<what>.+)")
FIRST = ("primary", "main", "first", "principal")

MAX_NAME = 40  # letters of a label, where its column is not called one
AGAIN = 4  # times that a name stands in the first rows, in the mean


def splits_into_names(one: Profile) -> bool:
    """Whether a few names come again, seldom twice in one cell as the words of a text do."""
    delimiter, _ = delimiter_of(one)
    cells = [str(value).strip().split(delimiter) for value in one.values]
    again = sum(len(set(names)) < len(names) for names in cells)
    known = set().union(*cells)
    return len(known) < len(cells) / 2 and again < MAX_TWICE * len(cells)


def _lists_texts(one: Profile) -> bool:
    """Whether lists hold texts to read, hardly one of them twice, as labels would come."""
    if one.kind not in ("names", "other"):
        return False
    try:
        names = [name for value in one.values for name in parse_names(value, None)]
    except ValueError:
        return False
    return 2 * len(set(names)) > len(names) and Profile("", "text", names).is_wordy


def take_set(roles: Roles, one: Profile, reason: str) -> bool:
    if not allows_layout(roles, "delimited") or _lists_texts(one):
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
    others = [x for x in roles.may_be_labels if x is not one and not x.is_picture]
    others = [other for other in others if other.kind in ("text", "names", "other")]
    few = [other for other in others if is_few_names(other)]
    few = [other for other in few if not other.is_wordy or splits_into_names(other)]
    if one.name.startswith(LABEL_PREFIXES):
        return [other.name for other in few if other.name.startswith(LABEL_PREFIXES)]
    if one.key in CERTAIN_NAMES or roles.fields.get("row", "item") != "item":
        return []
    is_called = one.key in SET_NAMES or ENDS_IN_NAMES.fullmatch(one.key)
    may_be = [other for other in few if not is_called or _is_called_set(other)]
    return [other.name for other in may_be if lists_several(other)]


def note_sets_beside_flags(roles: Roles) -> None:
    """Say in the reason that lists of names stand beside 0/1 that no name calls labels."""
    reason = roles.reasons.get("labels", "")
    if roles.fields.get("row", "item") != "item" or not reason.startswith(BY_PLACE):
        return
    lists = [one for one in roles.may_be_labels if one.kind in ("text", "names")]
    lists = [one for one in lists if is_few_names(one)]
    lists = [one for one in lists if delimiter_of(one)[0] is None and lists_several(one)]
    if lists and RIVALS not in reason:
        roles.reasons["labels"] = reason + RIVALS + ", ".join(repr(one.name) for one in lists)


def numbers_called_labels(roles: Roles) -> bool:
    """`First_label,Second_label`: class numbers in columns that are filled from the left."""
    called = [one for one in _class_numbers(roles) if is_numbered(one.key) or _is_called_set(one)]
    return _take_places(roles, called, f"{len(called)} {PLACES}")


def numbers_from_the_left(roles: Roles) -> bool:
    """The same under any names; that is asked about."""
    numbers = [one for one in _class_numbers(roles) if one.values]
    return _take_places(roles, numbers, f"{PLACES} ({len(numbers)})")


def _class_numbers(roles: Roles) -> list[Profile]:
    return [one for one in roles.may_be_labels if one.holds_class_numbers or one.kind == "empty"]


def _take_places(roles: Roles, columns: Sequence[Profile], why: str) -> bool:
    if roles.fields.get("row", "item") != "item" or not allows_layout(roles, "delimited"):
        return False
    if not are_filled_from_the_left(roles, columns):
        return False
    roles.take("labels", [one.name for one in columns], why, layout="delimited")
    roles.set("delimiter", None)
    return True


def are_filled_from_the_left(roles: Roles, columns: Sequence[Profile]) -> bool:
    """Whether columns hold the class numbers of an item, one each, and nothing behind the last."""
    if len(columns) < 2 or not all(one.holds_class_numbers or not one.values for one in columns):
        return False
    rows = list(zip(*(roles.cells(one.name) for one in columns), strict=True))
    filled = [[cell for cell in row if cell not in (None, "")] for row in rows]
    starts = all(list(row[: len(said)]) == said for row, said in zip(rows, filled, strict=True))
    differ = all(len(set(said)) == len(said) for said in filled)
    several = {cell for said in filled if len(said) > 1 for cell in said}
    has_gaps = any(len(said) < len(columns) for said in filled)
    return starts and differ and has_gaps and len(several) > 2


def _is_called_set(one: Profile) -> bool:
    return one.key in (*SET_NAMES, *OTHER_SET_NAMES) or bool(ENDS_IN_NAMES.fullmatch(one.key))


def lists_several(one: Profile) -> bool:
    """Whether some cells hold several names."""
    delimiter, _ = delimiter_of(one)
    several = sum(len(parse_names(value, delimiter)) > 1 for value in one.values)
    return several >= SEVERAL * len(one.values)


def _more_of_a_view(roles: Roles, one: Profile, delimiter: str | None) -> list[str]:
    """Return columns of the same names that differ between views: a person's second label."""
    texts = [x for x in roles.may_be_labels if x.kind == one.kind and x is not one]
    texts = [other for other in texts if not other.is_wordy]
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


def is_few_names(one: Profile) -> bool:
    delimiter, _ = delimiter_of(one)
    try:
        cells = [set(parse_names(value, delimiter)) for value in one.values]
    except ValueError:  # lists of something else
        return False
    names = set().union(*cells)
    is_split = {name.casefold() for name in names} <= SPLITS
    few = 2 <= len(names) <= MAX_CLASSES and AGAIN * len(names) <= sum(map(len, cells))
    return few and not is_split and max(map(len, names)) <= MAX_NAME


def _no_label_words(one: Profile, delimiter: str | None) -> tuple[str, ...]:
    """Return the words for no label; one that stands beside labels is a label."""
    beside: set[str] = set()
    for value in one.values:
        parts = str(value).strip("[]").split(delimiter or ",")
        if len(parts) > 1:
            beside.update(part.strip(" '\"").casefold() for part in parts)
    return tuple(word for word in NO_LABEL if word not in beside)
