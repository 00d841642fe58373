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
        columns = tuple(one.name for one in named if graded or _holds_flags(one))
        if columns and allows_layout(roles, "one_hot"):
            what = "shares" if graded else "0/1"
            reason = f"{len(columns)} columns begin with {prefix!r} and hold {what}"
            style = style_of([roles.profiles[name] for name in columns])
            if graded:
                style = "probability" if roles.fields.get("row") == "view" else "share"
            roles.take("labels", columns, reason, layout="one_hot", label_style=style)
            return True
    return False


def ticked_columns(roles: Roles) -> bool:
    """Columns that hold a tick, or their own name, where a label is offered; else nothing."""
    if not allows_layout(roles, "one_hot"):
        return False
    free = [one for one in roles.free.values() if not one.is_outcome and not one.is_truth]
    texts = [one for one in free if one.kind == "text"]
    ticked = [one.name for one in texts if _is_ticked(roles, one)]
    spelled = [one.name for one in texts if _words_of(one) & CHECKED and _words_of(one) <= BOXES]
    for columns, what, style in (
        (ticked, "hold a tick, or their own name, or nothing", "tick"),
        (spelled, "say checked or unchecked", "0/1"),
    ):
        if len(columns) > 1:
            reason = f"{len(columns)} columns {what}"
            roles.take("labels", columns, reason, layout="one_hot", label_style=style)
            return True
    return False


def spelled_flags(roles: Roles) -> bool:
    """Columns that say yes or no in words; of items perhaps also that somebody was unsure."""
    free = [one for one in roles.free.values() if not one.is_outcome and not one.is_truth]
    texts = {one.name: _words_of(one) for one in free if one.kind == "text"}
    unsure = {*UNSURE} if roles.fields.get("row", "item") == "item" else set[str]()
    columns = [name for name, words in texts.items() if _say_yes_or_no(words - unsure)]
    if len(columns) < 2 or not allows_layout(roles, "one_hot"):
        return False
    is_unsure = any(texts[name] & unsure for name in columns)
    reason = f"{len(columns)} columns say yes or no"
    reason += ", or that somebody was unsure, which is offered too" if is_unsure else ""
    style = "uncertain" if is_unsure else "0/1"
    roles.take("labels", columns, reason, layout="one_hot", label_style=style)
    return True


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
    return one.kind in ("binary", "empty") or 2 * flags > len(said)


def yes_or_no_columns(roles: Roles) -> bool:
    """In rows of views: the questions that are answered by yes, no or unsure."""
    if roles.fields.get("row") != "view" or not allows_layout(roles, "one_hot"):
        return False
    texts = [one for one in roles.free.values() if one.kind == "text"]
    words = {one.name: {str(value).strip().casefold() for value in one.values} for one in texts}
    columns = [name for name, said in words.items() if {"yes", "no"} <= said <= YES_NO_UNSURE]
    columns = [name for name in columns if not _is_of_items(roles, name)] or columns
    if not columns:
        return False
    reason = f"{len(columns)} columns are answered by yes or no"
    roles.take("labels", columns, reason, layout="one_hot")
    roles.set("not_asked", UNSURE, "who is unsure says neither yes nor no")
    return True


def _is_of_items(roles: Roles, name: str) -> bool:
    """Whether all views of an item say the same, both yes and no: then nobody was asked."""
    item = roles.fields.get("id")
    if item is None or roles.differs_between(item, roles.profiles[name]):
        return False
    pairs = Counter(zip(roles.cells(item), roles.cells(name), strict=True))
    said = Counter(value for (_, value), n in pairs.items() if n > 1)
    return len(said) > 1 and min(said.values()) >= MIN_BETWEEN


def shares_of_people(roles: Roles) -> bool:
    """Columns of fractions, where a column counts the people who were asked."""
    free = [one for one in roles.free.values() if not one.is_outcome and not one.is_truth]
    counted = [one for one in free if COUNT_OF_PEOPLE.fullmatch(one.key)]
    shares = [one for one in free if one.is_share]
    if not counted or roles.fields.get("row") == "view" or not allows_layout(roles, "one_hot"):
        return False
    if sum(one.is_probability for one in shares) < 2:
        return False
    reason = f"{len(shares)} columns hold shares of the people that {counted[0].name!r} counts"
    about = {"layout": "one_hot", "label_style": "share"}
    roles.take("labels", [one.name for one in shares], reason, **about)
    return True


def graded_views(roles: Roles) -> bool:
    """In rows of views: yes or no in steps such as 0, 0.5 and 1."""
    if roles.fields.get("row") != "view" or not allows_layout(roles, "one_hot"):
        return False
    free = [one for one in roles.free.values() if not one.is_outcome and not one.is_truth]
    steps = [one for one in free if one.is_share and len(set(one.values)) <= MAX_RATED]
    said = [one for one in steps if roles.differs_between_views(one)]
    if not any(one.is_probability for one in said):
        return False
    reason = f"{len(said)} columns hold steps from 0 to 1 that differ between views"
    about = {"layout": "one_hot", "label_style": "probability"}
    roles.take("labels", [one.name for one in said], reason, **about)
    return True


