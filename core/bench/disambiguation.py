"""`plain bench disambiguation`: which candidates are true, told by us and by what else there is.

Everything is judged on candidate cells of the training data (see `core.engine.metrics`), in one run
with times. Cleanlab gets out-of-fold probabilities of five folds, from logistic regressions and
from the paper's network, and gives each candidate its self-confidence. Kernel ridge is out of fold
too. Our presets, the network alone (DNN) and label frequency need no folds of their own.

Decisions are simulated by looking at the truth of cells drawn at random: ten per label, or 200 in
all. `parts` trains the studio preset without each of its parts.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
import numpy.typing as npt

from core.bench.data import BenchmarkSet
from core.confidence.calibration import calibrate, expected_calibration_error
from core.data.dataset import CandidateDataset
from core.data.noise import confusable_candidates, resemblance
from core.engine.config import PlainConfig
from core.engine.metrics import disambiguation_metrics
from core.engine.propagation import Propagator
from core.methods import make_method
from core.runs.worker import load_engine

Matrix = npt.NDArray[Any]
Progress = Callable[[str], None]
Method = Callable[["Case", int], Matrix]

FIGURES = ("auc", "macro_auc", "instance_ap", "ece", "f1", "candidate_f1")

CONFUSABLE = "confusable"

PARTS: dict[str, dict[str, Any]] = {
    "studio": {},
    "two members": {"members": 2},
    "no kernel regression": {"landmarks": 0},
    "candidates as the only targets": {"rounds": 0},
    "no instance graph": {"alpha": 0.0},
    "no label graph": {"beta": 0.0},
    "standardised sparse features": {"unit_rows": False},
    "one network, not cross-fitted": {"members": 1, "epochs": 30, "batch_size": 32},
}


@dataclass(frozen=True)
class Case:
    """Candidates of one set and how they came about."""

    one: BenchmarkSet
    noise: str
    candidates: npt.NDArray[np.uint8]

    @classmethod
    def all_of(cls, one: BenchmarkSet, noise: list[str], seed: int) -> Iterator["Case"]:
        """Yield the set's own candidates where it has some, else one case per noise."""
        if one.candidates is not None:
            yield cls(one, "own", one.candidates)
            return
        for name in noise:
            if name == CONFUSABLE:
                like = resemblance(one.X, one.truth)
                yield cls(one, name, confusable_candidates(one.truth, like, seed))
            else:
                yield cls(one, f"r={name}", one.noisy(int(name), seed))


def run(
    sets: list[BenchmarkSet], noise: list[str], methods: list[str], seed: int, progress: Progress
) -> Iterator[dict[str, Any]]:
    """Score every method on every case; studio also with decisions.

    The engine is loaded before: seconds are of the work, also those of the first.
    """
    load_engine()
    for one in sets:
        for case in Case.all_of(one, noise, seed):
            for name in methods:
                progress(f"{one.name} {case.noise}: {name}")
                start = perf_counter()
                if name != "studio":
                    confidences = METHODS[name](case, seed)
                    yield _result(case, name, confidences, perf_counter() - start)
                    continue
                trainer = train_case(case, PlainConfig.preset("studio", seed=seed))
                yield _result(case, name, trainer.confidences, perf_counter() - start)
                yield from _with_decisions(case, trainer, seed)


def parts(
    sets: list[BenchmarkSet], noise: list[str], seed: int, progress: Progress
) -> Iterator[dict[str, Any]]:
    """Score the studio preset without each of its parts."""
    for one in sets:
        for case in Case.all_of(one, noise, seed):
            for name, changes in PARTS.items():
                progress(f"{one.name} {case.noise}: {name}")
                start = perf_counter()
                trainer = train_case(case, PlainConfig.preset("studio", seed=seed, **changes))
                yield _result(case, name, trainer.confidences, perf_counter() - start)


def audit(case: Case, per_label: int | None, total: int, seed: int) -> Matrix:
    """Return the truth of random candidate cells, NaN elsewhere: so many per label, or in all."""
    rng = np.random.default_rng(seed)
    decided = np.full(case.candidates.shape, np.nan)
    cells = np.argwhere(case.candidates > 0)
    cells = cells[rng.permutation(len(cells))]
    if per_label is None:
        chosen = cells[:total]
    else:
        chosen = np.concatenate(
            [cells[cells[:, 1] == j][:per_label] for j in range(case.candidates.shape[1])]
        )
    rows, labels = chosen[:, 0], chosen[:, 1]
    decided[rows, labels] = case.one.truth[rows, labels]
    return decided


def _with_decisions(case: Case, trainer: Any, seed: int) -> Iterator[dict[str, Any]]:
    """Score a training with decisions, the mean of five audits; seconds are of one calibration."""
    config, level, Y = trainer.config, trainer.level, case.candidates.astype(np.float32)
    propagator = Propagator(trainer.instance_graph, trainer.label_graph, **config.propagation)
    Z = propagator.propagate(Y, trainer.predictions, rescale=False)
    for name, per_label in (("studio + 10 decisions per label", 10), ("studio + 200", None)):
        results, seconds = [], []
        for repeat in range(5):
            decided = audit(case, per_label, 200, seed + repeat)
            start = perf_counter()
            known = decided, decided >= 0
            found = calibrate(Y, Z, trainer.predictions, *known, eta=config.eta, level=level)
            seconds.append(perf_counter() - start)
            results.append(_result(case, name, found.confidences, 0.0))
        mean = {key: float(np.mean([one[key] for one in results])) for key in FIGURES}
        yield results[0] | mean | {"seconds": float(np.median(seconds))}


def _result(case: Case, method: str, confidences: Matrix, seconds: float) -> dict[str, Any]:
    truth, candidates = case.one.truth, case.candidates
    return {
        "set": case.one.name,
        "noise": case.noise,
        "method": method,
        **disambiguation_metrics(truth, candidates, confidences),
        "ece": expected_calibration_error(confidences, truth, candidates),
        "seconds": seconds,
    }


def train_case(case: Case, config: PlainConfig) -> Any:
    from core.engine.trainer import PlainTrainer

    trainer = PlainTrainer(config)
    for _ in trainer.epochs(CandidateDataset(case.one.X, case.candidates)):
        pass
    return trainer


def _preset(name: str, **changes: Any) -> Method:
    def train(case: Case, seed: int) -> Matrix:
        config = PlainConfig.preset(name, seed=seed, **changes)
        return np.asarray(train_case(case, config).confidences)

    return train


def _estimator(name: str) -> Method:
    """Return a method of `core.methods` as a benchmark's; it has a seed if it needs one."""

    def fit(case: Case, seed: int) -> Matrix:
        model = make_method(name)
        if "seed" in model.get_params():
            model.set_params(seed=seed)
        return np.asarray(model.fit(case.one.X, case.candidates).confidences_)

    return fit


METHODS: dict[str, Method] = {
    "studio": _preset("studio"),
    "paper": _preset("paper"),
    "DNN": _preset("paper", disambiguation="none"),
    "label frequency": _estimator("label-frequency"),
    "kernel ridge": _estimator("kernel-ridge"),
    "cleanlab, logistic": _estimator("cleanlab"),
    "cleanlab, network": _estimator("cleanlab-network"),
}
