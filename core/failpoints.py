"""Named points at which a test kills the process, to see what a crash there leaves behind.

`PLAIN_FAILPOINT=export.between_renames` ends the process with SIGKILL at that point, `…:3` when
it is reached for the third time. Without the variable a point costs one look-up.
"""

import os
import signal
from collections import Counter

_reached: Counter[str] = Counter()


def failpoint(name: str) -> None:
    """Kill this process here if a test asked for it."""
    wanted = os.environ.get("PLAIN_FAILPOINT")
    if not wanted:
        return
    at, _, times = wanted.partition(":")
    if at == name:
        _reached[name] += 1
        if _reached[name] == int(times or 1):
            os.kill(os.getpid(), getattr(signal, "SIGKILL", signal.SIGTERM))
