"""Results of benchmarks: on the terminal, as JSON, or in a Markdown file."""

from pathlib import Path
from typing import Annotated, Any

import typer

from core.cli.screen import out, print_json, table

DataFolder = Annotated[
    Path | None, typer.Option(help="Folder of data files with truth, or one such file.")
]
ReportFile = Annotated[Path | None, typer.Option("--write", help="Markdown file to update.")]


def report_results(
    name: str, tables: list[tuple[str, Any]], result: Any, write: Path | None, as_json: bool
) -> None:
    """Write the tables to the section of that name, and print them or the result."""
    from core.bench import report

    if write:
        text = f"Measured on: {report.machine()}.\n\n{report.markdown(tables)}"
        report.write_section(write, name, text)
    if as_json:
        return print_json(result)
    for title, (header, *rows) in tables:
        out.print(table(title, header, rows))
