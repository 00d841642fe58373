"""What each setting does, as a small picture: the real formula on an example one can follow.

Pictures follow the values in the form, so that a change is seen before anything is trained.
"""

import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from core.confidence.level import expected_range
from core.engine.balance import balance
from core.engine.config import PlainConfig
from plain_app.charts import axis, legend, titled
from plain_app.charts.colours import DOUBTFUL, NEUTRAL, SURE
from plain_app.charts.meaning_examples import (
    Line,
    descent,
    example_confidence,
    kernel_share,
    rounded_line,
)

Floats = npt.NDArray[np.float64]
_COSINES = np.linspace(0.98, 0.3, 24) ** 1.2  # of the neighbours of an example, nearest first


class Sizes(NamedTuple):
    """How large the data is."""

    n_instances: int
    n_features: int
    n_labels: int


class Meaning(NamedTuple):
    """A picture: lines, or bars by name, and a sentence about them."""

    text: str
    x: str
    y: str
    lines: dict[str, Line] = {}  # noqa: RUF012 - never changed
    bars: dict[str, float] = {}  # noqa: RUF012
    strong: frozenset[str] = frozenset()  # bars that count
    mark: float | None = None  # the setting's value on the x axis
    is_log: bool = False


def meaning_points(name: str, config: PlainConfig, sizes: Sizes) -> Meaning:
    """Return the picture of one setting, at the values of a form."""
    return MEANINGS[name](config, sizes)


def meaning_option(points: Meaning) -> dict[str, Any]:
    """Draw it, small."""
    if points.bars:
        colours = [SURE if name in points.strong else NEUTRAL for name in points.bars]
        data = [
            {"value": round(value, 4), "itemStyle": {"color": colour}}
            for value, colour in zip(points.bars.values(), colours, strict=True)
        ]
        x = axis(points.x, "category", data=list(points.bars))
        series: list[dict[str, Any]] = [{"type": "bar", "data": data, "barCategoryGap": "20%"}]
    else:
        x = axis(points.x, "log" if points.is_log else "value", scale=True)
        series = [
            {"type": "line", "name": name, "showSymbol": False, "data": [list(p) for p in line]}
            for name, line in points.lines.items()
        ]
        if points.mark is not None:
            style = {"color": DOUBTFUL, "type": "solid", "width": 2}
            series[0]["markLine"] = {
                "symbol": "none",
                "silent": True,
                "label": {"formatter": f"{points.mark:g}"},
                "lineStyle": style,
                "data": [{"xAxis": points.mark}],
            }
    option = titled("", xAxis=x, yAxis=axis(points.y, nameGap=34), series=series)
    option["grid"] |= {"top": 30, "left": 26}
    if len(points.lines) > 1:
        option["legend"] = legend(list(points.lines))  # beneath the tools
        option["grid"]["top"] = 58  # the tools, the names, the mark's own
    return option


# --- the two graphs ------------------------------------------------------------------------------


def _neighbours(config: PlainConfig, sizes: Sizes) -> Meaning:
    bars = {str(at + 1): float(cosine) for at, cosine in enumerate(_COSINES)}
    used = frozenset(str(at + 1) for at in range(min(config.k, len(bars))))
    text = f"An instance listens to its {config.k} nearest; the others are not asked."
    return Meaning(text, "neighbour, the nearest first", "similarity", bars=bars, strong=used)


def _exponent(config: PlainConfig, sizes: Sizes) -> Meaning:
    similarity = np.linspace(0, 1, 41)
    powers = dict.fromkeys((config.rho, 1.0, 3.0, 10.0))
    lines = {f"ρ = {rho:g}": rounded_line(similarity, similarity**rho) for rho in powers}
    text = "The weight of an edge is the similarity to this power: a large ρ trusts only the near."
    return Meaning(text, "similarity", "weight of the edge", lines)


# --- propagation ---------------------------------------------------------------------------------


def _instances(config: PlainConfig, sizes: Sizes) -> Meaning:
    weights = np.linspace(0, max(1.0, 1.5 * config.alpha), 31)
    lines = {
        text: rounded_line(
            weights, [example_confidence(config, alpha=a, near=near) for a in weights]
        )
        for text, near in (("neighbours have it", 1.0), ("half of them", 0.5), ("none has it", 0.0))
    }
    text = "A doubtful candidate (predicted 0.5): the more α, the more its neighbours decide."
    return Meaning(text, "α", "confidence", lines, mark=config.alpha)


