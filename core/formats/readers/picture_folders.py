"""Folders and zip files of pictures: with a table that names them, or a folder per label.

Beside a table, pictures are only looked for by `core.encoders`. Without one the folder that a
picture lies in is its label, and a picture that lies in several has several: the same content is
the same instance.
"""

import hashlib
import os
import zipfile
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

import pyarrow as pa

from core.encoders.pictures import BrokenPicture, FolderPictures, PictureSource, ZipPictures
from core.formats.shared.findings import Findings, refuse
from core.formats.shared.limits import check_rows
from core.formats.shared.mapping import ColumnMapping, ReadResult
from core.formats.shared.profiles import PICTURE
from core.formats.shared.tabular import to_dataset

NAME = "pictures"
EXTENSIONS = ()
TABLES = (".csv", ".tsv", ".json", ".jsonl", ".ndjson", ".parquet", ".txt")


def sniff(head: bytes, path: Path) -> bool:
    """Whether this is a folder of pictures, not one that another format writes."""
    other = path / "dataset_info.json"
    return path.is_dir() and not other.exists() and bool(_pictures(_below(path)))


def is_picture_zip(path: Path) -> bool:
    """Whether a zip file holds pictures and nothing else that could be data."""
    try:
        with zipfile.ZipFile(path) as archive:
            names = _visible(archive.namelist())
    except (zipfile.BadZipFile, OSError, UnicodeDecodeError, NotImplementedError):
        return False
    return bool(names) and len(_pictures(names)) == len(names)


def table_in(folder: Path) -> Path | None:
    """Return the table that lies in a folder of pictures, if one does."""
    tables = [
        path
        for path in sorted(folder.iterdir())
        if path.suffix.lower() in TABLES and path.is_file() and not path.name.startswith(".")
    ]
    if len(tables) > 1 and _pictures(_below(folder)):
        found = ", ".join(path.name for path in tables[:10])
        refuse("a folder of pictures has one table", "Name the table instead.", value=found)
    return tables[0] if len(tables) == 1 else None


def read(path: Path, mapping: ColumnMapping | None = None) -> ReadResult:
    """Read a folder, or a zip file, of a folder per label."""
    if path.is_dir():
        source: PictureSource = FolderPictures(path)
        names = _pictures(_below(path))
    else:
        source = ZipPictures(path)
        with zipfile.ZipFile(path) as archive:
            names = _pictures(_visible(archive.namelist()))
    check_rows(len(names))
    labels: dict[str, set[str]] = {}  # of each picture, by the first of its names
    first: dict[bytes, str] = {}
    for name in sorted(names):
        parent = PurePosixPath(name).parent.name
        if not parent:
            fix = "Put each into a folder named like its label, or add a table."
            refuse("a picture must lie in a folder that is its label", fix, value=name)
        labels.setdefault(first.setdefault(_content_key(source, name), name), set()).add(parent)
    findings = Findings()
    columns = {
        "id": list(labels),
        "image": list(labels),
        "labels": list(map(sorted, labels.values())),
    }
    table = pa.table(columns)
    return ReadResult(
        to_dataset(table.to_batches(), _MAPPING, len(labels), findings),
        findings.problems(),
        _MAPPING,
        NAME,
    )


_MAPPING = ColumnMapping(
    id="id",
    labels=("labels",),
    layout="delimited",
    image="image",
    display=("image",),
    feature_layout="encoded",
    columns=("id", "image", "labels"),
    reasons={"labels": "the folder that a picture lies in", "feature_layout": "pictures encoded"},
)


def _content_key(source: PictureSource, name: str) -> bytes:
    try:
        return hashlib.sha256(source.read(name)).digest()
    except BrokenPicture:  # told when it is encoded
        return name.encode("utf-8", "surrogatepass")


def _below(folder: Path) -> list[str]:
    """Return the files below a folder by their paths in it; links to folders are not followed."""
    found = (
        Path(at, name).relative_to(folder).as_posix()
        for at, _, names in os.walk(folder)
        for name in names
    )
    return _visible(found)


def _visible(names: Iterable[str]) -> list[str]:
    return [
        name
        for name in names
        if not name.endswith("/")
        and not any(part.startswith((".", "__MACOSX")) for part in PurePosixPath(name).parts)
    ]


def _pictures(names: Iterable[str]) -> list[str]:
    return [name for name in names if PICTURE.search(name)]
