"""The `plain` command: parse, call, print. Exit 0 when all is well, 2 on bad input."""

import sys

import typer

from core.cli import app as front_end
from core.cli import bench, data, review, runs, tune
from core.cli.screen import show_error
from core.errors import PlainError

app = typer.Typer(
    help="Find out which candidate labels are true.", no_args_is_help=True, add_completion=False
)
front_end.add_to(app)
data.add_to(app)
runs.add_to(app)
review.add_to(app)
tune.add_to(app)
app.add_typer(bench.app, name="bench")


def main() -> None:
    """Run the command line; a `PlainError` becomes a message and exit code 2."""
    try:
        app()
    except PlainError as error:
        show_error(error)
        sys.exit(2)
