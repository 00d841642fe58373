"""The one open workspace of this server, and what the frame lists of it."""

import os
from functools import lru_cache

import streamlit as st

from core.store import DatasetRow, RunRow, Workspace
from core.store.files import remove_leftovers

DEFAULT_FOLDER = "plain-workspace"


def workspace() -> Workspace:
    """Return the workspace that `PLAIN_WORKSPACE` names."""
    return _open(os.environ.get("PLAIN_WORKSPACE", DEFAULT_FOLDER))


@lru_cache(maxsize=8)  # asked for dozens of times per rerun; the cache below opens it only once
@st.cache_resource(max_entries=8, show_spinner=False)
def _open(folder: str) -> Workspace:
    space = Workspace(folder)
    remove_leftovers(space.folder / "incoming", older_than=24 * 3600)
    return space


def list_datasets() -> list[DatasetRow]:
    """Return the data sets, the newest first."""
    return workspace().datasets()


def list_runs(fingerprint: str | None) -> list[RunRow]:
    """Return the runs on a data set, the newest first."""
    runs = workspace().runs.list()
    return [run for run in runs if run.fingerprint == fingerprint]


def list_annotators(fingerprint: str | None) -> list[str]:
    """Return everyone who has decided on this data."""
    if fingerprint is None:
        return []
    count = workspace().decisions.count(fingerprint)
    return _annotators(str(workspace().folder), fingerprint, count) if count else []


@st.cache_data(max_entries=20, show_spinner=False)
def _annotators(folder: str, fingerprint: str, count: int) -> list[str]:
    return sorted(workspace().decisions.by_annotator(fingerprint))
