"""Gzip files, and zip files that hold one data file: unpacked to a temporary folder, within limits.

The limit counts the bytes that really come out, whatever the archive declares, and stops there.
"""

import gzip
import re
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import IO

from core.formats.shared.companions import SIDE_FILE, data_file_among, is_read_with
from core.formats.shared.findings import refuse
from core.formats.shared.limits import check_size

GZIP, ZIP = b"\x1f\x8b", b"PK\x03\x04"
CHUNK = 2**20
MAX_BESIDE = 200  # small files unpacked with the data
# What zipfile raises on an archive that is not one, is cut off, or uses what it does not know.
BAD_ARCHIVE = (
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    OSError,
    RuntimeError,
    UnicodeDecodeError,
)
DAMAGED = "Pack the file again: it is damaged, cut off, or encrypted."


def is_packed(head: bytes) -> bool:
    """Whether the file must be unpacked first; an npz is a zip file too, but read as it is."""
    if head[:4] == ZIP:
        name_length = int.from_bytes(head[26:28], "little")
        return not head[30 : 30 + name_length].endswith(b".npy")
    return head[:2] == GZIP


@contextmanager
def unpacked(path: Path, name: str) -> Iterator[Path]:
    """Give the data file inside, under its own name, in a folder that is removed afterwards.

    Lists of names and label XML lie beside it there, and all files of an export of ours; pictures
    stay packed.
    """
    with tempfile.TemporaryDirectory(prefix="plain-") as folder:
        try:
            target = _unpack(path, name, Path(folder))
        except BAD_ARCHIVE as error:
            refuse(f"the archive cannot be unpacked: {error}", DAMAGED)
        yield target


@contextmanager
def all_unpacked(path: Path, without: re.Pattern[str] | None = None) -> Iterator[Path]:
    """Give the folder with all files of a zip file, or some; it is removed afterwards."""
    with tempfile.TemporaryDirectory(prefix="plain-") as folder:
        try:
            with zipfile.ZipFile(path) as archive:
                _unpack_all(archive, Path(folder), without)
        except BAD_ARCHIVE as error:
            refuse(f"the archive cannot be unpacked: {error}", DAMAGED)
        yield Path(folder)


def _unpack(path: Path, name: str, folder: Path) -> Path:
    with path.open("rb") as file:
        is_gzip = file.read(len(GZIP)) == GZIP
    if is_gzip:
        target = folder / (Path(name).stem or "file")
        with gzip.open(path) as packed:
            _copy(packed, target)
        return target
    with zipfile.ZipFile(path) as archive:
        exported = _exported(archive.namelist())
        if exported is not None:
            _unpack_all(archive, folder)
            return folder / exported
        member = _data_member(archive)
        target = folder / Path(member.filename).name
        for one in (*_beside(archive, member), member):  # it goes before what is called like it
            with archive.open(one) as inner:
                _copy(inner, folder / Path(one.filename).name)
    return target


def _exported(names: list[str]) -> str | None:
    """Return the file or folder that an export of ours is, if these are its files."""
    sides = [name for name in names if name.endswith(SIDE_FILE)]
    about = sides[0].removesuffix(SIDE_FILE) if len(sides) == 1 else ""
    is_there = any(name == about or name.startswith(f"{about}/") for name in names)
    return about if about and is_there else None


def _unpack_all(
    archive: zipfile.ZipFile, folder: Path, without: re.Pattern[str] | None = None
) -> None:
    n_bytes = 0
    for member in archive.infolist():
        if without is not None and without.search(member.filename):
            continue
        name = PurePosixPath(member.filename)
        if name.is_absolute() or ".." in name.parts or PureWindowsPath(member.filename).drive:
            refuse("files of an archive must lie in it", "Pack it again.", value=str(name))
        target = folder / name
        (target if member.is_dir() else target.parent).mkdir(parents=True, exist_ok=True)
        if not member.is_dir():
            with archive.open(member) as packed:
                n_bytes = _copy(packed, target, n_bytes)


def _data_member(archive: zipfile.ZipFile) -> zipfile.ZipInfo:
    names = archive.namelist()
    if "[Content_Types].xml" in names or {"mimetype", "content.xml"} <= set(names):
        fix = "Save the sheet as CSV (UTF-8)."
        refuse("workbooks cannot be read", fix, value=", ".join(sorted(names)[:5]))
    found = data_file_among(names)
    if found is None or not Path(found).name:
        fix = "Pack the data file alone, or with its pictures and the names of its classes."
        rule = "a zip file must hold one data file, and what belongs to it"
        refuse(rule, fix, value=f"{len(names)} files: " + ", ".join(sorted(names)[:5]))
    return archive.getinfo(found)


def _beside(archive: zipfile.ZipFile, data: zipfile.ZipInfo) -> list[zipfile.ZipInfo]:
    """Return the small files that are read with the data."""
    return [
        one
        for one in archive.infolist()
        if one is not data
        and Path(one.filename).name
        and not one.is_dir()
        and is_read_with(one.filename, data.filename, one.file_size)
    ][:MAX_BESIDE]


def _copy(packed: IO[bytes] | gzip.GzipFile, target: Path, n_bytes: int = 0) -> int:
    """Write what comes out; return how many bytes did, with those of others before."""
    with target.open("wb") as file:
        while chunk := packed.read(CHUNK):
            n_bytes += len(chunk)
            check_size(n_bytes, "the archive", "Unpack it yourself if you trust it.")
            file.write(chunk)
    return n_bytes