def _labels(config: PlainConfig, sizes: Sizes) -> Meaning:
    weights = np.linspace(0, max(0.5, 1.5 * config.beta), 31)
    lines = {
        text: rounded_line(
            weights, [example_confidence(config, beta=b, beside=beside) for b in weights]
        )
        for text, beside in (("a related label is sure", 1.0), ("a related label is refuted", 0.0))
    }
    text = "A doubtful candidate beside a related label: the more β, the more they go together."
    return Meaning(text, "β", "confidence", lines, mark=config.beta)


def _candidates(config: PlainConfig, sizes: Sizes) -> Meaning:
    predicted = np.linspace(0, 1, 21)
    eta = config.eta
    lines = {
        "offered": rounded_line(predicted, (predicted + eta) / (1 + eta)),
        "not offered": rounded_line(predicted, predicted / (1 + eta)),
    }
    text = "Without neighbours, a pseudo-label lies between prediction and candidate; η pulls to "
    return Meaning(text + "the candidate.", "prediction", "pseudo-label", lines)


def _steps(config: PlainConfig, sizes: Sizes) -> Meaning:
    slow = 1 + config.eta
    fast = slow + 2 * config.alpha + 2 * config.beta
    last = max(config.n_steps or 0, math.ceil(5 / (config.gamma * slow)), 10)
    steps = np.unique(np.linspace(0, last, 61).astype(int))
    lines = {
        "slowest part": rounded_line(steps, 100 * np.abs(1 - config.gamma * slow) ** steps),
        "fastest part": rounded_line(steps, 100 * np.abs(1 - config.gamma * fast) ** steps),
    }
    text = "How far Z still is from its goal after so many steps of size γ. None goes all the way."
    return Meaning(text, "steps T", "% of the way left", lines, mark=config.n_steps)


def _balance(config: PlainConfig, sizes: Sizes) -> Meaning:
    Z = np.array([[0.35], [0.55], [0.62], [0.8], [0.3], [0.45]])
    Y = np.array([[1.0], [1.0], [1.0], [1.0], [0.0], [0.0]])
    values = np.asarray(balance(Z, Y, config.balance)).ravel()
    names = [f"{z:.2f}" + ("" if y else " ○") for z, y in zip(Z.ravel(), Y.ravel(), strict=True)]
    bars = dict(zip(names, map(float, values), strict=True))
    offered = frozenset(name for name in names if "○" not in name)
    text = "Six cells of a label before (beneath) and after; ○ was not offered."
    return Meaning(text, "propagated value", "pseudo-label", bars=bars, strong=offered)


def _when(config: PlainConfig, sizes: Sizes) -> Meaning:
    epochs = range(min(config.epochs, 24) + 1)
    on = {"alternating": epochs[1:], "two_stage": epochs[:1], "none": epochs[:0]}
    strong = frozenset(map(str, on[config.disambiguation]))
    bars = {str(epoch): 1.0 if str(epoch) in strong else 0.06 for epoch in epochs}
    text = "When confidences go through the graphs: before training (0), after every epoch, never."
    return Meaning(text, "epoch", "propagation", bars=bars, strong=strong)


# --- the network ---------------------------------------------------------------------------------


def _loss(config: PlainConfig, sizes: Sizes) -> Meaning:
    y = np.linspace(0.01, 0.99, 49)

    def loss(z: float) -> Floats:
        if config.loss == "bce":
            return -z * np.log(y) - (1 - z) * np.log(1 - y)
        return np.abs(y - z) if config.loss == "mae" else (y - z) ** 2

    lines = {f"pseudo-label {z:g}": rounded_line(y, loss(z)) for z in (1.0, 0.6, 0.0)}
    text = f"What {config.loss} charges for a prediction, whatever the pseudo-label asks for."
    return Meaning(text, "prediction", "loss", lines)


def _layers(config: PlainConfig, sizes: Sizes) -> Meaning:
    usual = 64 if sizes.n_labels < 64 else 256 if sizes.n_labels < 256 else 512
    first, second = config.hidden or (usual, usual)
    widths = (sizes.n_features, first, second, sizes.n_labels)
    names = ("features", "hidden 1", "hidden 2", "labels")
    bars = {f"{name}: {width:,}": float(width) for name, width in zip(names, widths, strict=True)}
    weights = sum((a + 1) * b for a, b in pairwise(widths))
    text = f"{weights:,} weights on this data. More can remember more, also what is false."
    return Meaning(text, "", "units", bars=bars, strong=frozenset(list(bars)[1:3]))


