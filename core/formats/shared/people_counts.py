"""Columns that count who chose each label: every row has the same sum, or says which."""

import re
from collections import Counter
from collections.abc import Sequence
from itertools import takewhile

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from core.formats.shared.answers import MAX_SEATS
from core.formats.shared.people_names import WHO
from core.formats.shared.profiles import NEARLY_ALL, Profile, Roles

TOTAL = re.compile(
    rf"count|total|n|(n|num|number)[ _]?(of[ _])?({WHO}|votes|annotations|responses)"
    rf"|({WHO}|votes?|annotations?)[ _]count"
)
MAX_COUNTED = 200  # labels with a column of counts


def find_counts(roles: Roles) -> bool:
    """Columns that count who chose each label: each row has the same sum, or says which."""
    return _counts_with_total(roles) or _counts_of_one_sum(roles)


def _counts_with_total(roles: Roles) -> bool:
    """Columns that add up to one that says how many people there were: behind it, or before."""
    free = [one for one in roles.free.values() if not one.is_outcome]
    for at, total in enumerate(free):
        if not TOTAL.fullmatch(total.key) or not _is_count(roles, total):
            continue
        for side in (free[at + 1 :], [one for one in free[:at] if _is_count(roles, one)][::-1]):
            found = _adding_up_to(roles, total, side[:MAX_COUNTED])
            if found:
                names = [name for name in roles.free if name in found]
                why = f"{len(names)} columns count who chose each label: "
                about = {"layout": "one_hot", "label_style": "count"}
                roles.take("labels", names, f"{why}they add up to {total.name!r}", **about)
                roles.set_aside([total.name])
                return True
    return False


def _adding_up_to(roles: Roles, total: Profile, ordered: Sequence[Profile]) -> list[str]:
    """Return the first of these columns that add up to a total in nearly every row."""
    sums, said = np.zeros(len(roles.cells(total.name))), _numbers(roles, total)
    columns = list(takewhile(lambda one: _is_count(roles, one), ordered))
    for n, column in enumerate(columns, 1):
        sums = sums + _numbers(roles, column)
        if n > 1 and 1 < said.max() <= MAX_SEATS and np.mean(sums == said) >= NEARLY_ALL:
            return [one.name for one in columns[:n]]
    return []


def _is_count(roles: Roles, one: Profile) -> bool:
    is_whole = pa.types.is_integer(roles.table.column(one.name).type)
    return is_whole and min(one.values, default=0) >= 0


def _numbers(roles: Roles, one: Profile) -> npt.NDArray[np.float64]:
    cells = roles.cells(one.name)
    return np.array([-1 if cell is None else cell for cell in cells], np.float64)


def _counts_of_one_sum(roles: Roles) -> bool:
    """Columns at the end whose rows all have the same sum."""
    free = [one for one in roles.free.values() if not one.is_outcome]
    columns = list(takewhile(lambda one: one.kind in ("number", "binary"), reversed(free)))[::-1]
    whole = [one for one in columns if all(isinstance(v, int) and v >= 0 for v in one.values)]
    if len(columns) < 3 or len(whole) < len(columns) or len(columns) > MAX_COUNTED:
        return False
    cells = zip(*(roles.cells(one.name) for one in columns), strict=True)
    sums = Counter(sum(row) for row in cells if None not in row)
    (total, times), *_ = sums.most_common(1) or [(0, 0)]
    most = max((value for one in columns for value in one.values), default=0)
    if total < 2 or total > MAX_SEATS or most < 2 or times < NEARLY_ALL * sums.total() or times < 5:
        return False
    why = f"{len(columns)} columns count who chose each label: every row adds up to {total}"
    about = {"layout": "one_hot", "label_style": "count"}
    roles.take("labels", [one.name for one in columns], why, **about)
    return True
