"""`plain bench effort`: how many decisions a person makes until nearly all labels are right.

A simulated annotator knows the truth (and may err now and then) and answers in the order of each
strategy. A cell is right when its resolved label - the decision, else the confidence at 0.5 -
equals the truth; all candidate cells count. Every strategy begins with the same first lap of random
cells, whose answers count. Strategies without feedback keep the confidences of that moment:

- random: any order; random, learning: any order, but every answer is learned from, as ours does
- least confident first: nearest to 0.5 first
- cleanlab: lowest self-confidence of a given label first, its ranking of label issues per class
"""

from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
import numpy.typing as npt

from core.bench.data import clusters
from core.data.dataset import CandidateDataset
from core.engine.config import PlainConfig
from core.engine.propagation import Propagator
from core.review import Reviewer, auto_resolve

TARGETS = (0.95, 0.99)
N_STEPS = 200
"""How often the queue is made anew on the way through all cells."""

TIMED = ((7_000, 64, 159), (100_000, 64, 50))
"""Instances, features and labels of the data on which single decisions are timed."""

Cells = list[tuple[int, int]]
Progress = Callable[[str], None]


@dataclass(frozen=True)
class Answer:
    """A decision of the simulated annotator."""

    instance_id: str
    label: str
    verdict: Any
    sampled: bool = False
    confidence: float | None = None
    shown: bool = True
    annotator: str = "simulated"
    time: str = ""


def run(
    sets: list[tuple[str, CandidateDataset]],
    *,
    preset: str = "studio",
    errors: float = 0.0,
    seed: int = 0,
    progress: Progress = lambda _: None,
) -> Iterator[dict[str, Any]]:
    """Yield, for every set, the curve and the decisions to each target of every strategy."""
    for name, dataset in sets:
        progress(f"{name}: training")
        reviewer = trained_reviewer(dataset, PlainConfig.preset(preset, seed=seed), seed)
        annotator = Annotator(dataset, errors, seed)
        reviewer, _ = reviewer.decide(annotator.answers(_first_lap(reviewer), sampled=True))
        curves = {}
        for strategy, choose in {"ours": _by_worth, "random, learning": _at_random(seed)}.items():
            progress(f"{name}: {strategy}")
            curves[strategy] = _learning(reviewer, annotator, choose)
        for strategy, order in _fixed_orders(reviewer, seed).items():
            curves[strategy] = _fixed(reviewer, annotator, order)
        yield summary(name, int(reviewer.offered.sum()), errors, curves)


def summary(
    name: str, n_cells: int, errors: float, curves: dict[str, list[tuple[int, float]]]
) -> dict[str, Any]:
    """Return the decisions every strategy needs, and as a share of what random order needs."""
    needed = {
        strategy: {str(target): needed_for(curve, target) for target in TARGETS}
        for strategy, curve in curves.items()
    }
    share = {
        strategy: {target: _ratio(count, needed["random"][target]) for target, count in one.items()}
        for strategy, one in needed.items()
    }
    return {
        "set": name,
        "n_cells": n_cells,
        "errors": errors,
        "decisions": needed,
        "share_of_random": share,
        "curves": curves,
    }


def needed_for(curve: list[tuple[int, float]], target: float) -> int | None:
    """Return after how many decisions the share of right cells first reaches the target."""
    return next((count for count, right in curve if right >= target), None)


