"""Who said what, as files tell it: cells that hold the answers of several sources, made into votes.

Owns how such cells are spelled, and the words that stand for no label. Which column of a table
holds them belongs to `people`; rows of a table that are one item belong to `folding`.
"""

import ast
import json
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import compress
from math import inf
from typing import Any

import numpy as np
import numpy.typing as npt

from core.data.votes import Votes
from core.formats.shared.answer_texts import counts_in, parts_of, who_said
from core.formats.shared.cells import MAX_LIST_TEXT, parse_flag, parse_names, plain_key
from core.formats.shared.findings import Findings
from core.formats.shared.label_sets import LabelSets
from core.formats.shared.limits import check_size
from core.formats.shared.mapping import ColumnMapping

LABEL_KEYS = (  # as `plain_key` writes them
    *("label", "labels", "annotation", "annotations", "choice", "choices", "answer", "answers"),
    *("category", "categories", "class", "classes", "classname", "labelname", "tags", "value"),
    *("vote", "emotion", "emotions", "response", "judgment", "judgement", "rating", "sentiment"),
)
SOURCE_KEYS = (
    *("annotatorid", "annotator", "raterid", "rater", "workerid", "worker", "completedby"),
    *("userid", "user", "username", "useremail", "author", "annotatoremail", "labelerlogin"),
    *("coder", "judge", "labeler", "labeller", "reviewer", "expert", "source"),
    *("model", "modelversion", "name", "id", "by", "createdby", "participant", "participantid"),
)
DEPTH = 5  # objects within objects that are looked through for a label
MAX_SEATS = 1000  # of a count of answers: beyond, they are a histogram and not people
MAX_SOURCES = 2**16  # of `Votes`
SEAT = "answer {}"
SCORED = "scores"  # who gave labels their scores
PROBABLE = 0.5  # a probability from here on is a yes


class NameReader:
    """Cells of label names: split, numbers made into names, words for no label left out."""

    def __init__(self, mapping: ColumnMapping, findings: Findings) -> None:
        self.delimiter, self._findings = mapping.delimiter, findings
        self._none = {word.casefold() for word in mapping.no_label}
        self._none -= {name.strip().casefold() for name in mapping.label_names}
        self._silent = {word.casefold() for word in mapping.not_asked}
        self._stated, self._first = mapping.label_names, mapping.numbered_from
        self._ignored: dict[str, int] = {}

    def __call__(self, cell: Any) -> list[str]:
        """Return the labels that a cell names; ValueError when it does not hold names."""
        names = []
        for name in parse_names(cell, self.delimiter):
            if name.strip().casefold() in self._none:
                self._ignored[name] = self._ignored.get(name, 0) + 1
            else:
                names.append(name if self._first is None else self._numbered(name))
        return names

    def says_something(self, cell: Any) -> bool:
        """Whether there is an answer at all; the word for no label is one, nothing is none."""
        if cell is None or cell != cell or str(cell).strip() == "":
            return False
        return not self._silent or str(cell).strip().casefold() not in self._silent

    def report_ignored(self, column: str) -> None:
        """Say which words were left out."""
        for word, count in self._ignored.items():
            rule = f"{word!r} is read as no label"
            fix = "If it is a label, state no_label=[] in the mapping (--mapping)."
            self._findings.add(rule, fix, column=column, value=f"{count:,} times")
        self._ignored = {}

    def _numbered(self, name: str) -> str:
        try:
            at = int(float(name)) - (self._first or 0)
        except (ValueError, OverflowError):
            return name
        return self._stated[at] if 0 <= at < len(self._stated) else name


