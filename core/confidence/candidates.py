"""Where candidates are: what every reading of predictions needs of them, found once per data set.

Of n x L cells few are candidates; values are kept for these alone, in row-major order.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

Floats = npt.NDArray[np.float64]
Cells = npt.NDArray[np.bool_]
Kinds = tuple[tuple[int, int], ...]

MAX_CELLS = 1_000_000
"""Cells looked at where a sample tells as much as all."""

_BY_CHANCE, _EXCEPTIONS = 15, 0.02
"""How often a kind would be offered alone by chance, at least, and the share of it that is."""


class Seen(NamedTuple):
    """What calibration looks at of an n x L matrix, of which all else may stay on a device."""

    cells: npt.NDArray[Any]  # those of candidates
    mean: Floats  # (L,)
    rows: npt.NDArray[Any]  # every so many, as `Candidates.sample` says


@dataclass(frozen=True, eq=False)
class Candidates:
    """The candidates of some rows."""

    offered: Cells  # (n, L)

    @classmethod
    def of(cls, Y: Any) -> Self:
        """Return those of an n x L array; what is known of them already is kept."""
        return Y if isinstance(Y, cls) else cls(np.asarray(Y) > 0)

    @property
    def sample(self) -> slice:
        """Evenly spaced rows that tell how labels are offered: `MAX_CELLS` cells at most."""
        return slice(None, None, max(self.offered.size // MAX_CELLS, 1))

    def see(self, values: Any) -> Seen:
        """Return what is looked at of an n x L array, unless that is it already."""
        if isinstance(values, Seen):
            return values
        values = np.asarray(values)
        mean = values.mean(axis=0, dtype=np.float64)
        return Seen(self.values(values), mean, values[self.sample])

    def sampled(self, seen: Seen) -> "tuple[Candidates, Seen]":
        """Return the candidates of the sample's rows and what was seen of them; all where few."""
        if self.sample.step == 1 or not self.offered[self.sample].any():
            return self, seen
        few = Candidates(self.offered[self.sample])
        return few, seen._replace(cells=few.values(seen.rows))

    def values(self, of: Any) -> npt.NDArray[Any]:
        """Return the candidates' values of an n x L array, or of what was seen of one."""
        return np.asarray(of.cells if isinstance(of, Seen) else np.asarray(of)[self.cells])

    @cached_property
    def cells(self) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
        """Row and label of every candidate."""
        rows, labels = np.nonzero(self.offered)
        return rows, labels

    @cached_property
    def size(self) -> npt.NDArray[np.intp]:
        """How many each row has, (n,)."""
        return np.asarray(self.offered.sum(axis=1))

    @cached_property
    def frequency(self) -> Floats:
        """The share of rows that offer each label, (L,)."""
        n, n_labels = self.offered.shape
        return self.offered.mean(axis=0) if n else np.zeros(n_labels)

    @cached_property
    def kinds(self) -> Kinds:
        """Pairs of a label and what it is a kind of, rarest first.

        A kind is hardly ever offered without the other, though by chance it often would be; not so
        the other without it. Where it is a kind of several, the rarest of them is meant.
        """
        Y = sp.csr_matrix(self.offered, dtype=np.float32)
        together = (Y.T @ Y).toarray()
        count = together.diagonal()
        by_chance = np.outer(count, 1 - count / max(len(self.offered), 1))
        kind = (by_chance > _BY_CHANCE) & (count[:, None] - together <= _EXCEPTIONS * by_chance)
        others = np.where(kind & ~kind.T, count, np.inf)
        rarest_first = np.argsort(count, kind="stable")
        pairs = ((int(j), int(np.argmin(others[j]))) for j in rarest_first)
        return tuple((j, whole) for j, whole in pairs if others[j, whole] < np.inf)
