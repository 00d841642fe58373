"""Who said what: yes or no of each source about a cell; no vote means that it was not asked.

Kept small: whoever answered a whole instance is one pair (instance, source) and the labels that
were offered; all its other labels are a no. Only a source that was asked about some labels of an
instance has its no's listed. 100,000 instances x 50 labels x 3 sources take about 10 MB.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from core.errors import DatasetError, Problem

if TYPE_CHECKING:
    import pandas as pd

Table = npt.NDArray[np.int32]

COLUMNS = ("instance", "label", "source", "vote")
_MAX_LISTED = 20
_YES = {"1", "1.0", "yes", "true", "y", "t"}
_NO = {"0", "0.0", "-1", "-1.0", "no", "false", "n", "f"}


@dataclass(frozen=True, eq=False)
class Votes:
    """Votes of named sources on the cells of n instances and L labels. Immutable, sorted.

    Parameters
    ----------
    sources : distinct names
    yes : (m, 3) instance, label, source of every yes
    answered : (a, 2) instance, source of everyone who was asked about all labels of an instance
    no : (q, 3) like `yes`: the no's of those who were asked about some labels only
    shape : n and L
    """

    sources: tuple[str, ...]
    yes: Table
    answered: Table
    no: Table
    shape: tuple[int, int]

    def __post_init__(self) -> None:
        object.__setattr__(self, "sources", tuple(map(str, self.sources)))
        for name, width in (("yes", 3), ("answered", 2), ("no", 3)):
            table = np.asarray(getattr(self, name), np.int32).reshape(-1, width)
            table = np.unique(table, axis=0) if len(table) else table
            table.flags.writeable = False
            object.__setattr__(self, name, table)
        self._check()

    @classmethod
    def from_array(cls, votes: Any, sources: Sequence[str] = ()) -> Self:
        """Return votes given as (n, L, S): 1 yes, 0 no, NaN or -1 not asked."""
        V = np.asarray(votes, np.float32)
        if V.ndim != 3 or not np.isin(V[~np.isnan(V)], (-1, 0, 1)).all():
            rule = "votes must be a table of instances x labels x sources: 1, 0, or NaN"
            raise DatasetError([Problem(rule, "Reshape.", True, value=f"shape {V.shape}")])
        n, n_labels, n_sources = V.shape
        names = tuple(sources) or tuple(f"source{k}" for k in range(n_sources))
        asked = np.asarray(V >= 0)  # false for NaN too
        whole = np.asarray(asked.all(axis=1))  # (n, S)
        partly = asked & ~whole[:, None, :] & (V == 0)
        yes, answered, no = (np.argwhere(part).astype(np.int32) for part in (V == 1, whole, partly))
        return cls(names, yes, answered, no, (n, n_labels))

    @classmethod
    def from_table(cls, table: "pd.DataFrame", ids: Sequence[str], labels: Sequence[str]) -> Self:
        """Return votes given as rows of instance, label, source and perhaps vote.

        Where a no is listed, what is not listed was not asked. Where none is (or there is no column
        `vote`), whoever is listed for an instance was asked about all its labels; a row with an
        empty label says that somebody was asked and offered none.
        """
        missing = [name for name in COLUMNS[:3] if name not in table.columns]
        if missing:
            found = ", ".join(map(str, table.columns))
            rule = f"a table of votes needs the columns {', '.join(COLUMNS[:3])} and perhaps vote"
            raise DatasetError([Problem(rule, f"Add {', '.join(missing)}.", True, value=found)])
        problems: list[Problem] = []
        texts = {name: _texts(table[name]) for name in COLUMNS[:3]}
        none = texts["label"] == ""
        at = np.stack(
            [
                _places(texts["instance"], ids, "instance", problems),
                np.where(none, 0, _places(texts["label"], labels, "label", problems, none)),
            ]
        )
        names, who = np.unique(texts["source"], return_inverse=True)
        vote = _verdicts(table, none, problems)
        if problems:
            raise DatasetError(problems, "These votes cannot be used.")
        cells = np.stack([*at, who], axis=1)
        _refuse_contradictions(cells[~none], vote[~none], table.index[~none])
        yes, no = cells[vote & ~none], cells[~vote & ~none]
        answered = cells[:, ::2] if not len(no) else cells[none][:, ::2]
        return cls(tuple(names), yes, answered, no, (len(ids), len(labels))).compact()

    @classmethod
    def read(cls, path: Path | str, ids: Sequence[str], labels: Sequence[str]) -> Self:
        """Read a table of votes: CSV, or Parquet by its extension."""
        import pandas as pd

        path = Path(path)
        try:
            if path.suffix.lower() == ".parquet":
                table = pd.read_parquet(path)
            else:
                table = pd.read_csv(path, dtype=str, keep_default_na=False)
        except (OSError, ValueError) as error:
            rule = f"the votes in {path.name} cannot be read"
            fix = f"Give a CSV with the columns {', '.join(COLUMNS)}."
            raise DatasetError([Problem(rule, fix, True, value=str(error))]) from None
        return cls.from_table(table, ids, labels)

    @property
    def n_sources(self) -> int:
        return len(self.sources)

    @cached_property
    def candidates(self) -> npt.NDArray[np.uint8]:
        """The cells with at least one yes, (n, L)."""
        found = np.zeros(self.shape, np.uint8)
        found[self.yes[:, 0], self.yes[:, 1]] = 1
        return found

    @cached_property
    def n_yes(self) -> npt.NDArray[np.int32]:
        """How many said yes to each cell, (n, L)."""
        return self._count(self.yes)

    @cached_property
    def n_asked(self) -> npt.NDArray[np.int32]:
        """How many were asked about each cell, (n, L)."""
        whole = np.bincount(self.answered[:, 0], minlength=self.shape[0])[:, None]
        return (self._count(self.no) + self._count(self.yes[~self.whole]) + whole).astype(np.int32)

    @cached_property
    def whole(self) -> npt.NDArray[np.bool_]:
        """Which yes votes are part of an answer about all labels, (m,)."""
        return np.isin(_keys(self.yes[:, ::2]), _keys(self.answered))

    @cached_property
    def answers(self) -> Any:
        """Who answered which instances as a whole: CSR (n, S) of ones."""
        ones = np.ones(len(self.answered))
        shape = (self.shape[0], self.n_sources)
        return sp.csr_array((ones, (self.answered[:, 0], self.answered[:, 1])), shape=shape)

    def offered_by(self, row: int, label: int) -> tuple[list[str], list[str]]:
        """Return who said yes to a cell, and who said no."""
        yes = [k for k in self._of(self.yes, row, label)]
        asked = {*self._of(self.no, row, label), *self.answers[[row]].indices.tolist()}
        no = sorted(asked - set(yes))
        return [self.sources[k] for k in yes], [self.sources[k] for k in no]

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, npt.NDArray[Any]], shape: tuple[int, int]) -> Self:
        """Return what `arrays` made arrays of."""
        sources, yes, answered, no = (arrays[key] for key in ("sources", "yes", "answered", "no"))
        return cls(tuple(sources.tolist()), yes, answered, no, shape)

    def describe(self, row: int, label: int) -> str:
        """Say who offered a cell: "2 of 3: anna, bob"; nothing where nobody was asked."""
        yes, no = self.offered_by(row, label)
        if not yes and not no:
            return ""
        names = ", ".join(yes[:_MAX_LISTED]) + (" …" if len(yes) > _MAX_LISTED else "")
        return f"{len(yes)} of {len(yes) + len(no)}{': ' if names else ''}{names}"

    @cached_property
    def disagreement(self) -> npt.NDArray[np.float32]:
        """How divided the votes on each cell are: 0 unanimous or one vote, 1 half and half."""
        asked = np.maximum(self.n_asked, 1)
        return np.asarray(4 * self.n_yes * (asked - self.n_yes) / asked**2, np.float32)

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return everything but the shape as arrays, for files."""
        names = np.asarray(self.sources, np.str_)
        return {"sources": names, "yes": self.yes, "answered": self.answered, "no": self.no}

    def add_to(self, digest: Any) -> None:
        """Make the votes part of a fingerprint, in whatever order the sources are listed."""
        order = np.argsort(np.asarray(self.sources, object), kind="stable")
        place = np.argsort(order)
        for table in (self.yes, self.answered, self.no):
            moved = table.copy()
            moved[:, -1] = place[table[:, -1]]
            moved = np.unique(moved, axis=0) if len(moved) else moved
            digest.update(repr(moved.shape).encode() + np.ascontiguousarray(moved).data)
        for name in sorted(self.sources):
            digest.update(name.encode("utf-8", "surrogatepass") + b"\0")

    def relabelled(self, to: npt.NDArray[np.intp], n_labels: int) -> "Votes":
        """Return the votes with label j called `to[j]`; a yes to any of a name is a yes to it."""
        yes, no = self.yes.copy(), self.no.copy()
        yes[:, 1], no[:, 1] = to[yes[:, 1]], to[no[:, 1]]
        no = no[~np.isin(_keys(no), _keys(yes))]
        return Votes(self.sources, yes, self.answered, no, (self.shape[0], n_labels))

    def rows(self, keep: npt.NDArray[Any]) -> "Votes":
        """Return the votes on some of the instances, in this order."""
        place = np.full(self.shape[0], -1, np.int64)
        place[keep] = np.arange(len(keep))

        def moved(table: Table) -> Table:
            out = table.copy()
            out[:, 0] = place[table[:, 0]]
            return out[out[:, 0] >= 0]

        tables = moved(self.yes), moved(self.answered), moved(self.no)
        return Votes(self.sources, *tables, shape=(len(keep), self.shape[1]))

    def _of(self, table: Table, row: int, label: int) -> list[int]:
        low, high = np.searchsorted(table[:, 0], [row, row + 1])
        part = table[low:high]
        return [int(k) for k in part[part[:, 1] == label, 2]]

    def _count(self, table: Table) -> npt.NDArray[np.int32]:
        cells = table[:, 0].astype(np.int64) * self.shape[1] + table[:, 1]
        counts = np.bincount(cells, minlength=self.shape[0] * self.shape[1])
        return counts.reshape(self.shape).astype(np.int32)

    def compact(self) -> Self:
        """Turn answers with a vote on every label into answers about all labels."""
        if not len(self.no):
            return self
        cells = np.concatenate([self.yes[~self.whole], self.no])
        pairs, count = np.unique(_keys(cells[:, ::2]), return_counts=True)
        whole = pairs[count == self.shape[1]]
        answered = np.concatenate([self.answered, np.stack([whole >> 32, whole & 0xFFFFFFFF], 1)])
        no = self.no[~np.isin(_keys(self.no[:, ::2]), _keys(answered))]
        return type(self)(self.sources, self.yes, answered, no, self.shape)

    def _check(self) -> None:
        n, n_labels = self.shape
        limits = {"yes": (n, n_labels, self.n_sources), "answered": (n, self.n_sources)}
        for name, limit in {**limits, "no": limits["yes"]}.items():
            table = getattr(self, name)
            if len(table) and ((table < 0).any() or (table >= np.array(limit)).any()):
                rule = f"votes are about {n} instances, {n_labels} labels, {self.n_sources} sources"
                fix = "Number them from 0."
                raise DatasetError([Problem(rule, fix, True, value=str(table.max(axis=0)))])
        if len(set(self.sources)) != self.n_sources:
            rule = "every source must be different"
            raise DatasetError([Problem(rule, "Rename it.", True, value=str(self.sources))])


