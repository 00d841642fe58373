"""An executor of coarse tasks without a cluster."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from core.cluster.executors import Between, Item, Task, run_task


class LocalExecutor:
    """Runs tasks in this process, one after another, divided as for so many workers."""

    def __init__(self, folder: Path, n_workers: int = 1) -> None:
        self.folder, self.n_workers = folder, n_workers

    def map(
        self, function: Task, items: Iterable[Item], stage: str, between: Between = None
    ) -> Iterator[Any]:
        for item in items:
            if between is not None:
                between()
            yield run_task(function, item)