def _epochs(config: PlainConfig, sizes: Sizes) -> Meaning:
    per_epoch = math.ceil(sizes.n_instances / config.batch_size)
    epochs = np.unique(np.linspace(0, max(2 * config.epochs, 10), 21).astype(int))
    text = (
        f"{per_epoch:,} steps an epoch on this data. Too few learn little, too many what is false."
    )
    lines = {"steps": rounded_line(epochs, per_epoch * epochs)}
    return Meaning(text, "epochs", "gradient steps in all", lines, mark=config.epochs)


def _batch(config: PlainConfig, sizes: Sizes) -> Meaning:
    batch = np.unique(np.geomspace(1, max(1024, 2 * config.batch_size), 31).astype(int))
    lines = {"steps": rounded_line(batch, np.ceil(sizes.n_instances / batch))}
    text = "Small batches make many noisy steps, large ones few calm steps."
    mark = config.batch_size
    return Meaning(text, "instances per step", "steps an epoch", lines, mark=mark, is_log=True)


def _rate(config: PlainConfig, sizes: Sizes) -> Meaning:
    rates = (config.learning_rate / 4, config.learning_rate, 4 * config.learning_rate)
    lines = {f"{rate:g}": descent(rate, config.momentum) for rate in rates}
    text = "Steps down a valley of curvature 10: too small crawls, too large overshoots."
    return Meaning(text, "step", "distance from the bottom", lines)


def _momentum(config: PlainConfig, sizes: Sizes) -> Meaning:
    values = dict.fromkeys((0.0, config.momentum, 0.99))
    lines = {f"{value:g}": descent(config.learning_rate, value) for value in values}
    text = "Momentum remembers the direction: faster down a valley, with some overshoot."
    return Meaning(text, "step", "distance from the bottom", lines)


def _decay(config: PlainConfig, sizes: Sizes) -> Meaning:
    total = config.epochs * math.ceil(sizes.n_instances / config.batch_size)
    steps = np.linspace(0, total, 31)
    left = (1 - config.learning_rate * config.weight_decay / (1 - config.momentum)) ** steps
    text = "What remains of a weight that no instance asks for, over the whole run."
    return Meaning(
        text, "gradient steps", "% of the weight", {"left": rounded_line(steps, 100 * left)}
    )


def _standardize(config: PlainConfig, sizes: Sizes) -> Meaning:
    spread = {"age (0–90)": 20.0, "price (0–900)": 200.0, "share (0–1)": 0.3}
    squares = {name: 1.0 if config.standardize else one**2 for name, one in spread.items()}
    total = sum(squares.values())
    bars = {name: 100 * one / total for name, one in squares.items()}
    text = "How much each of three features counts in a distance. Standardised, all count alike."
    return Meaning(text, "", "% of the distance", bars=bars, strong=frozenset(bars))


def _unit_rows(config: PlainConfig, sizes: Sizes) -> Meaning:
    words = (10, 100, 1000)
    is_unit = getattr(config, "unit_rows", False)
    bars = {f"{n:,} words": 1.0 if is_unit else math.sqrt(n) for n in words}
    text = "How loud texts of different length are to the network: rows of length 1 are alike."
    return Meaning(text, "", "length of the row", bars=bars, strong=frozenset(bars))


def _members(config: PlainConfig, sizes: Sizes) -> Meaning:
    count = getattr(config, "members", 1)
    kept = 0.0 if count == 1 else 100 / count
    bars = {f"network {at + 1}": 100 - kept for at in range(count)}
    text = "What each network learns from. " + (
        "One network judges what it has learnt by heart."
        if count == 1
        else f"Each is asked about the {kept:.0f}% it never saw."
    )
    return Meaning(text, "", "% of instances seen", bars=bars, strong=frozenset(bars))


def _landmarks(config: PlainConfig, sizes: Sizes) -> Meaning:
    count = getattr(config, "landmarks", 0)
    kept = kernel_share()
    counts = np.arange(1, len(kept) + 1) * sizes.n_instances / len(kept)
    text = "How much of all similarities so many landmarks can express, on an example."
    lines = {"expressed": rounded_line(counts, 100 * kept)}
    return Meaning(text, "landmarks", "% of the kernel", lines, mark=count)


