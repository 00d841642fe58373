"""Names of columns that are made of a person and a label: anna_sea, anna_sun, bob_sea, bob_sun."""

import re
from collections import defaultdict
from collections.abc import Collection, Sequence

from core.formats.shared.mapping import NESTED
from core.formats.shared.people_names import GENERIC, NUMBERED_PERSON, PERSON

SEPARATORS = re.compile(r"[ _.:/|-]+")


def ambiguous_grid(columns: Collection[str]) -> tuple[list[str], list[str]] | None:
    """Return both halves of names such as anna_sea, bob_sea where either may be the people."""
    grids = [best_grid(columns, side) for side in (0, 1)]
    if all(len(grid) == len(columns) >= 4 for grid in grids):
        halves = [list(dict.fromkeys(grid.values())) for grid in grids]
        if all(len(half) > 1 for half in halves):
            return halves[0], halves[1]
    return None


def grid(columns: Sequence[str], stated: bool) -> dict[str, str]:
    """Return the source of every column whose name is made of a source and a label."""
    nested = {name: NESTED.sub("", name) for name in columns if NESTED.match(name)}
    if nested:  # predictions.gpt.sea says itself that these are predictions of somebody
        inner = best_grid(list(nested.values()), 0)
        return {name: inner[rest] for name, rest in nested.items() if rest in inner}
    for side in (0, 1):
        found = best_grid(columns, side)
        called = (PERSON.fullmatch, NUMBERED_PERSON.fullmatch)
        people = [who for who in dict.fromkeys(found.values()) if any(like(who) for like in called)]
        if len(people) > 1 and len(people) >= 0.8 * len(set(found.values())):
            return found
    return best_grid(columns, 0) if stated else {}


def are_words_alone(people: Collection[str]) -> bool:
    """Whether people are words such as user and model, which labels may begin with as well."""
    return not any(map(NUMBERED_PERSON.fullmatch, people)) and not any(map(NESTED.match, people))


def best_grid(columns: Collection[str], side: int) -> dict[str, str]:
    """Return the largest set of sources with the same labels: {column: source}."""
    labels_of: dict[str, dict[str, str]] = defaultdict(dict)
    for column in columns:
        for cut in SEPARATORS.finditer(column):
            halves = column[: cut.start()], column[cut.end() :]
            if all(halves) and not GENERIC.fullmatch(halves[1 - side]):
                labels_of[halves[side]][halves[1 - side]] = column
    groups: dict[frozenset[str], list[str]] = defaultdict(list)
    for who, labels in labels_of.items():
        groups[frozenset(labels)].append(who)
    shared = [(labels, who) for labels, who in groups.items() if len(who) > 1]
    if not shared:
        return {}
    common, people = max(shared, key=lambda one: (len(one[0]) * len(one[1]), len(one[0])))
    others = labels_of.keys() - set(people)
    some = [one for one in labels_of if one in others and NUMBERED_PERSON.fullmatch(one)]
    found = {
        column: one
        for one in (*people, *some)
        for label, column in labels_of[one].items()
        if label in common
    }
    return {name: found[name] for name in columns if name in found}
