"""Decodes a MATLAB file into a plain npz: run as a program of its own, never imported by readers.

    python -I decoder.py FILE.mat OUT.npz BYTES PATTERN

scipy and HDF5 parse strangers' bytes in C, and a damaged file can crash them or make them allocate
without end. Here that ends a child with a memory limit, not the program. BYTES is what the wanted
variables may unpack to: those, and those in structs, whose names PATTERN matches. Only numbers,
logicals, text, sparse matrices and cells of texts, of class numbers (as a 0/1 table) or of tables
(beside each other) come out; objects and functions never do. Exit code 3 means refused, with the
reason as one line on standard error; 1 with a traceback is a bug of this program.
"""

import os
import re
import sys
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

BASE_MEMORY = 2**30  # what Python and the libraries map before they read anything
MAX_TEXTS = 20_000_000
MIN_SPARSE_WIDTH, MAX_SPARSE_DENSITY = 100, 0.1  # as `blocks` has it for tables
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
KINDS = ("double", "single", "logical", "sparse", "char", "cell", "struct", *INTEGERS)
UNSPOKEN = re.compile(r"[ _-]")  # in names, as `cells.plain_key` has it
DEPTH = 3  # of structs in structs
MAX_CLASSES = 100_000
HDF5 = b"\x89HDF\r\n\x1a\n"

Arrays = dict[str, npt.NDArray[Any]]


class RefusedError(Exception):
    """The file cannot be used, for the reason given."""


# What scipy and h5py raise on damaged files, and NumPy on the numbers in them.
BAD_FILE = (
    RefusedError,
    OSError,
    EOFError,
    ValueError,
    LookupError,
    ArithmeticError,
    RuntimeError,
    MemoryError,
    zlib.error,
)


class Budget:
    """Bytes that may still be unpacked."""

    def __init__(self, n_bytes: int) -> None:
        self.all = self.left = n_bytes

    def take(self, n_bytes: int) -> None:
        self.left -= n_bytes
        if self.left < 0:
            found, most = f"{self.all - self.left:,} bytes", f"{self.all:,}"
            raise RefusedError(f"it unpacks to {found} or more, and {most} are what fits in memory")


def main(source: str, target: str, limit: str, wanted: str) -> int:
    limit_memory(BASE_MEMORY + 3 * int(limit))
    try:
        convert(Path(source), Path(target), re.compile(wanted), Budget(int(limit)))
    except BAD_FILE as error:
        print(" ".join(str(error).split())[:300] or type(error).__name__, file=sys.stderr)
        return 3
    return 0


def convert(path: Path, target: Path, wanted: re.Pattern[str], budget: Budget) -> None:
    """Write the wanted variables that are there into an npz."""
    decode = decode_hdf5 if is_hdf5(path) else decode_v5
    arrays = decode(path, wanted, budget)
    with zipfile.ZipFile(target, "w") as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as stream:
                np.lib.format.write_array(stream, array, allow_pickle=False)


def limit_memory(wanted: int) -> None:
    """Bound memory, and processor time where the environment says how much."""
    try:
        import resource
    except ImportError:  # Windows: the sizes checked below still hold
        return
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    limit = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    resource.setrlimit(resource.RLIMIT_AS, (limit, hard))
    seconds = os.environ.get("PLAIN_DECODER_SECONDS")
    if seconds:
        resource.setrlimit(resource.RLIMIT_CPU, (int(float(seconds)), int(float(seconds)) + 1))
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))


def is_hdf5(path: Path) -> bool:
    with path.open("rb") as file:
        head = file.read(4096)
    return any(head[at : at + 8] == HDF5 for at in (0, 512, 1024, 2048))


def product(shape: Any) -> int:
    result = 1
    for size in shape:
        result *= int(size)
    return result


def add(arrays: Arrays, more: Arrays) -> None:
    """Keep what was there first under a name."""
    for name, array in more.items():
        arrays.setdefault(name, array)


def is_wanted(name: str, wanted: re.Pattern[str]) -> bool:
    return wanted.fullmatch(UNSPOKEN.sub("", name.casefold())) is not None


def decode_v5(path: Path, wanted: re.Pattern[str], budget: Budget) -> Arrays:
    """Return the wanted variables of a version 4, 5, 6 or 7 file."""
    listed = [one for one in by_scipy("whosmat", path) if one[2] in KINDS]
    usable = [one for one in listed if is_wanted(one[0], wanted) or one[2] == "struct"]
    # A sparse matrix stores far less than its shape; its real sizes are checked when it is there.
    for _, shape, kind in usable:
        budget.take(0 if kind in ("sparse", "struct") else 8 * product(shape))
    names = [name for name, _, _ in usable]
    values = by_scipy("loadmat", path, variable_names=names) if names else {}
    arrays: Arrays = {}
    for name in names:
        add(arrays, v5_variable(name, values[name], wanted, budget))
    return arrays


