"""Groups of columns, each an answer and who gave it: worker_1, label_1, worker_2, label_2."""

import re
from collections import defaultdict
from collections.abc import Sequence

from core.formats.shared.people_columns import share_names, style_of_people, take_columns
from core.formats.shared.people_names import RATER
from core.formats.shared.profiles import NEARLY_ALL, RIVALS, Profile, Roles, delimiter_of

CUTS = (
    re.compile(
        r"(?P<what>.*?[^\d _.:-])([ _.:-]+(?P<place>[a-z]?\d+|[a-z])|(?P<number>\d+))", re.I
    ),
    re.compile(r"(?P<place>[a-z]?\d+|[a-z])[ _.:-]+(?P<what>.+)", re.IGNORECASE),
)

Groups = dict[str, dict[str, Profile]]  # by place, then by what the column is about


def find_groups(roles: Roles) -> bool:
    """Take what people said whose names stand beside it."""
    free = roles.may_be_labels
    for cut in CUTS:
        groups, who = _named_groups(free, cut)
        if len(who) < 2 or not _are_different_people(roles, list(who.values())):
            continue
        common = [set(groups[place]) for place in who]
        about = [
            {place: groups[place][what] for place in who}
            for what in groups[next(iter(who))]
            if all(what in one for one in common)
        ]
        said = [one for one in about if next(iter(one.values())) not in who.values()]
        said = [one for one in said if not _is_of_people(roles, one, who)]
        if _take(roles, said, who):
            return True
    return False


def _named_groups(
    free: Sequence[Profile], cut: re.Pattern[str]
) -> tuple[Groups, dict[str, Profile]]:
    """Return the columns of every place, and at each place the one that is called a rater."""
    groups: Groups = defaultdict(dict)
    for one in free:
        match = cut.fullmatch(one.name.strip())
        if match is not None:
            place = match["place"] or match.groupdict().get("number") or ""
            groups[place][match["what"].casefold()] = one
    who = {
        place: one
        for place, columns in groups.items()
        for what, one in columns.items()
        if RATER.fullmatch(what) and len(columns) > 1
    }
    return groups, who


def _are_different_people(roles: Roles, columns: Sequence[Profile]) -> bool:
    """Whether cells are names, and nobody is in a row twice: labels would agree now and then."""
    if not all(one.kind in ("text", "number") and not one.is_wordy for one in columns):
        return False
    rows = zip(*(roles.cells(one.name) for one in columns), strict=True)
    filled = [[cell for cell in row if cell not in (None, "")] for row in rows]
    several = [row for row in filled if len(row) > 1]
    different = sum(len(set(row)) == len(row) for row in several)
    return bool(several) and different >= NEARLY_ALL * len(several)


def _is_of_people(roles: Roles, said: dict[str, Profile], who: dict[str, Profile]) -> bool:
    """Whether a column says the same of somebody every time, of people who come again."""
    pairs = [
        pair
        for place, one in said.items()
        for pair in zip(roles.cells(who[place].name), roles.cells(one.name), strict=True)
        if pair[0] not in (None, "")
    ]
    people = {name for name, _ in pairs}
    return len(set(pairs)) == len(people) < len(pairs) / 2


def _take(roles: Roles, said: Sequence[dict[str, Profile]], who: dict[str, Profile]) -> bool:
    flags = [one for one in said if all(c.holds_marks or c.is_probability for c in one.values())]
    sets = [one for one in said if one not in flags and _are_sets([*one.values()])]
    numbers = [one for one in said if all(c.holds_class_numbers for c in one.values())]
    chosen = sets[:1] or flags or numbers[:1]
    columns = [(place, column) for one in chosen for place, column in one.items()]
    if not columns:
        return False
    rest = [one for one in (*sets, *flags, *numbers) if one not in chosen]
    rivals = dict.fromkeys(repr(next(iter(one.values())).name) for one in rest)
    why = "columns beside others that name who said it"
    why += RIVALS * bool(rivals) + ", ".join(rivals)
    names = tuple(column.name for _, column in columns)
    is_set = chosen[0] in sets or chosen[0] not in flags
    take_columns(
        roles, names, tuple(p for p, _ in columns), why, "delimited" if is_set else "one_hot"
    )
    roles.set("named_in", tuple(who[place].name for place, _ in columns))
    if is_set:
        values = [value for _, column in columns for value in column.values]
        roles.set("delimiter", *delimiter_of(Profile("", columns[0][1].kind, values)))
    else:
        roles.set("label_style", style_of_people([column for _, column in columns]))
    roles.set_aside([one.name for one in who.values()])
    return True


def _are_sets(columns: list[Profile]) -> bool:
    if not all(one.kind in ("text", "names") and not one.is_wordy for one in columns):
        return False
    return share_names(columns, delimiter_of(columns[0])[0])
