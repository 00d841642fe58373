"""`plain runs`: list, show, compare, delete and restore runs."""

from pathlib import Path
from typing import Annotated, Any

import typer

from core.cli.screen import (
    DEFAULT_WORKSPACE,
    JsonFlag,
    WorkspaceFolder,
    log,
    out,
    print_json,
    table,
)

RunId = Annotated[str, typer.Argument(metavar="RUN", help="A run's id, or how it begins.")]
runs = typer.Typer(help="List, show, compare, delete and restore runs.")


@runs.callback(invoke_without_command=True)
def list_runs(
    context: typer.Context,
    workspace: WorkspaceFolder = DEFAULT_WORKSPACE,
    as_json: JsonFlag = False,
) -> None:
    """List the runs of the workspace, the newest first."""
    if context.invoked_subcommand is not None:
        return
    space = open_workspace(workspace)
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
    print_run(open_workspace(workspace), run, as_json)


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

    space = open_workspace(workspace)
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
    space = open_workspace(workspace)
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
    space = open_workspace(workspace)
    space.runs.restore(space.runs.get(run).id)
    log.print("It is back.")


def open_workspace(workspace: Path) -> Any:
    from core.store import Workspace, automatic_backup

    space = Workspace(workspace)
    automatic_backup(space)
    return space


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


def print_run(space: Any, run_id: str, as_json: bool) -> None:
    from core.methods.choice import settings_used

    run = space.runs.get(run_id)
    facts = _facts(space, run) | _last_figures(space, run)
    config = run.config.model_dump(mode="json")
    if as_json:
        return print_json(facts | {"config": config})
    out.print(table("Run", ("", ""), [pair for pair in facts.items() if pair[1] not in ("", None)]))
    out.print(table("Settings", ("", ""), settings_used(run.config).items()))
