"""A table of named columns becomes a data set: the half of reading that all table files share.

Owns how labels, truth and features are taken out of columns; what a file looks like inside
belongs to `delimited`, `parquet` and `json_tables`. Rows in problems are counted from 1.
"""

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from core.data.dataset import (
    NO_FEATURE,
    PENDING_FEATURES,
    CandidateDataset,
    DistinctNames,
    Features,
    Labels,
    no_features,
)
from core.data.votes import Votes
from core.errors import DatasetError, Problem
from core.formats.shared.answers import NameReader
from core.formats.shared.blocks import FeatureBlock, RowBlock
from core.formats.shared.cells import parse_flag
from core.formats.shared.findings import Findings, refuse
from core.formats.shared.folding import Folded, fold, is_folded
from core.formats.shared.label_sets import LabelSets
from core.formats.shared.limits import check_rows, check_shape, check_size
from core.formats.shared.list_features import (
    as_floats,
    filled,
    is_number,
    list_features,
    parsed_floats,
)
from core.formats.shared.mapping import (
    FEATURE_PREFIX,
    LABEL_PREFIXES,
    TRUTH_PREFIXES,
    ColumnMapping,
    plain_names,
)
from core.formats.shared.questions import ask_about_repeats, ask_what_a_row_is
from core.formats.shared.row_names import cells_of
from core.formats.shared.text_features import word_features

NO_FEATURES = Problem(
    "there are no features: a run goes by votes and label graph alone (alpha = 0)",
    "Add a text, columns of numbers or a list `embedding` so that like instances help each other.",
)
MAX_COLUMNS = 50_000
OBJECT_SPREAD = 16  # times its bytes is what {"a": 1.5, "b": "xy"} takes as a dict (measured: 20)

Flags = npt.NDArray[Any]  # of 0/1 or booleans


def check_mapping(mapping: ColumnMapping, columns: Sequence[str], findings: Findings) -> None:
    """Refuse a mapping that names columns the table does not have, or no labels or features."""
    present = set(columns)
    for name in mapping.used:
        if name not in present:
            rule = "the mapping names a column that the file does not have"
            shown = ", ".join(columns[:20]) + (" …" if len(columns) > 20 else "")
            findings.add(rule, f"The file has: {shown}.", fatal=True, column=name)
    if not mapping.labels:
        fix = "Say which hold them (--labels COLUMN, or Candidate labels on Data), or call columns "
        fix += "of 0/1 label_<name>, one of names `labels`."
        findings.add("no label columns were found", fix, fatal=True, value=", ".join(columns[:20]))
    with mapping_errors(mapping):
        findings.stop_if_fatal()


@contextmanager
def mapping_errors(mapping: ColumnMapping) -> Iterator[None]:
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
    ask_what_a_row_is(mapping, findings)
    with mapping_errors(mapping):
        folded: Folded | None = None
        if is_folded(mapping):
            folded = fold(pa.Table.from_batches(_limited(batches)), mapping, findings)
            batches = folded.table.to_batches()
        arrays = _Arrays(mapping, rows, findings)
        for batch in batches:
            arrays.add(batch)
        return arrays.dataset(folded)


