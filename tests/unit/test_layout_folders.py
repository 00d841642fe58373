"""Folders and zip files of several tables, of a file per item, of Hugging Face's."""

import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fuzzing import survive
from layouts import LABELS, RATERS, N, crowd, lines, table
from PIL import Image

from core import formats

ROWS = [{"text": item.text, "labels": item.labels} for item in crowd()]
NUMBERS = [{**row, "labels": [LABELS.index(x) for x in row["labels"]]} for row in ROWS]
CLASSES = {"feature": {"names": list(LABELS), "_type": "ClassLabel"}, "_type": "Sequence"}
FEATURES = {"text": {"dtype": "string", "_type": "Value"}, "labels": CLASSES}
MUTATIONS = 6  # per file
Make = Callable[[Path], None]


def picture(k: int) -> bytes:
    out = io.BytesIO()
    Image.new("RGB", (8, 8), (37 * k % 256, 91 * k % 256, 13 * k % 256)).save(out, "PNG")
    return out.getvalue()


def put(folder: Path, files: dict[str, str | bytes]) -> None:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())


def shards(folder: Path) -> None:
    told = {"huggingface": json.dumps({"info": {"features": FEATURES}})}
    (folder / "data").mkdir()
    for k in range(2):
        part = pa.Table.from_pylist(NUMBERS[20 * k : 20 * k + 20]).replace_schema_metadata(told)
        pq.write_table(part, folder / "data" / f"train-0000{k}-of-00002.parquet")
    put(folder, {"README.md": "---\n", "dataset_infos.json": "{}", ".gitattributes": "x"})


def splits(folder: Path) -> None:
    files = {"train": ROWS[:20], "validation": ROWS[20:30], "test": ROWS[30:]}
    put(folder, {f"{name}.jsonl": lines(rows) for name, rows in files.items()})


def without_test_labels(folder: Path) -> None:
    """Kaggle's: what is for the test has no labels, and is left out."""
    flags = [[int(x in row["labels"]) for x in LABELS] for row in ROWS]
    rows = [[k, row["text"], *flags[k]] for k, row in enumerate(ROWS)]
    tests = [[k, f"{row['text']} too"] for k, row in enumerate(ROWS)]
    put(folder, {"train.csv": table([["id", "text", *LABELS], *rows])})
    put(folder, {"test.csv": table([["id", "text"], *tests])})


def saved_to_disk(folder: Path) -> None:
    """Columns of any name, and classes that only the description names."""
    given = pa.Table.from_pylist(
        [{"sentence": r["text"], "feelings": r["labels"]} for r in NUMBERS]
    )
    with pa.ipc.new_stream(str(folder / "data-00000-of-00001.arrow"), given.schema) as stream:
        stream.write_table(given)
    put(folder, {"dataset_info.json": json.dumps({"features": {"feelings": CLASSES}})})


def wrench(folder: Path) -> None:
    """Every split counts its items anew; names of classes lie beside."""
    named = {
        str(k): {"data": {"text": r["text"]}, "label": r["labels"]} for k, r in enumerate(NUMBERS)
    }
    first = {k: named[k] for k in list(named)[:20]}
    rest = {str(k): named[str(k + 20)] for k in range(20)}
    names = {str(k): name for k, name in enumerate(LABELS)}
    put(folder, {"train.json": json.dumps(first), "valid.json": json.dumps(rest)})
    put(folder, {"label.json": json.dumps(names)})


def roboflow(folder: Path) -> None:
    """A table per split among its pictures, with spaces behind the commas."""
    for split, start, stop in (("train", 0, 30), ("valid", 30, N)):
        head = ",".join(["filename", *(f" {x}" for x in LABELS)])
        body = [
            ",".join([f"{k}.png", *(f" {int(x in ROWS[k]['labels'])}" for x in LABELS)])
            for k in range(start, stop)
        ]
        put(folder, {f"{split}/_classes.csv": "\n".join([head, *body]) + "\n"})
        put(folder, {f"{split}/{k}.png": picture(k) for k in range(start, stop)})
    put(folder, {"README.roboflow.txt": "made by hand"})


def metadata(folder: Path) -> None:
    """ImageFolder: the table lies among the pictures, in a folder that is no label."""
    rows = [[f"{k:02d}.png", "|".join(ROWS[k]["labels"])] for k in range(N)]
    put(folder, {"train/metadata.csv": table([["file_name", "labels"], *rows])})
    put(folder, {f"train/{k:02d}.png": picture(k) for k in range(N)})


def darwin(folder: Path) -> None:
    for k, row in enumerate(ROWS):
        marks = [{"name": x, "tag": {}} for x in row["labels"]]
        found = {"version": "2.0", "item": {"name": f"{k:02d}.jpg"}, "annotations": marks}
        put(folder, {f"{k:02d}.json": json.dumps(found)})


