"""Mulan ARFF with its XML of label names, and MEKA ARFF (`-C n` in the relation's name).

Owns what attributes mean: labels, `true_<label>` truth, `candidate_<label>` beside resolved
labels, texts for display, all else features. Written are features and labels alone, because other
programs take every other attribute for a feature; the rest is in the side file. Refuses XML with
entities.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import takewhile
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import scipy.sparse as sp

from core.data.dataset import CandidateDataset, Features, Labels
from core.formats.readers.arff.features import (
    attribute_features,
    dense_columns,
    name_texts,
    truth_values,
)
from core.formats.readers.arff.text import Table, parse, quoted
from core.formats.shared.findings import Findings, refuse
from core.formats.shared.label_sets import RESOLVED, resolved_labels
from core.formats.shared.limits import check_shape
from core.formats.shared.list_features import filled
from core.formats.shared.mapping import ColumnMapping, ReadResult
from core.formats.shared.original import exact_features_of
from core.formats.shared.sparse_rows import row_of
from core.formats.shared.text import number_texts, read_lines
from core.formats.shared.xml_text import attributes_named, load_xml, quoted_attribute

NAME = "arff"
EXTENSIONS = (".arff",)

NAMESPACE = "http://mulan.sourceforge.net/labels"
MEKA = re.compile(r"-C\s+(-?\d{1,9})\b")
ID_NAMES = ("id", "instance_id")
TRUTH, CANDIDATE, CONFIDENCE = "true_", "candidate_", "conf_"
LACKS = ("display",)


def sniff(head: bytes, path: Path) -> bool:
    """Whether the first line that is no comment begins with @relation or @attribute."""
    lines = (line.strip().lower() for line in head.removeprefix(b"\xef\xbb\xbf").split(b"\n"))
    first = next((line for line in lines if line and not line.startswith(b"%")), b"")
    return first.startswith((b"@relation", b"@attribute"))


def siblings(path: Path) -> list[Path]:
    """Return the XML file of label names that belongs to a file of this format."""
    return [path.with_suffix(".xml")]


def read(path: Path, mapping: ColumnMapping | None = None) -> ReadResult:
    """Read the table, then tell labels from features by the XML, else by `-C n`."""
    return _read(path, mapping, exact=False)[0]


def exact_features(path: Path, mapping: ColumnMapping) -> Features:
    """Return the features as float64, which is what numbers of this format are."""
    return _read(path, mapping, exact=True)[1]


def _read(path: Path, mapping: ColumnMapping | None, *, exact: bool) -> tuple[ReadResult, Features]:
    """Return what was read, and the features of the table with the precision asked for."""
    findings = Findings()
    table = parse(read_lines(path, findings), findings, exact=exact)
    place = _places(table)
    names = _label_names(path, table, mapping, findings)
    groups = {prefix: _group(prefix, names, place, findings) for prefix in (TRUTH, CANDIDATE)}
    labels = [place[name] for name in names]
    name_texts(table, set(labels), findings)
    ids, display = _texts(table)
    used = {*labels, *groups[TRUTH], *groups[CANDIDATE], *table.texts}
    if groups[CANDIDATE]:
        used |= {place[CONFIDENCE + name] for name in names if CONFIDENCE + name in place}
        findings.add(RESOLVED.message, RESOLVED.fix)
    features, feature_names = attribute_features(table, used, findings)
    features = filled(features, feature_names, findings)
    candidates = _labels(table, groups[CANDIDATE] or labels, findings)
    truth = _labels(table, groups[TRUTH], findings) if groups[TRUTH] else None
    findings.stop_if_fatal()
    dataset = CandidateDataset(features, candidates, names, ids, feature_names, truth, display)
    return ReadResult(dataset, findings.problems(), mapping, NAME), features


def _places(table: Table) -> dict[str, int]:
    counts = Counter(attribute.name for attribute in table.attributes)
    twice = [name for name, count in counts.items() if count > 1]
    if twice:
        refuse("attributes must have different names", "Rename them.", value=twice[:20])
    return {attribute.name: j for j, attribute in enumerate(table.attributes)}


def _label_names(
    path: Path, table: Table, mapping: ColumnMapping | None, findings: Findings
) -> list[str]:
    """Return the labels, in attribute order, that the mapping, the XML or `-C n` names."""
    attributes = [attribute.name for attribute in table.attributes]
    if mapping is not None and mapping.labels:
        return _listed(mapping.labels, attributes, "the mapping", findings)
    xml = _xml_beside(path)
    match = MEKA.search(table.relation)
    if xml is not None:
        return _listed(_xml_names(xml), attributes, xml.name, findings)
    if table.outputs:
        return _listed(table.outputs, attributes, "@outputs", findings)
    if match is None:
        return _flags_at_an_end(path, table, findings)
    count = int(match[1])
    if not 0 < abs(count) <= len(attributes):
        rule = f"-C must count labels among the {len(attributes)} attributes"
        refuse(rule, "Correct the @relation.", value=count)
    return attributes[:count] if count > 0 else attributes[count:]


def _flags_at_an_end(path: Path, table: Table, findings: Findings) -> list[str]:
    """Return the attributes of 0 and 1 at the end, else at the beginning, where others are not."""
    are_flags = [bool(truth_values(attribute.values or ())) for attribute in table.attributes]
    names = [attribute.name for attribute in table.attributes]
    last = names[len(names) - len(list(takewhile(bool, reversed(are_flags)))) :]
    first = names[: len(list(takewhile(bool, are_flags)))]
    found = last or first
    fix = f"Put {path.stem}.xml beside the file (Mulan), or -C n into its @relation (MEKA)."
    if len(found) < 2 or len(found) == len(names):
        refuse("the labels of an ARFF file must be named", fix)
    where = "last" if last else "first"
    rule = f"which attributes are labels? The {where} {len(found)} are taken, which are 0 or 1"
    ways = "If it is others, name them (--labels NAME), put the XML beside the file (Mulan), or "
    findings.add(rule, ways + "-C n into its @relation (MEKA).", value=", ".join(found[:4]))
    return found


def _listed(
    names: Sequence[str], attributes: list[str], where: str, findings: Findings
) -> list[str]:
    listed = set(names)
    for name in sorted(listed - set(attributes)):
        rule = f"every label of {where} must be an attribute"
        findings.add(rule, "Correct the name, or add the attribute.", fatal=True, value=name)
    findings.stop_if_fatal()
    return [name for name in attributes if name in listed]


def _xml_beside(path: Path) -> Path | None:
    """Return the XML with the longest stem the file's begins with: parts share one (`x-train`).

    Else the only one there is, if it is called labels.
    """
    stem, every = path.stem.lower(), list(path.parent.glob("*.xml"))
    beside = [xml for xml in every if stem.startswith(xml.stem.lower())]
    alone = [xml for xml in every if len(every) == 1 and "label" in xml.stem.lower()]
    return max(beside or alone, key=lambda xml: len(xml.stem), default=None)


def _xml_names(path: Path) -> list[str]:
    names = attributes_named(load_xml(path), "label", "name")
    if not names or None in names:
        refuse(f"{path.name} must name its labels", '<label name="sea"/> within <labels>.')
    return [str(name) for name in names]


def _group(
    prefix: str, names: Sequence[str], place: dict[str, int], findings: Findings
) -> list[int]:
    """Return the attributes `<prefix><label>`, when every label has one."""
    found = [place[prefix + name] for name in names if prefix + name in place]
    labels = {place[name] for name in names}
    if labels & set(found) or not found:
        return []
    if len(found) < len(names):
        rule = f"only {len(found)} of {len(names)} labels have an attribute {prefix}<label>"
        findings.add(f"{rule}: they are read as features", "Add the others, or rename these.")
        return []
    return found


def _texts(table: Table) -> tuple[list[str], pd.DataFrame | None]:
    """Return the ids, when a textual attribute is named so, and the display columns."""
    columns = {table.attributes[j].name: texts for j, texts in table.texts.items()}
    key = next((name for name in columns if name.lower() in ID_NAMES), None)
    ids = columns.pop(key) if key is not None else []
    return ids, pd.DataFrame(columns) if columns else None


def _labels(table: Table, columns: list[int], findings: Findings) -> npt.NDArray[Any]:
    check_shape(table.numbers.shape[0], 0, len(columns))
    labels = dense_columns(table, columns)
    for at, j in enumerate(columns):
        attribute, column = table.attributes[j], labels[:, at]
        missing = np.isnan(column)
        column[missing] = 0
        if missing.any():
            rule, fix = "a label has missing values; they count as not offered", "Fill them in."
            findings.add(rule, fix, column=attribute.name, value=f"{missing.sum():,} missing")
        if attribute.values is None and not attribute.is_text:
            continue
        codes = truth_values(attribute.values or ())
        if not codes:
            rule, found = (
                "a label attribute must be {0,1}",
                ",".join(attribute.values or ["string"]),
            )
            findings.add(rule, "Declare 0 and 1.", fatal=True, column=attribute.name, value=found)
        elif codes != [0, 1]:
            column[:] = np.where(missing, 0, np.asarray(codes)[column.astype(np.intp)])
    return labels


def write(
    dataset: CandidateDataset,
    path: Path,
    mapping: ColumnMapping | None = None,
    resolution: Any = None,
) -> None:
    """Write ARFF, labels last, and the XML that names them; MEKA finds them by `-C`."""
    labels = resolved_labels(dataset, resolution)
    attributes = [f"{quoted(name)} numeric" for name in _different_names(dataset)]
    attributes += [f"{quoted(name)} {{0,1}}" for name in dataset.label_names]
    siblings(path)[0].write_text(_xml(dataset.label_names), "utf-8")
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.write(f"@relation 'plain: -C -{dataset.n_labels}'\n\n")
        file.writelines(f"@attribute {attribute}\n" for attribute in attributes)
        file.write("\n@data\n")
        file.writelines(_lines(exact_features_of(dataset), labels))


def _different_names(dataset: CandidateDataset) -> list[str]:
    """Return the features' names; one that is also a label's is called word_… or feature_…."""
    prefix = "word_" if sp.issparse(dataset.features) else "feature_"
    taken = {*dataset.label_names, *dataset.feature_names}
    names = list(dataset.feature_names)
    for j, name in enumerate(names):
        if name in dataset.label_of:
            while name in taken:
                name = prefix + name
            taken.add(name)
            names[j] = name
    return names


def _xml(names: Sequence[str]) -> str:
    labels = "".join(f"  <label name={quoted_attribute(name)}></label>\n" for name in names)
    head = '<?xml version="1.0" encoding="utf-8"?>\n'
    return f'{head}<labels xmlns="{NAMESPACE}">\n{labels}</labels>\n'


def _lines(features: Features, labels: Labels) -> Iterator[str]:
    labels, last = labels.astype(features.dtype), features.shape[0] - 1
    for i in range(features.shape[0]):
        if sp.issparse(features):
            yield _sparse_line(row_of(features, i), features.shape[1], labels[i], i == last)
        else:
            yield ",".join(number_texts(np.concatenate([features[i], labels[i]]))) + "\n"


def _sparse_line(
    stored: tuple[npt.NDArray[Any], npt.NDArray[Any]],
    n_features: int,
    labels: npt.NDArray[Any],
    is_last: bool,
) -> str:
    """Return a row's values; the last row names the last label: scikit-multilearn counts by it."""
    columns, values = stored
    set_labels = np.flatnonzero(labels)
    if is_last:
        set_labels = np.union1d(set_labels, len(labels) - 1)
    places = np.concatenate([columns, n_features + set_labels])
    numbers = number_texts(np.concatenate([values, labels[set_labels]]))
    return "{" + ",".join(f"{j} {text}" for j, text in zip(places, numbers, strict=True)) + "}\n"
