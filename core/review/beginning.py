"""What looking at a large run takes seconds to begin with, kept in its folder by who trained it.

review_start.npz    what the run says before any decision
lens_start.npz      what its settings say, as the lens computes it

Both are what this version would compute: those of another version are not read.
"""

from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from core.data.dataset import CandidateDataset
from core.store import files

Matrix = npt.NDArray[np.float32]

LARGE = 2_000_000
"""Cells (n x L) from which on it is kept; of fewer it takes less than a second."""

_REVIEW, _LENS = "review_start.npz", "lens_start.npz"


class Beginning(NamedTuple):
    """What a run says before any decision."""

    Z: Matrix  # (n, L), propagated with no cell held
    start: Matrix  # (n, L), log-odds
    kept: npt.NDArray[np.bool_]  # (n, L), candidates that some reading of the data keeps


def is_large(dataset: CandidateDataset) -> bool:
    """Whether the beginning of its runs is kept."""
    return dataset.candidates.size > LARGE


def write_beginning(folder: Path, review: Beginning | None, lens: Matrix) -> None:
    """Keep both; where sources voted, decisions change the former, and there is none."""
    if review is not None:
        _write(folder / _REVIEW, **review._asdict())
    _write(folder / _LENS, confidences=lens)


def read_beginning(folder: Path) -> Beginning | None:
    """Return what a review of the run begins with, where it was kept."""
    found = _read(folder / _REVIEW)
    return None if found is None else Beginning(found["Z"], found["start"], found["kept"])


def read_lens_beginning(folder: Path) -> Matrix | None:
    """Return the confidences of all candidate cells with the run's settings, where kept."""
    found = _read(folder / _LENS)
    return None if found is None else np.asarray(found["confidences"], np.float32)


def _write(path: Path, **arrays: npt.NDArray[Any]) -> None:
    files.write_arrays(path, **arrays, version=np.array(version("plain-studio")))


def _read(path: Path) -> dict[str, npt.NDArray[Any]] | None:
    found = files.read_arrays(path) if path.exists() else None
    return found if found and str(found["version"]) == version("plain-studio") else None
