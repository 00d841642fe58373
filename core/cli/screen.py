"""What commands share: options, tables, progress, errors. Figures go to stdout, the rest beside."""

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from rich.text import Text

from core.cluster.address import require_installed
from core.cluster.progress import read_progress
from core.engine.events import Event
from core.errors import DatasetError, PlainError, Problem, grouped
from core.paths import REPORT, require_replaceable

if TYPE_CHECKING:
    from core.engine.config import PlainConfig

out = Console()
log = Console(stderr=True)


class Reports(NamedTuple):
    """What writes reports as HTML."""

    study: Callable[..., None]  # of a workspace, a study's id, to a file
    methods: Callable[..., None]  # see `plain_app.method_report.write`


def check_report(context: typer.Context, target: Path | None, command: str) -> None:
    """Refuse before any work a report that nobody draws, or that has another file's name."""
    if target is None:
        return
    if context.obj is None:
        raise PlainError("This program draws no reports.", hint=f"Use the command `{command}`.")
    require_replaceable(target, REPORT)


JsonFlag = Annotated[bool, typer.Option("--json", help="Print figures as JSON.")]
Preset = Annotated[str, typer.Option(help="studio or paper.")]
Force = Annotated[bool, typer.Option("--force", help="Replace files that exist.")]
Settings = Annotated[
    list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="Change a setting.")
]
ExpectFalse = Annotated[
    str | None,
    typer.Option("--expect-false", help="Share of false candidates you expect: 5% or 5-20%."),
]
Cluster = Annotated[
    str | None,
    typer.Option(
        "--cluster",
        metavar="ADDRESS",
        help="Scheduler of a dask cluster that takes part of the work: tls://HOST:PORT, or "
        "tcp://127.0.0.1:PORT on this machine.",
    ),
]
DEFAULT_WORKSPACE = Path("plain-workspace")
WorkspaceFolder = Annotated[
    Path, typer.Option("--workspace", envvar="PLAIN_WORKSPACE", help="Folder of data and runs.")
]


MethodName = Annotated[
    str | None,
    typer.Option("--method", help="Another method instead of a preset; --set gives its settings."),
]


def chosen_config(
    preset: str,
    method: str | None,
    changes: list[str] | None,
    expect_false: str | None,
    cluster: str | None = None,
) -> "PlainConfig":
    """Return the settings that the options ask for."""
    from core.engine.config import PlainConfig
    from core.methods.choice import method_config

    settings = {**parse_settings(changes), **parse_expectation(expect_false)}
    settings |= on_cluster(cluster)
    if method is None:
        return PlainConfig.preset(preset, **settings)
    return method_config(method, settings)


def on_cluster(address: str | None) -> dict[str, Any]:
    """Return the setting that a scheduler's address is, where there is one."""
    if address is None:
        return {}
    require_installed()
    return {"cluster": address}


def cluster_address(given: str | None) -> str | None:
    """Return the address of a scheduler that may be used; none where none is given."""
    from core.engine.config import PlainConfig

    return PlainConfig(**on_cluster(given)).cluster


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


def parse_expectation(text: str | None) -> dict[str, Any]:
    """Return an expected share or range of false candidates as a setting."""
    if text is None:
        return {}
    try:
        parts = [float(part.strip().rstrip("%")) for part in text.split("-")]
    except ValueError:
        parts = []
    if not 1 <= len(parts) <= 2:
        raise PlainError("An expected share reads 5% or 5-20%.", f"Got {text!r}.")
    scale = 100 if "%" in text or max(parts) > 1 else 1
    shares = tuple(part / scale for part in parts)
    return {"expected_false": shares if len(shares) == 2 else shares[0]}


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


def problem_table(problems: Iterable[Problem], *, every: bool = False) -> Table:
    """Return a table of problems, the fatal first; those that say the same as one, unless `every`.

    Each is one sentence across the screen: columns for its parts would wrap every one of them.
    """
    ordered = sorted(problems if every else grouped(problems), key=lambda one: not one.fatal)
    rows = [
        (
            "must be fixed" if one.fatal else "look",
            f"{one.count:,} ×" if one.count > 1 else "",
            _sentence(one),
        )
        for one in ordered
    ]
    if not any(times for _, times, _ in rows):
        return table("", ("", ""), [(kind, what) for kind, _, what in rows])
    return table("", ("", "", ""), rows)


def _sentence(one: Problem) -> str:
    about = [part for part in (_place(one), one.value and f"found {one.value}") if part]
    return one.message + (f" ({'; '.join(about)})" if about else "") + f". {one.fix}"


def _place(one: Problem) -> str:
    places = (("row", one.row), ("column", one.column))
    return ", ".join(f"{name} {at}" for name, at in places if at is not None)


@contextmanager
def working(what: str) -> Iterator[None]:
    """Show that something is going on that has no countable steps."""
    with log.status(what):
        yield


@contextmanager
def bytes_progress(what: str) -> Iterator[Callable[[int, int], None]]:
    """Give a function that shows how many bytes are done, of how many."""
    columns = (TextColumn(what), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=log, transient=True) as progress:
        task = progress.add_task(what, total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)


class _WorkersColumn(ProgressColumn):
    """What the workers of a cluster have done, as their run writes it down."""

    max_refresh = 1.0

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = folder

    def render(self, task: Task) -> Text:
        found = read_progress(self._folder)
        return Text("" if found is None else found.sentence, style="dim")


@contextmanager
def training_progress(
    n_epochs: int, cluster_folder: Path | None = None
) -> Iterator[Callable[[Event], None]]:
    """Give a function that shows events of a training as a live progress bar.

    `cluster_folder` is that of a run on a cluster, whose workers are shown too.
    """
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[facts]}"),
        *([] if cluster_folder is None else [_WorkersColumn(cluster_folder)]),
    )
    with Progress(*columns, console=log) as progress:
        task = progress.add_task("Loading the engine", total=n_epochs, facts="")

        def show(event: Event) -> None:
            if event.kind == "run_started":
                progress.update(task, description="Building graphs")
            elif event.kind == "graphs_built":
                progress.update(
                    task, description="Training", facts=f"neighbours: {event.search_note}"
                )
            elif event.kind == "epoch":
                facts = f"loss {event.loss:.3f}  {event.cells_changed:,} cells changed sides"
                facts += f"  AUC {event.metrics['auc']:.3f}" if event.metrics else ""
                progress.update(task, completed=event.epoch, facts=facts)
            else:
                progress.update(task, description=event.state.capitalize())

        yield show


def _is_number(cell: str) -> bool:
    return bool(cell) and all(character in "0123456789.,%+-±e×sGB " for character in cell)
