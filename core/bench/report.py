"""Benchmark results as tables: on the terminal, and as sections of a Markdown file."""

import platform
import re
from pathlib import Path
from statistics import fmean, median
from typing import Any

Rows = list[list[str]]


def machine() -> str:
    """Describe this machine in one line."""
    import torch

    processor = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        found = re.search(r"model name\s*: (.+)", info.read_text())
        processor = found.group(1) if found else processor
    threads = torch.get_num_threads()
    return (
        f"{processor}, {threads} threads, Python {platform.python_version()}, "
        f"torch {torch.__version__}, {platform.system()}"
    )


def speed_tables(result: dict[str, Any]) -> list[tuple[str, Rows]]:
    """Return titled tables, header first, of a `bench speed` result."""
    tables = []
    rows = [["labels", "degree", "200 steps", "closed form", "ratio", "max difference"]]
    for one in result["propagation"]:
        shape = " × ".join(f"{size:,}" for size in one["shape"])
        times = [f"{one['reference']:.3f} s", f"{one['ours']:.4f} s", f"{one['ratio']:.0f}×"]
        rows.append([shape, str(one["degree"]), *times, f"{one['max_difference']:.1e}"])
    tables.append(("One propagation", rows))
    for one in result["whole"]:
        rows = [["stage", "reference", "ours", "ratio"]]
        for stage, ratio in one["ratio"].items():
            seconds = [f"{one[who][stage]:.2f} s" for who in ("reference", "ours")]
            rows.append([stage, *seconds, f"{ratio:.1f}×"])
        shape = " × ".join(f"{size:,}" for size in one["shape"])
        tables.append((f"{one['epochs']} epochs of `paper` on {one['set']} ({shape})", rows))
    recording = result["recording"]
    rows = [["alone", "recorded", "overhead"]]
    times = [f"{1000 * recording[how]:.2f} ms" for how in ("alone", "recorded")]
    rows.append([*times, f"{recording['overhead']:.1%}"])
    tables.append(("One epoch at 5,000 × 100 × 7, alone and recorded in a workspace", rows))
    search = result["search"]
    rows = [["exact", "approximate", "ratio", "recall@10"]]
    values = [f"{search['exact']:.1f} s", f"{search['cells']:.1f} s", f"{search['ratio']:.1f}×"]
    rows.append([*values, f"{search['recall']:.3f}"])
    tables.append((f"Instance graph of {search['n']:,} clustered instances, d = 128", rows))
    rows = [["n", "graph", "10 epochs", "total", "peak memory", "recall@10"]]
    for one in result["growth"]:
        epochs = sum(seconds for stage, seconds in one["seconds"].items() if stage != "graph")
        times = [f"{one['seconds']['graph']:.1f} s", f"{epochs:.1f} s", f"{one['total']:.1f} s"]
        rows.append(
            [f"{one['n']:,}", *times, f"{one['peak_gb']['epochs']:.2f} GB", f"{one['recall']:.3f}"]
        )
    tables.append((f"Growth, d = 128, 50 labels: time ~ n^{result['exponent']:.2f}", rows))
    return tables


def quality_table(results: list[dict[str, Any]]) -> Rows:
    """Return one table, header first, of `bench quality` results."""
    rows = [["set", "r", "variant", "ranking loss ↓", "average precision ↑", "Hamming loss ↓"]]
    rows[0] += ["AP, ranked rows", "AP, best test epoch (optimistic)", "paper: RL / AP / HL"]
    for one in results:
        metrics = ("ranking_loss", "average_precision", "hamming_loss", "average_precision_ranked")
        scores = [_mean_sd(one["last"][metric]) for metric in metrics]
        paper = " / ".join(one["paper"].values()) if one["paper"] else ""
        best = _mean_sd(one["best_test_epoch"]["average_precision"])
        rows.append([one["set"], str(one["r"] or "own"), one["variant"], *scores, best, paper])
    return rows


