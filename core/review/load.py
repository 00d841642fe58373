"""From a workspace to a reviewer: one run that has ended, with the decisions on its data."""

from collections.abc import Iterable

from core.errors import StoreError
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
        variability=results.variability,
        dependence=dependence(workspace, results.run.fingerprint),
        held_out=results.run.config.members > 1,
        level=results.level,
    )


def retraining_difference(workspace: Workspace, run: RunRow) -> Difference:
    """Return what a retraining with decisions changed: the run before without them, then it."""
    before = retrained_from(workspace, run.id)
    if before is None:
        raise StoreError("This run began anew.", run.id, "Retrain from a reviewed run.")
    old = load_reviewer(workspace, workspace.runs.get(before), decisions=())
    return difference(old, load_reviewer(workspace, run))
