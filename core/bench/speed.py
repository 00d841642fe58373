"""`plain bench speed`: our engine beside the reference, in the same run, and growth with n.

Everything is a ratio of two things timed one after the other; seconds alone say little on a shared
machine. Growth runs every size in its own process, so that peak memory is that size's own.
"""

import json
import resource
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import numpy as np

from core.bench.data import BenchmarkSet, clusters, load_set
from core.engine.config import PlainConfig

GROWTH = (10_000, 30_000, 100_000)
_GROWTH_EPOCHS = 10
Progress = Callable[[str], None]


def compare(one: BenchmarkSet, epochs: int = 30, device: str = "cpu") -> dict[str, Any]:
    """Train `paper` and the reference on the same data; return seconds by stage and the ratios."""
    from core.bench.reference import Reference
    from core.data.dataset import CandidateDataset
    from core.engine.scaling import Standardizer
    from core.engine.trainer import PlainTrainer

    config = PlainConfig.preset("paper", epochs=epochs, device=device)
    Y = one.candidates if one.candidates is not None else one.noisy(1, seed=0)
    standardized = np.asarray(Standardizer.fit(one.X).apply(one.X))
    few = slice(0, 256)  # once before: what is loaded or compiled on first use is nobody's time
    list(Reference(standardized[few], Y[few].astype(np.float32), config).epochs())
    ours: defaultdict[str, float] = defaultdict(float)
    theirs: defaultdict[str, float] = defaultdict(float)
    start = perf_counter()
    for seconds in Reference(standardized, Y.astype(np.float32), config).epochs():
        _add(theirs, seconds)
    theirs["total"] = perf_counter() - start
    dataset = CandidateDataset(one.X, Y)
    start = perf_counter()
    for event in PlainTrainer(config).epochs(dataset):
        if event.kind == "graphs_built":
            ours["graph"] += event.seconds
        elif event.kind == "epoch":
            _add(ours, event.seconds)
    ours["total"] = perf_counter() - start
    ours["propagate"] += ours.pop("record")
    stages = ("graph", "propagate", "train", "predict", "total")
    return {
        "set": one.name,
        "shape": [*one.X.shape, Y.shape[1]],
        "epochs": epochs,
        "reference": {stage: theirs[stage] for stage in stages},
        "ours": {stage: ours[stage] for stage in stages},
        "ratio": {stage: theirs[stage] / ours[stage] for stage in stages},
    }


def compare_propagation(one: BenchmarkSet, repeats: int = 5) -> dict[str, Any]:
    """Time the closed form beside T = 200 steps on the same labels, and compare their results."""
    from core.bench.reference import propagate
    from core.engine.graphs import build_instance_graph, build_label_graph
    from core.engine.propagation import Propagator
    from core.engine.scaling import Standardizer

    Y = (one.candidates if one.candidates is not None else one.noisy(1, seed=0)).astype(np.float32)
    Y_hat = np.random.default_rng(0).random(Y.shape, dtype=np.float32)
    instances = build_instance_graph(Standardizer.fit(one.X).apply(one.X))
    labels = build_label_graph(Y)
    config, ours = PlainConfig(), Propagator(instances, labels)
    loop, theirs = _timed(
        lambda: propagate(instances.normalized, labels.normalized, Y, Y_hat, config), 1
    )
    Z, seconds = _timed(lambda: ours.propagate(Y, Y_hat, rescale=False), repeats)
    return {
        "set": one.name,
        "shape": list(Y.shape),
        "degree": ours.degree,
        "reference": theirs,
        "ours": seconds,
        "ratio": theirs / seconds,
        "max_difference": float(np.abs(Z - loop).max()),
    }


def compare_recording(epochs: int = 300) -> dict[str, Any]:
    """Time epochs that a workspace records beside epochs alone, one of each in turns.

    A machine's speed changes within seconds by more than recording costs: only neighbours compare.
    """
    import torch

    from core.data.dataset import CandidateDataset
    from core.engine.trainer import PlainTrainer
    from core.runs import processes as background
    from core.runs import worker
    from core.store import Workspace

    one, config = clusters(5000, 100, 7), PlainConfig.preset("paper", epochs=epochs, device="cpu")
    dataset = CandidateDataset(one.X, one.noisy(1, seed=0))
    torch.set_num_threads(background.n_threads())
    turns = _Turns(PlainTrainer(config).epochs(dataset))
    with TemporaryDirectory() as folder:
        workspace = Workspace(folder)
        run = workspace.runs.create(workspace.add_dataset(dataset, one.name), config)
        worker.run_training(workspace, run.id, on_event=turns)
    result = {"alone": float(np.mean(turns.alone)), "recorded": float(np.mean(turns.recorded))}
    return {**result, "overhead": result["recorded"] / result["alone"] - 1}


