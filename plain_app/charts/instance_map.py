"""The map of instances: what colour each has, how it is packed for the browser, who is inside.

Every colouring becomes a class per instance (one byte) and a legend that says what the classes
mean. Numbers become `N_STEPS` classes, names at most `MAX_NAMES`; the class after the last is
`missing`. The browser knows the colours, so that they follow the theme.
"""

import json
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

N_STEPS = 64
MAX_NAMES = 9

Numbers = npt.NDArray[np.floating[Any]]
Scale = Literal["confidence", "amount", "names"]


class Legend(NamedTuple):
    """What the classes of a map mean."""

    title: str
    scale: Scale
    names: tuple[str, ...] = ()  # of classes, or of the two ends of a range
    counts: tuple[int, ...] = ()
    missing: str = ""
    n_missing: int = 0


class Colouring(NamedTuple):
    """A class per instance; `n_classes` itself marks instances without a value."""

    classes: npt.NDArray[np.uint8]
    n_classes: int
    legend: Legend


class Axis(NamedTuple):
    """What stands beside a map: a name, and texts at places of [-1, 1]."""

    name: str
    ticks: tuple[tuple[float, str], ...]


class Places(NamedTuple):
    """Where all instances of a map stand, in [-1, 1]."""

    x: npt.NDArray[np.float32]
    y: npt.NDArray[np.float32]


def place_points(layout: Numbers) -> Places:
    """Centre a layout and scale it to [-1, 1] without bending it."""
    low, high = layout.min(axis=0), layout.max(axis=0)
    half = max(float((high - low).max()) / 2, 1e-12)
    scaled = ((layout - (low + high) / 2) / half).astype(np.float32)
    return Places(scaled[:, 0].copy(), scaled[:, 1].copy())


def colour_numbers(
    values: Numbers,
    title: str,
    scale: Scale = "amount",
    bounds: tuple[float, float] | None = None,
    missing: str = "no value",
) -> Colouring:
    """Cut a range of numbers into steps; NaN is missing."""
    known = np.isfinite(values)
    low, high = bounds or _range(values[known])
    part = (values[known] - low) / ((high - low) or 1.0)
    classes = np.full(len(values), N_STEPS, np.uint8)
    classes[known] = np.clip(part * N_STEPS, 0, N_STEPS - 1).astype(np.uint8)
    n_missing = int((~known).sum())
    legend = Legend(title, scale, (f"{low:.4g}", f"{high:.4g}"), (), missing, n_missing)
    return Colouring(classes, N_STEPS, legend)


def colour_names(
    codes: npt.NDArray[Any], names: Sequence[str], title: str, missing: str = "no value"
) -> Colouring:
    """Give each name a class; negative codes are missing."""
    known = codes >= 0
    classes = np.where(known, codes, len(names)).astype(np.uint8)
    counts = np.bincount(codes[known], minlength=len(names))
    n_missing = int((~known).sum())
    legend = Legend(title, "names", tuple(names), tuple(counts.tolist()), missing, n_missing)
    return Colouring(classes, len(names), legend)


def colour_texts(values: Sequence[Any], title: str) -> Colouring:
    """Give the most frequent values a class each and the others one together."""
    texts = np.array([_text(value) for value in values], dtype=object)
    present = texts[texts != ""].astype(str)
    names, places, counts = np.unique(present, return_inverse=True, return_counts=True)
    order = np.argsort(-counts, kind="stable")
    kept = order if len(order) <= MAX_NAMES else order[: MAX_NAMES - 1]
    rank = np.full(len(names), len(kept))
    rank[kept] = np.arange(len(kept))
    codes = np.full(len(texts), -1)
    codes[texts != ""] = rank[places]
    others = [f"{len(order) - len(kept)} others"] if len(order) > len(kept) else []
    return colour_names(codes, [*(str(names[at]) for at in kept), *others], title)


def pack_places(places: Places, layout: str, axes: dict[str, Axis] | None = None) -> bytes:
    """Return where points stand, for the browser: x..., y...; with axes where those mean much."""
    shown = {name: one._asdict() for name, one in axes.items()} if axes else None
    head = {"layout": layout, "axes": shown}
    return _pack(head, places.x.astype("<f4"), places.y.astype("<f4"))


def pack_colours(colouring: Colouring, revision: str, layout: str) -> bytes:
    """Return the classes of instances, for the browser, which draws only what is new."""
    head = {
        "revision": revision,
        "layout": layout,
        "classes": colouring.n_classes,
        "legend": colouring.legend._asdict(),
    }
    return _pack(head, colouring.classes)


def _pack(head: dict[str, Any], *arrays: npt.NDArray[Any]) -> bytes:
    """Return [size of head, n, head, arrays...]; the head ends at a multiple of four."""
    text = json.dumps(head).encode()
    text += b" " * (-len(text) % 4)
    sizes = np.array([len(text), len(arrays[0])], "<u4")
    return b"".join([sizes.tobytes(), text, *(array.tobytes() for array in arrays)])


def inside_polygon(
    x: Numbers, y: Numbers, polygon: Sequence[Sequence[float]]
) -> npt.NDArray[np.bool_]:
    """Tell which points are inside a polygon, by counting the edges to their right.

    Points are sorted by height once, so an edge looks only at those beside it.
    """
    corners = np.asarray(polygon, np.float64).reshape(-1, 2)
    inside = np.zeros(len(x), bool)
    if len(corners) < 3:
        return inside
    order = np.argsort(y, kind="stable")
    xs, ys = np.asarray(x)[order], np.asarray(y)[order]
    odd = np.zeros(len(x), bool)
    for (x0, y0), (x1, y1) in zip(corners, np.roll(corners, -1, axis=0), strict=True):
        if y0 == y1:
            continue
        beside = slice(*np.searchsorted(ys, sorted((y0, y1))))
        odd[beside] ^= xs[beside] < x0 + (ys[beside] - y0) * ((x1 - x0) / (y1 - y0))
    inside[order] = odd
    return inside


def _range(values: Numbers) -> tuple[float, float]:
    return (float(values.min()), float(values.max())) if len(values) else (0.0, 1.0)


def _text(value: Any) -> str:
    return "" if value is None or value != value else str(value)[:80]
