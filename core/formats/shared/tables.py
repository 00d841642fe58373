"""A data set becomes a table again: the half of writing that all table files share.

Owns which columns are written, in which order: those of the mapping, or id, display, features,
labels, truth; then resolved labels, confidences and reasons. Rows are made in chunks.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import compress
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import scipy.sparse as sp

from core.data.dataset import CandidateDataset, Labels
from core.errors import ExportError
from core.formats.shared.answers import spelled_out
from core.formats.shared.cells import WORDS, is_plain, join_names
from core.formats.shared.guessing_features import LIST_NAMES, NARROW
from core.formats.shared.label_sets import shown_values
from core.formats.shared.mapping import (
    FEATURE_PREFIX,
    LABEL_PREFIXES,
    OUTCOME_PREFIXES,
    TRUTH_PREFIXES,
    ColumnMapping,
    Resolution,
)
from core.formats.shared.profiles import ID_NAMES, TRUTH_NAMES, Profile
from core.formats.shared.set_columns import SET_NAMES
from core.formats.shared.tabular import truth_names

ANSWERS = ("annotations", "answers", "votes")  # who said what, where rows are items: the first free
CHUNK_CELLS = 4_000_000
CONFIDENCE_DECIMALS = 4
OTHER_MAPPING = "Leave the mapping out, or use the one this data was read with."

MEANINGFUL_NAMES = {*ID_NAMES, *LIST_NAMES, *SET_NAMES, *TRUTH_NAMES}
MEANINGFUL_PREFIXES = (*LABEL_PREFIXES, *TRUTH_PREFIXES, *OUTCOME_PREFIXES, FEATURE_PREFIX)


@dataclass(frozen=True)
class Rows:
    """A run of instances, with what several columns need of it computed once."""

    dataset: CandidateDataset
    resolution: Resolution | None
    start: int
    stop: int
    as_text: bool
    instances: npt.NDArray[np.int64] | None = None  # of each row, where rows are views of them

    @property
    def span(self) -> Any:
        """What takes these rows' instances out of an array."""
        return slice(self.start, self.stop) if self.instances is None else self.instances

    @cached_property
    def feature_columns(self) -> npt.NDArray[np.float32]:
        """(d, rows): one contiguous row per feature."""
        return dense_columns(self.dataset.features[self.span])


def dense_columns(features: Any) -> npt.NDArray[np.float32]:
    block = features.toarray() if sp.issparse(features) else features
    return np.ascontiguousarray(block.T)


@dataclass(frozen=True)
class Column:
    name: str
    cells: Callable[[Rows], pa.Array]


def column_names(
    dataset: CandidateDataset, mapping: ColumnMapping | None, resolution: Resolution | None
) -> list[str]:
    """Return the header that `batches_of` writes below."""
    return [column.name for column in _columns(dataset, mapping, resolution)]


