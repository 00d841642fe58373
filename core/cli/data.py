"""Commands on files: look at one, turn it into another, clean it; and the demo in the terminal."""

from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, Any

import typer

from core.cli.encoding import Encode, encoded, report
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
    parse_settings,
    print_json,
    problem_table,
    table,
    training_progress,
    working,
)
from core.errors import ConfigError, DatasetError, grouped

InFile = Annotated[
    str, typer.Argument(metavar="FILE", help="A data file, or the word demo or demo-crowd.")
]
OutFile = Annotated[Path, typer.Argument(metavar="OUT", help="The file to write.")]
MappingFile = Annotated[
    Path | None, typer.Option("--mapping", help="Column mapping (JSON) instead of a guessed one.")
]
RowKind = Annotated[
    str | None,
    typer.Option(
        "--row",
        metavar="KIND",
        help="What one row is: item, view (one person's view of an item), or people (an item with "
        "a column per person).",
    ),
]
SourceColumn = Annotated[
    str | None,
    typer.Option("--source", metavar="COLUMN", help="The column that names whose view a row is."),
]
LabelColumns = Annotated[
    list[str] | None,
    typer.Option(
        "--labels",
        metavar="COLUMN",
        help="The column of label names, or each column of a label's 0 and 1; repeat.",
    ),
]
PerItem = Annotated[
    bool, typer.Option("--per-item", help="Write one row per item, not the rows of the file.")
]
VotesFile = Annotated[
    Path | None,
    typer.Option(
        "--votes",
        metavar="TABLE",
        help="Who said what: a CSV of instance, label, source, vote (1 or 0).",
    ),
]
FormatName = Annotated[
    str | None, typer.Option("--format", help="Format of OUT; by its extension otherwise.")
]
Cut = Annotated[
    list[str] | None,
    typer.Option(
        "--threshold", metavar="CUT", help="Confidence that is enough: 0.5, or LABEL=0.7; repeat."
    ),
]
TopK = Annotated[int | None, typer.Option(help="Keep this many candidates per instance.")]
Precision = Annotated[
    float | None, typer.Option(help="Keep as many cells as this expected precision allows.")
]
NewLabels = Annotated[
    bool, typer.Option("--allow-new-labels", help="Also resolve labels that were not offered.")
]


def add_to(app: typer.Typer) -> None:
    for command in (check, convert):
        app.command()(command)
    app.command("clean")(clean_file)


def train_demo(preset: str, changes: list[str] | None, as_json: bool, name: str = "demo") -> None:
    """Train on the embedded data in this process and show what it finds out."""
    from core.engine.config import PlainConfig
    from core.engine.metrics import disambiguation_metrics
    from core.engine.trainer import PlainTrainer

    config = PlainConfig.preset(preset, **parse_settings(changes))
    data = read_file(name).dataset
    trainer = PlainTrainer(config)
    with training_progress(config.epochs) as show:
        for event in trainer.epochs(data):
            show(event)
    assert data.truth is not None
    metrics = disambiguation_metrics(data.truth, data.candidates, trainer.confidences)
    if as_json:
        return print_json({"fingerprint": data.fingerprint, "metrics": metrics})
    out.print(_score_table(metrics))


