"""The one open workspace of this server, and what the frame lists of it."""

import os
import threading
from collections.abc import Sequence
from contextlib import suppress
from functools import lru_cache
from typing import NamedTuple

import streamlit as st

from core.errors import StoreError
from core.store import CurrentDecisions, DatasetRow, DecisionsNow, RunRow, Workspace
from core.store.files import read_json, remove_leftovers, write_json

DEFAULT_FOLDER = "plain-workspace"
OPENED = "opened.json"
MAX_PEOPLE = 500  # some 60 kB
_keeping = threading.Lock()  # two people may open something at once


class Opened(NamedTuple):
    """A data set and a run on it; none where nothing was open."""

    fingerprint: str | None = None
    run_id: str | None = None


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
    return [] if fingerprint is None else workspace().runs.list(fingerprint)


def list_annotators(fingerprint: str | None) -> list[str]:
    """Return everyone who has decided on this data."""
    return [] if fingerprint is None else sorted(current_decisions(fingerprint).by_annotator)


def current_decisions(fingerprint: str) -> DecisionsNow:
    """Return what holds of the decisions on this data; only new ones are read."""
    return _current_decisions(str(workspace().folder), fingerprint).refresh()


@st.cache_resource(max_entries=8, show_spinner=False)
def _current_decisions(folder: str, fingerprint: str) -> CurrentDecisions:
    return CurrentDecisions(workspace().decisions, fingerprint)


def last_opened(person: str | None, run_id: str | None = None) -> Opened:
    """Return what a person had open when last here; a run that is asked for goes before it."""
    for run in workspace().runs.list() if run_id else ():
        if run.id == run_id:
            return Opened(run.fingerprint, run.id)
    return Opened(*_all_opened().get(person or "", ()))


def keep_opened(person: str | None, opened: Opened) -> None:
    """Keep what a person has open for their next visit; without a place for it, nothing is kept."""
    with _keeping, suppress(StoreError, OSError):
        others = [one for one in _all_opened().items() if one[0] != (person or "")]
        people = [*others, (person or "", opened)][-MAX_PEOPLE:]
        write_json(workspace().folder / OPENED, dict(people))


def _all_opened() -> dict[str, Sequence[str | None]]:
    """Return data set and run by person, who came last at the end."""
    with suppress(StoreError, OSError):
        found = read_json(workspace().folder / OPENED)
        return found if isinstance(found, dict) else {}
    return {}
