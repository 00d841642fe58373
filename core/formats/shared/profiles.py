"""What the first rows of a table say about its columns, and the roles that columns have so far."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from math import inf
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from core.formats.shared.cells import (
    PLACED,
    TAGS,
    are_placed,
    parse_marks,
    parse_number,
    parse_numbers,
)
from core.formats.shared.mapping import OUTCOME_PREFIXES, TRUTH_PREFIXES, ColumnMapping

STATED = "stated by the caller"  # why a role is what it is
RIVALS = "; labels may also be in "  # how reasons end that are asked about
SAMPLE_ROWS = 1000
MAX_CLASSES = 200  # whole numbers beyond count or measure something
SAMPLE_BYTES = 2**24  # of a column's cells: a row may hold a list of a million numbers
NUMBER_ROWS = 50  # of a column of fractions, whose values say little
NEARLY_ALL = 0.95
DELIMITERS = ("\n", "|", ";", "#", ",", "/", "+", "&", " ")
IN_NAMES = ("/", "+", "&", " ")  # also inside a name: then few names come again
TOGETHER = 4  # times in the mean that cells come again whose names stand with no others
ID_NAMES = ("plain_id", "id", "ids", "instance_id", "item_id", "uid", "uuid", "guid", "key")
TRUTH_NAMES = (
    *("truth", "true_labels", "truth_labels", "true_label", "ground_truth", "gold", "gold_label"),
    *("gold_labels", "groundtruth"),
)
UNNAMED = re.compile(r"column\d+")  # of a table without a header
PICTURE = re.compile(r"^data:image/|\.(jpe?g|png|gif|webp|bmp|tiff?)(\?.*)?$", re.IGNORECASE)

NOT_A_FEATURE = re.compile(
    r"(.*[ _.-])?(id|ids|uid|uuid|guid|hash|md5|sha1|sha256|url|date|datetime|timestamp"
    r"|idx|index|row|golden|file_?size|region_count)|.+[ _.-](number|nr|no)\.?"
    r"|(created|updated|submitted|modified)([ _](at|utc|on|time))?",
)
CAMEL_ID = re.compile(r".*[a-z](Id|ID|Date|Timestamp)")
COUNT_OF_PEOPLE = re.compile(r"(.*[ _])?(annotator|rater|worker|vote)s?[ _]?count|n_annotators")
DERIVED = re.compile(
    r"((n|num|number|count)[ _]?(of)?[ _]?)?(annotators?|annotations?|raters?|votes?|workers?)"
    r"([ _]?count)?|(soft|hard|majority|consensus|old|final|aggregated)[ _]?labels?.*"
    r"|(consensus|majority|adjudicated|aggregated)([ _].+)?"
    r"|label[ _]?(dist|count|counter|counts|distribution).*|(agreement|entropy|kappa|trust).*"
    r"|.*[ _:](agreement|entropy|trust|lead_time|confidence|judgments)|lead_time|split|fold"
    r"|labels?|class|target|correct.*",
    re.IGNORECASE,
)

Kind = Literal["binary", "number", "text", "numbers", "names", "empty", "other"]


@dataclass(frozen=True, eq=False)
class Profile:
    """What the first rows say about one column."""

    name: str
    kind: Kind
    values: list[Any]  # without missing ones

    @cached_property
    def key(self) -> str:
        return self.name.strip().casefold()

    @cached_property
    def last_key(self) -> str:
        """The last part of a name such as `Answer.emotions` or `OUTPUT:result`."""
        return self.key.replace(":", ".").rpartition(".")[2]

    @property
    def distinct(self) -> bool:
        return len(set(map(str, self.values))) == len(self.values)

    @property
    def mean_length(self) -> float:
        return sum(len(str(value)) for value in self.values) / max(1, len(self.values))

    @property
    def is_outcome(self) -> bool:
        return self.name.startswith(OUTCOME_PREFIXES) or self.key in ("resolved", "conf", "reason")

    @property
    def is_truth(self) -> bool:
        return self.name.startswith(TRUTH_PREFIXES) or self.key in TRUTH_NAMES

    @property
    def is_picture(self) -> bool:
        """Whether cells name picture files, are data URLs, or hold the bytes of a picture."""
        if self.kind == "other":
            given = self.values[:50]
            held = (value.get("bytes") if isinstance(value, dict) else value for value in given)
            return bool(given) and all(isinstance(value, bytes) for value in held)
        found = (PICTURE.search(str(value)) for value in self.values[:50])
        return self.kind == "text" and bool(self.values) and all(found)

    @property
    def is_id_named(self) -> bool:
        return self.key in ID_NAMES

    @property
    def has_no_spaces(self) -> bool:
        return not any(" " in str(value).strip() for value in self.values)

    @cached_property
    def is_wordy(self) -> bool:
        """Whether cells are texts that a person reads; no trees and no JSON."""
        if self.kind != "text" or self.mean_length < 15 or self.has_no_spaces:
            return False
        return not all(str(value).strip()[:1] in ("(", "{", "[") for value in self.values[:50])

    @cached_property
    def holds_marks(self) -> bool:
        """Whether cells say yes or no; `0, 1` where somebody was asked twice."""
        if self.kind in ("binary", "empty"):
            return True
        texts = set(map(str, self.values)) if self.kind in ("text", "number") else {"?"}
        return len(texts) < 30 and all(parse_marks(text) is not None for text in texts)

    @cached_property
    def holds_class_numbers(self) -> bool:
        """Whether cells are whole numbers from -1 up, few different ones."""
        if self.kind not in ("number", "binary") or not self.values:
            return False
        known = set(self.values)
        return len(known) <= MAX_CLASSES and all(
            isinstance(one, int | float) and -1 <= one < inf and one == int(one) for one in known
        )

    @property
    def is_share(self) -> bool:
        """Whether numbers are shares of people: fractions, or nothing but 0 and 1 among such."""
        return self.is_probability or (
            self.kind == "binary" and all(isinstance(one, float) for one in self.values)
        )

    @property
    def is_uncertain(self) -> bool:
        """Whether cells are 1, 0, and -1 for what is uncertain."""
        return self.kind in ("number", "binary") and {-1, 0, 1}.issuperset(self.values)

    @property
    def is_probability(self) -> bool:
        """Whether all numbers are between 0 and 1, and some are neither."""
        if self.kind != "number" or not all(isinstance(one, float) for one in self.values):
            return False
        return all(0 <= value <= 1 for value in self.values)

    @cached_property
    def is_never_feature(self) -> bool:
        """Whether numbers only name, count votes or tell the time."""
        name = self.name.strip()
        if NOT_A_FEATURE.fullmatch(self.key) or CAMEL_ID.fullmatch(name):
            return True
        if DERIVED.fullmatch(self.key) or COUNT_OF_PEOPLE.fullmatch(self.key) or self.is_truth:
            return True
        if len(self.values) < 20 or not all(isinstance(one, int) for one in self.values):
            return False
        if self.key.endswith("id") and self.distinct:  # pmid, appid
            return True
        steps = np.diff(np.array(self.values[:100], dtype=np.float64))
        return self.values[0] in (0, 1) and bool((steps == 1).all())  # the number of the row


class Roles:
    """Roles found so far. A column is free until a role takes it; a stated role stays."""

    def __init__(self, table: pa.Table, given: ColumnMapping | None) -> None:
        stated = set() if given is None else given.model_fields_set - {"columns", "reasons"}
        self.fields: dict[str, Any] = {name: getattr(given, name) for name in sorted(stated)}
        self.reasons = dict.fromkeys(self.fields, STATED)
        if given is not None and given.reasons:
            self.reasons |= given.reasons
        columns = zip(table.column_names, table.itercolumns(), strict=True)
        self.table = table
        self.profiles = {name: profile_of(name, column) for name, column in columns}
        self.aside = set(self.fields.get("named_in", ()))  # columns that are shown, nothing else
        claimed = _claimed(self.fields) | self.aside
        self.free = {name: one for name, one in self.profiles.items() if name not in claimed}

    def cells(self, name: str) -> list[Any]:
        """Return the first rows' cells of a column, missing ones too."""
        column = self.table.column(name)
        return list(map(_hashable, _first_cells(column, 20 * SAMPLE_ROWS).to_pylist()))

    def is_constant(self, name: str) -> bool:
        """Whether all rows at hand say the same."""
        parts = [part for part in self.table.column(name).chunks if len(part)]
        if self.table.num_rows < 2 or len({_hashable(part[0].as_py()) for part in parts}) > 1:
            return False
        return all(part.slice(1).equals(part.slice(0, len(part) - 1)) for part in parts)

    def differs_between_views(self, one: Profile) -> bool:
        """Whether a column says different things of one item."""
        return self.differs_between(self.fields["id"], one)

    def differs_between(self, item: str, one: Profile) -> bool:
        """Whether a column says different things where another says the same."""
        first: dict[object, object] = {}
        views = zip(self.cells(item), self.cells(one.name), strict=True)
        return any(first.setdefault(key, value) != value for key, value in views)

    @property
    def may_be_labels(self) -> list[Profile]:
        """The free columns that are no outcome of ours and no truth."""
        return [one for one in self.free.values() if not (one.is_outcome or one.is_truth)]

    def column_of(self, field: str) -> Profile | None:
        """Return the column that has a role; a column may be called by an empty name."""
        name = self.fields.get(field)
        return None if name is None else self.profiles.get(name)

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

    def set_aside(self, columns: Iterable[str]) -> None:
        """Show columns and use them for nothing else."""
        for name in columns:
            del self.free[name]
            self.aside.add(name)

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
            kept = {*self.free, *self.aside}
            self.fields["display"] = tuple(name for name in columns if name in kept)
        else:  # columns that came later are kept as well
            claimed = _claimed(self.fields)
            rest = tuple(name for name in columns if name not in claimed)
            self.fields["display"] = (*self.fields["display"], *rest)
        return ColumnMapping(**self.fields, columns=columns, reasons=self.reasons)


