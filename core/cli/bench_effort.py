"""`plain bench effort`: the decisions it takes until labels are right, or false ones found."""

from pathlib import Path
from typing import Annotated

import typer

from core.cli.bench_report import DataFolder, ReportFile, report_results
from core.cli.screen import JsonFlag, log
from core.errors import PlainError


def effort(
    data: DataFolder = None,
    sets: Annotated[str, typer.Option(help="Comma-separated sets; all by default.")] = "",
    r: Annotated[int, typer.Option(min=0, help="False labels per row where there are none.")] = 3,
    errors: Annotated[
        float, typer.Option(min=0, max=1, help="How often the annotator is wrong.")
    ] = 0.0,
    preset: Annotated[str, typer.Option(help="paper or studio.")] = "studio",
    seed: Annotated[int, typer.Option(min=0, help="Of noise, training and random order.")] = 0,
    trials: Annotated[
        int, typer.Option(min=0, help="How often to also try accepting the rest at 95 %.")
    ] = 0,
    times: Annotated[bool, typer.Option("--times", help="Also time single decisions.")] = False,
    noise: Annotated[
        str,
        typer.Option(
            metavar="SHARE", help="Instead find so many false labels, such as 5%, beside cleanlab."
        ),
    ] = "",
    write: ReportFile = None,
    as_json: JsonFlag = False,
) -> None:
    """Count the decisions until 95 and 99 % of the labels are right; the demo data always runs."""
    if noise:
        return _find_false(data, sets, noise, preset, seed, (write, as_json))
    from core.bench import effort as benchmark
    from core.bench import report
    from core.bench.data import load_sets
    from core.data.dataset import CandidateDataset
    from core.data.demo import load_demo

    names = [name.strip() for name in sets.split(",") if name.strip()]
    chosen = [("demo", load_demo())]
    for one in load_sets(data, names or None) if data else []:
        noisy = one.noisy(None if one.candidates is not None else r, seed)
        chosen.append((one.name, CandidateDataset(one.X, noisy, truth=one.truth)))
    results = []
    with log.status("Reviewing …") as status:
        for result in benchmark.run(
            chosen, preset=preset, errors=errors, seed=seed, progress=status.update
        ):
            results.append(result)
    wrong = f", wrong {errors:.0%} of the time" if errors else ""
    title = f"Decisions of a simulated annotator{wrong}, r = {r}, preset `{preset}`, seed {seed}"
    tables = [(title, report.effort_table(results))]
    if trials:
        with log.status("Accepting the rest …") as status:
            granted = [
                benchmark.try_guarantee(
                    name, dataset, trials=trials, preset=preset, progress=status.update
                )
                for name, dataset in chosen
            ]
        tables.append(("Accepting the rest at 95 % precision", report.guarantee_table(granted)))
        results.extend(granted)
    if times:
        with log.status("Timing decisions …"):
            timed = [benchmark.time_decisions(*shape) for shape in benchmark.TIMED]
        tables.append(("One decision after 1,000 others", report.decision_table(timed)))
        results.extend(timed)
    return report_results(
        f"effort-{errors:g}" if errors else "effort", tables, results, write, as_json
    )


def _find_false(
    data: Path | None,
    sets: str,
    noise: str,
    preset: str,
    seed: int,
    where: tuple[Path | None, bool],
) -> None:
    """Count the decisions until most false labels are found."""
    from core.bench import finding, report
    from core.bench.data import demo_set, load_sets
    from core.cli.screen import parse_expectation

    share = parse_expectation(noise)["expected_false"]
    if not isinstance(share, float) or not 0 < share < 1:
        raise PlainError("A share of false labels reads 5%.", f"Got {noise!r}.")
    names = [name.strip() for name in sets.split(",") if name.strip()]
    chosen = load_sets(data, names or None) if data else [demo_set()]
    results = []
    with log.status("Finding …") as status:
        for one in finding.run(chosen, share, preset, seed, status.update):
            results.append(one)
            log.print(f"{one['set']}: {one['of_cleanlab']:.0%} of cleanlab's decisions")
    title = f"Decisions until false labels are found, {share:.0%} false, `{preset}`, seed {seed}"
    report_results("finding", [(title, report.finding_table(results))], results, *where)
