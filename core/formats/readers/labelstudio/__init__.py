"""Label Studio: its JSON, JSON_MIN, CSV and TSV exports in, import JSON with predictions out.

Owns what tasks mean. Of a task that this program wrote, annotations are decisions
(`labelstudio.decisions`) and candidates are `data.candidates`; of others, candidates are what all
annotators chose together (marked, where nobody chose), else what predictions offer. Cancelled
annotations do not count. Features are a list in `data` (`embedding` or `features`), else the words
of its text, or its picture. `<stem>.config.xml` beside it is the labelling config: it names all
labels, in order, and is written for the import.
"""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from core.data.dataset import PENDING_FEATURES, CandidateDataset, Features
from core.formats.readers.labelstudio.decisions import Answer, decisions_of
from core.formats.readers.labelstudio.table import table_records
from core.formats.readers.labelstudio.tasks import write
from core.formats.readers.labelstudio.words import (
    CONFIDENCE,
    DATA,
    FEATURE_KEYS,
    NAME,
    OWN_KEYS,
    is_ours,
    siblings,
)
from core.formats.shared.answers import Answers
from core.formats.shared.findings import Findings, refuse
from core.formats.shared.json_text import features_of_rows, load_json, objects
from core.formats.shared.label_sets import matrix_of_names, safe_keys
from core.formats.shared.limits import check_size
from core.formats.shared.mapping import ColumnMapping, ReadDecision, ReadResult
from core.formats.shared.profiles import PICTURE
from core.formats.shared.text_features import word_features
from core.formats.shared.xml_text import attributes_named, load_xml

__all__ = ["EXTENSIONS", "NAME", "read", "siblings", "sniff", "write"]

EXTENSIONS = (".json", ".csv", ".tsv")
LACKS = ("display",)  # names of columns are made safe

CHOSEN = "choices"
TASKS_ARE_KEPT = True  # an export is the file's own tasks, with ours added
MIN_KEYS = ("id", "annotator", "annotation_id", "created_at", "updated_at", "lead_time")
LABEL_KEYS = ("labels", "label", "choices", "choice", "class", "category", "sentiment")
MAX_KEYS = 2_000
TEXT = 64  # bytes of a field
TABLE_COLUMNS = (b"annotator", b"annotation_id", b"lead_time")
LIST = re.compile(rb"\s*\[\s*\{")
TASK_LISTS = re.compile(rb'"(annotations|predictions|completions)"\s*:\s*\[')
TASK_PARTS = re.compile(rb'"(data|result|completed_by|was_cancelled|model_version)"\s*:')


@dataclass
class Item:
    """One task, whichever export it came from."""

    id: str | None
    data: dict[str, Any]
    choices: dict[str, list[str]] = field(default_factory=dict)  # of annotations, predictions
    said: list[tuple[str, list[str]]] = field(default_factory=list)  # by source, where it is named
    answers: list[Answer] = field(default_factory=list)  # of people

    @property
    def is_ours(self) -> bool:
        """Whether this program wrote the task."""
        return "candidates" in self.data


def sniff(head: bytes, path: Path) -> bool:
    """Whether this is a list of tasks, not of records with columns."""
    head = head.removeprefix(b"\xef\xbb\xbf")
    header = head.split(b"\n", 1)[0]
    if path.suffix.lower() in (".csv", ".tsv"):
        return all(name in header for name in TABLE_COLUMNS)
    is_min = b'"annotation_id"' in head and b'"annotator"' in head
    is_full = bool(TASK_LISTS.search(head) and TASK_PARTS.search(head))
    return bool(LIST.match(head)) and (is_min or is_full)


