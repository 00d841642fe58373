"""`plain review-stats`: how far reviews are, whether people agree, what is still wrong."""

from pathlib import Path
from typing import Annotated, Any

import typer

from core.cli.screen import (
    DEFAULT_WORKSPACE,
    JsonFlag,
    WorkspaceFolder,
    log,
    out,
    print_json,
    table,
)


def add_to(app: typer.Typer) -> None:
    app.command("review-stats")(review_stats)
    app.command()(decisions)


def decisions(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="An export that came back.")],
    workspace: WorkspaceFolder = DEFAULT_WORKSPACE,
    as_json: JsonFlag = False,
) -> None:
    """Store the decisions of an export, or of tasks annotated in Label Studio, with their data."""
    from core.errors import StoreError
    from core.formats import read
    from core.store import Workspace
    from core.store.decision_import import data_of, take_decisions

    space, result = Workspace(workspace), read(file)
    fingerprint = data_of(space, result)
    if fingerprint is None:
        hint = f"Store it first: plain train {file}, or load it in the app."
        raise StoreError("The data of these decisions is not in this workspace.", str(file), hint)
    taken = take_decisions(space, result, fingerprint)
    if as_json:
        return print_json({"fingerprint": fingerprint, **taken._asdict()})
    log.print(
        f"{taken.n_new:,} decisions stored, {taken.n_known:,} were there already, "
        f"{taken.n_unknown:,} are about instances or labels that the data does not have."
    )


def review_stats(
    workspace: WorkspaceFolder = DEFAULT_WORKSPACE,
    target: Annotated[
        float, typer.Option(min=0, max=1, help="Share of right cells to count the clicks to.")
    ] = 0.95,
    as_json: JsonFlag = False,
) -> None:
    """Tell how far the review of every data set is, whether people agree and what is still wrong.

    Progress and estimates are those of the newest run with results.
    """
    from core.store import Workspace

    space = Workspace(workspace)
    rows = [_review(space, data, target) for data in space.datasets()]
    rows = [row for row in rows if row["annotators"]]
    if as_json:
        return print_json(rows)
    for row in rows:
        header = ("annotator", "keep", "reject", "unsure")
        people = [(who, *counts.values()) for who, counts in row["annotators"].items()]
        out.print(table(f"{row['data']} ({row['fingerprint'][:12]})", header, people))
        if row["progress"]:
            _print_progress(row, target)
        if row["agreement"]["n_shared"]:
            _print_agreement(row)
        _print_people(row)


def _tally(made: list[Any]) -> dict[str, int]:
    verdicts = [one.verdict for one in made]
    return {name: verdicts.count(name) for name in ("keep", "reject", "unsure")}


def _review(space: Any, data: Any, target: float) -> dict[str, Any]:
    """Return all figures on the review of one data set."""
    from dataclasses import asdict

    from core.review import disagreements, measure_agreement, self_agreement

    people = space.decisions.by_annotator(data.fingerprint)
    whole, *labels = (_with_nulls(asdict(one)) for one in measure_agreement(people))
    return {
        "data": data.name,
        "fingerprint": data.fingerprint,
        "annotators": {who: _tally(made) for who, made in people.items()},
        "progress": _progress(space, data.fingerprint, target) if people else None,
        "agreement": {**whole, "labels": labels},
        "self_agreement": [
            asdict(one) for one in self_agreement(space.decisions.history(data.fingerprint))
        ],
        "unsettled_disagreements": sum(one.adjudicated is None for one in disagreements(people)),
    }


def _progress(space: Any, fingerprint: str, target: float) -> dict[str, Any] | None:
    """Return how far the review is by the newest run with results; none without one."""
    from dataclasses import asdict

    import numpy as np

    from core.review import audit, clicks_left, remaining_false
    from core.review.load import load_reviewer

    runs = [
        one
        for one in space.runs.list()
        if one.fingerprint == fingerprint and space.runs.elsewhere(one) is None
    ]
    has_results = ((space.runs.folder(one.id) / "predictions.npy").exists() for one in runs)
    newest = next((one for one, has in zip(runs, has_results, strict=True) if has), None)
    if newest is None:
        return None
    reviewer = load_reviewer(space, newest)
    false = remaining_false(reviewer)
    decided = ~np.isnan(reviewer.decided)
    by_label = {
        name: {"estimate": false.estimate[j], "low": false.low[j], "high": false.high[j]}
        for j, name in enumerate(reviewer.dataset.label_names)
    }
    return {
        "run": newest.id,
        "cells": int(reviewer.offered.sum()),
        "decided": int(decided.sum()),
        "settled": int(reviewer.settled.sum()),
        "open": int((reviewer.offered & ~decided & ~reviewer.settled).sum()),
        "remaining_false": {
            "estimate": false.total,
            "low": false.total_low,
            "high": false.total_high,
            "audited": int(false.n_audited.sum()),
            "labels": by_label,
        },
        "clicks_left": clicks_left(reviewer, target),
        "false_share": _false_share(reviewer.level),
        "audit": {**asdict(checked := audit(reviewer)), "sentence": checked.sentence},
        "habits": [{**asdict(one), "sentence": one.sentence} for one in reviewer.noticed],
    }


def _false_share(level: Any) -> dict[str, Any]:
    return {"low": level.share_low, "high": level.share_high, "sentence": level.sentence}


def _print_progress(row: dict[str, Any], target: float) -> None:
    now, false = row["progress"], row["progress"]["remaining_false"]
    log.print(
        f"{now['decided']:,} of {now['cells']:,} candidates decided, {now['settled']:,} more "
        f"settled, {now['open']:,} open (run {now['run']})."
    )
    log.print(
        f"About {false['estimate']:.0f} false candidates would be kept, {false['low']:.0f} to "
        f"{false['high']:.0f} by {false['audited']} audited cells; about {now['clicks_left']:,} "
        f"decisions to {target:.0%} right."
    )
    if not now["audit"]["n_definite"]:
        log.print(now["false_share"]["sentence"])
    log.print(now["audit"]["sentence"])
    for one in now["habits"]:
        log.print(f"{one['annotator']}: {one['sentence']}", markup=False)


def _print_people(row: dict[str, Any]) -> None:
    """Say how far people agree with what they said before."""
    for one in row["self_agreement"]:
        same = f"{one['n_same']} of {one['n_repeated']} cells that came back blind"
        ends = f"{one['low']:.0%} to {one['high']:.0%}"
        log.print(f"{one['annotator']} said the same of {same} ({ends}).", markup=False)


def _print_agreement(row: dict[str, Any]) -> None:
    header = ("label", "shared", "disagreed", "alpha", "kappa")
    every = [{**row["agreement"], "label": "all"}, *row["agreement"]["labels"]]
    names = ("label", "n_shared", "n_disagreed", "alpha", "kappa")
    lines = [[_figure(one[name]) for name in names] for one in every]
    out.print(table("Agreement", header, lines))


def _figure(value: Any) -> str:
    return "" if value is None else f"{value:.3f}" if isinstance(value, float) else str(value)


def _with_nulls(figures: dict[str, Any]) -> dict[str, Any]:
    """Return the figures with null for those that cannot be told."""
    return {name: None if value != value else value for name, value in figures.items()}
