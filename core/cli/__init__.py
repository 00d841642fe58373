"""The commands of the engine: parse, call, print. Exit 0 when all is well, 2 on bad input.

`plain_app.cli` adds those of the app; together they are the script `plain`.
"""

import os
import sys

import typer

from core.cli import backup, bench, data, review, runs, tune, work
from core.cli.screen import Reports, show_error
from core.errors import PlainError

app = typer.Typer(
    help="Find out which candidate labels are true.", no_args_is_help=True, add_completion=False
)
data.add_to(app)
runs.add_to(app)
review.add_to(app)
tune.add_to(app)
backup.add_to(app)
work.add_to(app)
app.add_typer(bench.app, name="bench")


def main(reports: Reports | None = None) -> None:
    """Run the command line; a `PlainError` becomes a message and exit code 2.

    `reports` write the reports of a study and of compared methods; they draw, so the app has them.
    """
    # Heard when torch is loaded: its threads, waiting busily, take 3 times as long beside others.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    try:
        app(obj=reports)
    except PlainError as error:
        show_error(error)
        sys.exit(2)
