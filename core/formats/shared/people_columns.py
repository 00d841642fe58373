"""Columns that belong to people: one per person, or one per person and label.

Names of columns speak first, then the cells must bear them out.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from core.formats.shared.cells import parse_names
from core.formats.shared.mapping import NO_LABEL
from core.formats.shared.people_grids import are_words_alone, best_grid, grid
from core.formats.shared.people_names import NUMBERED_PERSON, PERSON, WHO, WORDS
from core.formats.shared.profiles import DERIVED, RIVALS, UNNAMED, Profile, Roles, delimiter_of

ORDINAL_PERSON = re.compile(
    rf"(first|second|third|fourth|fifth|1st|2nd|3rd|[4-9]th)[ _.-]({WHO})", re.IGNORECASE
)
NUMBERED = re.compile(rf"{WORDS}\d+", re.IGNORECASE)  # label1, label2
IDS = re.compile(r".*[ _.-]ids?")
WORDS_ALONE = "words that may as well begin labels"
STANCES = "1, 0 and -1 of people"  # how reasons begin that are asked about
ALIKE = "columns that share a few names"


OWNED = re.compile(rf"(?P<who>.+?)[ _.:-]{WORDS}|{WORDS}[ _.:-](?P<named>.+)", re.IGNORECASE)
MIN_ROWS = 20  # in which people would agree now and then
MAX_SAMPLE = 200


def find_columns(roles: Roles, stated: bool) -> bool:
    """A column per person and label, or one per person."""
    free = roles.may_be_labels
    if _find_class_numbers(roles, free):
        return True
    flags = [one for one in free if one.holds_marks or one.is_probability]
    flags = [one for one in flags if not DERIVED.fullmatch(one.key)]  # gpt_confidence
    found = grid([one.name for one in flags], stated)
    if found and any(one.kind != "empty" for one in flags if one.name in found):
        style = style_of_people([one for one in flags if one.name in found])
        sources = tuple(found[name] for name in found)
        why = "a column per person and label"
        why = f"{WORDS_ALONE}: {why}" if are_words_alone(sources) else why
        take_columns(roles, tuple(found), sources, why, "one_hot")
        roles.set("label_style", style)
        return True
    named = [one for one in free if not (DERIVED.fullmatch(one.key) or IDS.fullmatch(one.key))]
    owners = {one.name: who for one in named if (who := _owner(one.name)) is not None}
    if not stated:  # 0/1 in `label_sea` are no names
        texts = {one.name for one in free if one.kind in ("text", "names")}
        owners = {k: who for k, who in owners.items() if k in texts or PERSON.fullmatch(who)}
    kept = _one_field(roles, owners)
    said = roles.named(["annotations"])
    if said and (len(kept) < len(owners) or all(str(cell)[:1] == "{" for cell in said.values)):
        return False  # which say it all
    more = [one for one in named if one.kind in ("text", "names") and PERSON.fullmatch(one.key)]
    both = kept | {one.name: one.name for one in more if one.name not in owners}
    why = "a column per person"
    if len(kept) < len(owners) and "." not in next(iter(kept)):
        why += RIVALS + ", ".join(repr(name) for name in owners if name not in kept)
    is_taken = (len(kept) > 0 and _take_sets(roles, both, why)) or _take_sets(roles, kept, why)
    if is_taken:  # what else people say of an item is shown
        roles.set_aside(owners.keys() - kept.keys())
    return is_taken


def _one_field(roles: Roles, owners: dict[str, str]) -> dict[str, str]:
    """Keep the first field where people have several: `rater1.emotion`, `rater1.pitch`."""
    parts = {name: name.partition(".") for name in owners}
    whose = best_grid(list(owners), 0)
    if owners and len(whose) == len(owners):  # rater1_emotion, rater1_pitch
        parts = {name: (who, "", name.removeprefix(who)) for name, who in whose.items()}
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
    cells = [cell for one in people for cell in roles.cells(one.name)]
    if values == {-1, 0, 1} and None not in cells and 2 * cells.count(-1) < len(cells):
        why = f"{STANCES}: {why}"
    take_columns(roles, names, names, why, "delimited")
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
    if _are_numbered(names, owners) and _are_places(roles, names):
        roles.set("row", "item")
        about = f"{len(names)} columns hold one label each, never the same twice"
        roles.take("labels", names, about, layout="delimited")
        roles.set("delimiter", delimiter, reason)
        return True
    if _are_places(roles, names) and len(columns[0].values) >= MIN_ROWS:
        return False  # model_a and model_b, which meet each other
    sources = tuple(owners[name] for name in names)
    take_columns(roles, names, sources, why, "delimited")
    roles.set("delimiter", delimiter, reason)
    return True


def _are_numbered(names: Sequence[str], owners: dict[str, str]) -> bool:
    """Whether columns differ by a number, and are not called people: `label1`, `genre_2`."""
    if all(owners[name].isdecimal() for name in names):
        return True
    stems = {name.rstrip("0123456789") for name in names}
    return len(stems) == 1 and not any(map(NUMBERED_PERSON.fullmatch, names))


def _are_places(roles: Roles, names: Sequence[str]) -> bool:
    """Whether columns are places of a list: people would agree now and then."""
    rows = zip(*(roles.cells(name) for name in names), strict=True)
    filled = [[cell for cell in row if cell not in (None, "")] for row in rows]
    return not any(len(set(row)) < len(row) for row in filled)


def take_columns(
    roles: Roles, columns: tuple[str, ...], sources: tuple[str, ...], why: str, layout: str
) -> None:
    shown = ", ".join(list(dict.fromkeys(sources))[:6])
    roles.set("row", "people", f"{why}: {len(set(sources))} sources ({shown})")
    roles.take("labels", columns, f"{len(columns)} columns: {why}", layout=layout)
    roles.set("sources", sources)


def find_alike_columns(roles: Roles, among: Profile | None = None) -> bool:
    """Columns of texts that share few names: where nothing else says what the labels are."""
    texts = [one for one in roles.may_be_labels if one.kind in ("text", "names")]
    texts = [one for one in texts if not (one.is_picture or one.is_never_feature)]  # dates
    for first in texts:
        delimiter, _ = delimiter_of(first)
        alike = [one for one in texts if one is first or share_names([first, one], delimiter)]
        if among is not None and among not in alike:
            continue
        if len(alike) > 1 and roles.fields.get("row") in (None, "people"):
            owners = {one.name: _owner(one.name) or one.name for one in alike}
            return _take_sets(roles, owners, ALIKE)
    return False


def own_columns(roles: Roles) -> None:
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
    return all(len(names & _others(each, i)) >= 0.3 * len(names) for i, names in enumerate(each))


def _others(each: Sequence[set[str]], i: int) -> set[str]:
    return set().union(*(names for k, names in enumerate(each) if k != i))


def _names_in(one: Profile, delimiter: str | None) -> set[str]:
    found: set[str] = set()
    for value in one.values[:MAX_SAMPLE]:
        try:
            found.update(
                name for name in parse_names(value, delimiter) if name.casefold() not in NO_LABEL
            )
        except ValueError:
            return set()
    return found


def style_of_people(columns: Iterable[Profile]) -> str:
    columns = list(columns)
    if any(one.is_probability for one in columns):
        return "probability"
    values = {value for one in columns for value in one.values}
    return "-1/1" if -1 in values and 0 not in values else "0/1"
