"""What decisions move: the cells whose confidence they change."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from core.review.queue import is_settled

if TYPE_CHECKING:
    from core.review.reviewer import Reviewer

Matrix = npt.NDArray[np.float32]
Rows = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class DecisionEffect:
    """The undecided candidate cells that answers move, the strongest first."""

    rows: Rows
    labels: Rows
    before: Matrix
    after: Matrix

    @property
    def settled(self) -> npt.NDArray[np.bool_]:
        """Which of the cells need not be asked any more."""
        return is_settled(self.after) & ~is_settled(self.before)

    @property
    def n_settled(self) -> int:
        return int(self.settled.sum())


def moved_cells(before: "Reviewer", after: "Reviewer") -> DecisionEffect:
    """Return the cells that moved visibly and are undecided in both."""
    change = np.abs(after.confidences - before.confidences)
    free = np.isnan(before.decided) & np.isnan(after.decided) & before.offered
    rows, labels = np.nonzero(free & (change > 1e-3))
    order = np.argsort(-change[rows, labels], kind="stable")
    rows, labels = rows[order], labels[order]
    return DecisionEffect(
        rows, labels, before.confidences[rows, labels], after.confidences[rows, labels]
    )
