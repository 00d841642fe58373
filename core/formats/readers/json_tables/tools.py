"""Records as labelling tools write them: names in place of the numbers that they give to labels.

Prodigy lists its options in every record; SageMaker Ground Truth maps classes in a job's metadata.
A task that was ignored was not answered: its labels are null. Labelbox has a project's labels deep
inside: they become a column of answers for each question.
"""

from collections.abc import Mapping, Sequence
from typing import Any

METADATA = "-metadata"
MARKED = "labels"  # the name of what is marked in a picture or text
UNANSWERED = ("ignore", "reject")  # of Prodigy, where a person chooses among options

Record = Mapping[str, Any]


def with_label_names(records: Sequence[Record]) -> Sequence[Record]:
    """Return records whose labels are names, where their tool says what the names are."""
    first = records[0] if records else {}
    if "_session_id" in first and "_annotator_id" not in first and "_input_hash" in first:
        records = [{**record, "_annotator_id": record.get("_session_id")} for record in records]
    if isinstance(first.get("Label"), Mapping) and "Labeled Data" in first:
        return _by_questions(records)
    if isinstance(first.get("accept"), list) and isinstance(first.get("options"), list):
        return [_chosen(record) for record in records]
    if isinstance(first.get("data_row"), Mapping) and isinstance(first.get("projects"), Mapping):
        return _by_projects(records)
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


def _by_projects(records: Sequence[Record]) -> Sequence[Record]:
    """Return Labelbox's data rows with who chose what in their projects, a column per question."""
    each = []
    for record in records:
        projects = record.get("projects")
        about = list(projects.values()) if isinstance(projects, Mapping) else []
        labels = [label for project in about for label in _listed(project, "labels")]
        people = [_within(label, "label_details", "created_by") for label in labels]
        each.append(list(zip(people, map(_by_question, labels), strict=True)))
    questions = _questions([chosen for answers in each for _, chosen in answers])
    return [
        {key: value for key, value in record.items() if key != "projects"}
        | {
            f"annotations.{question}": [
                {"created_by": who, "labels": chosen.get(question, [])} for who, chosen in answers
            ]
            for question in questions
        }
        for record, answers in zip(records, each, strict=True)
    ]


def _by_questions(records: Sequence[Record]) -> Sequence[Record]:
    """Return Labelbox's older rows with a column per question."""
    each = [_by_question(record.get("Label")) for record in records]
    questions = _questions(each)
    return [
        {key: value for key, value in record.items() if key != "Label"}
        | {question: chosen.get(question) for question in questions}
        for record, chosen in zip(records, each, strict=True)
    ]


def _questions(each: Sequence[Mapping[str, list[str]]]) -> list[str]:
    """Return what was asked, first what has several answers."""
    several = {name for chosen in each for name, found in chosen.items() if len(found) > 1}
    every = dict.fromkeys(name for chosen in each for name in chosen)
    return sorted(every or [MARKED], key=lambda name: name not in several)


def _by_question(label: Any) -> dict[str, list[str]]:
    """Return the names that were chosen at each question of Labelbox, and what was marked."""
    about = _within(label, "annotations") or label
    found: dict[str, list[Any]] = {}
    for one in _listed(about, "objects"):
        found.setdefault(MARKED, []).append(_named(one))
    for question in _listed(about, "classifications"):
        answers = [*_listed(question, "checklist_answers"), *_listed(question, "answers")]
        answers += [_within(question, "radio_answer"), _within(question, "answer")]
        asked = str(_within(question, "title") or _named(question))
        found.setdefault(asked, []).extend(_named(answer) for answer in answers)
    return {
        asked: [str(name) for name in names if name is not None] for asked, names in found.items()
    }


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
