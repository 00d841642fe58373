"""Cleaned label sets as files other tools accept, and beside each the record of how it was made.

What goes out is what a run knows after review: decisions, the confidences they taught, and the
names that labels have now. The command line and the Export page both begin with `run_results`;
`clean` needs no run and no workspace.
"""

import platform
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from core.confidence.level import Level
from core.confidence.reliability import Reliability, reliability
from core.confidence.sources import source_model
from core.data.dataset import CandidateDataset
from core.engine.config import PlainConfig
from core.engine.events import Event
from core.errors import ConfigError
from core.formats import ColumnMapping, ReadResult, read, require_free, write
from core.formats.shared.original import kept
from core.review import Resolution, Threshold, Verdict, resolve
from core.review.load import make_reviewer
from core.review.resolve import VALUES, located
from core.review.reviewer import Reviewer
from core.runs.results import load_results
from core.store import Decision, RunRow, Workspace


class Results(NamedTuple):
    """What is known of every cell of a run, and who decided what."""

    dataset: CandidateDataset  # with labels as they are called now
    confidences: npt.NDArray[np.float32]  # (n, L)
    predictions: npt.NDArray[np.float32]  # (n, L)
    decisions: list[Decision]
    mapping: ColumnMapping | None  # none where labels are not those of the file any more
    sources: Reliability | None = None


def run_results(
    workspace: Workspace,
    run: RunRow,
    decisions: list[Decision] | None = None,
    reviewer: Callable[[], Reviewer] | None = None,
) -> Results:
    """Return what a run with results knows, with these decisions or those that hold now.

    `reviewer` gives one of the run, with whatever decisions, where there is one: a new one of very
    much data takes its time.
    """
    found = load_results(workspace, run)
    dataset, predictions, confidences = found.dataset, found.predictions, found.confidences
    if decisions is None:
        decisions = workspace.decisions.latest(run.fingerprint)
    if decisions and reviewer is not None:
        confidences = reviewer().afresh(decisions).confidences
    elif decisions:
        confidences = make_reviewer(workspace, found, decisions).confidences
    sources = run_reliability(dataset, predictions, decisions, held_out=run.config.members > 1)
    mapping = workspace.mapping(run.fingerprint)
    results = Results(dataset, confidences, predictions, decisions, mapping, sources)
    names = workspace.labels.names(run.fingerprint, dataset.label_names)
    return results if list(dataset.label_names) == names else _renamed(results, names)


def run_reliability(
    dataset: CandidateDataset,
    predictions: npt.NDArray[np.float32],
    decisions: Iterable[Verdict] = (),
    *,
    held_out: bool = True,
) -> Reliability | None:
    """Return how reliable the sources of a run's data are; none unless several voted."""
    votes = dataset.votes
    if votes is None:
        return None
    decided = np.full(dataset.candidates.shape, np.nan)
    for i, j, one in located(dataset, decisions):
        decided[i, j] = VALUES.get(one.verdict, np.nan)
    known = decided if (decided >= 0).any() else None
    model = source_model(votes, known, held_out=held_out)
    return reliability(model, dataset.candidates, predictions, known)


