"""CSV, TSV, Parquet, JSON Lines and JSON: what is written is read back the same."""

from pathlib import Path

import format_cases as cases
import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tabular_cases import assert_same, each_kind

from core import formats
from core.data.dataset import CandidateDataset
from core.formats import ColumnMapping

SMALL_SETS = (
    "made-dense",
    "made-sparse",
    "birds",
    "emotions",
    "image",
    "mirflickr-5000",
    "medical",
)
odd = settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
NEARLY_NO_LABEL = CandidateDataset(
    features=np.eye(5, 2, dtype=np.float32),
    candidates=np.array([[1, 1], [0, 1], [1, 0], [0, 0], [1, 1]], np.uint8),
    label_names=["sea", "- "],  # "-" is a word for no label
    ids=list("01234"),
    feature_names=["x", "y"],
)


@each_kind
@cases.each_shared_file
def test_shared_data_comes_back_identical(shared_file: Path, kind: str, tmp_path: Path) -> None:
    if kind not in ("csv", "parquet") and shared_file.stem not in SMALL_SETS:
        pytest.skip("wide sets are tried in CSV and Parquet only, to save time")
    if shared_file.stem == "yeastmf" and kind != "parquet":
        pytest.skip("6,139 dense columns are tried in Parquet only, to save time")
    dataset = cases.few_rows(cases.shared(shared_file))
    path = formats.write(dataset, tmp_path / f"a.{kind}")
    result = formats.read(path)
    assert_same(result.dataset, dataset)
    assert (result.format, result.problems) == (kind, ())


@each_kind
@odd
@given(dataset=cases.datasets())
def test_odd_names_come_back_identical(
    dataset: CandidateDataset, kind: str, tmp_path: Path
) -> None:
    path = formats.write(dataset, tmp_path / f"a.{kind}", force=True)
    assert_same(formats.read(path).dataset, dataset)


@each_kind
@odd
@given(dataset=cases.datasets(), delimiter=st.sampled_from(["|", ";", ",", "#", " ", None]))
@example(dataset=NEARLY_NO_LABEL, delimiter="|")
def test_label_sets_come_back_identical(
    dataset: CandidateDataset, delimiter: str | None, kind: str, tmp_path: Path
) -> None:
    has_truth = dataset.truth is not None
    mapping = ColumnMapping(
        id="id",
        labels=("labels",),
        layout="delimited",
        delimiter=delimiter,
        label_names=dataset.label_names,
        features=("embedding",),
        feature_layout="list",
        truth=("truth",) if has_truth else (),
        truth_layout="delimited",
        columns=("embedding", "labels", "id", *(["truth"] if has_truth else [])),
    )
    path = formats.write(dataset, tmp_path / f"a.{kind}", mapping=mapping, force=True)
    read = formats.read(path, mapping).dataset
    np.testing.assert_array_equal(read.features, cases.dense(dataset.features))
    np.testing.assert_array_equal(read.candidates, dataset.candidates)
    assert (read.ids, read.label_names) == (dataset.ids, dataset.label_names)
    if has_truth:
        np.testing.assert_array_equal(read.truth, dataset.truth)


@each_kind
@odd
@given(dataset=cases.datasets())
def test_long_form_comes_back_identical(
    dataset: CandidateDataset, kind: str, tmp_path: Path
) -> None:
    features = tuple(f"x{j}" for j in range(dataset.n_features))
    mapping = ColumnMapping(
        id="id",
        labels=("label", "value"),
        layout="long",
        label_names=dataset.label_names,
        features=features,
        columns=("id", "label", "value", *features),
    )
    dataset = _without_truth(dataset)
    path = formats.write(dataset, tmp_path / f"a.{kind}", mapping=mapping, force=True)
    read = formats.read(path, mapping).dataset
    offered = [name for name in dataset.label_names if name]  # an empty cell is no label
    kept = [dataset.label_names.index(name) for name in offered]
    np.testing.assert_array_equal(read.candidates[:, kept], dataset.candidates[:, kept])
    np.testing.assert_array_equal(read.features, cases.dense(dataset.features))
    assert read.ids == dataset.ids


def _without_truth(dataset: CandidateDataset) -> CandidateDataset:
    return CandidateDataset(dataset.features, dataset.candidates, dataset.label_names, dataset.ids)


@each_kind
@odd
@given(cells=st.lists(st.text(st.characters(exclude_categories=("Cs",))), min_size=4, max_size=4))
@example(cells=["", "", "", "False"])
@example(cells=["yes", "", "no", "TRUE"])
def test_shown_text_comes_back_identical(cells: list[str], kind: str, tmp_path: Path) -> None:
    small = cases.small_dataset()
    shown = pd.DataFrame({"text": cells, "=note\n": ["'=a", "=1+1", "-5", "@x"]})
    dataset = CandidateDataset(small.features, small.candidates, display=shown)
    path = formats.write(dataset, tmp_path / f"a.{kind}", force=True)
    read = formats.read(path).dataset
    assert_same(read, dataset)
    display = read.display
    assert display is not None
    assert display["text"].tolist() == cells
    assert display["=note\n"].tolist() == ["'=a", "=1+1", "-5", "@x"]


def test_numbers_beside_features_do_not_become_features(tmp_path: Path) -> None:
    small = cases.small_dataset()
    dataset = CandidateDataset(
        small.features, small.candidates, display=pd.DataFrame({"price": [1.5, 2, 3, 4]})
    )
    read = formats.read(formats.write(dataset, tmp_path / "a.csv")).dataset
    assert_same(read, dataset)
    assert read.display is not None
    assert list(read.display.columns) == ["price"]
