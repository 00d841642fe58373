"""Labels in columns of their own: 0/1, yes or no, shares of people, steps, 1/0/-1.

The finders that `guessing` asks, each for one way to write them; true when it found some.
"""

import re
from collections import Counter
from collections.abc import Sequence
from itertools import groupby, takewhile

from core.formats.shared.cells import UNSURE, parse_flag
from core.formats.shared.mapping import LABEL_PREFIXES
from core.formats.shared.profiles import COUNT_OF_PEOPLE, UNNAMED, Profile, Roles

TURK = "Answer."
MIN_BETWEEN = 3  # 0/1 columns between ids and texts that are labels
MAX_ALONE = 100  # 0/1 columns with nothing beside them that are labels; more may be words
MAX_RATED = 10  # steps of a scale
TICKS = ("x", "y", "yes", "on", "true", "checked", "selected", "ticked", "✓", "✔", "☑")
CHECKED = {"checked", "selected"}
BOXES = CHECKED | {"unchecked", "unselected", "not selected"}
IN_BETWEEN = "the only columns of 0/1 beside each other"  # how reasons begin that are asked about
BY_PLACE = "by their place, the"  # how reasons begin of columns that stand first or last
ABOUT_LABELS = re.compile(
    r"label_(ids?|names?|values?|final|gold|majority|source|type|confidence|count|text|index)"
)
ENDING = re.compile(r".+[ _.-](presence|present|label|flag)")
YES_NO_UNSURE = {"yes", "no", "", *UNSURE}


def prefixed_labels(roles: Roles) -> bool:
    for prefix in LABEL_PREFIXES:
        named = [roles.free[name] for name in roles.prefixed(prefix)]
        named = [one for one in named if one.kind != "empty" or prefix != TURK]  # remarks
        named = [one for one in named if not ABOUT_LABELS.fullmatch(one.key)]
        graded = len(named) > 1 and any(one.is_probability for one in named)
        graded = graded and all(one.is_share for one in named)
        columns = [one for one in named if graded or _holds_flags(one)]
        if columns:
            what = "shares" if graded else "0/1"
            reason = f"{len(columns)} columns begin with {prefix!r} and hold {what}"
            style = "probability" if roles.fields.get("row") == "view" else "share"
            return take_flags(roles, columns, reason, style if graded else style_of(columns))
    return False


def ticked_columns(roles: Roles) -> bool:
    """Columns that hold a tick, or their own name, where a label is offered; else nothing."""
    texts = [one for one in roles.may_be_labels if one.kind == "text"]
    ticked = [one for one in texts if _is_ticked(roles, one)]
    spelled = [one for one in texts if _words_of(one) & CHECKED and _words_of(one) <= BOXES]
    for columns, what, style in (
        (ticked, "hold a tick, or their own name, or nothing", "tick"),
        (spelled, "say checked or unchecked", "0/1"),
    ):
        if len(columns) > 1:
            return take_flags(roles, columns, f"{len(columns)} columns {what}", style)
    return False


def spelled_flags(roles: Roles) -> bool:
    """Columns that say yes or no in words; of items perhaps also that somebody was unsure."""
    texts = {one: _words_of(one) for one in roles.may_be_labels if one.kind == "text"}
    unsure = {*UNSURE} if roles.fields.get("row", "item") == "item" else set[str]()
    columns = [one for one, words in texts.items() if _say_yes_or_no(words - unsure)]
    if len(columns) < 2:
        return False
    is_unsure = any(texts[one] & unsure for one in columns)
    reason = f"{len(columns)} columns say yes or no"
    reason += ", or that somebody was unsure, which is offered too" if is_unsure else ""
    return take_flags(roles, columns, reason, "uncertain" if is_unsure else "0/1")


def _say_yes_or_no(words: set[str]) -> bool:
    flags = set(map(parse_flag, words))
    return 1 in flags and None not in flags


def _words_of(one: Profile) -> set[str]:
    return {str(value).strip().casefold() for value in one.values} - {""}


def _is_ticked(roles: Roles, one: Profile) -> bool:
    words = _words_of(one)
    if len(words) != 1 or sum(not cell for cell in roles.cells(one.name)) == 0:
        return False
    (word,) = words
    return word in TICKS or one.key.rstrip(")]} ").endswith(word)


