"""Work in processes of their own: they outlive who started them and leave the screen quick."""

import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from time import sleep, time

import filelock

NICENESS = 19
"""Of background work; PLAIN_NICENESS in the environment overrides."""

QUIET_SECONDS = 0.3
"""How long work rests while somebody waits for a screen."""

WORK_SECONDS = 0.1
"""How long it works before it rests again, however many people press however often."""

_THREADS = ("PLAIN_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


def start(*command: str, log: Path, threads: int | None = None) -> "subprocess.Popen[bytes]":
    """Start `python -m core` with a command, on so many threads, its words added to a log."""
    count = os.environ.get("PLAIN_THREADS", str(threads or n_threads()))
    limits = {**dict.fromkeys(_THREADS, count), "OMP_WAIT_POLICY": "PASSIVE"}
    with log.open("ab") as words:
        return subprocess.Popen(
            [sys.executable, "-m", "core", *command],
            stdin=subprocess.DEVNULL,
            stdout=words,
            stderr=words,
            env={**os.environ, **limits},
            start_new_session=True,
            close_fds=True,
        )


def give_way() -> None:
    """Have this process run only when nothing that people wait for does."""
    if hasattr(os, "nice"):
        os.nice(int(os.environ.get("PLAIN_NICENESS", NICENESS)))


def ask_for_quiet(workspace: Path) -> None:
    """Have the runs of a workspace rest for a moment: somebody waits for a screen."""
    with suppress(OSError):
        (workspace / "quiet").touch()


class Rest:
    """The moments of rest of a run; giving way alone leaves it the processor's caches."""

    def __init__(self, workspace: Path) -> None:
        self._asked = workspace / "quiet"
        self._next = 0.0

    def take(self) -> None:
        """Return when the moment that was asked for is over; at once without one."""
        begin = now = time()
        if begin < self._next:
            return
        while now - begin < QUIET_SECONDS and 0 <= now - self._when() < QUIET_SECONDS:
            sleep(0.02)
            now = time()
        if now > begin:
            self._next = now + WORK_SECONDS

    def _when(self) -> float:
        try:
            return self._asked.stat().st_mtime
        except OSError:
            return 0.0


def n_threads() -> int:
    """Return the threads of a run, at most 8; PLAIN_THREADS in the environment overrides."""
    return int(os.environ.get("PLAIN_THREADS", min(os.cpu_count() or 1, 8)))


def is_locked(path: Path) -> bool:
    """Whether a process holds this lock; the system frees it however that process dies."""
    if not path.exists():
        return False
    lock = filelock.FileLock(path)
    try:
        lock.acquire(timeout=0)
    except filelock.Timeout:
        return True
    lock.release()
    return False