class Answers:
    """Answers collected one by one. Names get numbers as they come."""

    def __init__(self) -> None:
        self.labels = LabelSets(0)
        self._sources: dict[str, int] = {}
        self._yes, self._no, self._answered = array("i"), array("i"), array("i")

    def add(
        self, row: int, source: str, yes: Iterable[str], no: Iterable[str] | None = None
    ) -> None:
        """Note an answer: about all labels, or about those in `yes` and `no` alone."""
        who = self._number(source)
        for label in self.labels.numbers(yes):
            self._yes.extend((row, label, who))
        if no is None:
            self._answered.extend((row, who))
        else:
            for label in self.labels.numbers(no):
                self._no.extend((row, label, who))
        self._check_size()

    def add_marks(
        self,
        rows: npt.NDArray[np.int64],
        sources: Sequence[str],
        marks: npt.NDArray[np.int8],
        names: Sequence[str],
    ) -> None:
        """Note many answers: of each row and source 1, 0 or less (not asked) for every label."""
        is_answer = np.any(marks >= 0, axis=1)
        rows, marks = rows[is_answer], marks[is_answer]
        who = np.array([self._number(one) for one in compress(sources, is_answer)], np.int64)
        whole = np.all(marks >= 0, axis=1)
        _extend(self._answered, rows[whole], who[whole])
        for votes, (i, j) in (
            (self._yes, np.nonzero(marks == 1)),
            (self._no, np.nonzero((marks == 0) & ~whole[:, None])),
        ):
            used = np.flatnonzero(np.bincount(j, minlength=len(names)))
            numbers = np.zeros(len(names), np.int64)
            numbers[used] = self.labels.numbers(names[at] for at in used.tolist())
            _extend(votes, rows[i], numbers[j], who[i])
        self._check_size()

    def _check_size(self) -> None:
        n_values = len(self._yes) + len(self._no) + len(self._answered)
        check_size(4 * n_values, "the list of all votes")

    def _number(self, source: str) -> int:
        who = self._sources.setdefault(source, len(self._sources))
        if who >= MAX_SOURCES:
            raise OverflowError
        return who

    @property
    def n_sources(self) -> int:
        return len(self._sources)

    def votes(self, n: int, label_names: Sequence[str]) -> Votes:
        """Return all answers as votes; who said yes and no to a cell said yes."""
        place = {name: j for j, name in enumerate(label_names)}
        to = np.array([place[name] for name in self.labels.names] or [0], np.int64)
        yes, no = (np.array(one, np.int64).reshape(-1, 3) for one in (self._yes, self._no))
        answered = np.array(self._answered, np.int64).reshape(-1, 2)
        for table in (yes, no):
            if len(table):
                table[:, 1] = to[table[:, 1]]
        order = sorted(self._sources)
        at = {name: k for k, name in enumerate(order)}
        moved = np.array([at[name] for name in self._sources] or [0], np.int64)
        for table in (yes, no, answered):
            if len(table):
                table[:, -1] = moved[table[:, -1]]
        no = no[~np.isin(_keys(no), _keys(yes))]
        whole = (answered[:, 0] << 32) | answered[:, 1]
        no = no[~np.isin((no[:, 0] << 32) | no[:, 2], whole)]
        tables = [one.astype(np.int32) for one in (yes, answered, no)]
        votes = Votes(tuple(order), tables[0], tables[1], tables[2], (n, len(label_names)))
        return votes.compact()


def _extend(values: "array[int]", *columns: npt.NDArray[Any]) -> None:
    values.frombytes(np.stack(columns, axis=1).astype(np.int32).tobytes())


def _keys(table: Any) -> Any:
    return (table[:, 0] << 40) | (table[:, 1] << 16) | table[:, 2]


# ------------------------------------------------------------------------ cells of many answers


def loaded(cell: Any) -> Any:
    """Return what a cell holds, which may be written as JSON or as Python writes lists."""
    if not isinstance(cell, str) or cell.strip()[:1] not in ("{", "["):
        return cell
    text = cell.strip()
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass
    try:
        return ast.literal_eval(text) if len(text) <= MAX_LIST_TEXT else cell
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        return cell


