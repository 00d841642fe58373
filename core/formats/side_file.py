"""What a format cannot carry, kept beside its file as `<file>.plain.npz`; the reader finds it.

One file for all formats: ids, names, candidates, truth and votes, the outcome (resolved labels,
confidences, reasons), the decisions, and how columns are understood; features and display columns
only where the format has no place for them. It belongs to the content it was written with, whose
SHA-256 it states: a file that was changed since is read alone, and that is said.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, uuid5

import numpy as np
import pandas as pd
from pydantic import BaseModel, ValidationError

from core.data.dataset import CandidateDataset
from core.data.votes import Votes
from core.errors import DatasetError, Problem
from core.formats.readers.npz import (
    DAMAGED,
    Arrays,
    feature_arrays,
    features_of,
    outcome_of,
    save_arrays,
    table_of,
)
from core.formats.shared.arrays import load_arrays
from core.formats.shared.companions import SIDE_FILE
from core.formats.shared.findings import refuse
from core.formats.shared.label_sets import RESOLVED, display_texts
from core.formats.shared.limits import limited
from core.formats.shared.mapping import ColumnMapping, ReadDecision, ReadResult, Resolution
from core.formats.shared.placing import checksums

ABOUT = "about"
VOTES = ("yes", "answered", "no")

_LEVEL = 1
"""Of compression. At 100,000 instances and 20 labels .14 s of the processor and 4.2 MB; at 6 .55 s
and 3.4 MB, three times the Parquet file's own seconds."""


class About(BaseModel):
    """Everything that is text."""

    sha256: str
    fingerprint: str
    format: str
    mapping: ColumnMapping | None = None
    label_names: list[str]
    ids: list[str]
    feature_names: list[str]
    display: dict[str, list[str]] = {}
    sources: list[str] | None = None
    reason_texts: list[str] = []
    decisions: list[ReadDecision] = []


@dataclass(frozen=True)
class SideFile:
    """What was found beside a file."""

    name: str
    about: About
    arrays: Arrays

    @property
    def has_all(self) -> bool:
        """Whether it holds the features too: then the file itself need not be understood."""
        return "X" in self.arrays or "X_data" in self.arrays

    def result(self) -> ReadResult:
        """Return the data of a format that is only written."""
        data = self._dataset(features_of(self.arrays), self.about.feature_names, None)
        return self._with_outcome(ReadResult(data, (), None, self.about.format))

    def joined(self, read: ReadResult) -> ReadResult:
        """Return what was read with what the file could not carry."""
        data, about = read.dataset, self.about
        if data.n_instances != len(about.ids):
            return _unused(read, self.name, "it is about other instances")
        fits = data.n_features == len(about.feature_names)
        names = about.feature_names if fits else data.feature_names
        return self._with_outcome(
            replace(read, dataset=self._dataset(data.features, names, data.display))
        )

    def _dataset(self, features: Any, feature_names: Any, display: Any) -> CandidateDataset:
        about, candidates = self.about, table_of(self.arrays, "Yp")
        votes = None
        if about.sources is not None:
            yes, answered, no = (table_of(self.arrays, f"votes_{name}") for name in VOTES)
            shape = int(candidates.shape[0]), int(candidates.shape[1])
            votes = Votes(tuple(about.sources), yes, answered, no, shape)
        return CandidateDataset(
            features,
            candidates,
            about.label_names,
            about.ids,
            feature_names,
            table_of(self.arrays, "Y") if "Y" in self.arrays else None,
            pd.DataFrame(about.display) if about.display else display,
            votes=votes,
        )

    def _with_outcome(self, read: ReadResult) -> ReadResult:
        about, shape = self.about, read.dataset.candidates.shape
        outcome = outcome_of(self.arrays, about.reason_texts, shape)
        problems = [one for one in read.problems if one.message != RESOLVED.message]
        if outcome is not None:
            rule = (
                f"the file is an export: its candidates are read, its resolved labels, confidences "
                f"and {len(about.decisions):,} decisions with them ({self.name})"
            )
            problems.append(Problem(rule, "Nothing to do."))
        return replace(
            read,
            problems=tuple(problems),
            outcome=outcome,
            decisions=tuple(about.decisions),
            fingerprint=about.fingerprint,
        )


