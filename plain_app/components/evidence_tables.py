"""The tables that answer "why this confidence?": terms that add up, and the named voters."""

from collections.abc import Callable
from typing import Any

from plain_app.charts.evidence import EvidencePoints, Vote, evidence_spans, signed
from plain_app.components.rows import Column, Table
from plain_app.services.explore import Explored, evidence
from plain_app.services.sources import SourceEvidence, source_evidence

_TERMS = (Column("because of"), Column("", "span"), Column("adds", "number"))
_VOTE = (Column("adds", "number"), Column("offered", "check"), Column("prediction", "number"))


def evidence_tables(
    results: Explored, row: int, label: int, on_open: Callable[[str], None] | None = None
) -> list[Table]:
    """Return the evidence of one cell; `on_open` is told which voter to open."""
    points = evidence(results, row, label)
    spans = [[one.name, one[1:5], one.text] for one in evidence_spans(points)]
    terms = Table(_TERMS, spans, note=_sum(points, bool(results.dataset.candidates[row, label])))
    voters = _voters(results, points.voters, label, on_open)
    found = [terms, voters, _label_votes(results, points.label_votes, row)]
    said = source_evidence(results, row, label)
    return found if said is None else [_source_votes(said), *found]


def _source_votes(said: SourceEvidence) -> Table:
    """Name the sources that voted on the cell, and what each vote adds to the log-odds."""
    rows = [[name, "yes" if yes else "no", signed(adds)] for name, yes, adds in said.votes]
    columns = [Column("source"), Column("vote"), Column("adds to the log-odds", "number")]
    rest = f"Features and graphs begin with {signed(said.prior)}; votes are "
    return Table(columns, rows, note=(rest, f"{said.share:.0%}", " of the evidence."))


def _sum(points: EvidencePoints, is_candidate: bool) -> tuple[str, str, str]:
    terms = " ".join(map(signed, points.terms))
    total = f"{points.total:.3f}".replace("-", "−")
    outside = "" if is_candidate else " This label was not offered, so its confidence counts as 0."
    return f"{terms} = ", total, f". Exact, before rounding.{outside}"


def _voters(
    results: Explored,
    votes: tuple[Vote, ...],
    label: int,
    on_open: Callable[[str], None] | None,
) -> Table:
    """Name the instances that contributed most, with what they say of the label."""
    ids = [results.dataset.ids[vote.at] for vote in votes]
    rows = [
        [name, *_vote(results, vote, vote.at, label)] for name, vote in zip(ids, votes, strict=True)
    ]
    columns = [Column("instance that voted"), *_VOTE]
    if results.picture_column is not None:
        columns = [Column("", "picture"), *columns]
        rows = [[results.picture(vote.at), *row] for vote, row in zip(votes, rows, strict=True)]
    return Table(columns, rows, None if on_open is None else (lambda at: on_open(ids[at])))


def _label_votes(results: Explored, votes: tuple[Vote, ...], row: int) -> Table:
    names = results.dataset.label_names
    rows = [[names[vote.at], *_vote(results, vote, row, vote.at)] for vote in votes]
    return Table([Column("label that voted"), *_VOTE], rows)


def _vote(results: Explored, vote: Vote, row: int, label: int) -> list[Any]:
    offered = bool(results.dataset.candidates[row, label])
    adds = f"{vote.contribution:+.4f}".replace("-", "−")
    return [adds, offered, f"{results.predictions[row, label]:.2f}"]
