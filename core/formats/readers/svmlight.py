"""libsvm multi-label text: `0,2 1:0.5 7:1.2`, one line per instance.

Owns the lines and their side files: `<stem>.labels.txt` (one label name per line), `<stem>.truth`,
`<stem>.candidates` (beside resolved labels) and `<stem>.names.json` (ids, feature names, width).
Labels and features count from 0, or from 1 when 0 never occurs; what was assumed is said.
"""

import json
import re
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import scipy.sparse as sp
from pydantic import BaseModel, ValidationError

from core.data.dataset import CandidateDataset, Features, Labels
from core.formats.shared.findings import Findings, refuse
from core.formats.shared.json_text import load_json
from core.formats.shared.label_sets import (
    RESOLVED,
    display_texts,
    is_numbering,
    resolved_labels,
    sets_of,
)
from core.formats.shared.limits import check_shape, check_size
from core.formats.shared.mapping import ColumnMapping, ReadResult
from core.formats.shared.original import exact_features_of
from core.formats.shared.sparse_rows import row_of
from core.formats.shared.text import as_float32, number_texts, read_lines, read_text

NAME = "svmlight"
EXTENSIONS = (".svm", ".svmlight", ".libsvm")

CHUNK = 1_000  # lines turned into numbers at once
LABEL_SET = re.compile(rb"[\d+,.-]+")
PAIR = re.compile(rb"(\d+|qid):[^\s:]+")
MAX_NUMBER = 2**31
SIZES = re.compile(r"(\d+) (\d+) (\d+)")  # first line in the extreme classification repository

Pairs = tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]


@dataclass(frozen=True)
class Lines:
    """What the lines say, before names and numbering are settled."""

    labels: "LabelNumbers"
    indices: npt.NDArray[np.int64]
    values: npt.NDArray[np.float64]
    counts: npt.NDArray[np.int64]  # features per line
    sizes: tuple[int, int] | None = None  # features and labels, where the first line says so


@dataclass(frozen=True)
class LabelNumbers:
    """Label numbers of all lines, and how many each line has."""

    numbers: npt.NDArray[np.int64]
    counts: npt.NDArray[np.int64]

    @classmethod
    def of(cls, sets: Iterable[Sequence[int]]) -> "LabelNumbers":
        numbers, counts = array("q"), array("q")
        for one in sets:
            numbers.extend(one)
            counts.append(len(one))
        return cls(np.array(numbers, np.int64), np.array(counts, np.int64))

    def matrix(self, first: int, n_labels: int) -> Labels:
        """Return the (n, L) matrix of labels that count from `first`."""
        n = len(self.counts)
        check_shape(n, 0, n_labels)
        matrix = np.zeros((n, n_labels), np.uint8)
        matrix[np.repeat(np.arange(n), self.counts), self.numbers - first] = 1
        return matrix


class Extra(BaseModel):
    """`<stem>.names.json`: what libsvm lines have no place for."""

    n_features: int | None = None
    is_dense: bool = False
    side_files: list[str] | None = None  # the others that belong to it, not left from before
    ids: list[str] = []
    feature_names: list[str] = []
    display: dict[str, list[str]] = {}


def sniff(head: bytes, path: Path) -> bool:
    """Whether the first whole lines are label numbers followed by `index:value` pairs."""
    *whole, rest = head.split(b"\n")
    lines = [line for line in whole or [rest.rpartition(b" ")[0]] if line.strip()][:5]
    lines = lines[1:] if lines and SIZES.fullmatch(lines[0].strip().decode("latin-1")) else lines
    return any(b":" in line for line in lines) and all(_is_line(line) for line in lines)


def _is_line(line: bytes) -> bool:
    parts = line.partition(b"#")[0].split()
    if parts and LABEL_SET.fullmatch(parts[0]):
        parts = parts[1:]
    return all(PAIR.fullmatch(part) for part in parts)


def siblings(path: Path) -> list[Path]:
    """Return the side files that may belong to a file of this format."""
    endings = (".labels.txt", ".truth", ".candidates", ".names.json")
    return [path.with_name(path.stem + ending) for ending in endings]


def read(path: Path, mapping: ColumnMapping | None = None) -> ReadResult:
    """Read the lines and whichever side files are there."""
    names_path, truth_path, candidates_path, extra_path = siblings(path)
    findings = Findings()
    extra = _extra(extra_path, findings)
    lines = replace(_parse(_lines(path, findings), findings), sizes=_sizes(path))
    labels = {"labels": lines.labels}
    for key, side in (("truth", truth_path), ("candidates", candidates_path)):
        if side.exists() and (extra.side_files is None or key in extra.side_files):
            labels[key] = _side_sets(side, len(lines.counts), findings)
    findings.stop_if_fatal()
    given = _label_names(names_path, findings)
    n_labels = 0 if lines.sizes is None else lines.sizes[1]
    names, first = _label_numbering(labels, given, n_labels, extra, findings)
    matrices = {key: sets.matrix(first, len(names)) for key, sets in labels.items()}
    if "candidates" in matrices:
        findings.add(RESOLVED.message, RESOLVED.fix)
    dataset = CandidateDataset(
        features=_features(lines, as_float32(lines.values), extra, findings),
        candidates=matrices.get("candidates", matrices["labels"]),
        truth=matrices.get("truth"),
        label_names=names,
        ids=extra.ids,
        feature_names=extra.feature_names,
        display=pd.DataFrame(extra.display) if extra.display else None,
    )
    return ReadResult(dataset, findings.problems(), mapping, NAME)


