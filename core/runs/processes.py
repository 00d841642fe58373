"""Work in processes of their own: they outlive who started them and keep the screen responsive."""

import ctypes
import os
import queue
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from time import monotonic, sleep

import filelock
import psutil

from core.store.permissions import open_private

NICENESS = 19
"""Of background work; PLAIN_NICENESS in the environment overrides."""

STANDBY_SECONDS = 1200.0
"""How long a process waits for a run."""

TRIM_SECONDS = 5.0
"""How often gaps in the heap are given back: .4 ms without any, 6 ms for 50 MB.

A server that three people review with, and five look at, has 30 MB of them after 20 s."""

_M_MMAP_THRESHOLD, _M_ARENA_MAX = -3, -8  # of malloc.h
_started: list["subprocess.Popen[bytes]"] = []
_THREADS = ("PLAIN_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


def start(
    *command: str, log: Path, threads: int | None = None, stdin: int = subprocess.DEVNULL
) -> "subprocess.Popen[bytes]":
    """Start `python -m core` with a command, on so many threads, its words added to a log."""
    count = os.environ.get("PLAIN_THREADS", str(threads or n_threads()))
    limits = {**dict.fromkeys(_THREADS, count), "OMP_WAIT_POLICY": "PASSIVE"}
    _started[:] = [child for child in _started if child.poll() is None]  # lets the others go
    with open_private(log, "ab") as words:
        child = subprocess.Popen(
            [sys.executable, "-m", "core", *command],
            stdin=stdin,
            stdout=words,
            stderr=words,
            env={**os.environ, **limits},
            start_new_session=True,
            close_fds=True,
        )
    _started.append(child)
    return child


class Standby:
    """A process that loads the engine ahead and waits to be told its run: seconds saved.

    It ends with the server, after some minutes without a run, or with the run it was given.
    """

    def __init__(self) -> None:
        self._workspace: Path | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._since = 0.0
        self._lock = threading.Lock()  # a server has many threads

    def open(self, workspace: Path) -> None:
        """Have a process ready for a workspace from now on; not if PLAIN_STANDBY is 0."""
        if os.environ.get("PLAIN_STANDBY") != "0":
            self._workspace = workspace
            self.renew()

    def renew(self) -> None:
        """Start another process where the last one was given a run, or has ended."""
        with self._lock:
            if self._workspace is None or self._is_ready():
                return
            command = ("stand-by", "--workspace", str(self._workspace))
            self._process = start(*command, log=Path(os.devnull), stdin=subprocess.PIPE)
            self._since = monotonic()

    def give(self, workspace: Path, run_id: str) -> "subprocess.Popen[bytes] | None":
        """Return the process that works on a run from now on, none if none is ready."""
        with self._lock:
            process = self._process if workspace == self._workspace and self._is_ready() else None
            if process is None or process.stdin is None:
                return None
            self._process = None
        try:
            with process.stdin as pipe:
                pipe.write(run_id.encode())
        except OSError:  # it has just ended
            return None
        return process

    def _is_ready(self) -> bool:
        is_young = monotonic() - self._since < STANDBY_SECONDS / 2
        return self._process is not None and is_young and self._process.poll() is None


standby = Standby()
"""Of this process; a server opens it."""


def await_run() -> str | None:
    """Return the run this process is given on its standard input; none after a while."""
    heard: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=lambda: heard.put(os.read(0, 1000)), daemon=True).start()
    try:
        return heard.get(timeout=STANDBY_SECONDS).decode().strip() or None
    except queue.Empty:
        return None


def end_of_log(path: Path, limit: int) -> str:
    """Return the last characters that processes added to a log; nothing where there is none."""
    return path.read_text("utf-8", "replace")[-limit:] if path.exists() else ""


def log_to(path: Path) -> None:
    """Add all further words of this process to a log."""
    with open_private(path, "ab") as words:
        for stream in (1, 2):
            os.dup2(words.fileno(), stream)


def lower_priority() -> None:
    """Have this process run only when nothing that people wait for does.

    Linux weighs sessions against each other where it groups them (sched_autogroup_enabled), and
    niceness only within one. A process of ours has a session of its own, which is made nice too.
    """
    niceness = int(os.environ.get("PLAIN_NICENESS", NICENESS))
    if hasattr(os, "nice"):
        os.nice(niceness)
        if os.getsid(0) == os.getpid():
            with suppress(OSError):
                Path("/proc/self/autogroup").write_text(str(niceness))


def return_memory() -> None:
    """Have memory of this process go back to the system when it is freed.

    glibc takes arrays of up to 32 MB from its heap once one of that size was freed, and has a heap
    for every few threads: what a server holds then grows for hours, in gaps it cannot use. So large
    arrays get memory of their own, and the gaps that smaller ones leave are given back regularly.
    """
    if not sys.platform.startswith("linux"):
        return
    library = ctypes.CDLL(None)
    if hasattr(library, "mallopt"):  # else another C library
        library.mallopt(_M_MMAP_THRESHOLD, 256 * 1024)
        library.mallopt(_M_ARENA_MAX, 4)
        threading.Thread(target=_trim_for_ever, args=(library,), daemon=True).start()


def _trim_for_ever(library: ctypes.CDLL) -> None:
    while True:
        sleep(TRIM_SECONDS)
        library.malloc_trim(0)


def identity(pid: int | None = None) -> tuple[int, float]:
    """Return id and start of a process, of this one unless another is named: ids are used again."""
    try:
        process = psutil.Process(pid)
        return process.pid, process.create_time()
    except psutil.NoSuchProcess:  # it has just ended
        return pid or 0, 0.0


def is_alive(pid: int | None, started: float | None) -> bool:
    """Whether a process of this machine is still the one that had this identity, and at work."""
    try:
        process = psutil.Process(pid or 0)
        is_same = abs(process.create_time() - (started or 0.0)) < 2.0  # clocks are set
        return bool(is_same and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.Error:
        return False


def n_threads() -> int:
    """Return the threads of a run, at most 8; PLAIN_THREADS in the environment overrides."""
    return int(os.environ.get("PLAIN_THREADS", min(os.cpu_count() or 1, 8)))


def is_locked(path: Path) -> bool:
    """Whether a process holds this lock; the system frees it however that process dies."""
    if not path.exists():
        return False
    lock = filelock.FileLock(path, mode=0o600)
    try:
        lock.acquire(timeout=0)
    except filelock.Timeout:
        return True
    lock.release()
    return False
