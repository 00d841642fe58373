"""`plain bench tuning` and `plain bench sensitivity`: does searching help, and what matters?

Tuning: a study on the demo data per seed, judged by one half of the truth; the best trial and the
preset are then compared on the other half. Sensitivity: one setting at a time, all else as in the
preset; k folds with the same rows, noise and seeds for every value. Training is long enough for the
network to learn false candidates by heart, which is what propagation is there to prevent. Scored
are the last epoch's test average precision (the paper's Figure 2) and the AUC of the confidences of
the training rows' candidates.
"""

import tempfile
from collections.abc import Callable, Iterator
from time import perf_counter, sleep
from typing import Any

import numpy as np
from sklearn.model_selection import KFold

from core import tuning
from core.bench.data import BenchmarkSet
from core.data.demo import load_demo
from core.engine.config import PlainConfig
from core.engine.metrics import ranking_metrics, roc_auc
from core.errors import PlainError
from core.store import Workspace
from core.tuning import SENSITIVITY, StudySettings, sensitivity
from core.tuning.space import ObjectiveName


def search(
    seeds: list[int],
    n_trials: int,
    preset: str,
    n_workers: int,
    progress: Callable[[str], None],
    objective: ObjectiveName = "truth",
) -> Iterator[dict[str, Any]]:
    """Tune on the demo data once per seed of the held-out half."""
    dataset = load_demo()
    for seed in seeds:
        with tempfile.TemporaryDirectory() as folder:
            space = Workspace(folder)
            settings = StudySettings(
                base=PlainConfig.preset(preset),
                objective=objective,
                n_trials=n_trials,
                n_workers=n_workers,
                seed=seed,
            )
            row = tuning.create_study(space, space.add_dataset(dataset, "demo"), settings)
            start = perf_counter()
            tuning.launch(space, row.id)
            study = tuning.read_study(space, row.id)
            while study.status == "working":
                progress(f"seed {seed}: {study.n_done} of {n_trials} trials")
                sleep(0.5)
                study = tuning.read_study(space, row.id)
            seconds = perf_counter() - start
            yield {"seed": seed, "seconds": seconds, **_outcome(space, study, dataset)}
            space.close()


def _outcome(space: Workspace, study: tuning.Study, dataset: Any) -> dict[str, Any]:
    best, first = study.best, study.trials[0]
    if best is None or first.reported is None or study.status != "finished":
        raise PlainError("The search did not finish.", f"It is {study.status}.")
    truth = dataset.truth[dataset.candidates > 0]
    read = {
        one.number: tuning.trial_confidences(space, study.row.id, one.number)
        for one in study.finished
    }
    aucs = {number: roc_auc(truth, cells) for number, cells in read.items() if cells is not None}
    values = [float(one.value or 0) for one in study.finished]
    known = [aucs[one.number] for one in study.finished]
    return {
        "finished": len(study.finished),
        "pruned": study.n_done - len(study.finished),
        "preset_held_out": first.reported,
        "best_held_out": best.reported,
        "settings": best.values,
        "preset_auc": aucs[first.number],
        "best_auc": aucs[best.number],
        "rank_correlation": _spearman(values, known),
    }


def _spearman(a: list[float], b: list[float]) -> float:
    """Return how well the order by value agrees with the order by true AUC of all cells."""
    from scipy.stats import spearmanr

    return float(spearmanr(a, b).statistic) if len(a) > 2 else float("nan")


def sensitivities(
    sets: list[BenchmarkSet], r: int, folds: int, base: PlainConfig, progress: Callable[[str], None]
) -> Iterator[dict[str, Any]]:
    """Score every value of every sensitivity study on every set."""
    seed = base.seed
    for one in sets:
        noise = None if one.candidates is not None else r
        Y = one.noisy(noise, seed)
        for name in SENSITIVITY:
            for point in sensitivity(name, base).points:
                config = PlainConfig(**{**base.model_dump(), **point})
                progress(f"{one.name} {name} {point[name]}")
                scores = [
                    _score(one, Y, train, test, config.model_copy(update={"seed": seed + fold}))
                    for fold, (train, test) in enumerate(_folds(folds, seed, Y), start=1)
                ]
                mean = np.mean(scores, axis=0)
                yield {
                    "set": one.name,
                    "r": noise,
                    "setting": name,
                    "value": point[name],
                    "average_precision": float(mean[0]),
                    "auc": float(mean[1]),
                }


def convergence(
    sets: list[BenchmarkSet], r: int, base: PlainConfig
) -> dict[str, dict[str, list[float]]]:
    """Return, by set, the objective L(theta, Z) and the network's loss after every epoch."""
    from core.data.dataset import CandidateDataset
    from core.engine.trainer import PlainTrainer

    found = {}
    for one in sets:
        Y = one.noisy(None if one.candidates is not None else r, base.seed)
        events = PlainTrainer(base).epochs(CandidateDataset(one.X, Y))
        epochs = [event for event in events if event.kind == "epoch"]
        found[one.name] = {
            "objective": [event.objective.total for event in epochs],
            "loss of the network": [event.loss for event in epochs],
        }
    return found


def _folds(folds: int, seed: int, Y: Any) -> Any:
    return KFold(folds, shuffle=True, random_state=seed).split(Y)


def _score(
    one: BenchmarkSet, Y: Any, train: Any, test: Any, config: PlainConfig
) -> tuple[float, float]:
    from core.data.dataset import CandidateDataset
    from core.engine.trainer import PlainTrainer

    trainer = PlainTrainer(config)
    for _ in trainer.epochs(CandidateDataset(one.X[train], Y[train])):
        pass
    predictions = trainer.predict_proba(one.X[test])
    precision = ranking_metrics(one.truth[test], predictions)["average_precision"]
    offered = Y[train] > 0
    return precision, roc_auc(one.truth[train][offered], trainer.confidences[offered])