def _sizes(path: Path) -> tuple[int, int] | None:
    with path.open("rb") as file:
        match = SIZES.fullmatch(file.readline(100).decode("latin-1").strip())
    return None if match is None else (int(match[2]), int(match[3]))


def _lines(path: Path, findings: Findings) -> Iterator[str]:
    """Give the lines; an empty one for a first line of sizes."""
    for i, line in enumerate(read_lines(path, findings)):
        yield "" if i == 0 and SIZES.fullmatch(line.strip()) else line


def _parse(text: Iterable[str], findings: Findings) -> Lines:
    labels, sizes, counts = array("q"), array("q"), array("q")
    blocks: list[Pairs] = []
    waiting: list[tuple[int, list[str]]] = []  # line numbers and their `index:value` texts
    for number, line in enumerate(text, start=1):
        parts = line.partition("#")[0].split()
        if not parts:
            continue
        features = parts if ":" in parts[0] else parts[1:]
        label_set = _label_set(parts[: len(parts) - len(features)], number, findings)
        labels.extend(label_set)
        sizes.append(len(label_set))
        if features and features[0].startswith("qid:"):
            features = features[1:]
        counts.append(len(features))
        waiting.append((number, features))
        if len(waiting) == CHUNK:
            blocks.append(_numbers(waiting, findings))
            waiting = []
    blocks.append(_numbers(waiting, findings))
    indices, values = (np.concatenate(arrays) for arrays in zip(*blocks, strict=True))
    numbers = LabelNumbers(np.array(labels, np.int64), np.array(sizes, np.int64))
    return Lines(numbers, indices, values, np.array(counts, np.int64))


def _label_set(tokens: list[str], number: int, findings: Findings) -> list[int]:
    if not tokens:
        return []
    rule = "labels must be whole numbers from 0, joined by commas without spaces"
    try:
        labels = [int(text) for text in tokens[0].split(",")]
    except ValueError:
        labels = [-1]
    if len(tokens) > 1 or min(labels) < 0 or max(labels) > MAX_NUMBER:
        fix = "Write label sets like 0,2 and values like 7:1.5."
        findings.add(rule, fix, fatal=True, row=number, value=" ".join(tokens))
        return []
    return labels


def _numbers(lines: list[tuple[int, list[str]]], findings: Findings) -> Pairs:
    """Return indices and values of `index:value` texts; name each that is neither."""
    pairs = [text.partition(":") for _, features in lines for text in features]
    try:
        indices = np.fromiter((int(index) for index, _, _ in pairs), np.int64, len(pairs))
        values = np.fromiter((float(value) for _, _, value in pairs), np.float64, len(pairs))
        if indices.min(initial=0) < 0:
            raise ValueError("a negative index")
    except (ValueError, OverflowError):
        for number, text in ((n, t) for n, features in lines for t in features if not _is_pair(t)):
            rule, fix = "features must be written index:number", "Correct it, or drop it."
            findings.add(rule, fix, fatal=True, row=number, value=text)
        return np.empty(0, np.int64), np.empty(0, np.float64)
    return indices, values


def _is_pair(text: str) -> bool:
    index, _, value = text.partition(":")
    try:
        float(value)
        return 0 <= int(index) < MAX_NUMBER
    except ValueError:
        return False


def _side_sets(path: Path, n: int, findings: Findings) -> LabelNumbers:
    lines = read_text(path, findings).removesuffix("\n").split("\n")
    if len(lines) != n:
        rule = f"{path.name} must have one line per instance ({n})"
        findings.add(rule, "Write both files again.", fatal=True, value=len(lines))
    sets = (_label_set(line.split(), i, findings) for i, line in enumerate(lines, start=1))
    return LabelNumbers.of(sets)


def _label_names(path: Path, findings: Findings) -> list[str]:
    if not path.exists():
        return []
    lines = read_text(path, findings).removesuffix("\n").split("\n")
    return [_name(line.removesuffix("\r")) for line in lines]


def _name(line: str) -> str:
    if not line.startswith('"'):
        return line
    try:
        return str(json.loads(line))
    except (ValueError, RecursionError):
        return line  # a name that merely begins with a quotation mark


