"""Which way round the tables of a `.mat` file are: what turn makes all of their sizes agree."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from core.formats.shared.findings import Findings, refuse

Variables = dict[str, Any]


@dataclass(frozen=True)
class Turn:
    """Which of the tables lie on their side."""

    data: bool
    labels: tuple[bool, ...]

    def sizes(self, data: Any, tables: Sequence[Any]) -> tuple[int, int, set[int], set[int]]:
        """Return n and d of the features, and every n and L of the labels, as turned."""
        n, d = _turned(data.shape, self.data)
        shapes = [_turned(t.shape, turn) for t, turn in zip(tables, self.labels, strict=True)]
        return n, d, {shape[0] for shape in shapes}, {shape[1] for shape in shapes}

    def __str__(self) -> str:
        kinds = ("N x L", "L x N")
        labels = ", ".join(kinds[turn] for turn in self.labels)
        return f"features {'D x N' if self.data else 'N x D'}, labels {labels}"


def _turned(shape: tuple[int, int], turn: bool) -> tuple[int, int]:
    return (shape[1], shape[0]) if turn else (shape[0], shape[1])


def orientation(data: Any, tables: Sequence[Any], names: Variables, findings: Findings) -> Turn:
    """Return the turn that makes all sizes agree; by convention data is N x D, labels L x N."""
    choices = itertools.product((False, True), *[(True, False)] * len(tables))
    turns = [Turn(first, tuple(rest)) for first, *rest in choices]
    fitting = [turn for turn in turns if _fits(turn.sizes(data, tables), names)]
    if not fitting:
        shapes = ", ".join(str(table.shape) for table in tables)
        rule = "features and labels must agree on the number of instances"
        refuse(rule, "Give data N x D and labels L x N.", value=f"{data.shape} and {shapes}")
    if len(fitting) > 1:
        fix = "Add label_names or ids if that is wrong: their lengths settle it."
        findings.add(f"the shapes allow {len(fitting)} readings; used: {fitting[0]}", fix)
    return fitting[0]


def _fits(sizes: tuple[int, int, set[int], set[int]], names: Variables) -> bool:
    n, d, label_ns, label_counts = sizes
    if label_ns != {n} or len(label_counts) != 1:
        return False
    wanted = {"ids": n, "feature_names": d, "label_names": next(iter(label_counts))}
    return all(key not in names or names[key].size == size for key, size in wanted.items())