def effort_table(results: list[dict[str, Any]]) -> Rows:
    """Return one table, header first, of `bench effort` results."""
    rows = [["set", "cells", "order", "to 95 % right", "of random", "to 99 % right", "of random"]]
    for one in results:
        for strategy, needed in one["decisions"].items():
            row = [one["set"], f"{one['n_cells']:,}", strategy]
            for target, count in needed.items():
                share = one["share_of_random"][strategy][target]
                row += ["never" if count is None else f"{count:,}"]
                row += ["" if share is None else f"{share:.0%}"]
            rows.append(row)
    return rows


def finding_table(results: list[dict[str, Any]]) -> Rows:
    """Return one table, header first, of `bench effort --noise` results."""
    targets = list(results[0]["decisions"]["ours"]) if results else []
    rows = [["set", "cells", "false", "order", *(f"{float(one):.0%} found" for one in targets)]]
    rows[0].append("of cleanlab's")
    for one in results:
        last = one["decisions"]["cleanlab"][targets[-1]]
        for name, counts in one["decisions"].items():
            head = [one["set"], f"{one['n_cells']:,}", f"{one['n_false']:,}", name]
            share = f"{counts[targets[-1]] / last:.0%}"
            rows.append([*head, *(f"{count:,}" for count in counts.values()), share])
    return rows


def guarantee_table(results: list[dict[str, Any]]) -> Rows:
    """Return one table, header first, of `try_guarantee` results."""
    rows = [["set", "trials", "granted", "held", "lowest precision", "decisions", "accepted"]]
    for one in results:
        row = [one["set"], str(one["trials"]), str(one["granted"]), str(one["held"])]
        row.append(f"{min(one['reached']):.3f}" if one["reached"] else "")
        row += [f"{_median(one[name]):,.0f}" for name in ("decisions", "accepted")]
        rows.append(row)
    return rows


def _median(values: list[int]) -> float:
    return float(median(values)) if values else 0.0


def decision_table(timed: list[dict[str, Any]]) -> Rows:
    """Return one table, header first, of `time_decisions` results; medians and 95th percentiles."""
    rows = [["labels", "clamped propagation", "with all that is learned", "the next questions"]]
    for one in timed:
        row = [" × ".join(f"{size:,}" for size in one["shape"])]
        for name in ("propagation", "decision"):
            p50, p95 = (1000 * one["seconds"][f"{name}_p{q}"] for q in (50, 95))
            row.append(f"{p50:.1f} ms, 95 %: {p95:.1f} ms")
        rows.append([*row, f"{1000 * one['seconds']['questions']:.0f} ms"])
    return rows


def tuning_table(results: list[dict[str, Any]]) -> Rows:
    """Return one table, header first, of `bench tuning` results."""
    rows = [["seed", "time", "finished", "pruned", "preset, held out", "best, held out"]]
    rows[0] += ["rank correlation with the AUC of all cells"]
    for one in results:
        counts = [str(one["finished"]), str(one["pruned"])]
        scores = [f"{one[name]:.4f}" for name in ("preset_held_out", "best_held_out")]
        rows.append([str(one["seed"]), f"{one['seconds']:.0f} s", *counts, *scores])
        rows[-1].append(f"{one['rank_correlation']:.2f}")
    return rows


def sensitivity_tables(results: list[dict[str, Any]], how: str) -> list[tuple[str, Rows]]:
    """Return a table per set and setting of `bench sensitivity` results: curves as rows."""
    tables = []
    for key in dict.fromkeys((one["set"], one["r"], one["setting"]) for one in results):
        found = [one for one in results if (one["set"], one["r"], one["setting"]) == key]
        name, r, setting = key
        values = ["∞" if one["value"] is None else str(one["value"]) for one in found]
        rows = [[setting, *values]]
        for measure, title in (("average_precision", "test AP"), ("auc", "AUC of confidences")):
            rows.append([title, *(f"{one[measure]:.3f}" for one in found)])
        noise = "own candidates" if r is None else f"r = {r}"
        tables.append((f"{setting} on {name}, {noise}, {how}", rows))
    return tables


