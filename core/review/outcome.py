"""What a rule does to the labels: how many it keeps, and how right that is expected to be."""

from collections.abc import Iterable
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from core.data.dataset import CandidateDataset
from core.review.resolve import NEW_LABEL, Resolution, Verdict

Rows = npt.NDArray[np.int64]
Kind = Literal["removed", "kept", "added"]


class Figures(NamedTuple):
    """What a rule does to the labels."""

    n_candidates: int
    n_resolved: int
    n_removed: int
    n_added: int
    n_decided: int
    n_empty: int  # instances that keep no label
    precision: float | None  # expected, of what is resolved
    recall: float | None  # expected, among the candidates
    true_precision: float | None  # where there is truth
    true_recall: float | None


def figures_of(
    dataset: CandidateDataset, resolution: Resolution, decisions: Iterable[Verdict]
) -> Figures:
    """Return what the rule does; a decided cell is as true as a person said."""
    offered, kept = dataset.candidates > 0, resolution.labels > 0
    is_decided = resolution.reasons > NEW_LABEL
    likely = np.where(is_decided, resolution.labels, resolution.confidences.astype(np.float64))
    true_precision = true_recall = None
    if dataset.truth is not None:
        n_right, n_true = int((kept & (dataset.truth > 0)).sum()), int((dataset.truth > 0).sum())
        true_precision, true_recall = n_right / max(int(kept.sum()), 1), n_right / max(n_true, 1)
    return Figures(
        n_candidates=int(offered.sum()),
        n_resolved=int(kept.sum()),
        n_removed=int((offered & ~kept).sum()),
        n_added=int((kept & ~offered).sum()),
        n_decided=sum(one.verdict in ("keep", "reject") for one in decisions),
        n_empty=int((~kept.any(axis=1)).sum()),
        precision=float(likely[kept].mean()) if kept.any() else None,
        recall=float(likely[kept & offered].sum() / max(likely[offered].sum(), 1e-9)),
        true_precision=true_precision,
        true_recall=true_recall,
    )


def cells_that_are(
    what: Kind, dataset: CandidateDataset, resolution: Resolution, label: str | None = None
) -> tuple[Rows, Rows]:
    """Return the cells that were removed, kept or added, those nearest to the other side first."""
    offered, kept = dataset.candidates > 0, resolution.labels > 0
    cells = {"removed": offered & ~kept, "added": kept & ~offered, "kept": kept & offered}[what]
    if label is not None:
        cells = cells & (np.array(dataset.label_names) == label)
    rows, labels = np.nonzero(cells)
    confidences = resolution.confidences[rows, labels]
    order = np.argsort(confidences if what == "kept" else -confidences, kind="stable")
    return rows[order], labels[order]
