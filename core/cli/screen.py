"""What commands share: options, tables, progress, errors. Figures go to stdout, the rest beside."""

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from rich.text import Text

from core.errors import DatasetError, PlainError, Problem
from core.events import Event

out = Console()
log = Console(stderr=True)

JsonFlag = Annotated[bool, typer.Option("--json", help="Print figures as JSON.")]
Preset = Annotated[str, typer.Option(help="studio or paper.")]
Force = Annotated[bool, typer.Option("--force", help="Replace files that exist.")]
Settings = Annotated[
    list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="Change a setting.")
]
DEFAULT_WORKSPACE = Path("plain-workspace")
WorkspaceFolder = Annotated[
    Path, typer.Option("--workspace", envvar="PLAIN_WORKSPACE", help="Folder of data and runs.")
]


def parse_settings(changes: list[str] | None) -> dict[str, Any]:
    """Return NAME=VALUE pairs as settings; values are JSON where they parse, "none" is none."""
    settings: dict[str, Any] = {}
    for change in changes or []:
        name, equals, value = change.partition("=")
        if not equals:
            raise PlainError("A setting must read NAME=VALUE.", f"Got {change!r}.")
        try:
            settings[name] = None if value.lower() == "none" else json.loads(value)
        except json.JSONDecodeError:
            settings[name] = value
    return settings


def table(title: str, header: Iterable[str], rows: Iterable[Iterable[Any]]) -> Table:
    """Return a table; numbers stand right. Cells are data: nothing in them is markup."""
    header = list(header)
    made = Table(
        title=Text(title) if title else None,
        title_justify="left",
        header_style="bold",
        show_header=any(header),
    )
    cells = [[str(cell) for cell in row] for row in rows]
    for at, name in enumerate(header):
        numeric = bool(cells) and all(_is_number(row[at]) for row in cells)
        made.add_column(Text(name), justify="right" if numeric else "left", overflow="fold")
    for row in cells:
        made.add_row(*(Text(cell) for cell in row))
    return made


def print_json(value: Any) -> None:
    print(json.dumps(value, ensure_ascii=False))


def show_error(error: PlainError) -> None:
    """Print an error, with a table of its problems where it has some."""
    log.print(Text(error.title, style="bold red"))
    if isinstance(error, DatasetError):
        log.print(problem_table(error.problems))
    elif error.detail:
        log.print(Text(error.detail))
    if error.hint:
        log.print(Text(error.hint, style="dim"))


def problem_table(problems: Iterable[Problem]) -> Table:
    kinds = {True: "must be fixed", False: "worth a look"}
    ordered = sorted(problems, key=lambda problem: not problem.fatal)
    rows = [
        (kinds[one.fatal], *map(_blank, (one.row, one.column, one.message, one.value, one.fix)))
        for one in ordered
    ]
    return table("", ("", "row", "column", "what", "found", "what to do"), rows)


@contextmanager
def working(what: str) -> Iterator[None]:
    """Show that something is going on that has no countable steps."""
    with log.status(what):
        yield


@contextmanager
def training_progress(n_epochs: int) -> Iterator[Callable[[Event], None]]:
    """Give a function that shows events of a training as a live progress bar."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[facts]}"),
    )
    with Progress(*columns, console=log) as progress:
        task = progress.add_task("Loading the engine", total=n_epochs, facts="")

        def show(event: Event) -> None:
            if event.kind == "run_started":
                progress.update(task, description="Building graphs")
            elif event.kind == "graphs_built":
                progress.update(task, description="Training")
            elif event.kind == "epoch":
                facts = f"loss {event.loss:.3f}  {event.cells_changed:,} cells changed sides"
                facts += f"  AUC {event.metrics['auc']:.3f}" if event.metrics else ""
                progress.update(task, completed=event.epoch, facts=facts)
            else:
                progress.update(task, description=event.state.capitalize())

        yield show


def _blank(value: Any) -> str:
    return "" if value is None else str(value)


def _is_number(cell: str) -> bool:
    return bool(cell) and all(character in "0123456789.,%+-±e×sGB " for character in cell)