def as_votes(
    votes: Any, ids: Sequence[str], labels: Sequence[str], shape: tuple[int, int] | None = None
) -> Votes:
    """Return votes given as `Votes`, as a table (`Votes.from_table`) or as an (n, L, S) array."""
    if isinstance(votes, Votes):
        found = votes
    elif hasattr(votes, "columns"):
        found = Votes.from_table(votes, ids, labels)
    else:
        found = Votes.from_array(votes)
    if shape is not None and found.shape != shape:
        rule = f"votes are about {found.shape} cells, the data have {shape}"
        raise DatasetError([Problem(rule, "Give votes of the same data.", fatal=True)])
    return found


def _keys(table: Any) -> npt.NDArray[np.int64]:
    """Return one number for each row of two or three small numbers."""
    columns = np.asarray(table, np.int64)
    if columns.shape[1] == 2:
        return (columns[:, 0] << 32) | columns[:, 1]
    return (columns[:, 0] << 40) | (columns[:, 1] << 16) | columns[:, 2]


def _texts(column: Any) -> npt.NDArray[Any]:
    """Return cells as texts, numbers as they are written; nothing for missing ones."""
    values = column.to_numpy()
    if values.dtype.kind in "iu":
        return np.asarray(values.astype(str), object)
    missing = column.isna().to_numpy()
    return np.array(["" if no else str(v).strip() for v, no in zip(values, missing, strict=True)])


