"""A file of annotations per item, in a folder or a zip file, as tools for marking export them.

LabelMe, Pascal VOC, brat, V7's Darwin, SuperAnnotate, tagtog, YOLO, WebAnno, and tags in a text
beside each picture; CVAT has one file for all. An item's labels are the names of what is marked in
it, and set flags and tags. Where several people have a file of an item each, those are their views.
Only read: an export is a table.
"""

import json
import re
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import takewhile
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

import pyarrow as pa

from core.encoders.pictures import BrokenPicture, FolderPictures, PictureSource, ZipPictures
from core.errors import DatasetError
from core.formats.readers.picture_folders import files_below
from core.formats.shared.archives import BAD_ARCHIVE
from core.formats.shared.companions import describes, is_note, split_in, visible
from core.formats.shared.findings import Findings, refuse
from core.formats.shared.json_text import objects
from core.formats.shared.limits import check_rows, check_size
from core.formats.shared.mapping import ColumnMapping, ReadResult
from core.formats.shared.profiles import PICTURE
from core.formats.shared.tabular import to_dataset
from core.formats.shared.xml_text import load_xml, parse_xml

NAME = "item_files"
EXTENSIONS = ()
ENDINGS = (".json", ".xml", ".ann", ".tsv")
MAX_TAG = 60  # letters
CLASS_LISTS = re.compile(
    r"(classes|obj|_darknet|labels|predefined.*)\.(txt|names|labels)|data\.ya?ml"
)
BOX = re.compile(r"\d+( -?[\d.eE+-]+){4,}")  # a line of YOLO
WEBANNO = "#FORMAT=WebAnno TSV"
SAMPLE = 5  # files that tell what a folder holds
SPREAD = 16  # bytes that a byte of JSON or XML takes

PERSON = "annotator"

Files = tuple[PictureSource, list[str]]


@dataclass(frozen=True)
class Item:
    """What one file says."""

    id: str
    labels: list[str]
    image: str | None = None
    text: str | None = None
    who: str | None = None


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
    items = _by_person(items)
    full = _mapping(items, names)
    columns: dict[str, list[Any]] = {"id": [item.id for item in items]}
    columns |= {name: [getattr(item, name) for item in items] for name in full.display}
    if full.source is not None:
        columns[full.source] = [item.who for item in items]
    table = pa.table(columns | {"labels": [item.labels for item in items]})
    dataset = to_dataset(table.to_batches(), full, len(items), findings)
    return ReadResult(dataset, findings.problems(), full, NAME)


def _mapping(items: list[Item], names: tuple[str, ...]) -> ColumnMapping:
    shown = "text" if items[0].text is not None else "image"
    features = ("text",) if shown == "text" else ()
    about = {"labels": "what is marked in each item"}
    views: dict[str, Any] = {"row": "view", "source": PERSON} if items[0].who is not None else {}
    return ColumnMapping(
        **views,
        id="id",
        labels=("labels",),
        layout="delimited",
        label_names=names,
        features=features,
        feature_layout="text" if features else "encoded",
        text="text" if features else None,
        image=None if features else "image",
        display=(shown,),
        columns=("id", shown, *((PERSON,) if views else ()), "labels"),
        reasons=about,
    )


def _files(path: Path) -> Files:
    if path.is_dir():
        return FolderPictures(path), files_below(path)
    with zipfile.ZipFile(path) as archive:
        return ZipPictures(path), visible(archive.namelist())


def _are_item_files(files: Files) -> bool:
    return bool(_annotations(files))


def _annotations(files: Files) -> list[str]:
    """Return the files that say what is in an item: most of one kind do."""
    source, names = files
    names = sorted(name for name in names if not is_note(name))
    pictures = {PurePosixPath(name).stem for name in names if PICTURE.search(name)}
    about = [name for name in names if name.lower().endswith(ENDINGS) and not describes(name)]
    beside = [name for name in names if name.lower().endswith(".txt")]
    beside = [name for name in beside if PurePosixPath(name).stem in pictures]
    for kind in (about, beside):
        some = kind[:SAMPLE]
        if 2 * sum(_item(source, name, {}) is not None for name in some) > len(some):
            return kind
    return []


def _items(files: Files, findings: Findings) -> Iterator[Item]:
    source, names = files
    by_name = {PurePosixPath(name).name: name for name in names}
    by_stem = {PurePosixPath(name).stem: name for name in names if PICTURE.search(name)}
    called = _legend(files)
    n_bytes = 0
    for name in _annotations(files):
        item = _item(source, name, by_stem if name.lower().endswith(".txt") else by_name)
        if item is None:
            rule = "a file is none of annotations, and is left out"
            findings.add(rule, "Nothing to do, unless it is one.", value=name)
            continue
        item = replace(item, labels=sorted({called.get(one, one) for one in item.labels}))
        n_bytes += sum(map(len, (item.image or "", item.text or "", *item.labels)))
        check_size(n_bytes)
        yield item


def _legend(files: Files) -> dict[str, str]:
    """Return the names of numbers or codes of labels that a file beside tells."""
    source, names = files
    for name in names:
        base = PurePosixPath(name).name
        try:
            if base == "annotations-legend.json":
                found = json.loads(source.read(name))
                return {str(k): str(v) for k, v in found.items()} if isinstance(found, dict) else {}
            if CLASS_LISTS.fullmatch(base.lower()):
                text = source.read(name).decode("utf-8", "replace")
                listed = _names_in_yaml(text) if ".y" in base.lower() else text.splitlines()
                return {str(k): one.strip() for k, one in enumerate(listed) if one.strip()}
        except (BrokenPicture, ValueError, RecursionError):
            continue
    return {}


