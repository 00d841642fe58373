"""The file a data set was read from: exports copy the user's cells from it, as they came.

A data set holds a float32 view of numbers; what a person wrote (`01000`, `1.50`, 17 digits) is only
in the file. It is opened again when something is written. A copy of it, compressed, is kept with
the data set in a workspace.
"""

import hashlib
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from core.errors import ExportError
from core.formats.shared.archives import is_packed, unpacked
from core.formats.shared.limits import limited
from core.formats.shared.mapping import ColumnMapping

if TYPE_CHECKING:
    import pyarrow as pa

    from core.data.dataset import CandidateDataset, Features

CHUNK = 2**22


@dataclass(frozen=True)
class Original:
    """A file of a table format, and how its columns were understood."""

    path: Path
    name: str  # the file's own
    format: str
    mapping: ColumnMapping
    stamp: tuple[int, int] | None = None  # size and time when it was read; of a user's own file
    sha256: str | None = None  # of the content; of a compressed copy
    beside: Path | None = None  # the user's own file of a copy, for what lies beside it

    @property
    def columns(self) -> tuple[str, ...]:
        return self.mapping.columns

    def holds(self, format: str, ending: str) -> bool:
        """Whether it is a file of this format and, of its endings, of this one."""
        return self.format == format and self.name.lower().endswith(ending)

    @contextmanager
    def opened(self) -> Iterator[Path]:
        """Give the file, unpacked where it is packed.

        Raises
        ------
        ExportError
            When it is not the file that was read any more.
        """
        if self.sha256 is not None:
            with tempfile.TemporaryDirectory(prefix="plain-") as folder:
                yield self._unpacked(Path(folder, "original"))
            return
        self._check_unchanged()
        if self.path.is_dir():
            with tempfile.TemporaryDirectory(prefix="plain-") as folder:
                yield self._format.packed(self.path, Path(folder, "original"))
            return
        if hasattr(self._format, "reads_zip"):
            yield self.path
            return
        with self.path.open("rb") as file:
            head = file.read(64)
        if is_packed(head):
            with limited(self.path), unpacked(self.path, self.name) as inner:
                yield inner
        else:
            yield self.path

    def digest(self) -> str:
        """Return the SHA-256 of the content."""
        with self.opened() as path, path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()

    def copy_to(self, target: Path) -> None:
        """Write the content, compressed."""
        import pyarrow as pa

        with (
            self.opened() as path,
            path.open("rb") as plain,
            pa.CompressedOutputStream(str(target), "zstd") as packed,
        ):
            while chunk := plain.read(CHUNK):
                packed.write(chunk)

    def batches(self, *, verbatim: bool = False) -> Iterator["pa.RecordBatch"]:
        """Give all columns of the file with the types it has; the text of a text file as it is.

        `verbatim` also leaves the ' before text that a spreadsheet would run.
        """
        with self.opened() as path:
            yield from self._format.cells(path, verbatim, self.mapping)

    def features(self) -> "Features | None":
        """Return the features with the precision of the file; none where it has no numbers."""
        read_again = getattr(self._format, "exact_features", None)
        if read_again is None and not self.columns:
            return None
        with limited(self.path):
            if read_again is None:
                from core.formats.shared.exact_features import table_features  # loads pyarrow

                return table_features(self.batches(), self.mapping)
            with self.opened() as path:
                return read_again(path, self.mapping)

    @property
    def _format(self) -> Any:
        from core.formats import formats

        return formats()[self.format]

    def _check_unchanged(self) -> None:
        if self.stamp != stamp_of(self.path):
            hint = "Read the file again, then export."
            raise ExportError("The file was changed since it was read.", str(self.path), hint)

    def _unpacked(self, target: Path) -> Path:
        import pyarrow as pa

        digest = hashlib.sha256()
        try:
            with (
                pa.OSFile(str(self.path)) as file,
                pa.CompressedInputStream(file, "zstd") as packed,
                target.open("wb") as plain,
            ):
                while chunk := packed.read(CHUNK):
                    digest.update(chunk)
                    plain.write(chunk)
        except (OSError, pa.ArrowException):  # then what came out is not what was put in
            pass
        if digest.hexdigest() != self.sha256:
            hint = "Load the file again: its copy in the workspace is damaged."
            raise ExportError("The columns of the file are lost.", f"{self.path}.", hint)
        return target


def stamp_of(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_size, found.st_mtime_ns


def names_are_beside(dataset: "CandidateDataset") -> bool:
    """Whether the file's cells are class numbers, and a file beside it had their names."""
    return dataset.original is not None and dataset.original.mapping.numbered_from is not None


def exact_features_of(dataset: "CandidateDataset") -> "Features":
    """Return the features as precise as their file has them; a data set's own are float32."""
    exact = None if dataset.original is None else dataset.original.features()
    if exact is None or exact.shape[0] < dataset.n_instances:
        return dataset.features
    exact = exact[: dataset.n_instances]  # it may be the beginning of the file
    if sp.issparse(exact):
        exact.resize(dataset.features.shape)  # trailing columns of zeros are not in every file
        exact = exact if sp.issparse(dataset.features) else exact.toarray()
    elif sp.issparse(dataset.features):
        exact = sp.csr_array(exact)
    return exact if _are_equal(exact, dataset.features) else dataset.features


def _are_equal(exact: "Features", features: "Features") -> bool:
    """Whether float32 features are these; not if they were encoded, or chosen otherwise."""
    if exact.shape != features.shape or sp.issparse(exact) != sp.issparse(features):
        return False
    with np.errstate(over="ignore"):
        difference = exact.astype(np.float32) != features
    return not (difference.nnz if sp.issparse(difference) else difference.any())


@contextmanager
def kept(dataset: "CandidateDataset") -> Iterator["CandidateDataset"]:
    """Give the data set with a copy of its file, which stays as it is whatever becomes of it."""
    if dataset.original is None:
        yield dataset
        return
    with tempfile.TemporaryDirectory(prefix="plain-") as folder:
        path, sha256 = Path(folder, "original.zst"), dataset.original.digest()
        dataset.original.copy_to(path)
        copy = replace(dataset.original, path=path, sha256=sha256, beside=dataset.original.path)
        yield dataset.read_from(copy)