def answers_of(
    cell: Any, kind: str, names: NameReader, sources: Any = None, row: int = 0
) -> Iterator[tuple[str, list[str], list[str] | None]]:
    """Give source, yes and no of every answer in a cell; ValueError when it holds none such."""
    cell = loaded(cell)
    if cell is None or cell == "":
        return
    if kind == "by_source" and isinstance(cell, Mapping | str):
        for source, said in (who_said(cell) if isinstance(cell, str) else cell).items():
            if names.says_something(said):
                yield (str(source), *_said(said, names))
    elif kind == "by_label" and isinstance(cell, Mapping):
        for source, labels in _by_source(cell).items():
            yield (source, *_said(labels, names))
    elif kind == "counts" and isinstance(cell, Mapping | str):
        counts = counts_in(cell, names.delimiter) if isinstance(cell, str) else cell
        yield from _counted(counts, names, row)
    elif kind == "objects" and isinstance(cell, list | Mapping):
        yield from _objects(one_by_one(cell), names)
    elif kind == "parallel":
        yield from _parallel(cell, sources, names)
    elif kind == "scored":
        yield (SCORED, *_scored(cell, sources))
    elif kind == "lists" and isinstance(cell, list | str):
        for k, said in enumerate(cell.split(names.delimiter) if isinstance(cell, str) else cell):
            if names.says_something(said):
                yield (SEAT.format(k + 1), *_said(said, names))
    else:
        raise ValueError(f"not answers {kind}")


def _by_source(cell: Mapping[Any, Any]) -> dict[str, list[str]]:
    """Return `{"anna": ["sea"]}` for `{"sea": ["anna"]}`."""
    found: dict[str, list[str]] = {}
    for label, people in cell.items():
        if people is not None and not isinstance(people, list):
            raise ValueError("not a list of people")
        for who in people or ():
            found.setdefault(str(who), []).append(str(label))
    return found


def _said(said: Any, names: NameReader) -> tuple[list[str], list[str] | None]:
    """Return the labels of one answer: those named, or those marked 1 and those marked 0."""
    said = loaded(said)
    if isinstance(said, Mapping) and "choices" not in said:
        marks = {str(name): parse_flag(mark) for name, mark in said.items() if mark is not None}
        if None in marks.values():
            label = label_in(said)
            if label is not None and label is not said:
                return _said(label, names)
            raise ValueError("neither 0 nor 1")
        yes = [name for name, mark in marks.items() if mark]
        return yes, [name for name, mark in marks.items() if not mark]
    return names(said), None


def one_by_one(cell: Any) -> Any:
    """Return an object of lists, `{"label": […], "annotator_id": […]}`, as a list of objects."""
    if not isinstance(cell, Mapping):
        return cell
    lists = {key: value for key, value in cell.items() if isinstance(value, list)}
    n = max(map(len, lists.values()), default=0)
    whole = {key: value for key, value in lists.items() if len(value) == n}
    return [{key: value[k] for key, value in whole.items()} for k in range(n)]


def key_among(said: Mapping[Any, Any], keys: Iterable[str]) -> Any:
    """Return the key of an object that is the first of these, however it is spelled."""
    spelled = {plain_key(key): key for key in said}
    return next((spelled[key] for key in keys if key in spelled), None)


def label_in(said: Mapping[Any, Any], depth: int = DEPTH) -> Any:
    """Return what an answer says: its label, its 0/1 by label, or that of an object within it."""
    label = key_among(said, LABEL_KEYS)
    if label is not None:
        return said[label]
    source = key_among(said, SOURCE_KEYS)
    rest = {key: value for key, value in said.items() if key != source and value is not None}
    flat = {key: value for key, value in rest.items() if not isinstance(value, list | Mapping)}
    if len(flat) > 1 and all(isinstance(v, int) and v in (0, 1) for v in flat.values()):
        return flat
    inner = [one for value in rest.values() if isinstance(one := loaded(value), Mapping)]
    found = (label_in(one, depth - 1) for one in inner if depth)
    ticks = {key: value for key, value in flat.items() if isinstance(value, bool)}
    own = ticks if len(ticks) > 1 and depth == DEPTH else None  # is_hate beside an age
    return next((one for one in found if one is not None), own)


