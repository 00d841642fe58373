"""Decisions that files bring back, stored with the data they are about, once."""

from typing import TYPE_CHECKING, NamedTuple

from core.store.decisions import Decision

if TYPE_CHECKING:
    from core.formats import ReadResult
    from core.store.workspace import Workspace


class Taken(NamedTuple):
    """What became of the decisions of a file."""

    n_new: int
    n_known: int  # there already: of this file, or the same person said so before
    n_unknown: int  # of an instance or a label that the data does not have


def data_of(workspace: "Workspace", result: "ReadResult") -> str | None:
    """Return the data set of the workspace that a file is about, if it is there."""
    here = {row.fingerprint for row in workspace.datasets()}
    named = (result.fingerprint, result.dataset.fingerprint)
    return next((one for one in named if one in here), None)


def take_decisions(workspace: "Workspace", result: "ReadResult", fingerprint: str) -> Taken:
    """Store the decisions that a file brought; read again, nothing is stored twice.

    The file may call a label as it is called now: what is stored calls it as the data does.
    """
    dataset = workspace.load_dataset(fingerprint)
    stored = workspace.decisions.by_annotator(fingerprint)
    said = {(who, one.instance_id, one.label): one.verdict for who in stored for one in stored[who]}
    names = workspace.labels.names(fingerprint, dataset.label_names)
    label_of = dict(zip(reversed(names), reversed(dataset.label_names), strict=True))
    label_of |= {name: name for name in dataset.label_names}
    about = [
        one._replace(label=label_of[one.label])
        for one in result.decisions
        if one.instance_id in dataset.row_of and one.label in label_of
    ]
    new = [
        Decision(fingerprint=fingerprint, **one._asdict())
        for one in about
        if said.get((one.annotator, one.instance_id, one.label)) != one.verdict
    ]
    n_new = workspace.decisions.add_many(new) if new else 0
    return Taken(n_new, len(about) - n_new, len(result.decisions) - len(about))
