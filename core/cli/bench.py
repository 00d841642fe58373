"""`plain bench`: measure speed and quality on this machine."""

from pathlib import Path
from typing import Annotated, Any

import typer

from core.cli.bench_effort import effort
from core.cli.bench_report import DataFolder, ReportFile, report_results
from core.cli.screen import Cluster, JsonFlag, check_report, cluster_address, log
from core.errors import PlainError

app = typer.Typer(help="Measure speed and quality on this machine.", no_args_is_help=True)

Device = Annotated[str, typer.Option(help="auto, cpu, cuda or mps.")]


def _whole_numbers(option: str, text: str, least: int, example: str) -> list[int]:
    """Return the numbers of an option that lists some; refuse others and smaller ones."""
    parts = [part.strip().replace("_", "") for part in text.split(",")]
    if all(part.isdecimal() and int(part) >= least for part in parts):
        return [int(part) for part in parts]
    rule = f"{option} takes whole numbers from {least} up, comma-separated."
    raise PlainError(rule, f"Got {text}.", f"For example: {example}")


@app.command()
def speed(
    data: DataFolder = None,
    epochs: Annotated[int, typer.Option(help="Epochs of the whole-run comparison.")] = 30,
    device: Device = "cpu",
    write: ReportFile = None,
    as_json: JsonFlag = False,
) -> None:
    """Time graph, propagation and training beside a reference, and growth with size."""
    from core.bench import report
    from core.bench import speed as benchmark

    with log.status("Measuring …") as status:
        result = benchmark.run(data, epochs, status.update, device)
    report_results("speed", report.speed_tables(result), result, write, as_json)


@app.command()
def scale(
    sizes: Annotated[
        str, typer.Option(help="Rows, comma-separated; the two largest are extrapolated.")
    ] = "10000,30000,100000,300000,1000000",
    epochs: Annotated[int, typer.Option(min=1, help="Epochs of every training.")] = 12,
    device: Device = "auto",
    cluster: Cluster = None,
    busy: Annotated[
        bool, typer.Option("--busy", help="The largest again beside a busy program per processor.")
    ] = False,
    write: ReportFile = None,
    as_json: JsonFlag = False,
) -> None:
    """Measure time and memory of every stage up to a million rows; extrapolate to more.

    With a cluster every size is measured on it too.
    """
    from core.bench import scale as benchmark

    chosen = _whole_numbers("--sizes", sizes, 1, "10000,100000")
    with log.status("Measuring …") as status:
        on = cluster_address(cluster)
        result = benchmark.run(chosen, epochs, device, status.update, on, busy=busy)
    report_results("scale", benchmark.tables(result), result, write, as_json)


@app.command()
def quality(
    context: typer.Context,
    data: DataFolder = None,
    sets: Annotated[str, typer.Option(help="Comma-separated sets; all by default.")] = "",
    r: Annotated[str, typer.Option(help="False labels per row, comma-separated.")] = "1,2,3",
    folds: Annotated[int, typer.Option(min=2, help="Folds of the cross-validation.")] = 10,
    preset: Annotated[str, typer.Option(help="paper or studio.")] = "paper",
    methods: Annotated[
        str, typer.Option(help="Instead compare methods: all, or names, comma-separated.")
    ] = "",
    fits: Annotated[
        Path,
        typer.Option(
            "--fits",
            "--cells",  # its first name
            help="With --methods: finished fits are kept here, never repeated.",
        ),
    ] = Path("plain-bench-quality.jsonl"),
    limit: Annotated[float, typer.Option(min=1, help="With --methods: seconds of one fit.")] = 600,
    workers: Annotated[int, typer.Option(min=1, help="With --methods: processes.")] = 1,
    cluster: Cluster = None,
    seed: Annotated[int, typer.Option(min=0, help="Of folds, noise and training.")] = 0,
    html: Annotated[
        Path | None,
        typer.Option("--report", metavar="OUT.html", help="With --methods: all in one page."),
    ] = None,
    curves: Annotated[
        str, typer.Option(help="With --report: also gamma, T, k, loss and convergence on these.")
    ] = "",
    write: ReportFile = None,
    as_json: JsonFlag = False,
) -> None:
    """Cross-validate PLAIN and its ablations, or any methods, on benchmark sets.

    On a cluster, folds are its tasks.
    """
    from core.bench import quality as benchmark
    from core.bench import report
    from core.bench.data import load_sets
    from core.cluster.executors import open_executor

    if data is None:
        raise PlainError("No data.", "The quality benchmark runs on files.", "Give --data FOLDER.")
    names = [name.strip() for name in sets.split(",") if name.strip()]
    noise = _whole_numbers("--r", r, 0, "1,2,3")
    chosen = load_sets(data, names or None)
    address = cluster_address(cluster)
    if methods:
        from core.cli.compare import compare_methods

        check_report(context, html, "plain bench quality")
        found = [one.name for one in chosen]
        how = (methods, folds, seed, fits, limit, workers)
        with open_executor(address) as executor:
            compared = compare_methods(data, found, noise, *how, executor)
        if html is not None:
            about = f"{report.machine()}. {folds} folds, seed {seed}, limit {limit:g} s a fit."
            context.obj.methods(html, compared, about, *_curves(data, curves, noise[-1], seed))
            log.print(f"Report written to {html}", markup=False)
        tables = compared.tables()
        return report_results("quality-methods", tables, compared.results, write, as_json)
    results = []
    with log.status("Cross-validating …") as status, open_executor(address) as executor:
        on = None if executor is None else (executor, data)
        for result in benchmark.run(chosen, noise, folds, preset, seed, status.update, on):
            results.append(result)
            mean = result["last"]["average_precision"][0]
            log.print(
                f"{result['set']} r={result['r'] or 'own'} {result['variant']}: AP {mean:.3f}"
            )
    title = f"{folds}-fold cross-validation, preset `{preset}`, last epoch"
    report_results(
        f"quality-{preset}", [(title, report.quality_table(results))], results, write, as_json
    )


