"""Labels that are strongly supported though never offered."""

from collections.abc import Sequence
from typing import Any

import pandas as pd
import streamlit as st

from plain_app import state
from plain_app.services import explore
from plain_app.services.explore import Explored
from plain_app.views.explore.instance import draw_instance, on_row
from plain_app.widgets.figures import counted, listed
from plain_app.widgets.links import open_in_review
from plain_app.widgets.tables import BAR, HEAD, PICTURE_ROW, ROW, chosen_rows


def draw_outside(run_id: str) -> None:
    """Draw the cells, and the instance that is chosen among them."""
    results = explore.explored(run_id)
    left, right = st.columns(2, gap="medium")
    with left:
        cut = st.slider("Prediction above", 0.5, 0.99, explore.NEW_LABEL_CUT, key="explore.new_cut")
        _outside_table(results, explore.outside(results, cut))
    with right:
        draw_instance(run_id)


def _outside_table(results: Explored, found: explore.Outside) -> None:
    ids, names = results.dataset.ids, results.dataset.label_names
    with st.container(horizontal=True, vertical_alignment="center"):
        count = f"{counted(found.total, 'label')} strongly supported though never offered"
        st.caption(count + listed(found.total, explore.MAX_LISTED))
        rows = dict.fromkeys(found.rows.tolist())
        open_in_review(lambda: [ids[row] for row in rows], "explore.review_outside")
    if not found.total:
        st.info("No label outside the candidates is predicted this strongly.")
        return
    table: dict[str, Any] = {
        "instance": [ids[row] for row in found.rows],
        "label": [names[at] for at in found.labels],
        "prediction": found.predictions.astype(float),
    }
    if results.picture_column is not None:
        table = {"picture": [results.picture(int(row)) for row in found.rows], **table}
    cells = list(zip(found.rows.tolist(), found.labels.tolist(), strict=True))
    tall = ROW if results.picture_column is None else PICTURE_ROW
    st.dataframe(
        pd.DataFrame(table),
        hide_index=True,
        row_height=tall,
        height=min(HEAD + tall * len(cells), 560),
        column_config={
            "picture": st.column_config.ImageColumn("", width=52),
            "prediction": st.column_config.ProgressColumn(
                format="%.2f", min_value=0, max_value=1, width=BAR
            ),
        },
        key="explore.outside",
        on_select=lambda: on_outside("explore.outside", cells, ids),
        selection_mode="single-row",
        alt="Labels strongly supported though never offered",
    )


def on_outside(key: str, cells: Sequence[tuple[int, int]], ids: Sequence[str]) -> None:
    """Open the cell of the row that was chosen."""
    on_row(key, [ids[row] for row, _ in cells])
    for at in chosen_rows(key)[:1]:
        row, label = cells[at]
        state.remember(state.EXPLAINED.format(row), label)
