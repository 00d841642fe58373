"""From a workspace to reviewer and lens: one run that has ended, with the decisions on its data."""

from collections.abc import Iterable

import numpy as np

from core.confidence.lens import Lens
from core.engine.graphs import Neighbors
from core.errors import StoreError
from core.review.beginning import is_large, read_beginning, read_lens_beginning, write_beginning
from core.review.difference import Difference, difference
from core.review.resolve import Verdict
from core.review.reviewer import Reviewer
from core.runs.results import RunResults, load_results, retrained_from
from core.store import RunRow, Workspace


def load_reviewer(
    workspace: Workspace, run: RunRow, decisions: Iterable[Verdict] | None = None
) -> Reviewer:
    """Return the reviewer of a run with results, with these decisions or those that stand now."""
    if decisions is None:
        decisions = workspace.decisions.latest(run.fingerprint)
    return make_reviewer(workspace, load_results(workspace, run), decisions)


def make_reviewer(
    workspace: Workspace, results: RunResults, decisions: Iterable[Verdict] = ()
) -> Reviewer:
    """Return the reviewer of a run's results, with these decisions."""
    from core.tuning import dependence

    return Reviewer(
        results.dataset,
        results.propagator,
        results.predictions,
        decisions,
        beginning=read_beginning(results.folder),
        variability=lambda: results.variability,
        dependence=dependence(workspace, results.run.fingerprint),
        held_out=results.run.config.members > 1,
        level=results.level,
    )


def make_lens(results: RunResults, neighbors: Neighbors | None = None) -> Lens:
    """Return the lens of a run's results; with neighbours also for other k and rho."""
    return Lens(
        results.run.config,
        results.dataset.candidates.astype(np.float32),
        np.asarray(results.predictions),
        results.instance_graph,
        results.label_graph,
        neighbors,
        results.dataset.votes,
        results.level,
        read_lens_beginning(results.folder),
    )


def keep_beginning(workspace: Workspace, run: RunRow) -> None:
    """Compute what pages of a large ended run begin with, before somebody waits for it."""
    results = load_results(workspace, run)
    if is_large(results.dataset):
        said = make_lens(results).look(run.config)
        has_votes = results.dataset.votes is not None
        review = None if has_votes else make_reviewer(workspace, results).beginning
        write_beginning(results.folder, review, said)


def retraining_difference(workspace: Workspace, run: RunRow) -> Difference:
    """Return what a retraining with decisions changed: the run before without them, then it."""
    before = retrained_from(workspace, run.id)
    if before is None:
        raise StoreError("This run began anew.", run.id, "Retrain from a reviewed run.")
    old = load_reviewer(workspace, workspace.runs.get(before), decisions=())
    return difference(old, load_reviewer(workspace, run))