def flags_of_one_ending(roles: Roles) -> bool:
    """In rows of views: 0/1 columns such as drill_presence, horn_presence, wherever they stand."""
    if roles.fields.get("row") != "view" or not allows_layout(roles, "one_hot"):
        return False
    free = [one for one in roles.free.values() if not one.is_outcome and not one.is_truth]
    flags = [one for one in free if ENDING.fullmatch(one.key) and one.is_uncertain]
    if len(flags) < MIN_BETWEEN:
        return False
    reason = f"{len(flags)} columns end in one word and hold 0/1"
    about = {"layout": "one_hot", "label_style": "0/1"}
    roles.take("labels", [one.name for one in flags], reason, **about)
    if any(-1 in one.values for one in flags):
        roles.set("not_asked", ("-1", "-1.0"), "-1 beside 0 and 1 says nothing")
    return True


def trailing_flags(roles: Roles) -> bool:
    """The run of 0/1 columns at the end of the table, or else at its beginning."""
    free = [one for one in roles.free.values() if not one.is_outcome and not one.is_truth]
    others = [one for one in free if one.kind in ("number", "numbers", "text")]
    others += [one for one in roles.profiles.values() if roles.fields.get("row") == "view"]
    if roles.fields.get("id") is not None and 1 < len(free) <= MAX_ALONE:
        others += free  # an id and nothing but 0/1
    if not others or not allows_layout(roles, "one_hot"):
        return False
    inner = [one for one in free if one.kind != "text" and not one.is_never_feature]
    is_few = len(inner) < MIN_BETWEEN
    inner = [] if is_few or any(one.kind != "binary" for one in inner) else inner
    for place, ordered in (("last", free[::-1]), ("first", free), ("only", inner)):
        run = _leading_run(ordered)
        if run and not all(map(roles.is_constant, run)):
            columns = tuple(one.name for one in roles.free.values() if one.name in run)
            which = "column holds" if len(columns) == 1 else f"{len(columns)} columns hold"
            reason = f"{BY_PLACE} {place} {which} only 0/1, -1/1 or true/false"
            style = style_of([roles.profiles[name] for name in columns])
            roles.take("labels", columns, reason, layout="one_hot", label_style=style)
            return True
    return False


def flags_alone(roles: Roles) -> bool:
    """A table without a header that holds 0/1 and nothing else: a column per label."""
    filled = [one for one in roles.profiles.values() if one.kind != "empty"]
    are_flags = all(one.kind == "binary" and UNNAMED.fullmatch(one.name) for one in filled)
    is_free = len(roles.free) == len(roles.profiles) and 1 < len(filled) <= MAX_ALONE
    if not (are_flags and is_free) or not allows_layout(roles, "one_hot"):
        return False
    if roles.fields.get("row", "item") != "item":
        return False
    about = {"layout": "one_hot", "label_style": style_of(filled)}
    reason = f"no header, and nothing but 0/1 in {len(filled)} columns"
    roles.take("labels", [one.name for one in filled], reason, **about)
    return True


def flags_in_between(roles: Roles) -> bool:
    """The only run of 0/1 columns among others, beside a text; that is asked about."""
    free = [one for one in roles.free.values() if not one.is_outcome and not one.is_truth]
    if roles.fields.get("row", "item") != "item" or not allows_layout(roles, "one_hot"):
        return False
    runs = [[*group] for is_flag, group in groupby(free, _is_flag) if is_flag]
    runs = [run for run in runs if len(run) >= MIN_BETWEEN]
    if len(runs) != 1 or not any(one.is_wordy or one.is_picture for one in free):
        return False
    about = {"layout": "one_hot", "label_style": style_of(runs[0])}
    names = [one.name for one in runs[0]]
    roles.take("labels", names, f"{IN_BETWEEN} ({len(names)})", **about)
    return True


def _is_flag(one: Profile) -> bool:
    return one.kind == "binary" and not one.is_never_feature and len(one.values) == 2


def uncertain_flags(roles: Roles) -> bool:
    """The run of columns at the end that hold 1, 0, and -1 for what is uncertain."""
    free = [one for one in roles.free.values() if not one.is_outcome and not one.is_truth]
    run = list(takewhile(lambda one: one.is_uncertain, reversed(free)))[::-1]
    known = {value for one in run for value in one.values}
    if len(run) < 2 or len(run) == len(free) or known != {-1, 0, 1}:
        return False
    if roles.fields.get("row") == "view" or not allows_layout(roles, "one_hot"):
        return False
    reason = f"the last {len(run)} columns hold 1, 0, and -1: uncertain, which is offered too"
    about = {"layout": "one_hot", "label_style": "uncertain"}
    roles.take("labels", [one.name for one in run], reason, **about)
    return True


def flags_of_some_rows(roles: Roles) -> bool:
    """The run of columns at the end that hold 1 and 0, or -1 in all of a row nobody looked at."""
    free = [one for one in roles.free.values() if not one.is_outcome and not one.is_truth]
    run = list(takewhile(lambda one: one.is_uncertain, reversed(free)))[::-1]
    if roles.fields.get("row", "item") != "item" or not allows_layout(roles, "one_hot"):
        return False
    if not _whole_rows(roles, run):
        return False
    reason = f"the last {len(run)} columns hold 1 and 0, or -1 in all of them: not looked at"
    about = {"layout": "one_hot", "label_style": "uncertain"}
    roles.take("labels", [one.name for one in run], reason, **about)
    roles.set("not_asked", ("-1", "-1.0"), "-1 stands in all labels of a row or in none")
    return True


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


def style_of(columns: Sequence[Profile]) -> str:
    values = {value for one in columns for value in one.values}
    if values and all(isinstance(value, bool) for one in columns for value in one.values):
        return "true/false"
    return "-1/1" if -1 in values and 0 not in values else "0/1"


def allows_layout(roles: Roles, layout: str) -> bool:
    return bool(roles.fields.get("layout", layout) == layout)
