"""Guess which column of a table plays which role, and say why.

Judges by names first, then by the first rows' values. Order matters: what a name says outright
(`label_sea`, `truth`, `embedding`) is settled before anything is inferred from values.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from core.formats.cells import parse_flag, parse_number, parse_numbers
from core.formats.mapping import (
    FEATURE_PREFIX,
    LABEL_PREFIXES,
    OUTCOME_PREFIXES,
    TRUTH_PREFIXES,
    ColumnMapping,
    plain_names,
)

SAMPLE_ROWS = 1000
NUMBER_ROWS = 50  # of a column of fractions, whose values say little
NEARLY_ALL = 0.95
DELIMITERS = ("|", ";", "#", ",", " ")
ID_NAMES = ("plain_id", "id", "ids", "instance_id", "item_id", "uid", "uuid", "guid", "key")
WEAK_ID_NAMES = ("", "index", "unnamed: 0", "name", "filename", "file_name", "image_id", "row")
SET_NAMES = (
    *("candidate_labels", "candidates", "partial_labels", "labels", "label", "tags", "classes"),
    *("categories", "genres", "choices", "topics", "given_label"),
)
VALUE_NAMES = ("value", "offered", "present", "candidate", "weight")
TRUTH_NAMES = ("truth", "true_labels", "truth_labels", "true_label", "ground_truth", "gold")
LIST_NAMES = ("embedding", "embeddings", "features", "vector", "feature_vector", "x")
TEXT_NAMES = ("text", "sentence", "content", "body", "description", "review", "comment", "title")
IMAGE_NAMES = ("image", "image_path", "image_url", "img", "picture", "photo", "thumbnail", "url")
PICTURE = re.compile(r"\.(jpe?g|png|gif|webp|bmp|tiff?)(\?.*)?$", re.IGNORECASE)

Kind = Literal["binary", "number", "text", "numbers", "names", "empty", "other"]


@dataclass(frozen=True)
class Profile:
    """What the first rows say about one column."""

    name: str
    kind: Kind
    values: list[Any]  # without missing ones

    @cached_property
    def key(self) -> str:
        return self.name.strip().casefold()

    @property
    def distinct(self) -> bool:
        return len(set(map(str, self.values))) == len(self.values)


def guess(table: pa.Table, given: ColumnMapping | None = None) -> ColumnMapping:
    """Return a full mapping of the table's columns; what `given` states is kept."""
    columns = zip(table.column_names, table.itercolumns(), strict=True)
    roles = _Roles([_profile(name, column) for name, column in columns], given)
    for find in (_find_id, _find_labels, _find_truth, _find_features, _find_shown):
        find(roles)
    return roles.mapping(tuple(table.column_names))


class _Roles:
    """Roles found so far. A column is free until a role takes it; a stated role stays."""

    def __init__(self, profiles: Sequence[Profile], given: ColumnMapping | None) -> None:
        stated = set() if given is None else given.model_fields_set - {"columns", "reasons"}
        self.fields: dict[str, Any] = {name: getattr(given, name) for name in sorted(stated)}
        self.reasons = dict.fromkeys(self.fields, "stated by the caller")
        if given is not None and given.reasons:
            self.reasons |= given.reasons
        self.profiles = {profile.name: profile for profile in profiles}
        claimed = _claimed(self.fields)
        self.free = {name: one for name, one in self.profiles.items() if name not in claimed}

    def open(self, field: str) -> bool:
        return field not in self.fields

    def set(self, field: str, value: Any, reason: str = "") -> None:
        """Give a role to a column or several, unless the caller stated that role."""
        if self.open(field):
            self.fields[field] = value
            if reason:
                self.reasons[field] = reason

    def take(self, field: str, columns: Iterable[str], reason: str, **details: Any) -> None:
        columns = tuple(columns)
        self.set(field, columns[0] if field == "id" else columns, reason)
        for name, value in details.items():
            self.set(name, value)
        for name in columns:
            self.free.pop(name, None)

    def named(self, names: Sequence[str], *kinds: Kind) -> Profile | None:
        """The free column with the first of these names, if it is of one of these kinds."""
        by_key = {one.key: one for one in reversed(self.free.values())}
        found = (by_key[name] for name in names if name in by_key)
        return next((one for one in found if not kinds or one.kind in kinds), None)

    def prefixed(self, prefix: str, *kinds: Kind) -> tuple[str, ...]:
        return tuple(
            name
            for name, one in self.free.items()
            if name.startswith(prefix) and (not kinds or one.kind in kinds)
        )

    def mapping(self, columns: tuple[str, ...]) -> ColumnMapping:
        if self.open("display"):
            self.fields["display"] = tuple(self.free)
        else:  # columns that came later are kept as well
            claimed = _claimed(self.fields)
            rest = tuple(name for name in columns if name not in claimed)
            self.fields["display"] = (*self.fields["display"], *rest)
        return ColumnMapping(**self.fields, columns=columns, reasons=self.reasons)


