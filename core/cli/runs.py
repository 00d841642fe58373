"""Commands on runs: train, watch, stop, resume, compare, export; and on the database."""

import signal
import threading
from pathlib import Path
from time import sleep
from typing import Annotated, Any

import typer

from core.cli.data import (
    Cut,
    FormatName,
    MappingFile,
    NewLabels,
    OutFile,
    Precision,
    TopK,
    parse_threshold,
    read_file,
    write_resolved,
)
from core.cli.screen import (
    DEFAULT_WORKSPACE,
    Force,
    JsonFlag,
    Preset,
    Settings,
    WorkspaceFolder,
    log,
    out,
    parse_settings,
    print_json,
    table,
    training_progress,
    working,
)
from core.errors import PlainError

RunId = Annotated[str, typer.Argument(metavar="RUN", help="A run's id, or how it begins.")]
runs = typer.Typer(help="List, show, compare, delete and restore runs.")


def add_to(app: typer.Typer) -> None:
    for command in (train, resume, pause, stop, export, backup, restore):
        app.command()(command)
    app.command("log")(show_log)
    for child in (work, stand_by, lay_out, keep_neighbors):
        app.command(hidden=True)(child)
    app.add_typer(runs, name="runs")


def train(
    file: Annotated[
        str | None, typer.Argument(metavar="FILE", help="A data file, or demo.")
    ] = None,
    preset: Preset = "studio",
    changes: Settings = None,
    workspace: WorkspaceFolder = DEFAULT_WORKSPACE,
    name: Annotated[str, typer.Option(help="What to call the run.")] = "",
    resume_run: Annotated[
        str | None, typer.Option("--resume", metavar="RUN", help="Go on with this run instead.")
    ] = None,
    reviewed_run: Annotated[
        str | None,
        typer.Option("--reviewed", metavar="RUN", help="Learn from the decisions on this run."),
    ] = None,
    background: Annotated[
        bool, typer.Option("--background", help="Start it and come back at once.")
    ] = False,
    instance_graph: Annotated[
        Path | None, typer.Option(help="Edges between instances: CSV or NPZ.")
    ] = None,
    label_graph: Annotated[Path | None, typer.Option(help="Edges between labels.")] = None,
    mapping: MappingFile = None,
    as_json: JsonFlag = False,
) -> None:
    """Train on a file, recorded in the workspace; Ctrl-C stops and keeps what was learned."""
    from core import results, worker
    from core.config import PlainConfig
    from core.graphs import read_instance_graph, read_label_graph

    space = _open(workspace)
    if reviewed_run is not None:
        run = worker.retrain(space, reviewed_run, name)
    elif resume_run is None:
        if file is None:
            raise PlainError("What shall be trained on?", hint="Give FILE, demo, or --resume RUN.")
        config = PlainConfig.preset(preset, **parse_settings(changes))
        result = read_file(file, mapping)
        dataset = result.dataset
        instances = read_instance_graph(instance_graph, dataset.ids) if instance_graph else None
        labels = read_label_graph(label_graph, dataset.label_names) if label_graph else None
        with working("Storing the data …"):
            fingerprint = space.add_dataset(dataset, Path(file).name, result.mapping)
        run = space.runs.create(fingerprint, config, name)
        results.give_graphs(space, run.id, instances, labels)
    else:
        run = space.runs.get(resume_run)
    if background:
        worker.launch(space, run.id)
        return print_json({"run": run.id}) if as_json else log.print(f"Run {run.id} is on its way.")
    _train_here(space, run)
    _show_run(space, run.id, as_json)


def resume(
    run: RunId, workspace: WorkspaceFolder = DEFAULT_WORKSPACE, background: bool = False
) -> None:
    """Go on with a paused or interrupted run."""
    from core import worker

    space = _open(workspace)
    found = space.runs.get(run)
    if found.state == "paused" and not worker.is_interrupted(space, found):
        space.runs.command(found.id, "resume")
        log.print(f"Run {found.id} goes on.")
    elif background:
        worker.launch(space, found.id)
        log.print(f"Run {found.id} is on its way.")
    else:
        _train_here(space, found)
        _show_run(space, found.id, as_json=False)


def pause(run: RunId, workspace: WorkspaceFolder = DEFAULT_WORKSPACE) -> None:
    """Hold a run that is at work; resume lets it go on."""
    space = _open(workspace)
    found = space.runs.get(run)
    space.runs.command(found.id, "pause")
    log.print(f"Run {found.id} pauses.")


def stop(run: RunId, workspace: WorkspaceFolder = DEFAULT_WORKSPACE) -> None:
    """End a run, keeping the results of its last whole epoch."""
    from core import worker

    space = _open(workspace)
    found = space.runs.get(run)
    worker.stop(space, found.id)
    log.print(f"Run {found.id} stops.")


