"""`plain bench quality`: cross-validated test metrics of PLAIN and its ablations, beside the paper.

Protocol: k folds (shuffled, seeded), every fold with its own training seed; candidates are the
set's own, or truth plus r false labels per row drawn once; features are standardised with the
training rows' statistics; hyper-parameters are the preset's, the same for every set. Scores are
those of the *last* epoch. "best test epoch" picks the epoch by its test average precision, as the
authors' release does: optimistic, for comparison with published numbers only.
"""

import json
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.model_selection import KFold

from core.bench.data import BenchmarkSet, load_sets
from core.cluster.executors import Executor, Item
from core.engine.config import ABLATIONS, PlainConfig
from core.engine.metrics import ranking_metrics

METRICS = ("ranking_loss", "average_precision", "hamming_loss")


def _row(ranking_loss: str, average_precision: str, hamming_loss: str) -> dict[str, str]:
    return dict(zip(METRICS, (ranking_loss, average_precision, hamming_loss), strict=True))


PAPER: dict[str, dict[str, str]] = {
    # Table 3 (r = 3) and Table 1 (mirflickr: all 10,433 rows, ours has 5,000).
    "emotions": _row("0.158±0.024", "0.812±0.043", "0.223±0.033"),
    "birds": _row("0.205±0.036", "0.606±0.037", "0.088±0.010"),
    "medical": _row("0.050±0.011", "0.781±0.039", "0.019±0.001"),
    "image": _row("0.190±0.015", "0.774±0.020", "0.207±0.009"),
    "corel5k": _row("0.120±0.004", "0.319±0.010", "0.009±0.000"),
    "bibtex": _row("0.079±0.005", "0.550±0.014", "0.013±0.000"),
    "mirflickr-5000": _row("0.088±0.006", "0.847±0.012", "0.162±0.003"),
}


def run(
    sets: list[BenchmarkSet],
    noise: list[int],
    folds: int,
    preset: str,
    seed: int,
    progress: Callable[[str], None],
    on: tuple[Executor, Path] | None = None,
) -> Iterator[dict[str, Any]]:
    """Score every set, noise level and ablation; a set with its own candidates has just those.

    `on` is an executor whose tasks are folds, and the sets' folder, which its workers see.
    """
    for one in sets:
        for r in [None] if one.candidates is not None else noise:
            for name, changes in ABLATIONS.items():
                config = PlainConfig.preset(preset, seed=seed, **changes)
                result: dict[str, Any] = {"set": one.name, "r": r, "variant": name, "folds": folds}
                result |= cross_validate(one, r, folds, config, progress, on)
                result["paper"] = (
                    PAPER.get(one.name) if name == "PLAIN" and r in (None, 3) else None
                )
                yield result


def cross_validate(
    one: BenchmarkSet,
    r: int | None,
    folds: int,
    config: PlainConfig,
    progress: Callable[[str], None] = lambda _: None,
    on: tuple[Executor, Path] | None = None,
) -> dict[str, Any]:
    """Return mean and standard deviation over folds at the last and at the best test epoch."""
    numbers = range(1, folds + 1)
    found: Iterator[list[dict[str, float]]]
    if on is None:
        found = (_fold_scores(one, r, fold, folds, config) for fold in numbers)
    else:
        executor, data = on
        given: Item = {"data": str(data.absolute()), "set": one.name, "r": r, "folds": folds}
        given["config"] = config.model_dump_json()
        found = executor.map(_score_fold, [{**given, "fold": fold} for fold in numbers], "folds")
    last, best = [], []
    for fold, scores in enumerate(found, start=1):
        last.append(scores[-1])
        best.append(max(scores, key=lambda score: score["average_precision"]))
        progress(f"{one.name} r={r or 'own'} fold {fold}/{folds}")
    return {"last": _summary(last), "best_test_epoch": _summary(best)}


def _score_fold(item: Item) -> list[dict[str, float]]:
    """Task: train and score one fold."""
    config = PlainConfig(**json.loads(item["config"]))
    one = _loaded(item["data"], item["set"])
    return _fold_scores(one, item["r"], item["fold"], item["folds"], config)


@lru_cache(maxsize=2)
def _loaded(data: str, name: str) -> BenchmarkSet:
    return load_sets(Path(data), [name])[0]


def _fold_scores(
    one: BenchmarkSet, r: int | None, fold: int, folds: int, config: PlainConfig
) -> list[dict[str, float]]:
    """Return the scores of every epoch of one fold, which has its own training seed."""
    Y = one.noisy(r, config.seed)
    splits = KFold(folds, shuffle=True, random_state=config.seed).split(Y)
    train, test = list(splits)[fold - 1]
    own_seed = config.model_copy(update={"seed": config.seed + fold})
    return list(_epoch_scores(one, Y, train, test, own_seed))


def _epoch_scores(
    one: BenchmarkSet, Y: Any, train: Any, test: Any, config: PlainConfig
) -> Iterator[dict[str, float]]:
    from core.data.dataset import CandidateDataset
    from core.engine.trainer import PlainTrainer

    trainer, truth = PlainTrainer(config), one.truth[test]
    for event in trainer.epochs(CandidateDataset(one.X[train], Y[train])):
        if event.kind == "epoch":
            predictions = trainer.predict_proba(one.X[test])
            scores = ranking_metrics(truth, predictions, config.threshold)
            ranked = ranking_metrics(truth, predictions, config.threshold, rows="ranked")
            yield scores | {"average_precision_ranked": ranked["average_precision"]}


def _summary(scores: list[dict[str, float]]) -> dict[str, list[float]]:
    names = (*METRICS, "average_precision_ranked")
    values = {name: [score[name] for score in scores] for name in names}
    return {name: [float(np.mean(v)), float(np.std(v, ddof=1))] for name, v in values.items()}
