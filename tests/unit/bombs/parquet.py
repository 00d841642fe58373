"""Parquet."""

from pathlib import Path
from typing import Any

import numpy as np

from bombs.registry import MB, bomb


def _parquet(path: Path, columns: dict[str, Any], times: int = 1, **options: Any) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.table(columns)
    with pq.ParquetWriter(path, table.schema, compression="zstd", **options) as writer:
        for _ in range(times):
            writer.write_table(table)


def _runs(n: int, n_columns: int) -> dict[str, Any]:
    import pyarrow as pa

    zeros = pa.array(np.zeros(n, np.float32))
    labels = {"label_a": pa.array(np.zeros(n, np.int8)), "label_b": pa.array(np.ones(n, np.int8))}
    return {f"x{j}": zeros for j in range(n_columns)} | labels


@bomb("a.parquet")
def parquet_runs(path: Path) -> None:
    """What once took 20 GB for 3 MB: equal values in a few bytes."""
    _parquet(path, _runs(1_000_000, 900))


@bomb("a.parquet")
def parquet_rows(path: Path) -> None:
    _parquet(path, _runs(20_000_000, 2), times=8)


@bomb("a.parquet")
def parquet_few_gigabytes(path: Path) -> None:
    _parquet(path, _runs(2_000_000, 90), times=5)


@bomb("a.parquet")
def parquet_row_groups(path: Path) -> None:
    _parquet(path, _runs(1, 2), times=15_000)


@bomb("a.parquet")
def parquet_wide(path: Path) -> None:
    _parquet(path, _runs(100, 19_000))


@bomb("a.parquet")
def parquet_columns(path: Path) -> None:
    _parquet(path, _runs(3, 30_000))


@bomb("a.parquet")
def parquet_long_text(path: Path) -> None:
    """One text of ten megabytes in every one of a million rows, stored once."""
    import pyarrow as pa

    text = pa.DictionaryArray.from_arrays(pa.array([0] * 1_000_000, pa.int32()), ["x" * 10 * MB])
    _parquet(path, {**_runs(1_000_000, 1), "text": text}, dictionary_pagesize_limit=32 * MB)


@bomb("a.parquet")
def parquet_plain_long_text(path: Path) -> None:
    """The same, not declared as a dictionary in the schema."""
    import pyarrow as pa

    n = 20_000
    text = pa.array(["x" * 50_000], pa.string()).take(pa.array([0] * n, pa.int32()))
    _parquet(path, {**_runs(n, 1), "text": text}, times=10)


@bomb("a.parquet")
def parquet_long_labels(path: Path) -> None:
    import pyarrow as pa

    n = 20_000
    text = pa.array(["|".join(f"l{i}" for i in range(5_000))]).take(pa.array([0] * n, pa.int32()))
    _parquet(path, {"x": np.zeros(n, np.float32), "labels": text})


@bomb("a.parquet")
def parquet_label_lists(path: Path) -> None:
    import pyarrow as pa

    sets = pa.array([[f"l{i}" for i in range(5_000)]] * 20_000)
    _parquet(path, {"x": np.zeros(20_000, np.float32), "labels": sets})


@bomb("a.parquet")
def parquet_few_long_lists(path: Path) -> None:
    """Ten lists of ten million numbers: few rows, so all of them would be the sample."""
    import pyarrow as pa

    lists = pa.array([np.zeros(10_000_000, np.float32)] * 10)
    _parquet(path, {"x": lists, "labels": ["a|b"] * 10})


@bomb("a.parquet")
def parquet_lists_of_objects(path: Path) -> None:
    """A column to be shown that takes twenty times its size as Python's objects."""
    import pyarrow as pa

    objects = pa.array([[{"a": 1.0, "b": "xy"}] * 200_000] * 110)
    _parquet(path, {"shown": objects, "labels": ["a|b"] * 110})


@bomb("a.parquet")
def parquet_one_list(path: Path) -> None:
    """One instance whose list has 400 million numbers."""
    import pyarrow as pa

    values = pa.array(np.zeros(400_000_000, np.int8))
    lists = pa.ListArray.from_arrays(pa.array([0, 400_000_000, 400_000_000], pa.int32()), values)
    _parquet(path, {"embedding": lists, "labels": ["a", "b"]})


@bomb("a.parquet")
def parquet_lists(path: Path) -> None:
    import pyarrow as pa

    values = pa.array(np.zeros(50_000_000, np.float32))
    offsets = pa.array(np.arange(0, 50_000_001, 5_000), pa.int32())
    lists = pa.ListArray.from_arrays(offsets, values)
    _parquet(path, {"embedding": lists, "labels": ["a"] * 10_000}, times=20)


@bomb("a.parquet")
def parquet_nulls(path: Path) -> None:
    import pyarrow as pa

    n = 40_000_000
    columns = {f"x{j}": pa.nulls(n, pa.float64()) for j in range(20)}
    _parquet(path, {**columns, "label_a": pa.array(np.ones(n, np.int8))}, times=2)


@bomb("a.parquet")
def parquet_fixed_width(path: Path) -> None:
    import pyarrow as pa

    wide = pa.array([b"\0" * MB] * 20, pa.binary(MB))
    times = {**_runs(20, 1), "text": wide}
    _parquet(path, times, times=100)


@bomb("a.parquet")
def parquet_deep_lists(path: Path) -> None:
    import pyarrow as pa

    kind = pa.int32()
    for _ in range(60):
        kind = pa.list_(kind)
    _parquet(path, {"x": [1.0, 2.0, 3.0], "labels": ["a"] * 3, "deep": pa.nulls(3, kind)})


@bomb("a.parquet")
def parquet_not_finite(path: Path) -> None:
    n = 1_000_000
    nan = np.full(n, np.nan, np.float32)
    _parquet(path, {**{f"x{j}": nan for j in range(100)}, "label_a": np.ones(n, np.int8)})


@bomb("a.parquet")
def parquet_text_numbers(path: Path) -> None:
    """Numbers given as text that no column of numbers takes, many times over."""
    import pyarrow as pa

    n = 1_000_000
    text = pa.array(["1", "x"]).take(pa.array([0] * 1_000 + [1] * (n - 1_000), pa.int32()))
    _parquet(path, {**{f"feature_{j}": text for j in range(20)}, "label_a": np.ones(n, np.int8)})