def _names_in_yaml(text: str) -> list[str]:
    """Return the list below `names:`, however it is written."""
    _, _, rest = text.partition("names:")
    if rest.strip()[:1] == "[":
        return [one.strip().strip("'\"") for one in rest.strip()[1:].partition("]")[0].split(",")]
    lines = (re.fullmatch(r"\s*(-|\d+:)\s*(.+)", line) for line in rest.splitlines()[1:])
    return [match[2].strip("'\" ") for match in takewhile(bool, lines) if match]


def _by_person(items: list[Item]) -> list[Item]:
    """Return items with whose they are, where each person has a folder: `anna/7.ann`."""
    if any(item.who is not None for item in items):
        return items
    paths = [PurePosixPath(item.id) for item in items]
    bases, people = {path.name for path in paths}, {path.parent.name for path in paths}
    texts = {(path.name, item.text) for path, item in zip(paths, items, strict=True)}
    is_shared = len(bases) < len(items) and len(texts) == len(bases) and items[0].text is not None
    if not is_shared or "" in people or any(split_in(one) for one in people):
        return items
    return [
        replace(item, id=path.name, who=path.parent.name)
        for path, item in zip(paths, items, strict=True)
    ]


def _item(source: PictureSource, name: str, by_name: dict[str, str]) -> Item | None:
    """Return what a file says; None if it cannot be read, or says something else."""
    key, ending = str(PurePosixPath(name).with_suffix("")), PurePosixPath(name).suffix.lower()
    try:
        content = source.read(name)
        check_size(SPREAD * len(content), name)
        if ending == ".ann":
            return Item(key, _spans_of_brat(content), text=_text_beside(source, key))
        if ending == ".tsv":
            return _item_of_webanno(PurePosixPath(key), content.decode("utf-8"))
        if ending == ".txt":
            picture = by_name.get(PurePosixPath(key).name, key)
            return Item(key, _tags_of_picture(content.decode("utf-8")), image=picture)
        if ending == ".xml":
            image, labels = _objects_of_voc(parse_xml(content, name))
        else:
            image, labels = _marks_of_tool(json.loads(content))
    except (BrokenPicture, ValueError, RecursionError, DatasetError):
        return None
    beside = by_name.get(PureWindowsPath(image).name, image) if image else key
    return Item(key, sorted(set(map(_unicode, labels))), image=_unicode(beside))


def _unicode(text: str) -> str:
    """Return text that can be written: JSON may hold half of a character."""
    return text.encode("utf-8", "replace").decode()


def _marks_of_tool(found: Any) -> tuple[str, list[str]]:
    """Return the picture that a file is about, and what is marked in it.

    LabelMe: `{"imagePath": "a.jpg", "flags": {"blurred": false}, "shapes": [{"label": "dog"}]}`;
    Darwin: `{"item": {"name": "a.jpg"}, "annotations": [{"name": "dog"}]}`; SuperAnnotate:
    `{"metadata": {"name": "a.jpg"}, "instances": [{"className": "dog"}], "tags": []}`; tagtog:
    `{"annotatable": {…}, "metas": {"m_1": {"value": true}}, "entities": [{"classId": "e_1"}]}`.
    """
    if not isinstance(found, dict):
        raise ValueError("no annotations")
    for image, key, label in (
        (found.get("imagePath", ""), "shapes", "label"),
        (_name_in(found, "item", "image"), "annotations", "name"),
        (_name_in(found, "metadata"), "instances", "className"),
        ("" if "annotatable" in found else None, "entities", "classId"),
    ):
        marks = found.get(key)
        if isinstance(image, str) and isinstance(marks, list):
            labels = {str(one[label]) for one in objects(marks) if one.get(label) is not None}
            return image, sorted(labels | _set_in(found))
    raise ValueError("no annotations of a known tool")


def _name_in(found: Mapping[str, Any], *keys: str) -> Any:
    about: Any = next((found[key] for key in keys if isinstance(found.get(key), dict)), {})
    return about.get("name", about.get("filename"))


def _set_in(found: Mapping[str, Any]) -> set[str]:
    """Return the tags, set flags and chosen classes of a whole item."""
    tags, flags, metas = (found.get(key) for key in ("tags", "flags", "metas"))
    told = metas.items() if isinstance(metas, dict) else ()
    chosen = [k for k, one in told if isinstance(one, dict) and one.get("value")]
    chosen += [k for k, is_set in flags.items() if is_set] if isinstance(flags, dict) else []
    chosen += [one for one in tags if isinstance(one, str)] if isinstance(tags, list) else []
    return set(map(str, chosen))


def _tags_of_picture(text: str) -> list[str]:
    """Return the classes of YOLO's boxes, or the tags between commas; ValueError for other text."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if all(map(BOX.fullmatch, lines)):
        return sorted({line.split()[0] for line in lines})
    tags = [tag.strip() for line in lines for tag in line.split(",")]
    if max(map(len, tags)) > MAX_TAG:
        raise ValueError("a text, not tags")
    return sorted({tag for tag in tags if tag})


def _item_of_webanno(path: PurePosixPath, text: str) -> Item:
    """Return one person's view of a document: `annotation/a.txt/anna.tsv`, as INCEpTION has it."""
    if not text.startswith(WEBANNO):
        raise ValueError("not WebAnno's")
    lines = text.splitlines()
    words = [line.removeprefix("#Text=") for line in lines if line.startswith("#Text=")]
    cells = [cell for line in lines if line[:1].isdigit() for cell in line.split("\t")[3:]]
    names = {re.sub(r"\[\d+\]$", "", one) for cell in cells for one in cell.split("|")}
    labels = sorted(names - {"", "_", "*"})
    return Item(path.parent.name or path.name, labels, text="\n".join(words), who=path.name)


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
