"""`plain tune`: search for settings, watch the search, and report it."""

import os
import signal
import threading
from pathlib import Path
from time import sleep
from typing import Annotated, Any

import typer
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from core.cli.data import MappingFile, read_file
from core.cli.encoding import Encode, encoded, remember_pictures
from core.cli.screen import (
    DEFAULT_WORKSPACE,
    Cluster,
    JsonFlag,
    Preset,
    Settings,
    WorkspaceFolder,
    check_report,
    log,
    on_cluster,
    out,
    parse_settings,
    print_json,
    table,
    working,
)
from core.errors import PlainError

POLL_SECONDS = 0.5


def add_to(app: typer.Typer) -> None:
    app.command()(tune)
    app.command("tune-work", hidden=True)(tune_work)


def tune(
    context: typer.Context,
    file: Annotated[
        str | None, typer.Argument(metavar="FILE", help="A data file, or demo.")
    ] = None,
    trials: Annotated[int | None, typer.Option(min=1, help="How many; 30 by default.")] = None,
    timeout: Annotated[float | None, typer.Option(help="Seconds to search.")] = None,
    objective: Annotated[
        str, typer.Option(help="truth, decisions, consistency, or auto: the best there is.")
    ] = "auto",
    search: Annotated[
        list[str] | None,
        typer.Option("--search", metavar="NAME[=LOW:HIGH]", help="A setting; the paper's if none."),
    ] = None,
    sensitivity: Annotated[
        str | None, typer.Option(help="Try each value of gamma, n_steps, k or loss instead.")
    ] = None,
    preset: Preset = "studio",
    changes: Settings = None,
    workers: Annotated[int | None, typer.Option(min=1, help="Processes; one per core.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the search and the held-out parts.")] = 0,
    name: Annotated[str, typer.Option(help="What to call the study.")] = "",
    resume: Annotated[
        str | None, typer.Option("--resume", metavar="STUDY", help="Go on with this study.")
    ] = None,
    report: Annotated[
        Path | None, typer.Option(metavar="OUT.html", help="Write a report; alone, of the last.")
    ] = None,
    workspace: WorkspaceFolder = DEFAULT_WORKSPACE,
    mapping: MappingFile = None,
    encode: Encode = None,
    cluster: Cluster = None,
    as_json: JsonFlag = False,
) -> None:
    """Search for settings that serve this data best; Ctrl-C stops, --resume goes on."""
    from core import tuning
    from core.engine.config import PlainConfig
    from core.store import Workspace

    check_report(context, report, "plain tune")
    space = Workspace(workspace)
    if file is None and resume is None:
        if report is None:
            raise PlainError("What shall be tuned on?", hint="Give FILE, demo, or --resume STUDY.")
        context.obj.study(space, study_id := _last(space), report)
        return _finish(space, study_id, report, as_json)
    if file is not None:
        read, pictures = encoded(read_file(file, mapping), file, encode, space.folder)
        with working("Storing the data …"):
            fingerprint = space.add_dataset(read.dataset, Path(file).name, read.mapping)
            remember_pictures(space.folder, fingerprint, pictures, file)
    if resume is not None:
        study_id = space.studies.get(resume).id
    else:
        base = PlainConfig.preset(preset, **parse_settings(changes), **on_cluster(cluster))
        judged = tuning.available(space, fingerprint)[0] if objective == "auto" else objective
        options: dict[str, Any] = {
            "objective": judged,
            "seed": seed,
            "n_workers": workers or os.cpu_count() or 1,
            "timeout": timeout,
        }
        if sensitivity is not None:
            settings = tuning.sensitivity(sensitivity, base, **options)
        else:
            n_trials = trials if trials or timeout else 30
            ranges = tuple(_range(one) for one in search or tuning.PAPER_GRID)
            settings = tuning.StudySettings(
                base=base, parameters=ranges, n_trials=n_trials, **options
            )
        study_id = tuning.create_study(space, fingerprint, settings, name).id
        log.print(tuning.explain(settings.objective, space, fingerprint), style="dim")
    _follow(space, study_id, workers)
    if report is not None:
        context.obj.study(space, study_id, report)
    _finish(space, study_id, report, as_json)


