"""Which method for my data? The compared runs judged, and the consensus of the good ones."""

import numpy as np
import pandas as pd
import streamlit as st

from plain_app import state
from plain_app.charts.methods import critical_figure, critical_points
from plain_app.services import compare, runs
from plain_app.services.compare import Judged, Subject
from plain_app.widgets.errors import error_guard
from plain_app.widgets.tables import cell_table

OF, PROPOSED = "compare.consensus_of", "compare.proposed"
AWAITED = "compare.awaited"

_WORDS = {
    "truth": "Judged by the truth that came with the data: how well each ranks true above false "
    "candidates.",
    "decisions": "Judged by what people decided. Cells that were asked because a run doubted them "
    "say less than cells drawn at random, and favour the other runs.",
    "each other": "Nobody knows the truth here, so each is judged by what most of the others keep: "
    "that tells who is odd, not who is right. Thirty random answers in Review tell more.",
}


def draw_which(fingerprint: str, subjects: list[Subject], names: list[str]) -> None:
    """Draw who stands how, how sure that is, and what the good ones say together."""
    judged = compare.judged(fingerprint, subjects)
    st.markdown("**Which fits this data?**")
    if judged is None:
        st.caption("Truth, decisions, or a third run are needed to judge them.")
        return
    left, right = st.columns([2, 3], gap="medium")
    with left:
        _draw_scores(judged, subjects, names)
        _draw_consensus(judged, fingerprint, subjects)
    with right:
        _draw_ranks(judged, subjects, names)


def _draw_scores(judged: Judged, subjects: list[Subject], names: list[str]) -> None:
    ranking, good = judged.ranking, set(judged.ranking.good)
    order = np.argsort(-ranking.scores, kind="stable")
    table = pd.DataFrame(
        {
            "": [names[at] for at in order],
            "run or trial": [subjects[at].title for at in order],
            "AUC": [float(ranking.scores[at]) for at in order],
            "good": ["✓" if at in good else "" for at in order],
        }
    )
    cell_table(table, "compare.which", 270, {"run or trial": "name", "AUC": ".4f"})
    st.caption(_WORDS[judged.by])


def _draw_ranks(judged: Judged, subjects: list[Subject], names: list[str]) -> None:
    ranking = judged.ranking
    if ranking.ranks is None:
        st.caption(ranking.why_not)
        return
    short = [f"{letter} {one.title}"[:24] for letter, one in zip(names, subjects, strict=True)]
    points = critical_points(short, ranking.ranks.tolist(), ranking.distance)
    figure = critical_figure(points)
    best = points.names[0]
    st.plotly_chart(figure, key="compare.ranks", alt=f"Mean ranks; {best} is first")
    st.caption(
        f"Mean ranks over {ranking.n_parts} parts of the instances (Nemenyi). Those joined by a "
        "bar cannot be told apart on this data; it says nothing about other data."
    )


def _draw_consensus(judged: Judged, fingerprint: str, subjects: list[Subject]) -> None:
    """Offer to make a run of what the good ones say together."""
    titles = {one.run_id: one.title for one in subjects if one.run_id is not None}
    good = [subjects[at].run_id for at in judged.ranking.good if subjects[at].run_id is not None]
    if len(titles) < 2:
        return
    if state.recall(OF) is None or state.recall(PROPOSED) != good:
        state.remember_all({PROPOSED: good, OF: good})
    with st.popover("Consensus of good methods", key="compare.consensus"):
        chosen = st.multiselect("Of", list(titles), format_func=titles.__getitem__, key=OF)
        st.button(
            "Make it a run",
            key="compare.make_consensus",
            on_click=on_consensus,
            args=(fingerprint,),
            disabled=len(chosen) < 2,
        )
        st.caption(
            "The mean of what they predict becomes the confidences of a new run: review it, in any "
            "order, export it, or compare it here."
        )


def on_consensus(fingerprint: str) -> None:
    """Start the run; it joins the comparison when it has ended."""
    with error_guard("compare.consensus"):
        run_id = compare.start_consensus(fingerprint, state.recall(OF) or [])
        state.forget(OF, PROPOSED)
        state.remember(AWAITED, [*(state.recall(AWAITED) or ()), run_id])


def draw_methods() -> list[str]:
    """Let choose methods to train; return them."""
    return list(
        st.pills(
            "Methods",
            runs.other_methods(),
            selection_mode="multi",
            key="compare.methods",
            help="What each assumes is in Train. Those called -style are as far as they are known.",
        )
    )
