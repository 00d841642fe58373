"""Rows that are views of items become items; what every source said becomes votes.

Owns what is one instance. A table is folded once it is whole: instances are in the order in which
they are met first, and have the first row's cells.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from core.formats.shared.answers import (
    MAX_SEATS,
    PROBABLE,
    SEAT,
    Answers,
    NameReader,
    answers_of,
)
from core.formats.shared.cells import UNSURE, parse_flag, parse_marks
from core.formats.shared.findings import Findings, refuse
from core.formats.shared.mapping import SAID_PREFIXES, ColumnMapping, plain_names
from core.formats.shared.row_names import cells_of, instances_of, items_and_labels, people_labels

NOT_ASKED, UNREADABLE = -1, -2
UNCERTAIN = ("-1", "-1.0", *UNSURE)
FOLDED_STYLES = ("count", "share", "percent", "votes", "uncertain")
SEATS = 10  # of people whose share said yes


class Folded:
    """A table with one row per instance, its labels, and who offered them."""

    def __init__(self, table: pa.Table, answers: Answers, names: tuple[str, ...], voted: bool):
        self.table, self.answers, self.stated, self.voted = table, answers, names, voted

    @property
    def label_names(self) -> tuple[str, ...]:
        """The labels that are stated, in their order, then those that were met."""
        return (*self.stated, *sorted(self.answers.labels.names - set(self.stated)))


def is_folded(mapping: ColumnMapping) -> bool:
    """Whether rows are no instances, or cells hold the answers of several sources."""
    several = mapping.layout in ("long", "answers") or mapping.label_style in FOLDED_STYLES
    return mapping.row != "item" or several


def repeats_items(mapping: ColumnMapping) -> bool:
    """Whether an item may have several rows: views of it, or its labels one by one."""
    return mapping.row == "view" or mapping.layout == "long"


def fold(table: pa.Table, mapping: ColumnMapping, findings: Findings) -> Folded:
    """Return the table by instance."""
    return _Folding(table, mapping, findings).folded()


class _Folding:
    def __init__(self, table: pa.Table, mapping: ColumnMapping, findings: Findings) -> None:
        self.table, self.mapping, self.findings = table, mapping, findings
        self.answers, self.names = Answers(), NameReader(mapping, findings)
        self.again = 0  # ways in which somebody answered more than once
        repeats = repeats_items(mapping)
        if repeats and mapping.id is None:
            rule = "views of items need a column that names the item"
            refuse(rule, "State the mapping's id (--mapping).")
        if mapping.layout == "long":
            items, self.long_labels = items_and_labels(table, mapping)
            self.rows, self.first = instances_of(items)
            if mapping.label_after is not None:
                at = table.column_names.index(mapping.id)
                self.table = table.set_column(at, mapping.id, pa.array(items, pa.string()))
        elif repeats:
            self.rows, self.first = instances_of(cells_of(table.column(mapping.id)))
        else:
            self.rows, self.first = np.arange(table.num_rows), list(range(table.num_rows))

    def folded(self) -> Folded:
        mapping = self.mapping
        read = {"one_hot": self._flags, "delimited": self._sets, "long": self._long}
        try:
            if mapping.layout == "answers":
                self._cells()
            elif mapping.row == "people":
                self._people()
            elif mapping.label_style == "count":
                self._counts()
            elif mapping.label_style in ("share", "percent", "votes"):
                self._shares()
            else:
                read[mapping.layout]()
        except OverflowError:
            refuse("there are too many sources", "Check which column names them.")
        self.names.report_ignored(mapping.labels[0])
        if self.again:
            rule = "some cells hold several votes of one source: half or more yes is a yes"
            self.findings.add(rule, "Nothing to do, unless these are no votes.")
        self.answers.labels.n = len(self.first)
        is_said = mapping.layout != "long" and mapping.label_style != "uncertain"
        voted = is_said or mapping.row == "view" or mapping.source is not None
        return Folded(self._items(), self.answers, self._stated(), voted)

    def _stated(self) -> tuple[str, ...]:
        mapping = self.mapping
        if mapping.layout != "one_hot":
            return mapping.label_names
        if mapping.row == "people":
            return tuple(dict.fromkeys(people_labels(mapping)))
        return plain_names(mapping.labels, SAID_PREFIXES)

    def _items(self) -> pa.Table:
        """Return the first row of each item, without columns that say something of its views."""
        if len(self.first) == self.table.num_rows:
            return self.table
        items = self.table.take(pa.array(self.first, pa.int64()))
        needed = {*self.mapping.features, self.mapping.text, self.mapping.image, self.mapping.id}
        shown = [name for name in self.mapping.display if name not in needed]
        vary = [name for name in shown if self._varies(name)]
        if self.mapping.row == "view" and vary:
            rule = (
                "columns differ between views of an item; they are not shown, and kept in exports"
            )
            some = ", ".join(vary[:8]) + (" …" if len(vary) > 8 else "")
            fix = "Nothing to do, unless one holds labels too: name all of `labels` (--mapping)."
            self.findings.add(rule, fix, value=some)
            return items.drop_columns(vary)
        return items

    def _varies(self, name: str) -> bool:
        column = self.table.column(name)
        if pa.types.is_nested(column.type) or pa.types.is_null(column.type):
            return not pa.types.is_null(column.type)
        same = column.take(pa.array(np.asarray(self.first)[self.rows]))
        equal = pc.equal(column, same).fill_null(True)
        return not pc.all(equal).as_py()

    def _who(self) -> Iterator[str]:
        """Give who made each row's view; a view without a name is the next of its item."""
        column = self.mapping.source
        given = cells_of(self.table.column(column)) if column else iter([None] * len(self.rows))
        met: dict[int, int] = {}
        for row, who in zip(self.rows.tolist(), given, strict=True):
            if who is None or str(who).strip() == "":
                met[row] = met.get(row, 0) + 1
                yield SEAT.format(met[row])
            else:
                yield _plain_number(str(who).strip())

    def _sets(self) -> None:
        """A row has an item, a source and the labels that this source offers."""
        sources = list(self._who())
        for column in self.mapping.labels:
            views = zip(
                self.rows.tolist(), sources, cells_of(self.table.column(column)), strict=True
            )
            for i, (row, who, cell) in enumerate(views):
                if cell is not None:  # null: not answered; an empty list or text offers nothing
                    self._add(row, who, cell, i, column)

    def _add(self, row: int, who: str, cell: Any, i: int, column: str) -> None:
        try:
            self.answers.add(row, who, self.names(cell))
        except ValueError:
            rule, fix = "a cell must hold names of labels", 'Write them as ["a", "b"].'
            self.findings.add(rule, fix, fatal=True, row=i + 1, column=column, value=cell)

    def _flags(self) -> None:
        """A row has an item, a source and 0/1 for each label; an empty cell was not asked."""
        flags = np.stack([self._marks(name) for name in self.mapping.labels], axis=1)
        if not (flags == 0).any():  # where nobody ever says no, nothing is a no
            flags[flags == NOT_ASKED] = 0
        names = plain_names(self.mapping.labels, SAID_PREFIXES)
        self.answers.add_marks(self.rows, list(self._who()), flags, names)

    def _marks(self, name: str) -> npt.NDArray[np.int8]:
        """Return a column of votes: 1, 0, or -1 where there is none."""
        column = self.table.column(name).combine_chunks()
        column = column.cast(pa.string()) if pa.types.is_null(column.type) else column
        encoded = column.dictionary_encode()
        known = [self._mark(value) for value in encoded.dictionary.to_pylist()]
        codes = encoded.indices.fill_null(len(known)).to_numpy(zero_copy_only=False)
        nothing = 0 if self.mapping.label_style == "tick" else NOT_ASKED
        marks: npt.NDArray[np.int8] = np.array([*known, nothing], np.int8)[codes]
        for i in np.flatnonzero(marks == UNREADABLE).tolist():
            rule, fix = "votes must be 0/1, -1/1 or true/false", "Correct the cell."
            is_probable = self.mapping.label_style == "probability"
            rule = "probabilities must be between 0 and 1" if is_probable else rule
            value = column[i].as_py()
            self.findings.add(rule, fix, fatal=True, row=i + 1, column=name, value=value)
        return marks

    def _mark(self, value: Any) -> int:
        if self.mapping.label_style == "tick":
            return int(self.names.says_something(value))
        if not self.names.says_something(value):
            return NOT_ASKED
        if self.mapping.label_style == "uncertain":
            said = str(value).strip().casefold()
            mark = 1 if said in UNCERTAIN else parse_flag(said)
            return UNREADABLE if mark is None else mark
        if self.mapping.label_style == "probability":
            try:
                number = float(value)
            except ValueError:
                return UNREADABLE
            return int(number >= PROBABLE) if 0 <= number <= 1 else UNREADABLE
        marks = parse_marks(value)
        if not marks:
            return UNREADABLE
        self.again += len(marks) > 1
        return int(2 * sum(marks) >= len(marks))

    def _people(self) -> None:
        """A row is an item, with a column of labels per source, or one per source and label."""
        sources = self.mapping.sources
        if self.mapping.layout == "delimited":
            for at, column in enumerate(self.mapping.labels):
                cells = zip(self._people_of(at), cells_of(self.table.column(column)), strict=True)
                for i, (who, cell) in enumerate(cells):
                    if self.names.says_something(cell):
                        self._add(i, who, cell, i, column)
            return
        labels, names = people_labels(self.mapping), self._stated()
        for who in dict.fromkeys(sources):
            marks = np.full((len(self.rows), len(names)), NOT_ASKED, np.int8)
            for column, owner, label in zip(self.mapping.labels, sources, labels, strict=True):
                if owner == who:
                    marks[:, names.index(label)] = self._marks(column)
            people = self._people_of(sources.index(who))
            self.answers.add_marks(np.arange(len(marks)), people, marks, names)

    def _people_of(self, at: int) -> list[str]:
        """Return who speaks in a column of labels, by row: one for all, or who is named beside."""
        seat = self.mapping.sources[at]
        if not self.mapping.named_in:
            return [seat] * len(self.rows)
        cells = cells_of(self.table.column(self.mapping.named_in[at]))
        named = ("" if cell is None else str(cell).strip() for cell in cells)
        return [_plain_number(name) if name else SEAT.format(seat) for name in named]

    def _cells(self) -> None:
        """A cell holds the answers of all sources."""
        mapping, column = self.mapping, self.mapping.labels[0]
        beside = cells_of(self.table.column(mapping.source)) if mapping.source else iter(())
        for i, cell in enumerate(cells_of(self.table.column(column))):
            who = next(beside, None)
            try:
                found = list(answers_of(cell, str(mapping.answers), self.names, who, i))
            except ValueError as error:
                rule = f"a cell must hold answers ({mapping.answers}): {error}"
                fix = "Correct it, or state `answers` in the mapping (--mapping)."
                self.findings.add(rule, fix, fatal=True, row=i + 1, column=column, value=cell)
                continue
            for source, yes, no in found:
                self.answers.add(int(self.rows[i]), _plain_number(source), yes, no)

    def _counts(self) -> None:
        """A row is an item, a column says how many chose its label."""
        names = plain_names(self.mapping.labels, SAID_PREFIXES)
        columns = [cells_of(self.table.column(name)) for name in self.mapping.labels]
        for i, cells in enumerate(zip(*columns, strict=True)):
            counts = dict(zip(names, map(_whole, cells), strict=True))
            try:
                found = list(answers_of(counts, "counts", self.names, None, i))
            except ValueError as error:
                rule, fix = f"cells must count who chose a label: {error}", "Correct the row."
                self.findings.add(rule, fix, fatal=True, row=i + 1, value=str(list(cells)))
                continue
            for source, yes, no in found:
                self.answers.add(i, source, yes, no)

    def _shares(self) -> None:
        """A row is an item, a column says which share of the people chose its label, or how many.

        Nobody knows who they are: ten seats speak for them, or as many as the most that chose a
        label, and who says what changes by row.
        """
        names, style = plain_names(self.mapping.labels, SAID_PREFIXES), self.mapping.label_style
        most = {"share": 1, "percent": 100}.get(style, MAX_SEATS)
        columns = np.stack([self._share(name, most) for name in self.mapping.labels], axis=1)
        seats, whole = SEATS, most
        if style == "votes":
            seats = whole = max(1, int(np.nanmax(columns, initial=0)))
        for i, shares in enumerate(columns):
            asked = np.flatnonzero(~np.isnan(shares)).tolist()
            yes = np.rint(seats * np.nan_to_num(shares) / whole).astype(int)
            turn = np.random.default_rng(i).permutation(seats).tolist()
            for seat, at in enumerate(turn):
                said = [names[j] for j in asked if at < yes[j]]
                rest = None if len(asked) == len(names) else [names[j] for j in asked]
                self.answers.add(i, SEAT.format(seat + 1), said, rest)

    def _share(self, name: str, most: int) -> npt.NDArray[np.float64]:
        shares = np.full(self.table.num_rows, np.nan)
        for i, cell in enumerate(cells_of(self.table.column(name))):
            if not self.names.says_something(cell):
                continue
            try:
                shares[i] = float(cell)
            except (TypeError, ValueError):
                shares[i] = -1
            is_count = self.mapping.label_style == "votes"
            if not 0 <= shares[i] <= most or (is_count and shares[i] % 1):
                what = "counts of people must be whole numbers" if is_count else "shares must be"
                rule, fix = f"{what} between 0 and {most}", "Correct the cell."
                self.findings.add(rule, fix, fatal=True, row=i + 1, column=name, value=cell)
                shares[i] = 0
        return shares

    def _long(self) -> None:
        """A row has an item and one label; perhaps a source, and whether it offers the label."""
        mapping, told = self.mapping, self.mapping.labels[0 if self.mapping.label_after else 1 :]
        values = self._marks(told[0]) if told else None
        lists_no = values is not None and bool((values == 0).any())
        who = self._who() if mapping.source else iter([""] * len(self.rows))
        for i, (row, source, cell) in enumerate(
            zip(self.rows.tolist(), who, self.long_labels, strict=True)
        ):
            offered = values is None or values[i] == 1
            names = self._named(cell, i)
            if not mapping.source:
                self.answers.add(row, "", names if offered else ())
                self.answers.labels.numbers(names)  # one that is never offered is a label too
            elif values is None or not lists_no:
                self.answers.add(row, source, names if offered else ())
            elif values[i] >= 0:
                self.answers.add(row, source, names if offered else (), () if offered else names)

    def _named(self, cell: Any, i: int) -> list[str]:
        if cell is None or str(cell) == "":
            return []
        try:
            return self.names(cell if self.mapping.answers == "objects" else [str(cell)])
        except ValueError:
            return []


def _whole(cell: Any) -> Any:
    """Return a count written as text as a number; what is none is returned as it is."""
    if isinstance(cell, str):
        return int(cell) if cell.strip().isdecimal() else None if not cell.strip() else cell
    return cell


def _plain_number(text: str) -> str:
    """Write `17.0` as `17`: a column of numbers with empty cells has fractions."""
    return text[:-2] if text.endswith(".0") and text[:-2].isdecimal() else text
