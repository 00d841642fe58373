"""What became of the cells between two runs, and which decisions did it."""

from collections import Counter
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from core.errors import DatasetMismatch
from core.review.queue import is_settled
from core.review.reviewer import Reviewer

Cells = list[tuple[int, int]]


@dataclass(frozen=True, eq=False)
class Difference:
    """Undecided candidate cells, as (row, label), that are otherwise now; strongest change first.

    `because` names for each the decided cell nearest to it that was decided since, or none.
    """

    settled: Cells  # need not be asked any more
    opened: Cells  # need to be asked again
    flipped: Cells  # would be resolved otherwise
    because: dict[tuple[int, int], tuple[int, int] | None]
    n_open_before: int
    n_open_after: int

    @property
    def credit(self) -> list[tuple[tuple[int, int], int]]:
        """The decided cells that changed most others, with how many."""
        counted = Counter(cell for cell in self.because.values() if cell is not None)
        return counted.most_common()


def difference(before: Reviewer, after: Reviewer) -> Difference:
    """Compare two reviewers of the same data; the second may be of a run warmed by decisions."""
    if before.dataset.fingerprint != after.dataset.fingerprint:
        detail = f"{before.dataset.fingerprint[:12]} and {after.dataset.fingerprint[:12]}."
        raise DatasetMismatch("These runs are on different data.", detail)
    free = before.offered & np.isnan(before.decided) & np.isnan(after.decided)
    was, now = is_settled(before.confidences), is_settled(after.confidences)
    change = np.abs(after.confidences - before.confidences)
    parts = {
        "settled": _strongest(free & now & ~was, change),
        "opened": _strongest(free & was & ~now, change),
        "flipped": _strongest(free & (before.proposed != after.proposed), change),
    }
    fresh = ~np.isnan(after.decided) & (before.decided != after.decided)
    cells = dict.fromkeys(cell for part in parts.values() for cell in part)
    return Difference(
        **parts,
        because={cell: _nearest(after, fresh, *cell) for cell in cells},
        n_open_before=int((before.offered & np.isnan(before.decided) & ~was).sum()),
        n_open_after=int((after.offered & np.isnan(after.decided) & ~now).sum()),
    )


def _strongest(cells: npt.NDArray[np.bool_], change: npt.NDArray[np.float32]) -> Cells:
    rows, labels = np.nonzero(cells)
    order = np.argsort(-change[rows, labels], kind="stable")
    return [(int(rows[at]), int(labels[at])) for at in order]


def _nearest(
    reviewer: Reviewer, fresh: npt.NDArray[np.bool_], row: int, label: int
) -> tuple[int, int] | None:
    """Return the new decision that reaches a cell most directly: of its instance, else beside."""
    mates = np.flatnonzero(fresh[row])
    if len(mates):
        return row, int(mates[np.argmax(reviewer.within_instance()[:, label, mates].max(axis=0))])
    near = reviewer.propagator.instance_weights[[row]].tocoo()
    decided = fresh[near.col, label]
    if not decided.any():
        return None
    return int(near.col[decided][np.argmax(near.data[decided])]), label
