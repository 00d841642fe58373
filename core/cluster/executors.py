"""Where coarse tasks run: on a cluster of dask.distributed.

A task is a function of a module of core and one item of plain values: paths, numbers, names.
Arrays go through files (`core.cluster.shared_arrays`). Every task is one thread's work and alone
in its process, so that its bits do not depend on where it runs.
"""

import os
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import rmtree
from typing import Any, Protocol

from threadpoolctl import threadpool_limits

from core.cluster.address import require_installed
from core.cluster.progress import Progress, ProgressFile

Item = dict[str, Any]
Task = Callable[[Item], Any]
Between = Callable[[], None] | None

_alone = threading.Lock()


class Executor(Protocol):
    """Runs tasks; `folder` is one that all workers see."""

    folder: Path

    @property
    def n_workers(self) -> int:
        """How many tasks run at once."""

    def map(
        self, function: Task, items: Iterable[Item], stage: str, between: Between = None
    ) -> Iterator[Any]:
        """Yield what the function returns of every item, in their order.

        `stage` names the work for who watches. `between` is called while results are waited for;
        if it raises, tasks that have not begun are dropped.
        """


def run_task(function: Task, item: Item) -> Any:
    """Run one task on one thread, alone in this process."""
    import torch

    with _alone, threadpool_limits(1):
        before = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            return function(item)
        finally:
            torch.set_num_threads(before)


@contextmanager
def open_executor(address: str | None, below: Path | None = None) -> Iterator[Executor | None]:
    """Give an executor on the cluster with this address; none without an address.

    Its folder is made below the one given, `PLAIN_CLUSTER_FOLDER` or the current one, and removed
    in the end; what each worker did is kept in `cluster.json` below the one given.
    """
    if address is None:
        yield None
        return
    require_installed()
    from core.cluster.dask_executor import DaskExecutor

    watch = ProgressFile(below) if below is not None else None
    with cluster_folder(below) as folder, DaskExecutor(address, folder, watch) as executor:
        yield executor


@contextmanager
def cluster_folder(below: Path | None = None) -> Iterator[Path]:
    """Give a folder below the one given, `PLAIN_CLUSTER_FOLDER` or the current one, for a while."""
    parent = below or Path(os.environ.get("PLAIN_CLUSTER_FOLDER", ".")).absolute()
    folder = Path(tempfile.mkdtemp(prefix=".cluster.tmp", dir=parent))
    try:
        yield folder
    finally:
        rmtree(folder, ignore_errors=True)


class Counted:
    """Counts the tasks of a stage by worker, for who watches."""

    def __init__(self, watch: Callable[[Progress], None] | None) -> None:
        self._watch, self._by_worker = watch, Counter[str]()

    def add(self, stage: str, done: int, total: int, worker: str) -> None:
        self._by_worker[worker] += 1
        if self._watch is not None:
            self._watch(Progress(stage, done, total, dict(self._by_worker)))