def _limited(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Give batches that are all kept, as long as they fit."""
    n, n_bytes = 0, 0
    for batch in batches:
        n, n_bytes = n + batch.num_rows, n_bytes + batch.nbytes
        check_rows(n)
        check_size(n_bytes)
        yield batch


class _Arrays:
    """What is taken out of the batches so far."""

    def __init__(self, mapping: ColumnMapping, rows: int, findings: Findings) -> None:
        self.mapping, self.findings, self.n, self.n_bytes = mapping, findings, 0, 0
        in_columns = mapping.feature_layout == "columns"
        self.feature_columns = mapping.features if in_columns else ()
        folded = is_folded(mapping)
        self.label_columns = mapping.labels if mapping.layout == "one_hot" and not folded else ()
        self.truth_columns = mapping.truth if mapping.truth_layout == "one_hot" else ()
        check_shape(0, len(self.feature_columns), len(self.label_columns))
        self.features = FeatureBlock(len(self.feature_columns), rows)
        self.labels = RowBlock(len(self.label_columns), np.int8, rows)
        self.truth = RowBlock(len(self.truth_columns), np.int8, rows)
        done = {*self.feature_columns, *self.label_columns, *self.truth_columns}
        done |= {*mapping.labels, str(mapping.source)} if folded else set()
        self.kept = [name for name in mapping.used if name not in done]
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
        self.n += batch.num_rows
        kept = [name for name in self.kept if name in batch.schema.names]
        self.rest.append(pa.Table.from_batches([batch]).select(kept))
        self.n_bytes += self.rest[-1].nbytes
        check_rows(self.n)
        check_size(self.n_bytes)

    def dataset(self, folded: Folded | None) -> CandidateDataset:
        if not self.n:
            refuse("a table needs rows below its header", "Add instances.", value="no rows")
        table = concatenated(self.rest)
        ids, display = self._ids(table), _display(table, self.mapping.display)
        ask_about_repeats(self.mapping, display, self.findings)
        label_names, candidates, votes = self._candidates(table, folded)
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
                votes=votes,
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
        """Return text as numbers; cells that are none are told."""
        values, wrong = parsed_floats(column, self.mapping.decimal, pa.float32())
        for i in wrong:
            rule, fix = "features must be numbers", "Correct it, or map the column to display."
            self._tell(rule, fix, i, name, column[i].as_py())
        return values

    def _tell(self, rule: str, fix: str, i: int, name: str, value: Any) -> None:
        self.findings.add(rule, fix, fatal=True, row=self.n + i + 1, column=name, value=value)

    def _flags(self, column: pa.Array, name: str) -> Flags:
        """Return 0/1 for a column of labels; anything but 0/1, -1/1 or true/false is told."""
        is_tick = self.mapping.label_style == "tick" and name in self.mapping.labels
        if is_tick:
            texts = column.cast(pa.string()).fill_null("")
            return np.asarray(pc.not_equal(pc.utf8_trim_whitespace(texts), ""))
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
        self, table: pa.Table, folded: Folded | None
    ) -> tuple[tuple[str, ...], Labels, Votes | None]:
        if folded is None and self.mapping.layout == "one_hot":
            plain = plain_names(self.mapping.labels, LABEL_PREFIXES)
            names = self.mapping.label_names or plain
            return names, self.labels.array().view(np.uint8), None
        stated = self.mapping.label_names
        if folded is None:
            sets = self._sets(table, self.mapping.labels)
            names = (*stated, *sorted(sets.names - set(stated)))
        else:
            names = folded.label_names
        if not names:
            self.findings.stop_if_fatal()
            refuse(
                "no instance has a label", "Fill the label column.", column=self.mapping.labels[0]
            )
        if folded is None:
            return names, sets.matrix(names), None
        check_shape(self.n, 0, len(names))
        votes = folded.answers.votes(self.n, names)
        return names, votes.candidates, votes if folded.voted else None

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
        sets = self._sets(table, self.mapping.truth[:1])
        for name in sorted(sets.names - set(label_names)):
            rule = "the truth names a label that is never a candidate; it is left out"
            self.findings.add(rule, "Add it to the candidates.", value=name)
        return sets.matrix(label_names)

    def _sets(self, table: pa.Table, columns: Sequence[str]) -> LabelSets:
        """Return the labels that these columns list."""
        sets, names = LabelSets(len(table)), NameReader(self.mapping, self.findings)

        def parsed(cell: Any) -> "array[int]":
            return sets.numbers(names(cell))

        known = lru_cache(MAX_COLUMNS)(parsed)  # the same few texts fill most columns
        for name in columns:
            for i, cell in enumerate(cells_of(table.column(name))):
                try:
                    numbers = known(cell) if isinstance(cell, str) else parsed(cell)
                except DatasetError:
                    raise
                except ValueError:
                    rule, fix = "a cell must hold names of labels", 'Write them as ["a", "b"].'
                    self.findings.add(rule, fix, fatal=True, row=i + 1, column=name, value=cell)
                else:
                    sets.add(i, numbers)
            names.report_ignored(name)
        return sets

    def _features(self, table: pa.Table) -> tuple[Features, tuple[str, ...]]:
        if self.mapping.feature_layout == "encoded":  # by `core.encoders`, which takes its time
            return np.zeros((self.n, 1), np.float32), PENDING_FEATURES
        if not self.mapping.features:
            self.findings.add(NO_FEATURES.message, NO_FEATURES.fix)
            return no_features(self.n), (NO_FEATURE,)
        if self.mapping.feature_layout == "columns":
            prefixes = (FEATURE_PREFIX,)
            names = plain_names(self.feature_columns, prefixes)
            return filled(self.features.array(), names, self.findings), names
        column = table.column(self.mapping.features[0])
        if self.mapping.feature_layout == "list":
            return list_features(column, self.mapping.features[0], self.findings), ()
        columns = [cells_of(table.column(name)) for name in self.mapping.features]
        texts = [
            "\n".join("" if text is None else str(text) for text in row)
            for row in zip(*columns, strict=True)
        ]
        features, words = word_features(texts, ", ".join(self.mapping.features))
        return features, tuple(words)

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
        n_items = len(pc.unique(column))
        if n_items == len(column):
            return DistinctNames(len(column), column.to_pylist)
        self._ask_what_a_row_is(column, n_items)
        return ()

    def _ask_what_a_row_is(self, column: pa.ChunkedArray, n_items: int) -> None:
        counts = pc.value_counts(column)
        again = counts.filter(pc.greater(counts.field("counts"), 1)).field("values")
        shown = ", ".join(map(repr, again[:5].to_pylist())) + (" …" if len(again) > 5 else "")
        rule = f"what is one row? {n_items:,} different ids are in {self.n:,} rows"
        fix = "If a row is one person's view of an item, say so (--row view, and --source COLUMN "
        fix += "for who it is); otherwise give each row an id of its own, or state another id."
        self.findings.add(rule, fix, fatal=True, column=self.mapping.id, value=shown)


def truth_names(mapping: ColumnMapping, label_names: Sequence[str]) -> tuple[str, ...]:
    """Return which label each one-hot truth column is about: by name, else by position."""
    names = plain_names(mapping.truth, TRUTH_PREFIXES)
    if set(names) & set(label_names) or len(names) != len(label_names):
        return names
    return tuple(label_names)


def concatenated(tables: Sequence[pa.Table]) -> pa.Table:
    return pa.concat_tables(tables, promote_options="permissive")


def _display(table: pa.Table, columns: tuple[str, ...]) -> pd.DataFrame | None:
    shown = table.select([name for name in columns if name in table.column_names])
    check_size(sum(map(_object_bytes, shown.columns)), "what is shown")
    return shown.to_pandas() if shown.num_columns else None


def _object_bytes(column: pa.ChunkedArray) -> int:
    """Return about how many bytes a column of objects takes as Python's, which others are not."""
    kind = column.type
    while pa.types.is_list(kind) or pa.types.is_large_list(kind):
        kind = kind.value_type
    return OBJECT_SPREAD * column.nbytes if pa.types.is_struct(kind) or pa.types.is_map(kind) else 0
