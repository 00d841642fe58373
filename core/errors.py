"""Everything a user can be told went wrong. Anything else that is raised is a bug.

A message says what must hold, what was found, and what to do about it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

_MANY = 3
"""Places of a repeated problem that are shown."""


@dataclass(frozen=True)
class Problem:
    """One thing about the input worth telling its owner; fatal ones make it unusable."""

    message: str
    fix: str
    fatal: bool = False
    row: int | str | None = None
    column: int | str | None = None
    value: str | None = None
    count: int = 1  # times it was found; more than 1 where the rest is counted, not listed
    repeats: str | None = None  # the message that the rest repeats

    def __str__(self) -> str:
        place = [
            f"{name} {at}"
            for name, at in (("row", self.row), ("column", self.column))
            if at is not None
        ]
        found = "" if self.value is None else f" (found {self.value})"
        return f"{', '.join(place) + ': ' if place else ''}{self.message}{found}. {self.fix}"


def grouped(problems: Iterable[Problem]) -> list[Problem]:
    """Return one problem for those that say the same, with a count and where it was met first."""
    groups: dict[tuple[str, str, bool], list[Problem]] = {}
    for one in problems:
        groups.setdefault((one.repeats or one.message, one.fix, one.fatal), []).append(one)
    return [_one_of(message, members) for (message, _, _), members in groups.items()]


def _one_of(message: str, members: Sequence[Problem]) -> Problem:
    first, count = members[0], sum(one.count for one in members)
    if count == 1:
        return first
    listed = [one for one in members if one.repeats is None]
    row, column = (_first_of([getattr(one, at) for one in listed]) for at in ("row", "column"))
    values = _first_of([one.value for one in listed])
    return replace(first, message=message, row=row, column=column, value=values, count=count)


def _first_of(places: Sequence[int | str | None]) -> str | None:
    """Return the first few different places, in a line."""
    known = list(dict.fromkeys(str(one) for one in places if one is not None))
    if not known:
        return None
    return ", ".join(known[:_MANY]) + (" …" if len(known) > _MANY else "")


class PlainError(Exception):
    """Base of all errors a user should see: a title, the detail, and a hint what to do."""

    def __init__(self, title: str, detail: str = "", hint: str = "") -> None:
        super().__init__(title, detail, hint)
        self.title, self.detail, self.hint = title, detail, hint

    def __str__(self) -> str:
        return "\n".join(part for part in (self.title, self.detail, self.hint) if part)


class DatasetError(PlainError, ValueError):
    """The input cannot be used; `problems` lists every reason at once.

    `mapping` is how a table's columns were understood, where that may be what is wrong.
    """

    def __init__(
        self,
        problems: Sequence[Problem],
        title: str = "This data cannot be used.",
        mapping: object = None,
    ) -> None:
        super().__init__(title, "\n".join(str(problem) for problem in problems))
        self.problems = tuple(problems)
        self.mapping = mapping


class ConfigError(PlainError, ValueError):
    """A hyper-parameter is out of its range, or unknown."""


class TrainingError(PlainError, RuntimeError):
    """A training cannot go on: values that are not finite, or a device that is not there."""


class StopTraining(Exception):  # noqa: N818 - a request, not an error
    """Raised between batches to end a training after its last whole epoch."""


class ExportError(PlainError):
    """A file cannot be written: the target exists, or is not writable."""


class StoreError(PlainError):
    """The workspace cannot be read or written, or was asked for what it must refuse."""


class StoreUnavailable(StoreError):  # noqa: N818
    """The disk or the database refuses for now: it is full, or read-only. Nothing was harmed."""


class DatabaseUnreachable(StoreUnavailable):
    """The database does not answer, or is locked; it may in a moment."""


class ClusterUnavailable(StoreUnavailable):
    """The cluster does not answer or cannot do the work; a run on it waits to be resumed."""


class FilesElsewhere(StoreError):  # noqa: N818
    """The files of a run or data set are on another machine."""


class ClaimLost(StoreError):  # noqa: N818
    """Another process has taken over the run, or it has ended."""


class RunNotFound(PlainError, LookupError):  # noqa: N818
    """No run has this id, or several begin with it."""


class RunEndedError(PlainError):
    """An ended run was to be changed."""


class DatasetNotFound(PlainError, LookupError):  # noqa: N818
    """The workspace has no data set with this fingerprint."""


class DatasetMismatch(PlainError):  # noqa: N818
    """The stored arrays are not the data their fingerprint names."""