def _holds_flags(one: Profile) -> bool:
    """Whether a column is meant to hold 0/1; a few wrong values shall be told, not hidden."""
    said = [value for value in one.values if str(value).strip()]
    flags = sum(parse_flag(value) is not None for value in said)
    is_listed = any(isinstance(value, list | dict) for value in one.values)
    return not is_listed and (one.kind in ("binary", "empty") or 2 * flags > len(said))


def yes_or_no_columns(roles: Roles) -> bool:
    """In rows of views: the questions that are answered by yes, no or unsure."""
    texts = [one for one in roles.free.values() if one.kind == "text"]
    columns = [one for one in texts if {"yes", "no"} <= _words_of(one) <= YES_NO_UNSURE]
    columns = [one for one in columns if not _is_of_items(roles, one)] or columns
    if not columns or roles.fields.get("row") != "view":
        return False
    reason = f"{len(columns)} columns are answered by yes or no"
    is_taken = take_flags(roles, columns, reason, "0/1")
    if is_taken:
        roles.set("not_asked", UNSURE, "who is unsure says neither yes nor no")
    return is_taken


def _is_of_items(roles: Roles, one: Profile) -> bool:
    """Whether all views of an item say the same, both yes and no: then nobody was asked."""
    item = roles.fields.get("id")
    if item is None or roles.differs_between(item, one):
        return False
    pairs = Counter(zip(roles.cells(item), roles.cells(one.name), strict=True))
    said = Counter(value for (_, value), n in pairs.items() if n > 1)
    return len(said) > 1 and min(said.values()) >= MIN_BETWEEN


def shares_of_people(roles: Roles) -> bool:
    """Columns of fractions, where a column counts the people who were asked."""
    free = roles.may_be_labels
    counted = [one for one in free if COUNT_OF_PEOPLE.fullmatch(one.key)]
    shares = [one for one in free if one.is_share]
    if not counted or roles.fields.get("row") == "view":
        return False
    if sum(one.is_probability for one in shares) < 2:
        return False
    reason = f"{len(shares)} columns hold shares of the people that {counted[0].name!r} counts"
    return take_flags(roles, shares, reason, "share")


def graded_views(roles: Roles) -> bool:
    """In rows of views: yes or no in steps such as 0, 0.5 and 1."""
    if roles.fields.get("row") != "view":
        return False
    free = roles.may_be_labels
    steps = [one for one in free if one.is_share and len(set(one.values)) <= MAX_RATED]
    said = [one for one in steps if roles.differs_between_views(one)]
    if not any(one.is_probability for one in said):
        return False
    reason = f"{len(said)} columns hold steps from 0 to 1 that differ between views"
    return take_flags(roles, said, reason, "probability")


def flags_of_one_ending(roles: Roles) -> bool:
    """In rows of views: 0/1 columns such as drill_presence, horn_presence, wherever they stand."""
    free = roles.may_be_labels
    flags = [one for one in free if ENDING.fullmatch(one.key) and one.is_uncertain]
    if len(flags) < MIN_BETWEEN or roles.fields.get("row") != "view":
        return False
    reason = f"{len(flags)} columns end in one word and hold 0/1"
    is_taken = take_flags(roles, flags, reason, "0/1")
    if is_taken and any(-1 in one.values for one in flags):
        roles.set("not_asked", ("-1", "-1.0"), "-1 beside 0 and 1 says nothing")
    return is_taken


def trailing_flags(roles: Roles) -> bool:
    """The run of 0/1 columns at the end of the table, or else at its beginning."""
    free = roles.may_be_labels
    others = [one for one in free if one.kind in ("number", "numbers", "text")]
    others += [one for one in roles.profiles.values() if roles.fields.get("row") == "view"]
    if roles.fields.get("id") is not None and 1 < len(free) <= MAX_ALONE:
        others += free  # an id and nothing but 0/1
    if not others:
        return False
    inner = [one for one in free if one.kind != "text" and not one.is_never_feature]
    is_few = len(inner) < MIN_BETWEEN
    inner = [] if is_few or any(one.kind != "binary" for one in inner) else inner
    for place, ordered in (("last", free[::-1]), ("first", free), ("only", inner)):
        run = _leading_run(ordered)
        if run and not all(map(roles.is_constant, run)):
            columns = [one for one in roles.free.values() if one.name in run]
            which = "column holds" if len(columns) == 1 else f"{len(columns)} columns hold"
            reason = f"{BY_PLACE} {place} {which} only 0/1, -1/1 or true/false"
            return take_flags(roles, columns, reason, style_of(columns))
    return False


