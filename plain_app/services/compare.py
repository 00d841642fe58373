"""What Compare asks: runs and trials of one data set as equals. Never loads torch or faiss."""

from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import streamlit as st

from core import tuning
from core.engine.config import ABLATIONS, PlainConfig
from core.engine.metrics import f1, roc_auc
from core.methods.choice import settings_used
from core.runs.ranking import Ranking, judge, judge_each_other
from core.tuning.objectives import read_verdicts
from plain_app.charts.compare import Curve, DisagreementPoints, disagreement_points
from plain_app.charts.instance_map import colour_numbers
from plain_app.services import data, explore, maps, runs, studies
from plain_app.services.maps import PackedMap
from plain_app.services.workspace import list_runs, workspace

MAX_COMPARED = 12
CUT = 0.5


class NoResultsError(LookupError):
    """A trial has not finished, or did on another machine."""


class Subject(NamedTuple):
    """A run, or a trial of a study: its settings, confidences and curves."""

    key: str  # a run's id, or <study id>.<trial number>
    title: str
    config: PlainConfig
    confidences: npt.NDArray[Any]  # of all candidate cells
    curves: dict[str, Curve]

    @property
    def run_id(self) -> str | None:
        return None if "." in self.key else self.key


class Figures(NamedTuple):
    """How one subject stands."""

    kept: int
    agreement: float | None  # with decisions, at the cut
    decided_auc: float | None
    truth_auc: float | None
    truth_f1: float | None


def choices(fingerprint: str) -> dict[str, str]:
    """Return the runs that can be compared, with their titles, the newest first."""
    ready = [run for run in list_runs(fingerprint) if explore.situation(run.id)[0] == "ready"]
    return {run.id: runs.title(run) for run in ready}


def variants() -> list[str]:
    """Return what can be trained to be compared: presets, and the paper's ablations."""
    return [*runs.presets(), *(name for name in ABLATIONS if name != "PLAIN")]


def start(fingerprint: str, variant: str) -> str:
    """Train a variant; ablations are of the first preset. Return the run's id."""
    known = runs.presets()
    if variant in runs.other_methods():
        return runs.start(fingerprint, runs.method_config(variant, {}), variant)
    config = runs.preset(variant if variant in known else known[0])
    changed = PlainConfig(**{**config.model_dump(), **ABLATIONS.get(variant, {})})
    return runs.start(fingerprint, changed, variant)


def start_consensus(fingerprint: str, run_ids: list[str]) -> str:
    """Start a run of what some runs say together; return its id."""
    config = runs.method_config("consensus", {"runs": " ".join(run_ids)})
    return runs.start(fingerprint, config, f"consensus of {len(run_ids)}")


def has_ended(run_id: str) -> bool:
    """Whether a run is over; one that waits in the queue is started if it can be."""
    runs.start_queued()
    return runs.get(run_id).state.is_ended


def trial_titles(keys: list[str], fingerprint: str) -> dict[str, str]:
    """Return those keys that are trials on this data, with their titles."""
    known = {row.id: row for row in studies.list_studies(fingerprint)}
    found = {}
    for key in keys:
        study_id, _, number = key.partition(".")
        if study_id in known and number.isdecimal():
            found[key] = f"{studies.title(known[study_id])} trial {number}"
    return found


def subject(key: str) -> Subject | None:
    """Return one run or trial; none when it has no results here, or not yet."""
    folder = str(workspace().folder)
    with suppress(NoResultsError):
        return _trial(folder, key) if "." in key else _run(folder, key)
    return None


@st.cache_resource(max_entries=32, show_spinner=False)
def _run(folder: str, key: str) -> Subject:
    results = explore.explored(key)
    config = results.run.config
    epochs = [] if config.computes_at_once else runs.events(key).epochs
    curves: dict[str, Curve] = {
        "loss": [(one.epoch, one.loss) for one in epochs],
        "entropy": [(one.epoch, one.entropy) for one in epochs],
        "cells that changed sides": [(one.epoch, one.cells_changed) for one in epochs],
        "AUC": [(one.epoch, one.metrics["auc"]) for one in epochs if one.metrics],
    }
    cells = results.confidences[results.dataset.candidates > 0]
    return Subject(key, runs.title(results.run), config, cells, curves)


