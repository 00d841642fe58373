"""Cleaned label sets as files other tools accept, and beside each the record of how it was made.

What goes out is what a run knows after review: decisions, the confidences they taught, and the
names that labels have now. The command line and the Export page both begin with `run_results`.
"""

import hashlib
import json
import os
import platform
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from core.dataset import CandidateDataset
from core.errors import ExportError
from core.formats import ColumnMapping, write
from core.review import Resolution, Threshold, Verdict
from core.review.load import load_reviewer
from core.store import Decision, RunRow, Workspace, files


class Results(NamedTuple):
    """What is known of every cell of a run, and who decided what."""

    dataset: CandidateDataset  # with labels as they are called now
    confidences: npt.NDArray[np.float32]  # (n, L)
    predictions: npt.NDArray[np.float32]  # (n, L)
    decisions: list[Decision]
    mapping: ColumnMapping | None  # none where labels are not those of the file any more


def run_results(workspace: Workspace, run: RunRow) -> Results:
    """Return what a run with results knows, the decisions of its data included."""
    folder = workspace.runs.folder(run.id)
    if not (folder / "confidences.npy").exists():
        raise ExportError("This run has no results yet.", run.id, "Wait, or stop it first.")
    dataset = workspace.load_dataset(run.fingerprint)
    confidences, predictions = (
        files.read_array(folder / f"{name}.npy") for name in ("confidences", "predictions")
    )
    decisions = workspace.decisions.latest(run.fingerprint)
    if decisions:
        confidences = load_reviewer(workspace, run).confidences
    results = Results(
        dataset, confidences, predictions, decisions, workspace.mapping(run.fingerprint)
    )
    names = workspace.labels.names(run.fingerprint, dataset.label_names)
    return results if list(dataset.label_names) == names else _renamed(results, names)


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
    renamed = CandidateDataset(
        dataset.features,
        merged(dataset.candidates),
        tuple(column),
        dataset.ids,
        dataset.feature_names,
        None if dataset.truth is None else merged(dataset.truth),
        dataset.display,
    )
    renamed.__dict__["fingerprint"] = dataset.fingerprint  # of the data in the workspace
    given = (
        one.model_copy(update={"label": called.get(one.label, one.label)})
        for one in results.decisions
    )
    decisions = sorted(given, key=lambda one: one.verdict == "keep")  # kept once is kept
    return Results(
        renamed, merged(results.confidences), merged(results.predictions), decisions, None
    )


def export(
    dataset: CandidateDataset,
    resolution: Resolution,
    path: Path | str,
    *,
    provenance: Mapping[str, Any],
    format: str | None = None,
    mapping: ColumnMapping | None = None,
    force: bool = False,
) -> Path:
    """Write the resolved labels, and `<file>.provenance.json` beside them.

    Raises
    ------
    ExportError
        When a target exists (unless `force`) or cannot be written; then nothing is left behind.
    """
    path = Path(path)
    record = path.with_name(path.name + ".provenance.json")
    if record.exists() and not force:
        raise ExportError("The file exists already.", str(record), "Choose another name, or force.")
    written = write(
        dataset, path, format=format, mapping=mapping, resolution=resolution, force=force
    )
    about = {**provenance, "file": path.name, "sha256": _sha256(written)}
    _write_record(record, about)
    return written


def provenance(
    dataset: CandidateDataset,
    resolution: Resolution,
    *,
    threshold: Threshold,
    config: Mapping[str, Any],
    run: str | None = None,
    decisions: Iterable[Verdict] = (),
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
        "config": dict(config),
        "versions": {
            "python": platform.python_version(),
            **{name: version(name) for name in libraries},
        },
        "threshold": threshold.model_dump(exclude_defaults=True) or {"value": 0.5},
        "decisions": dict(Counter(f"{one.annotator}: {one.verdict}" for one in decisions)),
        "n_resolved": int(resolution.labels.sum(dtype=np.int64)),
        "cells_by_reason": dict(zip(resolution.reason_texts, counts.tolist(), strict=True)),
    }


def _sha256(path: Path) -> str | None:
    if path.is_dir():
        return None
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _write_record(path: Path, about: Mapping[str, Any]) -> None:
    try:
        with tempfile.NamedTemporaryFile(
            "w", dir=path.parent, prefix=".plain-", delete=False, encoding="utf-8"
        ) as file:
            json.dump(about, file, indent=2, ensure_ascii=False)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(file.name, 0o644)
        os.replace(file.name, path)
    except OSError as error:
        raise ExportError(f"{path.name} cannot be written.", str(error.strerror)) from error
