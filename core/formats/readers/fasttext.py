"""fastText's text: `__label__sea __label__sun red sky over water`, an item per line.

Labels are read wherever they stand in a line. Written are labels and text, what a line cannot hold
is in the side file.
"""

import re
from pathlib import Path
from typing import Any

import pyarrow as pa

from core.data.dataset import CandidateDataset
from core.formats.shared.findings import Findings
from core.formats.shared.label_sets import display_texts, resolved_labels, sets_of
from core.formats.shared.mapping import ColumnMapping, ReadResult
from core.formats.shared.tabular import to_dataset
from core.formats.shared.text import read_lines

NAME = "fasttext"
EXTENSIONS = (".fasttext", ".ft")
LACKS = ("features", "display")
PREFIX = "__label__"
SPACE = re.compile(r"\s+")
SAMPLE, MOSTLY = 20, 0.8  # lines that tell the format; some may have no label

_MAPPING = ColumnMapping(
    labels=("labels",),
    layout="delimited",
    features=("text",),
    feature_layout="text",
    text="text",
    display=("text",),
    columns=("text", "labels"),
    no_label=(),
    reasons={"labels": f"words that begin with {PREFIX}"},
)


def sniff(head: bytes, path: Path) -> bool:
    """Whether the first lines have labels of this kind, the very first at its beginning."""
    start = PREFIX.encode()
    lines = [line for line in head.removeprefix(b"\xef\xbb\xbf").splitlines() if line.strip()]
    lines = lines[:SAMPLE]
    n_labelled = sum(start in line for line in lines)
    return bool(lines) and lines[0].startswith(start) and n_labelled >= MOSTLY * len(lines)


def read(path: Path, mapping: ColumnMapping | None = None) -> ReadResult:
    """Read every line that is not empty as an item."""
    findings = Findings()
    words = [line.split() for line in read_lines(path, findings) if line.strip()]
    texts = [" ".join(word for word in line if not word.startswith(PREFIX)) for line in words]
    labels = [
        [word.removeprefix(PREFIX) for word in line if word.startswith(PREFIX)] for line in words
    ]
    table = pa.table({"text": texts, "labels": pa.array(labels, pa.list_(pa.string()))})
    dataset = to_dataset(table.to_batches(), _MAPPING, len(texts), findings)
    return ReadResult(dataset, findings.problems(), _MAPPING, NAME)


def write(
    dataset: CandidateDataset,
    path: Path,
    mapping: ColumnMapping | None = None,
    resolution: Any = None,
) -> None:
    """Write labels, then the text: that of the mapping, else the longest display column."""
    shown = display_texts(dataset)
    stated = mapping.text if mapping is not None else None
    longest = max(shown, key=lambda name: sum(map(len, shown[name])), default=None)
    texts = shown.get(stated if stated in shown else longest or "", list(dataset.ids))
    words = [PREFIX + SPACE.sub("_", name) for name in dataset.label_names]
    sets = sets_of(resolved_labels(dataset, resolution), words)
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for names, text in zip(sets, texts, strict=True):
            file.write(" ".join([*names, *text.split()]) + "\n")