def flags_alone(roles: Roles) -> bool:
    """A table without a header that holds 0/1 and nothing else: a column per label."""
    filled = [one for one in roles.profiles.values() if one.kind != "empty"]
    are_flags = all(one.kind == "binary" and UNNAMED.fullmatch(one.name) for one in filled)
    is_free = len(roles.free) == len(roles.profiles) and 1 < len(filled) <= MAX_ALONE
    if not (are_flags and is_free) or roles.fields.get("row", "item") != "item":
        return False
    reason = f"no header, and nothing but 0/1 in {len(filled)} columns"
    return take_flags(roles, filled, reason, style_of(filled))


def flags_in_between(roles: Roles) -> bool:
    """The only run of 0/1 columns among others, beside a text; that is asked about."""
    free = roles.may_be_labels
    if roles.fields.get("row", "item") != "item":
        return False
    runs = [[*group] for is_flag, group in groupby(free, _is_flag) if is_flag]
    runs = [run for run in runs if len(run) >= MIN_BETWEEN]
    if len(runs) != 1 or not any(one.is_wordy or one.is_picture for one in free):
        return False
    return take_flags(roles, runs[0], f"{IN_BETWEEN} ({len(runs[0])})", style_of(runs[0]))


def _is_flag(one: Profile) -> bool:
    return one.kind == "binary" and not one.is_never_feature and len(one.values) == 2


def uncertain_flags(roles: Roles) -> bool:
    """The run of columns at the end that hold 1, 0, and -1 for what is uncertain."""
    free = roles.may_be_labels
    run = list(takewhile(lambda one: one.is_uncertain, reversed(free)))[::-1]
    known = {value for one in run for value in one.values}
    if len(run) < 2 or len(run) == len(free) or known != {-1, 0, 1}:
        return False
    if roles.fields.get("row") == "view":
        return False
    reason = f"the last {len(run)} columns hold 1, 0, and -1: uncertain, which is offered too"
    return take_flags(roles, run, reason, "uncertain")


def flags_of_some_rows(roles: Roles) -> bool:
    """The run of columns at the end that hold 1 and 0, or -1 in all of a row nobody looked at."""
    free = roles.may_be_labels
    run = list(takewhile(lambda one: one.is_uncertain, reversed(free)))[::-1]
    if roles.fields.get("row", "item") != "item" or not _whole_rows(roles, run):
        return False
    reason = f"the last {len(run)} columns hold 1 and 0, or -1 in all of them: not looked at"
    is_taken = take_flags(roles, run, reason, "uncertain")
    if is_taken:
        roles.set("not_asked", ("-1", "-1.0"), "-1 stands in all labels of a row or in none")
    return is_taken


def _whole_rows(roles: Roles, run: Sequence[Profile]) -> bool:
    """Whether 1, 0 and -1 occur, and -1 stands in all of these columns or in none, in every row."""
    rows = list(zip(*(roles.cells(one.name) for one in run), strict=True))
    if len(run) < MIN_BETWEEN or {-1, 0, 1} != {value for row in rows for value in row}:
        return False
    return all(-1 not in row or {*row} == {-1} for row in rows)


def _leading_run(profiles: Sequence[Profile]) -> set[str]:
    def is_other(one: Profile) -> bool:
        return one.kind != "binary" or _is_boolean(one) != _is_boolean(profiles[0])

    stop = next((i for i, one in enumerate(profiles) if is_other(one)), len(profiles))
    return {one.name for one in profiles[:stop]}


def _is_boolean(one: Profile) -> bool:
    return all(isinstance(value, bool) for value in one.values)


def take_flags(roles: Roles, columns: Sequence[Profile], reason: str, style: str) -> bool:
    """Have each of the columns be a label, unless the caller stated another layout."""
    if not allows_layout(roles, "one_hot"):
        return False
    names = [one.name for one in columns]
    roles.take("labels", names, reason, layout="one_hot", label_style=style)
    return True


def style_of(columns: Sequence[Profile]) -> str:
    values = {value for one in columns for value in one.values}
    if values and all(isinstance(value, bool) for one in columns for value in one.values):
        return "true/false"
    return "-1/1" if -1 in values and 0 not in values else "0/1"


def allows_layout(roles: Roles, layout: str) -> bool:
    return bool(roles.fields.get("layout", layout) == layout)
