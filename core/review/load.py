"""From a workspace to a reviewer: one run that has ended, with the decisions on its data."""

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from core.engine.propagation import Propagator
from core.errors import StoreError
from core.review.difference import Difference, difference
from core.review.resolve import Verdict
from core.review.reviewer import Reviewer
from core.store import RunRow, Workspace, files


def load_reviewer(
    workspace: Workspace, run: RunRow, decisions: Iterable[Verdict] | None = None
) -> Reviewer:
    """Return the reviewer of a run with results, with these decisions or those that stand now."""
    from core.runs.results import confidence_history, load_graphs, load_level, require_results
    from core.tuning import dependence

    predictions = require_results(workspace, run) / "predictions.npy"
    dataset = workspace.load_dataset(run.fingerprint)
    names = ("alpha", "beta", "eta", "gamma", "n_steps")
    weights = {name: getattr(run.config, name) for name in names}
    return Reviewer(
        dataset,
        Propagator(*load_graphs(workspace, run.id), **weights),
        files.read_array(predictions),
        workspace.decisions.latest(run.fingerprint) if decisions is None else decisions,
        variability=variability(dataset.candidates, confidence_history(workspace, run.id)),
        dependence=dependence(workspace, run.fingerprint),
        held_out=run.config.members > 1,
        level=load_level(workspace, run),
    )


def retraining_difference(workspace: Workspace, run: RunRow) -> Difference:
    """Return what a retraining with decisions changed: the run before without them, then it."""
    from core.runs.results import retrained_from

    before = retrained_from(workspace, run.id)
    if before is None:
        raise StoreError("This run began anew.", run.id, "Retrain from a reviewed run.")
    old = load_reviewer(workspace, workspace.runs.get(before), decisions=())
    return difference(old, load_reviewer(workspace, run))


def variability(
    candidates: npt.NDArray[np.uint8], history: npt.NDArray[np.float16]
) -> npt.NDArray[np.float32]:
    """Return how restless each candidate was: the standard deviation over epochs, n x L."""
    out = np.zeros(candidates.shape, np.float32)
    if len(history) > 1:
        out[candidates > 0] = np.asarray(history, np.float32).std(axis=0)
    return out
