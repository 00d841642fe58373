"""Answers that were given without looking: noticed, and learned from less.

Whoever does not look gives the answer at hand: what is proposed, always keep, or always reject. The
confidences say how often that answer is right, so the number of answers a careful person gives like
it is Poisson binomial. A number that chance exceeds less often than `ERROR_RATE` is a habit.

The confidence that was shown is the fair judge of whoever follows proposals, unless it has learned
from the same person; then the run without any decision is the judge ("run"). That one does not know
how many candidates are true, and a careful person may well keep more than it expects. So such a
habit counts only where hardly any answer is unlike the one at hand (`NEARLY_ALL`), and those that
are unlike it do not lie where the run doubts most.

It can still be innocent: nothing is taken back, and nobody is shut out. But an answer teaches as
much as it was likely looked at: with a share f of answers given without looking, one like the
answer at hand, right with probability q, was looked at with probability (1-f) q / (f + (1-f) q).
An answer unlike it was looked at.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.stats import mannwhitneyu, poisson_binom

Cell: TypeAlias = tuple[int, int]
AtHand: TypeAlias = Literal["proposal", "run", "keep", "reject"]
Floats: TypeAlias = npt.NDArray[np.float64]

ERROR_RATE = 0.001
"""How often a careful person is taken for one who does not look, at each look at the answers."""

NEARLY_ALL = 0.9
"""Share of answers given without looking from which a habit counts that the run alone judges.
Within 100 answers a careful person on the demo, whose run doubts itself too much, was taken for
hasty at some moment in 5 of 20 sittings with 0.8, in 2 with 0.9; the hasty were noticed alike."""

SUSPICION = 0.05
"""Error rate at which a habit already forbids to decide cells unseen. Sixty cells kept without
looking on mirflickr-5000, whose run believes 87 % of them, passed `ERROR_RATE` in 2 of 20 sittings
and would have been granted a guarantee."""

AT_LEAST, AT_MOST = 20, 1000
"""Answers that are looked at: fewer tell too little, of more the newest."""


class Given(NamedTuple):
    """How an answer was given."""

    annotator: str
    kept: bool
    shown: float  # the confidence that was shown; NaN if it was asked blind, or is not known
    start: float  # what the run says of the cell without any decision

    def like(self, at_hand: AtHand) -> tuple[bool, float]:
        """Return whether it is the answer at hand, and how likely that one is right."""
        p = self.shown if at_hand == "proposal" else self.start
        keep = self.shown >= 0.5 if at_hand in ("proposal", "run") else at_hand == "keep"
        return self.kept == keep, p if keep else 1 - p


@dataclass(frozen=True)
class Habit:
    """How often one person gave the answer at hand, and how often it was expected to be right."""

    annotator: str
    at_hand: AtHand
    n_answers: int
    n_like: int
    expected: float
    p_value: float
    is_sensitive: bool  # the answers unlike it lie where it is least likely right

    @property
    def is_noticed(self) -> bool:
        return self._is_rarer_than(ERROR_RATE)

    @property
    def is_suspected(self) -> bool:
        """Whether it is too likely to rest a guarantee on these answers."""
        return self._is_rarer_than(SUSPICION)

    def _is_rarer_than(self, rate: float) -> bool:
        if self.p_value >= rate:
            return False
        return self.at_hand == "proposal" or (self.share > NEARLY_ALL and not self.is_sensitive)

    @property
    def share(self) -> float:
        """The estimated share of answers given without looking."""
        room = self.n_answers - self.expected
        return float(np.clip((self.n_like - self.expected) / max(room, 1e-9), 0, 1))

    @property
    def sentence(self) -> str:
        """What is told to the person."""
        counts = f"{self.n_like:,} of your {self.n_answers:,} answers"
        if self.at_hand in ("proposal", "run"):
            return (
                f"{counts} are what the run proposes; it expects itself to be right in about "
                f"{self.expected:.0f} of them. Proposals sway everybody: in blind mode they are "
                "shown after you have answered."
            )
        return (
            f"{counts} are {self.at_hand}; the run expects about {self.expected:.0f}. It may be "
            "wrong about how many are true, or some were answered quickly: a second person's "
            "answers would tell."
        )


def measure_habits(answers: Iterable[Given]) -> dict[str, list[Habit]]:
    """Return of every annotator with enough answers how often each answer at hand was given."""
    by_annotator: dict[str, list[Given]] = defaultdict(list)
    for one in answers:
        by_annotator[one.annotator].append(one)
    found: dict[str, list[Habit]] = {}
    for who, given in by_annotator.items():
        seen = [one for one in given if not np.isnan(one.shown)]
        parts: tuple[tuple[AtHand, list[Given]], ...] = (
            *(("proposal", seen), ("run", seen)),
            *(("keep", given), ("reject", given)),
        )
        habits = [_habit(who, at_hand, part[-AT_MOST:]) for at_hand, part in parts]
        found[who] = [one for one in habits if one is not None]
    return found


def looked_at(
    answers: Mapping[Cell, Given], habits: Mapping[str, list[Habit]]
) -> dict[Cell, float]:
    """Return how likely each answer was looked at; only those less than certain."""
    noticed = {who: [one for one in mine if one.is_noticed] for who, mine in habits.items()}
    found: dict[Cell, float] = {}
    for cell, one in answers.items():
        for habit in noticed.get(one.annotator, ()):
            if np.isnan(one.shown) and habit.at_hand in ("proposal", "run"):
                continue
            is_like, q = one.like(habit.at_hand)
            if is_like:
                f = habit.share
                chance = float((1 - f) * q / max(f + (1 - f) * q, 1e-9))
                found[cell] = min(chance, found.get(cell, 1.0))
    return found


def _habit(annotator: str, at_hand: AtHand, given: list[Given]) -> Habit | None:
    if len(given) < AT_LEAST:
        return None
    kept, shown, start = (np.array(part) for part in zip(*(one[1:] for one in given), strict=True))
    p = shown if at_hand == "proposal" else start
    proposed = at_hand in ("proposal", "run")
    keep = shown >= 0.5 if proposed else np.full(len(p), at_hand == "keep")
    chance, like = np.clip(np.where(keep, p, 1 - p), 1e-6, 1 - 1e-6), kept == keep
    count, expected = int(like.sum()), float(chance.sum())
    least = np.sqrt((chance * (1 - chance)).sum())
    if at_hand != "proposal":
        least = max(least, NEARLY_ALL * (len(given) - expected))
    if count - expected < least:  # it would not be noticed: the exact tail is not worth its time
        return Habit(annotator, at_hand, len(given), count, expected, 1.0, False)
    tail = float(poisson_binom.sf(count - 1, chance))
    return Habit(annotator, at_hand, len(given), count, expected, tail, _is_sensitive(chance, like))


def _is_sensitive(chance: Floats, like: npt.NDArray[np.bool_]) -> bool:
    """Tell whether other answers were given where the answer at hand is less likely right."""
    if not 3 <= (~like).sum() < len(like):  # of one or two, order says nothing
        return False
    return bool(mannwhitneyu(chance[~like], chance[like], alternative="less").pvalue < 0.05)
