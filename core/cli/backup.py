"""`plain backup`, `plain restore` and `plain upload`: copies of a workspace elsewhere."""

from pathlib import Path
from typing import Annotated

import typer

from core.cli.screen import (
    DEFAULT_WORKSPACE,
    JsonFlag,
    WorkspaceFolder,
    bytes_progress,
    log,
    out,
    print_json,
)
from core.errors import PlainError


def add_to(app: typer.Typer) -> None:
    app.command()(backup)
    app.command()(restore)
    app.command()(upload)


def backup(
    workspace: WorkspaceFolder = DEFAULT_WORKSPACE,
    full: Annotated[
        Path | None,
        typer.Option(
            "--full",
            metavar="DIR",
            help="Copy data, runs and studies too, into this folder; only what is new.",
        ),
    ] = None,
) -> None:
    """Copy the database of the workspace, dated; or all of it, at any time."""
    from core.store import Workspace, full_backup
    from core.store import backup as copy_database

    space = Workspace(workspace)
    if full is None:
        return log.print(f"Copied to {copy_database(space)}")
    with bytes_progress("Copying") as show:
        made = full_backup(space, full, show)
    size = f"{made.n_bytes / 1e6:,.1f} MB"
    return log.print(
        f"{made.n_files:,} files, {size}, {made.n_copied:,} of them new: {made.manifest}"
    )


def restore(
    copy: Annotated[
        Path,
        typer.Argument(
            metavar="COPY",
            help="A file made by plain backup; or the folder of plain backup --full, for its "
            "newest backup, or one of its manifests.",
        ),
    ],
    workspace: WorkspaceFolder = DEFAULT_WORKSPACE,
    without_damaged: Annotated[
        bool, typer.Option("--without-damaged", help="Leave damaged files out, not refuse.")
    ] = False,
    check: Annotated[
        bool, typer.Option("--check", help="Only read the backup and say what is damaged.")
    ] = False,
) -> None:
    """Put a copy in place of the database; or make a workspace from a full backup."""
    from core.store import check_full_backup, is_full_backup, restore_full
    from core.store import restore as restore_database

    if not is_full_backup(copy):
        kept = restore_database(workspace, copy)
        return log.print(f"Restored. The database that was there is kept at {kept}")
    if check:
        with bytes_progress("Reading") as show:
            found = check_full_backup(copy, show)
        if found.damaged:
            hint = "Delete them from the backup; the next one copies them anew."
            raise PlainError("Files of this backup are damaged.", "\n".join(found.damaged), hint)
        return log.print(f"All {found.n_files:,} files are sound.")
    with bytes_progress("Restoring") as show:
        done = restore_full(copy, workspace, without_damaged=without_damaged, on_progress=show)
    if done.damaged:
        out.print("\n".join(("Damaged, left out:", *done.damaged)), markup=False)
    return log.print(f"{done.n_files:,} files restored to {workspace}.")


def upload(workspace: WorkspaceFolder = DEFAULT_WORKSPACE, as_json: JsonFlag = False) -> None:
    """Upload data and runs that are not in object storage yet; servers do so by themselves."""
    from core.store import Workspace
    from core.store.object_storage import URL_VARIABLE

    space = Workspace(workspace)
    if space.stored.storage is None:
        hint = f"Set {URL_VARIABLE}, such as s3://bucket/prefix or file:///shared/folder."
        raise PlainError("There is no object storage.", f"{URL_VARIABLE} is not set.", hint)
    n_sent, cache = space.share_all(), space.stored.cache_use()
    if as_json:
        found = {"uploaded": n_sent, "cache_bytes": cache.n_bytes, "cache_limit": cache.limit}
        return print_json(found)
    copies = f"{cache.n_bytes / 1e9:,.2f} of {cache.limit / 1e9:g} GB"
    return log.print(f"{n_sent:,} files uploaded. Copies of other machines' files: {copies}.")