class _Turns:
    """Told the events of one training, lets another go as far after each; times epochs of both."""

    def __init__(self, other: Iterator[Any]) -> None:
        self.alone: list[float] = []
        self.recorded: list[float] = []
        self._other, self._since = other, perf_counter()

    def __call__(self, event: Any) -> None:
        recorded = perf_counter()
        next(self._other)
        now = perf_counter()
        if event.kind == "epoch":
            self.recorded.append(recorded - self._since)
            self.alone.append(now - recorded)
        self._since = now


def compare_search(n: int = 100_000, d: int = 128) -> dict[str, Any]:
    """Time the approximate instance graph beside the exact one on clustered data."""
    from core.engine.graphs import build_instance_graph

    X = clusters(n, d, 50).X
    approximate, seconds = _timed(lambda: build_instance_graph(X, search="cells"), 1)
    _, exact = _timed(lambda: build_instance_graph(X, search="exact"), 1)
    return {
        "n": n,
        "exact": exact,
        "cells": seconds,
        "ratio": exact / seconds,
        "recall": approximate.recall,
    }


def grow(sizes: Iterable[int] = GROWTH) -> Iterator[dict[str, Any]]:
    """Measure graph and ten epochs at every size (d = 128, 50 labels), each in its own process."""
    for n in sizes:
        command = [sys.executable, "-m", "core.bench.speed", str(n)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        yield json.loads(done.stdout.splitlines()[-1])


def exponent(growth: list[dict[str, Any]]) -> float:
    """Return the p of time ~ n^p between the smallest and the largest size."""
    first, last = growth[0], growth[-1]
    return float(np.log(last["total"] / first["total"]) / np.log(last["n"] / first["n"]))


def run(data: Path | None, epochs: int, progress: Progress, device: str = "cpu") -> dict[str, Any]:
    """Run all of it; `data` holds bibtex.npz, synthetic data of its shape stands in without it."""
    bibtex = data / "bibtex.npz" if data else None
    large = load_set(bibtex) if bibtex and bibtex.exists() else clusters(7395, 1836, 159)
    result: dict[str, Any] = {"whole": []}
    progress("propagation: closed form beside 200 steps")
    result["propagation"] = [compare_propagation(one) for one in (clusters(7000, 100, 11), large)]
    for one in (clusters(5000, 100, 7), large):
        progress(f"{epochs} epochs on {one.name} beside the reference")
        result["whole"].append(compare(one, epochs, device))
    progress("epochs recorded in a workspace beside epochs alone")
    result["recording"] = compare_recording()
    progress("approximate beside exact neighbours at 100k")
    result["search"] = compare_search()
    progress("growth from 10k to 100k instances")
    result["growth"] = list(grow())
    result["exponent"] = exponent(result["growth"])
    return result


def _grow_one(n: int) -> dict[str, Any]:
    from core.data.dataset import CandidateDataset
    from core.engine.trainer import PlainTrainer

    one = clusters(n, 128, 50)
    dataset = CandidateDataset(one.X, one.noisy(2, seed=0))
    trainer = PlainTrainer(PlainConfig.preset("paper", epochs=_GROWTH_EPOCHS))
    seconds: defaultdict[str, float] = defaultdict(float)
    start, memory = perf_counter(), {}
    for event in trainer.epochs(dataset):
        if event.kind == "graphs_built":
            seconds["graph"], memory["graph"] = event.seconds, peak_gb()
        elif event.kind == "epoch":
            _add(seconds, event.seconds)
    memory["epochs"] = peak_gb()
    recall = trainer.instance_graph.recall if trainer.instance_graph else None
    total = perf_counter() - start
    return {"n": n, "total": total, "seconds": dict(seconds), "peak_gb": memory, "recall": recall}


def peak_gb() -> float:
    """Return the most memory this process ever had; rusage would count its parent's as well."""
    status = Path("/proc/self/status")
    if status.exists():
        peak = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(peak.split()[1]) / 1024**2
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**3  # macOS counts bytes


def _timed(work: Callable[[], Any], repeats: int) -> tuple[Any, float]:
    best = np.inf
    for _ in range(repeats):
        start = perf_counter()
        result = work()
        best = min(best, perf_counter() - start)
    return result, best


def _add(total: defaultdict[str, float], stages: dict[str, float]) -> None:
    for stage, seconds in stages.items():
        total[stage] += seconds


if __name__ == "__main__":
    print(json.dumps(_grow_one(int(sys.argv[1]))))
