"""Records as labelling tools write them: names in place of the numbers that they give to labels.

Prodigy lists its options in every record; SageMaker Ground Truth maps classes in a job's metadata.
A task that was ignored was not answered: its labels are null. Labelbox has a project's labels deep
inside: they become a list of answers.
"""

from collections.abc import Mapping, Sequence
from typing import Any

METADATA = "-metadata"
UNANSWERED = ("ignore", "reject")  # of Prodigy, where a person chooses among options

Record = Mapping[str, Any]


def with_label_names(records: Sequence[Record]) -> Sequence[Record]:
    """Return records whose labels are names, where their tool says what the names are."""
    first = records[0] if records else {}
    if "_session_id" in first and "_annotator_id" not in first and "_input_hash" in first:
        records = [{**record, "_annotator_id": record.get("_session_id")} for record in records]
    if isinstance(first.get("Label"), Mapping) and "Labeled Data" in first:
        return [{**record, "Label": _ticked(record.get("Label"))} for record in records]
    if isinstance(first.get("accept"), list) and isinstance(first.get("options"), list):
        return [_chosen(record) for record in records]
    if isinstance(first.get("data_row"), Mapping) and isinstance(first.get("projects"), Mapping):
        return [_of_projects(record) for record in records]
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


def _of_projects(record: Record) -> Record:
    """Return Labelbox's data row with who chose what in its projects."""
    projects = record.get("projects")
    about = list(projects.values()) if isinstance(projects, Mapping) else []
    answers = [
        {"created_by": _within(label, "label_details", "created_by"), "labels": _ticked(label)}
        for project in about
        for label in _listed(project, "labels")
    ]
    rest = {key: value for key, value in record.items() if key != "projects"}
    return {**rest, "annotations": answers}


def _ticked(label: Any) -> list[str]:
    """Return the names that were chosen in a label of Labelbox, and of what was marked."""
    about = _within(label, "annotations") or label
    found = [_named(one) for one in _listed(about, "objects")]
    for question in _listed(about, "classifications"):
        answers = [*_listed(question, "checklist_answers"), *_listed(question, "answers")]
        answers += [_within(question, "radio_answer"), _within(question, "answer")]
        found += [_named(answer) for answer in answers]
    return [str(name) for name in found if name is not None]


def _named(answer: Any) -> Any:
    """Return the name of an answer; older exports have a title of it, and a value."""
    return _within(answer, "name") or _within(answer, "value")


def _within(value: Any, *keys: str) -> Any:
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def _listed(value: Any, key: str) -> list[Any]:
    found = _within(value, key)
    return found if isinstance(found, list) else []


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