def read(path: Path, mapping: ColumnMapping | None = None) -> ReadResult:
    """Read tasks; what is assumed about them is said in the problems."""
    findings = Findings()
    is_table = path.suffix.lower() in (".csv", ".tsv")
    tasks = table_records(path, findings) if is_table else load_json(path, findings)
    items = _items(tasks, findings)
    findings.stop_if_fatal()
    answers = _answers(items)
    offered = [
        _offered(item, findings)
        if answers is None
        else [n for _, names in item.said for n in names]
        for item in items
    ]
    truth = _truth(items, findings)
    names = _label_names(siblings(path)[0], [*offered, *(truth or ())])
    display = _display(items, names)
    pictures = _picture_column(items, display, mapping)
    if pictures is None:
        features, feature_names = _features(items, display, mapping, findings)
    else:  # by `core.encoders`, which takes its time
        features, feature_names = np.zeros((len(items), 1), np.float32), list(PENDING_FEATURES)
        mapping = ColumnMapping(image=pictures, display=(pictures,), feature_layout="encoded")
    candidates = matrix_of_names(offered, names, findings, "a candidate")
    votes = None if answers is None else answers.votes(len(items), names)
    truths = None if truth is None else matrix_of_names(truth, names, findings, "a true label")
    findings.stop_if_fatal()
    ids = _ids(items, findings)
    dataset = CandidateDataset(
        features, candidates, names, ids, feature_names, truths, display, votes=votes
    )
    decisions = _decisions(items, dataset, findings)
    about = next((item.data[DATA] for item in items if item.is_ours and DATA in item.data), None)
    return ReadResult(
        dataset,
        findings.problems(),
        mapping,
        NAME,
        decisions=decisions,
        fingerprint=about if isinstance(about, str) else None,
    )


def _decisions(
    items: Sequence[Item], dataset: CandidateDataset, findings: Findings
) -> tuple[ReadDecision, ...]:
    """Return what people said of tasks of ours."""
    found: list[ReadDecision] = []
    for instance, item in zip(dataset.ids, items, strict=True):
        if item.is_ours and item.answers:
            found += decisions_of(instance, _texts(item.data["candidates"]), item.answers)
    if found:
        people = sorted({one.annotator for one in found})
        shown = ", ".join(people[:5]) + (" …" if len(people) > 5 else "")
        rule = f"annotations of tasks of this program are decisions: {len(found):,} of {shown}"
        findings.add(rule, "Nothing to do; `plain decisions FILE` stores them.")
    return tuple(found)


def _answers(items: Sequence[Item]) -> Answers | None:
    """Return who said what, if several are named; a file of ours states its candidates instead."""
    sources = {who for item in items for who, _ in item.said}
    if len(sources) < 2 or any(item.is_ours for item in items):
        return None
    answers = Answers()
    for i, item in enumerate(items):
        for who, names in item.said:
            answers.add(i, who, names)
    return answers


def _items(tasks: Any, findings: Findings) -> list[Item]:
    if not isinstance(tasks, list) or not tasks or not all(isinstance(t, dict) for t in tasks):
        refuse("a Label Studio file is a list of tasks", "Export it as JSON.")
    if "annotation_id" in tasks[0] and "data" not in tasks[0]:
        return _min_items(tasks, findings)
    for i, task in enumerate(tasks):
        if not isinstance(task.get("data"), dict):
            fix = "Export the project as JSON."
            findings.add("a task must have data", fix, fatal=True, row=i, value=task.get("data"))
    findings.stop_if_fatal()
    has_choices = any(one.get("type") == CHOSEN for task in tasks for one in _results_of(task))
    return [_item(task, findings, has_choices) for task in tasks]


