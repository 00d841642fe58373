"""Starts the program. Until the browser front end is here, that is the demo in the terminal."""

import sys

from core.cli import main as command_line


def main() -> None:
    """Run the demo."""
    sys.argv[1:] = ["demo", *sys.argv[1:]]
    command_line()
