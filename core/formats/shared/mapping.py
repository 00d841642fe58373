"""Which column of a table plays which role, and what every reader returns.

Owns `ColumnMapping`: guessed by `shared.guessing`, overridden by a caller, kept as JSON and
used again to write the same columns in the same order. Refuses one column in two roles.
"""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, Self

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from core.data.dataset import CandidateDataset, Labels
from core.errors import DatasetError, Problem

if TYPE_CHECKING:
    import pyarrow as pa

LABEL_PREFIXES = (
    *("label_", "candidate_", "label:", "labels_", "Answer."),
    *("soft_label.", "soft_label_", "soft_labels.", "cats.", "labels."),
)
SAID_PREFIXES = (*LABEL_PREFIXES, "p_", "prob_", "proba_", "pred_", "score_")  # by somebody
NESTED = re.compile(r"(annotations|answers|votes|predictions|ratings)\.", re.IGNORECASE)
TRUTH_PREFIXES = ("truth_", "true_")
FEATURE_PREFIX = "feature_"
OUTCOME_PREFIXES = ("resolved_", "conf_", "reason_")
NO_LABEL = (
    *("-", "--", "none", "no label", "no_label", "nolabel", "no labels", "unknown", "unlabeled"),
    *("unlabelled", "n/a", "na", "nan", "null", "nil", "\\n", "(no genres listed)"),
)


_DOUBLED = re.compile(r"^(.+)\.\1$")  # Mechanical Turk's Answer.sea.sea