def v5_variable(
    name: str, value: Any, wanted: re.Pattern[str], budget: Budget, depth: int = 0
) -> Arrays:
    """Return a variable, or those of the fields of a struct that are wanted."""
    fields = getattr(getattr(value, "dtype", None), "names", None)
    if fields is None:
        return plain_arrays(name, value) if is_wanted(name, wanted) else {}
    if value.size != 1 or depth == DEPTH:
        return {}
    arrays: Arrays = {}
    for field in fields:
        inner = value[field].flat[0]
        is_struct = getattr(getattr(inner, "dtype", None), "names", None) is not None
        if is_struct or is_wanted(field, wanted):
            budget.take(getattr(inner, "nbytes", 0))
            add(arrays, v5_variable(field, inner, wanted, budget, depth + 1))
    return arrays


def by_scipy(function: str, path: Path, **options: Any) -> Any:
    """Call a reader of scipy, which also raises what looks like a bug on damaged files."""
    import scipy.io

    try:
        return getattr(scipy.io, function)(str(path), appendmat=False, **options)
    except (scipy.io.matlab.MatReadError, TypeError, AttributeError, NameError) as error:
        raise RefusedError(str(error)) from None


def plain_arrays(name: str, value: Any) -> Arrays:
    """Return a variable as arrays that npz holds: numbers, texts, or the parts of a CSR matrix."""
    import scipy.sparse as sp

    if sp.issparse(value):
        value = sp.csc_array(value)
        return sparse_arrays(name, value.data, value.indices, value.indptr, value.shape)
    array = np.asarray(value)
    if array.dtype.kind == "O":
        return cell_arrays(name, array.ravel(order="F").tolist())
    if array.dtype.kind == "U":
        return {name: np.asarray([str(text) for text in array.ravel()], dtype=np.str_)}
    if array.dtype.kind not in "biuf":
        raise RefusedError(f"{name} must be numbers, not {array.dtype}")
    return number_arrays(name, array)


def number_arrays(name: str, array: npt.NDArray[Any]) -> Arrays:
    """Return a table of numbers; one that is wide and mostly zero as the parts of a CSR matrix."""
    import scipy.sparse as sp

    is_wide = array.ndim == 2 and min(array.shape) >= MIN_SPARSE_WIDTH
    if not is_wide or np.count_nonzero(array) > MAX_SPARSE_DENSITY * array.size:
        return {name: array}
    columns = sp.csc_array(array)
    return sparse_arrays(name, columns.data, columns.indices, columns.indptr, columns.shape)


def cell_arrays(name: str, cells: list[Any]) -> Arrays:
    """Return a cell array: texts, tables of as many rows, or a list of class numbers per cell."""
    if len(cells) > MAX_TEXTS:
        raise RefusedError(f"a cell array of {len(cells):,} texts is too long")
    given = [np.asarray(cell) for cell in cells]
    filled = [one for one in given if one.size]
    if not filled or not all(one.dtype.kind in "biuf" for one in filled):
        return {name: texts_of(given)}
    rows = {one.shape[0] if one.ndim == 2 else 1 for one in given}
    if len(rows) == 1 and rows != {1} and any(one.shape[1] > 1 for one in given):
        return number_arrays(name, np.hstack(given))
    return {name: table_of_lists(name, given)}


def table_of_lists(name: str, cells: list[npt.NDArray[Any]]) -> npt.NDArray[np.uint8]:
    """Return the 0/1 table of the class numbers in every cell, counted from 1 unless 0 occurs."""
    lists = [np.ravel(one).astype(np.float64) for one in cells]
    numbers = np.concatenate(lists)
    if not (np.isfinite(numbers) & (numbers == np.floor(numbers)) & (numbers >= 0)).all():
        raise RefusedError(f"cells of {name} must hold one text per cell, or class numbers")
    first, largest = int(numbers.min(initial=1) > 0), int(numbers.max(initial=0))
    if largest > MAX_CLASSES or (largest + 1) * len(cells) > 8 * MAX_TEXTS:
        raise RefusedError(f"cells of {name} hold numbers that are too large for classes")
    table = np.zeros((len(cells), largest + 1 - first), np.uint8)
    for row, one in zip(table, lists, strict=True):
        row[one.astype(np.intp) - first] = 1
    return table


def texts_of(cells: list[npt.NDArray[Any]]) -> npt.NDArray[np.str_]:
    """Return the texts of a cell array; an empty cell is an empty text."""
    texts = []
    for array in cells:
        if array.size > 0 and (array.dtype.kind != "U" or array.size != 1):
            raise RefusedError("cell arrays must hold one text per cell")
        texts.append(str(array.ravel()[0]) if array.size else "")
    return np.asarray(texts, dtype=np.str_)


