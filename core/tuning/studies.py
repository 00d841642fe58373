"""Studies and their trials: kept by Optuna in `studies.db` of the workspace, or in PostgreSQL.

Whoever works on a study holds a lock of its own, `studies/<id>/worker-….lock`, which the system
frees however the process dies: a trial whose worker's lock is free was lost. It is marked failed
and its settings are tried again; finished trials are never touched. Workers on other machines,
which share the study through PostgreSQL, are known by their heartbeat.

    studies/<id>/trial-<number>.f16    a finished trial's confidences of all candidate cells
    studies/<id>/robustness.npz        how many of the good trials keep each cell
    studies/<id>/worker.log
"""

import os
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple
from uuid import uuid4

import filelock
import numpy as np
import numpy.typing as npt
import sqlalchemy as sa

from core.errors import ConfigError
from core.runs import processes as background
from core.store import StudyRow, Workspace, files
from core.store.permissions import create_private
from core.tuning.objectives import read_verdicts, split
from core.tuning.space import StudySettings

if TYPE_CHECKING:
    import optuna

Status = Literal["working", "finished", "stopped", "interrupted"]
TrialState = Literal["waiting", "running", "finished", "pruned", "failed"]

HEARTBEAT_SECONDS = 10
GRACE_SECONDS = 120
GOOD_SHARE, MIN_GOOD = 0.25, 5
"""Good are the best quarter of the finished trials, and at least so many."""

AGREED = 0.9
"""Share of the good trials that must be on one side of a cell for it to be robust."""

SCHEMA = "plain_studies"
"""Where Optuna's tables are in PostgreSQL: one of them has the name of one of ours."""

NOT_OFFERED, ROBUST_TRUE, ROBUST_FALSE, DEPENDS = range(4)

_children: list[subprocess.Popen[bytes]] = []


class Trial(NamedTuple):
    """One trial as plain values; times are seconds since 1970."""

    number: int
    state: TrialState
    values: dict[str, Any]  # of the searched settings
    value: float | None
    reported: float | None
    smoothness: float | None
    curve: tuple[tuple[int, float], ...]  # epoch and value on the tuned part
    started: float | None
    ended: float | None
    note: str

    @property
    def seconds(self) -> float | None:
        return None if self.started is None or self.ended is None else self.ended - self.started


class Study(NamedTuple):
    """One study as it was when read."""

    row: StudyRow
    settings: StudySettings
    status: Status
    trials: list[Trial]

    @property
    def finished(self) -> list[Trial]:
        return [trial for trial in self.trials if trial.state == "finished"]

    @property
    def n_done(self) -> int:
        return sum(trial.state in ("finished", "pruned") for trial in self.trials)

    @property
    def best(self) -> Trial | None:
        """The finished trial with the highest value, the earliest of equals."""
        return max(self.finished, key=lambda one: (one.value, -one.number), default=None)

    @property
    def good(self) -> list[Trial]:
        """The best finished trials, the best first."""
        ordered = sorted(self.finished, key=lambda one: (-float(one.value or 0), one.number))
        return ordered[: max(MIN_GOOD, round(GOOD_SHARE * len(ordered)))]


def create_study(
    workspace: Workspace, fingerprint: str, settings: StudySettings, name: str = ""
) -> StudyRow:
    """Store a study, its first trials waiting; nothing works on it yet.

    Raises
    ------
    ConfigError
        The data has not what trials shall be judged by.
    """
    _require_shared_database(workspace, settings)
    dataset = workspace.load_dataset(fingerprint)
    split(settings, dataset, read_verdicts(workspace, dataset))
    row = workspace.studies.create(fingerprint, settings.model_dump(mode="json"), name)
    study = open_optuna(workspace, row)
    for point in settings.first_points:
        study.enqueue_trial(point)
    return row


def read_study(workspace: Workspace, study_id: str) -> Study:
    """Return a study with all its trials."""
    row = workspace.studies.get(study_id)
    settings = StudySettings(**row.settings)
    opened = open_optuna(workspace, row)
    trials = [_trial(one) for one in opened.get_trials(deepcopy=False)]
    return Study(row, settings, _status(workspace, row, settings, opened, trials), trials)