def disambiguation_tables(results: list[dict[str, Any]], title: str) -> list[tuple[str, Rows]]:
    """Return one table, header first, per set and noise of `bench disambiguation` results."""
    tables: dict[str, Rows] = {}
    header = ["", "micro AUC", "macro AUC", "instance AP", "ECE ↓", "F1", "F1 of candidates"]
    for one in results:
        rows = tables.setdefault(f"{title}{one['set']}, {one['noise']}", [[*header, "time"]])
        figures = ("auc", "macro_auc", "instance_ap", "ece", "f1", "candidate_f1")
        scores = [f"{one[name]:.3f}" for name in figures]
        rows.append([one["method"], *scores, f"{one['seconds']:.2f} s"])
    return list(tables.items())


def harm_tables(results: list[dict[str, Any]], methods: list[str]) -> list[tuple[str, Rows]]:
    """Return one table, header first, per set of `bench harm` results."""
    tables: dict[str, Rows] = {}
    for one in results:
        ours = ["studio, 30 answers", "ECE then", "false, our interval"] if "low" in one else []
        header = ["noise", "F1 as given", *methods, *ours]
        rows = tables.setdefault(f"{one['set']}: change of F1 when resolved", [header])
        known = []
        if "low" in one:
            interval = f"{one['low']:.0%} to {one['high']:.0%}"
            known = [f"{one['answered']:+.3f}", f"{one['ece_answered']:.3f}", interval]
        changes = [f"{one[name]:+.3f}" for name in methods]
        rows.append([one["noise"], f"{one['given']:.3f}", *changes, *known])
    return list(tables.items())


def markdown(tables: list[tuple[str, Rows]]) -> str:
    parts = []
    for title, (header, *rows) in tables:
        lines = [header, ["---"] * len(header), *rows]
        body = "\n".join("| " + " | ".join(line) + " |" for line in lines)
        parts.append(f"**{title}**\n\n{body}\n")
    return "\n".join(parts)


def write_section(path: Path, name: str, text: str) -> None:
    """Put the text between `<!-- name -->` and `<!-- /name -->`, adding these at the end if new."""
    old = path.read_text(encoding="utf-8") if path.exists() else "# Benchmarks\n"
    section = f"<!-- {name} -->\n{text.strip()}\n<!-- /{name} -->"
    pattern = re.compile(f"<!-- {re.escape(name)} -->.*?<!-- /{re.escape(name)} -->", re.DOTALL)
    if pattern.search(old):
        new = pattern.sub(lambda _: section, old)
    else:
        new = f"{old.rstrip()}\n\n{section}\n"
    path.write_text(new, encoding="utf-8")


def _mean_sd(pair: list[float]) -> str:
    return f"{pair[0]:.3f}±{pair[1]:.3f}"


def source_tables(results: list[dict[str, Any]]) -> list[tuple[str, Rows]]:
    """Return the mean AUC by set and method, and what is known of the sources."""
    methods = list(dict.fromkeys(one["method"] for one in results))
    sets = list(dict.fromkeys(one["set"] for one in results))

    def mean(figure: str, method: str, name: str | None = None) -> float:
        chosen = [one for one in results if one["method"] == method]
        return fmean(one[figure] for one in chosen if name in (None, one["set"]))

    header = ["method", *sets, "mean", "F1 at 0.5", "ECE", "seconds"]
    rows = [header]
    for method in methods:
        scores = [f"{mean('auc', method, name):.3f}" for name in (*sets, None)]
        ends = [f"{mean('f1', method):.3f}", f"{mean('ece', method):.3f}"]
        rows.append([method, *scores, *ends, f"{mean('seconds', method):.1f}"])
    known = [one for one in results if "n_rates" in one]
    sums = {
        key: sum(one[key] for one in known)
        for key in ("n_rates", "n_inside", "n_always_yes", "n_found", "n_wrongly")
    }
    inside = f"{sums['n_inside']} of {sums['n_rates']}"
    found = f"{sums['n_found']} of {sums['n_always_yes']}"
    about = [
        ["rates inside their 90 % interval", "always yes, found", "others said to say little"],
        [inside, found, str(sums["n_wrongly"])],
    ]
    return [("AUC over candidate cells, simulated crowds", rows), ("Sources", about)]
