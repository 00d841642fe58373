"""A table of named columns becomes a data set: the half of reading that all table files share.

Owns how labels, truth and features are taken out of columns; what a file looks like inside
belongs to `delimited`, `parquet` and `json_tables`. Rows in problems are counted from 1.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import scipy.sparse as sp

from core.dataset import CandidateDataset, DistinctNames, Features, Labels
from core.errors import DatasetError
from core.formats.blocks import FeatureBlock, RowBlock
from core.formats.cells import parse_flag, parse_names, parse_number, parse_numbers
from core.formats.findings import Findings, refuse
from core.formats.limits import check_shape
from core.formats.mapping import (
    FEATURE_PREFIX,
    LABEL_PREFIXES,
    TRUTH_PREFIXES,
    ColumnMapping,
    guess_mapping,
    plain_names,
)

MAX_WORDS = 20_000
MAX_COLUMNS = 50_000

Flags = npt.NDArray[Any]  # of 0/1 or booleans


def table_to_dataset(
    table: pa.Table, given: ColumnMapping | None, findings: Findings
) -> tuple[CandidateDataset, ColumnMapping]:
    """Return a table that is in memory as a data set, and the mapping it was read with."""
    mapping = guess_mapping(table, given)
    check_mapping(mapping, table.column_names, findings)
    return to_dataset(table.to_batches(), mapping, table.num_rows, findings), mapping


def check_mapping(mapping: ColumnMapping, columns: Sequence[str], findings: Findings) -> None:
    """Refuse a mapping that names columns the table does not have, or no labels or features."""
    present = set(columns)
    for name in mapping.used:
        if name not in present:
            rule = "the mapping names a column that the file does not have"
            shown = ", ".join(columns[:20]) + (" …" if len(columns) > 20 else "")
            findings.add(rule, f"The file has: {shown}.", fatal=True, column=name)
    if not mapping.labels:
        fix = "Call them label_<name> (0/1), put names in one column `labels`, or state a mapping."
        findings.add("no label columns were found", fix, fatal=True, value=", ".join(columns[:20]))
    if not mapping.features:
        fix = "Add columns of numbers, a list column `embedding`, or a text column."
        findings.add("no features were found", fix, fatal=True, value=", ".join(columns[:20]))
    with telling_mapping(mapping):
        findings.stop_if_fatal()


@contextmanager
def telling_mapping(mapping: ColumnMapping) -> Iterator[None]:
    """Have a `DatasetError` carry the mapping, so that its owner can correct it."""
    try:
        yield
    except DatasetError as error:
        error.mapping = mapping
        raise


def to_dataset(
    batches: Iterable[pa.RecordBatch], mapping: ColumnMapping, rows: int, findings: Findings
) -> CandidateDataset:
    """Return the batches' rows as a data set; `rows` is at least their number.

    Raises
    ------
    DatasetError
        With everything found, by the reader and by the data set itself.
    """
    offered: LabelSets | None = None
    if mapping.layout == "long":
        table, offered = _fold(pa.Table.from_batches(batches), mapping, findings)
        batches = table.to_batches()
    with telling_mapping(mapping):
        arrays = _Arrays(mapping, rows, findings)
        for batch in batches:
            arrays.add(batch)
        return arrays.dataset(offered)


@dataclass(frozen=True)
class LabelSets:
    """Per instance the names of its labels."""

    sets: list[list[str]]

    def names(self) -> set[str]:
        return set().union(*self.sets)

    def matrix(self, label_names: Sequence[str]) -> Labels:
        """Return the (n, L) matrix; names that are not labels are left out."""
        check_shape(len(self.sets), 0, len(label_names))
        index = {name: j for j, name in enumerate(label_names)}
        matrix = np.zeros((len(self.sets), len(label_names)), np.uint8)
        for row, names in zip(matrix, self.sets, strict=True):
            row[[index[name] for name in names if name in index]] = 1
        return matrix


class _Arrays:
    """What is taken out of the batches so far."""

    def __init__(self, mapping: ColumnMapping, rows: int, findings: Findings) -> None:
        self.mapping, self.findings, self.n = mapping, findings, 0
        in_columns = mapping.feature_layout == "columns"
        self.feature_columns = mapping.features if in_columns else ()
        self.label_columns = mapping.labels if mapping.layout == "one_hot" else ()
        self.truth_columns = mapping.truth if mapping.truth_layout == "one_hot" else ()
        check_shape(0, len(self.feature_columns), len(self.label_columns))
        self.features = FeatureBlock(len(self.feature_columns), rows)
        self.labels = RowBlock(len(self.label_columns), np.int8, rows)
        self.truth = RowBlock(len(self.truth_columns), np.int8, rows)
        done = {*self.feature_columns, *self.label_columns, *self.truth_columns}
        long = mapping.labels if mapping.layout == "long" else ()
        self.kept = [name for name in mapping.used if name not in done and name not in long]
        self.rest: list[pa.Table] = []
        self.blank: set[str] = set()

    def add(self, batch: pa.RecordBatch) -> None:
        """Take a batch's numbers and flags; keep its other columns as they are."""
        groups: tuple[tuple[Any, tuple[str, ...], Callable[..., npt.NDArray[Any]]], ...] = (
            (self.features, self.feature_columns, self._numbers),
            (self.labels, self.label_columns, self._flags),
            (self.truth, self.truth_columns, self._flags),
        )
        for block, names, convert in groups:
            if names:
                block.add([convert(batch.column(name), name) for name in names])
        self.rest.append(pa.Table.from_batches([batch]).select(self.kept))
        self.n += batch.num_rows

    def dataset(self, offered: LabelSets | None) -> CandidateDataset:
        if not self.n:
            refuse("a table needs rows below its header", "Add instances.", value="no rows")
        table = concatenated(self.rest)
        ids, display = self._ids(table), _display(table, self.mapping.display)
        label_names, candidates = self._candidates(table, offered)
        truth = self._truth(table, label_names)
        features, feature_names = self._features(table)
        try:
            dataset = CandidateDataset(
                features=features,
                candidates=candidates,
                label_names=label_names,
                ids=ids,
                feature_names=feature_names,
                truth=truth,
                display=display,
            )
        except DatasetError as error:
            raise DatasetError([*self.findings.problems(), *error.problems]) from None
        self.findings.stop_if_fatal()
        return dataset

    def _numbers(self, column: pa.Array, name: str) -> npt.NDArray[np.floating[Any]]:
        if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
            return self._parsed(column, name)
        if not (is_number(column.type) or pa.types.is_null(column.type)):
            rule = "a feature column must hold numbers"
            fix = "Map the column to display, or encode it."
            self.findings.add(rule, fix, fatal=True, column=name, value=str(column.type))
            return np.zeros(len(column), np.float32)
        return as_floats(column)

    def _parsed(self, column: pa.Array, name: str) -> npt.NDArray[np.floating[Any]]:
        """Return text as numbers: all at once if it can be, else cell by cell to tell which not."""
        decimal = self.mapping.decimal
        try:
            spelled = pc.replace_substring(column, decimal, ".") if decimal == "," else column
            blank = pc.equal(spelled, "")
            return as_floats(pc.if_else(blank, None, spelled).cast(pa.float32()))
        except pa.ArrowInvalid:
            pass
        values = [parse_number(text or "", decimal) for text in column.to_pylist()]
        for i, value in enumerate(values):
            if value is None:
                rule, fix = "features must be numbers", "Correct it, or map the column to display."
                self._tell(rule, fix, i, name, column[i].as_py())
        numbers = [0.0 if value is None else value for value in values]
        with np.errstate(over="ignore"):
            return np.array(numbers, np.float64).astype(np.float32)

    def _tell(self, rule: str, fix: str, i: int, name: str, value: Any) -> None:
        self.findings.add(rule, fix, fatal=True, row=self.n + i + 1, column=name, value=value)

    def _flags(self, column: pa.Array, name: str) -> Flags:
        """Return 0/1 for a column of labels; anything but 0/1, -1/1 or true/false is told."""
        if column.null_count and name not in self.blank:
            self.blank.add(name)
            rule = "a label has empty cells; they count as not offered"
            self.findings.add(rule, "Fill them if that is wrong.", column=name)
        fast = self._fast_flags(column)
        return self._slow_flags(column, name) if fast is None else fast

    @staticmethod
    def _fast_flags(column: pa.Array) -> Flags | None:
        if column.null_count or not pa.types.is_integer(column.type):
            return None
        values: npt.NDArray[Any] = column.to_numpy(zero_copy_only=False)
        if np.bitwise_or.reduce(values) in (0, 1):  # as every value is; one look at wide columns
            return values
        is_flag = values.max(initial=0) <= 1 and values.min(initial=0) >= -1
        return values > 0 if is_flag else None

    def _slow_flags(self, column: pa.Array, name: str) -> Flags:
        encoded = column.cast(pa.string()) if pa.types.is_null(column.type) else column
        encoded = encoded.dictionary_encode()
        known = [parse_flag(value) for value in encoded.dictionary.to_pylist()]
        codes = encoded.indices.fill_null(len(known)).to_numpy(zero_copy_only=False)
        for i in np.flatnonzero(
            np.isin(codes, [j for j, flag in enumerate(known) if flag is None])
        ):
            rule, fix = "label cells must be 0/1, -1/1 or true/false", "Correct the cell."
            self._tell(rule, fix, int(i), name, column[int(i)].as_py())
        flags: Flags = np.array([flag or 0 for flag in known] + [0], np.int8)[codes]
        return flags

    def _candidates(
        self, table: pa.Table, offered: LabelSets | None
    ) -> tuple[tuple[str, ...], Labels]:
        if self.mapping.layout == "one_hot":
            names = plain_names(self.mapping.labels, LABEL_PREFIXES)
            return names, self.labels.array().view(np.uint8)
        sets = offered or self._sets(table, self.mapping.labels[0])
        stated = self.mapping.label_names
        names = (*stated, *sorted(sets.names() - set(stated)))
        if not names:
            refuse(
                "no instance has a label", "Fill the label column.", column=self.mapping.labels[0]
            )
        return names, sets.matrix(names)

    def _truth(self, table: pa.Table, label_names: tuple[str, ...]) -> Labels | None:
        if not self.mapping.truth:
            return None
        if self.mapping.truth_layout == "delimited":
            return self._truth_sets(table, label_names)
        given = self.truth.array().view(np.uint8)
        index = {name: j for j, name in enumerate(truth_names(self.mapping, label_names))}
        truth = np.zeros((self.n, len(label_names)), np.uint8)
        for j, name in enumerate(label_names):
            if name in index:
                truth[:, j] = given[:, index[name]]
            else:
                fix = "Add the column; until then the label counts as false everywhere."
                self.findings.add("a label has no truth column", fix, column=name)
        return truth

    def _truth_sets(self, table: pa.Table, label_names: tuple[str, ...]) -> Labels:
        sets = self._sets(table, self.mapping.truth[0])
        for name in sorted(sets.names() - set(label_names)):
            rule = "the truth names a label that is never a candidate; it is left out"
            self.findings.add(rule, "Add it to the candidates.", value=name)
        return sets.matrix(label_names)

    def _sets(self, table: pa.Table, name: str) -> LabelSets:
        sets = []
        for i, cell in enumerate(table.column(name).to_pylist()):
            try:
                sets.append(parse_names(cell, self.mapping.delimiter))
            except ValueError:
                rule, fix = "a cell must hold names of labels", 'Write them as ["a", "b"].'
                self.findings.add(rule, fix, fatal=True, row=i + 1, column=name, value=cell)
                sets.append([])
        return LabelSets(sets)

    def _features(self, table: pa.Table) -> tuple[Features, tuple[str, ...]]:
        if self.mapping.feature_layout == "columns":
            prefixes = (FEATURE_PREFIX,)
            return self.features.array(), plain_names(self.feature_columns, prefixes)
        column = table.column(self.mapping.features[0])
        if self.mapping.feature_layout == "list":
            return list_features(column, self.mapping.features[0], self.findings), ()
        return word_features(column, self.mapping.features[0])

    def _ids(self, table: pa.Table) -> Sequence[str]:
        if self.mapping.id is None:
            return ()
        column = table.column(self.mapping.id)
        for i in np.flatnonzero(column.is_null().to_numpy()) if column.null_count else ():
            fix = "Give the instance an id, or leave the id column out."
            self.findings.add("an instance has no id", fix, fatal=True, row=int(i) + 1)
        if pa.types.is_integer(column.type):
            column = column.cast(pa.string())
        if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
            return list(map(str, column.to_pylist()))
        column.validate(full=True)  # what is asked for later must not turn out to be damaged then
        if len(pc.unique(column)) == len(column):
            return DistinctNames(len(column), column.to_pylist)
        return list(column.to_pylist())


