"""Crowds, sounds and hospitals: what is a label, who is a rater, and what is asked about."""

import random
from pathlib import Path
from typing import Any

import layouts
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from crowd_layouts import instrument_relevance, instruments_heard
from scipy.io import savemat

from core import formats

TRUE = np.arange(240).reshape(60, 4) % 3 == 0
OFFERED = TRUE | (np.arange(240).reshape(60, 4) % 5 == 0)


def test_labels_under_names_of_their_own_are_asked_about(tmp_path: Path) -> None:
    found = formats.read(instrument_relevance(random.Random(0)).write(tmp_path))
    (asked,) = [one for one in found.problems if one.message.startswith("what is one row?")]
    assert "'instrument'" in asked.message
    assert "--row item" in asked.fix


def test_who_hears_an_instrument_said_nothing_of_others(tmp_path: Path) -> None:
    data = formats.read(instruments_heard(random.Random(0)).write(tmp_path)).dataset
    assert data.votes is not None
    asked = [sum(map(len, data.votes.offered_by(0, j))) > 0 for j in range(data.n_labels)]
    assert sum(asked) == 2


def test_a_long_list_beside_the_data_names_no_classes(tmp_path: Path) -> None:
    (tmp_path / "all_tags.txt").write_text("".join(f"{k} sky sea\n" for k in range(50)))
    rows: list[list[Any]] = [["item_id", "annotator_id", "text", "label"]]
    for k, item in enumerate(layouts.crowd()):
        rows += [[item.id, who, item.text, (k + j) % 2] for j, who in enumerate(item.answers)]
    path = tmp_path / "irony.csv"
    path.write_text(layouts.table(rows))
    assert formats.read(path).dataset.label_names == ("0", "1")


def test_rows_of_minus_one_were_not_looked_at(tmp_path: Path) -> None:
    rows: list[list[Any]] = [["id", "comment_text", "toxic", "threat", "insult"]]
    for k in range(40):
        said = [-1] * 3 if k % 3 == 0 else [k % 2, k % 5 % 2, 1]
        rows.append([f"c{k}", f"the comment number {k} on a page", *said])
    path = tmp_path / "test_labels.csv"
    path.write_text(layouts.table(rows))
    data = formats.read(path).dataset
    assert data.label_names == ("toxic", "threat", "insult")
    assert not data.candidates[0].any()
    assert data.candidates[1].tolist() == [1, 1, 1]


def test_objects_of_true_and_false_are_labels(tmp_path: Path) -> None:
    flags = [{name: (k + j) % 3 == 0 for j, name in enumerate("abc")} for k in range(40)]
    texts = [item.text for item in layouts.crowd()]
    weights = [[("a", 0.5), ("b", 0.1)] if k % 2 else [("c", 0.9)] for k in range(40)]
    maps = pa.array(weights, pa.map_(pa.string(), pa.float64()))
    for name, labels, n_first in (("structs", flags, 1), ("maps", maps, 1)):
        path = tmp_path / f"{name}.parquet"
        pq.write_table(pa.table({"text": texts, "labels": labels}), path)
        data = formats.read(path).dataset
        assert (data.label_names, data.votes) == (("a", "b", "c"), None)
        assert data.candidates[0].sum() == n_first


@pytest.mark.parametrize(
    ("truth", "candidates"),
    [
        ("target", "partial_target"),
        ("labels", "noisy_labels"),
        ("gnd", "pLabel"),
        ("true_labels", "labels"),
        ("Y_true", "Y"),
    ],
)
def test_candidates_in_a_mat_file_have_many_names(
    truth: str, candidates: str, tmp_path: Path
) -> None:
    path = tmp_path / "a.mat"
    features = np.random.default_rng(0).normal(size=(60, 5))
    variables = {"data": features, truth: TRUE.T * 1.0, candidates: OFFERED.T * 1.0}
    savemat(path, variables)
    data = formats.read(path).dataset
    np.testing.assert_array_equal(data.candidates, OFFERED)
    np.testing.assert_array_equal(data.truth, TRUE)


def test_a_part_for_testing_is_left_out_with_a_word(tmp_path: Path) -> None:
    path = tmp_path / "a.mat"
    features = np.random.default_rng(0).normal(size=(60, 5))
    variables = {"train_data": features[:40], "train_target": OFFERED[:40].T * 1.0}
    savemat(path, variables | {"test_data": features[40:], "test_target": TRUE[40:].T * 1.0})
    found = formats.read(path)
    assert found.dataset.n_instances == 40
    assert any("test_data is left out" in one.message for one in found.problems)


def test_rows_that_measure_much_are_items(tmp_path: Path) -> None:
    header = "store_id,product,price,width,height,sold,promoted"
    rows: list[list[Any]] = [header.split(",")]
    for k in range(60):
        sizes = [k / 7, k / 3, (k * k) % 11 / 2, (k * 5) % 17 / 3]
        rows.append([f"s{k // 3}", "abc"[k % 3], *sizes, k % 5 % 2])
    path = tmp_path / "sales.csv"
    path.write_text(layouts.table(rows))
    data = formats.read(path).dataset
    assert (data.n_instances, data.label_names) == (60, ("promoted",))
    assert data.has_features
