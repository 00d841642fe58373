"""`plain bench quality --methods`: the progress of many fits, and their tables."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from core.cli.screen import log
from core.errors import PlainError

if TYPE_CHECKING:
    from core.bench.comparison import Comparison
    from core.cluster.executors import Executor


def chosen_methods(text: str) -> list[str]:
    """Return the methods named, or all."""
    from core.methods import METHODS

    names = list(METHODS) if text == "all" else [n.strip() for n in text.split(",") if n.strip()]
    if unknown := [name for name in names if name not in METHODS]:
        known = f"Methods: all, or of {', '.join(METHODS)}."
        raise PlainError("No such method.", ", ".join(unknown), known)
    return names


def compare_methods(
    data: Path,
    sets: list[str],
    noise: list[int],
    methods: str,
    folds: int,
    seed: int,
    fits: Path,
    limit: float,
    workers: int,
    executor: "Executor | None" = None,
) -> "Comparison":
    """Compute the fits that are missing; return what all of them say."""
    from core.bench import fits as benchmark
    from core.bench.comparison import Comparison

    wanted = benchmark.all_fits(data, sets, noise, chosen_methods(methods), folds, seed)
    file = benchmark.FitFile(fits)
    kept = sum(file.is_done(fit, limit) for fit in wanted)
    log.print(f"{len(wanted):,} fits, {kept:,} of them in {fits}; {limit:g} s each at most")
    # Every process has one thread: methods side by side would else wait for each other's.
    if workers > 1:
        os.environ.setdefault("OMP_NUM_THREADS", "1")
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, TimeRemainingColumn(), console=log) as progress:
        task = progress.add_task("Comparing", total=len(wanted), completed=kept)

        def show(result: dict[str, Any]) -> None:
            if result["state"] != benchmark.DONE:
                where = f"{result['set']} r={result['r'] or 'own'} fold {result['fold']}"
                why = result.get("error", f"over {limit:g} s")
                log.print(f"{result['method']} on {where}: {result['state']}, {why}", markup=False)
            progress.update(task, advance=1, description=f"{result['set']} {result['method']}")

        benchmark.run(wanted, data, file, limit, workers, show, executor)
    return Comparison([file.results[fit] for fit in wanted])