def show_log(
    run: RunId,
    workspace: WorkspaceFolder = DEFAULT_WORKSPACE,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Until the run ends.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Print what a run told, and its worker's log."""
    space = _open(workspace)
    found, seq = space.runs.get(run), -1
    while True:
        ended = space.runs.get(found.id).state.is_ended
        for number, event in space.runs.events_after(found.id, seq):
            told = {"seq": number, **event.model_dump(mode="json")}
            print_json(told) if as_json else _print(event)
            seq = number
        if ended or not follow:
            break
        sleep(0.5)
    words = space.runs.folder(found.id) / "worker.log"
    if words.exists() and not as_json:
        out.print(words.read_text(errors="replace"), markup=False, highlight=False)


def export(
    run: RunId,
    target: OutFile,
    workspace: WorkspaceFolder = DEFAULT_WORKSPACE,
    cut: Cut = None,
    top_k: TopK = None,
    precision: Precision = None,
    allow_new_labels: NewLabels = False,
    format: FormatName = None,
    mapping: MappingFile = None,
    force: Force = False,
    as_json: JsonFlag = False,
) -> None:
    """Write the data of a run with its resolved labels, confidences and reasons."""
    from core.export import run_results
    from core.formats import ColumnMapping

    space = _open(workspace)
    found = space.runs.get(run)
    threshold = parse_threshold(cut, top_k, precision)
    results = run_results(space, found)
    made_by = {
        "config": found.config.model_dump(mode="json"),
        "run": found.id,
        "decisions": results.decisions,
    }
    columns = ColumnMapping.load(mapping) if mapping else results.mapping
    write_resolved(
        results.dataset,
        results.confidences,
        results.predictions,
        target,
        threshold=threshold,
        allow_new_labels=allow_new_labels,
        made_by=made_by,
        how={"format": format, "mapping": columns, "force": force},
        as_json=as_json,
    )


def backup(workspace: WorkspaceFolder = DEFAULT_WORKSPACE) -> None:
    """Copy the database of the workspace, dated."""
    from core.store import backup as make

    log.print(f"Copied to {make(_open(workspace))}")


def restore(
    copy: Annotated[Path, typer.Argument(metavar="COPY", help="A file made by plain backup.")],
    workspace: WorkspaceFolder = DEFAULT_WORKSPACE,
) -> None:
    """Put a copy in place of the database; the present one is kept beside it."""
    from core.store import restore as put_back

    log.print(f"Restored. The database that was there is kept at {put_back(workspace, copy)}")


def work(run: str, workspace: WorkspaceFolder = DEFAULT_WORKSPACE) -> None:
    """Work on a run as a background process."""
    from core import background

    background.give_way()
    _work(_open(workspace), run)


def stand_by(workspace: WorkspaceFolder = DEFAULT_WORKSPACE) -> None:
    """Load the engine, then work on the run that is named on standard input."""
    from core import background, worker

    background.give_way()
    worker.load_engine()
    run = background.await_run()
    if run is not None:
        space = _open(workspace)
        background.log_to(worker.log_of(space, run))
        _work(space, run)


def _work(space: Any, run: str) -> None:
    from core import results, worker

    try:
        worker.run_training(space, run)
    finally:
        worker.tend(space)
    results.lay_out(space, run)


def lay_out(run: str, workspace: WorkspaceFolder = DEFAULT_WORKSPACE) -> None:
    """Lay out the map of a run as a background process."""
    from core import background, results

    background.give_way()
    results.lay_out(_open(workspace), run)


def keep_neighbors(run: str, workspace: WorkspaceFolder = DEFAULT_WORKSPACE) -> None:
    """Search more neighbours for a run as a background process."""
    from core import background, results

    background.give_way()
    results.keep_neighbors(_open(workspace), run)


@runs.callback(invoke_without_command=True)
def list_runs(
    context: typer.Context,
    workspace: WorkspaceFolder = DEFAULT_WORKSPACE,
    as_json: JsonFlag = False,
) -> None:
    """List the runs of the workspace, the newest first."""
    if context.invoked_subcommand is not None:
        return
    space = _open(workspace)
    rows = [_facts(space, run) for run in space.runs.list()]
    if as_json:
        return print_json(rows)
    if not rows:
        return log.print("No runs yet. Start one with: plain train FILE")
    shown = ("run", "name", "data", "state", "epoch", "created")
    out.print(table("Runs", shown, [[row[name] for name in shown] for row in rows]))


@runs.command("show")
def show_run(
    run: RunId, workspace: WorkspaceFolder = DEFAULT_WORKSPACE, as_json: JsonFlag = False
) -> None:
    """Show one run: its state, settings and last figures."""
    _show_run(_open(workspace), run, as_json)


@runs.command("compare")
def compare_runs(
    run: RunId,
    other: RunId,
    workspace: WorkspaceFolder = DEFAULT_WORKSPACE,
    as_json: JsonFlag = False,
) -> None:
    """Compare two runs: settings that differ, last figures, and cells they disagree on."""
    import numpy as np

    from core.store import files

    space = _open(workspace)
    one, two = space.runs.get(run), space.runs.get(other)
    a, b = (_facts(space, found) | _last_figures(space, found) for found in (one, two))
    settings = [found.config.model_dump(mode="json") for found in (one, two)]
    differ = {
        name: [s[name] for s in settings]
        for name in settings[0]
        if settings[0][name] != settings[1][name]
    }
    figures = {name: [a.get(name), b.get(name)] for name in ("state", "epoch", "loss", "auc", "f1")}
    disagree = None
    paths = [space.runs.folder(found.id) / "confidences.npy" for found in (one, two)]
    if one.fingerprint == two.fingerprint and all(path.exists() for path in paths):
        first, second = (files.read_array(path) > 0.5 for path in paths)
        disagree = int(np.sum(first != second))
    if as_json:
        return print_json({"settings": differ, "figures": figures, "cells_that_differ": disagree})
    rows = [(name, *pair) for name, pair in (figures | differ).items()]
    rows.append(
        ("cells on different sides of 0.5", "" if disagree is None else f"{disagree:,}", "")
    )
    out.print(table("Two runs", ("", one.id, two.id), rows))


@runs.command("delete")
def delete_run(
    run: RunId,
    workspace: WorkspaceFolder = DEFAULT_WORKSPACE,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    purge: Annotated[bool, typer.Option("--purge", help="Remove its files too, for good.")] = False,
) -> None:
    """Delete a run; it can be restored unless purged."""
    space = _open(workspace)
    found = space.runs.get(run)
    typer.confirm(f"Delete run {found.id} {found.name}?", abort=True) if not yes else None
    space.runs.delete(found.id)
    if purge:
        space.runs.purge(found.id)
    undo = "" if purge else f" Undo with: plain runs restore {found.id}"
    log.print(f"Run {found.id} deleted.{undo}")


@runs.command("restore")
def restore_run(run: RunId, workspace: WorkspaceFolder = DEFAULT_WORKSPACE) -> None:
    """Bring a deleted run back."""
    space = _open(workspace)
    space.runs.restore(space.runs.get(run).id)
    log.print("It is back.")


def _open(workspace: Path) -> Any:
    from core.store import Workspace, automatic_backup

    space = Workspace(workspace)
    automatic_backup(space)
    return space


def _train_here(space: Any, run: Any) -> None:
    """Train in this process with a progress bar; Ctrl-C ends it after the last whole epoch."""
    from core import worker

    halt = threading.Event()
    before = signal.signal(signal.SIGINT, lambda *_: halt.set())
    try:
        with training_progress(run.config.epochs) as show:
            worker.run_training(space, run.id, on_event=show, stop=halt)
    finally:
        signal.signal(signal.SIGINT, before)


def _facts(space: Any, run: Any) -> dict[str, Any]:
    from core import worker

    names = {data.fingerprint: data.name for data in space.datasets()}
    state = "interrupted" if worker.is_interrupted(space, run) else str(run.state)
    return {
        "run": run.id,
        "name": run.name,
        "data": names.get(run.fingerprint, run.fingerprint[:12]),
        "state": state,
        "epoch": f"{run.epoch}/{run.config.epochs}",
        "created": run.created[:19].replace("T", " "),
        "note": run.note,
        "error": run.error,
    }


def _last_figures(space: Any, run: Any) -> dict[str, Any]:
    events = space.runs.events_after(run.id, space.runs.last_seq(run.id) - 3)
    records = [event for _, event in events if event.kind == "epoch"]
    if not records:
        return {}
    last = records[-1]
    figures = {"loss": round(last.loss, 5), "entropy": round(last.entropy, 4)}
    return figures | {name: round(value, 4) for name, value in (last.metrics or {}).items()}


def _show_run(space: Any, run_id: str, as_json: bool) -> None:
    run = space.runs.get(run_id)
    facts = _facts(space, run) | _last_figures(space, run)
    config = run.config.model_dump(mode="json")
    if as_json:
        return print_json(facts | {"config": config})
    out.print(table("Run", ("", ""), [pair for pair in facts.items() if pair[1] not in ("", None)]))
    out.print(table("Settings", ("", ""), config.items()))


def _print(event: Any) -> None:
    if event.kind == "epoch":
        scores = "".join(f"  {name} {value:.3f}" for name, value in (event.metrics or {}).items())
        changed = f"{event.cells_changed:,} cells changed sides"
        out.print(f"epoch {event.epoch}  loss {event.loss:.4f}  {changed}{scores}", highlight=False)
    else:
        out.print(f"{event.kind}  {event.model_dump_json(exclude={'kind'})}", markup=False)
