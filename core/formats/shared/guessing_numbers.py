"""Labels in columns of numbers: a model's probabilities, shares or counts of people, ratings.

The finders that `guessing` asks. Numbers may be features as well: those that nothing but a text
beside them speaks for are asked about (`questions`).
"""

import re
from collections import Counter
from collections.abc import Sequence
from itertools import takewhile
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from core.formats.shared.answers import MAX_SEATS
from core.formats.shared.guessing_flags import MAX_RATED, allows_layout, take_flags
from core.formats.shared.people_grids import best_grid
from core.formats.shared.profiles import Profile, Roles

STEM = r"prob|proba|probs|probability|probabilities|scores?|pred|prediction|predicted"
PROBABLE = re.compile(
    rf"(?P<before>{STEM}|p)[ _.:-](?P<label>.+)|.+[ _.:-](?P<behind>{STEM})", re.I
)
NUMBERED = re.compile(r"([a-z]{1,4})(\d{1,3})")  # w1, w2
PEOPLE = ("a", "an", "ann", "anno", "r", "rat", "w", "wk", "j", "p", "u")
MIN_PEOPLE = 3
AGREE = 0.2  # mean correlation of people who look for the same
NEARLY_ALL = 0.95
HUNDRED = 100
SOFT = "soft"  # soft_label.joy is derived elsewhere, and a label where there is no other
GRADED = "numbers of each item"  # how reasons begin that are asked about
FAMILY = "columns of numbers that end in"  # how reasons begin that are asked about
ALIKE_FLAGS = "columns that differ by a number only"

Numbers = npt.NDArray[np.float64]


def probabilities_of_one(roles: Roles) -> bool:
    """Columns such as prob_sea, prob_sun: what one model says of each label."""
    if roles.fields.get("row") == "item" or not allows_layout(roles, "one_hot"):
        return False
    found: dict[str, list[str]] = {}
    for one in roles.free.values():
        match = (
            PROBABLE.fullmatch(one.name.strip()) if one.is_share and not one.is_outcome else None
        )
        if match is not None:
            found.setdefault(match["before"] or match["behind"], []).append(one.name)
    for stem, names in found.items():
        is_any = any(roles.profiles[name].is_probability for name in names)
        is_plain = all(name.startswith(stem) or name.count(stem) == 1 for name in names)
        if len(names) > 1 and is_any and is_plain:
            why = f"{len(names)} columns hold what one source gives each label ({stem})"
            about: dict[str, Any] = {"layout": "one_hot", "label_style": "probability"}
            if roles.fields.get("row") != "view":  # then nobody says which model
                roles.set("row", "people", why)
                about["sources"] = (stem,) * len(names)
            roles.take("labels", names, why, **about)
            return True
    return False


def people_of_one_label(roles: Roles) -> bool:
    """Columns w1 to w5 of 0/1 that agree: people who look for one label."""
    is_stated = roles.fields.get("row") == "people"
    if roles.fields.get("row", "people") != "people" or not allows_layout(roles, "one_hot"):
        return False
    groups: dict[str, list[Profile]] = {}
    for one in roles.free.values():
        match = NUMBERED.fullmatch(one.key)
        if match is not None and one.kind == "binary" and -1 not in one.values:
            groups.setdefault(match[1], []).append(one)
    for stem, columns in groups.items():
        names = [one.name for one in columns]
        may_be = is_stated or (stem in PEOPLE and _agree(roles, columns))
        if len(names) >= MIN_PEOPLE and may_be:
            why = f"{ALIKE_FLAGS} and agree: {len(names)} people's yes or no about one label"
            roles.set("row", "people", why)
            roles.take("labels", names, why, layout="one_hot", sources=tuple(names))
            return True
    return False


def _agree(roles: Roles, columns: Sequence[Profile]) -> bool:
    """Whether pairs of columns go together, as far as both were asked."""
    said = np.stack([_column(roles, one) for one in columns])
    asked = (~np.isnan(said)).astype(np.float64)
    yes = np.nan_to_num(said)
    both = asked @ asked.T
    rates = [yes @ asked.T, asked @ yes.T]  # of the first and of the second, where both were asked
    with np.errstate(invalid="ignore", divide="ignore"):
        first, second = (rate / both for rate in rates)
        spread = np.sqrt(first * (1 - first) * second * (1 - second))
        correlations = (yes @ yes.T / both - first * second) / spread
    pairs = correlations[np.triu_indices(len(columns), 1)]
    known = pairs[np.isfinite(pairs)]
    return len(known) > 0 and bool(known.mean() >= AGREE)


def last_graded_labels(roles: Roles) -> bool:
    """Three columns or more at the end that hold shares or counts alike, some perhaps 0/1 alone."""
    given = _from_zero(roles)
    free = [name for name, one in roles.free.items() if not one.is_outcome]
    ends = list(takewhile(given.__contains__, reversed(free)))[::-1]
    graded = [name for name in ends if roles.profiles[name].kind == "number"]
    tops = Counter(_most(given, [name]) for name in graded)
    alike = len(graded) >= MIN_PEOPLE and 3 * len(graded) >= 2 * len(ends)
    alike = alike and max(tops) <= MAX_RATED and max(tops.values()) > 1
    return alike and _take_graded(roles, {name: given[name] for name in ends})