def sparse_arrays(name: str, data: Any, rows: Any, starts: Any, shape: Any) -> Arrays:
    """Check the parts of a CSC matrix by hand, then turn it into CSR."""
    import scipy.sparse as sp

    n_rows, n_columns = (int(size) for size in shape)
    starts, rows = np.asarray(starts, np.int64), np.asarray(rows, np.int64)
    is_sound = len(starts) == n_columns + 1 and starts[0] == 0 and (np.diff(starts) >= 0).all()
    if not is_sound or starts[-1] > min(len(rows), len(data)):
        raise RefusedError(f"the sparse matrix {name} has broken column starts")
    rows, data = rows[: starts[-1]], np.asarray(data)[: starts[-1]]
    if len(rows) and not 0 <= rows.min() <= rows.max() < n_rows:
        raise RefusedError(f"the sparse matrix {name} has rows out of range")
    if n_rows > MAX_TEXTS or data.dtype.kind not in "biuf":
        raise RefusedError(f"the sparse matrix {name} must be numbers of a sensible size")
    matrix = sp.csc_array((data, rows, starts), shape=(n_rows, n_columns)).tocsr()
    matrix.sum_duplicates()
    parts = (matrix.data, matrix.indices, matrix.indptr, np.asarray(matrix.shape, np.int64))
    keys = (f"{name}.{part}" for part in ("data", "indices", "indptr", "shape"))
    return dict(zip(keys, parts, strict=True))


def decode_hdf5(path: Path, wanted: re.Pattern[str], budget: Budget) -> Arrays:
    """Return the wanted variables of a version 7.3 file."""
    import h5py

    with h5py.File(path, "r") as file:
        return hdf5_members(file, file, wanted, budget)


def hdf5_members(
    file: Any, group: Any, wanted: re.Pattern[str], budget: Budget, depth: int = 0
) -> Arrays:
    """Return the wanted members of a file or a struct, those of structs among them."""
    import h5py

    arrays: Arrays = {}
    for name in group:
        # Only what is in this very file: a soft or external link may lead to any other.
        if name[:1] == "#" or not isinstance(group.get(name, getlink=True), h5py.HardLink):
            continue
        item = group[name]
        if isinstance(item, h5py.Group) and "MATLAB_sparse" not in item.attrs:
            inner = hdf5_members(file, item, wanted, budget, depth + 1) if depth < DEPTH else {}
            add(arrays, inner)
        elif is_wanted(name, wanted):
            arrays |= hdf5_variable(file, item, name, budget)
    return arrays


def hdf5_variable(file: Any, item: Any, name: str, budget: Budget) -> Arrays:
    import h5py

    if isinstance(item, h5py.Group):
        data, rows, starts = (hdf5_part(item, key, budget) for key in ("data", "ir", "jc"))
        shape = (int(item.attrs["MATLAB_sparse"]), len(starts) - 1)
        return sparse_arrays(name, data, rows, starts, shape)
    try:
        kind, dtype = item.attrs.get("MATLAB_class", b"double"), item.dtype
    except TypeError as error:  # of a type that h5py does not know
        raise RefusedError(f"{name}: {error}") from None
    if dtype == h5py.ref_dtype:
        references = hdf5_array(item, budget).ravel()
        if len(references) > MAX_TEXTS:
            raise RefusedError(f"a cell array of {len(references):,} texts is too long")
        return cell_arrays(name, [hdf5_cell(file[r], budget) for r in references])
    if kind == b"char":
        return {name: np.asarray([hdf5_text(item, budget)], dtype=np.str_)}
    if "MATLAB_empty" in item.attrs:
        return {}
    array = hdf5_array(item, budget)
    if array.dtype.kind not in "biuf" or array.ndim != 2:
        return {}
    return number_arrays(name, array.T)


def hdf5_part(group: Any, key: str, budget: Budget) -> npt.NDArray[Any]:
    """Return one list of a sparse matrix; an all-zero one has neither data nor rows."""
    return hdf5_array(group[key], budget).ravel() if key in group else np.empty(0)


def hdf5_array(item: Any, budget: Budget) -> npt.NDArray[Any]:
    """Return a dataset whose bytes are in this file and whose size is one it can have."""
    import h5py

    if not isinstance(item, h5py.Dataset) or item.is_virtual or item.external:
        raise RefusedError("data must lie in the file itself")
    budget.take(product(item.shape or ()) * item.dtype.itemsize)
    return np.asarray(item[()])


def hdf5_cell(item: Any, budget: Budget) -> npt.NDArray[Any]:
    """Return what is in a cell: a text, or numbers."""
    if getattr(item, "attrs", {}).get("MATLAB_class", b"char") == b"char":
        return np.asarray([hdf5_text(item, budget)])
    return np.empty(0) if "MATLAB_empty" in item.attrs else hdf5_array(item, budget).T


def hdf5_text(item: Any, budget: Budget) -> str:
    if "MATLAB_empty" in item.attrs:
        return ""
    codes = hdf5_array(item, budget)
    if codes.dtype.kind not in "iu":
        raise RefusedError("cell arrays must hold one text per cell")
    return codes.ravel().astype("<u2").tobytes().decode("utf-16-le", "replace")


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