def _results_of(task: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Give all results of a task but those that this program added."""
    for kind in ("annotations", "completions", "predictions"):
        for answer in objects(task.get(kind)):
            if kind != "predictions" or not is_ours(answer, task):
                yield from (one for one in objects(answer.get("result")) if "meta" not in one)


def _item(task: dict[str, Any], findings: Findings, has_choices: bool) -> Item:
    annotations = objects(task.get("annotations", task.get("completions")))
    counted = [a for a in annotations if not a.get("was_cancelled")]
    choices: dict[str, list[str]] = {}
    said: list[tuple[str, list[str]]] = []
    people: list[Answer] = []
    _tell_numbers(task, findings)
    guesses = [one for one in objects(task.get("predictions")) if not is_ours(one, task)]
    for kind, answers in (("annotations", counted), ("predictions", guesses)):
        if found := objects(answers):
            each = [list(_choices(a.get("result"), findings, has_choices)) for a in found]
            choices[kind] = [name for names in each for name in names]
            named = ((_source(a), names) for a, names in zip(found, each, strict=True))
            said += [(who, names) for who, names in named if who is not None]
            if kind == "annotations":
                each_of = zip(found, each, strict=True)
                people = [Answer(_source(a), a, names) for a, names in each_of]
    if cancelled := len(annotations) - len(counted):
        for _ in range(cancelled):
            findings.add("cancelled annotations were left out", "Nothing to do.")
    key = task.get("id")
    return Item(None if key is None else str(key), task["data"], choices, said, people)


def _tell_numbers(task: dict[str, Any], findings: Findings) -> None:
    """Say what a task names by its number only."""
    for kind in ("annotations", "completions", "predictions"):
        given = task.get(kind)
        for one in given if isinstance(given, list) else ():
            if not isinstance(one, dict):
                rule = f"{kind} given by their number only cannot be read"
                findings.add(rule, "Export them with their results.", value=one)


def _source(answer: dict[str, Any]) -> str | None:
    """Return who annotated or predicted: a number, an e-mail address, a model's version."""
    who = answer.get("completed_by", answer.get("model_version"))
    if isinstance(who, dict):
        who = who.get("email") or who.get("username") or who.get("id")
    return None if who is None or isinstance(who, list | dict) else str(who)


def _choices(results: Any, findings: Findings, has_choices: bool) -> Iterator[str]:
    """Give what was chosen of a task; where nobody ever chose, what is marked in it."""
    marked: dict[str, None] = {}
    for result in objects(results):
        kind, value = str(result.get("type")), result.get("value")
        value = value if isinstance(value, dict) else {}
        if kind == CHOSEN:
            yield from _texts(value.get(CHOSEN))
        elif not has_choices and (kind.endswith("labels") or kind == "taxonomy"):
            given = value.get(kind)
            given = given if isinstance(given, list) else []
            paths = [one[-1:] if isinstance(one, list) else [one] for one in given]
            marked |= dict.fromkeys(str(name) for path in paths for name in path)
        else:
            fix = "Nothing to do, unless labels were given that way."
            findings.add("results that are no choices were left out", fix, value=result.get("type"))
    yield from marked


def _texts(given: Any) -> list[str]:
    """Return label names given as a list, as one text, or as JSON_MIN's {"choices": [...]}."""
    if isinstance(given, dict):
        given = given.get("choices")
    if isinstance(given, str):
        return [given]
    return [str(name) for name in given] if isinstance(given, list) else []


def _min_items(records: list[dict[str, Any]], findings: Findings) -> list[Item]:
    """Gather the records of JSON_MIN, one per annotation, by task."""
    key = _min_label_key(records)
    fix = "Name the choices `labels` if that is wrong."
    findings.add(f"the choices are taken from the field {key}", fix)
    items: dict[str, Item] = {}
    for i, record in enumerate(records):
        data = {k: v for k, v in record.items() if k != key and k not in MIN_KEYS}
        task = str(record.get("id", i))
        item = items.setdefault(task, Item(task, data, {"annotations": []}))
        names = _texts(record.get(key))
        item.choices["annotations"] += names
        who = _source({"completed_by": record.get("annotator")})
        if who is not None:
            item.said.append((who, names))
            item.answers.append(Answer(who, record, names))
    return list(items.values())


def _min_label_key(records: list[dict[str, Any]]) -> str:
    """Several choices are an object, which gives the field away; one alone is a plain text."""
    for record in records:
        for key, value in record.items():
            if isinstance(value, dict) and isinstance(value.get("choices"), list):
                return key
    keys = list(dict.fromkeys(key for record in records for key in record))
    named = [key for key in LABEL_KEYS if key in keys]
    before = (
        [key for key in keys[: keys.index("annotator")] if key != "id"]
        if "annotator" in keys
        else []
    )
    if not named and not before:
        refuse("records must have a field with their choices", "Export as JSON.", value=keys[:20])
    return named[0] if named else before[-1]


def _offered(item: Item, findings: Findings) -> list[str]:
    if "candidates" in item.data:
        return _texts(item.data["candidates"])
    if "annotations" in item.choices:
        return item.choices["annotations"]
    if "predictions" in item.choices:
        fix = "Nothing to do, unless an annotator should have the last word."
        findings.add("no annotation: the predictions are its candidates", fix, row=item.id)
    return item.choices.get("predictions", [])


def _truth(items: list[Item], findings: Findings) -> list[list[str]] | None:
    given = [isinstance(item.data.get("truth"), list) for item in items]
    if not all(given):
        if any(given):
            fix = "Give every task a list, empty or not."
            findings.add("only some tasks have a truth: it is left out", fix, value=sum(given))
        return None
    return [_texts(item.data["truth"]) for item in items]


def _label_names(config: Path, sets: Iterable[Iterable[str]]) -> list[str]:
    """Return the labels of the config, in its order, and any others sorted after them."""
    listed = attributes_named(load_xml(config), "Choice", "value") if config.is_file() else []
    names = dict.fromkeys(name for name in listed if name is not None)
    return list(names | dict.fromkeys(sorted({name for given in sets for name in given})))


def _ids(items: list[Item], findings: Findings) -> list[str]:
    own = [item.data.get("instance_id") for item in items]
    ids = [str(key) for key in own if key is not None]
    if len(ids) < len(items):
        ids = [item.id for item in items if item.id is not None]
    if len(ids) == len(items):
        return ids
    findings.add("tasks have no ids; they are numbered", "Export them with ids.")
    return []


def _display(items: list[Item], names: Sequence[str]) -> pd.DataFrame | None:
    hidden = {*OWN_KEYS, *(CONFIDENCE + name for name in names)}
    hidden |= set(safe_keys(CONFIDENCE + name for name in names).values())
    keys = dict.fromkeys(key for item in items for key in item.data if key not in hidden)
    if len(keys) > MAX_KEYS:
        refuse(f"tasks may have up to {MAX_KEYS:,} fields", "Drop some.", value=f"{len(keys):,}")
    check_size(TEXT * len(keys) * len(items), f"{len(items):,} tasks with {len(keys):,} fields")
    columns = {key: [_shown(item.data.get(key)) for item in items] for key in keys}
    return pd.DataFrame(columns) if columns else None


def _shown(value: Any) -> Any:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, (dict, list)) else value