def launch(workspace: Workspace, study_id: str, n_workers: int | None = None) -> None:
    """Start child processes that work on a study until its budget is spent; resumes it too."""
    row = workspace.studies.get(study_id)
    open_optuna(workspace, row).set_user_attr("stopped", False)
    settings = StudySettings(**row.settings)
    wanted = settings.n_workers if n_workers is None else n_workers
    wanted = wanted if settings.base.cluster is None else 1  # waits for those on the cluster
    for _ in range(wanted - n_workers_here(workspace, row.id)):
        _spawn(workspace, row.id, threads=max(1, (os.cpu_count() or 1) // wanted))


def stop(workspace: Workspace, study_id: str) -> None:
    """Have all workers of a study end; trials at work are put back, finished ones stay."""
    open_optuna(workspace, workspace.studies.get(study_id)).set_user_attr("stopped", True)


def importances(workspace: Workspace, study_id: str) -> dict[str, float]:
    """Return how much each setting matters for being among the best, shares that sum to 1."""
    from optuna.importance import PedAnovaImportanceEvaluator, get_param_importances

    study = open_optuna(workspace, workspace.studies.get(study_id))
    try:
        found = get_param_importances(study, evaluator=PedAnovaImportanceEvaluator())
    except (ValueError, RuntimeError):  # too few trials, or all alike
        return {}
    return {name: float(share) for name, share in found.items() if np.isfinite(share)}


def trial_confidences(
    workspace: Workspace, study_id: str, number: int
) -> npt.NDArray[np.float16] | None:
    """Return a finished trial's confidences of all candidate cells, in row-major order."""
    path = workspace.studies.folder(study_id) / f"trial-{number}.f16"
    return np.fromfile(path, np.float16) if path.exists() else None


def keep_confidences(
    workspace: Workspace, study_id: str, number: int, cells: npt.NDArray[np.float16]
) -> None:
    """Store a trial's confidences of all candidate cells."""
    path = workspace.studies.folder(study_id) / f"trial-{number}.f16"
    with files.replacing(path) as file:
        file.write(cells.data)


def kept_shares(workspace: Workspace, study_id: str) -> npt.NDArray[np.float32]:
    """Return for each candidate cell the share of good trials that keep it (at 0.5 or more).

    Empty when no trial has finished. Stored with the study; made anew when its good trials change.
    """
    study = read_study(workspace, study_id)
    numbers = np.array(sorted(trial.number for trial in study.good))
    path = workspace.studies.folder(study.row.id) / "robustness.npz"
    if path.exists():
        stored = files.read_arrays(path)
        if np.array_equal(stored["trials"], numbers):
            return np.asarray(stored["kept"] / stored["n"], np.float32)
    read = [trial_confidences(workspace, study.row.id, int(number)) for number in numbers]
    found = [cells >= 0.5 for cells in read if cells is not None]  # others are on another machine
    if not found:
        return np.empty(0, np.float32)
    kept = np.sum(found, axis=0).astype(np.uint16)
    files.write_arrays(path, trials=numbers, kept=kept, n=np.array(len(found)))
    return np.asarray(kept / len(found), np.float32)


def robustness(workspace: Workspace, study_id: str) -> npt.NDArray[np.int8]:
    """Return for every cell, n x L, whether the good trials of a study agree on it.

    `ROBUST_TRUE` and `ROBUST_FALSE` where at least the share `AGREED` of them is on that side,
    `DEPENDS` (on a setting) between, `NOT_OFFERED` where there is no candidate; all `NOT_OFFERED`
    before any trial has finished.
    """
    row = workspace.studies.get(study_id)
    candidates = workspace.load_dataset(row.fingerprint).candidates
    shares = kept_shares(workspace, row.id)
    codes = np.full(candidates.shape, NOT_OFFERED, np.int8)
    if len(shares):
        sides = np.select(
            [shares >= AGREED, shares <= 1 - AGREED], [ROBUST_TRUE, ROBUST_FALSE], DEPENDS
        )
        codes[np.nonzero(candidates)] = sides
    return codes


def dependence(workspace: Workspace, fingerprint: str) -> npt.NDArray[np.float32] | None:
    """Return how divided the good trials are on each cell, n x L: 0 where all agree, 0.5 at most.

    Of the newest study on this data that has ended with a result; none without one.
    """
    path = dependence_file(workspace, fingerprint)
    if path is None:
        return None
    candidates = workspace.load_dataset(fingerprint).candidates
    stored, divided = files.read_arrays(path), np.zeros(candidates.shape, np.float32)
    share = stored["kept"] / stored["n"]
    divided[np.nonzero(candidates)] = np.minimum(share, 1 - share)
    return divided


def dependence_file(workspace: Workspace, fingerprint: str) -> Path | None:
    """Return where `dependence` is kept; another file, or a newer one, holds another."""
    for row in workspace.studies.list(fingerprint):
        path = workspace.studies.folder(row.id) / "robustness.npz"
        if path.exists():
            return path
    return None


def open_optuna(workspace: Workspace, row: StudyRow) -> "optuna.Study":
    """Return the Optuna study with our sampler and pruner; made when it is not there."""
    import optuna

    settings = StudySettings(**row.settings)
    pruner: optuna.pruners.BasePruner = optuna.pruners.NopPruner()
    if settings.prune:  # a third of a training tells enough
        pruner = optuna.pruners.MedianPruner(5, n_warmup_steps=settings.base.epochs // 3)
    return optuna.create_study(
        storage=_storage(str(workspace.folder), workspace.database.url),
        study_name=row.id,
        sampler=optuna.samplers.TPESampler(
            multivariate=True, n_startup_trials=8, seed=_seed(settings)
        ),
        pruner=pruner,
        direction="maximize",
        load_if_exists=True,
    )


def host() -> str:
    """Name this machine."""
    return socket.gethostname()


@contextmanager
def worker_place(folder: Path) -> Iterator[str]:
    """Hold a lock that no worker had before; give its name."""
    path = folder / f"worker-{uuid4().hex[:12]}.lock"
    try:
        with filelock.FileLock(path, mode=0o600):
            yield path.stem
    finally:
        path.unlink(missing_ok=True)


def n_workers_here(workspace: Workspace, study_id: str) -> int:
    """Return how many processes of this machine work on a study, those still starting too."""
    _children[:] = [child for child in _children if child.poll() is None]
    folder = workspace.studies.folder(study_id)
    locked = sum(background.is_locked(path) for path in folder.glob("worker-*.lock"))
    starting = sum(study_id in child.args for child in _children)  # type: ignore[operator]
    return max(locked, starting)


def spent_seconds(trials: list[Trial]) -> float:
    """Return how long at least one trial was at work."""
    total, until = 0.0, 0.0
    for start, end in sorted((t.started, t.ended) for t in trials if t.started and t.ended):
        total += max(0.0, end - max(start, until))
        until = max(until, end)
    return total


def has_budget(settings: StudySettings, trials: list[Trial]) -> bool:
    """Whether another trial may begin."""
    begun = sum(trial.state in ("finished", "pruned", "running") for trial in trials)
    enough = settings.n_trials is not None and begun >= settings.n_trials
    late = settings.timeout is not None and spent_seconds(trials) >= settings.timeout
    return not (enough or late)


def _require_shared_database(workspace: Workspace, settings: StudySettings) -> None:
    """Refuse trials on other machines whose results would go through a file of SQLite."""
    is_file = workspace.database.url.get_backend_name() == "sqlite"
    if is_file and (settings.base.cluster or "").startswith("tls://"):
        hint = "Set PLAIN_DATABASE_URL, also for the workers; or search on this machine's cluster."
        raise ConfigError("Trials on other machines need PostgreSQL.", "", hint)


def _status(
    workspace: Workspace,
    row: StudyRow,
    settings: StudySettings,
    opened: "optuna.Study",
    trials: list[Trial],
) -> Status:
    if n_workers_here(workspace, row.id) or _works_elsewhere(opened):
        return "working"
    done = [trial for trial in trials if trial.state != "running"]
    if not has_budget(settings, done):
        return "finished"
    return "stopped" if opened.user_attrs.get("stopped") else "interrupted"


def _works_elsewhere(opened: "optuna.Study") -> bool:
    from optuna.trial import TrialState as State

    running = opened.get_trials(deepcopy=False, states=(State.RUNNING,))
    there = {one._trial_id for one in running if one.user_attrs.get("host", host()) != host()}
    return bool(there and there - set(opened._storage._get_stale_trial_ids(opened._study_id)))  # type: ignore[attr-defined]


def _trial(one: Any) -> Trial:
    attributes = one.user_attrs
    states = {"COMPLETE": "finished", "FAIL": "failed"}
    ended = one.datetime_complete
    return Trial(
        number=one.number,
        state=states.get(one.state.name, one.state.name.lower()),
        values=dict(one.params) or dict(one.system_attrs.get("fixed_params", {})),
        value=one.value if one.state.name == "COMPLETE" else None,
        reported=attributes.get("reported"),
        smoothness=attributes.get("smoothness"),
        curve=tuple(sorted(one.intermediate_values.items())),
        started=None if one.datetime_start is None else one.datetime_start.timestamp(),
        ended=None if ended is None else ended.timestamp(),
        note=str(attributes.get("note", "")),
    )


def _seed(settings: StudySettings) -> int | None:
    """Return the sampler's seed: several workers must not draw the same."""
    return settings.seed if settings.n_workers == 1 else None


@lru_cache(maxsize=8)
def _storage(folder: str, url: sa.URL) -> "optuna.storages.BaseStorage":
    """Return the store of all studies; it remembers finished trials, which never change."""
    import warnings

    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    warnings.filterwarnings("ignore", category=optuna.exceptions.ExperimentalWarning)
    warnings.filterwarnings("ignore", message="Heartbeat of storage is supposed")  # we beat
    engine: dict[str, Any] = {}
    if url.get_backend_name() == "sqlite":
        path = Path(folder) / "studies.db"
        create_private(path)
        engine["connect_args"] = {"timeout": 60}
        with sa.create_engine(f"sqlite:///{path}", **engine).begin() as connection:
            connection.exec_driver_sql("PRAGMA journal_mode=WAL")
        address = f"sqlite:///{path}"
    else:
        with sa.create_engine(url).begin() as connection:
            connection.execute(sa.schema.CreateSchema(SCHEMA, if_not_exists=True))
        url = url.update_query_dict({"options": f"-csearch_path={SCHEMA}"})
        engine["pool_pre_ping"] = True
        address = url.render_as_string(hide_password=False)
    store = optuna.storages.RDBStorage(
        address.replace("{", "{{").replace("}", "}}"),
        engine_kwargs=engine,
        heartbeat_interval=HEARTBEAT_SECONDS,
        grace_period=GRACE_SECONDS,
    )
    return optuna.storages.get_storage(store)


def _spawn(workspace: Workspace, study_id: str, threads: int) -> None:
    log = workspace.studies.folder(study_id) / "worker.log"
    command = ("tune-work", study_id, "--workspace", str(workspace.folder))
    _children.append(background.start(*command, log=log, threads=threads))