def _places(
    texts: Any, names: Sequence[str], what: str, problems: list[Problem], skip: Any = None
) -> npt.NDArray[np.int64]:
    place = {name: at for at, name in enumerate(names)}
    at = np.array([place.get(text, -1) for text in texts], np.int64)
    unknown = at < 0 if skip is None else (at < 0) & ~skip
    if unknown.any():
        rule = (
            f"votes must be about an {what} of the data"
            if what == "instance"
            else ("votes must be about a label of the data")
        )
        which = list(dict.fromkeys(str(text) for text in texts[unknown]))
        shown = ", ".join(map(repr, which[:_MAX_LISTED])) + (" …" if len(which) > 20 else "")
        fix = f"Correct or drop the {int(unknown.sum()):,} rows."
        first = int(np.flatnonzero(unknown)[0]) + 1
        problems.append(Problem(rule, fix, True, first, what, shown))
    return at


def _verdicts(table: Any, none: Any, problems: list[Problem]) -> npt.NDArray[np.bool_]:
    if "vote" not in table.columns:
        return np.ones(len(table), bool)
    texts = np.array([text.lower() for text in _texts(table["vote"]).astype(str)])
    yes = np.isin(texts, list(_YES))
    odd = ~yes & ~np.isin(texts, list(_NO)) & ~none
    if odd.any():
        first = int(np.flatnonzero(odd)[0])
        rule, fix = "a vote must be 1 or 0, yes or no", f"Correct the {int(odd.sum()):,} rows."
        problems.append(Problem(rule, fix, True, first + 1, "vote", repr(str(texts[first]))))
    return np.asarray(yes)


def _refuse_contradictions(cells: Any, vote: Any, index: Any) -> None:
    keys = _keys(cells)
    both = np.intersect1d(keys[vote], keys[~vote])
    if len(both):
        first = int(np.flatnonzero(np.isin(keys, both))[0])
        rule = "a source must not say both yes and no to a cell"
        fix = f"Keep one vote of each; {len(both):,} cells have two."
        raise DatasetError([Problem(rule, fix, True, row=str(index[first]))])
