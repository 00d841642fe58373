"""The script `plain`: the engine's commands (`core.cli`), and those of the app."""

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from core.cli import app
from core.cli import main as run
from core.cli.data import train_demo
from core.cli.screen import DEFAULT_WORKSPACE, JsonFlag, Preset, Reports, Settings, WorkspaceFolder

DataFile = Annotated[
    str | None,
    typer.Option("--data", metavar="FILE", help="A file to look at first, or demo or demo-crowd."),
]
DemoName = Annotated[
    Literal["digits", "crowd"],
    typer.Argument(help="digits: scenes of digits; crowd: messages that five people labelled."),
]
Host = Annotated[
    str, typer.Option(help="Where to listen; another than 127.0.0.1 needs a password file.")
]
PasswordFile = Annotated[
    Path | None,
    typer.Option("--password-file", metavar="FILE", help="Ask for the password made into it."),
]
TrustedProxies = Annotated[
    list[str] | None,
    typer.Option(
        "--trusted-proxy",
        metavar="ADDRESS",
        help="Believe who this proxy says is calling (address or CIDR; repeatable).",
    ),
]
ExportFolders = Annotated[
    list[Path] | None,
    typer.Option(
        "--export-folder",
        metavar="DIR",
        help="Let people write exports below it (repeatable); on a shared server nowhere else.",
    ),
]
DataFolders = Annotated[
    list[Path] | None,
    typer.Option(
        "--data-folder",
        metavar="DIR",
        help="Let people open files below it by path (repeatable); on a shared server no others.",
    ),
]
Port = Annotated[
    int | None, typer.Option(min=1, max=65535, help="8501, or a free one, by default.")
]
Browser = Annotated[bool, typer.Option("--browser/--no-browser", help="Open it in the browser.")]
Terminal = Annotated[
    bool, typer.Option("--terminal", help="Train here and print figures; also with --json, --set.")
]


def main() -> None:
    """Run the command line."""
    run(Reports(_write_report, _write_methods))


@app.command("app")
def open_app(
    data: DataFile = None,
    workspace: WorkspaceFolder = DEFAULT_WORKSPACE,
    host: Host = "127.0.0.1",
    port: Port = None,
    browser: Browser = True,
    password_file: PasswordFile = None,
    trusted_proxy: TrustedProxies = None,
    export_folder: ExportFolders = None,
    data_folder: DataFolders = None,
) -> None:
    """Open the app in the browser: load data, train and watch, explore."""
    _serve(
        workspace,
        data=data,
        host=host,
        port=port,
        browser=browser,
        password_file=password_file,
        trusted_proxies=trusted_proxy or [],
        export_folders=export_folder or [],
        data_folders=data_folder or [],
    )


@app.command()
def demo(
    which: DemoName = "digits",
    workspace: WorkspaceFolder = DEFAULT_WORKSPACE,
    port: Port = None,
    browser: Browser = True,
    terminal: Terminal = False,
    preset: Preset = "studio",
    changes: Settings = None,
    as_json: JsonFlag = False,
) -> None:
    """Open the app on the embedded data; or train on it in the terminal."""
    word = "demo-crowd" if which == "crowd" else "demo"
    if terminal or as_json or changes:
        return train_demo(preset, changes, as_json, word)
    return _serve(workspace, data=word, host="127.0.0.1", port=port, browser=browser)


@app.command()
def password(
    file: Annotated[Path, typer.Argument(help="Where to write its hash; only you can read it.")],
) -> None:
    """Ask for a password and write a file for `plain app --password-file`."""
    given = typer.prompt("Password", hide_input=True, confirmation_prompt=True)
    from plain_app.server.password import write_password

    write_password(file, given)
    typer.echo(f"Written: {file}")


def _serve(workspace: Path, **options: Any) -> None:
    from plain_app.server.launcher import serve  # streamlit takes a second to load

    serve(workspace, **options)


def _write_methods(*of: Any) -> None:
    from plain_app.method_report import write

    write(*of)


def _write_report(space: Any, study_id: str, path: Path) -> None:
    from plain_app.report import write

    write(space, study_id, path)
