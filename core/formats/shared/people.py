"""Find out whether a table tells what several sources said, and where: people, models or rules.

Three ways to tell it: a row per view (an item and who looked at it), a column per person, or a cell
with the answers of all. Names of columns speak first, then the cells must bear them out.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from core.formats.shared.people_cells import find_answers
from core.formats.shared.people_columns import OWNED, find_columns, own_columns
from core.formats.shared.people_counts import find_counts
from core.formats.shared.people_groups import find_groups
from core.formats.shared.people_names import GENERIC, RATER, WHO
from core.formats.shared.profiles import Profile, Roles, delimiter_of

ITEM = re.compile(
    r"_?(item|task|unit|rev|comment|tweet|post|text|doc|document|sentence|question|query|example|observation"
    r"|input_hash|task_hash|sample|image|img|picture|media|file|clip|record|instance|object|pair|conv|row|data"
    r"|subject|hit)[ _-]?(id|ids|nr|no|number|name|key|idx)?",
    re.IGNORECASE,
)
ENDS_IN_ITEM = re.compile(
    r"(.+[ _.-])?(file|file[ _]?name|path|clip|image|picture|video|audio|track|song|utterance"
    r"|patient|case|page|url|article|product)"
)
ANSWERED = re.compile(r"(output:|answer\.|golden:|feature_)")  # said of an item, which it names not
LISTED = (",", ";", "|")  # between people in one cell


def find_people(roles: Roles) -> None:
    """Give the columns their roles where several sources speak; leave them free otherwise."""
    row = roles.fields.get("row")
    if row == "item" and not roles.open("layout"):
        return
    if row in (None, "view") and _find_views(roles, stated=row == "view"):
        return
    if roles.open("labels") and row in (None, "people"):
        if find_groups(roles) or find_columns(roles, row == "people"):
            return
    if row == "people" and not roles.open("labels") and roles.open("sources"):
        own_columns(roles)
    if row in (None, "item") and roles.open("labels") and not find_counts(roles):
        find_answers(roles)


def _find_views(roles: Roles, stated: bool) -> bool:
    """Items that repeat, each time with another rater."""
    raters = [one for one in roles.free.values() if _is_rater(one)]
    raters = [one for one in raters if one.kind in ("text", "number", "binary")]
    raters = [one for one in raters if _may_name_people(one)]
    if not roles.open("source"):
        raters = [
            roles.profiles[name] for name in (roles.fields["source"],) if name in roles.profiles
        ]
    raters.sort(key=lambda one: (not _are_few(roles.cells(one.name)), not _is_certain(one)))
    for rater in raters:
        who = roles.cells(rater.name)
        item = _item_of(roles, who, rater.name)
        if item is not None and not _may_view(roles, rater, item):
            continue
        if item is not None:
            seen = roles.cells(item.name)
            n, m = len(set(seen)), len(seen)
            why = f"{item.name!r} repeats ({n:,} items in the first {m:,} rows), each time with "
            roles.set("row", "view", why + f"another {rater.name!r}: a row is one person's view")
            roles.set("source", rater.name, f"the column is called {rater.name!r}")
            roles.free.pop(rater.name, None)
            take_item(roles, item, f"views of one item share {item.name!r}")
            _leave_out_facts(roles, rater)
            return True
    if stated and roles.open("id"):
        item = _item_of(roles, None, "")
        if item is not None:
            take_item(roles, item, f"views of one item share {item.name!r}")
    return stated


def _is_rater(one: Profile) -> bool:
    return any(RATER.fullmatch(key) for key in (one.key, one.last_key))


def _leave_out_facts(roles: Roles, rater: Profile) -> None:
    """Set aside columns about the raters themselves, such as `annotator_age`."""
    stem = re.match(rf"_?({WHO})", rater.key)
    if stem is not None:
        for name, one in list(roles.free.items()):
            is_fact = one.key.startswith((f"{stem[0]}_", f"{stem[0]}."))
            if is_fact and not OWNED.fullmatch(one.key):
                roles.set_aside([name])


def take_item(roles: Roles, item: Profile, reason: str) -> None:
    """Have a column name the items, unless the caller stated another."""
    if item.is_wordy:  # a text that names itself is read and shown as well
        roles.set("id", item.name, f"equal {item.name!r} are one item")
    else:
        roles.take("id", [item.name], reason)


def _may_name_people(one: Profile) -> bool:
    """Whether cells may be names, not texts."""
    if one.is_wordy or not (_is_certain(one) or one.has_no_spaces):
        return False
    cells = {value for value in one.values if isinstance(value, str)}
    delimiter, _ = delimiter_of(one)
    if delimiter is None and cells:
        return False
    lists = [cell for cell in cells if delimiter in LISTED and delimiter in cell]
    names = {name for cell in cells for name in cell.split(delimiter)}
    return not lists or len(names) >= len(cells)


def _are_few(who: Sequence[Any]) -> bool:
    """Whether the same few names come again and again."""
    known = [cell for cell in who if cell is not None]
    return len(set(known)) <= max(6, len(known) / 2)


def _may_view(roles: Roles, rater: Profile, item: Profile) -> bool:
    """Whether people view items: users of rows that have links of their own wrote those rows."""
    if not (_is_certain(rater) or _is_called_item(item)) and _names_every_row(roles):
        return False
    if not _is_certain(rater) and _wrote_rows(roles, item):
        return False
    return _are_few(roles.cells(rater.name)) or _may_be_seen_once(roles, rater, item)


def _wrote_rows(roles: Roles, item: Profile) -> bool:
    """Whether every row of an item has another text: users wrote comments under one article."""
    texts = [one for one in roles.free.values() if one.is_wordy and one is not item]
    return any(one.distinct and len(one.values) == len(item.values) for one in texts)


def _names_every_row(roles: Roles) -> bool:
    """Whether pictures or addresses are different in every row."""
    texts = [one for one in roles.free.values() if one.kind == "text" and len(one.values) > 1]
    linked = [one for one in texts if one.is_picture or str(one.values[0]).startswith("http")]
    return any(one.distinct for one in linked)


def _is_called_item(item: Profile) -> bool:
    return bool(item.is_id_named or ITEM.fullmatch(item.last_key) or item.is_wordy)


def _may_be_seen_once(roles: Roles, rater: Profile, item: Profile) -> bool:
    """Whether people who answer hardly more than once view items, and do not write them.

    Then the item is called one, or is a text; and what any user may write, it must not differ
    between rows of one item.
    """
    if not _is_called_item(item):
        return False
    texts = [one for one in roles.free.values() if one.is_wordy and one is not item]
    items = roles.cells(item.name)
    return _is_certain(rater) or not any(
        len(set(zip(items, roles.cells(one.name), strict=True))) > len(set(items)) for one in texts
    )


def rater_named_in(columns: Iterable[str]) -> str | None:
    """Return the column that is surely called a rater, if there is one."""
    found = (Profile(name, "text", []) for name in columns)
    return next((one.name for one in found if _is_rater(one) and _is_certain(one)), None)


def _is_certain(one: Profile) -> bool:
    return not re.fullmatch(r"(users?|sources?|who|models?|username|e-?mail).*", one.key)


def _item_of(roles: Roles, who: Sequence[Any] | None, rater: str) -> Profile | None:
    """Return the column that names items: repeated, mostly not by one rater; the finest."""
    if not roles.open("id"):
        stated = roles.column_of("id")
        return stated if stated is not None and _repeats(roles.cells(stated.name), who) else None
    free = [one for one in roles.free.values() if one.name != rater and not _is_rater(one)]
    free = [one for one in free if not ANSWERED.match(one.key)]
    free = [one for one in free if not any(isinstance(v, float) and v % 1 for v in one.values)]
    called = [one for one in free if ITEM.fullmatch(one.last_key) or one.key.endswith("id")]
    if any(one.key == "_input_hash" for one in called):  # Prodigy's tasks ask about one label each
        called = [one for one in called if one.key != "_task_hash"]
    called += [one for one in free if ENDS_IN_ITEM.fullmatch(one.key) and one not in called]
    short = [one for one in free if one.kind == "text" and one.has_no_spaces and not one.is_outcome]
    for group in (
        [one for one in free if one.is_id_named],
        called,
        [one for one in free if one.kind == "text" and one.is_wordy],
        [one for one in short if not called and not GENERIC.fullmatch(one.last_key)],
    ):
        fitting = [one for one in group if _repeats(roles.cells(one.name), who)]
        if fitting:
            return max(fitting, key=lambda one: len(set(roles.cells(one.name))))
    return None


def _repeats(items: Sequence[Any], who: Sequence[Any] | None) -> bool:
    known = [item for item in items if item not in (None, "")]
    n_items = len(set(known))
    if len(known) < 0.95 * len(items) or n_items < 2 or n_items == len(known):
        return False
    if who is None:
        return True
    pairs = Counter(zip(items, who, strict=True))
    several = len(pairs) - len({item for item, _ in pairs})
    return several > 0 and len(set(who)) > 1 and n_items > len(known) ** 0.5 / 4
