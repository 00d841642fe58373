"""The answer to "why this confidence?": terms that add up, and the named voters."""

from collections.abc import Callable

import pandas as pd
import streamlit as st

from plain_app.charts.evidence import EvidencePoints, evidence_option, signed
from plain_app.services.explore import Explored, evidence
from plain_app.services.sources import SourceEvidence, source_evidence
from plain_app.widgets.tables import cell_table, chosen_rows

CHART = 170


def draw_evidence(
    results: Explored,
    row: int,
    label: int,
    key: str,
    on_open: Callable[[str], None] | None = None,
) -> None:
    """Draw the evidence of one cell; `on_open` is called with the voter to open."""
    points = evidence(results, row, label)
    sentence = _sum(points, bool(results.dataset.candidates[row, label]))
    st.echarts_chart(evidence_option(points), height=CHART, key=f"{key}.terms", alt=sentence)
    st.caption(sentence)
    said = source_evidence(results, row, label)
    if said is not None:
        _draw_sources(said, f"{key}.sources")
    _draw_voters(results, points, (row, label), f"{key}.voters.{row}.{label}", on_open)


def _sum(points: EvidencePoints, is_candidate: bool) -> str:
    total = f"{points.total:.3f}".replace("-", "−")
    outside = "" if is_candidate else " This label was not offered, so its confidence counts as 0."
    terms = " ".join(map(signed, points.terms))
    return f"{terms} = {total}. Exact, before rounding.{outside}"


def _draw_sources(said: SourceEvidence, key: str) -> None:
    """Name the sources that voted on the cell, and what each vote adds to the log-odds."""
    rows = [(name, "yes" if yes else "no", adds) for name, yes, adds in said.votes]
    table = pd.DataFrame(rows, columns=["source", "vote", "log-odds"])
    cell_table(table, key, 200, {"source": "name", "log-odds": "+.3f"})
    prior = signed(said.prior)
    st.caption(
        f"Features and graphs begin with {prior}; votes are {said.share:.0%} of the evidence."
    )


def _draw_voters(
    results: Explored,
    points: EvidencePoints,
    cell: tuple[int, int],
    key: str,
    on_open: Callable[[str], None] | None,
) -> None:
    """Name the instances and labels that contributed most, with what is known of their cell."""
    ids, names = results.dataset.ids, results.dataset.label_names
    (row, label), n_voters = cell, len(points.voters)
    voted = [*((vote, ids[vote.at], vote.at, label) for vote in points.voters)]
    voted += [(vote, names[vote.at], row, vote.at) for vote in points.label_votes]
    table = pd.DataFrame(
        {
            "from": [
                name[:80] if at < n_voters else f"label {name[:80]}"
                for at, (_, name, _, _) in enumerate(voted)
            ],
            "adds": [vote.contribution for vote, *_ in voted],
            "offered": [bool(results.dataset.candidates[i, j]) for *_, i, j in voted],
            "prediction": [float(results.predictions[i, j]) for *_, i, j in voted],
        }
    )
    if results.picture_column is not None:
        pictures = [results.picture(vote.at) for vote in points.voters]
        table.insert(0, "picture", [*pictures, *[None] * len(points.label_votes)])

    def on_voter() -> None:
        for at in chosen_rows(key)[:1]:
            if on_open is not None and at < n_voters:
                on_open(ids[points.voters[at].at])

    cell_table(
        table,
        key,
        320,
        {"picture": "picture", "from": "name", "adds": "+.4f", "prediction": ".2f"},
        on_select=None if on_open is None else on_voter,
        alt="Instances and labels that contributed most to this confidence",
    )
