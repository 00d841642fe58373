"""JSON from a stranger's file: parsed with every failure turned into a DatasetError."""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from core.data.dataset import Features
from core.formats.shared.findings import Findings, refuse
from core.formats.shared.limits import check_shape, check_size
from core.formats.shared.sparse_rows import checked_csr, row_of
from core.formats.shared.text import as_float32, decoded


def load_json(path: Path, findings: Findings) -> Any:
    """Return the parsed file; refuse what is not JSON or is nested too deep."""
    check_size(path.stat().st_size)
    raw = path.read_bytes()
    check_size(_parsed_size(raw), "parsed JSON")
    try:
        return _without_surrogates(json.loads(decoded(raw, findings)), raw, findings)
    except RecursionError:
        refuse("JSON may be nested a few levels deep only", "Check how the file was made.")
    except json.JSONDecodeError as error:
        fix = "Write the file again: it is damaged, cut off, or not JSON."
        refuse(f"the file must be JSON: {error.msg}", fix, row=error.lineno, column=error.colno)
    except ValueError as error:
        refuse("numbers in JSON must be of ordinary length", "Correct the number.", value=error)


def _without_surrogates(value: Any, raw: bytes, findings: Findings) -> Any:
    """Return the value with halves of characters (`\\ud800` alone) replaced: they are no text."""
    if b"\\ud" not in raw and b"\\uD" not in raw:
        return value
    text = json.dumps(value, ensure_ascii=False)
    kept = text.encode("utf-8", "replace")
    if kept == text.encode("utf-8", "surrogatepass"):
        return value
    findings.add("text must be whole characters; others are read as ?", "Check its encoding.")
    return json.loads(kept)


def _parsed_size(raw: bytes) -> int:
    """Return about how many bytes JSON takes as Python objects, which may be thirty times more."""
    return len(raw) + 32 * raw.count(b",") + 64 * (raw.count(b"{") + raw.count(b"["))


def objects(given: Any) -> list[dict[str, Any]]:
    """Return the objects of a list; nothing where it is none."""
    return [one for one in given if isinstance(one, dict)] if isinstance(given, list) else []


def write_json_list(path: Path, items: Iterable[Any]) -> None:
    """Write a JSON list, one item per line."""
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for i, item in enumerate(items):
            file.write("[\n" if i == 0 else ",\n")
            file.write(json.dumps(item, ensure_ascii=False, allow_nan=False))
        file.write("\n]\n")


def write_json_lines(path: Path, items: Iterable[Any]) -> None:
    """Write one JSON value per line."""
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for item in items:
            file.write(json.dumps(item, ensure_ascii=False, allow_nan=False) + "\n")


def record_features(features: Features, row: int) -> Any:
    """Return one row of features for a record: a list, or a `sparse_row`."""
    if not sp.issparse(features):
        return features[row].tolist()
    columns, values = row_of(features, row)
    return sparse_row(columns.tolist(), values.tolist(), int(features.shape[1]))


def sparse_row(indices: Sequence[int], values: Sequence[float], size: int) -> dict[str, Any]:
    """Return how one sparse row of features is written into a record."""
    return {"indices": list(indices), "values": list(values), "size": size}


def features_of_rows(rows: Sequence[Any]) -> Features:
    """Return features given per instance, as lists of numbers or as `sparse_row` objects."""
    if rows and all(isinstance(row, Mapping) for row in rows):
        return _sparse_features(rows)
    lengths = {len(row) if isinstance(row, list) else -1 for row in rows}
    if len(lengths) != 1 or -1 in lengths:
        rule = "every instance must have a list of equally many features"
        refuse(rule, "Give each the same length.", value=sorted(lengths)[:5])
    width = lengths.pop()
    check_shape(len(rows), width, 0)
    check_size(4 * len(rows) * width, "the features")
    features: Features = _numbers(rows)
    return features


def _sparse_features(rows: Sequence[Mapping[str, Any]]) -> sp.csr_array:
    sizes = {int(row["size"]) for row in rows if isinstance(row.get("size"), int)}
    parts = [(_list(row, "indices"), _list(row, "values")) for row in rows]
    if len(sizes) != 1 or any(len(i) != len(v) for i, v in parts):
        rule = "sparse features need indices and values of one length, and one size"
        refuse(rule, "Write the file again.", value=sorted(sizes)[:5])
    indptr = np.cumsum([0, *(len(indices) for indices, _ in parts)])
    indices = [index for row, _ in parts for index in row]
    values = _numbers([value for _, row in parts for value in row])
    return checked_csr(values, indices, indptr, [len(rows), sizes.pop()])


def _list(row: Mapping[str, Any], key: str) -> list[Any]:
    given = row.get(key)
    if not isinstance(given, list):
        refuse(f"sparse features need a list of {key}", "Write the file again.", value=given)
    return given


def _numbers(values: Any) -> Any:
    try:
        return as_float32(values)
    except (TypeError, ValueError, OverflowError):
        refuse("features must be numbers", "Encode text and missing values first.")
