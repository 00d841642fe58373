"""From confidences and decisions to resolved labels, with the reason for every cell.

A decision goes before a confidence, a confidence before nothing; labels outside the candidates are
resolved only on request. What a person decided is never changed by what the model learns, nor the
other way round: both stay beside each other.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, Protocol, Self

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from core.data.dataset import CandidateDataset
from core.errors import ConfigError

Matrix = npt.NDArray[np.float32]
Cells = npt.NDArray[np.bool_]

VALUES = {"keep": 1.0, "reject": 0.0}
"""What a verdict says of its cell; other verdicts say nothing."""

NOT_A_CANDIDATE, BELOW, CONFIDENT, NEW_LABEL = range(4)
_REASONS = ("not a candidate", "below threshold", "confident", "confident, though not a candidate")


class Verdict(Protocol):
    """What resolving needs of a stored decision."""

    @property
    def instance_id(self) -> str: ...
    @property
    def label(self) -> str: ...
    @property
    def verdict(self) -> Literal["keep", "reject", "unsure", "undo"]: ...
    @property
    def annotator(self) -> str: ...
    @property
    def time(self) -> str: ...


class Threshold(BaseModel):
    """Which confidences are enough: exactly one of four rules.

    `value` is a cut for all labels, with exceptions in `per_label`; `top_k` keeps that many of each
    instance's candidates; `precision` keeps as many cells as it can while their mean confidence,
    which is their expected precision, stays at least this high.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    value: float | None = Field(None, ge=0, le=1)
    per_label: dict[str, float] = Field(default_factory=dict)
    top_k: int | None = Field(None, ge=1)
    precision: float | None = Field(None, gt=0, le=1)

    def __init__(self, **values: object) -> None:
        try:
            super().__init__(**values)
        except ValidationError as error:
            wrong = "; ".join(one["msg"] for one in error.errors(include_url=False))
            hint = "Give a cut from 0 to 1, top_k, or a precision."
            raise ConfigError("The threshold is not valid.", wrong, hint) from None

    @model_validator(mode="after")
    def _one_rule(self) -> Self:
        rules = [self.value is not None or bool(self.per_label), self.top_k, self.precision]
        if sum(bool(rule) for rule in rules) > 1:
            raise ValueError("only one of value, top_k and precision can hold")
        if any(not 0 <= cut <= 1 for cut in self.per_label.values()):
            raise ValueError("every cut must be from 0 to 1")
        return self

    def keep(
        self, confidences: Matrix, offered: npt.NDArray[np.bool_], names: tuple[str, ...]
    ) -> Cells:
        """Return which of the offered cells have enough confidence, n x L."""
        unknown = set(self.per_label) - set(names)
        if unknown:
            raise ConfigError(
                "A threshold names no label.", f"Unknown: {', '.join(sorted(unknown))}."
            )
        if self.top_k is not None:
            return offered & (_rank(confidences, offered) < self.top_k)
        if self.precision is not None:
            return offered & (
                confidences >= _expected_precision_cut(confidences[offered], self.precision)
            )
        default = 0.5 if self.value is None else self.value
        cuts = np.array([self.per_label.get(name, default) for name in names], np.float32)
        return offered & (confidences >= cuts)


@dataclass(frozen=True, eq=False)
class Resolution:
    """Resolved labels, and for every cell the confidence and the reason."""

    labels: npt.NDArray[np.uint8]  # (n, L)
    confidences: Matrix  # (n, L)
    reasons: npt.NDArray[np.uint32]  # (n, L), places in reason_texts
    reason_texts: tuple[str, ...]
    predictions: Matrix | None = None  # (n, L), what the networks say, candidates or not

    def reason(self, i: int, j: int) -> str:
        return self.reason_texts[int(self.reasons[i, j])]


def resolve(
    dataset: CandidateDataset,
    confidences: Matrix,
    threshold: Threshold | None = None,
    decisions: Iterable[Verdict] = (),
    *,
    allow_new_labels: bool = False,
    predictions: Matrix | None = None,
) -> Resolution:
    """Decide every cell.

    Parameters
    ----------
    confidences : (n, L); those outside the candidates count only with `allow_new_labels`, and
        are the predictions where these are given
    threshold : 0.5 for all labels by default
    decisions : those that hold, latest last; "unsure" leaves the cell to its confidence
    allow_new_labels : also resolve labels that were not offered
    predictions : (n, L), for files that have a place for them
    """
    if confidences.shape != dataset.candidates.shape:
        shapes = f"Confidences are {confidences.shape}, candidates {dataset.candidates.shape}."
        raise ConfigError("These confidences belong to other data.", shapes)
    candidate = dataset.candidates > 0
    offered = candidate | allow_new_labels
    if allow_new_labels and predictions is not None:
        confidences = np.where(candidate, confidences, predictions)
    kept = (threshold or Threshold()).keep(confidences, offered, tuple(dataset.label_names))
    reasons = np.where(kept, CONFIDENT, BELOW).astype(np.uint32)
    reasons[~candidate] = np.where(kept, NEW_LABEL, NOT_A_CANDIDATE)[~candidate]
    texts = list(_REASONS)
    place = {text: at for at, text in enumerate(texts)}
    for i, j, decision in located(dataset, decisions):
        if not offered[i, j] or decision.verdict not in VALUES:
            continue
        text = f"decided by {decision.annotator} on {decision.time[:10]}"
        if text not in place:
            place[text] = len(texts)
            texts.append(text)
        kept[i, j], reasons[i, j] = decision.verdict == "keep", place[text]
    labels, confidences = kept.astype(np.uint8), confidences.astype(np.float32)
    return Resolution(labels, confidences, reasons, tuple(texts), predictions)


def located(
    dataset: CandidateDataset, decisions: Iterable[Verdict]
) -> Iterator[tuple[int, int, Verdict]]:
    """Yield row and label of each decision, passing over those on other data."""
    for one in decisions:
        i, j = dataset.row_of.get(one.instance_id), dataset.label_of.get(one.label)
        if i is not None and j is not None:
            yield i, j, one


def _rank(confidences: Matrix, offered: Cells) -> npt.NDArray[np.int64]:
    """Return each cell's place among its instance's offered cells, 0 the most confident."""
    order = np.argsort(np.where(offered, -confidences, np.inf), axis=1, kind="stable")
    rank = np.empty_like(order)
    np.put_along_axis(rank, order, np.arange(order.shape[1])[None, :], axis=1)
    return rank


def _expected_precision_cut(confidences: Matrix, precision: float) -> float:
    """Return the lowest cut at which the kept confidences average at least the precision."""
    ordered = np.sort(confidences.astype(np.float64))[::-1]
    mean = np.cumsum(ordered) / np.arange(1, len(ordered) + 1)
    enough = np.flatnonzero(mean >= precision)
    return float(ordered[enough[-1]]) if len(enough) else np.inf