def batches_of(
    dataset: CandidateDataset,
    mapping: ColumnMapping | None,
    resolution: Resolution | None,
    *,
    as_text: bool = False,
) -> Iterator[pa.RecordBatch]:
    """Give the data set as chunks of rows; lists become text where the file has no lists."""
    mapping = mapping or default_mapping(dataset)
    columns = _columns(dataset, mapping, resolution)
    step = max(1, CHUNK_CELLS // len(columns))
    for start in range(0, dataset.n_instances, step):
        stop = min(start + step, dataset.n_instances)
        rows = Rows(dataset, resolution, start, stop, as_text)
        if mapping.layout == "long":
            yield _long_batch(rows, mapping)
        else:
            yield _batch(columns, rows)


def default_mapping(dataset: CandidateDataset) -> ColumnMapping:
    """Return a layout that our own reader understands without being told."""
    shown = () if dataset.display is None else tuple(map(str, dataset.display.columns))
    prefix = "" if _need_no_prefix(dataset, shown) else FEATURE_PREFIX
    features = tuple(prefix + name for name in dataset.feature_names if dataset.has_features)
    labels = tuple("label_" + name for name in dataset.label_names)
    layout: dict[str, Any] = {}
    free = [name for name in ANSWERS if name not in shown]
    if dataset.votes is not None and free:
        labels, layout = (free[0],), {"layout": "answers", "answers": "by_source", "no_label": ()}
        layout["label_names"] = tuple(dataset.label_names)
    truth = () if dataset.truth is None else tuple("truth_" + name for name in dataset.label_names)
    id_column = "plain_id" if "id" in shown else "id"
    return ColumnMapping(
        id=id_column,
        labels=labels,
        features=features,
        truth=truth,
        display=shown,
        columns=(id_column, *shown, *features, *labels, *truth),
        **layout,
    )


def _need_no_prefix(dataset: CandidateDataset, shown: tuple[str, ...]) -> bool:
    """Whether feature names can stand alone: nothing else would be taken for a feature."""
    names = dataset.feature_names
    if any(
        name.strip().casefold() in MEANINGFUL_NAMES or name.startswith(MEANINGFUL_PREFIXES)
        for name in names
    ):
        return False
    if len(names) < NARROW and any(map(_is_no_feature, names, dense_columns(dataset.features))):
        return False
    return not set(names) & set(shown) and not any(_reads_as_feature(dataset, c) for c in shown)


def _is_no_feature(name: str, values: npt.NDArray[np.float32]) -> bool:
    """Whether a reader would leave such numbers out unless told that they are a feature."""
    few = [int(value) if value == int(value) else float(value) for value in values[:100]]
    return bool((values == values[0]).all()) or Profile(name, "number", few).is_never_feature


def _reads_as_feature(dataset: CandidateDataset, name: str) -> bool:
    """Whether a column holds nothing but numbers, true, false, yes and no."""
    assert dataset.display is not None
    column = dataset.display[name].dropna().astype(str)
    column = column[~column.str.strip().str.casefold().isin(WORDS)]
    try:
        column.str.replace(",", " ").str.strip("[]() ").str.split().explode().astype(float)
    except ValueError:
        return False
    return True


def _columns(
    dataset: CandidateDataset, mapping: ColumnMapping | None, resolution: Resolution | None
) -> list[Column]:
    mapping = mapping or default_mapping(dataset)
    known = _known_columns(dataset, mapping)
    order = mapping.columns or tuple(known)
    missing = [name for name in order if name not in known]
    if missing:
        detail = f"The mapping has columns that the data has not: {', '.join(missing[:20])}."
        raise ExportError("The file cannot be written like its source.", detail, OTHER_MAPPING)
    outcome = [] if resolution is None else outcome_columns(dataset, mapping, resolution)
    replaced = {column.name for column in outcome}
    return [*(known[name] for name in order if name not in replaced), *outcome]


def _known_columns(dataset: CandidateDataset, mapping: ColumnMapping) -> dict[str, Column]:
    """Every column the mapping can ask for, by name."""
    found = [
        *_display_columns(dataset),
        *_feature_columns(dataset, mapping),
        *_label_columns(dataset, mapping),
        *_truth_columns(dataset, mapping),
    ]
    if mapping.id is not None:
        kind = pa.int64() if mapping.numeric_id else pa.string()
        found.append(Column(mapping.id, lambda rows: _texts(dataset.ids[rows.span]).cast(kind)))
    return {column.name: column for column in found}


def _display_columns(dataset: CandidateDataset) -> list[Column]:
    if dataset.display is None:
        return []
    frame = dataset.display

    def shown(position: int) -> Callable[[Rows], pa.Array]:
        whole = shown_values(frame.iloc[:, position])
        return lambda rows: whole.slice(rows.start, rows.stop - rows.start)

    return [Column(str(name), shown(i)) for i, name in enumerate(frame.columns)]


def _feature_columns(dataset: CandidateDataset, mapping: ColumnMapping) -> list[Column]:
    if mapping.feature_layout in ("text", "encoded"):
        return []  # the text or picture is a display column, and encoded again when read
    if mapping.feature_layout == "list":
        return [Column(mapping.features[0], _feature_lists)]
    if not mapping.features and not dataset.has_features:
        return []
    _check_count("features", len(mapping.features), dataset.n_features)

    def feature(j: int) -> Callable[[Rows], pa.Array]:
        return lambda rows: pa.array(rows.feature_columns[j])

    return [Column(name, feature(j)) for j, name in enumerate(mapping.features)]


def _feature_lists(rows: Rows) -> pa.Array:
    block = rows.feature_columns.T
    if rows.as_text:
        numbers = pa.array(np.ravel(block)).cast(pa.string()).to_numpy(zero_copy_only=False)
        return pa.array(["[" + ", ".join(row) + "]" for row in numbers.reshape(block.shape)])
    offsets = pa.array(np.arange(len(block) + 1) * block.shape[1], pa.int32())
    return pa.ListArray.from_arrays(offsets, pa.array(np.ravel(block)))


def _label_columns(dataset: CandidateDataset, mapping: ColumnMapping) -> list[Column]:
    if mapping.layout == "long":
        return [
            Column(name, lambda rows: pa.nulls(rows.stop - rows.start)) for name in mapping.labels
        ]
    if mapping.layout == "delimited" and len(mapping.labels) == 1:
        return [_set_column(mapping.labels[0], dataset.candidates, dataset, mapping)]
    if mapping.layout == "answers" and mapping.source is None and dataset.votes is not None:
        return [Column(mapping.labels[0], _answers)]
    _check_count("labels", len(mapping.labels), dataset.n_labels)
    names, matrix = mapping.labels, dataset.candidates
    return [_flag_column(name, matrix, j, mapping.label_style) for j, name in enumerate(names)]


def _answers(rows: Rows) -> pa.Array:
    assert rows.dataset.votes is not None
    said = spelled_out(rows.dataset.votes, rows.dataset.label_names, rows.start, rows.stop)
    return _texts(said)


def _truth_columns(dataset: CandidateDataset, mapping: ColumnMapping) -> list[Column]:
    if dataset.truth is None or not mapping.truth:
        return []
    if mapping.truth_layout == "delimited":
        return [_set_column(mapping.truth[0], dataset.truth, dataset, mapping)]
    index = {name: j for j, name in enumerate(dataset.label_names)}
    about = zip(mapping.truth, truth_names(mapping, dataset.label_names), strict=True)
    truth, style = dataset.truth, mapping.label_style
    return [
        _flag_column(name, truth, index[label], style) for name, label in about if label in index
    ]


def _flag_column(name: str, matrix: Labels, j: int, style: str) -> Column:
    def cells(rows: Rows) -> pa.Array:
        flags = matrix[rows.span, j]
        if style == "true/false":
            return pa.array(flags.astype(bool))
        return pa.array(
            2 * flags.astype(np.int8) - 1 if style == "-1/1" else np.ascontiguousarray(flags)
        )

    return Column(name, cells)


def _set_column(
    name: str, matrix: Labels, dataset: CandidateDataset, mapping: ColumnMapping
) -> Column:
    """A column of label sets: joined by the delimiter, or lists where a name contains it."""
    names, delimiter = dataset.label_names, mapping.delimiter
    plain = delimiter is not None and all(is_plain(one, delimiter) for one in names)

    def cells(rows: Rows) -> pa.Array:
        sets = [sorted(compress(names, row)) for row in matrix[rows.span]]
        if delimiter is None and not rows.as_text:
            return pa.array(sets, pa.list_(pa.string()))
        return _texts([join_names(one, delimiter if plain else None) for one in sets])

    return Column(name, cells)


def outcome_columns(
    dataset: CandidateDataset, mapping: ColumnMapping, resolution: Resolution
) -> list[Column]:
    """Resolved labels, then confidences, then reasons; per label, or per cell in a long file."""
    if mapping.layout == "long":
        return [Column(name, lambda rows: pa.nulls(0)) for name in ("resolved", "conf", "reason")]
    names, labels = dataset.label_names, resolution.labels
    if mapping.layout in ("delimited", "answers"):
        resolved = [_set_column("resolved", labels, dataset, mapping)]
    else:
        style = mapping.label_style
        resolved = [_flag_column(f"resolved_{n}", labels, j, style) for j, n in enumerate(names)]
    confidences = [_confidence_column(f"conf_{n}", resolution, j) for j, n in enumerate(names)]
    reasons = [_reason_column(f"reason_{n}", resolution, j) for j, n in enumerate(names)]
    return [*resolved, *confidences, *reasons]


def _confidence_column(name: str, resolution: Resolution, j: int) -> Column:
    def cells(rows: Rows) -> pa.Array:
        confidences = np.asarray(resolution.confidences[rows.span, j], np.float32)
        return pa.array(np.round(confidences, CONFIDENCE_DECIMALS))

    return Column(name, cells)


def _reason_column(name: str, resolution: Resolution, j: int) -> Column:
    texts = _texts(resolution.reason_texts)

    def cells(rows: Rows) -> pa.Array:
        codes = np.asarray(resolution.reasons[rows.span, j], np.int64)
        return texts.take(pa.array(codes))

    return Column(name, cells)


def _long_batch(rows: Rows, mapping: ColumnMapping) -> pa.RecordBatch:
    """One row per candidate or resolved cell; one without a label where there is none."""
    columns = _columns(rows.dataset, mapping, None)
    table = pa.Table.from_batches([_batch(columns, rows)])
    instances, labels, has_label = _long_cells(rows)
    table = table.take(pa.array(instances))
    names = _texts(rows.dataset.label_names).take(pa.array(labels, mask=~has_label))
    at = (instances + rows.start, labels)
    offered = pa.array(rows.dataset.candidates[at] * has_label)
    added = dict(zip(mapping.labels, (names, offered), strict=False))
    if mapping.label_after is not None:
        both = pc.binary_join_element_wise(table.column(mapping.id), names, mapping.label_after)
        added = {str(mapping.id): both.combine_chunks(), mapping.labels[0]: offered}
    if rows.resolution is not None:
        added |= long_outcome(rows.resolution, at, has_label)
    for name, values in added.items():
        if name in table.column_names:
            table = table.set_column(table.column_names.index(name), name, values)
        else:
            table = table.append_column(name, values)
    return table.combine_chunks().to_batches()[0]


def _long_cells(rows: Rows) -> tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[np.bool_]]:
    """Return instance, label and whether there is one, for every row of a long file."""
    shown = rows.dataset.candidates[rows.span] > 0
    if rows.resolution is not None:
        shown = shown | (rows.resolution.labels[rows.span] > 0)
    instances, labels = np.nonzero(shown)
    empty = np.flatnonzero(~shown.any(axis=1))
    order = np.argsort(np.concatenate([instances, empty]), kind="stable")
    has_label = np.repeat([True, False], [len(instances), len(empty)])[order]
    labels = np.concatenate([labels, np.zeros_like(empty)])[order]
    return np.concatenate([instances, empty])[order], labels, has_label


