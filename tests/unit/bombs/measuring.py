"""Reads files in processes of their own, as `plain check` does.

    python tests/unit/bombs/measuring.py BYTES FILE ...

prints one line of JSON per file: what came of it, the most memory it took and how long. BYTES of
address space is all it may use; 0 is no limit.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple


class Outcome(NamedTuple):
    """What came of reading one file; `result` is read, refused, or the name of a bug."""

    result: str
    peak: int  # bytes
    seconds: float  # of the processor
    message: str


def measure(paths: Sequence[Path], *, memory: int | None = None) -> list[Outcome]:
    """Read and check each file in a process of its own, within so much address space."""
    root = Path(__file__).parents[3]
    command = [sys.executable, __file__, str(memory or 0), *map(str, paths)]
    env = {**os.environ, "PYTHONPATH": str(root)}
    done = subprocess.run(command, capture_output=True, text=True, env=env, check=True)
    return [Outcome(*json.loads(line)) for line in done.stdout.splitlines()]


def _look(path: Path) -> str:
    from core.data.checks import check, summarize
    from core.errors import PlainError
    from core.formats import read

    try:
        dataset = read(path).dataset
        check(dataset)
        summarize(dataset)
    except PlainError as error:
        cause = error.__cause__
        return f"refused|{error}" + (f" <- {cause!r}" if cause else "")
    return f"read|{dataset.candidates.shape} {dataset.features.shape}"


def _measured(path: Path, memory: int) -> Outcome:
    inlet, outlet = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(inlet)
        try:
            _limit(memory)
            said = _look(path)
        except BaseException as error:
            said = f"{type(error).__name__}|{error}"
        os.write(outlet, said.encode("utf-8", "replace")[:2_000])
        os._exit(0)
    os.close(outlet)
    with os.fdopen(inlet, "rb") as said:
        result, _, message = said.read().decode().partition("|")
    _, status, usage = os.wait4(child, 0)
    code = os.waitstatus_to_exitcode(status)
    seconds = usage.ru_utime + usage.ru_stime
    return Outcome(
        result if code == 0 else f"exit {code}", usage.ru_maxrss * 1024, seconds, message
    )


def _limit(memory: int) -> None:
    import resource

    resource.setrlimit(resource.RLIMIT_CPU, (60, 60))
    if memory:
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))


def _outcomes(paths: Sequence[str], memory: int) -> Iterator[Outcome]:
    from core import formats
    from core.data.checks import check  # noqa: F401  (loaded once, before the processes part)

    formats.formats()
    for path in paths:
        yield _measured(Path(path), memory)


if __name__ == "__main__":
    for outcome in _outcomes(sys.argv[2:], int(sys.argv[1])):
        print(json.dumps(outcome), flush=True)
