"""Columns of names: more labels of another column, and what nothing but values tells."""

import re

from core.formats.shared.cells import parse_names
from core.formats.shared.mapping import NO_LABEL
from core.formats.shared.people import share_names
from core.formats.shared.profiles import MAX_CLASSES, Profile, Roles, delimiter_of

SECOND = re.compile(r"(secondary|second|other|additional|further)[ _.-](?P<what>.+)")
FIRST = ("primary", "main", "first", "principal")

REPEATS = (
    "the only column with a few names that come again"  # how reasons begin that are asked about
)
SPLITS = {"train", "training", "test", "testing", "val", "valid", "validation", "dev", "eval"}
MAX_NAME = 40  # letters of a label, where its column is not called one
_AGAIN = 4  # times that a name stands in the first rows, in the mean


def more_of_a_view(roles: Roles, one: Profile, delimiter: str | None) -> list[str]:
    """Return columns of the same names that differ between views: a person's second label."""
    texts = [other for other in roles.free.values() if other.kind == one.kind and other is not one]
    texts = [other for other in texts if not (other.is_outcome or other.is_truth or other.is_wordy)]
    texts = [other for other in texts if roles.fields.get("id") and one.kind in ("text", "names")]
    found = [other for other in texts if share_names([one, other], delimiter)]
    return [other.name for other in found if roles.differs_between_views(other)]


def first_beside_second(roles: Roles, one: Profile, delimiter: str | None) -> list[str]:
    """Return `primary_label`, where `secondary_labels` holds what else is there."""
    match = SECOND.fullmatch(one.key)
    if match is None:
        return []
    stem = match["what"].removesuffix("s")
    called = re.compile(rf"({'|'.join(FIRST)})[ _.-]{re.escape(stem)}s?")
    texts = [other for other in roles.free.values() if other.kind in ("text", "names")]
    found = [other for other in texts if called.fullmatch(other.key)]
    return [other.name for other in found if share_names([one, other], delimiter)]


def same_names_by_people(columns: list[Profile]) -> bool:
    """Whether columns called alike, `clip_labels` and `human_labels`, hold the same names."""
    if len(columns) < 2 or any(SECOND.fullmatch(one.key) for one in columns):
        return False
    return share_names(columns, delimiter_of(columns[0])[0])


def names_that_repeat(roles: Roles) -> list[Profile]:
    """Return the columns of a few short names each, whatever they are called."""
    texts = [one for one in roles.free.values() if one.kind in ("text", "names")]
    texts = [one for one in texts if not (one.is_outcome or one.is_truth or one.is_wordy)]
    texts = [one for one in texts if not (one.is_never_feature or one.is_picture)]
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


def no_label_words(one: Profile, delimiter: str | None) -> tuple[str, ...]:
    """Return the words for no label; one that stands beside labels is a label."""
    beside: set[str] = set()
    for value in one.values:
        parts = str(value).strip("[]").split(delimiter or ",")
        if len(parts) > 1:
            beside.update(part.strip(" '\"").casefold() for part in parts)
    return tuple(word for word in NO_LABEL if word not in beside)
