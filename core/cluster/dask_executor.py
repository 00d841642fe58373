"""Tasks on a cluster of dask.distributed.

Tasks of a worker that is lost run again on another, up to dask's `allowed-failures`. A scheduler
that is lost, or no worker that fits, is told as `ClusterUnavailable`: a run is then interrupted and
can be resumed.
"""

import warnings
from collections.abc import Iterable, Iterator
from concurrent.futures import CancelledError
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

from distributed import Client, KilledWorker, Security
from distributed.client import ClosedClientError
from distributed.comm import CommClosedError

import core
from core.cluster.executors import Between, Counted, Item, Task, run_task
from core.cluster.progress import ProgressFile
from core.errors import ClusterUnavailable

_WORKER_SECONDS = 20
_LOOK_SECONDS = 0.5
_RETRIES = 2
"""Of a task that raises: a file that is not yet seen, a disk that was full."""


class DaskExecutor:
    """Runs tasks on the workers of a scheduler."""

    def __init__(self, address: str, folder: Path, watch: ProgressFile | None = None) -> None:
        self.folder, self._address, self._counted = folder, address, Counted(watch)
        self._client = _connected(address)
        try:
            self._require_workers()
        except BaseException:
            self._client.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(OSError, RuntimeError):  # it is gone
            self._client.close(timeout=2)

    def __getstate__(self) -> dict[str, Any]:
        return {"folder": self.folder}  # a copy, in a model that was fitted, is closed

    @property
    def n_workers(self) -> int:
        with self._telling():
            return max(1, len(self._client.nthreads()))

    def map(
        self, function: Task, items: Iterable[Item], stage: str, between: Between = None
    ) -> Iterator[Any]:
        with self._telling():
            futures = [
                self._client.submit(_work, function, item, pure=False, retries=_RETRIES)
                for item in items
            ]
        try:
            for done, future in enumerate(futures, start=1):
                worker, result = self._result(future, between)
                self._counted.add(stage, done, len(futures), worker)
                yield result
        finally:
            with suppress(*_LOST):
                self._client.cancel([one for one in futures if not one.done()])

    def _result(self, future: Any, between: Between) -> tuple[str, Any]:
        while True:
            if between is not None:
                between()
            with self._telling():
                try:
                    found: tuple[str, Any] = future.result(timeout=_LOOK_SECONDS)
                except TimeoutError:
                    if not future.done():
                        continue
                    found = future.result()  # or it raises the task's own
                return found

    def _require_workers(self) -> None:
        """Refuse a cluster without workers, or whose workers cannot do the work."""
        try:
            self._client.wait_for_workers(1, timeout=_WORKER_SECONDS)
        except TimeoutError:
            hint = f"Start some: dask worker {self._address} --nthreads 1"
            raise ClusterUnavailable("The cluster has no workers.", self._address, hint) from None
        mark = self.folder / "mark"
        mark.touch()
        with self._telling():
            found = self._client.run(_introduce, str(mark), on_error="return")
        strange = {name: says for name, says in found.items() if says != (core.__version__, True)}
        if strange:
            lines = "\n".join(f"{name}: {_fault(says)}" for name, says in strange.items())
            hint = "Workers need the same program and must see this folder under the same name."
            raise ClusterUnavailable("Not every worker can do the work.", lines, hint)

    def _telling(self) -> "_Telling":
        return _Telling(self._address)


_LOST = (CancelledError, CommClosedError, ClosedClientError)


class _Telling:
    """Raises as `ClusterUnavailable` what dask says of a scheduler or workers that are lost."""

    def __init__(self, address: str) -> None:
        self._address = address

    def __enter__(self) -> None:
        return None

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if isinstance(error, KilledWorker):
            hint = "They may have too little memory. Give them more, then resume."
            detail = str(error)
            raise ClusterUnavailable(
                "A task lost one worker after another.", detail, hint
            ) from error
        if isinstance(error, _LOST):
            raise _gone(self._address, str(error)) from error


def _connected(address: str) -> Client:
    if address.startswith("tls://"):
        arguments = Security().get_connection_args("client")
        if arguments.get("ssl_context") is None:
            hint = "Set distributed.comm.tls.ca-file and .client.cert and .key in dask's settings."
            raise ClusterUnavailable("There is no certificate for the cluster.", address, hint)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # versions are compared below
            return Client(address, set_as_default=False)
    except OSError as error:
        raise _gone(address, str(error)) from error


def _gone(address: str, why: str) -> ClusterUnavailable:
    hint = "Start its scheduler, or check the address and the certificates; then resume."
    return ClusterUnavailable("The cluster does not answer.", f"{address}: {why}", hint)


def _fault(says: Any) -> str:
    if isinstance(says, BaseException):
        return f"{type(says).__name__}: {says}"
    version, sees = says
    return f"version {version}, the folder is {'seen' if sees else 'not seen'}"


def _introduce(mark: str) -> tuple[str, bool]:
    """Tell which program a worker has, and whether it sees the folder."""
    return core.__version__, Path(mark).exists()


def _work(function: Task, item: Item) -> tuple[str, Any]:
    from distributed import get_worker

    return str(get_worker().address), run_task(function, item)
