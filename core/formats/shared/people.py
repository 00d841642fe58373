"""Find out whether a table tells what several sources said, and where: people, models or rules.

Three ways to tell it: a row per view (an item and who looked at it), a column per person, or a cell
with the answers of all. Names of columns speak first, then the cells must bear them out.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from core.formats.shared.cells import parse_names
from core.formats.shared.people_cells import PERSON, WHO, find_answers, find_counts
from core.formats.shared.people_grids import GENERIC, NUMBERED_PERSON, WORDS, best_grid, grid
from core.formats.shared.profiles import Profile, Roles, delimiter_of

RATER = re.compile(
    rf"!?((amt|mturk|turk|crowd|task|hit|unique|anon)?_)?(({WHO})"
    r"([ _.-]?(id|ids|name|nr|no|number|uid|code|email))?([ _.-]?hash(ed)?)?"
    r"|(completed|created|annotated|labell?ed|rated|coded|judged|reviewed|submitted)[ _]?by"
    r"|e-?mail([ _]?address)?|username|user[ _]?(name|login)|crowd[ _]?worker([ _]?id)?|who|oracle"
    r"|performer|assignee|rad_id)",
    re.IGNORECASE,
)
ORDINAL_PERSON = re.compile(
    rf"(first|second|third|fourth|fifth|1st|2nd|3rd|[4-9]th)[ _.-]({WHO})", re.IGNORECASE
)
NUMBERED = re.compile(rf"{WORDS}\d+", re.IGNORECASE)  # label1, label2
OWNED = re.compile(rf"(?P<who>.+?)[ _.:-]{WORDS}|{WORDS}[ _.:-](?P<named>.+)", re.IGNORECASE)
ITEM = re.compile(
    r"_?(item|task|unit|rev|comment|tweet|post|text|doc|document|sentence|question|query|example|observation"
    r"|input_hash|task_hash|sample|image|img|picture|media|file|clip|record|instance|object|pair|conv|row|data"
    r"|subject|hit)[ _]?(id|ids|nr|no|number|name|key|idx)?",
    re.IGNORECASE,
)
ENDS_IN_ITEM = re.compile(
    r".+[ _.-](file|file[ _]?name|path|clip|image|picture|video|audio|track|utterance)"
)
UNNAMED = re.compile(r"column\d+")  # of a table without a header
MAX_SAMPLE = 200
ALIKE = "columns that share a few names"


def find_people(roles: Roles) -> None:
    """Give the columns their roles where several sources speak; leave them free otherwise."""
    row = roles.fields.get("row")
    if row == "item" and not roles.open("layout"):
        return
    if row in (None, "view") and _find_views(roles, stated=row == "view"):
        return
    if roles.open("labels") and row in (None, "people") and _find_columns(roles, row == "people"):
        return
    if row == "people" and not roles.open("labels") and roles.open("sources"):
        _own_columns(roles)
    if row in (None, "item") and roles.open("labels") and not find_counts(roles):
        find_answers(roles)


# --------------------------------------------------------------------------------- rows of views


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
    return not one.is_wordy and (_is_certain(one) or one.has_no_spaces)


def _are_few(who: Sequence[Any]) -> bool:
    """Whether the same few names come again and again."""
    known = [cell for cell in who if cell is not None]
    return len(set(known)) <= max(6, len(known) / 2)


def _may_view(roles: Roles, rater: Profile, item: Profile) -> bool:
    """Whether people view items: users of rows that have links of their own wrote those rows."""
    if not (_is_certain(rater) or _is_called_item(item)) and _names_every_row(roles):
        return False
    return _are_few(roles.cells(rater.name)) or _may_be_seen_once(roles, rater, item)


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
    called = [one for one in free if ITEM.fullmatch(one.last_key) or one.key.endswith("id")]
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
    known = [item for item in items if item is not None]
    n_items = len(set(known))
    if len(known) < 0.95 * len(items) or n_items < 2 or n_items == len(known):
        return False
    if who is None:
        return True
    pairs = Counter(zip(items, who, strict=True))
    several = len(pairs) - len({item for item, _ in pairs})
    return several > 0 and len(set(who)) > 1 and n_items > len(known) ** 0.5 / 4


# ---------------------------------------------------------------------------- columns of people


def _find_columns(roles: Roles, stated: bool) -> bool:
    """A column per person and label, or one per person."""
    free = [one for one in roles.free.values() if not one.is_outcome and not one.is_truth]
    if _find_class_numbers(roles, free):
        return True
    flags = [one for one in free if one.holds_marks or one.is_probability]
    found = grid([one.name for one in flags], stated)
    if found and any(one.kind != "empty" for one in flags if one.name in found):
        style = _style([one for one in flags if one.name in found])
        sources = tuple(found[name] for name in found)
        _take_columns(roles, tuple(found), sources, "a column per person and label", "one_hot")
        roles.set("label_style", style)
        return True
    owners = {one.name: who for one in free if (who := _owner(one.name)) is not None}
    if not stated:  # 0/1 in `label_sea` are no names
        named = {one.name for one in free if one.kind in ("text", "names")}
        owners = {k: who for k, who in owners.items() if k in named or PERSON.fullmatch(who)}
    kept = _one_field(roles, owners)
    if len(kept) < len(owners) and roles.named(["annotations"]) is not None:
        return False  # which say it all
    is_taken = _take_sets(roles, kept, "a column per person")
    if is_taken:  # what else people say of an item is shown
        roles.set_aside(owners.keys() - kept.keys())
    return is_taken


def _one_field(roles: Roles, owners: dict[str, str]) -> dict[str, str]:
    """Keep the first field of names where people are objects: `rater1.emotion`, `rater1.pitch`."""
    parts = {name: name.partition(".") for name in owners}
    fields = Counter(field for who, _, field in parts.values() if field and PERSON.fullmatch(who))
    if len(fields) < 2 or fields.total() < len(owners):
        return owners
    texts = [parts[name][2] for name in owners if roles.free[name].kind in ("text", "names")]
    field = next(iter(texts or fields))
    return {name: who for name, (who, _, own) in parts.items() if own == field}


def _find_class_numbers(roles: Roles, free: Sequence[Profile]) -> bool:
    """A column per person or rule with the number of a class, else nothing or -1."""
    numbers = [one for one in free if one.holds_class_numbers]
    called = (PERSON.fullmatch, NUMBERED_PERSON.fullmatch)
    people = [one for one in numbers if any(is_called(one.key) for is_called in called)]
    people = [one for one in people if "." not in one.key]  # one of several fields
    given = [one for one in roles.profiles.values() if not one.is_outcome]
    if len(numbers) == len(given) and all(UNNAMED.fullmatch(one.key) for one in numbers):
        people = numbers
    values = {value for one in people for value in one.values}
    silent = sum(-1 in one.values or None in roles.cells(one.name) for one in people)
    if len(people) < 3 or len(values) < 3 or 2 * silent < len(people):
        return False
    names = tuple(one.name for one in people)
    why = "a column of class numbers per person, nothing or -1 where it said nothing"
    _take_columns(roles, names, names, why, "delimited")
    roles.set("not_asked", ("-1", "-1.0"))
    roles.set("delimiter", None)
    return True


def _take_sets(roles: Roles, owners: dict[str, str], why: str) -> bool:
    columns = [
        roles.free[name] for name in owners if roles.free[name].kind not in ("empty", "other")
    ]
    if len({owners[one.name] for one in columns}) < 2:
        return False
    values = [value for one in columns for value in one.values]
    delimiter, reason = delimiter_of(Profile("", columns[0].kind, values))
    if not share_names(columns, delimiter):
        return False
    names = tuple(one.name for one in columns)
    if all(owners[name].isdecimal() for name in names) and _are_places(roles, names):
        roles.set("row", "item")
        about = f"{len(names)} columns hold one label each, never the same twice"
        roles.take("labels", names, about, layout="delimited")
        roles.set("delimiter", delimiter, reason)
        return True
    sources = tuple(owners[name] for name in names)
    _take_columns(roles, names, sources, why, "delimited")
    roles.set("delimiter", delimiter, reason)
    return True


def _are_places(roles: Roles, names: Sequence[str]) -> bool:
    """Whether columns are places of a list: people would agree now and then."""
    rows = zip(*(roles.cells(name) for name in names), strict=True)
    filled = [[cell for cell in row if cell not in (None, "")] for row in rows]
    return not any(len(set(row)) < len(row) for row in filled)


def _take_columns(
    roles: Roles, columns: tuple[str, ...], sources: tuple[str, ...], why: str, layout: str
) -> None:
    shown = ", ".join(list(dict.fromkeys(sources))[:6])
    roles.set("row", "people", f"{why}: {len(set(sources))} sources ({shown})")
    roles.take("labels", columns, f"{len(columns)} columns: {why}", layout=layout)
    roles.set("sources", sources)


def find_alike_columns(roles: Roles) -> bool:
    """Columns of texts that share few names: where nothing else says what the labels are."""
    texts = [one for one in roles.free.values() if one.kind in ("text", "names")]
    texts = [one for one in texts if not (one.is_outcome or one.is_truth or one.is_picture)]
    texts = [one for one in texts if not one.is_never_feature]  # dates
    for first in texts:
        delimiter, _ = delimiter_of(first)
        alike = [one for one in texts if one is first or share_names([first, one], delimiter)]
        if len(alike) > 1 and roles.fields.get("row") in (None, "people"):
            owners = {one.name: _owner(one.name) or one.name for one in alike}
            return _take_sets(roles, owners, ALIKE)
    return False


def _own_columns(roles: Roles) -> None:
    """Name the sources of columns that the caller states."""
    columns = tuple(roles.fields["labels"])
    found = best_grid(columns, 0) or best_grid(columns, 1)
    sets = [roles.profiles[name] for name in columns if name in roles.profiles]
    if (
        found
        and len(found) == len(columns)
        and all(one.kind in ("binary", "empty") for one in sets)
    ):
        roles.set("layout", "one_hot")
        roles.set("sources", tuple(found[name] for name in columns))
    else:
        roles.set("layout", "delimited")
        roles.set("sources", tuple(_owner(name) or name for name in columns))
        values = [value for one in sets for value in one.values]
        roles.set("delimiter", *delimiter_of(Profile("", sets[0].kind if sets else "text", values)))


def is_numbered(name: str) -> bool:
    """Whether a column is one of label1, label2."""
    return NUMBERED.fullmatch(name.replace("_", "")) is not None


def _owner(name: str) -> str | None:
    """Return whose column this is: `annotator_1`, `model_a`, `labels_anna`, `rater2_labels`."""
    if NUMBERED_PERSON.fullmatch(name.strip()) or ORDINAL_PERSON.fullmatch(name.strip()):
        return name
    if NUMBERED.fullmatch(name.strip()):
        return name.strip().lstrip("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
    owned = OWNED.fullmatch(name.strip())
    if owned is None:
        return None
    who = owned["who"] or owned["named"]
    return who if owned["named"] or PERSON.fullmatch(who) else None


def share_names(columns: Sequence[Profile], delimiter: str | None) -> bool:
    """Whether columns hold names out of one small vocabulary."""
    each = [_names_in(one, delimiter) for one in columns]
    n_cells = sum(len(one.values) for one in columns)
    known = Counter(name for names in each for name in names)
    if not all(each) or len(known) > max(10, n_cells / 3) or max(map(len, known)) > 60:
        return False
    most = max(each, key=len)
    return all(
        len(names & (most | _others(each, i))) >= 0.3 * len(names) for i, names in enumerate(each)
    )


def _others(each: Sequence[set[str]], i: int) -> set[str]:
    return set().union(*(names for k, names in enumerate(each) if k != i))


def _names_in(one: Profile, delimiter: str | None) -> set[str]:
    found: set[str] = set()
    for value in one.values[:MAX_SAMPLE]:
        try:
            found.update(parse_names(value, delimiter))
        except ValueError:
            return set()
    return found


def _style(columns: Iterable[Profile]) -> str:
    columns = list(columns)
    if any(one.is_probability for one in columns):
        return "probability"
    values = {value for one in columns for value in one.values}
    return "-1/1" if -1 in values and 0 not in values else "0/1"
