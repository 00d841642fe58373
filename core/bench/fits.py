"""Every method on every set, noise and fold: fits that are computed once and kept in a file.

A finished fit is one JSON line, on disk before the next begins, and never computed again; a
killed benchmark goes on where it was. Fits run in child processes (`python -m core.bench.fits`,
JSON lines in and out), so that one that takes too long can be ended: it is kept as too slow, with
the limit, and the other folds of that method, set and noise are not tried. A larger limit tries
them again.
"""

import hashlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

import core
from core.bench.data import BenchmarkSet, find_sets, load_set
from core.cluster.executors import Executor, Item
from core.errors import PlainError
from core.methods import NEEDS_VERIFIED, USES_TORCH, make_method

N_VERIFIED = 50
"""Training rows whose truth a method gets that needs some: the meta set of PML-MD's authors."""

DONE, SLOW, FAILED = "done", "too slow", "failed"


@dataclass(frozen=True)
class Fit:
    """One fold of one method on one set; `r` is None for the set's own candidates."""

    set: str
    data: str  # the file's digest
    r: int | None
    method: str
    settings: str  # their digest: with other defaults a method is another
    fold: int  # from 1
    folds: int
    seed: int

    @property
    def row(self) -> "Fit":
        """The fit's method, set and noise, whatever the fold."""
        return replace(self, fold=0)


def all_fits(
    folder: Path, sets: list[str], noise: list[int], methods: list[str], folds: int, seed: int
) -> list[Fit]:
    """Return the fits of these sets; one with its own candidates has just those."""
    found = []
    paths, settings = find_sets(folder), {method: _settings(method) for method in methods}
    for name in sets:
        path = paths[name]
        own = load_set(path).candidates is not None
        digest = hashlib.sha256(path.read_bytes()).hexdigest()[:12]
        for r in [None] if own else noise:
            for method in methods:
                for fold in range(1, folds + 1):
                    one = Fit(name, digest, r, method, settings[method], fold, folds, seed)
                    found.append(one)
    return found


def _settings(method: str) -> str:
    model = make_method(method)
    chosen = getattr(model, "config", None) or sorted(model.get_params().items())
    return hashlib.sha256(str(chosen).encode()).hexdigest()[:12]


class FitFile:
    """The fits done so far, in a file of JSON lines."""

    def __init__(self, path: Path) -> None:
        self._path, self._lock = path, threading.Lock()
        self.results: dict[Fit, dict[str, Any]] = {}
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        whole = text[: text.rfind("\n") + 1]
        torn = text[len(whole) :]  # killed while writing a line
        lines = [*whole.splitlines(), *([torn] if torn and not torn.startswith('{"') else [])]
        for number, line in enumerate(lines, start=1):
            try:
                result = json.loads(line)
                self.results[_fit_of(result)] = result
            except (ValueError, KeyError, TypeError):
                hint = "Give another file, or remove the line."
                wrong = f"Line {number} of {path} is none."
                raise PlainError("This is not a file of finished fits.", wrong, hint) from None
        if torn:
            path.write_text(whole, encoding="utf-8")

    def keep(self, result: dict[str, Any]) -> None:
        """Write a result before it counts as done."""
        with self._lock:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(result) + "\n")
                file.flush()
                os.fsync(file.fileno())
            self.results[_fit_of(result)] = result

    def is_done(self, fit: Fit, limit: float) -> bool:
        """Whether it was computed, or is too slow for this limit too; a failure is tried again."""
        result = self.results.get(fit)
        if result is None or result["state"] == FAILED:
            return False
        return bool(result["state"] == DONE or result["limit"] >= limit)


def run(
    fits: list[Fit],
    folder: Path,
    file: FitFile,
    limit: float,
    workers: int,
    progress: Callable[[dict[str, Any]], None],
    executor: Executor | None = None,
) -> None:
    """Compute what is not yet in the file, each fit within `limit` seconds.

    An interruption ends the children and keeps what was finished. With an executor fits are its
    tasks, whose children are on its workers.
    """
    waiting = [fit for fit in fits if not file.is_done(fit, limit)]
    if executor is not None:
        for result in _computed_on(executor, waiting, folder, limit):
            file.keep(result)
            progress(result)
    else:
        _compute_in_children(waiting, folder, file, limit, workers, progress)


def _compute_in_children(
    waiting: list[Fit],
    folder: Path,
    file: FitFile,
    limit: float,
    workers: int,
    progress: Callable[[dict[str, Any]], None],
) -> None:
    slow: set[Fit] = set()
    lock, stopped = threading.Lock(), threading.Event()
    children = [_Child(folder) for _ in range(workers)]

    def work(child: _Child) -> None:
        with child:
            while not stopped.is_set():
                with lock:
                    if not waiting:
                        return
                    fit = waiting.pop(0)
                    is_slow = fit.row in slow
                if is_slow:
                    result = {**asdict(fit), "state": SLOW, "limit": limit, "seconds": None}
                else:
                    result = child.compute(fit, limit)
                if stopped.is_set():
                    return
                if result["state"] == SLOW:
                    slow.add(fit.row)
                file.keep(result)
                progress(result)

    with ThreadPoolExecutor(workers) as threads:
        try:
            list(threads.map(work, children))
        except BaseException:
            stopped.set()
            for child in children:
                child.interrupt()
            raise