def superannotate(folder: Path) -> None:
    for k, row in enumerate(ROWS):
        marks = [{"type": "bbox", "className": x} for x in row["labels"][1:]]
        found = {"metadata": {"name": f"{k:02d}.jpg"}, "instances": marks}
        put(folder, {f"{k:02d}.jpg.json": json.dumps({**found, "tags": row["labels"][:1]})})
    put(folder, {"classes.json": json.dumps([{"id": 1, "name": "anger"}])})


def yolo(folder: Path) -> None:
    for k, row in enumerate(NUMBERS):
        boxes = "".join(f"{label} .5 .5 .1 .1\n" for label in row["labels"])
        put(folder, {f"labels/train/{k:02d}.txt": boxes})
        put(folder, {f"images/train/{k:02d}.png": picture(k)})
    names = "".join(f"  {k}: {name}\n" for k, name in enumerate(LABELS))
    put(folder, {"data.yaml": f"train: images/train\nnames:\n{names}"})


def captions(folder: Path) -> None:
    for k, row in enumerate(ROWS):
        put(folder, {f"{k:02d}.png": picture(k), f"{k:02d}.txt": ", ".join(row["labels"])})


MAKES: tuple[Make, ...] = (
    *(
        shards,
        splits,
        without_test_labels,
        saved_to_disk,
        wrench,
        roboflow,
        metadata,
        darwin,
        superannotate,
    ),
    *(yolo, captions),
)


def label_sets(data: Any) -> list[list[str]]:
    return [[data.label_names[j] for j in np.flatnonzero(row)] for row in data.candidates]


def in_order(data: Any) -> list[list[str]]:
    """Return the label sets in the order of the items, where splits come in another."""
    found = label_sets(data)
    if data.display is None or "text" not in data.display:
        return found
    by_text = dict(zip(data.display["text"], found, strict=True))
    return [by_text.get(row["text"], []) for row in ROWS]


@pytest.mark.parametrize("packs", [False, True], ids=["folder", "zip"])
@pytest.mark.parametrize("make", MAKES, ids=lambda make: make.__name__)
def test_a_folder_is_read_whole(make: Make, packs: bool, tmp_path: Path) -> None:
    path = tmp_path / "given"
    path.mkdir()
    make(path)
    if packs:
        if make is saved_to_disk:
            pytest.skip("a folder of Hugging Face is not packed")
        files = [one for one in path.rglob("*") if one.is_file()]
        with zipfile.ZipFile(tmp_path / "given.zip", "w") as archive:
            for one in files:
                archive.write(one, one.relative_to(path).as_posix())
        path = tmp_path / "given.zip"
    data = formats.read(path).dataset
    assert data.n_instances == N
    assert in_order(data) == [row["labels"] for row in ROWS]
    out = formats.write(data, tmp_path / "out.jsonl")
    again = formats.read(out).dataset
    assert (again.ids, label_sets(again)) == (data.ids, label_sets(data))


def views_of_documents(folder: Path) -> None:
    """brat with a folder per person."""
    for item in crowd():
        for who, said in item.answers.items():
            marks = "".join(f"T{k}\t{x} 0 3\tthe\n" for k, x in enumerate(said, start=1))
            put(folder, {f"{who}/{item.id}.txt": item.text, f"{who}/{item.id}.ann": marks})


def inception(folder: Path) -> None:
    """INCEpTION: a folder per document, in it a table of words per person."""
    for item in crowd():
        for who, said in item.answers.items():
            words = item.text.split()
            value = said[0] if len(said) == 1 else "|".join(f"{x}[{k}]" for k, x in enumerate(said))
            rows = [f"1-{k}\t0-1\t{w}\t{'_' if k else value}\t" for k, w in enumerate(words)]
            head = [
                "#FORMAT=WebAnno TSV 3.3",
                "#T_SP=custom.Emotion|value",
                "",
                f"#Text={item.text}",
            ]
            put(folder, {f"annotation/{item.id}/{who}.tsv": "\n".join([*head, *rows]) + "\n"})


@pytest.mark.parametrize("make", [views_of_documents, inception], ids=lambda make: make.__name__)
def test_a_file_per_item_and_person_is_a_view(make: Make, tmp_path: Path) -> None:
    make(tmp_path)
    data = formats.read(tmp_path).dataset
    assert data.votes is not None
    assert (data.n_instances, data.votes.sources) == (N, RATERS)
    found = dict(zip(data.ids, label_sets(data), strict=True))
    assert found == {item.id: item.labels for item in crowd()}


@pytest.mark.parametrize("make", [*MAKES, inception], ids=lambda make: make.__name__)
def test_damaged_folders_are_read_or_refused(make: Make, tmp_path: Path) -> None:
    make(tmp_path)
    files = [one for one in tmp_path.rglob("*") if one.is_file() and one.suffix != ".png"]
    for path in sorted(files)[-3:]:
        healthy = path.read_bytes()
        survive(lambda _: formats.read(tmp_path), healthy, path, MUTATIONS)
        path.write_bytes(healthy)
