"""`plain bench scale`: time and memory of every stage as rows grow, and what more rows would take.

Instances are sums of label prototypes plus noise: neighbours exist, neat clusters do not. Every
size runs in its own process, so that peak memory is that size's own. Where the two largest lead is
extrapolated stage by stage with the measured exponent, memory along its straight line. On a busy
machine look at the processor's time, which counts what was worked, not waited; how much longer a
training takes there is measured beside programs that leave no processor idle.
"""

import json
import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from time import perf_counter, process_time
from typing import Any

import numpy as np

from core.bench.data import mixtures
from core.bench.speed import peak_gb
from core.engine.config import PlainConfig

FARTHER = (10_000_000, 100_000_000)
NODES = 8
STAGES = ("graph", "models", "train", "predict", "propagate", "record", "end")
_D, _LABELS, _FALSE = 128, 50, 2

_CENTRES = 0.09 / 400_000
"""Time that finding every row's cells takes beside the rest of the graph, per row: the number of
cells grows with the rows. Measured at 400,000."""


def grow(
    sizes: Iterable[int], epochs: int, device: str, cluster: str | None = None
) -> Iterator[dict[str, Any]]:
    """Measure a training of `studio` at every size, each in its own process."""
    for n in sizes:
        command = [sys.executable, "-m", "core.bench.scale", str(n), str(epochs), device]
        command += [] if cluster is None else [cluster]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        yield json.loads(done.stdout.splitlines()[-1])


@contextmanager
def busy_machine() -> Iterator[int]:
    """Keep every processor busy by a program of its own; give how many these are."""
    command = [sys.executable, "-c", "while True: pass"]
    burners = [subprocess.Popen(command) for _ in range(os.cpu_count() or 1)]
    try:
        yield len(burners)
    finally:
        for one in burners:
            one.kill()
            one.wait()


def measure(
    n: int, epochs: int, device: str = "auto", cluster: str | None = None
) -> dict[str, Any]:
    """Train once; return seconds by stage, peak memory after each, recall and the load."""
    from core.data.dataset import CandidateDataset
    from core.engine.trainer import PlainTrainer

    one = mixtures(n, _D, _LABELS)
    dataset = CandidateDataset(one.X, one.noisy(_FALSE, seed=0))
    del one
    settings = {"epochs": epochs, "device": device, "cluster": cluster}
    trainer = PlainTrainer(PlainConfig.preset("studio", **settings))
    seconds: defaultdict[str, float] = defaultdict(float)
    memory, recall, graph_cpu = {"data": peak_gb()}, None, 0.0
    start = before = perf_counter()
    worked = process_time()
    for event in trainer.epochs(dataset):
        now = perf_counter()
        if event.kind == "graphs_built":
            seconds["graph"], recall = event.seconds, event.recall
            memory["graph"], graph_cpu = peak_gb(), process_time() - worked
        elif event.kind == "epoch":
            for stage, spent in event.seconds.items():
                seconds[stage] += spent
            # Kernel, neighbours' votes and new targets are made outside an epoch's own stages.
            seconds["models"] += now - before - sum(event.seconds.values())
        elif event.kind == "run_ended":
            seconds["end"] = now - before
        before = now
    memory["epochs"] = peak_gb()
    return {
        "n": n,
        "epochs": epochs,
        "total": perf_counter() - start,
        "cpu": {"graph": graph_cpu, "total": process_time() - worked},
        "seconds": dict(seconds),
        "peak_gb": memory,
        "recall": recall,
        "load": os.getloadavg()[0],
    }


def exponents(growth: list[dict[str, Any]]) -> dict[str, float]:
    """Return the p of seconds ~ n^p of every stage, between the two largest sizes."""
    first, last = growth[-2:]
    ratio = np.log(last["n"] / first["n"])
    found = {
        stage: float(np.log(last["seconds"][stage] / first["seconds"][stage]) / ratio)
        for stage in STAGES
    }
    whole = {"total": (first["total"], last["total"])}
    whole |= {
        name: (first["cpu"][key], last["cpu"][key])
        for name, key in (("CPU", "total"), ("CPU of graph", "graph"))
    }
    return {**found, **{k: float(np.log(b / a) / ratio) for k, (a, b) in whole.items()}}


def extrapolate(growth: list[dict[str, Any]], n: int, nodes: int = NODES) -> dict[str, Any]:
    """Return hours and memory that n rows would take here, and what a cluster would hold and move.

    A cluster keeps rows of features and labels and columns of pseudo-labels: every epoch, both
    directions, Z changes its layout once, which moves 2 * 4 n L (P - 1) / P bytes; every node
    needs the whole graph, 2 n k edges of 8 bytes.
    """
    first, last = growth[-2:]
    powers = exponents(growth)
    far = n / last["n"]
    seconds = {s: last["seconds"][s] * far ** max(powers[s], 1.0) for s in STAGES}
    more_cells = (1 + _CENTRES * n) / (1 + _CENTRES * last["n"])
    seconds["graph"] = last["seconds"]["graph"] * far * more_cells
    per_row = (last["peak_gb"]["epochs"] - first["peak_gb"]["epochs"]) / (last["n"] - first["n"])
    peak = last["peak_gb"]["epochs"] + per_row * (n - last["n"])
    graph = 2 * n * PlainConfig().k * 8 / 1e9
    return {
        "n": n,
        "hours": sum(seconds.values()) / 3600,
        "graph_hours": seconds["graph"] / 3600,
        "peak_gb": float(peak),
        "moved_gb": 2 * 4 * n * _LABELS * (nodes - 1) / nodes / 1e9,
        "node_gb": float(peak / nodes + graph),
    }


