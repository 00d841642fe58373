"""The data benchmarks run on: files of a folder, or synthetic ones of any size."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from core.data.dataset import Features
from core.data.noise import uniform_candidates
from core.errors import DatasetError, Problem


@dataclass(frozen=True)
class BenchmarkSet:
    """One multi-label set; `candidates` only where the set comes with real ones."""

    name: str
    X: Features
    truth: npt.NDArray[np.uint8]
    candidates: npt.NDArray[np.uint8] | None

    def noisy(self, r: int | None, seed: int) -> npt.NDArray[np.uint8]:
        """Return the set's own candidates (r is None), or truth plus r false labels per row."""
        if r is None:
            assert self.candidates is not None
            return self.candidates
        return uniform_candidates(self.truth, r, seed)


def load_set(path: Path) -> BenchmarkSet:
    """Read an npz with X (or its CSR arrays), Y and perhaps Yp; or any file our readers take.

    What such a file calls true is the truth, and its candidates are its own where they hold more.
    Without truth its labels are taken for true, and get false ones added.
    """
    try:
        if path.suffix != ".npz":
            return _load_data(path)
        with np.load(path, allow_pickle=False) as z:
            if not {"Y"} < set(z) or not {"X", "X_data"} & set(z):
                return _load_data(path)
            if "X" in z:
                X = z["X"]
            else:
                csr = (z["X_data"], z["X_indices"], z["X_indptr"])
                X = sp.csr_array(csr, shape=tuple(z["X_shape"]))
            return BenchmarkSet(path.stem, X, z["Y"], z["Yp"] if "Yp" in z else None)
    except (OSError, KeyError, ValueError) as error:
        if isinstance(error, DatasetError):
            raise
        wrong = f"{path.name} is not a benchmark set: {error}"
        raise DatasetError([Problem(wrong, "It needs arrays X and Y.", fatal=True)]) from None


def _load_data(path: Path) -> BenchmarkSet:
    from core.formats import read

    data = read(path).dataset
    if not data.has_features:
        fix = "Methods learn from features: add columns of numbers, or encode texts first."
        raise DatasetError([Problem(f"{path.name} has no features", fix, fatal=True)])
    truth = data.candidates if data.truth is None else np.asarray(data.truth)
    own = None if np.array_equal(truth, data.candidates) else data.candidates
    return BenchmarkSet(path.stem, data.features, truth, own)


def find_sets(place: Path) -> dict[str, Path]:
    """Return the sets of a folder by name, or the one that a file is."""
    from core.formats import formats

    if place.is_file():
        return {place.stem: place}
    ends = tuple(end for one in formats().values() for end in one.EXTENSIONS)
    files = sorted(path for path in place.glob("*") if path.is_file())
    return {path.stem: path for path in files if path.name.lower().endswith(ends)}


def load_sets(folder: Path, names: list[str] | None = None) -> list[BenchmarkSet]:
    """Read the named sets of a folder, or all of them; a file is one set."""
    found = find_sets(folder)
    missing = [name for name in names or [] if name not in found]
    if missing or not found:
        wrong = f"no benchmark set {', '.join(missing)}" if missing else "no data file"
        have = f"Give a folder with such files by --data; here: {', '.join(found) or 'none'}."
        raise DatasetError([Problem(f"{wrong} in {folder}", have, fatal=True)])
    return [load_set(found[name]) for name in names or found]


def demo_set() -> BenchmarkSet:
    """Return the embedded data with its own, confusable candidates."""
    from core.data.demo import load_demo

    demo = load_demo()
    return BenchmarkSet("demo", demo.features, np.asarray(demo.truth), demo.candidates)


def clusters(n: int, d: int, n_labels: int, seed: int = 0) -> BenchmarkSet:
    """Make n instances around 200 centres that share labels, two per centre on average."""
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((200, d), dtype=np.float32)
    labels = (rng.random((200, n_labels)) < 2 / n_labels).astype(np.uint8)
    labels[np.arange(200), rng.integers(0, n_labels, 200)] = 1
    at = rng.integers(0, 200, n)
    X = rng.standard_normal((n, d), dtype=np.float32)
    X *= 0.5
    X += centres[at]
    return BenchmarkSet(f"{n}x{d}x{n_labels}", X, labels[at], None)


def mixtures(n: int, d: int, n_labels: int, seed: int = 0) -> BenchmarkSet:
    """Make n instances: sums of the prototypes of one to four labels, plus as much noise."""
    rng = np.random.default_rng(seed)
    prototypes = rng.standard_normal((n_labels, d), dtype=np.float32)
    frequency = np.arange(1, n_labels + 1) ** -0.5
    truth, many = np.zeros((n, n_labels), np.uint8), rng.integers(1, 5, n)
    for place in range(4):
        one = rng.choice(n_labels, n, p=frequency / frequency.sum())
        some = many > place
        truth[some, one[some]] = 1
    X = rng.standard_normal((n, d), dtype=np.float32)
    for at in range(0, n, 2**16):
        X[at : at + 2**16] += truth[at : at + 2**16].astype(np.float32) @ prototypes
    return BenchmarkSet(f"{n}x{d}x{n_labels} mixtures", X, truth, None)