def _renamed(results: Results, names: Sequence[str]) -> Results:
    """Call labels by these names; those of one name become one, true where any of them is."""
    dataset = results.dataset
    column = {name: at for at, name in enumerate(dict.fromkeys(names))}
    to = np.array([column[name] for name in names])

    def merged(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        out = np.zeros((len(values), len(column)), values.dtype)
        np.maximum.at(out.T, to, values.T)
        return out

    called = dict(zip(dataset.label_names, names, strict=True))
    original = dataset.original
    names_labels = original is not None and original.mapping.layout == "long"  # one per row
    renamed = replace(
        dataset,
        candidates=merged(dataset.candidates),
        label_names=tuple(column),
        truth=None if dataset.truth is None else merged(dataset.truth),
        original=None if names_labels else original,
        votes=None if dataset.votes is None else dataset.votes.relabelled(to, len(column)),
    )
    renamed.__dict__["fingerprint"] = dataset.fingerprint  # of the data in the workspace
    given = (
        one.model_copy(update={"label": called.get(one.label, one.label)})
        for one in results.decisions
    )
    decisions = sorted(given, key=lambda one: one.verdict == "keep")  # kept once is kept
    values = merged(results.confidences), merged(results.predictions)
    return Results(renamed, *values, decisions, None, results.sources)


class Written(NamedTuple):
    """A file with resolved labels."""

    path: Path
    dataset: CandidateDataset
    resolution: Resolution
    level: Level | None = None  # how many candidates are false, where only the data say so


def clean(
    given: Path | str | ReadResult,
    target: Path | str,
    config: PlainConfig | None = None,
    *,
    threshold: Threshold | None = None,
    allow_new_labels: bool = False,
    on_event: Callable[[Event], object] = lambda event: None,
    format: str | None = None,
    force: bool = False,
    per_item: bool = False,
    folder: Path | None = None,
) -> Written:
    """Train on a file and write it with the labels that are true, and why, as `plain clean` does.

    `given` is a path, or what `read` returned; `config` is the preset `studio` unless stated;
    `on_event` is told what `PlainTrainer.epochs` yields; `folder` is the trainer's.
    """
    from core.engine.trainer import PlainTrainer

    require_free(target, format=format, force=force)
    result = given if isinstance(given, ReadResult) else read(given)
    trainer = PlainTrainer(config or PlainConfig.preset("studio"), folder=folder)
    with kept(result.dataset) as dataset:
        for event in trainer.epochs(dataset):
            on_event(event)
        found = (trainer.confidences, trainer.predictions)
        results = Results(dataset, *found, [], result.mapping, trainer.sources)
        how: dict[str, Any] = {"format": format, "force": force, "per_item": per_item}
        rule = (threshold, allow_new_labels)
        written = write_resolved(results, target, trainer.config, *rule, **how)
    return written if trainer.sources else written._replace(level=trainer.level)


def write_resolved(
    results: Results,
    path: Path | str,
    config: PlainConfig,
    threshold: Threshold | None = None,
    allow_new_labels: bool = False,
    *,
    run: str | None = None,
    **how: Any,
) -> Written:
    """Resolve every cell; write the file, beside it `<file>.provenance.json` and what the format
    has no place for. `how` is passed to `core.formats.write`."""
    dataset, decisions = results.dataset, results.decisions
    threshold = threshold or Threshold()
    resolution = resolve(
        dataset,
        results.confidences,
        threshold,
        decisions,
        allow_new_labels=allow_new_labels,
        predictions=results.predictions,
    )
    about = provenance(
        dataset,
        resolution,
        threshold=threshold,
        config=config.model_dump(mode="json"),
        run=run,
        decisions=decisions,
        sources=results.sources,
    )
    how = {"mapping": results.mapping, "decisions": decisions, "record": about, **how}
    written = write(dataset, path, resolution=resolution, **how)
    return Written(written, dataset, resolution)


def label_studio_users(pairs: Iterable[str], decisions: Iterable[Verdict]) -> dict[str, int | str]:
    """Return who annotators are in Label Studio, from texts such as `anna=3`, `bob=bob@uni.de`.

    Raises
    ------
    ConfigError
        A text that is not of this kind, or somebody who decided nothing.
    """
    known, users = {one.annotator for one in decisions}, dict[str, int | str]()
    for pair in pairs:
        name, _, user = (part.strip() for part in pair.rpartition("="))
        if not name or not (user.isdecimal() or "@" in user):
            hint = "A user of Label Studio is a number or an e-mail address: anna=3."
            raise ConfigError("An annotator must read NAME=USER.", f"Got {pair!r}.", hint)
        if name not in known:
            hint = f"Who decided: {', '.join(sorted(known)) or 'nobody'}."
            raise ConfigError("Nobody of this name decided anything.", f"Got {name!r}.", hint)
        users[name] = int(user) if user.isdecimal() else user
    return users


def provenance(
    dataset: CandidateDataset,
    resolution: Resolution,
    *,
    threshold: Threshold,
    config: Mapping[str, Any],
    run: str | None = None,
    decisions: Iterable[Verdict] = (),
    sources: Reliability | None = None,
) -> dict[str, Any]:
    """Return what an export came from: data, run, settings, versions, decisions, threshold."""
    libraries = ("plain-studio", "torch", "numpy", "scipy", "scikit-learn")
    counts = np.bincount(resolution.reasons.ravel(), minlength=len(resolution.reason_texts))
    return {
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "data": {
            "fingerprint": dataset.fingerprint,
            "n_instances": dataset.n_instances,
            "n_labels": dataset.n_labels,
            "n_candidates": int(dataset.candidates.sum(dtype=np.int64)),
        },
        "run": run,
        "config": {name: one for name, one in config.items() if name != "cluster"},  # a host
        "versions": {
            "python": platform.python_version(),
            **{name: version(name) for name in libraries},
        },
        "threshold": threshold.model_dump(exclude_defaults=True) or {"value": 0.5},
        "sources": [] if sources is None else sources.records(),
        "decisions": dict(Counter(f"{one.annotator}: {one.verdict}" for one in decisions)),
        "n_resolved": int(resolution.labels.sum(dtype=np.int64)),
        "cells_by_reason": dict(zip(resolution.reason_texts, counts.tolist(), strict=True)),
    }
