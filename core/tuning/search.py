"""A worker of a study: takes trials one after another until the budget is spent.

Where the study's settings name a cluster, its workers do that, and this process waits for them.
"""

from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np
import optuna
from optuna.trial import TrialState

from core.cluster.executors import Item, open_executor
from core.engine.events import EpochRecord
from core.errors import ConfigError, StopTraining, TrainingError
from core.runs import processes as background
from core.store import StudyRow, Workspace
from core.tuning import studies
from core.tuning.objectives import Judge, read_verdicts
from core.tuning.space import StudySettings

POLL_SECONDS = 1.0
MAX_REPORTS = 60
"""Values told per trial at most; pruning does not need every epoch of a long training."""


def work(workspace: Workspace, study_id: str) -> None:
    """Work on a study until its budget is spent or someone stops it."""
    row = workspace.studies.get(study_id)
    folder, address = workspace.studies.folder(row.id), StudySettings(**row.settings).base.cluster
    if address is None:
        return _work_here(workspace, row)
    with studies.worker_place(folder), open_executor(address, folder) as executor:
        assert executor is not None
        item = {"workspace": str(workspace.folder.absolute()), "study": row.id}
        list(executor.map(_work_on_worker, [item] * executor.n_workers, "trials"))


def _work_on_worker(item: Item) -> None:
    """Task: take trials of a study until its budget is spent."""
    workspace = Workspace(Path(item["workspace"]))
    try:
        _work_here(workspace, workspace.studies.get(item["study"]))
    finally:
        workspace.close()


def _work_here(workspace: Workspace, row: StudyRow) -> None:
    settings = StudySettings(**row.settings)
    folder = workspace.studies.folder(row.id)
    with studies.worker_place(folder) as place:
        dataset = workspace.load_dataset(row.fingerprint)
        judge = Judge(settings, dataset, read_verdicts(workspace, dataset))
        study = studies.open_optuna(workspace, row)
        while (trial := _next(workspace, row, settings, study, place)) is not None:
            _run(workspace, row, settings, study, trial, judge)
        studies.kept_shares(workspace, row.id)  # kept, for whoever asks what depends on a setting


def _next(
    workspace: Workspace, row: StudyRow, settings: StudySettings, study: optuna.Study, place: str
) -> optuna.Trial | None:
    """Take the next trial; one worker at a time, so that the budget is kept to the trial."""
    with workspace.database.write(durable=False):
        _put_lost_back(workspace, row, study)
        seen = studies.read_study(workspace, row.id).trials
        if study.user_attrs.get("stopped") or not studies.has_budget(settings, seen):
            return None
        trial = study.ask()
        trial.set_user_attr("host", studies.host())
        trial.set_user_attr("worker", place)
        return trial


def _put_lost_back(workspace: Workspace, row: StudyRow, study: optuna.Study) -> None:
    """Have trials tried again whose worker is gone."""
    optuna.storages.fail_stale_trials(study)
    folder = workspace.studies.folder(row.id)
    for lost in study.get_trials(deepcopy=False, states=(TrialState.RUNNING,)):
        place = lost.user_attrs.get("worker")
        is_here = lost.user_attrs.get("host") == studies.host()
        if is_here and not background.is_locked(folder / f"{place}.lock"):
            _put_back(study, lost.number, lost.params, "its process was lost")


def _put_back(study: optuna.Study, number: int, values: dict[str, Any], why: str) -> None:
    study.tell(number, state=TrialState.FAIL, skip_if_finished=True)
    if values:
        study.enqueue_trial(values, user_attrs={"note": f"again, as {why}: trial {number}"})


def _run(
    workspace: Workspace,
    row: StudyRow,
    settings: StudySettings,
    study: optuna.Study,
    trial: optuna.Trial,
    judge: Judge,
) -> None:
    """Train one trial, telling its value as it goes."""
    from core.engine.trainer import PlainTrainer

    values = {one.name: one.suggest(trial) for one in settings.parameters}
    watch = _Watch(study, trial)
    try:
        here = {"cluster": None}  # the trial is the task
        trainer = PlainTrainer(settings.config(values).model_copy(update=here))
        graph = judge.graph(trainer.config)
        step = -(-trainer.config.epochs // MAX_REPORTS)
        for event in trainer.epochs(judge.training, instance_graph=graph, between=watch.between):
            if isinstance(event, EpochRecord) and event.epoch % step == 0:
                trial.report(judge.after_epoch(trainer), event.epoch)
                if trial.should_prune() and event.epoch < trainer.config.epochs:
                    raise optuna.TrialPruned
        if watch.is_stopped:
            return _put_back(study, trial.number, trial.params, "the study was stopped")
        outcome = judge.at_the_end(trainer)
        if np.isnan(outcome.value):  # Optuna would call it failed, and the budget never be spent
            raise ConfigError("There is nothing to judge by.", "All cells tuned on are alike.")
    except optuna.TrialPruned:
        study.tell(trial, state=TrialState.PRUNED)
    except (ConfigError, TrainingError) as error:  # settings that do not work are a result too
        trial.set_user_attr("note", str(error))
        study.tell(trial, state=TrialState.PRUNED)
    else:
        studies.keep_confidences(workspace, row.id, trial.number, outcome.confidences)
        trial.set_user_attr("reported", outcome.reported)
        trial.set_user_attr("smoothness", outcome.smoothness)
        study.tell(trial, outcome.value)


class _Watch:
    """Between batches: shows life, and hears that the study was stopped."""

    def __init__(self, study: optuna.Study, trial: optuna.Trial) -> None:
        self._study, self._trial_id = study, trial._trial_id
        self._looked, self._beat, self.is_stopped = monotonic(), 0.0, False

    def between(self) -> None:
        now = monotonic()
        if now - self._looked < POLL_SECONDS:
            return
        self._looked = now
        self.is_stopped = bool(self._study.user_attrs.get("stopped"))
        if self.is_stopped:
            raise StopTraining
        if now - self._beat >= studies.HEARTBEAT_SECONDS:
            self._study._storage.record_heartbeat(self._trial_id)  # type: ignore[attr-defined]
            self._beat = now
