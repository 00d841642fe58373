"""What the format tests share: real and made data, odd data sets, and what "identical" means."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import strategies as st

from core.data.dataset import CandidateDataset
from core.formats.readers import npz
from core.review import Resolution

DATA = Path(__file__).parents[2].parent / "shared" / "data"
DATA_FILES = sorted(DATA.glob("*.npz")) if DATA.is_dir() else []

MADE = (Path("made-dense"), Path("made-sparse"))  # all there is in a clean clone
each_shared_file = pytest.mark.parametrize(
    "shared_file", [pytest.param(path, id=path.stem) for path in (*MADE, *DATA_FILES)]
)


def resolution_of(dataset: CandidateDataset, seed: int = 0) -> Resolution:
    """Resolve at random: about half of the candidates are kept."""
    confidences = np.random.default_rng(seed).random(dataset.candidates.shape, dtype=np.float32)
    confidences *= dataset.candidates
    labels = (confidences > 0.5).astype(np.uint8)
    reasons = (dataset.candidates * (2 - labels)).astype(np.uint8)
    texts = ("not a candidate", "confident", "below threshold")
    return Resolution(labels, confidences, reasons, texts, 1 - confidences)


def dense(features: Any) -> Any:
    return features.toarray() if sp.issparse(features) else features


def assert_same(read: CandidateDataset, written: CandidateDataset) -> None:
    """Features to float32, candidates, ids, label names and truth are the same."""
    assert read.label_names == written.label_names
    assert read.ids == written.ids
    assert sp.issparse(read.features) == sp.issparse(written.features)
    if sp.issparse(written.features):
        assert read.features.shape == written.features.shape
        assert (read.features != written.features).nnz == 0
    else:
        np.testing.assert_array_equal(read.features, written.features)
    np.testing.assert_array_equal(read.candidates, written.candidates)
    assert (read.truth is None) == (written.truth is None)
    if written.truth is not None:
        np.testing.assert_array_equal(read.truth, written.truth)


def assert_same_display(read: CandidateDataset, written: CandidateDataset) -> None:
    assert (read.display is None) == (written.display is None)
    if written.display is not None:
        assert read.display is not None
        assert read.display.to_dict("list") == written.display.to_dict("list")


def assert_round_trip(module: Any, dataset: CandidateDataset, path: Path) -> CandidateDataset:
    module.write(dataset, path)
    read: CandidateDataset = module.read(path).dataset
    assert_same(read, dataset)
    return read


def shared(path: Path) -> CandidateDataset:
    return made(sparse=path == MADE[1]) if path in MADE else npz.read(path).dataset


def few_rows(dataset: CandidateDataset, max_cells: int = 1_500_000) -> CandidateDataset:
    """Return the first rows of a large set, with all of its columns."""
    n = max_cells // dataset.n_features
    if dataset.n_instances <= n:
        return dataset
    truth = None if dataset.truth is None else dataset.truth[:n]
    names = dataset.label_names, dataset.ids[:n], dataset.feature_names
    return CandidateDataset(dataset.features[:n], dataset.candidates[:n], *names, truth)


def made(sparse: bool) -> CandidateDataset:
    """Return data as the benchmark sets are: many numbers, true labels and false ones."""
    rng = np.random.default_rng(0)
    n, d, n_labels = (120, 300, 20) if sparse else (90, 40, 7)
    features = rng.standard_normal((n, d)).astype(np.float32)
    if sparse:
        features = sp.csr_array(np.where(rng.random((n, d)) < 0.05, np.abs(features), 0))
    truth = (rng.random((n, n_labels)) < 0.2).astype(np.uint8)
    truth[np.arange(n), np.arange(n) % n_labels] = 1
    candidates = truth | (rng.random(truth.shape) < 0.2)
    return CandidateDataset(features, candidates.astype(np.uint8), truth=truth)


def small_dataset(
    sparse: bool = False, truth: bool = True, display: bool = True
) -> CandidateDataset:
    """Four instances with awkward names, an empty set and an empty row."""
    features = np.array([[0.1, 0, -2.5], [0, 0, 0], [1e-30, 3, 1], [7, 0, 1e20]], np.float32)
    candidates = np.array([[1, 1], [0, 0], [0, 1], [1, 0]], np.uint8)
    return CandidateDataset(
        features=sp.csr_array(features) if sparse else features,
        candidates=candidates,
        truth=candidates * np.array([1, 0], np.uint8) if truth else None,
        label_names=["sea, 'deep'", 'a "b" {c}\n%d'],
        ids=["a", "ü 1", "=x", "?"],
        feature_names=["f one", "zwei", "t,hree"],
        display=pd.DataFrame({"text": ["x y", "", "line\nbreak", "'q'"]}) if display else None,
    )


ODD = [
    "",
    " ",
    "a b",
    "=1",
    "a,b",
    "x\ny",
    "'q'",
    '"',
    "\\",
    "%",
    "{}",
    "?",
    "ü",
    "日本",
    "😀",
    "\t",
    "|",
]


def names(alphabet: Any, n: int) -> st.SearchStrategy[list[str]]:
    name = st.one_of(st.sampled_from(ODD), st.text(alphabet, max_size=8))
    return st.lists(name, min_size=n, max_size=n, unique=True)


@st.composite
def datasets(draw: st.DrawFn, controls: bool = True) -> CandidateDataset:
    """Data sets with odd names, empty label sets and rows, one label, sparse or dense."""
    categories = ("Cs",) if controls else ("Cs", "Cc", "Cn")
    text = st.characters(exclude_categories=categories, exclude_characters="\0")
    n, d, n_labels = draw(st.integers(3, 6)), draw(st.integers(1, 4)), draw(st.integers(1, 3))
    columns = draw(names(text, d + n_labels))
    value = st.one_of(st.just(0.0), st.floats(width=32, allow_nan=False, allow_infinity=False))
    cells = draw(st.lists(value, min_size=n * d, max_size=n * d))
    features = np.array(cells, np.float32).reshape(n, d)
    bits = st.lists(st.booleans(), min_size=n * n_labels, max_size=n * n_labels)
    candidates = np.array(draw(bits), np.uint8).reshape(n, n_labels)
    truth = candidates * np.array(draw(bits), np.uint8).reshape(n, n_labels)
    return CandidateDataset(
        features=sp.csr_array(features) if draw(st.booleans()) else features,
        candidates=candidates,
        truth=truth if draw(st.booleans()) else None,
        label_names=columns[:n_labels],
        feature_names=columns[n_labels:],
        ids=draw(st.one_of(st.just([]), names(text, n))),
    )