def _objects(
    cell: list[Any], names: NameReader
) -> Iterator[tuple[str, list[str], list[str] | None]]:
    for k, said in enumerate(cell):
        if said is None:
            continue
        if not isinstance(said, Mapping):
            raise ValueError("not an object")
        label, source = label_in(said), key_among(said, SOURCE_KEYS)
        if label is None:
            raise ValueError("an answer without a label")
        who = said[source] if source is not None else None
        if isinstance(who, Mapping):
            who = next(iter(who.values()), None)
        yield (SEAT.format(k + 1) if who is None else str(who), *_said(label, names))


def _scored(labels: Any, scores: Any) -> tuple[list[str], list[str]]:
    """Return the labels with a score from 0.5 on, and the others."""
    said, found = parts_of(labels), parts_of(loaded(scores))
    if len(said) != len(found):
        raise ValueError(f"{len(said)} labels with {len(found)} scores")
    yes = [str(one) for one, score in zip(said, found, strict=True) if float(score) >= PROBABLE]
    return yes, [str(one) for one in said if str(one) not in yes]


def _parallel(
    cell: Any, sources: Any, names: NameReader
) -> Iterator[tuple[str, list[str], list[str] | None]]:
    said, who = parts_of(cell), parts_of(loaded(sources))
    if len(said) != len(who):
        raise ValueError(f"{len(said)} answers of {len(who)} sources")
    for source, one in zip(who, said, strict=True):
        if names.says_something(one):
            yield (str(source), *_said(one, names))


def _counted(
    cell: Mapping[Any, Any], names: NameReader, row: int
) -> Iterator[tuple[str, list[str], list[str] | None]]:
    """Give each of the counted answers a seat.

    Nobody knows who sat where: which seats say what changes from row to row, so that no seat comes
    to stand for one opinion.
    """
    said = []
    for label, count in cell.items():
        if count is None:
            continue
        if not isinstance(count, int | float) or not 0 <= count < inf or count != int(count):
            raise ValueError("not a count")
        said += [label] * min(int(count), MAX_SEATS + 1)
        if len(said) > MAX_SEATS:
            raise ValueError(f"more than {MAX_SEATS} answers")
    order = np.random.default_rng(row).permutation(len(said))
    for seat, at in enumerate(order.tolist()):
        yield SEAT.format(seat + 1), names(str(said[at])), None


def spelled_out(votes: Votes, names: Sequence[str], start: int, stop: int) -> list[str]:
    """Every source's answer as JSON: its labels, or 1 and 0 where it was asked about some only."""
    said: list[dict[str, Any]] = [{} for _ in range(stop - start)]
    unlisted = not votes.yes[:, 1].size or len(np.unique(votes.yes[:, 1])) < len(names)
    whole = set(map(tuple, votes.answered.tolist()))
    for i, k in votes.answered.tolist():
        if start <= i < stop:
            said[i - start][votes.sources[k]] = []
    if unlisted and len(votes.answered):  # then one answer names all labels
        i, k = votes.answered[0].tolist()
        if start <= i < stop:
            said[i - start][votes.sources[k]] = dict.fromkeys(names, 0)
    for table, mark in ((votes.no, 0), (votes.yes, 1)):
        for i, j, k in table.tolist():
            if start <= i < stop:
                kind: Any = [] if (i, k) in whole else {}
                answer = said[i - start].setdefault(votes.sources[k], kind)
                if isinstance(answer, dict):
                    answer[names[j]] = mark
                elif mark:
                    answer.append(names[j])
    return [json.dumps(one, ensure_ascii=False) for one in said]
