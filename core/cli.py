"""The `plain` command: parse, call, print. Exit 0 when all is well, 2 on bad input."""

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from core.errors import PlainError

app = typer.Typer(
    help="Find out which candidate labels are true.", no_args_is_help=True, add_completion=False
)
bench = typer.Typer(help="Measure speed and quality on this machine.", no_args_is_help=True)
app.add_typer(bench, name="bench")

_screen = Console()
_log = Console(stderr=True)

JsonFlag = Annotated[bool, typer.Option("--json", help="Print figures as JSON.")]
DataFolder = Annotated[Path | None, typer.Option(help="Folder of benchmark .npz files.")]
ReportFile = Annotated[Path | None, typer.Option("--write", help="Markdown file to update.")]
DEFAULT_WORKSPACE = Path("plain-workspace")
WorkspaceFolder = Annotated[
    Path, typer.Option("--workspace", envvar="PLAIN_WORKSPACE", help="Folder of data and runs.")
]
Setting = Annotated[
    list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="Change a setting.")
]


def main() -> None:
    """Run the command line; a `PlainError` becomes a message and exit code 2."""
    try:
        app()
    except PlainError as error:
        _log.print(f"[bold red]{type(error).__name__}[/] ", end="")
        _log.print(str(error), markup=False, highlight=False)
        sys.exit(2)


@app.command()
def demo(
    preset: Annotated[str, typer.Option(help="studio or paper.")] = "studio",
    changes: Setting = None,
    as_json: JsonFlag = False,
) -> None:
    """Train on the embedded data and show what it finds out."""
    from core.config import PlainConfig
    from core.demo import load_demo
    from core.metrics import disambiguation_metrics

    config = PlainConfig.preset(preset, **parse_settings(changes or []))
    with _log.status("Composing 3,000 scenes of handwritten digits …"):
        data = load_demo()
    trainer = _train(config, data)
    assert data.truth is not None
    metrics = disambiguation_metrics(data.truth, data.candidates, trainer.confidences)
    if as_json:
        print(json.dumps({"fingerprint": data.fingerprint, "metrics": metrics}))
        return
    _screen.print(_demo_table(metrics))


@app.command(hidden=True)
def work(run: str, workspace: WorkspaceFolder = DEFAULT_WORKSPACE) -> None:
    """Work on a run as a background process."""
    import os

    from core import worker
    from core.store import Workspace

    if hasattr(os, "nice"):
        os.nice(worker.NICENESS)
    space = Workspace(workspace)
    try:
        worker.run_training(space, run, layout=True)
    finally:
        worker.tend(space)


@bench.command()
def speed(
    data: DataFolder = None,
    epochs: Annotated[int, typer.Option(help="Epochs of the whole-run comparison.")] = 30,
    write: ReportFile = None,
    as_json: JsonFlag = False,
) -> None:
    """Time graph, propagation and training beside a reference, and growth with size."""
    from core.bench import report
    from core.bench import speed as benchmark

    with _log.status("Measuring …") as status:
        result = benchmark.run(data, epochs, status.update)
    tables = report.speed_tables(result)
    _report("speed", tables, result, write, as_json)


@bench.command()
def quality(
    data: DataFolder = None,
    sets: Annotated[str, typer.Option(help="Comma-separated sets; all by default.")] = "",
    r: Annotated[str, typer.Option(help="False labels per row, comma-separated.")] = "1,2,3",
    folds: Annotated[int, typer.Option(min=2, help="Folds of the cross-validation.")] = 10,
    preset: Annotated[str, typer.Option(help="paper or studio.")] = "paper",
    seed: Annotated[int, typer.Option(help="Of folds, noise and training.")] = 0,
    write: ReportFile = None,
    as_json: JsonFlag = False,
) -> None:
    """Cross-validate PLAIN and its ablations on benchmark sets."""
    from core.bench import quality as benchmark
    from core.bench import report
    from core.bench.data import load_sets

    if data is None:
        raise PlainError("No data.", "The quality benchmark runs on files.", "Give --data FOLDER.")
    names = [name.strip() for name in sets.split(",") if name.strip()]
    noise = [int(part) for part in r.split(",")]
    chosen = load_sets(data, names or None)
    results = []
    with _log.status("Cross-validating …") as status:
        for result in benchmark.run(chosen, noise, folds, preset, seed, status.update):
            results.append(result)
            last = result["last"]["average_precision"]
            _log.print(
                f"{result['set']} r={result['r'] or 'own'} {result['variant']}: AP {last[0]:.3f}"
            )
    title = f"{folds}-fold cross-validation, preset `{preset}`, last epoch"
    _report(f"quality-{preset}", [(title, report.quality_table(results))], results, write, as_json)


def parse_settings(changes: list[str]) -> dict[str, Any]:
    """Return NAME=VALUE pairs as settings; values are JSON where they parse, "none" is none."""
    settings: dict[str, Any] = {}
    for change in changes:
        name, equals, value = change.partition("=")
        if not equals:
            raise PlainError("A setting must read NAME=VALUE.", f"Got {change!r}.")
        try:
            settings[name] = None if value.lower() == "none" else json.loads(value)
        except json.JSONDecodeError:
            settings[name] = value
    return settings


def _train(config: Any, data: Any) -> Any:
    """Train with a progress bar on the error stream; return the trainer."""
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[facts]}"),
    )
    with Progress(*columns, console=_log) as progress:
        task = progress.add_task("Loading the engine", total=config.epochs, facts="")
        from core.trainer import PlainTrainer

        trainer = PlainTrainer(config)
        for event in trainer.epochs(data):
            if event.kind == "run_started":
                progress.update(task, description="Building graphs")
            elif event.kind == "graphs_built":
                progress.update(task, description="Training")
            elif event.kind == "epoch":
                facts = f"loss {event.loss:.3f}  {event.cells_changed:,} cells changed sides"
                facts += f"  AUC {event.metrics['auc']:.3f}" if event.metrics else ""
                progress.update(task, completed=event.epoch, facts=facts)
    return trainer


def _demo_table(metrics: dict[str, float]) -> Any:
    from core.bench.report import rich_table

    rows = [
        ["what", "value"],
        ["labels as given: F1 against the truth", f"{metrics['candidate_f1']:.3f}"],
        ["labels kept at confidence > 0.5: F1", f"{metrics['f1']:.3f}"],
        ["true above false candidates, all cells (AUC)", f"{metrics['auc']:.3f}"],
        ["the same per label (macro AUC)", f"{metrics['macro_auc']:.3f}"],
        ["within an instance (average precision)", f"{metrics['instance_ap']:.3f}"],
    ]
    return rich_table("Which candidates are true?", rows)


def _report(
    name: str, tables: list[tuple[str, Any]], result: Any, write: Path | None, as_json: bool
) -> None:
    from core.bench import report

    if write:
        text = f"Measured on: {report.machine()}.\n\n{report.markdown(tables)}"
        report.write_section(write, name, text)
    if as_json:
        print(json.dumps(result))
        return
    for title, rows in tables:
        _screen.print(report.rich_table(title, rows))
