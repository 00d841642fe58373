"""Arrays in NumPy's files, judged by size and header before any is read; nothing is unpickled."""

import tokenize
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from core.formats.shared.archives import BAD_ARCHIVE
from core.formats.shared.findings import refuse
from core.formats.shared.limits import check_size

DAMAGED = "The file is damaged or cut off: write it again."
MAX_HEADER = 10_000
MAX_MEMBERS = 10_000
NPY = b"\x93NUMPY"
# What NumPy raises on a header that is not one: it is parsed as Python literals.
BAD_HEADER = (
    ValueError,
    KeyError,
    TypeError,
    SyntaxError,
    RecursionError,
    MemoryError,
    tokenize.TokenError,
)

Arrays = dict[str, npt.NDArray[Any]]


def load_arrays(path: Path, is_wanted: Callable[[str], bool]) -> Arrays:
    """Return the wanted arrays of an archive; nothing is ever unpickled."""
    try:
        with zipfile.ZipFile(path) as archive:
            members = [m for m in archive.infolist() if m.filename.endswith(".npy")]
            if len(members) > MAX_MEMBERS:
                rule = f"an npz has at most {MAX_MEMBERS:,} arrays"
                refuse(rule, "Save a display column as one array.", value=f"{len(members):,}")
            wanted = {n: m for m in members if is_wanted(n := m.filename.removesuffix(".npy"))}
            check_size(sum(member.file_size for member in wanted.values()))
            for member in members:
                _check_member(archive, member)
            return {name: _array(archive, member) for name, member in wanted.items()}
    except BAD_ARCHIVE as error:
        refuse(f"the npz archive cannot be read: {error}", DAMAGED)


def _check_member(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> None:
    """Judge one array by its header, so that nothing is allocated on a lie."""
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        refuse("arrays must be stored or deflated", "Save it with numpy.", column=member.filename)
    with archive.open(member) as stream:
        _check_header(stream, member.filename, member.file_size)


def _check_header(stream: IO[bytes], name: str, file_size: int) -> None:
    shape, dtype = _header(stream, name)
    if dtype.hasobject:
        rule = "pickled objects are refused: reading one can run any program"
        refuse(rule, "Save plain arrays.", column=name, value=str(dtype))
    n_bytes = dtype.itemsize
    for size in shape:
        n_bytes *= int(size)
    if n_bytes > file_size or min(shape, default=0) < 0:
        found = f"{shape} of {dtype} in {file_size:,} bytes"
        refuse("an array must fit its file", DAMAGED, column=name, value=found)


def _header(stream: IO[bytes], name: str) -> tuple[Any, np.dtype[Any]]:
    readers = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }
    try:
        read_header = readers[np.lib.format.read_magic(stream)]
        shape, _, dtype = read_header(stream, max_header_size=MAX_HEADER)
    except BAD_HEADER as error:
        refuse(f"not a NumPy array: {error}", DAMAGED, column=name)
    return shape, dtype


def _array(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> npt.NDArray[Any]:
    with archive.open(member) as stream:
        return _read_array(stream, member.filename)


def array_alone(path: Path) -> npt.NDArray[Any]:
    """Return the array of an `.npy` file."""
    size = path.stat().st_size
    check_size(size)
    with path.open("rb") as stream:
        _check_header(stream, path.name, size)
        stream.seek(0)
        return _read_array(stream, path.name)


def _read_array(stream: IO[bytes], name: str) -> npt.NDArray[Any]:
    try:
        array: npt.NDArray[Any] = np.lib.format.read_array(
            stream, allow_pickle=False, max_header_size=MAX_HEADER
        )
    except ValueError as error:
        refuse(f"an array is incomplete: {error}", DAMAGED, column=name)
    return array
