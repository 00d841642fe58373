"""Arrays of NumPy and MATLAB."""

import io
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from bombs.registry import MB, bomb


def _npz(path: Path, shapes: dict[str, tuple[Any, str]], filled: int = 0) -> None:
    """Write arrays of one byte repeated, which deflate to a thousandth."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, (shape, dtype) in shapes.items():
            head = io.BytesIO()
            facts = {"descr": dtype, "fortran_order": False, "shape": tuple(shape)}
            np.lib.format.write_array_header_1_0(head, facts)
            left = int(np.prod(shape, dtype=object)) * np.dtype(dtype).itemsize
            with archive.open(f"{name}.npy", "w", force_zip64=True) as stream:
                stream.write(head.getvalue())
                while left > 0:
                    stream.write(bytes([filled]) * min(left, MB))
                    left -= MB


@bomb("a.npz")
def npz_zeros(path: Path) -> None:
    _npz(path, {"X": ((100_000, 5_000), "<f4"), "Yp": ((100_000, 3), "|u1")})


@bomb("a.npz")
def npz_not_finite(path: Path) -> None:
    _npz(path, {"X": ((100_000, 4_000), "<f4"), "Yp": ((100_000, 3), "|u1")}, filled=255)


@bomb("a.npz")
def npz_bad_labels(path: Path) -> None:
    _npz(path, {"X": ((20_000, 3), "<f4"), "Yp": ((20_000, 50_000), "|u1")}, filled=2)


@bomb("a.npz")
def npz_wide_labels(path: Path) -> None:
    _npz(path, {"X": ((20_000, 3), "<f4"), "Yp": ((20_000, 50_000), "|u1")}, filled=1)


@bomb("a.npz")
def npz_float_labels(path: Path) -> None:
    _npz(path, {"X": ((20_000, 3), "<f4"), "Yp": ((20_000, 13_000), "<f8")})


@bomb("a.npz")
def npz_names(path: Path) -> None:
    shapes = {"X": ((100, 3), "<f4"), "Yp": ((100, 3), "|u1"), "ids": ((100,), "<U2000000")}
    _npz(path, shapes)


@bomb("a.npz")
def npz_rows(path: Path) -> None:
    _npz(path, {"X": ((300_000_000, 1), "<f4"), "Yp": ((300_000_000, 1), "|u1")})


@bomb("a.npz")
def npz_double(path: Path) -> None:
    _npz(path, {"X": ((100_000, 2_500), "<f8"), "Yp": ((100_000, 3), "|u1")})


@bomb("a.npz")
def npz_claims(path: Path) -> None:
    """A header that claims more than follows."""
    with zipfile.ZipFile(path, "w") as archive:
        head = io.BytesIO()
        facts = {"descr": "<f4", "fortran_order": False, "shape": (2**40, 2**20)}
        np.lib.format.write_array_header_1_0(head, facts)
        archive.writestr("X.npy", head.getvalue())


@bomb("a.npz")
def npz_csr_shape(path: Path) -> None:
    empty = np.empty(0, np.float32)
    np.savez(
        path, X_data=empty, X_indices=empty.astype(int), X_indptr=np.zeros(2, int),
        X_shape=np.array([2**62, 10**6]), Yp=np.ones((3, 1)),
    )  # fmt: skip


@bomb("a.npz")
def npz_csr_rows(path: Path) -> None:
    shapes = {"X_data": ((0,), "<f4"), "X_indices": ((0,), "<i4")}
    _npz(path, {**shapes, "X_indptr": ((100_000_001,), "<i8"), "Yp": ((100_000_000, 1), "|u1")})
    with zipfile.ZipFile(path, "a") as archive:
        stream = io.BytesIO()
        np.save(stream, np.array([100_000_000, 1_000_000]))
        archive.writestr("X_shape.npy", stream.getvalue())


@bomb("a.npz")
def npz_many_members(path: Path) -> None:
    stream = io.BytesIO()
    np.save(stream, np.empty(0))
    with zipfile.ZipFile(path, "w") as archive:
        for i in range(40_000):
            archive.writestr(f"display_{i}.npy", stream.getvalue())


def _mat(path: Path, **variables: Any) -> None:
    import scipy.io

    scipy.io.savemat(path, variables, do_compression=True)


@bomb("a.mat")
def mat_zeros(path: Path) -> None:
    _mat(path, data=np.zeros((20_000, 6_000)), partial_labels=np.ones((3, 20_000), np.uint8))


@bomb("a.mat")
def mat_many_zeros(path: Path) -> None:
    """Ten variables of a quarter of a gigabyte each."""
    names = ("data", "train_data", "features", "fea", "X", "target", "labels", "Y", "Yp", "targets")
    one = np.zeros((8_000, 4_000))
    _mat(path, **dict.fromkeys(names, one))


@bomb("a.mat")
def mat_not_wanted(path: Path) -> None:
    data = np.random.default_rng(0).random((30, 4))
    _mat(path, a=np.zeros((20_000, 6_000)), data=data, partial_labels=np.eye(3)[:, [0, 1, 2] * 10])


@bomb("a.mat")
def mat_sparse_rows(path: Path) -> None:
    import scipy.sparse as sp

    wide = sp.csc_array((2_000_000_000, 3))
    _mat(path, data=wide, partial_labels=np.ones((2, 3)))


@bomb("a.mat")
def mat_sparse_labels(path: Path) -> None:
    import scipy.sparse as sp

    labels = sp.csc_array((np.ones(3), ([0, 1, 2], [0, 1, 2])), shape=(99_999, 10_000))
    _mat(path, data=np.eye(10_000, 5), partial_labels=labels)


@bomb("a.mat")
def mat_cells(path: Path) -> None:
    cells = np.empty((500_000, 1), object)
    cells[:] = "a"
    _mat(path, data=np.eye(5), partial_labels=np.eye(5), ids=cells)


@bomb("a.mat")
def mat_text(path: Path) -> None:
    """A char table of as many short texts as its first size says."""
    texts = np.full((1_000, 100_000), "a", "U1")
    _mat(path, data=np.eye(5), partial_labels=np.eye(5), label_names=texts)


@bomb("a.mat")
def mat_deep_cells(path: Path) -> None:
    cell = np.empty((1, 1), object)
    cell[0, 0] = "a"
    for _ in range(300):
        outer = np.empty((1, 1), object)
        outer[0, 0] = cell
        cell = outer
    _mat(path, data=np.eye(5), partial_labels=np.eye(5), ids=cell)


def _v73(path: Path, fill: Callable[[Any], None]) -> None:
    import h5py

    with h5py.File(path, "w", userblock_size=512) as file:
        fill(file)
    with path.open("r+b") as raw:
        raw.write(b"MATLAB 7.3 MAT-file".ljust(124) + b"\0\2IM")


@bomb("a.mat")
def v73_claims(path: Path) -> None:
    """Chunks that were never written are zeros: a terabyte costs nothing on the disk."""

    def fill(file: Any) -> None:
        file.create_dataset("data", (10**6, 10**6), "f4", chunks=(1000, 1000))
        file.create_dataset("partial_labels", (3, 10**6), "u1", chunks=(3, 1000))

    _v73(path, fill)


@bomb("a.mat")
def v73_zeros(path: Path) -> None:
    def fill(file: Any) -> None:
        file.create_dataset("data", (6_000, 60_000), "f4", chunks=(100, 100))
        file.create_dataset("partial_labels", (60_000, 3), "u1", chunks=(1000, 3))

    _v73(path, fill)


@bomb("a.mat")
def v73_gzip(path: Path) -> None:
    def fill(file: Any) -> None:
        zeros = np.zeros((3_000, 50_000))
        file.create_dataset("data", data=zeros, chunks=(3_000, 5_000), compression="gzip")
        file["partial_labels"] = np.ones((50_000, 3), "u1")

    _v73(path, fill)


@bomb("a.mat")
def v73_references(path: Path) -> None:
    """A million references to one text of a megabyte."""

    def fill(file: Any) -> None:
        import h5py

        text = file.create_dataset("#refs#/a", data=np.full((MB, 1), 65, "u2"), compression="gzip")
        text.attrs["MATLAB_class"] = np.bytes_("char")
        cells = file.create_dataset("label_names", (1, 100_000), h5py.ref_dtype)
        cells[:] = text.ref
        cells.attrs["MATLAB_class"] = np.bytes_("cell")
        file["data"], file["partial_labels"] = np.eye(5), np.eye(5)

    _v73(path, fill)


@bomb("a.mat")
def v73_sparse(path: Path) -> None:
    def fill(file: Any) -> None:
        group = file.create_group("data")
        group.attrs["MATLAB_class"] = np.bytes_("double")
        group.attrs["MATLAB_sparse"] = np.uint64(2**40)
        group.create_dataset("jc", (10**8,), "u8", chunks=(10**6,), compression="gzip")
        file["partial_labels"] = np.eye(5)

    _v73(path, fill)