def truth_names(mapping: ColumnMapping, label_names: Sequence[str]) -> tuple[str, ...]:
    """Return which label each one-hot truth column is about: by name, else by position."""
    names = plain_names(mapping.truth, TRUTH_PREFIXES)
    if set(names) & set(label_names) or len(names) != len(label_names):
        return names
    return tuple(label_names)


def is_number(kind: pa.DataType) -> bool:
    types = pa.types
    exact = types.is_integer(kind) or types.is_boolean(kind) or types.is_decimal(kind)
    return bool(exact or types.is_floating(kind))


def as_floats(column: pa.Array) -> npt.NDArray[np.floating[Any]]:
    """Return numbers as they are if they are floats, else as float64; missing ones are NaN."""
    if not (pa.types.is_float32(column.type) or pa.types.is_float64(column.type)):
        column = column.cast(pa.float64())
    values: npt.NDArray[np.floating[Any]] = column.to_numpy(zero_copy_only=False)
    return values


def concatenated(tables: Sequence[pa.Table]) -> pa.Table:
    return pa.concat_tables(tables, promote_options="permissive")


def list_features(column: pa.ChunkedArray, name: str, findings: Findings) -> Features:
    """Return the (n, d) features of a column of lists, native or written as text."""
    native = _native_lists(column)
    if native is not None:
        return native
    rows = [_number_row(cell, i, name, findings) for i, cell in enumerate(column.to_pylist())]
    width = max(row.size for row in rows)
    for i, row in enumerate(rows):
        if row.size != width:
            rule, fix = f"every list of features must have {width} numbers", "Make it as long."
            findings.add(rule, fix, fatal=True, row=i + 1, column=name, value=str(row.size))
    check_shape(0, width, 0)
    findings.stop_if_fatal()
    return np.stack(rows)