def _claimed(fields: dict[str, Any]) -> set[str]:
    shown_text = fields.get("feature_layout") == "text"
    roles = ("labels", "truth", "display", *(() if shown_text else ("features",)))
    many = {name for role in roles for name in fields.get(role, ())}
    return many | ({fields["id"]} if fields.get("id") is not None else set())


def _find_id(roles: _Roles) -> None:
    if not roles.open("id"):
        return
    found = roles.named(ID_NAMES, "text", "number", "binary", "empty", "other")
    if found is None:
        weak = roles.named(WEAK_ID_NAMES, "text", "number")
        found = weak if weak is not None and weak.values and weak.distinct else None
    if found is not None:
        roles.take("id", [found.name], f"the column is called {found.name!r}")


def _find_labels(roles: _Roles) -> None:
    if not roles.open("labels"):
        _describe_labels(roles)
        return
    finders: tuple[Callable[[_Roles], bool], ...] = (
        _long_labels,
        _prefixed_labels,
        _named_set,
        _list_of_names,
        _trailing_flags,
        _set_like_text,
    )
    for found in finders:
        if found(roles):
            break


def _describe_labels(roles: _Roles) -> None:
    """Fill in how the columns the caller named as labels are written."""
    columns = [roles.profiles[name] for name in roles.fields["labels"] if name in roles.profiles]
    as_set = len(columns) == 1 and columns[0].kind not in ("binary", "number", "empty")
    roles.set("layout", "delimited" if as_set else "one_hot")
    if roles.fields["layout"] == "one_hot":
        roles.set("label_style", _style(columns))
    elif columns and roles.open("delimiter"):
        roles.set("delimiter", *_delimiter(columns[0]))


def _long_labels(roles: _Roles) -> bool:
    label = roles.named(("label", "labels"), "text", "number", "binary", "empty")
    id_column = roles.profiles.get(roles.fields.get("id") or "")
    if label is None or id_column is None or not _layout_allows(roles, "long"):
        return False
    value = roles.named(VALUE_NAMES, "binary", "number", "text")
    repeats = 1 - len(set(map(str, id_column.values))) / max(1, len(id_column.values))
    if value is None and (label.key != "label" or repeats < 0.2):
        return False
    if value is not None and repeats == 0 and len(roles.profiles) > 3:
        return False
    columns = [label.name] if value is None else [label.name, value.name]
    why = "ids repeat" if value is None else f"there is a column {value.name!r} beside it"
    roles.take("labels", columns, f"{label.name!r} names one label per row: {why}", layout="long")
    return True


def _prefixed_labels(roles: _Roles) -> bool:
    for prefix in LABEL_PREFIXES:
        columns = tuple(name for name in roles.prefixed(prefix) if _holds_flags(roles.free[name]))
        if columns and _layout_allows(roles, "one_hot"):
            reason = f"{len(columns)} columns begin with {prefix!r} and hold 0/1"
            style = _style([roles.profiles[name] for name in columns])
            roles.take("labels", columns, reason, layout="one_hot", label_style=style)
            return True
    return False


def _holds_flags(one: Profile) -> bool:
    """Whether a column is meant to hold 0/1; a few wrong values shall be told, not hidden."""
    flags = sum(parse_flag(value) is not None for value in one.values)
    return one.kind in ("binary", "empty") or 2 * flags > len(one.values)


def _named_set(roles: _Roles) -> bool:
    found = roles.named(SET_NAMES, "text", "names", "numbers", "other", "empty")
    return found is not None and _take_set(roles, found, f"the column is called {found.name!r}")


def _list_of_names(roles: _Roles) -> bool:
    found = [one for one in roles.free.values() if one.kind == "names"]
    return len(found) == 1 and _take_set(roles, found[0], "the only column with lists of names")


def _set_like_text(roles: _Roles) -> bool:
    """A text column such as `Action|Comedy`: few names, many cells, a clear delimiter."""
    for one in roles.free.values():
        for delimiter in ("|", ";", "#") if one.kind == "text" else ():
            split = [set(str(value).split(delimiter)) for value in one.values]
            several = sum(len(names) > 1 for names in split)
            if several >= 0.3 * len(split) and len(set().union(*split)) < len(split) / 2:
                return _take_set(roles, one, f"few names joined by {delimiter!r} fill {one.name!r}")
    return False