def check(
    file: InFile,
    mapping: MappingFile = None,
    votes: VotesFile = None,
    encode: Encode = None,
    row: RowKind = None,
    source: SourceColumn = None,
    labels: LabelColumns = None,
    every: Annotated[bool, typer.Option("--all", help="List every finding.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Say how a file is understood, what is odd about it, and what it holds."""
    from core.data.checks import check as find_problems
    from core.data.checks import summarize

    try:
        result = read_file(file, mapping, votes, row=row, source=source, labels=labels)
        with working("Checking …"):
            encoders, broken, facts = report(result, file, encode)
            problems = [*result.problems, *find_problems(result.dataset), *broken]
            summary = summarize(result.dataset)
    except DatasetError as error:
        if not as_json:
            raise
        print_json({"usable": False, "problems": [vars(one) for one in error.problems]})
        raise typer.Exit(2) from None
    fatal = any(problem.fatal for problem in problems)
    if as_json:
        understood = None if result.mapping is None else result.mapping.model_dump(mode="json")
        print_json(
            {
                "usable": not fatal,
                "format": result.format,
                "mapping": understood,
                "problems": [vars(problem) for problem in problems],
                "summary": summary.model_dump(mode="json"),
                "encoders": facts,
            }
        )
    else:
        _show_check(result, problems, summary, every, encoders)
    raise typer.Exit(2 if fatal else 0)


def convert(
    file: InFile,
    target: OutFile,
    format: FormatName = None,
    mapping: MappingFile = None,
    votes: VotesFile = None,
    encode: Encode = None,
    row: RowKind = None,
    source: SourceColumn = None,
    labels: LabelColumns = None,
    per_item: PerItem = False,
    workspace: WorkspaceFolder = DEFAULT_WORKSPACE,
    force: Force = False,
) -> None:
    """Read a file and write the same data in another format; with --encode, its features too."""
    from core.formats import require_free, write

    require_free(target, format=format, force=force)
    result = read_file(file, mapping, votes, row=row, source=source, labels=labels)
    dataset, columns = result.dataset, result.mapping
    if encode:  # then features are what is wanted, in columns of their own
        dataset, columns = encoded(result, file, encode, workspace)[0].dataset.read_from(None), None
    with working(f"Writing {target.name} …"):
        write(dataset, target, format=format, mapping=columns, force=force, per_item=per_item)
    log.print(f"{dataset.n_instances:,} instances written.")


def clean_file(
    file: InFile,
    target: OutFile,
    preset: Preset = "studio",
    method: MethodName = None,
    changes: Settings = None,
    expect_false: ExpectFalse = None,
    cut: Cut = None,
    top_k: TopK = None,
    precision: Precision = None,
    allow_new_labels: NewLabels = False,
    format: FormatName = None,
    mapping: MappingFile = None,
    votes: VotesFile = None,
    encode: Encode = None,
    row: RowKind = None,
    source: SourceColumn = None,
    labels: LabelColumns = None,
    per_item: PerItem = False,
    workspace: WorkspaceFolder = DEFAULT_WORKSPACE,
    cluster: Cluster = None,
    force: Force = False,
    as_json: JsonFlag = False,
) -> None:
    """Train on a file and write it with the labels that are true, and why."""
    from core.cluster.executors import cluster_folder
    from core.export import clean
    from core.formats import require_free

    config = chosen_config(preset, method, changes, expect_false, cluster)
    threshold = parse_threshold(cut, top_k, precision)
    require_free(target, format=format, force=force)
    read_in = read_file(file, mapping, votes, row=row, source=source, labels=labels)
    result, _ = encoded(read_in, file, encode, workspace)
    how: dict[str, Any] = {"format": format, "force": force, "per_item": per_item}
    how |= {"threshold": threshold, "allow_new_labels": allow_new_labels}
    place = cluster_folder() if config.cluster else nullcontext()
    with place as folder, training_progress(config.epochs, folder) as show:
        written = clean(result, target, config, on_event=show, folder=folder, **how)
    show_written(written, as_json)


def read_file(
    file: str,
    mapping: Path | None = None,
    votes: Path | None = None,
    *,
    row: str | None = None,
    source: str | None = None,
    labels: list[str] | None = None,
) -> Any:
    """Read a data file, or embedded data by its word, and the votes on it.

    `row`, `source` and `labels` say what one row is, and go before a mapping.
    """
    from core.data.demo import DEMOS
    from core.formats import ColumnMapping, ReadResult, read, with_votes

    with working(f"Reading {file} …"):
        if file in DEMOS and not Path(file).exists():
            result = ReadResult(DEMOS[file].load(), (), None, "demo")
        else:
            stated = None if mapping is None else ColumnMapping.load(mapping)
            said = {"row": row, "source": source, "labels": tuple(labels or ()) or None}
            said = {name: value for name, value in said.items() if value is not None}
            if said:
                given = {} if stated is None else stated.model_dump(exclude_unset=True)
                stated = ColumnMapping(**{**given, **said})
            result = read(Path(file), stated)
        return result if votes is None else with_votes(result, votes)


def parse_threshold(cut: list[str] | None, top_k: int | None, precision: float | None) -> Any:
    """Return the rule that the options state."""
    from core.review import Threshold

    value, per_label = None, {}
    for one in cut or []:
        label, equals, number = one.rpartition("=")
        try:
            if equals:
                per_label[label] = float(number)
            else:
                value = float(number)
        except ValueError:
            wrong = f"Must be a number or LABEL=NUMBER; got {one!r}."
            raise ConfigError("The threshold is not valid.", wrong) from None
    return Threshold(value=value, per_label=per_label, top_k=top_k, precision=precision)


def show_written(written: Any, as_json: bool) -> None:
    """Print how many cells were resolved how and, where there is truth, how well."""
    import numpy as np

    from core.engine.metrics import f1

    path, dataset, resolution, level = written
    n_cells = int(dataset.candidates.sum(dtype=np.int64))
    figures: dict[str, Any] = {
        "file": str(path),
        "candidates": n_cells,
        "resolved": int(resolution.labels.sum(dtype=np.int64)),
    }
    if dataset.truth is not None:
        figures["f1_candidates"] = f1(dataset.truth, dataset.candidates)
        figures["f1_resolved"] = f1(dataset.truth, resolution.labels)
    if level is not None:
        figures |= {"false_low": level.share_low, "false_high": level.share_high}
    if as_json:
        return print_json(figures)
    if level is not None:
        log.print(level.sentence)
    log.print(f"Written to {path}, its provenance beside it.")
    rows = [
        (name.replace("_", " "), f"{value:.3f}" if isinstance(value, float) else f"{value:,}")
        for name, value in figures.items()
        if name != "file"
    ]
    out.print(table("Labels", ("", ""), rows))


def _show_check(
    result: Any, problems: list[Any], summary: Any, every: bool, encoders: list[Any]
) -> None:
    if result.mapping is not None:
        reasons = result.mapping.reasons.items()
        out.print(table(f"Read as {result.format}", ("", ""), reasons))
    if problems:
        out.print(problem_table(problems, every=every))
    if not every and any(one.count > 1 or one.repeats for one in grouped(problems)):
        out.print("Findings are listed once; --all lists each.", style="dim")
    rows = [
        ("instances", f"{summary.n_instances:,}"),
        ("features", _shown_features(summary, bool(encoders))),
        *(("encoded when trained on", f"{column}: {cost}") for column, cost in encoders),
        ("labels", f"{summary.n_labels:,}"),
        ("candidates per instance", _shown_candidates(summary)),
        ("false candidates", summary.noise_sentence),
        ("truth", "yes, for scoring only" if summary.has_truth else "no"),
    ]
    if summary.n_sources:
        asked = "" if summary.votes_mean is None else f", {summary.votes_mean:.1f} per candidate"
        rows.append(("sources", f"{summary.n_sources:,}{asked}"))
    out.print(table("What it holds", ("", ""), rows))
    if summary.noise is None:
        log.print(
            "`plain clean` or `plain train` gives an interval of the false candidates, and thirty "
            "random answers in Review narrow it."
        )


def _shown_candidates(summary: Any) -> str:
    fewest, most = summary.candidates_min, summary.candidates_max
    return f"{summary.candidates_mean:.2f}, fewest {fewest}, most {most}"


def _shown_features(summary: Any, is_encoded: bool) -> str:
    if not summary.n_features:
        return "none yet: made of the pictures" if is_encoded else "none"
    return f"{summary.n_features:,} ({'sparse' if summary.sparse else 'dense'})"


def _score_table(metrics: dict[str, float]) -> Any:
    rows = [
        ("labels as given: F1 against the truth", f"{metrics['candidate_f1']:.3f}"),
        ("labels kept at confidence > 0.5: F1", f"{metrics['f1']:.3f}"),
        ("true above false candidates, all cells (AUC)", f"{metrics['auc']:.3f}"),
        ("the same per label (macro AUC)", f"{metrics['macro_auc']:.3f}"),
        ("within an instance (average precision)", f"{metrics['instance_ap']:.3f}"),
    ]
    return table("Which candidates are true?", ("", ""), rows)
