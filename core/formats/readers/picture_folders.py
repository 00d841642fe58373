"""Folders and zip files of pictures: with a table that names them, or a folder per label.

Beside a table, pictures are only looked for by `core.encoders`. Without one the folder that a
picture lies in is its label, and a picture that lies in several has several: the same content is
the same instance.
"""

import hashlib
import os
import re
import zipfile
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path, PurePosixPath

import pyarrow as pa

from core.data.dataset import CandidateDataset
from core.encoders.pictures import BrokenPicture, FolderPictures, PictureSource, ZipPictures
from core.errors import ExportError
from core.formats.shared.companions import data_file_among, is_note, visible
from core.formats.shared.findings import Findings, refuse
from core.formats.shared.limits import check_rows
from core.formats.shared.mapping import ColumnMapping, ReadResult, Resolution
from core.formats.shared.profiles import PICTURE
from core.formats.shared.tabular import to_dataset

NAME = "pictures"
EXTENSIONS = ()
MAX_KEPT = 2**31  # bytes of pictures that a workspace keeps a copy of
UNLABELLED = "none"
TABLES = (".csv", ".tsv", ".json", ".jsonl", ".ndjson", ".parquet", ".txt")


def sniff(head: bytes, path: Path) -> bool:
    """Whether this is a folder of pictures, not one that another format writes."""
    other = path / "dataset_info.json"
    return path.is_dir() and not other.exists() and bool(_pictures(files_below(path)))


def reads_zip(path: Path) -> bool:
    """Whether a zip file holds pictures and nothing else that could be data."""
    try:
        with zipfile.ZipFile(path) as archive:
            names = [name for name in visible(archive.namelist()) if not is_note(name)]
    except (zipfile.BadZipFile, OSError, UnicodeDecodeError, NotImplementedError):
        return False
    return bool(names) and len(_pictures(names)) == len(names)


def table_in(folder: Path) -> Path | None:
    """Return the table that lies in a folder, alone or beside its pictures, if one does."""
    tables = [
        name
        for name in sorted(files_below(folder))
        if name.lower().endswith(TABLES if "/" not in name else TABLES[:-1])
    ]
    found = data_file_among(tables)
    if found is None and tables:
        shown = ", ".join(tables[:10])
        refuse("a folder has one table", "Name the table instead.", value=shown)
    return None if found is None else folder / found


def read(path: Path, mapping: ColumnMapping | None = None) -> ReadResult:
    """Read a folder, or a zip file, of a folder per label."""
    if path.is_dir():
        source: PictureSource = FolderPictures(path)
        names = _pictures(files_below(path))
    else:
        source = ZipPictures(path)
        with zipfile.ZipFile(path) as archive:
            names = _pictures(visible(archive.namelist()))
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


def keeps_original(path: Path) -> bool:
    """Whether the pictures are few enough that a copy is kept, to be given back in an export."""
    if path.is_dir():
        names = _pictures(files_below(path))
        return sum((path / name).stat().st_size for name in names) <= MAX_KEPT
    return path.stat().st_size <= MAX_KEPT


def packed(folder: Path, target: Path) -> Path:
    """Write the pictures of a folder into a zip file, the same bytes every time."""
    source = FolderPictures(folder)
    with zipfile.ZipFile(target, "w") as archive:
        for name in sorted(_pictures(files_below(folder))):
            with suppress(BrokenPicture):
                archive.writestr(zipfile.ZipInfo(name), source.read(name))
    return target


def write(
    dataset: CandidateDataset,
    path: Path,
    mapping: ColumnMapping | None = None,
    resolution: Resolution | None = None,
) -> None:
    """Write a zip file with a folder per label: of the resolved labels, or else the candidates.

    A picture without a label lies in the folder `none`, which is read as no label.
    """
    original = dataset.original
    if original is None or original.format != NAME:
        hint = "Write a table instead: csv, parquet or jsonl."
        raise ExportError("These pictures did not come in folders that are kept.", "", hint)
    labels = dataset.candidates if resolution is None else resolution.labels
    folders = [_folder_name(label) for label in dataset.label_names]
    with original.opened() as given, zipfile.ZipFile(path, "w") as archive:
        source = ZipPictures(given)
        for row, name in enumerate(dataset.ids):
            try:
                content = source.read(name)
            except BrokenPicture:
                continue  # told when the data was loaded
            for folder in [folders[j] for j in labels[row].nonzero()[0]] or [UNLABELLED]:
                target = PurePosixPath(folder, PurePosixPath(name).name)
                archive.writestr(zipfile.ZipInfo(str(_free(archive, target, row))), content)


def _folder_name(label: str) -> str:
    name = re.sub(r"[/\\\x00]", "_", label).strip()
    return name if name.strip(".") else f"_{name}"


def _free(archive: zipfile.ZipFile, path: PurePosixPath, row: int) -> PurePosixPath:
    """Return the path, with a number where pictures of several folders have one name."""
    taken = str(path) in archive.NameToInfo
    return path.with_name(f"{path.stem}-{row}{path.suffix}") if taken else path


def _content_key(source: PictureSource, name: str) -> bytes:
    try:
        return hashlib.sha256(source.read(name)).digest()
    except BrokenPicture:  # told when it is encoded
        return name.encode("utf-8", "surrogatepass")


def files_below(folder: Path) -> list[str]:
    """Return the files below a folder by their paths in it; links to folders are not followed."""
    found = (
        Path(at, name).relative_to(folder).as_posix()
        for at, _, names in os.walk(folder)
        for name in names
    )
    return visible(found)


def _pictures(names: Iterable[str]) -> list[str]:
    return [name for name in names if PICTURE.search(name)]
