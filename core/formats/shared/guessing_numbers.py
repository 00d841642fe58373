"""Labels in columns of numbers: a model's probabilities, shares or counts of people, ratings.

The finders that `guessing` asks. Numbers may be features as well: those that nothing but a text
beside them speaks for are asked about (`questions`).
"""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from core.formats.shared.guessing_flags import MAX_RATED, allows_layout
from core.formats.shared.profiles import Profile, Roles

STEM = r"prob|proba|probs|probability|score|pred|prediction|predicted"
PROBABLE = re.compile(
    rf"(?P<before>{STEM}|p)[ _.:-](?P<label>.+)|.+[ _.:-](?P<behind>{STEM})", re.I
)
NUMBERED = re.compile(r"([a-z]{1,4})(\d{1,3})")  # w1, w2
PEOPLE = ("a", "an", "ann", "anno", "r", "rat", "w", "wk", "j", "p", "u")
MIN_PEOPLE = 3
AGREE = 0.2  # mean correlation of people who look for the same
NEARLY_ALL = 0.95
HUNDRED = 100
GRADED = "numbers beside a text"  # how reasons begin that are asked about
ALIKE_FLAGS = "columns that differ by a number only"

Numbers = npt.NDArray[np.float64]


def probabilities_of_one(roles: Roles) -> bool:
    """Columns such as prob_sea, prob_sun: what one model says of each label."""
    if roles.fields.get("row", "people") != "people" or not allows_layout(roles, "one_hot"):
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
        if len(names) > 1 and is_any and all(name.count(stem) == 1 for name in names):
            why = f"{len(names)} columns hold what one source gives each label ({stem})"
            roles.set("row", "people", why)
            about = {"layout": "one_hot", "label_style": "probability"}
            roles.take("labels", names, why, sources=(stem,) * len(names), **about)
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
    said = np.stack([_column(roles, one) for one in columns])
    said = said[:, ~np.isnan(said).any(axis=0)]
    said = said[said.std(axis=1) > 0] if said.size else said
    if len(said) < MIN_PEOPLE:
        return False
    correlations: Numbers = np.asarray(np.corrcoef(said), np.float64)
    return bool(correlations[np.triu_indices(len(said), 1)].mean() >= AGREE)


def graded_labels(roles: Roles) -> bool:
    """Beside a text or picture: shares of people, how many of them, or ratings up to 100."""
    if roles.fields.get("row", "item") != "item" or not allows_layout(roles, "one_hot"):
        return False
    free = [one for one in roles.free.values() if one.kind in ("number", "binary")]
    free = [one for one in free if not (one.is_outcome or one.is_truth or one.is_never_feature)]
    given = {one.name: _column(roles, one) for one in free if _is_number(roles, one)}
    given = {name: numbers for name, numbers in given.items() if np.nanmin(numbers, initial=0) == 0}
    shares = [name for name in given if roles.profiles[name].is_share and _most(given, [name]) <= 1]
    counts = [name for name in given if name not in shares and _are_whole(given[name])]
    counts = [name for name in counts if _most(given, [name]) <= MAX_RATED]
    ratings = [name for name in given if name not in shares and _most(given, [name]) <= HUNDRED]
    if len(shares) > 1 and _add_up_to_one(given, shares):
        return _take(roles, shares, "share", "shares of each label, which add up to one")
    if not any(one.is_wordy or one.is_picture for one in roles.free.values()):
        return False  # numbers alone may be anything
    if len(shares) > 1 and any(roles.profiles[name].is_probability for name in shares):
        return _take(roles, shares, "share", f"{GRADED} from 0 to 1: shares of people")
    if len(counts) > 1 and len(counts) == len(ratings) and _most(given, counts) > 1:
        most = int(_most(given, counts))
        return _take(
            roles, counts, "votes", f"{GRADED} from 0 to {most}: how many of {most} people"
        )
    if len(ratings) > 1 and _most(given, ratings) > HUNDRED / 2:
        return _take(roles, ratings, "percent", f"{GRADED} from 0 to 100: ratings of each label")
    return False


def _take(roles: Roles, names: Sequence[str], style: str, why: str) -> bool:
    reason = f"{why} ({len(names)} columns)"
    roles.take("labels", names, reason, layout="one_hot", label_style=style)
    return True


def _is_number(roles: Roles, one: Profile) -> bool:
    kind = roles.table.column(one.name).type
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def _column(roles: Roles, one: Profile) -> Numbers:
    """Return the numbers at hand, NaN where there is none."""
    cells = roles.table.column(one.name).cast(pa.float64())
    values: Any = cells.fill_null(float("nan")).to_numpy()
    return np.where(np.isfinite(values), values, np.nan)


def _most(given: dict[str, Numbers], names: Sequence[str]) -> float:
    return float(max(np.nanmax(given[name], initial=0) for name in names))


def _are_whole(numbers: Numbers) -> bool:
    return not np.any(np.nan_to_num(numbers) % 1)


def _add_up_to_one(given: dict[str, Numbers], names: Sequence[str]) -> bool:
    sums = np.sum([given[name] for name in names], axis=0)
    return len(sums) > 1 and bool(np.mean(np.abs(sums - 1) < 0.02) >= NEARLY_ALL)
