"""Data sets: files on their way in, what they hold, and those in the workspace.

A file on its way in lies in the workspace's `incoming` folder under a random name, or wherever
`--data` named it; it is only read. Nothing is stored before `store`.
"""

import os
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import replace
from pathlib import Path
from typing import IO, NamedTuple
from uuid import uuid4

import numpy as np
import pandas as pd
import streamlit as st

from core.data.checks import Summary, check, summarize
from core.data.dataset import CandidateDataset
from core.data.demo import DEMOS
from core.data.noise import confusable_candidates, resemblance, uniform_candidates
from core.data.votes import Votes
from core.errors import DatasetError, PlainError, Problem
from core.formats import ColumnMapping, ReadResult, read
from core.store.decision_import import data_of, take_decisions
from core.store.files import disk_errors
from core.store.permissions import make_private_folder, open_private
from plain_app.charts.distribution import TogetherPoints, together_points
from plain_app.server.launcher import DATA_FOLDERS
from plain_app.services import folders, pictures
from plain_app.services.workspace import workspace

PREVIEW_ROWS = 12
MAX_SHOWN_TEXT = 300
PICTURE = ("data:image/png;base64,", "data:image/jpeg;base64,", "data:image/webp;base64,")


POLL_SECONDS = 0.2
_readers = ThreadPoolExecutor(2, thread_name_prefix="reader")

Show = Callable[[float], None]


class Staged(NamedTuple):
    """A file that is looked at and not stored yet."""

    path: str
    name: str


class Report(NamedTuple):
    """What a data set holds and what is odd about it, the fatal first."""

    summary: Summary
    problems: list[Problem]
    per_instance: list[int]
    together: TogetherPoints

    @property
    def is_usable(self) -> bool:
        return not any(problem.fatal for problem in self.problems)


def stage(upload: IO[bytes], name: str) -> Staged:
    """Copy an upload to the disk, so that the server's memory can let go of it.

    Raises
    ------
    StoreError
        The disk is full; nothing is left of the copy then.
    """
    path = workspace().folder / "incoming" / f".{uuid4().hex}.tmp"
    try:
        with disk_errors(path):
            make_private_folder(path.parent)
            with open_private(path) as file:
                shutil.copyfileobj(upload, file)
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    return Staged(str(path), Path(name).name[:200] or "file")


def can_open_paths() -> bool:
    """Whether files of the server's disk can be opened: on one's own machine, or some folders."""
    return folders.allowed(DATA_FOLDERS) != []


def stage_path(typed: str) -> Staged:
    """Return a file or folder of the server's disk, to be looked at where it is.

    Raises
    ------
    PlainError
        There is none, or it does not lie below a folder that is open.
    """
    typed = typed.strip().strip("\"'")
    try:
        path = folders.checked(typed, DATA_FOLDERS)
    except folders.NoPathError as error:
        raise PlainError("This is no path.", str(error)) from error
    except folders.NotAllowedError as error:
        hint = f"Folders that are open here: {error}."
        raise PlainError("This path is not open.", typed, hint) from error
    if not typed or not path.exists():
        raise PlainError("There is no such file.", typed, "Give its whole path on the server.")
    return Staged(str(path.absolute()), path.name[:200] or "file")


def staged_by_launcher() -> Staged | None:
    """Return the file named by `plain app --data`, if any, until somebody loads or discards it."""
    path = os.environ.get("PLAIN_FILE")
    return Staged(path, Path(path).name) if path else None


def discard(staged: Staged) -> None:
    """Delete a copied upload; a file of the user's own is never touched, just not offered again."""
    path = Path(staged.path)
    if staged == staged_by_launcher():
        del os.environ["PLAIN_FILE"]
    _read.clear()  # what was read may be large
    if path.parent == workspace().folder / "incoming":
        path.unlink(missing_ok=True)


def read_staged(
    staged: Staged, mapping: ColumnMapping | None, show: Show | None = None
) -> ReadResult:
    """Read a staged file; an unchanged one with the same mapping only once.

    `show` is called now and then meanwhile, with the share that is read: by whoever asked, for
    what is cached must not draw.

    Raises
    ------
    DatasetError
        With every problem at once.
    """
    try:
        stamp = os.stat(staged.path).st_mtime_ns
    except OSError:
        gone = Problem("the file is gone", "Choose it again.", fatal=True, value=staged.name)
        raise DatasetError([gone]) from None
    stated = "" if mapping is None else mapping.model_dump_json(exclude_unset=True)
    share = [0.0]
    reading = _readers.submit(_read, staged.path, staged.name, stamp, stated, share)
    while not wait([reading], POLL_SECONDS).done:
        if show is not None:
            show(share[0])
    return reading.result()


@st.cache_resource(max_entries=3, show_spinner=False)
def _read(path: str, name: str, stamp: int, stated: str, _share: list[float]) -> ReadResult:
    mapping = ColumnMapping.model_validate_json(stated) if stated else None

    def tell(done: int, total: int) -> None:
        _share[0] = done / max(total, 1)

    return read(path, mapping, name=name, progress=tell)