@st.cache_resource(max_entries=32, show_spinner=False)
def _trial(folder: str, key: str) -> Subject:
    study_id, _, number = key.partition(".")
    study = studies.read(study_id)
    trial = next((one for one in study.finished if one.number == int(number)), None)
    cells = tuning.trial_confidences(workspace(), study_id, int(number))
    if trial is None or cells is None:
        raise NoResultsError  # unlike none, not kept: it may have some soon
    title = f"{studies.title(study.row)} trial {number}"
    return Subject(key, title, studies.config_of(study, trial), cells, {"value": trial.curve})


def settings_that_differ(subjects: list[Subject]) -> dict[str, list[Any]]:
    """Return the settings that those who have them have otherwise; "–" for who has none."""
    used = [{"method": "PLAIN"} | settings_used(one.config) for one in subjects]
    found = {}
    for name in dict.fromkeys(name for settings in used for name in settings):
        known = [settings[name] for settings in used if name in settings]
        if any(value != known[0] for value in known):
            found[name] = [settings.get(name, "–") for settings in used]
    return found


def disagreement(fingerprint: str, subjects: list[Subject]) -> DisagreementPoints:
    """Return the cells on which they disagree."""
    keys = tuple(one.key for one in subjects)
    return _disagreement(str(workspace().folder), fingerprint, keys)


@st.cache_resource(max_entries=8, show_spinner=False)
def _disagreement(folder: str, fingerprint: str, keys: tuple[str, ...]) -> DisagreementPoints:
    cells = runs.cells(fingerprint)
    read = [subject(key) for key in keys]
    stacked = np.stack([one.confidences for one in read if one is not None])
    return disagreement_points(stacked, cells.rows, len(cells.ids), CUT)


def figures(fingerprint: str, one: Subject) -> Figures:
    """Return what a subject keeps, and how well that agrees with decisions and truth."""
    return _figures(
        str(workspace().folder), fingerprint, one.key, workspace().decisions.count(fingerprint)
    )


@st.cache_data(max_entries=64, show_spinner=False)
def _figures(folder: str, fingerprint: str, key: str, count: int) -> Figures:
    one, dataset = subject(key), data.load(fingerprint)
    assert one is not None
    said_of = np.zeros(dataset.candidates.shape, np.float32)
    said_of[dataset.candidates > 0] = one.confidences
    agreement = decided_auc = truth_auc = truth_f1 = None
    verdicts = read_verdicts(workspace(), dataset)
    if len(verdicts.rows):
        said = said_of[verdicts.rows, verdicts.labels]
        agreement = float(((said >= CUT) == verdicts.kept).mean())
        decided_auc = roc_auc(verdicts.kept, said)
    if dataset.truth is not None:
        truth_auc = roc_auc(dataset.truth[dataset.candidates > 0], one.confidences)
        truth_f1 = f1(dataset.truth, said_of >= CUT)
    return Figures(int((one.confidences >= CUT).sum()), agreement, decided_auc, truth_auc, truth_f1)


class Judged(NamedTuple):
    """Compared runs, judged by the best that is known."""

    by: str  # truth, decisions, or each other
    ranking: Ranking


def judged(fingerprint: str, subjects: list[Subject]) -> Judged | None:
    """Judge them; none where nothing is known and fewer than three are compared."""
    keys, count = tuple(one.key for one in subjects), workspace().decisions.count(fingerprint)
    return _judged(str(workspace().folder), fingerprint, keys, count)


@st.cache_resource(max_entries=16, show_spinner=False)
def _judged(folder: str, fingerprint: str, keys: tuple[str, ...], count: int) -> Judged | None:
    dataset, cells = data.load(fingerprint), runs.cells(fingerprint)
    read = [subject(key) for key in keys]
    stacked = np.stack([one.confidences for one in read if one is not None])
    known = {}
    if dataset.truth is not None:
        known["truth"] = np.asarray(dataset.truth, np.float64)
    known["decisions"] = read_verdicts(workspace(), dataset).cells(dataset.candidates.shape)
    for by, values in known.items():
        found = judge(stacked, cells.rows, values[cells.rows, cells.columns])
        if found is not None:
            return Judged(by, found)
    found = judge_each_other(stacked, CUT)
    return None if found is None else Judged("each other", found)


def disagreement_map(
    run_id: str, subjects: list[Subject], found: DisagreementPoints
) -> PackedMap | None:
    """Return a run's map, coloured by how many of an instance's cells they disagree on."""
    counts = np.where(found.by_instance > 0, found.by_instance, np.nan)
    most = float(found.by_instance.max(initial=1))
    title = "Cells on which they disagree"
    colours = colour_numbers(counts, title, "amount", (0.0, max(most, 1.0)), "none")
    return maps.packed_as(run_id, colours, ",".join(one.key for one in subjects))
