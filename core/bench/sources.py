"""`plain bench sources`: which candidates are true where several sources voted.

Simulated crowds (`core.bench.crowds`) on sets with known truth: 3 to 8 sources, each instance seen
by two or three, one or two careless, none to two who say yes to nearly everything. Judged on
candidate cells. Beside us: the share of yes votes, the aggregators of crowd-kit, each label a
binary task of its own, and our engine without the votes. Intervals are of 90 %; they are counted
as right when they hold a source's rate over the cells it judged.
"""

from collections.abc import Callable, Iterator
from time import perf_counter
from typing import Any

import numpy as np
import numpy.typing as npt

from core.bench.crowds import Crowd, simulate
from core.bench.data import BenchmarkSet
from core.confidence.calibration import expected_calibration_error
from core.confidence.reliability import Reliability
from core.data.dataset import CandidateDataset
from core.engine.config import PlainConfig
from core.engine.metrics import disambiguation_metrics
from core.errors import PlainError
from core.runs.worker import load_engine

Matrix = npt.NDArray[Any]
Progress = Callable[[str], None]

CROWDS: tuple[tuple[str, ...], ...] = (
    ("good", "good", "careless"),
    ("good", "good", "good", "careless", "always yes"),
    ("good",) * 4 + ("careless",) * 2 + ("always yes",) * 2,
)

AGGREGATORS = ("MajorityVote", "DawidSkene", "OneCoinDawidSkene", "MACE", "GLAD")
"""Of crowd-kit."""

OURS, WITHOUT, VOTES_ALONE = "studio with votes", "studio without votes", "votes alone, ours"


def run(
    sets: list[BenchmarkSet], seeds: int, aggregators: list[str], progress: Progress
) -> Iterator[dict[str, Any]]:
    """Score every method on every crowd of every set."""
    load_engine()
    for one in sets:
        for seed in range(seeds):
            for kinds in CROWDS:
                crowd = simulate(one.truth, kinds, seed)
                for name in (*aggregators, VOTES_ALONE, WITHOUT, OURS):
                    progress(f"{one.name}, {len(kinds)} sources: {name}")
                    yield _measured(one, crowd, seed, name)


def _measured(one: BenchmarkSet, crowd: Crowd, seed: int, name: str) -> dict[str, Any]:
    start = perf_counter()
    found: dict[str, Any] = {}
    if name in AGGREGATORS:
        confidences = aggregate(crowd, name)
    elif name == VOTES_ALONE:
        from core.confidence.sources import SourceModel

        model = SourceModel.fit(crowd.votes)
        confidences = model.confidences(crowd.votes.candidates, None, None)
    else:
        trainer = _train(one, crowd, seed, with_votes=name == OURS)
        confidences = trainer.confidences
        if trainer.sources is not None:
            found = _coverage(crowd, one.truth, trainer.sources)
    seconds = perf_counter() - start
    candidates = crowd.votes.candidates
    return {
        "set": one.name,
        "n_sources": crowd.votes.n_sources,
        "seed": seed,
        "method": name,
        **disambiguation_metrics(one.truth, candidates, confidences),
        "ece": expected_calibration_error(confidences, one.truth, candidates),
        "seconds": seconds,
        **found,
    }


def _train(one: BenchmarkSet, crowd: Crowd, seed: int, *, with_votes: bool) -> Any:
    from core.engine.trainer import PlainTrainer

    votes = crowd.votes if with_votes else None
    trainer = PlainTrainer(PlainConfig.preset("studio", seed=seed))
    for _ in trainer.epochs(CandidateDataset(one.X, crowd.votes.candidates, votes=votes)):
        pass
    return trainer


def _coverage(crowd: Crowd, truth: Any, found: Reliability) -> dict[str, Any]:
    """Return how many rates lie in their intervals, and whether those who say little are found."""
    rates = (found.sensitivity, found.specificity)
    inside = [
        (rate.low <= true) & (true <= rate.high)
        for rate, true in zip(rates, crowd.mean_rates(truth), strict=True)
    ]
    always = np.array([kind == "always yes" for kind in crowd.kinds])
    return {
        "n_rates": 2 * len(always),
        "n_inside": int(np.sum(inside)),
        "n_always_yes": int(always.sum()),
        "n_found": int((found.says_little & always).sum()),
        "n_wrongly": int((found.says_little & ~always).sum()),
    }


def aggregate(crowd: Crowd, name: str) -> Matrix:
    """Return the probability of yes by an aggregator of crowd-kit, label by label."""
    import pandas as pd

    try:
        from crowdkit import aggregation
    except ImportError:
        hint = 'Install it with: pip install "plain-studio[bench]"'
        raise PlainError("crowd-kit is not installed.", "It is compared with.", hint) from None
    votes = crowd.votes
    out = np.zeros(votes.shape)
    rows, sources = votes.answered.T
    for j in range(votes.shape[1]):
        said = np.zeros((votes.shape[0], votes.n_sources), int)
        i, _, k = votes.yes[votes.yes[:, 1] == j].T
        said[i, k] = 1
        table = pd.DataFrame({"task": rows, "worker": sources, "label": said[rows, sources]})
        if not said.any():
            continue
        method = getattr(aggregation, name)()
        found = method.fit_predict_proba(table)
        if 1 in found.columns:
            out[found.index, j] = found[1].to_numpy()
    return out
