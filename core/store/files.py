"""Files of a workspace: written whole or not at all, and never a pickle.

A file is written under a temporary name in the same folder, flushed to the disk and renamed: after
a crash the old file or the new one is there, never a part. Readers say which file is damaged.
"""

import errno
import io
import json
import os
import shutil
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from time import time
from typing import IO, Any
from uuid import uuid4

import numpy as np
import numpy.typing as npt

from core.errors import StoreError, StoreUnavailable
from core.failpoints import failpoint
from core.paths import sync_folder
from core.store.permissions import open_private

Array = npt.NDArray[Any]

# numpy gives no number when it could write only a part of an array.
_NO_SPACE = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, None}


@contextmanager
def replacing(
    path: Path, *, is_private: bool = True, check: Callable[[], object] = lambda: None
) -> Iterator[IO[bytes]]:
    """Give a file to write that takes the place of `path` when the block ends well.

    Only its owner may read it, unless it is told not to be private. `check` may raise to keep
    what is there, as late as possible.
    """
    temporary = path.with_name(f".{path.name}.{uuid4().hex[:8]}.tmp")
    try:
        with disk_errors(path):
            with open_private(temporary) if is_private else open(temporary, "xb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            check()
            failpoint("files.before_rename")
            os.replace(temporary, path)
            failpoint("files.renamed")
            sync_folder(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def disk_errors(path: Path) -> Iterator[None]:
    """Raise as `StoreError` that a file or folder cannot be written."""
    try:
        yield
    except OSError as error:
        if error.errno in _NO_SPACE:
            hint = "Free some space and try again. What was stored before is unharmed."
            raise StoreUnavailable("The disk is full.", f"{path}: {error}", hint) from error
        hint = "Check that the folder exists and is yours to write."
        detail = f"{path}: {error.strerror}"
        raise StoreUnavailable("This cannot be written.", detail, hint) from error


def write_all(file: io.FileIO, content: bytes) -> None:
    """Write to an unbuffered file; on a disk that gets full, a part is written first."""
    rest = memoryview(content)
    while rest:
        rest = rest[file.write(rest) :]


def remove_leftovers(folder: Path, older_than: float = 0.0) -> None:
    """Remove what killed writers left under temporary names, if older than so many seconds.

    Only with an age where others may be writing into the same folder.
    """
    for path in folder.glob(".*.tmp*"):
        with suppress(OSError):
            if time() - path.stat().st_mtime >= older_than:
                shutil.rmtree(path) if path.is_dir() else path.unlink()


def write_array(path: Path, array: Array) -> None:
    """Write one array as .npy."""
    with replacing(path) as file:
        np.save(file, array, allow_pickle=False)


def write_arrays(path: Path, /, **arrays: Array) -> None:
    """Write named arrays as .npz, uncompressed."""
    with replacing(path) as file:
        save_arrays(file, arrays)


def save_arrays(file: IO[bytes], arrays: dict[str, Array]) -> None:
    """Write named arrays as .npz, uncompressed, into an open file."""
    with zipfile.ZipFile(file, "w") as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.asanyarray(array), allow_pickle=False)


def read_array(path: Path, *, mmap: bool = False) -> Array:
    """Read a .npy file, or map it into memory read-only."""
    with _damage_errors(path):
        array: Array = np.load(path, mmap_mode="r" if mmap else None, allow_pickle=False)
        if not isinstance(array, np.ndarray):
            raise ValueError("it holds several arrays")
    return array


def read_arrays(path: Path) -> dict[str, Array]:
    """Read all arrays of a .npz file; its checksums are verified."""
    with _damage_errors(path), np.load(path, allow_pickle=False) as archive:
        return {name: archive[name] for name in archive.files}


def write_json(path: Path, value: Any) -> None:
    """Write plain values as JSON."""
    with replacing(path) as file:
        file.write(json.dumps(value).encode())


def write_once(path: Path, content: bytes) -> None:
    """Write a small file, unless another process was first: its file stays."""
    made = path.with_name(f".{path.name}.{uuid4().hex[:8]}.tmp")
    try:
        with replacing(made) as file:
            file.write(content)
        with disk_errors(path):
            try:
                os.link(made, path)  # unlike a rename, never over what is there
            except FileExistsError:
                pass
            except OSError:  # a disk without links
                os.replace(made, path)
    finally:
        made.unlink(missing_ok=True)


def read_json(path: Path) -> Any:
    """Read what `write_json` wrote."""
    with _damage_errors(path):
        return json.loads(path.read_bytes())


@contextmanager
def _damage_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError as error:
        raise damaged(path, "it is missing") from error
    except PermissionError as error:
        hint = "Check that the file is yours to read."
        raise StoreError("This file cannot be read.", str(path), hint) from error
    except _BAD_BYTES as error:
        raise damaged(path, str(error)) from error


# What NumPy, zipfile and json raise on damaged bytes; NumPy parses headers as Python literals.
_BAD_BYTES = (
    *(OSError, EOFError, ValueError, LookupError, RuntimeError, MemoryError, OverflowError),
    *(TypeError, SyntaxError, tokenize.TokenError, struct.error, zlib.error, zipfile.BadZipFile),
)


def damaged(path: Path, why: str) -> StoreError:
    """Return the error that says that a file of the workspace is not what was written."""
    hint = "Load the data again, or repeat the run this file belongs to."
    return StoreError("A file of the workspace is damaged.", f"{path}: {why}.", hint)
