"""`plain bench disambiguation`: which candidates are true, told by us and by what else there is.

Everything is judged on candidate cells of the training data (see `core.metrics`), in one run with
times. Cleanlab gets out-of-fold probabilities of five folds, from logistic regressions and from the
paper's network, and gives each candidate its self-confidence. Kernel ridge is out of fold too. Our
presets, the network alone (DNN) and label frequency need no folds of their own.

Decisions are simulated by looking at the truth of cells drawn at random: ten per label, or 200 in
all. `parts` trains the studio preset without each of its parts.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.model_selection import KFold

from core.bench.data import BenchmarkSet
from core.calibration import calibrate, expected_calibration_error
from core.config import PlainConfig
from core.dataset import CandidateDataset
from core.errors import PlainError
from core.lens import make_propagator
from core.metrics import disambiguation_metrics
from core.noise import confusable_candidates, resemblance
from core.worker import load_engine

Matrix = npt.NDArray[Any]
Progress = Callable[[str], None]
Method = Callable[["Case", int], Matrix]

FIGURES = ("auc", "macro_auc", "instance_ap", "ece", "f1", "candidate_f1")

CONFUSABLE = "confusable"
N_FOLDS = 5

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
                trainer = _train(case, PlainConfig.preset("studio", seed=seed))
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
                trainer = _train(case, PlainConfig.preset("studio", seed=seed, **changes))
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
    config, Y = trainer.config, case.candidates.astype(np.float32)
    propagator = make_propagator(config, trainer.instance_graph, trainer.label_graph)
    Z = propagator.propagate(Y, trainer.predictions, rescale=False)
    for name, per_label in (("studio + 10 decisions per label", 10), ("studio + 200", None)):
        results, seconds = [], []
        for repeat in range(5):
            decided = audit(case, per_label, 200, seed + repeat)
            start = perf_counter()
            found = calibrate(Y, Z, trainer.predictions, decided, decided >= 0, eta=config.eta)
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


def _train(case: Case, config: PlainConfig) -> Any:
    from core.trainer import PlainTrainer

    trainer = PlainTrainer(config)
    for _ in trainer.epochs(CandidateDataset(case.one.X, case.candidates)):
        pass
    return trainer


def _preset(name: str, **changes: Any) -> Method:
    def train(case: Case, seed: int) -> Matrix:
        config = PlainConfig.preset(name, seed=seed, **changes)
        return np.asarray(_train(case, config).confidences)

    return train


def _label_frequency(case: Case, _: int) -> Matrix:
    return np.asarray(case.candidates.mean(axis=0) * np.ones(case.candidates.shape))


def _kernel_ridge(case: Case, seed: int) -> Matrix:
    """Gaussian, twice the mean squared distance wide, strength 1; standardised features."""
    from sklearn.kernel_ridge import KernelRidge

    from core.network import Standardizer

    def fit(train: Any, test: Any, Y: Matrix) -> Matrix:
        scaling = Standardizer.fit(train)
        train, test = (np.asarray(scaling.apply(part)) for part in (train, test))
        distance = 2 * float(train.var(axis=0).sum())
        ridge = KernelRidge(kernel="rbf", gamma=1 / max(2 * distance, 1e-12), alpha=1.0)
        level = Y.mean(axis=0)
        return np.asarray(ridge.fit(train, Y - level).predict(test) + level)

    return np.clip(_out_of_fold(case, seed, fit), 0, 1)


def _logistic(train: Any, test: Any, Y: Matrix) -> Matrix:
    """One logistic regression per label: standardised dense or scaled sparse features."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import MaxAbsScaler, StandardScaler

    is_sparse = sp.issparse(train)
    scaler = MaxAbsScaler() if is_sparse else StandardScaler()
    train, test = scaler.fit_transform(train), scaler.transform(test)
    solver = "liblinear" if is_sparse else "lbfgs"
    out = np.empty((test.shape[0], Y.shape[1]))
    for j, y in enumerate(Y.T):
        if y.min() == y.max():
            out[:, j] = y[0]
        else:
            model = LogisticRegression(max_iter=300, solver=solver).fit(train, y)
            out[:, j] = model.predict_proba(test)[:, 1]
    return out


def _network(seed: int) -> Callable[[Any, Any, Matrix], Matrix]:
    def fit(train: Any, test: Any, Y: Matrix) -> Matrix:
        from core.trainer import PlainTrainer

        trainer = PlainTrainer(PlainConfig.preset("paper", disambiguation="none", seed=seed))
        for _ in trainer.epochs(CandidateDataset(train, Y)):
            pass
        return trainer.predict_proba(test)

    return fit


def _self_confidence(case: Case, probabilities: Matrix) -> Matrix:
    """Return cleanlab's quality of every candidate."""
    try:
        from cleanlab.multilabel_classification.rank import get_label_quality_scores_per_class
    except ImportError:
        hint = 'Install it with: pip install "plain-studio[bench]"'
        raise PlainError("cleanlab is not installed.", "It is compared with.", hint) from None
    labels = [np.flatnonzero(row).tolist() for row in case.candidates]
    return np.asarray(get_label_quality_scores_per_class(labels, probabilities))


def _out_of_fold(case: Case, seed: int, fit: Callable[[Any, Any, Matrix], Matrix]) -> Matrix:
    X, Y = case.one.X, case.candidates
    out = np.empty(Y.shape)
    for train, test in KFold(N_FOLDS, shuffle=True, random_state=seed).split(Y):
        out[test] = fit(X[train], X[test], Y[train])
    return out


METHODS: dict[str, Method] = {
    "studio": _preset("studio"),
    "paper": _preset("paper"),
    "DNN": _preset("paper", disambiguation="none"),
    "label frequency": _label_frequency,
    "kernel ridge": _kernel_ridge,
    "cleanlab, logistic": lambda case, seed: _self_confidence(
        case, _out_of_fold(case, seed, _logistic)
    ),
    "cleanlab, network": lambda case, seed: _self_confidence(
        case, _out_of_fold(case, seed, _network(seed))
    ),
}