def families_of_numbers(roles: Roles) -> bool:
    """Numbers of every label that tell several things: sea_count, sea_fraction, sun_count, …

    The first shares are taken, else the first counts, and that is asked about.
    """
    given = _from_zero(roles, at_least=True)
    ends = best_grid(list(given), 1)
    families: dict[str, list[str]] = {}
    for name, end in ends.items():
        families.setdefault(end, []).append(name)
    known = [names for names in families.values() if len(names) >= MIN_PEOPLE]
    if len(known) < 2:
        return False
    shares = [n for n in known if _most(given, n) <= 1 and not _are_all_whole(given, n)]
    counts = [n for n in known if 1 < _most(given, n) <= MAX_SEATS and _are_all_whole(given, n)]
    names = next(iter([*shares, *counts]), None)
    if names is None:
        return False
    style = "share" if names in shares else "votes"
    _take(roles, names, style, f"{FAMILY} {ends[names[0]]!r}")
    roles.set_aside([name for name in ends if name not in names])
    return True


def _are_all_whole(given: dict[str, Numbers], names: Sequence[str]) -> bool:
    return all(_are_whole(given[name]) for name in names)


def graded_labels(roles: Roles) -> bool:
    """Beside a text or picture: shares of people, how many of them, or ratings up to 100."""
    given = _from_zero(roles, at_least=True)
    return _take_graded(roles, given if _are_all(roles, given) else _from_zero(roles))


def _from_zero(roles: Roles, *, at_least: bool = False) -> dict[str, Numbers]:
    """Return the columns of numbers from 0 up that may be labels; also those that are never 0."""
    if roles.fields.get("row", "item") != "item" or not allows_layout(roles, "one_hot"):
        return {}
    free = [one for one in roles.may_be_labels if one.kind in ("number", "binary")]
    free = [one for one in free if not one.is_never_feature or one.key.startswith(SOFT)]
    given = {one.name: _column(roles, one) for one in free if _is_number(roles, one)}
    least = {name: np.nanmin(one, initial=1) for name, one in given.items()}
    return {k: one for k, one in given.items() if least[k] == 0 or (at_least and least[k] > 0)}


def _take_graded(roles: Roles, given: dict[str, Numbers]) -> bool:
    given = {name: one for name, one in given.items() if _most(given, [name]) <= HUNDRED}
    shares = [name for name in given if _most(given, [name]) <= 1]
    if len(shares) > 1 and _add_up_to_one(given, shares):
        why = f"shares of each label, which add up to one ({len(shares)} columns)"
        return _take(roles, shares, "share", why)
    if len(given) < 2 or not (_shows_items(roles) or _are_all(roles, given)):
        return False  # numbers alone may be anything
    most = int(_most(given, list(given)))
    described = {
        "share": f"{GRADED} from 0 to 1: shares of people",
        "votes": f"{GRADED} from 0 to {most}: how many of {most} people",
        "percent": f"{GRADED} from 0 to 100: ratings of each label",
    }
    style = _style(given)
    if style is None:
        return False
    return _take(roles, list(given), style, f"{described[style]} ({len(given)} columns)")


def _style(given: dict[str, Numbers]) -> str | None:
    most, are_whole = _most(given, list(given)), all(map(_are_whole, given.values()))
    if most <= 1:
        return None if are_whole else "share"
    if most <= MAX_RATED and are_whole:
        return "votes"
    return "percent" if HUNDRED / 2 < most <= HUNDRED else None


def graded_style(roles: Roles, columns: Sequence[Profile]) -> str | None:
    """Return how columns that somebody calls labels grade them; none if they hold 0/1."""
    given = {one.name: _column(roles, one) for one in columns if _is_number(roles, one)}
    if len(given) < len(columns) or not all(
        np.nanmin(one, initial=0) >= 0 for one in given.values()
    ):
        return None
    return _style(given)


def _shows_items(roles: Roles) -> bool:
    return any(one.is_wordy or one.is_picture for one in roles.free.values())


def _are_all(roles: Roles, given: dict[str, Numbers]) -> bool:
    """Whether there is nothing else but what names rows, or says the same in all."""
    rest = [one for one in roles.free.values() if one.name not in given and one.kind != "empty"]
    told = [one for one in rest if not (one.is_never_feature or roles.is_constant(one.name))]
    return len(given) >= MIN_PEOPLE and not told and all(len(one) > 1 for one in given.values())


def _take(roles: Roles, names: Sequence[str], style: str, why: str) -> bool:
    return take_flags(roles, [roles.profiles[name] for name in names], why, style)


def _is_number(roles: Roles, one: Profile) -> bool:
    kind = roles.table.column(one.name).type
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def _column(roles: Roles, one: Profile) -> Numbers:
    """Return the numbers at hand, NaN where there is none."""
    cells = roles.table.column(one.name).cast(pa.float64(), safe=False)
    values: Any = cells.fill_null(float("nan")).to_numpy()
    return np.where(np.isfinite(values), values, np.nan)


def _most(given: dict[str, Numbers], names: Sequence[str]) -> float:
    return float(max(np.nanmax(given[name], initial=0) for name in names))


def _are_whole(numbers: Numbers) -> bool:
    return not np.any(np.nan_to_num(numbers) % 1)


def _add_up_to_one(given: dict[str, Numbers], names: Sequence[str]) -> bool:
    """Whether shares do, and are shares: 0/1 of which one is 1 are classes."""
    if all(_are_whole(given[name]) for name in names):
        return False
    sums = np.sum([given[name] for name in names], axis=0)
    return len(sums) > 1 and bool(np.mean(np.abs(sums - 1) < 0.02) >= NEARLY_ALL)
