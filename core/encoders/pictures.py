"""Pictures as people bring them: opened safely, or broken with a reason; nothing is fetched.

A name leads to a file beside the data, in its folder or its zip file, and never out of it: no
absolute path, no `..`, no link that points elsewhere. What a header claims is judged before a pixel
is decoded. A picture that cannot be used is told and the rest goes on.
"""

import base64
import binascii
import io
import os
import re
import warnings
import zipfile
import zlib
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path, PurePosixPath, PureWindowsPath
from threading import Lock
from typing import Any, Protocol

import numpy as np
from PIL import Image, ImageOps

KINDS = ("PNG", "JPEG", "GIF", "WEBP", "BMP", "TIFF")  # Pillow knows others that start programs
MAX_BYTES = 2**28  # of one file
MAX_PIXELS = 2**27  # 134 million, 0.5 GB once decoded; cameras have up to 108 million
MAX_SIDE = 1024  # of what is kept of a picture; encoders look at a few hundred pixels
MAX_FILES = 1_000_000  # looked through for a name without its folder

_DATA_URL = re.compile(r"data:image/[\w.+-]+;base64,", re.IGNORECASE)
_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]+://", re.IGNORECASE)
_DAMAGED = (OSError, ValueError, SyntaxError, KeyError, TypeError, IndexError, EOFError)


class BrokenPicture(Exception):  # noqa: N818 - counted and told, not raised to anybody
    """Why a picture cannot be used, in a few words."""


class PictureSource(Protocol):
    """Where the names of pictures lead."""

    def read(self, name: str) -> bytes:
        """Return a file's content, or raise `BrokenPicture`."""


class FolderPictures:
    """Pictures in a folder and the folders below it."""

    def __init__(self, folder: Path) -> None:
        self._root = folder.resolve()

    def read(self, name: str) -> bytes:
        path = self._root.joinpath(*_inside(name).parts)
        if not path.exists():
            path = self._by_name.get(path.name, path)
        try:
            path = path.resolve()
            if not path.is_relative_to(self._root):
                raise BrokenPicture("leads out of the data's folder")
            if not path.is_file():
                raise BrokenPicture("there is no such file")
            if path.stat().st_size > MAX_BYTES:
                raise BrokenPicture(f"the file is larger than {MAX_BYTES >> 20} MB")
            return path.read_bytes()
        except (OSError, RuntimeError, ValueError):  # no right to read it, or a loop of links
            raise BrokenPicture("the file cannot be read") from None

    @cached_property
    def _by_name(self) -> dict[str, Path]:
        """Files by their names alone, where only one has it: tables often leave the folder out."""
        found: dict[str, Path | None] = {}
        for folder, _, names in os.walk(self._root):
            for name in names:
                found[name] = None if name in found else Path(folder, name)
            if len(found) > MAX_FILES:
                break
        return {name: path for name, path in found.items() if path is not None}


class ZipPictures:
    """Pictures in a zip file, read from it one by one: nothing is unpacked to the disk."""

    def __init__(self, path: Path) -> None:
        self._archive, self._lock = zipfile.ZipFile(path), Lock()

    def read(self, name: str) -> bytes:
        wanted = str(_inside(name))
        member = self._members.get(wanted) or self._members.get(PurePosixPath(wanted).name)
        if member is None:
            raise BrokenPicture("there is no such file")
        try:
            with self._lock, self._archive.open(member) as file:
                content = file.read(MAX_BYTES + 1)
        except (zipfile.BadZipFile, zlib.error, OSError, RuntimeError, NotImplementedError):
            raise BrokenPicture("the file cannot be unpacked") from None
        if len(content) > MAX_BYTES:
            raise BrokenPicture(f"the file is larger than {MAX_BYTES >> 20} MB")
        return content

    @cached_property
    def _members(self) -> dict[str, zipfile.ZipInfo]:
        """Members by every end of their path that no other has: folders around all are common."""
        found: dict[str, zipfile.ZipInfo | None] = {}
        for member in self._archive.infolist():
            parts = PurePosixPath(member.filename).parts
            for at in range(len(parts)):
                key = "/".join(parts[at:])
                is_known = at > 0 and key in found
                found[key] = None if is_known and found[key] is not member else member
        return {key: member for key, member in found.items() if member is not None}


