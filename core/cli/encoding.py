"""What commands share about texts and pictures: the option, the progress bar, the report."""

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from core.cli.screen import log

Encode = Annotated[
    list[str] | None,
    typer.Option(
        "--encode",
        metavar="COLUMN=NAME",
        help="Encoder of a column of texts (words, minilm, words+minilm) or pictures "
        "(efficientnet, an .onnx file, a model's folder); none leaves it out. Repeat.",
    ),
]


def planned(result: Any, encode: list[str] | None) -> Any:
    """Return which columns would be encoded by what."""
    from core.encoders import plan
    from core.encoders.choosing import parse_choices

    return plan(result, parse_choices(encode or ()))


def encoded(
    result: Any, file: str, encode: list[str] | None, workspace: Path | None
) -> tuple[Any, dict[str, Any]]:
    """Return what was read with its features, and the keys of its pictures by column."""
    from core.encoders import absent_pictures
    from core.encoders import encode as encode_columns
    from core.paths import full_path

    steps = planned(result, encode)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, TimeRemainingColumn(), console=log) as progress:
        tasks: dict[str, Any] = {}

        def show(column: str, done: int, total: int) -> None:
            if column not in tasks:
                tasks[column] = progress.add_task(f"Encoding {column}", total=total)
            progress.update(tasks[column], completed=done)

        made = encode_columns(
            result,
            steps,
            data=full_path(file),
            workspace=None if workspace is None else full_path(workspace),
            progress=show,
        )
    for problem in (*absent_pictures(result, steps), *made.result.problems[len(result.problems) :]):
        log.print(str(problem), markup=False)
    return made.result, made.keys


def report(result: Any, file: str, encode: list[str] | None) -> tuple[list[Any], list[Any], Any]:
    """Return rows about every encoder, problems with pictures, and the broken ones, for `check`."""
    from core.encoders import absent_pictures, broken_problems, changes_features, missing_pictures
    from core.formats.shared.tabular import NO_FEATURES
    from core.paths import full_path

    steps = planned(result, encode)
    broken = missing_pictures(result, steps, full_path(file))
    problems = absent_pictures(result, steps)
    if not steps and changes_features(result, steps):
        problems.append(NO_FEATURES)
    problems += [
        one
        for column, found in broken.items()
        for one in broken_problems(column, found, result.dataset)
    ]
    facts = [
        {
            "column": one.column,
            "kind": one.kind,
            "encoder": one.offer.name,
            "n_features": one.offer.n_features,
            "seconds": one.seconds,
            "sentence": one.sentence,
            "broken": [vars(each) for each in broken.get(one.column, ())],
        }
        for one in steps
    ]
    return [(one.column, one.sentence) for one in steps], problems, facts


def remember_pictures(workspace: Path, fingerprint: str, keys: dict[str, Any], file: str) -> None:
    """Note which row of a stored data set has which picture, for the screens."""
    if keys:
        from core.encoders.thumbnails import Thumbnails
        from core.paths import full_path

        Thumbnails(workspace).remember(fingerprint, keys, full_path(file))