def long_outcome(
    resolution: Resolution,
    at: tuple[npt.NDArray[Any], npt.NDArray[Any]],
    has_label: npt.NDArray[Any],
) -> dict[str, pa.Array]:
    confidences = np.round(np.asarray(resolution.confidences[at], np.float32), CONFIDENCE_DECIMALS)
    codes = pa.array(np.asarray(resolution.reasons[at], np.int64), mask=~has_label)
    return {
        "resolved": pa.array(resolution.labels[at] * has_label),
        "conf": pa.array(confidences, mask=~has_label),
        "reason": _texts(resolution.reason_texts).take(codes),
    }


def _batch(columns: Sequence[Column], rows: Rows) -> pa.RecordBatch:
    names = [column.name for column in columns]
    return record_batch([column.cells(rows) for column in columns], names, rows.as_text)


def record_batch(cells: Sequence[pa.Array], names: Sequence[str], as_text: bool) -> pa.RecordBatch:
    """Return columns as a batch, those of lists as text where the file has no lists."""
    if as_text:
        cells = [_as_text(one) if pa.types.is_nested(one.type) else one for one in cells]
    return pa.RecordBatch.from_arrays(list(cells), names=list(names))


def _as_text(array: pa.Array) -> pa.Array:
    dumped = [
        None if cell is None else json.dumps(cell, ensure_ascii=False, default=str)
        for cell in array.to_pylist()
    ]
    return pa.array(dumped, pa.string())


def _texts(values: Sequence[str]) -> pa.Array:
    return pa.array(list(values), pa.string())


def _check_count(what: str, stated: int, found: int) -> None:
    if stated != found:
        detail = f"The mapping has {stated} columns of {what}, the data {found}."
        raise ExportError("The file cannot be written like its source.", detail, OTHER_MAPPING)
