"""Files of runs that a child process of this server makes when somebody first wants them."""

import subprocess
import threading
from pathlib import Path
from typing import Literal

from core.runs import processes as background
from plain_app.services.workspace import workspace


class MadeByChild:
    """A file in the folder of every run, made by `python -m core <command> RUN`.

    With `one_at_a_time`, who wants that of another run asks again until it is that one's turn.
    """

    def __init__(self, name: str, command: str, log: str, *, one_at_a_time: bool = False) -> None:
        self._name, self._command, self._log = name, command, log
        self._one_at_a_time = one_at_a_time
        self._children = dict[Path, "subprocess.Popen[bytes]"]()
        self._lock = threading.Lock()  # two sessions may want it at once

    def status(self, run_id: str) -> Literal["there", "working", "failed"]:
        """Have the file made unless that was done; tell how it stands."""
        folder = workspace().runs.folder(run_id)
        made = folder / self._name
        if made.exists():
            return "there"
        with self._lock:
            others = (one.poll() is None for one in self._children.values())
            if folder not in self._children and not (self._one_at_a_time and any(others)):
                command = (self._command, run_id, "--workspace", str(workspace().folder))
                self._children[folder] = background.start(*command, log=folder / self._log)
            child = self._children.get(folder)
        if child is None or child.poll() is None:
            return "working"
        return "there" if made.exists() else "failed"  # it may have ended just now
