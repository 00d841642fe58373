"""Commands on runs: train, watch, stop, resume, compare, export."""

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
    PerItem,
    Precision,
    RowKind,
    SourceColumn,
    TopK,
    VotesFile,
    parse_threshold,
    read_file,
    write_resolved,
)
from core.cli.encoding import Encode, encoded, remember_pictures
from core.cli.screen import (
    DEFAULT_WORKSPACE,
    ExpectFalse,
    Force,
    JsonFlag,
    MethodName,
    Preset,
    Settings,
    WorkspaceFolder,
    chosen_config,
    log,
    out,
    print_json,
    table,
    training_progress,
    working,
)
from core.errors import PlainError

RunId = Annotated[str, typer.Argument(metavar="RUN", help="A run's id, or how it begins.")]
runs = typer.Typer(help="List, show, compare, delete and restore runs.")


def add_to(app: typer.Typer) -> None:
    for command in (train, resume, pause, stop, export):
        app.command()(command)
    app.command("log")(show_log)
    app.add_typer(runs, name="runs")


def train(
    file: Annotated[
        str | None, typer.Argument(metavar="FILE", help="A data file, or demo.")
    ] = None,
    preset: Preset = "studio",
    method: MethodName = None,
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
    votes: VotesFile = None,
    encode: Encode = None,
    row: RowKind = None,
    source: SourceColumn = None,
    expect_false: ExpectFalse = None,
    as_json: JsonFlag = False,
) -> None:
    """Train on a file, recorded in the workspace; Ctrl-C stops and keeps what was learned."""
    from core.engine.graphs import read_instance_graph, read_label_graph
    from core.runs import results, worker
    from core.store.returned import take_decisions

    space = _open(workspace)
    if reviewed_run is not None:
        run = worker.retrain(space, reviewed_run, name)
    elif resume_run is None:
        if file is None:
            raise PlainError("What shall be trained on?", hint="Give FILE, demo, or --resume RUN.")
        config = chosen_config(preset, method, changes, expect_false)
        read_in = read_file(file, mapping, votes, row=row, source=source)
        result, pictures = encoded(read_in, file, encode, space.folder)
        dataset = result.dataset
        instances = read_instance_graph(instance_graph, dataset.ids) if instance_graph else None
        labels = read_label_graph(label_graph, dataset.label_names) if label_graph else None
        with working("Storing the data …"):
            fingerprint = space.add_dataset(dataset, Path(file).name, result.mapping)
            remember_pictures(space.folder, fingerprint, pictures)
            take_decisions(space, read_in, fingerprint)
        if instances is None:
            config = config.suited_to(dataset)
        run = space.runs.create(fingerprint, config, name or method or "")
        results.give_graphs(space, run.id, instances, labels)
    else:
        run = space.runs.get(resume_run)
    if background:
        return _launch(space, run.id, as_json)
    _train_here(space, run)
    _show_run(space, run.id, as_json)


def resume(
    run: RunId, workspace: WorkspaceFolder = DEFAULT_WORKSPACE, background: bool = False
) -> None:
    """Go on with a paused or interrupted run."""
    from core.runs import worker

    space = _open(workspace)
    found = space.runs.get(run)
    if found.state == "paused" and not worker.is_interrupted(space, found):
        space.runs.command(found.id, "resume")
        log.print(f"Run {found.id} goes on.")
    elif background:
        _launch(space, found.id)
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
    from core.runs import worker

    space = _open(workspace)
    found = space.runs.get(run)
    worker.stop(space, found.id)
    worker.tend(space)
    log.print(f"Run {found.id} stops.")


def show_log(
    run: RunId,
    workspace: WorkspaceFolder = DEFAULT_WORKSPACE,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Until the run ends.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Print what a run told, and its worker's log."""
    from core.runs import worker

    space = _open(workspace)
    found, seq = space.runs.get(run), -1
    while True:
        now = space.runs.get(found.id)
        ended = now.state.is_ended or worker.is_interrupted(space, now)
        if now.state == "queued" and follow:
            worker.tend(space)
        for number, event in space.runs.events_after(found.id, seq):
            told = {"seq": number, **event.model_dump(mode="json")}
            print_json(told) if as_json else _print(event)
            seq = number
        if ended or not follow:
            break
        sleep(0.5)
    words = worker.log_of(space, found.id) if space.runs.elsewhere(found) is None else None
    if words is not None and words.exists() and not as_json:
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
    per_item: PerItem = False,
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
        "sources": results.sources,
    }
    columns = ColumnMapping.load(mapping) if mapping else results.mapping
    with space.exporting(target):
        write_resolved(
            results.dataset,
            results.confidences,
            results.predictions,
            target,
            threshold=threshold,
            allow_new_labels=allow_new_labels,
            made_by=made_by,
            how={"format": format, "mapping": columns, "force": force, "per_item": per_item},
            as_json=as_json,
        )


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
    shown = ["run", "name", "data", "state", "epoch", "created"]
    if any(row["machine"] for row in rows):
        shown.append("machine")  # that has the files; this one where none is named
    out.print(table("Runs", shown, [[row[name] or "" for name in shown] for row in rows]))
    lost = [row for row in rows if row["lost"]]
    if lost:
        log.print(f"The files of {len(lost)} of them are gone; the newest:", markup=False)
        log.print(lost[0]["lost"], markup=False)


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


def _launch(space: Any, run_id: str, as_json: bool = False) -> None:
    """Launch a run, and say what is so: that it has begun, or what it waits for."""
    from core.runs import worker

    worker.launch(space, run_id)
    run = worker.await_start(space, run_id)
    if as_json:
        return print_json({"run": run.id, "state": str(run.state)})
    if run.state == "queued":
        where = space.runs.elsewhere(run)
        waits = f"its files are on {where}" if where else "it begins when a run at work has ended"
        return log.print(f"Run {run.id} waits in the queue: {waits}.")
    if run.heartbeat is None:
        return log.print(f"Run {run.id} was launched; its process has not reported yet.")
    return log.print(f"Run {run.id} is on its way.")


def _train_here(space: Any, run: Any) -> None:
    """Train in this process with a progress bar.

    Ctrl-C ends it after the last whole epoch, once more at once: it can then be resumed.
    """
    from core.runs import worker

    halt = threading.Event()

    def on_interrupt(*_: Any) -> None:
        halt.set()
        signal.signal(signal.SIGINT, signal.default_int_handler)

    before = signal.signal(signal.SIGINT, on_interrupt)
    try:
        with training_progress(run.config.epochs) as show:
            worker.run_training(space, run.id, on_event=show, stop=halt)
    finally:
        signal.signal(signal.SIGINT, before)
        worker.tend(space)  # others may have waited for this one


def _facts(space: Any, run: Any) -> dict[str, Any]:
    from core.runs import results, worker

    names = {data.fingerprint: data.name for data in space.datasets()}
    state = "interrupted" if worker.is_interrupted(space, run) else str(run.state)
    machine = space.runs.elsewhere(run)
    lost = results.lost_files(space, run) if machine is None else None
    return {
        "run": run.id,
        "name": run.name,
        "data": names.get(run.fingerprint, run.fingerprint[:12]),
        "state": f"{state}, files gone" if lost else state,
        "epoch": f"{run.epoch}/{run.config.epochs}",
        "created": run.created[:19].replace("T", " "),
        "note": run.note,
        "error": run.error,
        "lost": None if lost is None else f"{lost.detail}\n{lost.hint}",
        "machine": machine,
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
