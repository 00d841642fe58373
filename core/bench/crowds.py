"""Simulated crowds: sources of known sensitivity and specificity vote on true labels."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import expit, logit

from core.data.votes import Votes

Floats = npt.NDArray[np.float64]

LABEL_SD = 0.5
"""How far a source's log-odds differ from label to label."""

KINDS: dict[str, tuple[tuple[float, float], tuple[float, float]]] = {
    "good": ((0.65, 0.9), (0.92, 0.99)),
    "careless": ((0.4, 0.6), (0.7, 0.85)),
    "always yes": ((0.97, 0.97), (0.03, 0.03)),
}
"""Ranges of sensitivity and specificity."""


@dataclass(frozen=True, eq=False)
class Crowd:
    """Votes, and what the sources who gave them are like."""

    votes: Votes
    kinds: tuple[str, ...]
    sensitivity: Floats  # (S, L)
    specificity: Floats

    def mean_rates(self, truth: Any) -> tuple[Floats, Floats]:
        """Return each source's sensitivity and specificity over the cells it judged, (S,)."""
        answers = self.votes.answers.T
        true, false = answers @ np.asarray(truth, float), answers @ (1.0 - truth)
        return (
            (self.sensitivity * true).sum(axis=1) / true.sum(axis=1),
            (self.specificity * false).sum(axis=1) / false.sum(axis=1),
        )


def simulate(
    truth: Any, kinds: tuple[str, ...], seed: int, per_instance: tuple[int, int] = (2, 3)
) -> Crowd:
    """Return votes on all labels of each instance by so many of the sources, drawn at random."""
    rng = np.random.default_rng(seed)
    T = np.asarray(truth) > 0
    n, n_labels = T.shape
    middles = [[rng.uniform(*KINDS[kind][at]) for kind in kinds] for at in (0, 1)]
    scatter = rng.normal(0, LABEL_SD, (2, len(kinds), n_labels))
    seen, right = expit(logit(np.array(middles))[:, :, None] + scatter)
    turn = rng.permuted(np.tile(np.arange(len(kinds)), (n, 1)), axis=1)
    low, high = per_instance
    count = np.asarray(rng.integers(low, high + 1, n))
    asked = turn < count[:, None]  # (n, S)
    rows, sources = np.nonzero(asked)
    says = rng.random((len(rows), n_labels)) < np.where(T[rows], seen[sources], 1 - right[sources])
    answer, labels = np.nonzero(says)
    yes = np.stack([rows[answer], labels, sources[answer]], axis=1)
    names = tuple(f"{kind} {k + 1}" for k, kind in enumerate(kinds))
    answered, none = np.stack([rows, sources], axis=1), np.empty((0, 3))
    votes = Votes(names, yes, answered, none, (n, n_labels))  # type: ignore[arg-type]
    return Crowd(votes, kinds, seen, right)