class NoPictures:
    """For data that came without its folder: only pictures inside the cells can be seen."""

    def read(self, name: str) -> bytes:
        _inside(name)
        raise BrokenPicture("no folder came with the data")


def source_of(path: Path | None) -> PictureSource:
    """Return where the names in a data file, folder or zip file lead."""
    if path is None:
        return NoPictures()
    if path.is_dir():
        return FolderPictures(path)
    return ZipPictures(path) if zipfile.is_zipfile(path) else FolderPictures(path.parent)


def content_of(cell: Any, source: PictureSource) -> bytes:
    """Return the bytes that a cell holds or names.

    Raises
    ------
    BrokenPicture
        There are none.
    """
    if isinstance(cell, Mapping):  # as Parquet files of pictures often have it
        cell = cell.get("bytes") or cell.get("path")
    if isinstance(cell, bytes | bytearray):
        return bytes(cell)
    if not isinstance(cell, str) or not cell.strip():
        raise BrokenPicture("the cell is empty")
    if (start := _DATA_URL.match(cell)) is None:
        return source.read(cell.strip())
    if len(cell) > 4 * MAX_BYTES // 3:
        raise BrokenPicture(f"the picture is larger than {MAX_BYTES >> 20} MB")
    try:
        return base64.b64decode(cell[start.end() :])
    except (binascii.Error, ValueError):
        raise BrokenPicture("the data URL is damaged") from None


def opened(content: bytes, side: int = MAX_SIDE) -> Image.Image:
    """Return a picture upright, in colours, its longer side at most 1,024 pixels, or `side`.

    Raises
    ------
    BrokenPicture
        It is damaged, of no known kind, or its header claims more than there is room for.
    """
    try:
        with _header(content) as picture:
            picture.draft("RGB", (side, side))  # a JPEG is never decoded larger than needed
            return _reduced(picture, side)
    except Image.DecompressionBombError:
        raise BrokenPicture("its header claims too many pixels") from None
    except (*_DAMAGED, MemoryError, zlib.error):
        raise BrokenPicture("it is damaged or cut off") from None


def check_header(content: bytes) -> None:
    """Raise `BrokenPicture` for what the first bytes already show; no pixel is decoded."""
    _header(content).close()


def _header(content: bytes) -> Image.Image:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)
            picture = Image.open(io.BytesIO(content), formats=KINDS)
    except Image.DecompressionBombError:
        raise BrokenPicture("its header claims too many pixels") from None
    except (*_DAMAGED, zlib.error):
        is_svg = b"<svg" in content[:4096].lower()
        why = "an SVG drawing is not a picture here" if is_svg else "it is not a picture"
        raise BrokenPicture(f"{why}: PNG, JPEG, GIF, WebP, BMP and TIFF are") from None
    width, height = picture.size
    if width * height > MAX_PIXELS or not width * height:
        picture.close()
        raise BrokenPicture(f"its header claims {width:,} × {height:,} pixels")
    return picture


def _reduced(picture: Image.Image, side: int) -> Image.Image:
    if picture.mode.startswith(("I", "F")):  # 16 bits and more: spread over what can be shown
        values = np.asarray(picture, np.float32)
        low, high = float(np.nanmin(values)), float(np.nanmax(values))
        spread = np.nan_to_num((values - low) * (255 / max(high - low, 1e-9)))
        picture = Image.fromarray(spread.astype(np.uint8))
    elif picture.mode not in ("L", "RGB", "RGBA"):
        is_clear = "transparency" in picture.info or picture.mode in ("LA", "La", "PA", "RGBa")
        picture = picture.convert("RGBA" if is_clear else "RGB")
    picture.thumbnail((side, side), reducing_gap=2.0)
    picture = ImageOps.exif_transpose(picture)
    if picture.mode == "RGBA":  # clear parts are seen on white
        white = Image.new("RGBA", picture.size, "white")
        picture = Image.alpha_composite(white, picture)
    return picture.convert("RGB")


def _inside(name: str) -> PurePosixPath:
    """Return a name as a path that cannot lead up or out."""
    if _ADDRESS.match(name):
        raise BrokenPicture("is an address; nothing is fetched")
    path = PurePosixPath(name.replace("\\", "/"))
    outside = path.is_absolute() or PureWindowsPath(name).drive or ".." in path.parts
    if outside or "\0" in name or not path.parts:
        raise BrokenPicture("leads out of the data's folder")
    return path
