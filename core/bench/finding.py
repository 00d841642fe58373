"""`plain bench effort --noise`: how many decisions until most of the false labels are found.

Clean labels get so many false candidates anywhere. A simulated annotator who knows the truth is
asked about one candidate after the other; counted are the decisions until a share of the false
ones has come up. Nothing counts as found unseen.

- ours: the likeliest to be false first, learning from every answer (`core.review`)
- ours, as trained: the same order without learning
- cleanlab: lowest self-confidence first, of logistic regressions out of fold, its usual classifier
- cleanlab, by instance: instances by its overall quality, all candidates of each
- random: what any order takes on average
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from core.bench.data import BenchmarkSet
from core.bench.effort import Annotator, first_cells, trained_reviewer
from core.data.dataset import CandidateDataset
from core.data.noise import false_share_candidates
from core.engine.config import PlainConfig
from core.errors import PlainError
from core.methods.cleanlab_scores import fit_logistic
from core.methods.out_of_fold import out_of_fold
from core.review import Reviewer
from core.review.queue import likely_false

TARGETS = (0.5, 0.75, 0.9)
N_STEPS = 200
"""How often the order is made anew on the way through all cells."""

Floats = npt.NDArray[np.float64]


def run(
    sets: list[BenchmarkSet], share: float, preset: str, seed: int, progress: Callable[[str], None]
) -> Iterator[dict[str, Any]]:
    """Yield for every set the decisions that every order takes to each target."""
    for one in sets:
        candidates = false_share_candidates(one.truth, share, seed)
        dataset = CandidateDataset(one.X, candidates, truth=one.truth)
        is_false = (candidates > 0) & (one.truth == 0)
        progress(f"{one.name}: training")
        reviewer = trained_reviewer(dataset, PlainConfig.preset(preset, seed=seed), seed)
        progress(f"{one.name}: ours")
        needed = {
            "ours": _learning(reviewer, is_false),
            "ours, as trained": _fixed(reviewer.offered, likely_false(reviewer), is_false),
        }
        progress(f"{one.name}: cleanlab")
        for name, order in _cleanlab(one, candidates, seed).items():
            needed[name] = _fixed(reviewer.offered, order, is_false)
        n_cells = int(reviewer.offered.sum())
        needed["random"] = [round(target * n_cells) for target in TARGETS]
        yield {
            "set": one.name,
            "false_share": share,
            "n_cells": n_cells,
            "n_false": int(is_false.sum()),
            "decisions": {
                name: dict(zip(map(str, TARGETS), counts, strict=True))
                for name, counts in needed.items()
            },
            "of_cleanlab": needed["ours"][-1] / needed["cleanlab"][-1],
        }


def _learning(reviewer: Reviewer, is_false: npt.NDArray[np.bool_]) -> list[int]:
    """Ask the likeliest, learn, ask again; return the decisions to each target."""
    annotator = Annotator(reviewer.dataset, 0.0, 0)
    size = max(5, int(reviewer.offered.sum()) // N_STEPS)
    asked: list[tuple[int, int]] = []
    enough = np.ceil(TARGETS[-1] * is_false.sum())
    while sum(is_false[cell] for cell in asked) < enough:
        free = reviewer.offered & np.isnan(reviewer.decided)
        cells = first_cells(np.where(free, -likely_false(reviewer), np.inf), size)
        reviewer, _ = reviewer.decide(annotator.answers(cells))
        asked += cells
    return _needed(asked, is_false)


def _fixed(
    offered: npt.NDArray[np.bool_], suspicion: Any, is_false: npt.NDArray[np.bool_]
) -> list[int]:
    order = np.where(offered, -np.asarray(suspicion, np.float64), np.inf)
    return _needed(first_cells(order, int(offered.sum())), is_false)


def _needed(asked: list[tuple[int, int]], is_false: npt.NDArray[np.bool_]) -> list[int]:
    found = np.cumsum([is_false[cell] for cell in asked])
    counts = [np.ceil(target * is_false.sum()) for target in TARGETS]
    return [int(np.searchsorted(found, count)) + 1 for count in counts]


def _cleanlab(one: BenchmarkSet, candidates: npt.NDArray[np.uint8], seed: int) -> dict[str, Floats]:
    """Return how suspicious each candidate is to cleanlab, by itself and by its instance."""
    try:
        from cleanlab.multilabel_classification import rank
    except ImportError:
        hint = 'Install it with: pip install "plain-studio[bench]"'
        raise PlainError("cleanlab is not installed.", "It is compared with.", hint) from None
    labels = [np.flatnonzero(row).tolist() for row in candidates]
    p = out_of_fold(one.X, candidates, 5, seed, fit_logistic)
    by_instance = np.asarray(rank.get_label_quality_scores(labels, p))
    return {
        "cleanlab": -np.asarray(rank.get_label_quality_scores_per_class(labels, p)),
        "cleanlab, by instance": -np.repeat(by_instance[:, None], p.shape[1], axis=1),
    }
