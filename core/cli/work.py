"""What background processes are started with: commands that nobody types."""

from typing import Any

import typer

from core.cli.screen import DEFAULT_WORKSPACE, WorkspaceFolder


def add_to(app: typer.Typer) -> None:
    for command in (work, stand_by, lay_out, keep_neighbors):
        app.command(hidden=True)(command)


def work(run: str, workspace: WorkspaceFolder = DEFAULT_WORKSPACE) -> None:
    """Work on a run as a background process."""
    from core.runs import processes as background
    from core.store import Workspace

    background.lower_priority()
    _work(Workspace(workspace), run)


def stand_by(workspace: WorkspaceFolder = DEFAULT_WORKSPACE) -> None:
    """Load the engine, then work on the run that is named on standard input."""
    from core.runs import processes as background
    from core.runs import worker
    from core.store import Workspace

    background.lower_priority()
    worker.load_engine()
    run = background.await_run()
    if run is not None:
        space = Workspace(workspace)
        background.log_to(worker.log_of(space, run))
        _work(space, run)


def _work(space: Any, run: str) -> None:
    from core.runs import results, worker
    from core.runs.recorder import retrying

    try:
        worker.run_training(space, run)
    finally:
        retrying(lambda: worker.start_queued(space))
    results.lay_out(space, run)


def lay_out(run: str, workspace: WorkspaceFolder = DEFAULT_WORKSPACE) -> None:
    """Lay out the map of a run as a background process."""
    from core.runs import processes as background
    from core.runs import results
    from core.store import Workspace

    background.lower_priority()
    results.lay_out(Workspace(workspace), run)


def keep_neighbors(run: str, workspace: WorkspaceFolder = DEFAULT_WORKSPACE) -> None:
    """Search more neighbours for a run as a background process."""
    from core.runs import processes as background
    from core.runs import results
    from core.store import Workspace

    background.lower_priority()
    results.keep_neighbors(Workspace(workspace), run)
