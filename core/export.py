"""Cleaned label sets as files other tools accept, and beside each the record of how it was made."""

import hashlib
import json
import os
import platform
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from core.dataset import CandidateDataset
from core.errors import ExportError
from core.formats import ColumnMapping, write
from core.review import Resolution, Threshold, Verdict


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
