"""The command line without a process of its own, which takes seconds to load what it needs."""

import io
import sys
from contextlib import redirect_stderr, redirect_stdout
from subprocess import CompletedProcess
from unittest.mock import patch

from plain_app import cli


def plain(*arguments: str) -> CompletedProcess[str]:
    """Run the script `plain` in this process; only a `PlainError` ends it quietly."""
    out, err, code = io.StringIO(), io.StringIO(), 0
    argv = patch.object(sys, "argv", ["plain", *arguments])
    with argv, redirect_stdout(out), redirect_stderr(err):
        try:
            cli.main()
        except SystemExit as ended:
            code = int(ended.code or 0)
    return CompletedProcess(arguments, code, out.getvalue(), err.getvalue())
