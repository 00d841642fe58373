"""A real cluster on this machine: a scheduler and workers, each a process that can be killed."""

import json
import os
import signal
import subprocess
import sys
from contextlib import contextmanager, suppress
from pathlib import Path
from time import sleep

from real_runs import wait

TESTS = Path(__file__).parent


class DaskCluster:
    def __init__(self, folder: Path, protocol="tcp", port=0):
        self._folder, self.workers = folder, []
        where = ["--host", f"{protocol}://127.0.0.1", "--port", str(port)]
        self._scheduler_file = ["--scheduler-file", str(folder / "scheduler.json")]
        self.scheduler = self._start("scheduler", *self._scheduler_file, *where)
        wait(self._told)

    @property
    def address(self) -> str:
        return self._told()["address"]

    def _told(self):
        """What the scheduler wrote down; nothing while the file is not there, or not whole."""
        with suppress(OSError, ValueError):
            return json.loads((self._folder / "scheduler.json").read_text())

    def add_worker(self):
        alone = ("--nthreads", "1", "--no-nanny", "--local-directory", str(self._folder))
        self.workers.append(self._start("worker", *self._scheduler_file, *alone))
        return self.workers[-1]

    def _start(self, what, *arguments):
        command = [sys.executable, "-m", f"distributed.cli.dask_{what}", *arguments]
        command.append("--no-dashboard")
        found = os.pathsep.join([str(TESTS), str(TESTS.parent), os.environ.get("PYTHONPATH", "")])
        with open(self._folder / f"{what}.log", "ab") as log:
            environment = {**os.environ, "PYTHONPATH": found}
            return subprocess.Popen(command, stdout=log, stderr=log, env=environment)

    def close(self):
        for process in (*self.workers, self.scheduler):
            kill(process)


def kill(process):
    if process.poll() is None:
        os.kill(process.pid, signal.SIGKILL)
    process.wait()


@contextmanager
def dask_cluster(folder: Path, n_workers: int, **how):
    folder.mkdir(parents=True, exist_ok=True)
    cluster = DaskCluster(folder, **how)
    try:
        for _ in range(n_workers):
            cluster.add_worker()
        yield cluster
    finally:
        cluster.close()


def slow_square(item):
    """Tell that a worker is at it; whoever does it again is quick."""
    begun = Path(item["begun"])
    if item["number"] == 3 and not begun.exists():
        begun.touch()
        sleep(600)
    return item["number"] ** 2