def _curves(data: Path, sets: str, r: int, seed: int) -> tuple[list[Any], dict[str, Any]]:
    """Return what gamma, T, k and the loss do on these sets, and how training converges."""
    from core.bench import tuning
    from core.bench.data import load_sets
    from core.engine.config import PlainConfig

    names = [name.strip() for name in sets.split(",") if name.strip()]
    if not names:
        return [], {}
    chosen, base = load_sets(data, names), PlainConfig.preset("paper", seed=seed)
    with log.status("Curves …") as status:
        found = list(tuning.sensitivities(chosen, r, 3, base, status.update))
        return found, tuning.convergence(chosen, r, base)


app.command()(effort)


@app.command()
def harm(
    data: DataFolder = None,
    sets: Annotated[str, typer.Option(help="Comma-separated sets; all by default.")] = "",
    noise: Annotated[str, typer.Option(help="uniform, confusable or both.")] = "uniform,confusable",
    shares: Annotated[
        str, typer.Option(help="Shares of false candidates in percent, comma-separated.")
    ] = "0,2,5,10,20,35,50",
    methods: Annotated[str, typer.Option(help="Of studio, network, cleanlab.")] = "studio,network",
    seed: Annotated[int, typer.Option(min=0, help="Of noise, folds and training.")] = 0,
    write: ReportFile = None,
    as_json: JsonFlag = False,
) -> None:
    """Resolve labels that are mostly right without decisions: are they better or worse then?"""
    from core.bench import harm as benchmark
    from core.bench import report
    from core.bench.data import demo_set, load_sets

    names, kinds, which = (
        [part.strip() for part in text.split(",") if part.strip()]
        for text in (sets, noise, methods)
    )
    if unknown := (set(kinds) - {"uniform", "confusable"}) | (set(which) - set(benchmark.METHODS)):
        known = "Noise: uniform, confusable. Methods: studio, network, cleanlab."
        raise PlainError("No such noise or method.", ", ".join(sorted(unknown)), known)
    try:
        parts = [float(part.strip().rstrip("%")) / 100 for part in shares.split(",")]
    except ValueError:
        parts = [-1.0]
    if not all(0 <= part < 1 for part in parts):
        rule = "Shares are percentages from 0 to below 100."
        raise PlainError(rule, f"Got {shares}.", "For example: 0,5,20")
    chosen = load_sets(data, names or None) if data else [demo_set()]
    results = []
    with log.status("Measuring …") as status:
        for one in benchmark.run(chosen, kinds, parts, which, seed, status.update):
            results.append(one)
            changes = ", ".join(f"{name} {one[name]:+.3f}" for name in which)
            log.print(f"{one['set']} {one['noise']}: F1 {one['given']:.3f}, {changes}")
    report_results("harm", report.harm_tables(results, which), results, write, as_json)


@app.command()
def disambiguation(
    data: DataFolder = None,
    sets: Annotated[str, typer.Option(help="Comma-separated sets; all by default.")] = "",
    noise: Annotated[
        str, typer.Option(help="False labels per row, or confusable; comma-separated.")
    ] = "1,2,3,confusable",
    methods: Annotated[str, typer.Option(help="Separated by semicolons; all by default.")] = "",
    parts: Annotated[
        bool, typer.Option("--parts", help="Instead leave out each part of studio.")
    ] = False,
    seed: Annotated[int, typer.Option(min=0, help="Of noise, folds and training.")] = 0,
    write: ReportFile = None,
    as_json: JsonFlag = False,
) -> None:
    """Tell true from false candidates: ours beside cleanlab, kernel ridge and frequency."""
    from core.bench import disambiguation as benchmark
    from core.bench import report
    from core.bench.data import demo_set, load_sets

    names = [name.strip() for name in sets.split(",") if name.strip()]
    chosen = load_sets(data, names or None) if data else [demo_set()]
    kinds = [kind.strip() for kind in noise.split(",") if kind.strip()]
    if strange := [kind for kind in kinds if kind != "confusable" and not kind.isdecimal()]:
        known = "Give numbers of false labels per row, or confusable: 1,2,confusable"
        raise PlainError("No such noise.", ", ".join(strange), known)
    which = [name.strip() for name in methods.split(";") if name.strip()]
    unknown = set(which) - set(benchmark.METHODS)
    if unknown:
        known = "; ".join(benchmark.METHODS)
        raise PlainError("No such method.", ", ".join(sorted(unknown)), f"Methods: {known}.")
    which = which or list(benchmark.METHODS)
    results = []
    with log.status("Measuring …") as status:
        runs = (
            benchmark.parts(chosen, kinds, seed, status.update)
            if parts
            else benchmark.run(chosen, kinds, which, seed, status.update)
        )
        for one in runs:
            results.append(one)
            log.print(
                f"{one['set']} {one['noise']} {one['method']}: micro {one['auc']:.3f}, "
                f"macro {one['macro_auc']:.3f}, {one['seconds']:.1f} s"
            )
    tables = report.disambiguation_tables(results, "Parts of `studio`: " if parts else "")
    report_results("parts" if parts else "disambiguation", tables, results, write, as_json)


