"""FiftyOne: a folder that it imports as `fo.types.FiftyOneDataset`; written only.

Owns `metadata.json` (the fields and their types), `samples.json` (labels and candidates as
`Classifications`, a confidence on each; our id as `instance_id`) and `data/`: pictures as files,
texts as text files where there is no picture, because a sample there is a file.
"""

import hashlib
import json
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from core.data.dataset import CandidateDataset
from core.encoders.pictures import BrokenPicture, content_of, source_of
from core.encoders.thumbnails import kept_views
from core.formats.shared.label_sets import (
    display_texts,
    image_column,
    resolved_labels,
    safe_keys,
    sets_of,
)
from core.formats.shared.mapping import ColumnMapping

VERSION = "1.0.0"  # of what is written here; newer ones bring it up to date
FIELDS = "fiftyone.core.fields."
LABELS = ("labels", "candidate_labels")
RESERVED = (
    *(*LABELS, "id", "filepath", "tags", "metadata", "instance_id", "created_at"),
    *("last_modified_at", "media_type", "dataset_id"),
)
KINDS = {b"\x89PNG": ".png", b"\xff\xd8\xff": ".jpg", b"GIF8": ".gif", b"RIFF": ".webp"}
KINDS |= {b"BM": ".bmp", b"II*\0": ".tif", b"MM\0*": ".tif"}
UNSAFE = re.compile(r"[^\w.-]+")

Record = dict[str, Any]
Pictures = Callable[[int, str], bytes]  # of a row and its cell


def write(
    dataset: CandidateDataset,
    path: Path,
    mapping: ColumnMapping | None = None,
    resolution: Any = None,
) -> None:
    """Write the folder."""
    display = display_texts(dataset)
    image = image_column(display)
    keys = safe_keys((name for name in display if name != image), RESERVED)
    (path / "data").mkdir(parents=True)
    media = "unknown" if image is None else "image"
    with (path / "samples.json").open("w", encoding="utf-8", newline="\n") as file:
        file.write('{"samples": [\n')
        with _pictures(dataset, image) as pictures:
            made = _samples(dataset, resolution, display, image, keys, path, pictures)
            for i, sample in enumerate(made):
                file.write((",\n" if i else "") + json.dumps(sample, ensure_ascii=False))
        file.write("\n]}\n")
    text = json.dumps(_metadata(dataset, list(keys.values()), media), indent=1)
    (path / "metadata.json").write_text(text, "utf-8")


def _samples(
    dataset: CandidateDataset,
    resolution: Any,
    display: dict[str, list[str]],
    image: str | None,
    keys: dict[str, str],
    folder: Path,
    pictures: Pictures,
) -> Iterator[Record]:
    numbers = range(dataset.n_labels)
    labels = sets_of(resolved_labels(dataset, resolution), numbers)
    candidates = sets_of(dataset.candidates, numbers)
    for i, instance in enumerate(dataset.ids):
        fields = {keys[name]: texts[i] for name, texts in display.items() if name in keys}
        if image is None:
            file = _text_file(folder, i, "\n".join(fields.values()) or instance)
        else:
            file = _picture_file(folder, i, display[image][i], pictures)
        sample: Record = {"_id": _object_id(dataset, i, ""), "filepath": file, "tags": []}
        sample |= {"_media_type": "unknown" if image is None else "image", "instance_id": instance}
        for name, members in zip(LABELS, (labels[i], candidates[i]), strict=True):
            sample[name] = {
                "_cls": "Classifications",
                "classifications": [_one(dataset, resolution, i, j, name) for j in members],
            }
        yield {**sample, **fields}


def _one(dataset: CandidateDataset, resolution: Any, i: int, j: int, name: str) -> Record:
    made: Record = {"_id": _object_id(dataset, i, f"{name}/{j}"), "_cls": "Classification"}
    made |= {"tags": [], "label": dataset.label_names[j]}
    if resolution is not None:
        made["confidence"] = float(resolution.confidences[i, j])
    return made


def _object_id(dataset: CandidateDataset, i: int, what: str) -> Record:
    """Return an id of MongoDB's kind, the same for the same data every time."""
    text = f"{dataset.fingerprint}/{i}/{what}"
    return {"$oid": hashlib.sha256(text.encode()).hexdigest()[:24]}


@contextmanager
def _pictures(dataset: CandidateDataset, image: str | None) -> Iterator[Pictures]:
    """Give what returns a row's picture, or raises `BrokenPicture`.

    It is the file that a cell names or holds; where that is gone, as an upload is, the view of up
    to 1,024 pixels that the workspace keeps.
    """
    original = dataset.original
    if original is None or image is None:
        yield lambda row, cell: content_of(cell, source_of(None))
        return
    with ExitStack() as stack:
        in_folders = original.format == "pictures"
        where = stack.enter_context(original.opened()) if in_folders else original.path
        source = source_of(original.beside or where)
        view = kept_views(original.path.parent, image)

        def picture(row: int, cell: str) -> bytes:
            try:
                return content_of(cell, source)
            except BrokenPicture:
                if (kept := view(row)) is None:
                    raise
                return kept

        yield picture


def _picture_file(folder: Path, i: int, cell: str, pictures: Pictures) -> str:
    """Copy a picture into the folder; one that cannot be found keeps the name it has."""
    try:
        content = pictures(i, cell)
    except BrokenPicture:
        return cell if len(cell) <= 1000 else f"data/{i:06d}"
    ending = next((kind for magic, kind in KINDS.items() if content.startswith(magic)), "")
    stem = "" if cell.startswith("data:") else "_" + UNSAFE.sub("_", Path(cell).stem)[:60]
    name = f"data/{i:06d}{stem}{ending}"
    (folder / name).write_bytes(content)
    return name


def _text_file(folder: Path, i: int, text: str) -> str:
    name = f"data/{i:06d}.txt"
    (folder / name).write_text(text, "utf-8")
    return name


def _metadata(dataset: CandidateDataset, shown: list[str], media: str) -> Record:
    texts = [_field(name, "StringField") for name in ("instance_id", *shown)]
    return {
        "version": VERSION,
        "name": "plain",
        "media_type": media,
        "classes": {name: list(dataset.label_names) for name in LABELS},
        "info": {"fingerprint": dataset.fingerprint},
        "sample_fields": [
            _field("id", "ObjectIdField", db_field="_id"),
            _field("filepath", "StringField"),
            _field("tags", "ListField", subfield=f"{FIELDS}StringField"),
            _field(
                "metadata",
                "EmbeddedDocumentField",
                embedded_doc_type="fiftyone.core.metadata."
                + ("ImageMetadata" if media == "image" else "Metadata"),
            ),
            *(
                _field(
                    name,
                    "EmbeddedDocumentField",
                    embedded_doc_type="fiftyone.core.labels.Classifications",
                )
                for name in LABELS
            ),
            *texts,
        ],
        "frame_fields": [],
    }


def _field(name: str, kind: str, **more: Any) -> Record:
    made = {"name": name, "ftype": FIELDS + kind, "embedded_doc_type": None, "subfield": None}
    return {**made, "fields": [], "db_field": name, "description": None, "info": None, **more}