def _hashable(value: Any) -> Any:
    return str(value) if isinstance(value, list | dict) else value


def _claimed(fields: dict[str, Any]) -> set[str]:
    shown_text = fields.get("feature_layout") == "text"
    roles = ("labels", "truth", "display", *(() if shown_text else ("features",)))
    many = {name for role in roles for name in fields.get(role, ())}
    return many | {fields[role] for role in ("id", "source") if fields.get(role) is not None}


# -------------------------------------------------------------------------- kinds and delimiters


def profile_of(name: str, column: pa.ChunkedArray) -> Profile:
    column = _first_cells(column, SAMPLE_ROWS)
    column = column.drop_null() if column.null_count else column
    kind = column.type
    if pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        return _number_profile(name, column.to_numpy())
    values = column.to_pylist()
    return Profile(name, _kind(values), values)


def _first_cells(column: pa.ChunkedArray, n_rows: int) -> pa.ChunkedArray:
    """Return the first rows, fewer where their cells are large."""
    n_rows = min(n_rows, len(column))
    while n_rows > 1 and column.slice(0, n_rows).nbytes > SAMPLE_BYTES:
        n_rows //= 2
    return column.slice(0, n_rows)


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
        if not any(values):
            return "empty"
        elements = [one for value in values[:100] for one in value if one is not None]
        if elements and all(isinstance(one, int | float) for one in elements):
            return "numbers" if len({len(value) for value in values}) == 1 else "other"
        return "names" if all(isinstance(one, str) for one in elements) else "other"
    return "other"


