"""What a reader has to say about a file: every problem at once, repeats capped.

Owns collecting and refusing. What is wrong with a data set as such belongs to `core.data.dataset`.
"""

from collections import Counter
from typing import NoReturn

from core.errors import DatasetError, Problem

MAX_REPEATS = 20
MAX_FATAL = 100_000

Place = int | str | None


class Findings:
    """Problems met while reading one file, in the order they were met."""

    def __init__(self) -> None:
        self._problems: list[Problem] = []
        self._counts: Counter[tuple[str, str, bool]] = Counter()
        self._n_fatal = 0

    def add(
        self,
        message: str,
        fix: str,
        *,
        fatal: bool = False,
        row: Place = None,
        column: Place = None,
        value: object = None,
    ) -> None:
        self._counts[message, fix, fatal] += 1
        self._n_fatal += fatal
        if self._counts[message, fix, fatal] <= MAX_REPEATS:
            found = None if value is None else shortened(value)
            self._problems.append(Problem(message, fix, fatal, row, column, found))
        if self.is_full:  # nobody would wait for the rest
            self.stop_if_fatal()

    @property
    def is_full(self) -> bool:
        return self._n_fatal > MAX_FATAL

    def problems(self) -> tuple[Problem, ...]:
        """Return what was found; more than 20 of a kind are counted, not listed."""
        more = [
            Problem(
                f"{count - MAX_REPEATS:,} more times: {message}",
                fix,
                fatal,
                count=count - MAX_REPEATS,
                repeats=message,
            )
            for (message, fix, fatal), count in self._counts.items()
            if count > MAX_REPEATS
        ]
        rule = f"reading stopped after {MAX_FATAL:,} problems"
        stopped = [Problem(rule, "Correct these first.", True)] if self.is_full else []
        return (*self._problems, *more, *stopped)

    def stop_if_fatal(self) -> None:
        """Raise a DatasetError with everything found when any of it is fatal."""
        if any(problem.fatal for problem in self._problems):
            raise DatasetError(self.problems())


def refuse(
    message: str,
    fix: str,
    *,
    row: Place = None,
    column: Place = None,
    value: object = None,
) -> NoReturn:
    """Raise a DatasetError with this one fatal problem."""
    found = None if value is None else shortened(value)
    raise DatasetError([Problem(message, fix, True, row, column, found)])


def shortened(value: object, length: int = 80) -> str:
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= length else text[: length - 1] + "…"