def run(
    sizes: Iterable[int],
    epochs: int,
    device: str,
    progress: Any,
    cluster: str | None = None,
    *,
    busy: bool = False,
) -> dict[str, Any]:
    """Measure all sizes and extrapolate; with a cluster, measure them there too.

    With `busy` the largest once more on a machine whose processors are all at work.
    """
    growth: list[dict[str, Any]] = []
    for n in sorted(sizes):
        progress(f"{n:,} rows")
        growth += grow([n], epochs, device)
    result: dict[str, Any] = {"growth": growth, "exponents": None, "farther": []}
    if cluster is not None:
        progress("on the cluster")
        result["cluster"] = list(grow([one["n"] for one in growth], epochs, device, cluster))
    if busy:
        progress("beside other programs")
        with busy_machine() as n_programs:
            (found,) = grow([growth[-1]["n"]], epochs, device)
        result["busy"] = {**found, "n_programs": n_programs}
    if len(growth) > 1:
        result["exponents"] = exponents(growth)
        result["farther"] = [extrapolate(growth, n) for n in FARTHER]
    return result


def tables(result: dict[str, Any]) -> list[tuple[str, list[list[str]]]]:
    """Return titled tables, header first; sizes stand beside each other, to fit a screen."""
    return [(title, list(map(list, zip(*rows, strict=True)))) for title, rows in _by_size(result)]


def _by_size(result: dict[str, Any]) -> list[tuple[str, list[list[str]]]]:
    """Return the tables with a row for every size."""
    growth = result["growth"]
    rows = [["n", *STAGES, "total", "CPU", "CPU of graph", "peak memory", "recall@10", "load"]]
    for one in growth:
        spent = [f"{one['seconds'][stage]:.1f} s" for stage in STAGES]
        spent += [f"{one['total']:.0f} s", f"{one['cpu']['total']:.0f} s"]
        spent += [f"{one['cpu']['graph']:.1f} s", f"{one['peak_gb']['epochs']:.2f} GB"]
        rows.append([f"{one['n']:,}", *spent, f"{one['recall']:.3f}", f"{one['load']:.1f}"])
    title = f"`studio`, {growth[0]['epochs']} epochs, d = {_D}, {_LABELS} labels"
    found = [(title, rows), *_beside(growth, result.get("cluster", []))]
    if "busy" in result:
        found.append(_busy_table(growth[-1], result["busy"]))
    if result["exponents"] is None:
        return found
    powers = [f"{power:.2f}" for power in result["exponents"].values()]
    rows.append(["n^", *powers, "", "", ""])
    far = [["n", "hours here", "of them graph", "memory here"]]
    far[0] += [f"memory per node of {NODES}", "moved per epoch"]
    for one in result["farther"]:
        hours = [f"{one['hours']:.1f}", f"{one['graph_hours']:.1f}"]
        sizes = [f"{one[key]:,.0f} GB" for key in ("peak_gb", "node_gb", "moved_gb")]
        far.append([f"{one['n']:,}", *hours, *sizes])
    return [*found, ("More rows, extrapolated", far)]


def _busy_table(alone: dict[str, Any], busy: dict[str, Any]) -> tuple[str, list[list[str]]]:
    """Return what the same takes alone and beside programs that leave no processor idle."""
    rows = [["n", "", "total", "CPU", "load"]]
    for where, one in (("alone", alone), ("beside", busy)):
        spent = [f"{one['total']:.0f} s", f"{one['cpu']['total']:.0f} s", f"{one['load']:.1f}"]
        rows.append([f"{one['n']:,}", where, *spent])
    times = [busy["total"] / alone["total"], busy["cpu"]["total"] / alone["cpu"]["total"]]
    rows.append(["", "ratio", *(f"{ratio:.2f}" for ratio in times), ""])
    return f"Beside {busy['n_programs']} programs that never rest", rows


def _beside(
    growth: list[dict[str, Any]], on_cluster: list[dict[str, Any]]
) -> list[tuple[str, list[list[str]]]]:
    """Return seconds here and on a cluster, where one was measured."""
    if not on_cluster:
        return []
    rows = [["n", "", *STAGES, "total", "load"]]
    for pair in zip(growth, on_cluster, strict=True):
        for where, one in zip(("here", "cluster"), pair, strict=True):
            spent = [f"{one['seconds'][stage]:.1f} s" for stage in STAGES]
            rows.append([f"{one['n']:,}", where, *spent, f"{one['total']:.0f} s"])
            rows[-1].append(f"{one['load']:.1f}")
    return [("The same here and on the cluster", rows)]


if __name__ == "__main__":
    print(json.dumps(measure(int(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:])))
