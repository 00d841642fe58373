"""Records as labelling tools write them: names in place of the numbers that they give to labels.

Prodigy lists its options in every record; SageMaker Ground Truth maps classes in a job's metadata.
A task that was ignored was not answered: its labels are null.
"""

from collections.abc import Mapping, Sequence
from typing import Any

METADATA = "-metadata"
UNANSWERED = ("ignore", "reject")  # of Prodigy, where a person chooses among options

Record = Mapping[str, Any]


def with_label_names(records: Sequence[Record]) -> Sequence[Record]:
    """Return records whose labels are names, where their tool says what the names are."""
    first = records[0] if records else {}
    if isinstance(first.get("accept"), list) and isinstance(first.get("options"), list):
        return [_chosen(record) for record in records]
    jobs = [
        name.removesuffix(METADATA)
        for name, about in first.items()
        if name.endswith(METADATA) and isinstance(about, Mapping) and _is_job(about)
    ]
    if jobs:
        return [_classified(record, jobs) for record in records]
    return records


def _chosen(record: Record) -> Record:
    if record.get("answer") in UNANSWERED:
        return {**record, "accept": None}
    options, chosen = record.get("options"), record.get("accept")
    if not isinstance(options, list) or not isinstance(chosen, list):
        return record
    names = {
        str(one.get("id")): str(one["text"])
        for one in options
        if isinstance(one, Mapping) and "text" in one
    }
    return {**record, "accept": [names.get(str(one), str(one)) for one in chosen]}


def _is_job(about: Mapping[str, Any]) -> bool:
    return "class-map" in about or "class-name" in about


def _classified(record: Record, jobs: Sequence[str]) -> Record:
    named = dict(record)
    for job in jobs:
        about, found = record.get(job + METADATA), record.get(job)
        if not isinstance(about, Mapping):
            continue
        classes = about.get("class-map")
        if isinstance(found, list) and isinstance(classes, Mapping):
            named[job] = [str(classes.get(str(one), one)) for one in found]
        elif isinstance(about.get("class-name"), str):
            named[job] = [about["class-name"]]
    return named