def _native_lists(column: pa.ChunkedArray) -> npt.NDArray[np.float32] | None:
    """The values of equally long lists without making Python objects of them."""
    types = pa.types
    kind = column.type
    if not (types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)):
        return None
    lengths = pc.unique(pc.list_value_length(column)).to_pylist()
    if len(lengths) != 1 or not lengths[0] or not is_number(kind.value_type):
        return None
    values = pc.list_flatten(column).combine_chunks()
    floats = as_floats(values).astype(np.float32, copy=False)
    return floats.reshape(len(column), lengths[0])


def _number_row(cell: Any, i: int, name: str, findings: Findings) -> npt.NDArray[np.float32]:
    try:
        row = parse_numbers(cell)
        if row.ndim == 1:
            return row
    except (ValueError, TypeError, OverflowError):
        pass
    rule, fix = "a cell must hold a list of numbers", "Correct it, e.g. [0.5, 1.0]."
    findings.add(rule, fix, fatal=True, row=i + 1, column=name, value=cell)
    return np.zeros(0, np.float32)


def word_features(column: pa.ChunkedArray, name: str) -> tuple[sp.csr_array, tuple[str, ...]]:
    """Return TF-IDF features of a text column, sparse, and their words."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    texts = ["" if text is None else str(text) for text in column.to_pylist()]
    words = TfidfVectorizer(max_features=MAX_WORDS, sublinear_tf=True, dtype=np.float32)
    try:
        features = words.fit_transform(texts)
    except ValueError:
        refuse("a text column must hold words", "Map another column to features.", column=name)
    return sp.csr_array(features), tuple(words.get_feature_names_out())


def _display(table: pa.Table, columns: tuple[str, ...]) -> pd.DataFrame | None:
    return table.select(list(columns)).to_pandas() if columns else None


def _fold(
    table: pa.Table, mapping: ColumnMapping, findings: Findings
) -> tuple[pa.Table, LabelSets]:
    """Turn one row per (instance, label) into one row per instance and its set of labels."""
    ids = [str(value) for value in table.column(mapping.id).to_pylist()]
    names = table.column(mapping.labels[0]).to_pylist()
    values = _values(table, mapping, findings)
    sets: dict[str, list[str]] = {}
    first: dict[str, int] = {}
    for i, (key, name, value) in enumerate(zip(ids, names, values, strict=True)):
        first.setdefault(key, i)
        offered = sets.setdefault(key, [])
        if value and name is not None and str(name) != "":
            offered.append(str(name))
    return table.take(pa.array(list(first.values()), pa.int64())), LabelSets(list(sets.values()))


def _values(table: pa.Table, mapping: ColumnMapping, findings: Findings) -> list[int]:
    if len(mapping.labels) == 1:
        return [1] * table.num_rows
    flags = [parse_flag(value) for value in table.column(mapping.labels[1]).to_pylist()]
    for i, flag in enumerate(flags):
        if flag is None:
            rule, fix = "a label's value must be 0/1, -1/1 or true/false", "Correct the cell."
            found = table.column(mapping.labels[1])[i].as_py()
            column = mapping.labels[1]
            findings.add(rule, fix, fatal=True, row=i + 1, column=column, value=found)
    return [flag or 0 for flag in flags]
