"""What the Export view asks: labels resolved by a rule, what that changes, and the files.

Everything goes through `core.export`, as `plain export` does, so both write the same bytes.
"""

import io
import json
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import streamlit as st

from core import export as engine
from core import formats as known
from core.data.dataset import CandidateDataset
from core.errors import ExportError
from core.review import Resolution, Threshold, resolve
from core.review.outcome import Figures, Kind, cells_that_are, figures_of
from core.store.permissions import make_private_folder
from plain_app.server.launcher import EXPORT_FOLDERS
from plain_app.services import folders
from plain_app.services.review import current_state
from plain_app.services.workspace import current_decisions, workspace

PREVIEWED = 3  # instances in a preview
MAX_LINES, WIDEST = 12, 400  # of a file in a preview
LAST = 260  # characters of them from the end of a line: there stand the labels
MAX_LISTED = 100  # cells of the difference
COMPRESSED = {".parquet", ".npz", ".zip", ".gz"}  # already


Asked = tuple[str, str, int, int, str, bool]
"""Workspace, run, decisions and changes of names so far, the rule, and whether it adds labels."""


class Outcome(NamedTuple):
    """Every cell resolved by a rule. Shared by all sessions: read only."""

    run_id: str
    results: engine.Results
    threshold: Threshold
    resolution: Resolution
    asked: Asked  # all that it depends on


def outcome(run_id: str, threshold: Threshold, allow_new_labels: bool) -> Outcome:
    """Return the labels of a run under a rule, as of the newest decision."""
    run = workspace().runs.get(run_id)
    asked = (
        str(workspace().folder),
        run_id,
        workspace().decisions.count(run.fingerprint),
        len(workspace().labels.history(run.fingerprint)),
        threshold.model_dump_json(),
        allow_new_labels,
    )
    return _outcome(asked)


@st.cache_resource(max_entries=4, show_spinner=False)
def _results(folder: str, run_id: str, n_decisions: int, n_names: int) -> engine.Results:
    run = workspace().runs.get(run_id)
    shared = current_decisions(run.fingerprint).latest.values()  # a cache must not own copies
    made = sorted(shared, key=lambda one: one.id or 0)
    return engine.run_results(workspace(), run, made, lambda: current_state(run_id).reviewer)


@st.cache_resource(max_entries=12, show_spinner=False)
def _outcome(asked: Asked) -> Outcome:
    folder, run_id, n_decisions, n_names, rule, allow_new_labels = asked
    results = _results(folder, run_id, n_decisions, n_names)
    threshold = Threshold(**json.loads(rule))
    resolution = resolve(
        results.dataset,
        results.confidences,
        threshold,
        results.decisions,
        allow_new_labels=allow_new_labels,
        predictions=results.predictions,
    )
    return Outcome(run_id, results, threshold, resolution, asked)


def figures(made: Outcome) -> Figures:
    """Return what the rule does, and how right it is expected to be."""
    return _figures(made, made.asked)


@st.cache_resource(max_entries=12, show_spinner=False)
def _figures(_made: Outcome, asked: Asked) -> Figures:
    return figures_of(_made.results.dataset, _made.resolution, _made.results.decisions)


def differences(made: Outcome, what: Kind, label: str | None) -> tuple[pd.DataFrame, int]:
    """Return cells with the reason for each, and how many there are in all."""
    return _differences(made, made.asked, what, label)


@st.cache_resource(max_entries=12, show_spinner=False)
def _differences(
    _made: Outcome, asked: Asked, what: Kind, label: str | None
) -> tuple[pd.DataFrame, int]:
    dataset, resolution = _made.results.dataset, _made.resolution
    rows, labels = cells_that_are(what, dataset, resolution, label)
    cells = zip(rows[:MAX_LISTED].tolist(), labels[:MAX_LISTED].tolist(), strict=True)
    table = pd.DataFrame(
        [
            (
                dataset.ids[i][:60],
                dataset.label_names[j][:60],
                float(resolution.confidences[i, j]),
                resolution.reason(i, j),
            )
            for i, j in cells
        ],
        columns=["instance", "label", "confidence", "reason"],
    )
    return table, len(rows)


# --------------------------------------------------------------------------------------- files


def formats() -> dict[str, str]:
    """Return what can be written, with the extension of each."""
    return known.writable()


def provenance(made: Outcome) -> dict[str, Any]:
    """Return the record that goes beside the file."""
    run = workspace().runs.get(made.run_id)
    return engine.provenance(
        made.results.dataset,
        made.resolution,
        threshold=made.threshold,
        config=run.config.model_dump(mode="json"),
        run=run.id,
        decisions=made.results.decisions,
        sources=made.results.sources,
    )


def own_format(made: Outcome) -> str:
    """Return the format of the file that the data came in, where it can be written; else CSV."""
    original = made.results.dataset.original
    return original.format if original is not None and original.format in offered(made) else "csv"


def offered(made: Outcome) -> dict[str, str]:
    """Return what this data can be written as; a folder per label where it came so."""
    original = made.results.dataset.original
    in_folders = original is not None and original.format == "pictures"
    return {**formats(), **({"pictures": ".zip"} if in_folders else {})}


