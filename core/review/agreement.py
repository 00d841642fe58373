"""Whether people agree: per label Krippendorff's alpha and Cohen's kappa, and where they do not;
and whether each agrees with what the same person said before.

Only keep and reject are verdicts; a person who was unsure said nothing of that cell.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import betaincinv

from core.review.resolve import Verdict

Floats = npt.NDArray[np.float64]

REPEAT_EVERY, REPEAT_AFTER = 20, 30
"""Of so many instances that a person answered one comes back, and not of the last so many: 5 % of
the time tells agreement with oneself to +-10 % after 500 answers, and few remember 30 instances."""


@dataclass(frozen=True)
class Agreement:
    """How far people agree on one label, or on all of them (`label` none). NaN: cannot be told.

    `alpha` is Krippendorff's, nominal, over all cells that at least two people decided; `kappa` is
    Cohen's, averaged over the pairs of people by the cells they share.
    """

    label: str | None
    n_shared: int
    n_disagreed: int
    alpha: float
    kappa: float


@dataclass(frozen=True)
class Disagreement:
    """One cell and what everybody said of it; `adjudicated` is what was settled, if it was."""

    instance_id: str
    label: str
    verdicts: dict[str, str]
    adjudicated: str | None


@dataclass(frozen=True)
class SelfAgreement:
    """How often one person said the same of a cell that came back blind, with a 90 % interval."""

    annotator: str
    n_repeated: int
    n_same: int
    low: float
    high: float


def self_agreement(history: Iterable[Verdict]) -> list[SelfAgreement]:
    """Compare every blind answer with what the same person had said of the cell before.

    `history` is every row ever stored, oldest first; what was undone does not count. The later
    answer is the one that stands, so a cell is decided once however often it came back.
    """
    stacks: dict[tuple[str, str, str], list[tuple[str, bool | None]]] = defaultdict(list)
    for one in history:
        said = stacks[one.annotator, one.instance_id, one.label]
        if one.verdict == "undo":
            del said[-1:]
            continue
        is_clear = one.verdict in ("keep", "reject") and not getattr(one, "adjudicates", False)
        is_repeated = is_clear and not getattr(one, "shown", True) and bool(said)
        is_repeated = is_repeated and said[-1][0] in ("keep", "reject")
        said.append((one.verdict, said[-1][0] == one.verdict if is_repeated else None))
    counts: dict[str, list[bool]] = defaultdict(list)
    for (annotator, *_), said in stacks.items():
        counts[annotator] += [same for _, same in said if same is not None]
    found = []
    for annotator, same in sorted(counts.items()):
        if same:
            a, b = sum(same) + 0.5, len(same) - sum(same) + 0.5  # Jeffreys
            ends = float(betaincinv(a, b, 0.05)), float(betaincinv(a, b, 0.95))
            found.append(SelfAgreement(annotator, len(same), sum(same), *ends))
    return found


def may_repeat(made: Iterable[Verdict], repeated: Collection[str]) -> list[str]:
    """Return the instances of which one is to come back to a person now; mostly none.

    `made` is what the person decided and stands, oldest first; `repeated` came back already.
    """
    ids = list(dict.fromkeys(one.instance_id for one in made if one.verdict in ("keep", "reject")))
    if len(ids) // REPEAT_EVERY <= len(repeated):
        return []
    return [one for one in ids[: max(len(ids) - REPEAT_AFTER, 0)] if one not in repeated]


def measure_agreement(by_annotator: Mapping[str, Iterable[Verdict]]) -> list[Agreement]:
    """Return the agreement on all labels, then on each label that two people share."""
    cells = _verdicts(by_annotator)
    labels = sorted({label for (_, label), said in cells.items() if len(said) > 1})
    found = [_agreement(None, list(cells.values()))]
    for label in labels:
        found.append(_agreement(label, [said for cell, said in cells.items() if cell[1] == label]))
    return found


def disagreements(by_annotator: Mapping[str, Iterable[Verdict]]) -> list[Disagreement]:
    """Return the cells on which people differ, those nobody adjudicated first."""
    judged = {
        (one.instance_id, one.label): one.verdict
        for made in by_annotator.values()
        for one in made
        if getattr(one, "adjudicates", False)
    }
    found = [
        Disagreement(*cell, dict(said), judged.get(cell))
        for cell, said in _verdicts(by_annotator).items()
        if len(set(said.values())) > 1
    ]
    return sorted(found, key=lambda one: (one.adjudicated is not None, one.instance_id, one.label))


def krippendorff_alpha(units: Iterable[Iterable[str]]) -> float:
    """Return nominal alpha of units, each a list of what people said; NaN without variation."""
    values: dict[str, float] = defaultdict(float)
    observed = 0.0
    for unit in units:
        said = list(unit)
        if len(said) < 2:
            continue
        counts = {value: said.count(value) for value in set(said)}
        for value, count in counts.items():
            values[value] += count
            observed += count * (len(said) - count) / (len(said) - 1)
    n = sum(values.values())
    expected = sum(count * (n - count) for count in values.values()) / (n - 1) if n > 1 else 0.0
    return 1 - observed / expected if expected else float("nan")


def alpha_of_counts(yes: npt.NDArray[Any], asked: npt.NDArray[Any]) -> float:
    """Return `krippendorff_alpha` of yes and no, given how many of those asked said yes."""
    shared = asked > 1
    y, m = yes[shared].astype(np.float64), asked[shared].astype(np.float64)
    n, n_yes = m.sum(), y.sum()
    expected = 2 * n_yes * (n - n_yes) / (n - 1) if n > 1 else 0.0
    return float(1 - (2 * y * (m - y) / (m - 1)).sum() / expected) if expected else float("nan")


def cohen_kappa(pairs: Iterable[tuple[str, str]]) -> float:
    """Return kappa of what two people said of the same cells; NaN when chance explains all."""
    both = list(pairs)
    if not both:
        return float("nan")
    n = len(both)
    agreed = sum(a == b for a, b in both) / n
    first, second = (([one[at] for one in both]) for at in (0, 1))
    chance = sum(first.count(v) * second.count(v) for v in {*first, *second}) / n**2
    return (agreed - chance) / (1 - chance) if chance < 1 else float("nan")


def _verdicts(
    by_annotator: Mapping[str, Iterable[Verdict]],
) -> dict[tuple[str, str], dict[str, str]]:
    """Return by cell what each person said; adjudications are no opinions of their own."""
    cells: dict[tuple[str, str], dict[str, str]] = defaultdict(dict)
    for annotator, made in by_annotator.items():
        for one in made:
            if one.verdict in ("keep", "reject") and not getattr(one, "adjudicates", False):
                cells[one.instance_id, one.label][annotator] = one.verdict
    return cells


def _agreement(label: str | None, cells: list[dict[str, str]]) -> Agreement:
    shared = [said for said in cells if len(said) > 1]
    people = sorted({who for said in shared for who in said})
    kappas, weights = [], []
    for a, b in combinations(people, 2):
        pairs = [(said[a], said[b]) for said in shared if a in said and b in said]
        kappa = cohen_kappa(pairs)
        if not np.isnan(kappa):
            kappas.append(kappa)
            weights.append(len(pairs))
    return Agreement(
        label=label,
        n_shared=len(shared),
        n_disagreed=sum(len(set(said.values())) > 1 for said in shared),
        alpha=krippendorff_alpha(said.values() for said in shared),
        kappa=float(np.average(kappas, weights=weights)) if kappas else float("nan"),
    )
