"""Columns that hold more of the labels that another column holds."""

import re

from core.formats.shared.people import share_names
from core.formats.shared.profiles import Profile, Roles

SECOND = re.compile(r"(secondary|second|other|additional|further)[ _.-](?P<what>.+)")
FIRST = ("primary", "main", "first", "principal")


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
