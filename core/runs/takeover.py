"""A run of another machine that fell silent goes on here, from the checkpoint it uploaded last.

It goes on as a run of its own, with what the other has told so far: nobody writes into another
machine's run, and should that machine come back, both end with the same results.
"""

import shutil
from pathlib import Path

from core.errors import StoreError
from core.runs.results import CHECKPOINT
from core.runs.worker import is_interrupted
from core.store import RunRow, Workspace, files


def can_continue_here(workspace: Workspace, run: RunRow) -> bool:
    """Whether another machine's run was interrupted, and its checkpoint is in object storage."""
    return (
        workspace.runs.elsewhere(run) is not None
        and is_interrupted(workspace, run)
        and CHECKPOINT in workspace.stored.names(f"runs/{run.id}")
    )


def continue_here(workspace: Workspace, run_id: str) -> RunRow:
    """Queue a run that goes on where another machine's stopped; launch it like any other."""
    run = workspace.runs.get(run_id)
    if not can_continue_here(workspace, run):
        hint = "Resume it on its own machine, or train again."
        raise StoreError("This run cannot go on here.", run.id, hint)
    source = workspace.stored.fetch(f"runs/{run.id}")
    epoch = int(files.read_arrays(source / CHECKPOINT)["epoch"])
    told = [one for one in workspace.runs.events_after(run.id) if one[0] <= epoch + 1]

    def prepare(folder: Path) -> None:
        for path in source.iterdir():
            if not path.name.startswith("."):
                with path.open("rb") as file, files.replacing(folder / path.name) as copy:
                    shutil.copyfileobj(file, copy)

    return workspace.runs.create(
        run.fingerprint, run.config, run.name, prepare=prepare, events=told
    )