def _rounds(config: PlainConfig, sizes: Sizes) -> Meaning:
    count = getattr(config, "rounds", 0)
    lines = {"true candidate": [(0.0, 1.0)], "false candidate": [(0.0, 1.0)]}
    for line, looks in ((lines["true candidate"], 0.9), (lines["false candidate"], 0.2)):
        for at in range(1, max(count, 4) + 1):
            line.append((float(at), (line[-1][1] + looks) / 2))
    text = "What the networks are told of two candidates: all offered at first, then what was "
    return Meaning(text + "believed the round before.", "round", "target", lines, mark=count)


# --- the run -------------------------------------------------------------------------------------


def _threshold(config: PlainConfig, sizes: Sizes) -> Meaning:
    predictions = (0.95, 0.88, 0.76, 0.69, 0.55, 0.4, 0.22, 0.1)
    bars = {f"{value:.2f}": value for value in predictions}
    above = frozenset(name for name, value in bars.items() if value > config.threshold)
    text = f"Predictions above {config.threshold:g} count as labels; only scores depend on it."
    return Meaning(text, "prediction", "", bars=bars, strong=above)


def _expected(config: PlainConfig, sizes: Sizes) -> Meaning:
    expected = expected_range(config.expected_false)
    middles = [at / 20 for at in range(1, 20)]
    bars = {f"{middle:.0%}": 1.0 if expected is None else 0.2 for middle in middles}
    inside = frozenset(
        f"{middle:.0%}"
        for middle in middles
        if expected is not None and expected[0] <= middle <= expected[1]
    )
    bars |= dict.fromkeys(inside, 1.0)
    text = "Shares of false candidates that are expected; what the data show counts more."
    return Meaning(text, "false candidates", "expected", bars=bars, strong=inside)


def _method(config: PlainConfig, sizes: Sizes) -> Meaning:
    chosen = "PLAIN" if config.method is None else config.method.name
    bars = {"instance graph": 1.0, "label graph": 1.0, "features": 1.0, "candidates": 1.0}
    used = frozenset(bars if config.method is None else ("features", "candidates"))
    text = f"What the run learns from: {chosen} learns. Other methods have settings of their own."
    return Meaning(text, "", "used", bars=bars, strong=used)


def _seed(config: PlainConfig, sizes: Sizes) -> Meaning:
    lines = {
        f"seed {seed}": rounded_line(
            np.arange(1, 13), np.random.default_rng(seed).permutation(12) + 1
        )
        for seed in (config.seed, config.seed + 1)
    }
    text = "The order in which twelve instances are seen. The same seed gives the same run."
    return Meaning(text, "step", "instance", lines)


def _device(config: PlainConfig, sizes: Sizes) -> Meaning:
    order = ("cuda", "mps", "cpu")
    chosen = frozenset(order if config.device == "auto" else [config.device.partition(":")[0]])
    bars = {name: float(len(order) - at) for at, name in enumerate(order)}
    text = "Where training computes; auto takes the first of these that the machine has."
    return Meaning(text, "", "tried first", bars=bars, strong=chosen)


def _cluster(config: PlainConfig, sizes: Sizes) -> Meaning:
    tasks = {"graph": 4.0, "columns": 1.0, "networks": config.members / 2}
    used = frozenset(tasks if config.cluster is not None else ())
    text = "What each of two workers of a cluster takes; without an address all is computed here."
    return Meaning(text, "", "tasks", bars=tasks, strong=used)


MEANINGS: dict[str, Callable[[PlainConfig, Sizes], Meaning]] = {
    "alpha": _instances,
    "beta": _labels,
    "eta": _candidates,
    "gamma": _steps,
    "n_steps": _steps,
    "k": _neighbours,
    "rho": _exponent,
    "balance": _balance,
    "disambiguation": _when,
    "loss": _loss,
    "hidden": _layers,
    "epochs": _epochs,
    "batch_size": _batch,
    "learning_rate": _rate,
    "momentum": _momentum,
    "weight_decay": _decay,
    "standardize": _standardize,
    "unit_rows": _unit_rows,
    "members": _members,
    "landmarks": _landmarks,
    "rounds": _rounds,
    "expected_false": _expected,
    "method": _method,
    "threshold": _threshold,
    "seed": _seed,
    "device": _device,
    "cluster": _cluster,
}