def try_guarantee(
    name: str,
    dataset: CandidateDataset,
    *,
    trials: int = 20,
    precision: float = 0.95,
    preset: str = "studio",
    progress: Progress = lambda _: None,
) -> dict[str, Any]:
    """Review in our order until the rest may be accepted unseen; return how right that is.

    It is asked for after every hundredth of the cells and taken as soon as it is granted, up to
    half of them: asking again and again is what people do, and no honest bound likes it.
    """
    config = PlainConfig.preset(preset)
    reached, decisions, accepted = [], [], []
    trained = trained_reviewer(dataset, config, 0)
    for seed in range(trials):
        progress(f"{name}: trial {seed + 1} of {trials}")
        reviewer = copy(trained)  # the same, that draws other cells at random
        reviewer.seed = seed
        annotator = Annotator(dataset, 0.0, seed)
        reviewer, _ = reviewer.decide(annotator.answers(_first_lap(reviewer), sampled=True))
        for _ in range(50):
            found = auto_resolve(reviewer, precision)
            if found.cut is not None:
                right = np.asarray(dataset.truth)[found.rows, found.labels]
                reached.append(float(right.mean()) if len(right) else 1.0)
                accepted.append(len(right))
                break
            asked, drawn = _by_worth(reviewer, int(reviewer.offered.sum()) // 100)
            answers = [*annotator.answers(asked), *annotator.answers(drawn, sampled=True)]
            reviewer, _ = reviewer.decide(answers)
        decisions.append(int((~np.isnan(reviewer.decided)).sum()))
    return {
        "set": name,
        "precision": precision,
        "trials": trials,
        "granted": len(reached),
        "held": sum(one >= precision for one in reached),
        "reached": reached,
        "decisions": decisions,
        "accepted": accepted,
    }


def time_decisions(n: int, d: int, n_labels: int, count: int = 40) -> dict[str, Any]:
    """Time single decisions after 1,000 others: the clamped propagation alone, and all of it."""
    from core.engine.graphs import build_instance_graph, build_label_graph

    one = clusters(n, d, n_labels)
    dataset = CandidateDataset(one.X, one.noisy(3, seed=0), truth=one.truth)
    rng = np.random.default_rng(0)
    Y_hat = np.clip(0.2 + 0.6 * one.truth + rng.normal(0, 0.25, one.truth.shape), 0, 1)
    graphs = build_instance_graph(one.X), build_label_graph(dataset.candidates)
    propagator = Propagator(*graphs)
    reviewer = Reviewer(dataset, propagator, Y_hat.astype(np.float32))
    annotator = Annotator(dataset, 0.0, 0)
    some = rng.permutation(np.argwhere(dataset.candidates))[: 1000 + count]
    cells = [(int(i), int(j)) for i, j in some]
    reviewer, _ = reviewer.decide(annotator.answers(cells[:1000]))
    Z = propagator.clamped(dataset.candidates, Y_hat, reviewer.decided)
    held = ~np.isnan(reviewer.decided)
    spread, whole = [], []
    for i, j in cells[1000:]:
        held[i, j] = True
        start = perf_counter()
        propagator.reclamped(Z, held, [i], [j], [annotator.says[i, j] - Z[i, j]])
        spread.append(perf_counter() - start)
        answer = annotator.answers([(i, j)])
        start = perf_counter()
        reviewer, _ = reviewer.decide(answer)
        whole.append(perf_counter() - start)
    start = perf_counter()
    reviewer.questions()
    seconds = {"questions": perf_counter() - start}
    for name, times in (("propagation", spread), ("decision", whole)):
        seconds |= {f"{name}_p{q}": float(np.percentile(times, q)) for q in (50, 95)}
    return {"shape": [n, n_labels], "seconds": seconds}


def share_right(reviewer: Reviewer, decided: npt.NDArray[Any]) -> float:
    """Return the share of candidate cells whose resolved label is true."""
    resolved = np.where(np.isnan(decided), reviewer.confidences >= 0.5, decided)
    truth = np.asarray(reviewer.dataset.truth)
    return float((resolved == truth)[reviewer.offered].mean())


class Annotator:
    """Knows the truth, and errs as often as told, always on the same cells."""

    def __init__(self, dataset: CandidateDataset, errors: float, seed: int) -> None:
        wrong = np.random.default_rng([seed, 1]).random(dataset.candidates.shape) < errors
        self._dataset = dataset
        self.says = np.asarray(dataset.truth) ^ wrong

    def answers(self, cells: Cells, sampled: bool = False) -> list[Answer]:
        ids, names = self._dataset.ids, self._dataset.label_names
        return [
            Answer(ids[i], names[j], "keep" if self.says[i, j] else "reject", sampled)
            for i, j in cells
        ]


def trained_reviewer(dataset: CandidateDataset, config: PlainConfig, seed: int) -> Reviewer:
    from core.engine.trainer import PlainTrainer

    trainer = PlainTrainer(config)
    for _ in trainer.epochs(dataset):
        pass
    assert trainer.instance_graph is not None
    assert trainer.label_graph is not None
    graphs = trainer.instance_graph, trainer.label_graph
    propagator = Propagator(*graphs, **config.propagation)
    return Reviewer(dataset, propagator, trainer.predictions, level=trainer.level, seed=seed)


def _first_lap(reviewer: Reviewer) -> Cells:
    questions = reviewer.questions(limit=reviewer.dataset.n_instances)
    return [(one.row, j) for one in questions if one.reason == "first lap" for j in one.cells]


def _learning(
    reviewer: Reviewer, annotator: Annotator, choose: Callable[[Reviewer, int], Any]
) -> list[tuple[int, float]]:
    """Answer, let the reviewer learn, and ask again, until all of it is right enough."""
    n_cells = int(reviewer.offered.sum())
    size, curve = max(5, n_cells // N_STEPS), []
    while True:
        decided = int((~np.isnan(reviewer.decided)).sum())
        curve.append((decided, share_right(reviewer, reviewer.decided)))
        if curve[-1][1] >= max(TARGETS) or decided == n_cells:
            return curve
        cells, drawn = choose(reviewer, size)
        reviewer, _ = reviewer.decide(
            [*annotator.answers(cells), *annotator.answers(drawn, sampled=True)]
        )


def _by_worth(reviewer: Reviewer, size: int) -> tuple[Cells, Cells]:
    """Return what our queue asks next, and of that what it drew at random."""
    asked: Cells = []
    drawn: Cells = []
    for one in reviewer.questions(limit=size):
        (drawn if one.sampled else asked).extend((one.row, j) for j in one.cells)
    if not asked and not drawn:  # all that is left is settled
        drawn = _at_random(0)(reviewer, size)[1]
    return asked, drawn


def _at_random(seed: int) -> Callable[[Reviewer, int], tuple[Cells, Cells]]:
    def choose(reviewer: Reviewer, size: int) -> tuple[Cells, Cells]:
        order = np.random.default_rng([seed, 2]).random(reviewer.offered.shape)
        free = np.where(reviewer.offered & np.isnan(reviewer.decided), order, np.inf)
        return [], first_cells(free, size)

    return choose


def _fixed(
    reviewer: Reviewer, annotator: Annotator, order: npt.NDArray[Any]
) -> list[tuple[int, float]]:
    """Answer in this order, smallest first; confidences stay as they are."""
    decided, curve = reviewer.decided.copy(), []
    free = np.where(reviewer.offered & np.isnan(decided), order, np.inf)
    cells = first_cells(free, int(np.isfinite(free).sum()))
    size = max(5, len(cells) // N_STEPS)
    for at in range(0, len(cells) + size, size):
        curve.append((int((~np.isnan(decided)).sum()), share_right(reviewer, decided)))
        for i, j in cells[at : at + size]:
            decided[i, j] = annotator.says[i, j]
    return curve


def _fixed_orders(reviewer: Reviewer, seed: int) -> dict[str, npt.NDArray[Any]]:
    """Return for each strategy without feedback a number per cell; the smallest is asked first."""
    return {
        "random": np.random.default_rng([seed, 2]).random(reviewer.offered.shape),
        "least confident first": np.abs(reviewer.confidences - 0.5),
        "cleanlab": reviewer.confidences,
    }


def first_cells(order: npt.NDArray[Any], count: int) -> Cells:
    at = np.argsort(order, axis=None, kind="stable")[:count]
    rows, labels = np.unravel_index(at[np.isfinite(order.ravel()[at])], order.shape)
    return [(int(i), int(j)) for i, j in zip(rows, labels, strict=True)]


def _ratio(count: int | None, of: int | None) -> float | None:
    return None if count is None or not of else count / of