def _features(
    items: list[Item],
    display: pd.DataFrame | None,
    mapping: ColumnMapping | None,
    findings: Findings,
) -> tuple[Features, list[str]]:
    for key in FEATURE_KEYS:
        rows = [item.data.get(key) for item in items]
        if any(row is not None for row in rows):
            return features_of_rows(rows), []
    column = mapping.text if mapping is not None and mapping.text else _text_column(display)
    if display is None or column is None or column not in display:
        fix = "Add the list data.embedding, or a text."
        refuse("tasks need features or a text to take them from", fix, value=column)
    fix = "Add the list data.embedding for better ones."
    findings.add("features are the words of this field (TF-IDF)", fix, column=column)
    texts = [
        "" if missing else str(text)
        for text, missing in zip(display[column], display[column].isna(), strict=True)
    ]
    return word_features(texts, column)


def _picture_column(
    items: list[Item], display: pd.DataFrame | None, mapping: ColumnMapping | None
) -> str | None:
    """Return the field of pictures where tasks have nothing else to take features from."""
    if display is None or any(item.data.get(key) for item in items for key in FEATURE_KEYS):
        return None
    columns = {str(key): [one for one in cells if one] for key, cells in display.items()}
    texts = [one for cells in columns.values() for one in cells if " " in str(one).strip()]
    found = [k for k, v in columns.items() if v and all(PICTURE.search(str(one)) for one in v)]
    is_stated = mapping is not None and mapping.text is not None
    return None if is_stated or texts or not found else found[0]


def _text_column(display: pd.DataFrame | None) -> str | None:
    """Return the field named text, or else the one with the longest texts."""
    if display is None:
        return None
    lengths = {
        str(key): float(np.mean([len(v) if isinstance(v, str) else 0 for v in column]))
        for key, column in display.items()
    }
    return "text" if "text" in lengths else max(lengths, key=lambda key: lengths[key])