def _computed_on(
    executor: Executor, fits: list[Fit], folder: Path, limit: float
) -> Iterator[dict[str, Any]]:
    given: Item = {"folder": str(folder.absolute()), "limit": limit}
    items = [{**given, "fit": asdict(fit)} for fit in fits]
    return executor.map(_compute_in_child, items, "fits")


def _compute_in_child(item: Item) -> dict[str, Any]:
    """Task: compute one fit in a process that can be ended."""
    with _Child(Path(item["folder"])) as child:
        return child.compute(Fit(**item["fit"]), item["limit"])


class _Child:
    """A process that computes fits; a new one after one that was ended."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> "_Child":
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def compute(self, fit: Fit, limit: float) -> dict[str, Any]:
        process = self._started()
        assert process.stdin is not None
        assert process.stdout is not None
        ended = threading.Event()

        def end() -> None:
            ended.set()
            process.kill()

        timer = threading.Timer(limit, end)
        timer.start()
        answer = ""
        with suppress(OSError):
            print(json.dumps(asdict(fit)), file=process.stdin, flush=True)
            answer = process.stdout.readline()
        timer.cancel()
        if answer.endswith("\n"):
            return dict(json.loads(answer))
        self._end()
        failed = {"state": SLOW, "limit": limit, "seconds": None} if ended.is_set() else None
        why = f"its process ended with code {process.returncode}"
        return {**asdict(fit), **(failed or {"state": FAILED, "error": why})}

    def interrupt(self) -> None:
        """End what is being computed; whoever waits for it is answered."""
        if self._process is not None:
            self._process.kill()

    def _started(self) -> subprocess.Popen[str]:
        if self._process is None:
            command = [sys.executable, "-m", "core.bench.fits", str(self._folder)]
            pipe = subprocess.PIPE
            self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)
            assert self._process.stdout is not None
            self._process.stdout.readline()  # it has started
        return self._process

    def _end(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None


def compute(fit: Fit, one: BenchmarkSet) -> dict[str, Any]:
    """Fit a method and score it: the fold's own training seed, nothing chosen on test data."""
    Y = one.noisy(fit.r, fit.seed)
    train, test = _split(len(Y), fit)
    if fit.method in USES_TORCH:
        from core.runs.worker import load_engine

        load_engine()  # seconds are of the work
    model = make_method(fit.method)
    if "seed" in model.get_params():
        model.set_params(seed=fit.seed + fit.fold)
    extra: dict[str, Any] = {}
    if fit.method in NEEDS_VERIFIED:
        rows = np.random.default_rng(fit.seed + fit.fold).permutation(len(train))[:N_VERIFIED]
        extra["verified"] = np.full(Y[train].shape, np.nan)
        extra["verified"][rows] = one.truth[train][rows]
    start = perf_counter()
    model.fit(one.X[train], Y[train], **extra)
    seconds = perf_counter() - start
    scores = score(model, one.X[test], one.truth[test])
    auc = _auc(one.truth[train], Y[train], model.confidences_)
    known = {"seconds": seconds, "version": core.__version__, "confidence_auc": auc}
    return {**asdict(fit), "state": DONE, **known, **scores}


def score(model: Any, X: Any, truth: Any) -> dict[str, float]:
    """Return the test metrics: ranks from scores, Hamming loss and F1 from `predict`."""
    from sklearn.metrics import f1_score

    from core.engine.metrics import f1, ranking_metrics

    of = getattr(model, "decision_function", model.predict_proba)
    predictions, labels = of(X), model.predict(X)
    found = ranking_metrics(truth, predictions)
    ranked = ranking_metrics(truth, predictions, rows="ranked")
    return {
        **found,
        "hamming_loss": float(np.mean(labels != truth)),
        "average_precision_ranked": ranked["average_precision"],
        "ranking_loss_ranked": ranked["ranking_loss"],
        "micro_f1": f1(truth, labels),
        "macro_f1": float(f1_score(truth, labels, average="macro", zero_division=0)),
    }


def _auc(truth: Any, candidates: Any, confidences: Any) -> float | None:
    from core.engine.metrics import disambiguation_metrics

    auc = disambiguation_metrics(truth, candidates, confidences)["auc"]
    return auc if auc == auc else None


def _split(n: int, fit: Fit) -> tuple[Any, Any]:
    from sklearn.model_selection import KFold

    splits = KFold(fit.folds, shuffle=True, random_state=fit.seed).split(np.zeros(n))
    train, test = list(splits)[fit.fold - 1]
    return train, test


def _fit_of(result: dict[str, Any]) -> Fit:
    return Fit(**{name: result[name] for name in Fit.__dataclass_fields__})


def _answers(folder: Path, lines: Iterator[str]) -> Iterator[dict[str, Any]]:
    load, paths = lru_cache(maxsize=2)(load_set), find_sets(folder)
    for line in lines:
        fit = Fit(**json.loads(line))
        try:
            yield compute(fit, load(paths[fit.set]))
        except PlainError as error:
            yield {**asdict(fit), "state": FAILED, "error": str(error)}
        except Exception as error:  # a method's bug must not end the others
            yield {**asdict(fit), "state": FAILED, "error": f"{type(error).__name__}: {error}"}


def main() -> None:
    """Answer every fit of the standard input with its result."""
    import warnings

    warnings.simplefilter("ignore")
    print("ready", flush=True)
    for result in _answers(Path(sys.argv[1]), iter(sys.stdin)):
        print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
