"""Small and large views of a workspace's pictures, each made once and kept by content.

The files that a data set names may be gone when it is reviewed: a zip file was uploaded, a disk
unplugged. So two JPEGs are kept of every picture, `pictures/ab/<sha256>-320.jpg` and `-1024.jpg`,
and beside a data set which row has which picture, and where they came from. Where the file is still
there and the same, it can be seen larger. No view carries metadata of the original.
"""

import hashlib
import io
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from threading import Lock
from typing import Any
from zipfile import BadZipFile

import numpy as np
from PIL import Image

from core.encoders.pictures import BrokenPicture, content_of, opened, source_of
from core.errors import StoreError
from core.store import files
from core.store.permissions import make_private_folder

SMALL, LARGE = 320, 1024  # a card on the screen; a look at details
CLOSE = 4096  # of the file itself, looked at through a lens
QUALITY = 85
NO_PICTURE = bytes(32)
UNREADABLE = (StoreError, KeyError, ValueError, IndexError, OSError, BadZipFile)
_decoding = Lock()  # a picture of many pixels takes half a gigabyte meanwhile: one at a time


class Thumbnails:
    """The pictures of one workspace folder."""

    def __init__(self, workspace: Path) -> None:
        self._workspace = workspace

    def has(self, key: bytes) -> bool:
        """Whether both views of this content are kept."""
        return all(self._path(key, side).exists() for side in (LARGE, SMALL))

    def add(self, key: bytes, picture: Image.Image) -> None:
        """Keep both views; the small one last, from the large."""
        for side in (LARGE, SMALL):
            path = self._path(key, side)
            view = picture.copy()
            view.thumbnail((side, side), reducing_gap=2.0)
            with files.disk_errors(path):
                make_private_folder(path.parent)
            with files.replacing(path) as file:
                file.write(_jpeg(view))

    def remember(
        self, fingerprint: str, keys: Mapping[str, Sequence[bytes]], data: Path | None = None
    ) -> None:
        """Note which row of a stored data set has which picture, by column, and where they lay."""
        tables = {
            column: np.frombuffer(b"".join(rows), np.uint8).reshape(-1, 32)
            for column, rows in keys.items()
        }
        if tables:
            path = self._rows_path(fingerprint)
            names = np.array(list(tables))
            numbered = {f"column_{at}": table for at, table in enumerate(tables.values())}
            numbered["data"] = np.frombuffer(str(data or "").encode(), np.uint8)
            files.write_arrays(path, names=names, **numbered)

    def rows(self, fingerprint: str) -> dict[str, files.Array]:
        """Return the keys of a data set's pictures by column; none where nothing was kept."""
        try:
            found = files.read_arrays(self._rows_path(fingerprint))
            return {str(name): found[f"column_{at}"] for at, name in enumerate(found["names"])}
        except (StoreError, KeyError):
            return {}

    def jpeg(self, key: bytes, side: int = SMALL) -> bytes | None:
        """Return a view of a picture, if it is kept."""
        try:
            return None if key == NO_PICTURE else self._path(key, side).read_bytes()
        except OSError:
            return None

    def close_view(self, fingerprint: str, column: str, row: int, cell: Any) -> bytes | None:
        """Return the file of a picture as a JPEG of up to 4,096 pixels.

        None where it is no longer there, not the same any more, or no larger than what is kept.
        """
        try:
            found = files.read_arrays(self._rows_path(fingerprint))
            key = found[f"column_{found['names'].tolist().index(column)}"][row].tobytes()
            data = found["data"].tobytes().decode()
            source = source_of(Path(data) if data and Path(data).exists() else None)
            content = content_of(cell, source)
            if hashlib.sha256(content).digest() != key:
                return None
            with _decoding:
                view = opened(content, CLOSE)
        except (*UNREADABLE, BrokenPicture):
            return None
        return _jpeg(view) if max(view.size) > LARGE else None

    def _path(self, key: bytes, side: int) -> Path:
        return self._workspace.joinpath(*picture_file(key, side))

    def _rows_path(self, fingerprint: str) -> Path:
        own = self._workspace / "datasets" / fingerprint
        copy = self._workspace / "cache" / "datasets" / fingerprint  # of another machine's
        return (copy if copy.is_dir() and not own.is_dir() else own) / "pictures.npz"


def picture_file(key: bytes, side: int) -> tuple[str, str]:
    """Return the folder, in a workspace, and the name of a view."""
    name = key.hex()
    return f"pictures/{name[:2]}", f"{name}-{side}.jpg"


def kept_views(folder: Path, column: str) -> Callable[[int], bytes | None]:
    """Return what gives the large view of a row's picture, for a data set stored in this folder."""
    thumbnails = Thumbnails(folder.parent.parent)
    keys = thumbnails.rows(folder.name).get(column, ())
    return lambda row: thumbnails.jpeg(keys[row].tobytes(), LARGE) if row < len(keys) else None


def _jpeg(picture: Image.Image) -> bytes:
    content = io.BytesIO()
    picture.save(content, "JPEG", quality=QUALITY)
    return content.getvalue()