@app.command()
def sources(
    data: DataFolder = None,
    sets: Annotated[str, typer.Option(help="Comma-separated sets; all by default.")] = "",
    seeds: Annotated[int, typer.Option(min=1, help="Crowds of each kind.")] = 1,
    methods: Annotated[
        str, typer.Option(help="Aggregators of crowd-kit, comma-separated; all by default.")
    ] = "",
    write: ReportFile = None,
    as_json: JsonFlag = False,
) -> None:
    """Tell true from false candidates where several sources voted, beside crowd-kit."""
    from core.bench import report
    from core.bench import sources as benchmark
    from core.bench.data import demo_set, load_sets

    names = [name.strip() for name in sets.split(",") if name.strip()]
    chosen = [demo_set(), *load_sets(data, names or None)] if data else [demo_set()]
    which = [name.strip() for name in methods.split(",") if name.strip()]
    which = which or list(benchmark.AGGREGATORS)
    unknown = set(which) - set(benchmark.AGGREGATORS)
    if unknown:
        known = ", ".join(benchmark.AGGREGATORS)
        raise PlainError("No such method.", ", ".join(sorted(unknown)), f"Methods: {known}.")
    results = []
    with log.status("Voting …") as status:
        for one in benchmark.run(chosen, seeds, which, status.update):
            results.append(one)
            log.print(
                f"{one['set']} {one['n_sources']} sources {one['method']}: "
                f"AUC {one['auc']:.3f}, {one['seconds']:.1f} s"
            )
    report_results("sources", report.source_tables(results), results, write, as_json)


@app.command()
def tuning(
    trials: Annotated[int, typer.Option(min=2, help="Trials per search.")] = 30,
    seeds: Annotated[int, typer.Option(min=1, help="Held-out halves.")] = 3,
    workers: Annotated[int, typer.Option(min=1, help="Processes.")] = 2,
    preset: Annotated[str, typer.Option(help="paper or studio.")] = "studio",
    write: ReportFile = None,
    as_json: JsonFlag = False,
) -> None:
    """Search settings on the demo data; compare the best with the preset on held-out truth."""
    from core.bench import report
    from core.bench import tuning as benchmark

    with log.status("Searching …") as status:
        chosen = list(range(seeds))
        results = list(benchmark.search(chosen, trials, preset, workers, status.update))
    title = f"{trials} trials on the demo data, {workers} processes, preset `{preset}`"
    report_results("tuning", [(title, report.tuning_table(results))], results, write, as_json)


@app.command()
def sensitivity(
    data: DataFolder = None,
    sets: Annotated[str, typer.Option(help="Comma-separated.")] = "emotions,mirflickr-5000",
    r: Annotated[int, typer.Option(min=0, help="False labels per row.")] = 3,
    folds: Annotated[int, typer.Option(min=2, help="Folds of the cross-validation.")] = 3,
    epochs: Annotated[int, typer.Option(min=1, help="Epochs of every training.")] = 100,
    preset: Annotated[str, typer.Option(help="paper or studio.")] = "paper",
    seed: Annotated[int, typer.Option(min=0, help="Of folds, noise and training.")] = 0,
    write: ReportFile = None,
    as_json: JsonFlag = False,
) -> None:
    """Score each value of gamma, T, k and the loss, all else as in the preset."""
    from core.bench import report
    from core.bench import tuning as benchmark
    from core.bench.data import load_sets
    from core.engine.config import PlainConfig

    if data is None:
        raise PlainError("No data.", "This benchmark runs on files.", "Give --data FOLDER.")
    chosen = load_sets(data, [name.strip() for name in sets.split(",") if name.strip()])
    with log.status("Training …") as status:
        base = PlainConfig.preset(preset, seed=seed, epochs=epochs)
        results = list(benchmark.sensitivities(chosen, r, folds, base, status.update))
    tables = report.sensitivity_tables(results, f"`{preset}`, {epochs} epochs, {folds} folds")
    report_results(f"sensitivity-{preset}", tables, results, write, as_json)