def tune_work(study: str, workspace: WorkspaceFolder = DEFAULT_WORKSPACE) -> None:
    """Work on a study as a background process."""
    from core.runs import processes as background
    from core.store import Workspace
    from core.tuning.search import work

    background.lower_priority()
    work(Workspace(workspace), study)


def _range(text: str) -> Any:
    """Return what NAME, NAME=LOW:HIGH, NAME=LOW:HIGH:log or NAME=A,B,C asks to search."""
    from core.tuning import Parameter, default_range

    name, _, given = text.partition("=")
    if not given:
        return default_range(name)
    if ":" in given:
        low, high, *log_scale = given.split(":")
        try:
            return Parameter(name=name, low=float(low), high=float(high), log=log_scale == ["log"])
        except ValueError:
            raise PlainError("A range must read NAME=LOW:HIGH.", f"Got {text!r}.") from None
    choices = [parse_settings([f"{name}={one}"])[name] for one in given.split(",")]
    return Parameter(name=name, choices=tuple(choices))


def _follow(space: Any, study_id: str, workers: int | None) -> None:
    """Let child processes work on the study and show how it goes; Ctrl-C stops it."""
    from core import tuning
    from core.runs.processes import end_of_log

    halt = threading.Event()
    before = signal.signal(signal.SIGINT, lambda *_: halt.set())
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[facts]}"))
    try:
        tuning.launch(space, study_id, workers)
        with Progress(*columns, TimeElapsedColumn(), console=log) as progress:
            task = progress.add_task("Searching", facts="", total=None)
            while True:
                study = tuning.read_study(space, study_id)
                progress.update(
                    task, total=study.settings.n_trials, completed=study.n_done, facts=_facts(study)
                )
                if study.status != "working":
                    break
                if halt.is_set():
                    tuning.stop(space, study_id)
                    progress.update(task, description="Stopping")
                sleep(POLL_SECONDS)
    finally:
        signal.signal(signal.SIGINT, before)
    if study.status == "interrupted":
        words = end_of_log(space.studies.folder(study_id) / "worker.log", 2000)
        hint = f"Go on with: plain tune --resume {study_id}"
        raise PlainError("The search lost its processes.", words, hint)


def _facts(study: Any) -> str:
    running = sum(trial.state == "running" for trial in study.trials)
    pruned = study.n_done - len(study.finished)
    best = f"  best {study.best.value:.4f}" if study.best else ""
    return f"{len(study.finished)} finished, {pruned} pruned, {running} at work{best}"


def _finish(space: Any, study_id: str, report: Path | None, as_json: bool) -> None:
    from core import tuning

    study = tuning.read_study(space, study_id)
    if report is not None:
        log.print(f"Report written to {report}", markup=False)
    best, default = study.best, next((t for t in study.finished if t.number == 0), None)
    facts = {
        "study": study.row.id,
        "state": study.status,
        "objective": study.settings.objective,
        "finished": len(study.finished),
        "pruned": study.n_done - len(study.finished),
        "best": None if best is None else _figures(best),
        "first": None if default is None else _figures(default),
    }
    if as_json:
        return print_json(facts)
    if best is None:
        return log.print("No trial has finished yet.")
    rows = [(one.number, f"{one.value:.4f}", _words(one.values)) for one in study.good[:10]]
    header = ("trial", "tuned on", "settings")
    out.print(table(f"Best trials of study {study.row.id}", header, rows))
    if default is not None:
        log.print(f"Held out: first trial {default.reported:.4f}, best {best.reported:.4f}")
    return None


def _figures(trial: Any) -> dict[str, Any]:
    return {
        "trial": trial.number,
        "value": trial.value,
        "held_out": trial.reported,
        "smoothness": trial.smoothness,
        "settings": trial.values,
    }


def _words(values: dict[str, Any]) -> str:
    shown = (f"{one:.4g}" if isinstance(one, float) else str(one) for one in values.values())
    return ", ".join(f"{name} {value}" for name, value in zip(values, shown, strict=True))


def _last(space: Any) -> str:
    found = space.studies.list()
    if not found:
        raise PlainError("There is no study yet.", hint="Start one with: plain tune FILE")
    last: str = found[0].id
    return last
