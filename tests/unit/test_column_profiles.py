"""What is told of a column before it has a role."""

import pyarrow as pa
import pytest

from core.formats.shared.profiles import Roles

SAME = [
    [["x", "x"], ["x"]],
    [[None, None]],
    [[0.0, -0.0], [0.0]],
    [[[1, 2]], [[1, 2], [1, 2]]],
    [[{"a": 1}], [{"a": 1}]],
]
OTHER = [
    [["x", "x"], ["y"]],
    [["x", "y"]],
    [["x", None]],
    [[1.0, float("nan")]],
    [[[1, 2]], [[2, 1]]],
    [[{"a": 1}, {"a": 2}]],
    [["only one"]],
    [[]],
]


def is_constant(chunks, make=pa.array):
    column = pa.chunked_array([make(one) for one in chunks])
    return Roles(pa.table({"column": column}), None).is_constant("column")


@pytest.mark.parametrize("chunks", SAME)
def test_a_column_is_constant_where_all_rows_say_the_same(chunks):
    assert is_constant(chunks)


@pytest.mark.parametrize("chunks", OTHER)
def test_a_column_with_another_row_is_not_constant(chunks):
    assert not is_constant(chunks)


def test_texts_by_number_are_compared_as_texts():
    """Each part of a Parquet file has a dictionary of its own."""
    same = (([1, 1], ["y", "x"]), ([0], ["x"]))
    other = (([1, 1], ["y", "x"]), ([1], ["x", "y"]))
    for given, expected in ((same, True), (other, False)):
        parts = [pa.DictionaryArray.from_arrays(numbers, texts) for numbers, texts in given]
        assert is_constant(parts, make=lambda one: one) is expected