def _are_nearly_all_numbers(texts: Sequence[str]) -> bool:
    """Whether a column is meant to hold numbers; a few wrong cells shall be told, not hidden.

    Words for a missing number alone are no numbers.
    """
    other = (text for text in texts if parse_number(text) is None)
    allowed = int((1 - NEARLY_ALL) * len(texts) + 1e-9)
    if next(islice(other, allowed, None), None) is not None:
        return False
    return any(number == number for text in texts if (number := parse_number(text)) is not None)


def _hold_numbers(texts: Sequence[str]) -> bool:
    """Whether cells are lists of numbers, written as text such as `[0.5, 1]`."""
    try:
        sizes = [parse_numbers(text).size for text in texts[:20] if _is_listed(text)]
    except ValueError:
        return False
    return len(sizes) == len(texts[:20]) and len(set(sizes)) == 1 and any(sizes)


def delimiter_of(one: Profile) -> tuple[str | None, str]:
    """Return what stands between the names of a column's cells, and why."""
    texts = [value for value in one.values if isinstance(value, str) and value.strip()]
    if one.kind in ("names", "numbers", "other") or (
        texts and all(_is_listed(text) for text in texts)
    ):
        return None, "cells are lists"
    if texts and all(text.strip()[:1] == "<" and text.strip()[-1:] == ">" for text in texts):
        return TAGS, "cells are names between < and >"
    if are_placed(texts):
        return PLACED, "cells are names with four numbers behind each"
    for delimiter in DELIMITERS:
        several = sum(delimiter in text.strip() for text in texts)
        is_inside = delimiter in IN_NAMES and not _splits_into_few(texts, delimiter)
        is_inside = is_inside or (delimiter in "#+" and _splits_words(texts, delimiter))
        if several and not is_inside and not _always_together(texts, delimiter):
            return delimiter, f"{several} of the first {len(texts)} cells contain {delimiter!r}"
    return "|", "no delimiter was seen; '|' is assumed"


def _splits_into_few(texts: Sequence[str], delimiter: str) -> bool:
    return len(_names_between(texts, delimiter)) < len(set(texts))


def _splits_words(texts: Sequence[str], delimiter: str) -> bool:
    """Whether a mark stands in names that have spaces between them: c# sql, c++ sql."""
    both = any(delimiter in text and " " in text.strip() for text in texts)
    return both and len(_names_between(texts, delimiter)) > len(_names_between(texts, " "))


def _names_between(texts: Sequence[str], delimiter: str) -> set[str]:
    return {name.strip() for text in texts for name in text.split(delimiter)}


def _always_together(texts: Sequence[str], delimiter: str) -> bool:
    """Whether parts of a cell stand in no other, again and again: one name, `threats, plans`."""
    known = set(texts)
    parts = [{part.strip() for part in text.split(delimiter)} for text in known]
    alone = sum(map(len, parts)) == len(set().union(*parts))
    return alone and len(texts) >= TOGETHER * len(known)


def _is_listed(text: str) -> bool:
    text = text.strip()
    return text[:1] == "[" and text[-1:] == "]"