def _take_set(roles: _Roles, one: Profile, reason: str) -> bool:
    if not _layout_allows(roles, "delimited"):
        return False
    delimiter, why = _delimiter(one)
    roles.take("labels", [one.name], reason, layout="delimited")
    roles.set("delimiter", delimiter, why)
    return True


def _layout_allows(roles: _Roles, layout: str) -> bool:
    return bool(roles.fields.get("layout", layout) == layout)


def _trailing_flags(roles: _Roles) -> bool:
    """The run of 0/1 columns at the end of the table, or else at its beginning."""
    free = [one for one in roles.free.values() if not _is_outcome(one) and not _is_truth(one)]
    others = [one for one in free if one.kind in ("number", "numbers", "text")]
    if not others or not _layout_allows(roles, "one_hot"):
        return False
    for place, ordered in (("last", free[::-1]), ("first", free)):
        run = _leading_run(ordered)
        if run:
            columns = tuple(one.name for one in roles.free.values() if one.name in run)
            reason = f"the {place} {len(columns)} columns hold only 0/1, -1/1 or true/false"
            style = _style([roles.profiles[name] for name in columns])
            roles.take("labels", columns, reason, layout="one_hot", label_style=style)
            return True
    return False


def _leading_run(profiles: Sequence[Profile]) -> set[str]:
    stop = next((i for i, one in enumerate(profiles) if one.kind != "binary"), len(profiles))
    return {one.name for one in profiles[:stop]}


def _find_truth(roles: _Roles) -> None:
    if not roles.open("truth"):
        stated = [roles.profiles[name] for name in roles.fields["truth"] if name in roles.profiles]
        as_set = len(stated) == 1 and stated[0].kind not in ("binary", "number")
        roles.set("truth_layout", "delimited" if as_set else "one_hot")
        return
    labels = set(plain_names(tuple(roles.fields.get("labels", ())), LABEL_PREFIXES))
    one_hot = roles.fields.get("layout", "one_hot") == "one_hot"
    for prefix in TRUTH_PREFIXES:
        columns = roles.prefixed(prefix, "binary", "empty")
        columns = tuple(name for name in columns if not one_hot or name[len(prefix) :] in labels)
        if columns:
            reason = f"{len(columns)} columns begin with {prefix!r}"
            roles.take("truth", columns, reason, truth_layout="one_hot")
            return
    found = roles.named(TRUTH_NAMES, "text", "names", "numbers", "other", "empty")
    if found is not None:
        reason = f"the column is called {found.name!r}"
        roles.take("truth", [found.name], reason, truth_layout="delimited")


def _find_features(roles: _Roles) -> None:
    if not roles.open("features"):
        _describe_features(roles)
        return
    listed = roles.named(LIST_NAMES, "numbers") or _only(roles, "numbers")
    if listed is not None:
        reason = f"{listed.name!r} holds a list of numbers per row"
        roles.take("features", [listed.name], reason, feature_layout="list")
        return
    columns, reason = _feature_columns(roles)
    if columns:
        roles.take("features", columns, reason, feature_layout="columns")
        return
    text = _text_column(roles)
    if text is not None:  # stays free: a person wants to read it as well
        roles.set("feature_layout", "text")
        roles.set("features", (text.name,), f"no numbers; words of {text.name!r} become TF-IDF")


def _describe_features(roles: _Roles) -> None:
    columns = [roles.profiles[name] for name in roles.fields["features"] if name in roles.profiles]
    kind = columns[0].kind if len(columns) == 1 else "number"
    roles.set("feature_layout", {"text": "text", "numbers": "list"}.get(kind, "columns"))
    if roles.fields["feature_layout"] == "text":
        roles.free |= {one.name: one for one in columns}


def _feature_columns(roles: _Roles) -> tuple[tuple[str, ...], str]:
    prefixed = roles.prefixed(FEATURE_PREFIX, "number", "binary")
    if prefixed:
        return prefixed, f"{len(prefixed)} columns begin with {FEATURE_PREFIX!r}"
    free = [one for one in roles.free.values() if not _is_outcome(one)]
    columns = tuple(one.name for one in free if one.kind in ("number", "binary"))
    return columns, f"{len(columns)} other columns hold numbers"


def _text_column(roles: _Roles) -> Profile | None:
    texts = [one for one in roles.free.values() if one.kind == "text" and not _is_outcome(one)]
    named = roles.named(TEXT_NAMES, "text")
    wordy = [one for one in texts if _mean_length(one) >= 15 and not _is_picture(one)]
    return named or max(wordy, key=_mean_length, default=None)