class ColumnMapping(BaseModel):
    """The roles of a table's columns. Immutable; fields left out are guessed by the reader."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str | None = Field(None, description="Column that names the instances.")
    labels: tuple[str, ...] = Field(
        (), description="One column per label; or those with label sets; or (label, value)."
    )
    layout: Literal["one_hot", "delimited", "long", "answers"] = "one_hot"
    row: Literal["item", "view", "people"] = Field(
        "item",
        description="What one row is: an item; one person's view of an item; an item with a "
        "column (or several) per person. People are sources: raters, models, rules.",
    )
    source: str | None = Field(
        None,
        description="Column that names the source of a view; or the list of an item's sources.",
    )
    sources: tuple[str, ...] = Field(
        (), description="With a column per person: the source of each column in `labels`."
    )
    named_in: tuple[str, ...] = Field(
        (),
        description="With a column per person: for each column in `labels` the one whose cells "
        "name that person, where the person is not the same in every row.",
    )
    answers: (
        Literal["by_source", "by_label", "lists", "objects", "counts", "parallel", "scored"] | None
    ) = Field(
        None,
        description="How a cell holds all answers: {source: labels}, {label: sources}, a list per "
        "source, objects with a label and perhaps a source, {label: how many}, a list beside that "
        "in `source`, or labels beside their scores in `source`.",
    )
    no_label: tuple[str, ...] = Field(
        NO_LABEL, description="Words that stand for no label, in any case of letters."
    )
    not_asked: tuple[str, ...] = Field(
        (), description="Words of a source that said nothing; an empty cell is one anyway."
    )
    numbered_from: Literal[0, 1] | None = Field(
        None, description="Cells hold class numbers; this is the number of the first label name."
    )
    delimiter: str | None = Field(
        None, min_length=1, max_length=8, description="Between label names; none for lists."
    )
    label_style: Literal[
        "0/1",
        "-1/1",
        "true/false",
        "tick",
        "uncertain",
        "probability",
        "share",
        "percent",
        "count",
        "votes",
    ] = Field(
        "0/1",
        description="What cells of a column per label hold. Of people: their share, percent, how "
        "many of all that were asked (votes), or of all that chose one label each (count).",
    )
    label_after: str | None = Field(
        None,
        min_length=1,
        max_length=8,
        description="Before the label in the column of ids, where that names item and label.",
    )
    label_names: tuple[str, ...] = Field((), description="All labels, where columns do not say.")
    features: tuple[str, ...] = ()
    feature_layout: Literal["columns", "list", "text", "encoded"] = "columns"
    encode: dict[str, str] = Field(
        default_factory=dict, description="Encoder of each column of texts or pictures."
    )
    text: str | None = Field(None, description="Display column with the text a person reads.")
    image: str | None = Field(None, description="Display column with a picture's path or address.")
    truth: tuple[str, ...] = ()
    truth_layout: Literal["one_hot", "delimited"] = "one_hot"
    display: tuple[str, ...] = Field((), description="Columns kept as they are, to be shown.")
    columns: tuple[str, ...] = Field((), description="All columns in the order of the file.")
    numeric_id: bool = Field(False, description="Whether ids are integers in the file.")
    separator: Literal[",", ";", "\t", "|", " "] | None = Field(None, description="Of a CSV file.")
    decimal: Literal[".", ","] = Field(".", description="Decimal mark of a CSV file.")
    header: bool = Field(True, description="Whether a CSV file begins with the columns' names.")
    keyed: bool = Field(False, description="Whether a JSON file is one object of objects by id.")
    bom: bool = Field(False, description="Whether a CSV file begins with a byte-order mark.")
    reasons: dict[str, str] = Field(default_factory=dict, description="Why each role was guessed.")

    def __init__(self, **values: Any) -> None:
        try:
            super().__init__(**values)
        except ValidationError as error:
            raise _mapping_error(error) from None

    @model_validator(mode="after")
    def _one_role_each(self) -> Self:
        # An id that is a text is shown, and read, as well.
        id_column = tuple(name for name in (self.id, self.source) if name not in (None, self.text))
        features = () if self.feature_layout == "text" else self.features  # text is shown too
        given = [*id_column, *self.labels, *features, *self.truth, *self.display]
        twice = sorted(name for name, count in Counter(given).items() if count > 1)
        if twice:
            raise ValueError(f"a column can have one role only; two were given to {twice[:20]}")
        if self.layout == "long" and (self.id is None or len(self.labels) not in (1, 2)):
            raise ValueError("the long layout needs an id column and labels=(label, value)")
        if self.label_after is not None and (self.layout != "long" or len(self.labels) != 1):
            raise ValueError("with label_after the layout is long, and labels=(value,)")
        if self.layout == "answers" and len(self.labels) > 1:
            raise ValueError("one column holds the answers of all sources")
        if self.row == "people" and len(self.sources) != len(self.labels):
            raise ValueError("with a column per person, `sources` names that of each label column")
        if self.named_in and len(self.named_in) != len(self.labels):
            raise ValueError("`named_in` says for each label column where its person is named")
        return self

    @property
    def used(self) -> tuple[str, ...]:
        """Every column that has a role, once."""
        one = (self.id, self.source, self.text, self.image)
        many = (*self.labels, *self.named_in, *self.features, *self.truth, *self.display)
        return tuple(dict.fromkeys([*(name for name in one if name is not None), *many]))

    def save(self, path: Path | str) -> None:
        """Write this mapping as JSON."""
        Path(path).write_text(self.model_dump_json(indent=2) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: Path | str) -> "ColumnMapping":
        """Read a mapping saved before; one that is damaged raises DatasetError."""
        try:
            values = Path(path).read_bytes()
            # Through JSON, not the constructor: lists become tuples either way.
            return cls.model_validate_json(values)
        except OSError as error:
            problem = Problem(
                "the mapping cannot be opened", "Check its path.", True, value=error.strerror
            )
            raise DatasetError([problem]) from None
        except ValidationError as error:
            raise _mapping_error(error) from None


class Resolution(Protocol):
    """What writers need of the resolved labels; every array is (n, L)."""

    @property
    def labels(self) -> Labels: ...
    @property
    def confidences(self) -> npt.NDArray[np.float32]: ...
    @property
    def reasons(self) -> npt.NDArray[np.unsignedinteger[Any]]: ...
    @property
    def reason_texts(self) -> tuple[str, ...]: ...
    @property
    def predictions(self) -> npt.NDArray[np.float32] | None: ...


@dataclass(frozen=True, eq=False)
class Outcome:
    """A `Resolution` that was read from a file of ours."""

    labels: Labels
    confidences: npt.NDArray[np.float32]
    reasons: npt.NDArray[np.unsignedinteger[Any]]
    reason_texts: tuple[str, ...]
    predictions: npt.NDArray[np.float32] | None = None


class ReadDecision(NamedTuple):
    """A verdict of a person that a file brought; the same one has the same `uid` every time."""

    instance_id: str
    label: str
    verdict: Literal["keep", "reject", "unsure"]
    annotator: str
    time: str
    uid: str


@dataclass(frozen=True)
class ReadResult:
    """A data set, what was odd about its file, how its columns were understood.

    A file that this program wrote, or that another made of one, also brings what was found out:
    the outcome, decisions, and the fingerprint of the data they are about.
    """

    dataset: CandidateDataset
    problems: tuple[Problem, ...]
    mapping: ColumnMapping | None
    format: str
    outcome: Outcome | None = None
    decisions: tuple[ReadDecision, ...] = ()
    fingerprint: str | None = None


def guess_mapping(table: "pa.Table", given: ColumnMapping | None = None) -> ColumnMapping:
    """Guess the roles of a table's columns from their names and first values, with reasons.

    Roles that `given` states are kept; the others are guessed around them.
    """
    from core.formats.shared.guessing import guess

    return guess(table, given)


def plain_names(columns: tuple[str, ...], prefixes: tuple[str, ...]) -> tuple[str, ...]:
    """Return the columns' names without the prefix they all share, if they share one."""
    prefix = _shared_prefix(columns, prefixes)
    names = (name[len(prefix) :] for name in columns)
    return tuple(_DOUBLED.sub(r"\1", name) for name in names)


def _shared_prefix(columns: tuple[str, ...], prefixes: tuple[str, ...]) -> str:
    for prefix in prefixes if columns else ():
        if all(name.startswith(prefix) for name in columns):
            return prefix
    return ""


def _mapping_error(error: ValidationError) -> DatasetError:
    return DatasetError(list(_faults(error)), "This column mapping cannot be used.")


def _faults(error: ValidationError) -> Iterator[Problem]:
    for one in error.errors(include_url=False):
        message = one["msg"].removeprefix("Value error, ")
        place = ".".join(str(part) for part in one["loc"]) or None
        shown = repr(one["input"])[:80] if place else None
        yield Problem(message, "Correct the mapping.", True, column=place, value=shown)