def has_several_rows_per_item(made: Outcome) -> bool:
    """Whether the rows of the file are views of its items, or single labels, not the items."""
    original = made.results.dataset.original
    if original is None:
        return False
    return original.mapping.row == "view" or original.mapping.layout == "long"


def annotators(made: Outcome) -> list[str]:
    """Return who decided something."""
    return sorted({one.annotator for one in made.results.decisions})


def users_of(made: Outcome, text: str) -> dict[str, int | str]:
    """Return who annotators are in Label Studio, as somebody typed it: `anna=3, bob=4`."""
    pairs = [one for one in text.replace("\n", ",").split(",") if one.strip()]
    return engine.label_studio_users(pairs, made.results.decisions)


def write(made: Outcome, path: Path, format: str, *, force: bool = False, **how: Any) -> Path:
    """Write the file and its record, as `plain export` does; `how` is `per_item` and `users`."""
    if not path.parent.is_dir():
        raise ExportError("There is no such folder.", str(path.parent), "Make it first.")
    with workspace().exporting(path):
        return known.write(
            made.results.dataset,
            path,
            format=format,
            mapping=made.results.mapping,
            resolution=made.resolution,
            decisions=made.results.decisions,
            record=provenance(made),
            force=force,
            **how,
        )


def allowed_folders() -> list[str] | None:
    """Return the folders that people may write below; none where they may write anywhere."""
    return folders.allowed(EXPORT_FOLDERS)


def write_below(
    made: Outcome, folder: str, name: str, format: str, *, force: bool = False, **how: Any
) -> Path:
    """Write the file into a folder that somebody typed; on a shared server only into one below
    those its operator allowed, wherever links and dots in it lead."""
    return write(made, _allowed(folder) / name, format, force=force, **how)


def _allowed(folder: str) -> Path:
    try:
        return folders.checked(folder, EXPORT_FOLDERS)
    except folders.NoPathError as error:
        raise ExportError("This is no folder.", str(error)) from error
    except folders.NotAllowedError as error:
        hint = f"Folders allowed here: {error}. Or download the file."
        raise ExportError("This folder is not open to exports.", folder, hint) from error


def packed(made: Outcome, name: str, format: str, **how: Any) -> bytes:
    """Return file, record and whatever the format puts beside them, as one ZIP."""
    with _folder() as folder:
        write(made, folder / name, format, **how)
        held = io.BytesIO()
        with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as archive:
            for path in sorted(one for one in folder.rglob("*") if one.is_file()):
                how_ = zipfile.ZIP_STORED if path.suffix in COMPRESSED else zipfile.ZIP_DEFLATED
                archive.write(path, path.relative_to(folder), how_)
        return held.getvalue()


def preview(made: Outcome, name: str, format: str, **how: Any) -> list[tuple[str, str]]:
    """Return the beginning of every file, made from the first instances only."""
    return _preview(made, made.asked, name, format, how)


@st.cache_resource(max_entries=12, show_spinner=False)
def _preview(
    _made: Outcome, asked: Asked, name: str, format: str, how: dict[str, Any]
) -> list[tuple[str, str]]:
    made = _made
    few = made._replace(
        results=made.results._replace(dataset=_head(made.results.dataset)),
        resolution=_head_of(made.resolution),
    )
    with _folder() as folder:
        known.write(
            few.results.dataset,
            folder / name,
            format=format,
            mapping=few.results.mapping,
            resolution=few.resolution,
            **how,
        )
        found = sorted(one for one in folder.rglob("*") if one.is_file())
        return [(str(path.relative_to(folder)), _text(path)) for path in found]


def _head(dataset: CandidateDataset) -> CandidateDataset:
    n = PREVIEWED
    return replace(
        dataset,
        features=dataset.features[:n],
        candidates=dataset.candidates[:n],
        ids=dataset.ids[:n],
        truth=None if dataset.truth is None else dataset.truth[:n],
        display=None if dataset.display is None else dataset.display.iloc[:n],
        votes=None if dataset.votes is None else dataset.votes.rows(np.arange(n)),
    )


def _head_of(resolution: Resolution) -> Resolution:
    return Resolution(
        resolution.labels[:PREVIEWED],
        resolution.confidences[:PREVIEWED],
        resolution.reasons[:PREVIEWED],
        resolution.reason_texts,
    )


def _text(path: Path) -> str:
    head = path.read_bytes()[: 2**20]
    if b"\0" in head or path.suffix in (".parquet", ".npz", ".mat", ".arrow"):
        return f"(binary, {path.stat().st_size:,} bytes for {PREVIEWED} instances)"
    lines = head.decode("utf-8", "replace").splitlines()[:MAX_LINES]
    return "\n".join(map(_shortened, lines))


def _shortened(line: str) -> str:
    """Return a line, without its middle if it is long."""
    if len(line) <= WIDEST:
        return line
    return f"{line[: WIDEST - LAST]} … {line[-LAST:]}"


@contextmanager
def _folder() -> Iterator[Path]:
    """Give a folder of the workspace, which clears up there after a crash."""
    parent = workspace().folder / "exports"
    make_private_folder(parent)
    with tempfile.TemporaryDirectory(dir=parent, prefix=".", suffix=".tmp") as folder:
        yield Path(folder)