def report(dataset: CandidateDataset, found: tuple[Problem, ...] = ()) -> Report:
    """Return sizes, problems and figures of a data set, computed once per fingerprint."""
    made = _report(dataset.fingerprint, dataset.truth is not None, dataset)
    problems = sorted([*found, *made.problems], key=lambda one: not one.fatal)
    return made._replace(problems=problems)


@st.cache_resource(max_entries=8, show_spinner=False)
def _report(fingerprint: str, has_truth: bool, _dataset: CandidateDataset) -> Report:
    counts = np.bincount(_dataset.candidates.sum(axis=1, dtype=np.int64))
    together = together_points(_dataset.candidates, _dataset.label_names)
    return Report(summarize(_dataset), check(_dataset), counts.tolist(), together)


@st.cache_resource(max_entries=4, show_spinner=False)
def _load(folder: str, fingerprint: str, has_truth: bool) -> CandidateDataset:
    return workspace().load_dataset(fingerprint)


def load(fingerprint: str) -> CandidateDataset:
    """Return a data set of the workspace; shared, and features stay on the disk."""
    row = workspace().dataset(fingerprint)
    return _load(str(workspace().folder), fingerprint, row is not None and row.has_truth)


def store(dataset: CandidateDataset, name: str) -> str:
    """Put a data set into the workspace and return its fingerprint."""
    return workspace().add_dataset(dataset, name)


def store_read(result: ReadResult, name: str) -> str:
    """Put what was read into the workspace, decisions that came with it too.

    An export that came back is the data it was made of, where that is there.
    """
    fingerprint = data_of(workspace(), result) if result.decisions else None
    fingerprint = fingerprint or store(result.dataset, name)
    take_decisions(workspace(), result, fingerprint)
    return fingerprint


def store_demo(word: str = "demo") -> str:
    """Put embedded data into the workspace and return its fingerprint."""
    return store(DEMOS[word].load(), DEMOS[word].title)


def store_votes(dataset: CandidateDataset, upload: IO[bytes]) -> str:
    """Store the data again with a table of votes; return its fingerprint.

    Candidates are then the cells with a yes.
    """
    staged = stage(upload, getattr(upload, "name", "votes.csv"))
    suffix = Path(staged.name).suffix.lower() or ".csv"
    path = Path(staged.path).rename(f"{staged.path}{suffix}")  # still a temporary name
    try:
        votes = Votes.read(path, dataset.ids, dataset.label_names)
    finally:
        path.unlink(missing_ok=True)
    made = replace(dataset, candidates=votes.candidates, votes=votes)
    return store(made, f"{staged.name} on {dataset.fingerprint[:6]}")


def synthesise(dataset: CandidateDataset, kind: str, r: int) -> CandidateDataset:
    """Return the data with r false labels per instance, even or alike, added to its true ones.

    Without truth, the labels as given are taken for it.
    """
    truth = dataset.candidates if dataset.truth is None else dataset.truth
    if kind == "confusable":
        alike = resemblance(dataset.features, truth)
        candidates = confusable_candidates(truth, alike, low=r, high=r)
    else:
        candidates = uniform_candidates(truth, r)
    return replace(dataset, candidates=candidates, truth=truth, votes=None, original=None)


def preview(dataset: CandidateDataset, rows: int = PREVIEW_ROWS) -> pd.DataFrame:
    """Return the first instances as a person sees them: id, picture or text, candidates."""
    n = min(rows, dataset.n_instances)
    table = pd.DataFrame({"instance": list(dataset.ids[:n])})
    if dataset.display is not None:
        for name in list(dataset.display.columns)[:6]:
            table[str(name)] = [_shown(cell) for cell in dataset.display[name].iloc[:n]]
    for name in pictures.picture_columns(dataset.fingerprint):
        small = [pictures.thumbnail(dataset.fingerprint, name, row) or "" for row in range(n)]
        if name in table:
            table[name] = small
    table["candidates"] = [_names(dataset, row) for row in dataset.candidates[:n]]
    if dataset.truth is not None:
        table["truth"] = [_names(dataset, row) for row in dataset.truth[:n]]
    return table


def picture_columns(table: pd.DataFrame) -> list[str]:
    """Return the columns that hold nothing but pictures, or none; addresses are never fetched."""
    return [
        name
        for name in table.columns
        if any(table[name].astype(bool))
        and all(
            isinstance(cell, str) and (cell == "" or cell.startswith(PICTURE))
            for cell in table[name]
        )
    ]


def _shown(cell: object) -> str:
    text = "" if cell is None else str(cell)
    return text if text.startswith(PICTURE) else text[:MAX_SHOWN_TEXT]


def _names(dataset: CandidateDataset, row: np.ndarray) -> str:
    names = (dataset.label_names[j][:60] for j in np.flatnonzero(row)[:40])
    return ", ".join(names)
