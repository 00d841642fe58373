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
    LabelColumns,
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
    show_written,
)
from core.cli.encoding import Encode, encoded, remember_pictures
from core.cli.run_list import RunId, open_workspace, print_run, runs
from core.cli.screen import (
    DEFAULT_WORKSPACE,
    Cluster,
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
    training_progress,
    working,
)
from core.errors import PlainError


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
    labels: LabelColumns = None,
    expect_false: ExpectFalse = None,
    cluster: Cluster = None,
    as_json: JsonFlag = False,
) -> None:
    """Train on a file, recorded in the workspace; Ctrl-C stops and keeps what was learned."""
    from core.engine.graphs import read_instance_graph, read_label_graph
    from core.runs import results, worker
    from core.store.decision_import import take_decisions

    space = open_workspace(workspace)
    if reviewed_run is not None:
        run = worker.retrain(space, reviewed_run, name)
    elif resume_run is None:
        if file is None:
            raise PlainError("What shall be trained on?", hint="Give FILE, demo, or --resume RUN.")
        config = chosen_config(preset, method, changes, expect_false, cluster)
        read_in = read_file(file, mapping, votes, row=row, source=source, labels=labels)
        result, pictures = encoded(read_in, file, encode, space.folder)
        dataset = result.dataset
        instances = read_instance_graph(instance_graph, dataset.ids) if instance_graph else None
        related = read_label_graph(label_graph, dataset.label_names) if label_graph else None
        with working("Storing the data …"):
            fingerprint = space.add_dataset(dataset, Path(file).name, result.mapping)
            remember_pictures(space.folder, fingerprint, pictures, file)
            take_decisions(space, read_in, fingerprint)
        if instances is None:
            config = config.suited_to(dataset)
        run = space.runs.create(
            fingerprint,
            config,
            name or method or "",
            prepare=lambda folder: results.give_graphs(folder, instances, related),
        )
    else:
        run = space.runs.get(resume_run)
    if background:
        return _launch(space, run.id, as_json)
    _train_here(space, run)
    print_run(space, run.id, as_json)


def resume(
    run: RunId, workspace: WorkspaceFolder = DEFAULT_WORKSPACE, background: bool = False
) -> None:
    """Go on with a paused or interrupted run; another machine's that fell silent goes on here."""
    from core.runs import takeover, worker

    space = open_workspace(workspace)
    found = space.runs.get(run)
    if takeover.can_continue_here(space, found):
        silent, found = found, takeover.continue_here(space, found.id)
        log.print(f"Run {silent.id} goes on here as run {found.id}.")
    if found.state == "paused" and not worker.is_interrupted(space, found):
        space.runs.command(found.id, "resume")
        log.print(f"Run {found.id} goes on.")
    elif background:
        _launch(space, found.id)
    else:
        _train_here(space, found)
        print_run(space, found.id, as_json=False)


def pause(run: RunId, workspace: WorkspaceFolder = DEFAULT_WORKSPACE) -> None:
    """Hold a run that is at work; resume lets it go on."""
    space = open_workspace(workspace)
    found = space.runs.get(run)
    space.runs.command(found.id, "pause")
    log.print(f"Run {found.id} pauses.")


def stop(run: RunId, workspace: WorkspaceFolder = DEFAULT_WORKSPACE) -> None:
    """End a run, keeping the results of its last whole epoch."""
    from core.runs import worker

    space = open_workspace(workspace)
    found = space.runs.get(run)
    worker.stop(space, found.id)
    worker.start_queued(space)
    log.print(f"Run {found.id} stops.")


def show_log(
    run: RunId,
    workspace: WorkspaceFolder = DEFAULT_WORKSPACE,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Until the run ends.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Print the events of a run, and its worker's log."""
    from core.runs import worker

    space = open_workspace(workspace)
    found, seq = space.runs.get(run), -1
    while True:
        now = space.runs.get(found.id)
        ended = now.state.is_ended or worker.is_interrupted(space, now)
        if now.state == "queued" and follow:
            worker.start_queued(space)
        for number, event in space.runs.events_after(found.id, seq):
            record = {"seq": number, **event.model_dump(mode="json")}
            print_json(record) if as_json else _print(event)
            seq = number
        if ended or not follow:
            break
        sleep(0.5)
    words = worker.log_of(space, found.id) if found.machine == space.machines.here else None
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
    annotators: Annotated[
        list[str] | None,
        typer.Option(
            "--annotator",
            metavar="NAME=USER",
            help="For Label Studio: which user an annotator is there, by number or e-mail; repeat.",
        ),
    ] = None,
    force: Force = False,
    as_json: JsonFlag = False,
) -> None:
    """Write the data of a run with its resolved labels, confidences and reasons."""
    from core.export import label_studio_users, run_results, write_resolved
    from core.formats import ColumnMapping

    space = open_workspace(workspace)
    found = space.runs.get(run)
    threshold = parse_threshold(cut, top_k, precision)
    results = run_results(space, found)
    columns = ColumnMapping.load(mapping) if mapping else results.mapping
    how: dict[str, Any] = {"format": format, "mapping": columns, "force": force}
    how["per_item"] = per_item
    how["users"] = label_studio_users(annotators or (), results.decisions)
    with space.exporting(target), working(f"Writing {target.name} …"):
        rule = (threshold, allow_new_labels)
        written = write_resolved(results, target, found.config, *rule, run=found.id, **how)
    show_written(written, as_json)


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
    if run.state.is_ended:
        return log.print(f"Run {run.id} has {run.state} already. {run.error or ''}".strip())
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
        folder = space.runs.folder(run.id) if run.config.cluster else None
        with training_progress(run.config.epochs, folder) as show:
            worker.run_training(space, run.id, on_event=show, stop=halt)
    finally:
        signal.signal(signal.SIGINT, before)
        worker.start_queued(space)  # others may have waited for this one


def _print(event: Any) -> None:
    if event.kind == "epoch":
        scores = "".join(f"  {name} {value:.3f}" for name, value in (event.metrics or {}).items())
        changed = f"{event.cells_changed:,} cells changed sides"
        out.print(f"epoch {event.epoch}  loss {event.loss:.4f}  {changed}{scores}", highlight=False)
    else:
        out.print(f"{event.kind}  {event.model_dump_json(exclude={'kind'})}", markup=False)
