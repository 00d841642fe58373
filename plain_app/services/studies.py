"""Studies: start and steer them, read their trials, and turn a trial into a run.

Trials are always trained in child processes (`core.tuning.launch`): torch never comes in here.
"""

import os
from typing import NamedTuple

import numpy as np
import streamlit as st

from core import tuning
from core.engine.config import PlainConfig
from core.runs.processes import end_of_log
from core.store import StudyRow
from core.tuning import Study, StudySettings, Trial
from core.tuning.space import ObjectiveName
from plain_app.services import data, runs
from plain_app.services.workspace import list_runs, workspace


class Badges(NamedTuple):
    """How many candidate cells the good trials agree on."""

    n_trials: int
    robust_true: int
    robust_false: int
    depends: int


def list_studies(fingerprint: str) -> list[StudyRow]:
    """Return the studies on a data set, the newest first."""
    return workspace().studies.list(fingerprint)


def title(row: StudyRow) -> str:
    """Return what a study is called on the screen."""
    return f"{row.name or 'study'} · {row.id[-6:]}"


def read(study_id: str) -> Study:
    """Return a study as it is now."""
    return tuning.read_study(workspace(), study_id)


def objectives(fingerprint: str) -> list[ObjectiveName]:
    """Return what trials can be judged by, the most trustworthy first."""
    count = workspace().decisions.count(fingerprint)
    return _objectives(str(workspace().folder), fingerprint, count)


@st.cache_data(max_entries=20, show_spinner=False)
def _objectives(folder: str, fingerprint: str, count: int) -> list[ObjectiveName]:
    return tuning.available(workspace(), fingerprint)


def explain(objective: ObjectiveName, fingerprint: str) -> str:
    """Say what is used and how far to trust it."""
    return tuning.explain(objective, workspace(), fingerprint)


def n_cores() -> int:
    return os.cpu_count() or 1


def start(fingerprint: str, settings: StudySettings, name: str = "") -> str:
    """Create a study and let child processes work on it; return its id."""
    row = tuning.create_study(workspace(), fingerprint, settings, name[:200])
    tuning.launch(workspace(), row.id)
    return row.id


def resume(study_id: str) -> None:
    tuning.launch(workspace(), study_id)


def stop(study_id: str) -> None:
    tuning.stop(workspace(), study_id)


def importances(study: Study) -> dict[str, float]:
    """Return how much each setting matters, as of the finished trials."""
    return _importances(str(workspace().folder), study.row.id, study.n_done)


@st.cache_data(max_entries=40, show_spinner=False)
def _importances(folder: str, study_id: str, n_done: int) -> dict[str, float]:
    return tuning.importances(workspace(), study_id)


def badges(study: Study) -> Badges:
    """Return how robust the candidate cells are against the settings."""
    codes = tuning.robustness(workspace(), study.row.id)
    counts = np.bincount(codes.ravel(), minlength=4)
    true, false, depends = (
        int(counts[code]) for code in (tuning.ROBUST_TRUE, tuning.ROBUST_FALSE, tuning.DEPENDS)
    )
    return Badges(len(study.good), true, false, depends)


def depending(study: Study) -> list[str]:
    """Return the instances with cells that depend on a setting, those with most of them first."""
    codes = tuning.robustness(workspace(), study.row.id)
    counts = (codes == tuning.DEPENDS).sum(axis=1)
    ids = data.load(study.row.fingerprint).ids
    return [ids[row] for row in np.argsort(-counts, kind="stable") if counts[row]]


def config_of(study: Study, trial: Trial) -> PlainConfig:
    """Return a trial's settings."""
    return study.settings.config(trial.values)


def open_run(study: Study, trial: Trial) -> str:
    """Return the run a trial stands for, starting it the first time it is asked for.

    A trial keeps only its confidences. The same settings and seed on the same machine give the
    same training, so the run is the trial, with everything that can be seen of a run.
    """
    name = f"{title(study.row)} trial {trial.number}"
    known = [run for run in list_runs(study.row.fingerprint) if run.name == name]
    return (
        known[0].id if known else runs.start(study.row.fingerprint, config_of(study, trial), name)
    )


def worker_log(study_id: str, limit: int = 3000) -> str:
    """Return the end of what the study's processes printed."""
    return end_of_log(workspace().studies.folder(study_id) / "worker.log", limit)


def report(study_id: str) -> bytes:
    """Return the report of a study as one HTML file."""
    from plain_app.report import make

    return make(workspace(), study_id)
