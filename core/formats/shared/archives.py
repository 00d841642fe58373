"""Gzip files, and zip files that hold one file: unpacked to a temporary folder, within limits.

The limit counts the bytes that really come out, whatever the archive declares, and stops there.
"""

import gzip
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from core.formats.shared.findings import refuse
from core.formats.shared.limits import check_size
from core.formats.shared.profiles import PICTURE

GZIP, ZIP = b"\x1f\x8b", b"PK\x03\x04"
CHUNK = 2**20
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
    """Give the one file inside, under its own name, in a folder that is removed afterwards."""
    with tempfile.TemporaryDirectory(prefix="plain-") as folder:
        try:
            target = _unpack(path, name, Path(folder))
        except BAD_ARCHIVE as error:
            refuse(f"the archive cannot be unpacked: {error}", DAMAGED)
        yield target


def _unpack(path: Path, name: str, folder: Path) -> Path:
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            member = _only_member(archive)
            target = folder / Path(member.filename).name
            with archive.open(member) as packed:
                _copy(packed, target)
        return target
    target = folder / (Path(name).stem or "file")
    with gzip.open(path) as packed:
        _copy(packed, target)
    return target


def _only_member(archive: zipfile.ZipFile) -> zipfile.ZipInfo:
    members = [
        member
        for member in archive.infolist()
        if not member.filename.endswith("/") and not member.filename.startswith("__MACOSX/")
    ]
    names = {member.filename for member in members}
    if "[Content_Types].xml" in names:
        fix = "Save the sheet as CSV (UTF-8)."
        refuse("Excel workbooks cannot be read", fix, value=", ".join(sorted(names)[:5]))
    if len(members) > 1:  # a table beside the pictures it names
        tables = [one for one in members if PICTURE.search(one.filename) is None]
        members = tables if len(tables) == 1 else members
    if len(members) != 1 or not Path(members[0].filename).name:
        fix = "Pack the data file alone, or with its pictures."
        rule = "a zip file must hold one file, or one table and the pictures it names"
        refuse(rule, fix, value=f"{len(members)} files")
    return members[0]


def _copy(packed: IO[bytes] | gzip.GzipFile, target: Path) -> None:
    n_bytes = 0
    with target.open("wb") as file:
        while chunk := packed.read(CHUNK):
            n_bytes += len(chunk)
            check_size(n_bytes, "the archive", "Unpack it yourself if you trust it.")
            file.write(chunk)
