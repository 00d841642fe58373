"""What every worker has done, kept beside a run for whoever watches it."""

import json
import os
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import NamedTuple

NAME = "cluster.json"
_SECONDS = 0.5
_NAMED = 8
"""Workers that are named; of more, only how much they did is said."""


class Progress(NamedTuple):
    """The stage at work, how many of its tasks are done, and what each worker did in all."""

    stage: str
    done: int
    total: int
    workers: dict[str, int]

    @property
    def sentence(self) -> str:
        each = ", ".join(f"{name} {n:,}" for name, n in sorted(self.workers.items()))
        if len(self.workers) > _NAMED:
            least, most = min(self.workers.values()), max(self.workers.values())
            each = f"{len(self.workers):,} workers, {least:,} to {most:,} each"
        return f"{self.stage}: {self.done:,} of {self.total:,} tasks; done by worker: {each}"


class ProgressFile:
    """Writes progress down, at most every half second but for the last of a stage."""

    def __init__(self, folder: Path) -> None:
        self._path, self._next = folder / NAME, 0.0

    def __call__(self, progress: Progress) -> None:
        if monotonic() < self._next and progress.done < progress.total:
            return
        self._next = monotonic() + _SECONDS
        temporary = self._path.with_name(f".{NAME}.tmp")
        with suppress(OSError):  # a full disk ends the run where it matters
            temporary.write_text(json.dumps(progress._asdict()), encoding="utf-8")
            temporary.chmod(0o600)
            os.replace(temporary, self._path)


def read_progress(folder: Path) -> Progress | None:
    """Return what was written last; none where no cluster was used."""
    try:
        return Progress(**json.loads((folder / NAME).read_text("utf-8")))
    except (OSError, ValueError, TypeError):
        return None