def side_file_of(path: Path) -> Path:
    """Return where the side file of an export lies."""
    return path.with_name(path.name + SIDE_FILE)


def write_side_file(
    dataset: CandidateDataset,
    path: Path,
    *,
    format: str,
    mapping: ColumnMapping | None,
    resolution: Resolution | None,
    decisions: Iterable[Any],
    lacks: tuple[str, ...],
) -> None:
    """Write what the file at `path` lacks beside it."""
    about = About(
        sha256=_digest(path),
        fingerprint=dataset.fingerprint,
        format=format,
        mapping=mapping,
        label_names=list(dataset.label_names),
        ids=list(dataset.ids),
        feature_names=list(dataset.feature_names),
        display=display_texts(dataset) if "display" in lacks else {},
        sources=None if dataset.votes is None else list(dataset.votes.sources),
        reason_texts=[] if resolution is None else list(resolution.reason_texts),
        decisions=[read_decision(dataset.fingerprint, one) for one in decisions],
    )
    arrays: Arrays = {"Yp": dataset.candidates}
    if "features" in lacks:
        arrays |= feature_arrays(dataset.features)
    if dataset.truth is not None:
        arrays["Y"] = dataset.truth
    if dataset.votes is not None:
        arrays |= {f"votes_{name}": getattr(dataset.votes, name) for name in VOTES}
    if resolution is not None:
        arrays["resolved"] = np.asarray(resolution.labels, np.uint8)
        arrays["confidences"] = np.asarray(resolution.confidences, np.float32)
        smallest = np.min_scalar_type(len(resolution.reason_texts))
        arrays["reasons"] = np.asarray(resolution.reasons, smallest)
    text = json.dumps(about.model_dump()).encode()
    save_arrays(side_file_of(path), {ABOUT: np.frombuffer(text, np.uint8), **arrays}, _LEVEL)


def read_decision(fingerprint: str, one: Any) -> ReadDecision:
    """Return a decision as files have it; one without a `uid` gets that of what it says."""
    said = (one.instance_id, one.label, one.verdict, one.annotator, one.time)
    own = getattr(one, "uid", None) or uuid5(NAMESPACE_URL, json.dumps([fingerprint, *said])).hex
    return ReadDecision(*said, own)


def find_side_file(path: Path) -> tuple[SideFile | None, Problem | None]:
    """Return the side file of an export, or why the one that is there is not used."""
    side = side_file_of(path)
    if not side.is_file():
        return None, None
    try:
        with limited(side):
            arrays = load_arrays(side, lambda name: True)
            about = _about(arrays)
    except DatasetError as error:
        return None, _not_used(side.name, error.problems[0].message)
    if about.sha256 != _digest(path):
        return None, _not_used(side.name, "the file was changed since")
    return SideFile(side.name, about, arrays), None


def _about(arrays: Arrays) -> About:
    text = arrays.get(ABOUT)
    if text is None or text.dtype != np.uint8 or "Yp" not in arrays:
        refuse("a side file must say what it is about", DAMAGED)
    try:
        return About.model_validate(json.loads(text.tobytes()))
    except (ValidationError, ValueError, RecursionError):
        refuse("what a side file says cannot be understood", DAMAGED)


def _unused(read: ReadResult, name: str, why: str) -> ReadResult:
    return replace(read, problems=(*read.problems, _not_used(name, why)))


def _not_used(name: str, why: str) -> Problem:
    return Problem(f"{name} is not used: {why}", "Export again, or remove it.")


def _digest(path: Path) -> str:
    """Return the SHA-256 of a file, or of the names and contents of a folder's files."""
    if path.is_dir():
        found: Mapping[str, str] = checksums(path)
        return hashlib.sha256(json.dumps(found, sort_keys=True).encode()).hexdigest()
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
