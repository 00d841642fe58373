"""What the tests of CSV, TSV, Parquet, JSON Lines and JSON share."""

from pathlib import Path
from typing import Any

import format_cases as cases
import numpy as np
import pytest

from core import formats
from core.data.dataset import CandidateDataset
from core.formats import ReadResult

KINDS = ("csv", "tsv", "parquet", "jsonl", "json")
each_kind = pytest.mark.parametrize("kind", KINDS)


def read_text(tmp_path: Path, text: str | bytes, name: str = "a.csv", **options: Any) -> ReadResult:
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return formats.read(path, **options)


def assert_same(read: CandidateDataset, written: CandidateDataset) -> None:
    np.testing.assert_array_equal(cases.dense(read.features), cases.dense(written.features))
    np.testing.assert_array_equal(read.candidates, written.candidates)
    assert (read.ids, read.label_names) == (written.ids, written.label_names)
    assert read.feature_names == written.feature_names
    assert (read.truth is None) == (written.truth is None)
    if written.truth is not None:
        np.testing.assert_array_equal(read.truth, written.truth)


ROWS = "id{0}x{0}label_a{0}label_b\ni1{0}0.5{0}1{0}0\ni2{0}-2{0}0{0}1\ni3{0}3{0}1{0}1\n"


def assert_rows(result: ReadResult) -> None:
    assert result.dataset.ids == ("i1", "i2", "i3")
    assert result.dataset.features.tolist() == [[0.5], [-2.0], [3.0]]
    assert result.dataset.candidates.tolist() == [[1, 0], [0, 1], [1, 1]]
    assert result.dataset.label_names == ("a", "b")