def _label_numbering(
    labels: dict[str, LabelNumbers],
    names: list[str],
    n_labels: int,
    extra: Extra,
    findings: Findings,
) -> tuple[list[str], int]:
    """Return the label names and the number the first of them has."""
    used = np.concatenate([sets.numbers for sets in labels.values()])
    low, high = (int(used.min()), int(used.max())) if len(used) else (0, -1)
    first = int(low >= 1 and extra.n_features is None and (not names or high >= len(names)))
    first = int(high >= n_labels) if n_labels else first
    check_shape(len(labels["labels"].counts), 0, max(high + 1, n_labels))
    if not names:
        fix = "Name the labels, one per line, in <stem>.labels.txt."
        findings.add(f"labels have no names; numbered from {first}", fix)
        names = [f"label{number}" for number in range(first, max(high + 1, n_labels + first))]
    elif first:
        fix = "Count from 0 if that is wrong."
        findings.add("label 0 never occurs: the first name belongs to label 1", fix)
    if high - first >= len(names):
        rule, fix = f"label numbers must stay below {len(names) + first}", "Name every label."
        refuse(rule, fix, value=high)
    return names, first


def exact_features(path: Path, mapping: ColumnMapping) -> Features:
    """Return the features as float64; what side files say of them is not known here."""
    findings = Findings()
    lines = replace(_parse(_lines(path, findings), findings), sizes=_sizes(path))
    return _features(lines, lines.values, Extra(), findings)


def _features(lines: Lines, values: npt.NDArray[Any], extra: Extra, findings: Findings) -> Features:
    n, stored = len(lines.counts), values != 0
    low = int(lines.indices.min(initial=MAX_NUMBER))
    first = int(low >= 1 or extra.n_features is not None)
    if lines.sizes is not None:
        first = int(int(lines.indices.max(initial=0)) >= lines.sizes[0])
    if extra.n_features is None:
        fix = "Nothing to do, unless a first feature is missing."
        findings.add(f"features are taken to be numbered from {first}", fix)
    d = extra.n_features
    d = int(lines.indices.max(initial=first - 1)) + 1 - first if d is None else d
    d = max(d, 0 if lines.sizes is None else lines.sizes[0])
    check_shape(n, d, 0)
    columns = lines.indices[stored] - first
    if columns.size and not 0 <= columns.min() <= columns.max() < d:
        refuse(f"feature numbers must be 1 to {d}", "Write the files again.")
    rows = np.repeat(np.arange(n), lines.counts)[stored]
    features = sp.csr_array((values[stored], (rows, columns)), shape=(n, d))
    if not extra.is_dense:
        return features
    check_size(4 * n * d, "the features")
    return features.toarray()


def _extra(path: Path, findings: Findings) -> Extra:
    try:
        return Extra.model_validate(load_json(path, findings) if path.exists() else {})
    except ValidationError as error:
        fix = "Write the files again, or delete this side file."
        refuse(f"{path.name} is not what this program writes", fix, value=error.errors()[0]["loc"])


def write(
    dataset: CandidateDataset,
    path: Path,
    mapping: ColumnMapping | None = None,
    resolution: Any = None,
) -> None:
    """Write the lines (labels from 0, features from 1) and the side files."""
    names_path, truth_path, candidates_path, extra_path = siblings(path)
    labels = _label_lines(resolved_labels(dataset, resolution))
    features = _feature_lines(exact_features_of(dataset))
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(map(_line, labels, features))
    _write_lines(names_path, map(_name_line, dataset.label_names))
    if dataset.truth is not None:
        _write_lines(truth_path, _label_lines(dataset.truth))
    if resolution is not None:
        _write_lines(candidates_path, _label_lines(dataset.candidates))
    extra_path.write_text(
        _extra_of(dataset, resolution).model_dump_json(exclude_defaults=True), "utf-8"
    )


def _line(labels: str, features: str) -> str:
    # A line with nothing on it would be skipped by every reader: say "feature 1 is 0" instead.
    return f"{labels} {features}\n" if features else f"{labels or '1:0'}\n"


def _write_lines(path: Path, lines: Iterable[str]) -> None:
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(f"{line}\n" for line in lines)


def _label_lines(matrix: Labels) -> list[str]:
    numbers = [str(j) for j in range(matrix.shape[1])]
    return [",".join(row) for row in sets_of(matrix, numbers)]


def _feature_lines(features: Features) -> Iterator[str]:
    for row in range(features.shape[0]):
        columns, values = row_of(features, row)
        texts = number_texts(values)
        yield " ".join(f"{j}:{text}" for j, text in zip((columns + 1).tolist(), texts, strict=True))


def _name_line(name: str) -> str:
    """Return a name as it is, or as JSON where a line could not hold it."""
    is_plain = name.isprintable() and not name.startswith('"')
    return name if is_plain else json.dumps(name)


def _extra_of(dataset: CandidateDataset, resolution: Any) -> Extra:
    names = dataset.feature_names
    given = {"truth": dataset.truth, "candidates": resolution}
    return Extra(
        n_features=dataset.n_features,
        is_dense=not sp.issparse(dataset.features),
        side_files=[key for key, value in given.items() if value is not None],
        ids=[] if is_numbering(dataset.ids, "") else list(dataset.ids),
        feature_names=[] if is_numbering(names, "x") else list(names),
        display=display_texts(dataset),
    )