def _find_shown(roles: _Roles) -> None:
    text = roles.fields["features"][0] if roles.fields.get("feature_layout") == "text" else None
    found = _text_column(roles)
    if text is not None or found is not None:
        roles.set("text", text or (found.name if found else None), "the column with most words")
    pictures = [one for one in roles.free.values() if one.kind == "text" and _is_picture(one)]
    image = next(iter(pictures), None) or roles.named(IMAGE_NAMES, "text")
    if image is not None:
        roles.set("image", image.name, "its values name pictures")
    id_column = roles.fields.get("id")
    if id_column in roles.profiles and roles.open("numeric_id"):
        values = roles.profiles[id_column].values
        roles.set("numeric_id", bool(values) and all(type(one) is int for one in values))


def _only(roles: _Roles, kind: Kind) -> Profile | None:
    found = [one for one in roles.free.values() if one.kind == kind]
    return found[0] if len(found) == 1 else None


def _is_outcome(one: Profile) -> bool:
    return one.name.startswith(OUTCOME_PREFIXES) or one.key in ("resolved", "conf", "reason")


def _is_truth(one: Profile) -> bool:
    return one.name.startswith(TRUTH_PREFIXES) or one.key in TRUTH_NAMES


def _is_picture(one: Profile) -> bool:
    return bool(one.values) and all(PICTURE.search(str(value)) for value in one.values[:50])


def _mean_length(one: Profile) -> float:
    return sum(len(str(value)) for value in one.values) / max(1, len(one.values))


def _style(columns: Sequence[Profile]) -> str:
    values = {value for one in columns for value in one.values}
    if values and all(isinstance(value, bool) for one in columns for value in one.values):
        return "true/false"
    return "-1/1" if -1 in values and 0 not in values else "0/1"


def _delimiter(one: Profile) -> tuple[str | None, str]:
    """Return what stands between the names of a column's cells, and why."""
    texts = [value for value in one.values if isinstance(value, str) and value.strip()]
    if one.kind in ("names", "numbers", "other") or (
        texts and all(_is_listed(text) for text in texts)
    ):
        return None, "cells are lists"
    for delimiter in DELIMITERS:
        several = sum(delimiter in text.strip() for text in texts)
        if several and (delimiter != " " or _splits_into_few(texts, delimiter)):
            return delimiter, f"{several} of the first {len(texts)} cells contain {delimiter!r}"
    return "|", "no delimiter was seen; '|' is assumed"


def _splits_into_few(texts: Sequence[str], delimiter: str) -> bool:
    return len({name for text in texts for name in text.split(delimiter)}) < len(set(texts))


def _is_listed(text: str) -> bool:
    text = text.strip()
    return text[:1] == "[" and text[-1:] == "]"


def _profile(name: str, column: pa.ChunkedArray) -> Profile:
    column = column.slice(0, SAMPLE_ROWS)
    column = column.drop_null() if column.null_count else column
    kind = column.type
    if pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        return _number_profile(name, column.to_numpy())
    values = column.to_pylist()
    return Profile(name, _kind(values), values)


def _number_profile(name: str, numbers: npt.NDArray[Any]) -> Profile:
    few = numbers[:NUMBER_ROWS].tolist()
    found = np.unique(numbers).tolist() if {-1, 0, 1}.issuperset(few) else []
    if set(found) in ({0}, {1}, {-1}, {0, 1}, {-1, 1}):
        return Profile(name, "binary", found)
    values = few if numbers.dtype.kind == "f" else numbers.tolist()
    return Profile(name, "number" if len(numbers) else "empty", values)


def _kind(values: Sequence[Any]) -> Kind:
    if all(isinstance(value, str) for value in values):
        texts = [value for value in values if value.strip()]
        if _are_nearly_all_numbers(texts):
            return "number"
        return ("numbers" if _hold_numbers(texts) else "text") if texts else "empty"
    if all(isinstance(value, list) for value in values):
        elements = [one for value in values[:100] for one in value if one is not None]
        if elements and all(isinstance(one, int | float) for one in elements):
            return "numbers" if len({len(value) for value in values}) == 1 else "other"
        return "names" if all(isinstance(one, str) for one in elements) else "other"
    return "other"


def _are_nearly_all_numbers(texts: Sequence[str]) -> bool:
    """Whether a column is meant to hold numbers; a few wrong cells shall be told, not hidden."""
    other = (text for text in texts if parse_number(text) is None)
    allowed = int((1 - NEARLY_ALL) * len(texts) + 1e-9)
    return bool(texts) and next(islice(other, allowed, None), None) is None


def _hold_numbers(texts: Sequence[str]) -> bool:
    """Whether cells are lists of numbers, written as text such as `[0.5, 1]`."""
    try:
        sizes = [parse_numbers(text).size for text in texts[:20] if _is_listed(text)]
    except ValueError:
        return False
    return len(sizes) == len(texts[:20]) and len(set(sizes)) == 1 and any(sizes)
