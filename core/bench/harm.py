"""`plain bench harm`: does resolving without decisions make labels better or worse?

For every share of false candidates: F1 of the labels as given, and the change when they are
resolved at even odds, by us, by a plain network and by cleanlab's filter; both get predictions out
of fold. Uniform noise falls anywhere, confusable noise where an instance resembles a label. Our
interval of the share of false candidates is judged by whether it holds the true share. The same
training is also resolved with thirty right answers on random cells, the mean of several draws.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from core.bench.data import BenchmarkSet
from core.bench.disambiguation import Case, audit, train_case
from core.confidence.calibration import calibrate, expected_calibration_error
from core.data.noise import false_share_candidates, resemblance
from core.engine.config import PlainConfig
from core.engine.metrics import f1
from core.engine.propagation import Propagator
from core.errors import PlainError
from core.methods.cleanlab_scores import fit_logistic, fit_network
from core.methods.out_of_fold import Fit, out_of_fold
from core.runs.worker import load_engine

Cells = npt.NDArray[np.bool_]

ANSWERS, DRAWS = 30, 10

METHODS = ("studio", "network", "cleanlab")


def run(
    sets: list[BenchmarkSet],
    kinds: list[str],
    shares: list[float],
    methods: list[str],
    seed: int,
    progress: Callable[[str], None],
) -> Iterator[dict[str, Any]]:
    """Score every method on every set, kind of noise and share; own candidates as they are."""
    load_engine()
    for one in sets:
        for case in _cases(one, kinds, shares, seed):
            truth, given = one.truth > 0, case.candidates > 0
            result: dict[str, Any] = {
                "set": one.name,
                "noise": case.noise,
                "false_share": float(1 - truth[given].mean()),
                "given": f1(truth, given),
            }
            for name in methods:
                progress(f"{one.name} {case.noise}: {name}")
                kept, known = _resolved(case, name, seed)
                result |= {name: f1(truth, kept) - result["given"], **known}
            yield result


def _cases(one: BenchmarkSet, kinds: list[str], shares: list[float], seed: int) -> Iterator[Case]:
    if one.candidates is not None:
        yield Case(one, "own", one.candidates)
        return
    for kind in kinds:
        like = resemblance(one.X, one.truth) if kind == "confusable" else None
        for share in shares:
            made = false_share_candidates(one.truth, share, seed, like)
            yield Case(one, f"{kind} {share:.0%}", made)


def _resolved(case: Case, method: str, seed: int) -> tuple[Cells, dict[str, Any]]:
    """Return which candidates a method keeps, and what it says of the share of false ones."""
    given = case.candidates > 0
    if method == "studio":
        trainer = train_case(case, PlainConfig.preset("studio", seed=seed))
        level = trainer.level
        known = {"low": level.share_low, "high": level.share_high, **_with_answers(case, trainer)}
        return trainer.confidences >= 0.5, known
    if method == "network":
        return given & (_out_of_fold(case, seed, fit_network(seed)) >= 0.5), {}
    try:
        from cleanlab.multilabel_classification.filter import find_multilabel_issues_per_class
    except ImportError:
        hint = 'Install it with: pip install "plain-studio[bench]"'
        raise PlainError("cleanlab is not installed.", "It is compared with.", hint) from None
    labels = [np.flatnonzero(row).tolist() for row in given]
    probabilities = _out_of_fold(case, seed, fit_logistic)
    return given & ~np.asarray(find_multilabel_issues_per_class(labels, probabilities)), {}


def _out_of_fold(case: Case, seed: int, fit: Fit) -> npt.NDArray[Any]:
    return out_of_fold(case.one.X, case.candidates, 5, seed, fit)


def _with_answers(case: Case, trainer: Any) -> dict[str, float]:
    """Return the change of F1 and the calibration error after right answers on random cells."""
    config, Y, truth = trainer.config, case.candidates.astype(np.float32), case.one.truth
    propagator = Propagator(trainer.instance_graph, trainer.label_graph, **config.propagation)
    Z = propagator.propagate(Y, trainer.predictions, rescale=False)
    scores, errors = [], []
    for draw in range(DRAWS):
        decided = audit(case, None, ANSWERS, draw)
        found = calibrate(
            Y, Z, trainer.predictions, decided, decided >= 0, eta=config.eta, level=trainer.level
        ).confidences
        scores.append(f1(truth, found >= 0.5))
        errors.append(expected_calibration_error(found, truth, Y))
    change = float(np.mean(scores)) - f1(truth > 0, Y > 0)
    return {"answered": change, "ece_answered": float(np.mean(errors))}
