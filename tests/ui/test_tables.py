"""Tables: what is long wraps, or leaves room for what stands beside it."""

import json

from streamlit.testing.v1 import AppTest


def test_problems_that_need_more_than_a_line_wrap():
    def draw() -> None:
        from core.errors import Problem
        from plain_app.widgets.errors import problem_table

        problem_table([Problem("a column is empty", "Leave it out.")], "short")
        problem_table([Problem("a column is empty", "Leave it out. " * 9)], "long")

    short, long = AppTest.from_function(draw).run().dataframe
    assert (short.proto.row_height, long.proto.row_height) == (30, 58)


def test_long_labels_leave_room_for_the_other_columns():
    def draw() -> None:
        import pandas as pd

        from plain_app.widgets.tables import cell_table

        for label in ("sea", "social services for elderly people"):
            cell_table(pd.DataFrame({"label": [label], "confidence": [0.5]}), label)

    tables = AppTest.from_function(draw).run().dataframe
    short, long = (json.loads(one.proto.columns)["label"].get("width") for one in tables)
    assert (short, long) == (None, 160)
