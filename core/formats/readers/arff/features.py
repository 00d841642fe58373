"""Features from ARFF attributes: what nominal values become, since the engine knows only numbers.

Numbers stay numbers, yes and no become 1 and 0, two other values one feature, more one feature per
value. A nominal attribute with another value in every row is a name, and is shown instead. What is
missing among several values is none of them; a missing number is filled in by the reader.
"""

from collections.abc import Sequence
from functools import lru_cache
from itertools import groupby
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from core.data.dataset import Features
from core.formats.readers.arff.text import Attribute, Table
from core.formats.shared.findings import Findings
from core.formats.shared.limits import check_shape, check_size

SPARSE_VALUE = 64  # bytes that a sparse value takes while tables are joined
MISSING = -1  # instead of the place of a value
NO = ("0", "-1", "false", "no", "f", "n", "off")
YES = ("1", "+1", "true", "yes", "t", "y", "on")
MEANING = dict.fromkeys(NO, 0.0) | dict.fromkeys(YES, 1.0)


def truth_values(values: Sequence[str]) -> list[float]:
    """Return 0 or 1 for each value that says no or yes; nothing when any says neither."""
    words = [value.strip().lower() for value in values]
    return [MEANING[word] for word in words] if all(word in MEANING for word in words) else []


def dense_columns(table: Table, columns: list[int]) -> npt.NDArray[np.float32]:
    part = table.numbers[:, columns]
    array: npt.NDArray[np.float32] = part.toarray() if sp.issparse(part) else part.copy()
    return array


def name_texts(table: Table, labels: set[int], findings: Findings) -> None:
    """Move nominal attributes that differ in every row to the table's texts."""
    n = table.numbers.shape[0]
    for j, attribute in enumerate(table.attributes):
        values = attribute.values or ()
        if j in labels or not n <= len(values) or _meaning(attribute) != []:
            continue
        codes = _codes(table, j).tolist()
        known = [code for code in codes if code != MISSING]
        if len(set(known)) == len(known) > 1:
            table.texts[j] = ["" if code == MISSING else values[code] for code in codes]
            fix = "Make it numeric if it is a feature."
            what = "the nominal attribute differs in every row: it is shown, not a feature"
            findings.add(what, fix, column=attribute.name)


def attribute_features(
    table: Table, used: set[int], findings: Findings
) -> tuple[Features, list[str]]:
    """Return the features of all attributes that are not used otherwise, and their names."""
    columns = [j for j in range(len(table.attributes)) if j not in used]
    _check_width(table, columns)
    blocks: list[Any] = []
    names: list[str] = []
    for is_plain, group in groupby(columns, lambda j: _meaning(table.attributes[j]) is None):
        if is_plain:
            plain = list(group)
            blocks.append(table.numbers[:, plain])
            names += [table.attributes[j].name for j in plain]
            continue
        for j in group:
            block, block_names = _spelled_out(table, j, findings)
            blocks.append(block)
            names += block_names
    return _joined(table, blocks), names


def _meaning(attribute: Attribute) -> list[float] | None:
    return None if attribute.values is None else _numbers_meant(attribute.values)


@lru_cache(maxsize=64)  # most attributes of a file have the same values
def _numbers_meant(values: tuple[str, ...]) -> list[float] | None:
    """Return the numbers that the codes of nominal values stand for.

    None where the codes are the numbers, an empty list where there are no numbers.
    """
    try:
        numbers = [float(value) for value in values]
    except ValueError:
        numbers = truth_values(values)
        return None if numbers == [0, 1] else numbers
    return None if numbers == list(range(len(numbers))) else numbers


def _check_width(table: Table, columns: list[int]) -> None:
    nominal = [table.attributes[j].values or () for j in columns if _is_spelled_out(table, j)]
    n, width = table.numbers.shape[0], len(columns) + sum(len(values) for values in nominal)
    check_shape(n, width, 0)
    is_sparse = sp.issparse(table.numbers)
    added = SPARSE_VALUE * n * len(nominal) if is_sparse else 4 * n * width
    fix = "Declare nominal attributes as string, or drop them."
    check_size(added, f"the table of {width:,} features", fix)


def _is_spelled_out(table: Table, column: int) -> bool:
    return _meaning(table.attributes[column]) == []


def _spelled_out(table: Table, column: int, findings: Findings) -> tuple[Any, list[str]]:
    """Return a nominal attribute as its numbers, or as 0/1 features."""
    attribute, codes = table.attributes[column], _codes(table, column)
    values = attribute.values or ()
    missing = codes == MISSING
    if numbers := _meaning(attribute):
        meant = np.where(missing, np.nan, np.asarray(numbers)[codes])
        return meant.astype(np.float32)[:, None], [attribute.name]
    fix = "Make it numeric if its values have an order."
    if len(values) == 2:
        what = "the nominal attribute became one feature: 1 for its second value"
        findings.add(what, fix, column=attribute.name, value=values[1])
        return dense_columns(table, [column]), [f"{attribute.name}={values[1]}"]
    what = f"the nominal attribute became {len(values)} features, one per value"
    findings.add(what, fix, column=attribute.name)
    if missing.any():
        rule, fix = "missing nominal values are 0 in every feature of theirs", "Fill them in."
        findings.add(rule, fix, column=attribute.name, value=f"{missing.sum():,} missing")
    return _one_hot(table, codes, len(values)), [f"{attribute.name}={value}" for value in values]


def _codes(table: Table, column: int) -> npt.NDArray[np.intp]:
    """Return the places of a nominal attribute's values, `MISSING` where there is none."""
    codes = dense_columns(table, [column])[:, 0]
    return np.nan_to_num(codes, nan=MISSING).astype(np.intp)


def _one_hot(table: Table, codes: npt.NDArray[np.intp], n_values: int) -> Any:
    rows = np.flatnonzero(codes != MISSING)
    ones = (np.ones(len(rows), np.float32), (rows, codes[rows]))
    one_hot = sp.csr_array(ones, shape=(len(codes), n_values))
    return one_hot if sp.issparse(table.numbers) else one_hot.toarray()


def _joined(table: Table, blocks: list[Any]) -> Features:
    n = table.numbers.shape[0]
    if not sp.issparse(table.numbers):
        return np.hstack(blocks) if blocks else np.zeros((n, 0), np.float32)
    if not blocks:
        return sp.csr_array((n, 0), dtype=np.float32)
    return sp.hstack([sp.csr_array(block) for block in blocks], format="csr")
