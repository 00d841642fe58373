"""A file of annotations per item, in a folder or a zip file: LabelMe, Pascal VOC, brat; and CVAT's.

An item's labels are the names of what is marked in it, and LabelMe's flags and CVAT's tags, which
hold for a whole picture. CVAT has one file for all pictures. Only read: an export is a table.
"""

import json
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

import pyarrow as pa

from core.encoders.pictures import BrokenPicture, FolderPictures, PictureSource, ZipPictures
from core.errors import DatasetError
from core.formats.readers.picture_folders import files_below
from core.formats.shared.archives import BAD_ARCHIVE
from core.formats.shared.companions import visible
from core.formats.shared.findings import Findings, refuse
from core.formats.shared.limits import check_rows, check_size
from core.formats.shared.mapping import ColumnMapping, ReadResult
from core.formats.shared.tabular import to_dataset
from core.formats.shared.xml_text import load_xml, parse_xml

NAME = "item_files"
EXTENSIONS = ()
ENDINGS = (".json", ".xml", ".ann")
SAMPLE = 5  # files that tell what a folder holds
SPREAD = 16  # bytes that a byte of JSON or XML takes

Files = tuple[PictureSource, list[str]]


@dataclass(frozen=True)
class Item:
    """What one file says."""

    id: str
    labels: list[str]
    image: str | None = None
    text: str | None = None


def sniff(head: bytes, path: Path) -> bool:
    """Whether a folder holds such files, or this is CVAT's file of all pictures."""
    if path.is_dir():
        return _are_item_files((FolderPictures(path), files_below(path)))
    return b"<annotations" in head[:2000] and b"<image " in head


def reads_zip(path: Path) -> bool:
    """Whether a zip file holds such files."""
    try:
        return _are_item_files(_files(path))
    except BAD_ARCHIVE:
        return False


def read(path: Path, mapping: ColumnMapping | None = None) -> ReadResult:
    """Read the items with their labels; pictures and texts are looked for beside them."""
    findings = Findings()
    names: tuple[str, ...] = ()
    if path.is_dir() or zipfile.is_zipfile(path):
        items = list(_items(_files(path), findings))
    else:
        check_size(SPREAD * path.stat().st_size, "XML")
        items, names = _pictures_of_cvat(load_xml(path))
    check_rows(len(items))
    if not items:
        refuse("there must be annotated items", "Check how the files were made.")
    full = _mapping(items, names)
    columns: dict[str, list[Any]] = {"id": [item.id for item in items]}
    columns |= {name: [getattr(item, name) for item in items] for name in full.display}
    table = pa.table(columns | {"labels": [item.labels for item in items]})
    dataset = to_dataset(table.to_batches(), full, len(items), findings)
    return ReadResult(dataset, findings.problems(), full, NAME)


def _mapping(items: list[Item], names: tuple[str, ...]) -> ColumnMapping:
    shown = "text" if items[0].text is not None else "image"
    features = ("text",) if shown == "text" else ()
    about = {"labels": "what is marked in each item"}
    return ColumnMapping(
        id="id",
        labels=("labels",),
        layout="delimited",
        label_names=names,
        features=features,
        feature_layout="text" if features else "encoded",
        text="text" if features else None,
        image=None if features else "image",
        display=(shown,),
        columns=("id", shown, "labels"),
        reasons=about,
    )


def _files(path: Path) -> Files:
    if path.is_dir():
        return FolderPictures(path), files_below(path)
    with zipfile.ZipFile(path) as archive:
        return ZipPictures(path), visible(archive.namelist())


def _are_item_files(files: Files) -> bool:
    source, names = files
    some = [name for name in sorted(names) if name.lower().endswith(ENDINGS)][:SAMPLE]
    return 2 * sum(_item(source, name, {}) is not None for name in some) > len(some)


def _items(files: Files, findings: Findings) -> Iterator[Item]:
    source, names = files
    by_name = {PurePosixPath(name).name: name for name in names}
    n_bytes = 0
    for name in sorted(name for name in names if name.lower().endswith(ENDINGS)):
        item = _item(source, name, by_name)
        if item is None:
            rule = "a file is none of annotations, and is left out"
            findings.add(rule, "Nothing to do, unless it is one.", value=name)
            continue
        n_bytes += sum(map(len, (item.image or "", item.text or "", *item.labels)))
        check_size(n_bytes)
        yield item


def _item(source: PictureSource, name: str, by_name: dict[str, str]) -> Item | None:
    """Return what a file says; None if it cannot be read, or says something else."""
    key, ending = str(PurePosixPath(name).with_suffix("")), PurePosixPath(name).suffix.lower()
    try:
        content = source.read(name)
        check_size(SPREAD * len(content), name)
        if ending == ".ann":
            return Item(key, _spans_of_brat(content), text=_text_beside(source, key))
        if ending == ".xml":
            image, labels = _objects_of_voc(parse_xml(content, name))
        else:
            image, labels = _shapes_of_labelme(json.loads(content))
    except (BrokenPicture, ValueError, RecursionError, DatasetError):
        return None
    beside = by_name.get(PureWindowsPath(image).name, image) if image else key
    return Item(key, sorted(set(map(_unicode, labels))), image=_unicode(beside))


def _unicode(text: str) -> str:
    """Return text that can be written: JSON may hold half of a character."""
    return text.encode("utf-8", "replace").decode()


def _shapes_of_labelme(found: Any) -> tuple[str, list[str]]:
    """`{"imagePath": "a.jpg", "flags": {"blurred": false}, "shapes": [{"label": "dog"}]}`."""
    if not isinstance(found, dict) or not isinstance(found.get("shapes"), list):
        raise ValueError("not LabelMe's")
    shapes = (one for one in found["shapes"] if isinstance(one, dict))
    flags = found.get("flags")
    labels = {str(one["label"]) for one in shapes if one.get("label") is not None}
    labels |= {str(k) for k, is_set in (flags if isinstance(flags, dict) else {}).items() if is_set}
    return str(found.get("imagePath") or ""), sorted(labels)


def _objects_of_voc(root: Any) -> tuple[str, list[str]]:
    """`<annotation><filename>a.jpg</filename><object><name>dog</name></object></annotation>`."""
    if root.tag != "annotation":
        raise ValueError("not Pascal VOC's")
    names = (one.findtext("name") for one in root.iter("object"))
    return (root.findtext("filename") or "").strip(), sorted({n.strip() for n in names if n})


def _spans_of_brat(content: bytes) -> list[str]:
    """Lines such as `T1<tab>Person 0 5<tab>Alice`; the others say something of these."""
    lines = (line.split("\t") for line in content.decode("utf-8").splitlines())
    marked = (line[1].split() for line in lines if line[0][:1] == "T" and len(line) > 1)
    return sorted({words[0] for words in marked if words})


def _text_beside(source: PictureSource, key: str) -> str:
    try:
        return source.read(f"{key}.txt").decode("utf-8", "replace")
    except BrokenPicture:
        return ""


def _pictures_of_cvat(root: Any) -> tuple[list[Item], tuple[str, ...]]:
    """Return the pictures of `<annotations>`, and the labels that its `<meta>` declares."""
    declared = [one.text.strip() for one in root.iterfind("./meta//label/name") if one.text]
    items: list[Item] = []
    for image in root.iter("image"):
        name = image.get("name") or image.get("id") or str(len(items))
        labels = {one.get("label") for one in image if one.get("label")}
        items.append(Item(name, sorted(labels), image=name))
    return items, tuple(dict.fromkeys(declared))
