"""What is odd about a data set, each with a fix, and how large it is."""

import json
import time
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from core.data.checks import Summary, check, estimate_noise, summarize
from core.data.dataset import CandidateDataset
from core.errors import DatasetError, Problem


def dataset(n: int = 40, d: int = 5, **changes: Any) -> CandidateDataset:
    """A data set nothing is odd about, but for the changes."""
    rng = np.random.default_rng(0)
    candidates = np.zeros((n, 3), np.uint8)
    candidates[np.arange(n), np.arange(n) % 3] = 1
    healthy = {"features": rng.normal(size=(n, d)).astype(np.float32), "candidates": candidates}
    return CandidateDataset(**(healthy | changes))


def found(data: CandidateDataset) -> dict[str, list[Problem]]:
    problems: dict[str, list[Problem]] = {}
    for problem in check(data):
        assert problem.fix
        problems.setdefault(problem.message, []).append(problem)
    return problems


def test_healthy_data_has_no_problems() -> None:
    assert dataset().check() == []


def test_labels_never_or_always_offered_are_named() -> None:
    candidates = np.array([[1, 0, 1], [1, 0, 0]] * 20, np.uint8)
    problems = found(dataset(candidates=candidates, label_names=["a", "b", "c"]))
    assert [one.column for one in problems["no instance has this label"]] == ["b"]
    assert [one.column for one in problems["every instance has this label"]] == ["a"]


def test_labels_that_read_the_same_are_pointed_out_in_one_line() -> None:
    names = [
        "Sea",
        "sea ",
        "caf\u00e9",
        "cafe\u0301",
        "blue  sky",
        "blue\u00a0sky",
        "Strasse",
        "tree",
    ]
    candidates = np.eye(8, dtype=np.uint8)[np.arange(40) % 8]
    (problem,) = check(dataset(candidates=candidates, label_names=names))
    assert problem.message.startswith("3 labels are written in several ways")
    assert problem.value is not None
    assert problem.value.startswith("'Sea' (5) / 'sea ' (5); ")
    assert not problem.fatal


def test_instances_without_candidates_are_counted_beyond_twenty() -> None:
    candidates = np.zeros((40, 2), np.uint8)
    candidates[:5] = 1
    problems = check(dataset(candidates=candidates))
    empty = [one for one in problems if "no candidates" in one.message]
    assert len(empty) == 21
    assert "… and 15 more" in empty[-1].message
    assert empty[0].row == "5"


def test_truth_outside_the_candidates_is_named_by_cell() -> None:
    truth = np.zeros((40, 3), np.uint8)
    truth[4, 2] = 1
    (problem,) = found(dataset(truth=truth))["a true label is not a candidate"]
    assert (problem.row, problem.column) == ("4", "label2")


def test_constant_and_repeated_features_are_named_where_a_person_chose_them() -> None:
    features = np.array(dataset().features)
    features[:, 1] = 2
    features[:, 4] = features[:, 0]
    problems = found(dataset(features=features))
    assert [one.column for one in problems["a feature has one value only"]] == ["x1"]
    assert [one.column for one in problems["a feature repeats another one"]] == ["x4"]
    assert found(dataset(features=sp.csr_array(features))) == {}


@pytest.mark.parametrize("sparse", [False, True])
def test_repeated_instances_are_named_and_contradictions_apart(sparse: bool) -> None:
    features = np.array(dataset().features)
    features[39] = features[0]  # the same candidates
    features[38] = features[0]  # others
    features[10] = 0
    X = sp.csr_array(features) if sparse else features
    problems = found(dataset(features=X))
    assert [one.row for one in problems["an instance repeats an earlier one"]] == ["39"]
    differ = problems["an instance has the features of an earlier one but other candidates"]
    assert [one.row for one in differ] == ["38"]
    assert [one.row for one in problems["all features are zero"]] == ["10"]


def test_suspicious_sizes_are_told() -> None:
    problems = found(dataset(n=10, d=101))
    assert {"a data set should have 20 instances"} < set(problems)
    assert any("10 times the instances" in message for message in problems)
    assert not any(one.fatal for listed in problems.values() for one in listed)


def test_values_that_are_not_finite_are_named_by_id_and_feature() -> None:
    features = np.ones((30, 4), np.float32)
    features[2:, 1] = np.nan
    ids, names = [f"i{i}" for i in range(30)], list("abcd")
    candidates = np.ones((30, 1))
    with pytest.raises(DatasetError) as caught:
        CandidateDataset(features, candidates, ids=ids, feature_names=names)
    first, *_, last = caught.value.problems
    assert (first.row, first.column, first.value) == ("i2", "b", "nan")
    assert "… and 8 more" in last.message


def test_ids_that_clash_are_all_named() -> None:
    with pytest.raises(DatasetError) as caught:
        CandidateDataset(np.ones((4, 1)), np.ones((4, 1)), ids=["a", "b", "a", "b"])
    assert [one.value for one in caught.value.problems] == ["'a'", "'b'"]


def test_checks_of_much_data_are_quick_and_few() -> None:
    data = dataset(n=20_000, features=np.zeros((20_000, 50), np.float32))
    start = time.process_time()
    problems = check(data)
    assert time.process_time() - start < 5
    assert len(problems) < 130


def test_summary_is_json_and_says_the_sizes() -> None:
    truth = np.array(dataset().candidates)
    candidates = truth.copy()
    candidates[:20, 0] = 1
    summary = summarize(dataset(candidates=candidates, truth=truth, label_names=["a", "b", "ü"]))
    again = Summary.model_validate(json.loads(summary.model_dump_json()))
    assert again == summary
    assert (again.n_instances, again.n_features, again.n_labels) == (40, 5, 3)
    assert (again.candidates_min, again.candidates_max) == (1, 2)
    assert again.noise == pytest.approx(13 / 53)
    assert not again.noise_is_estimate
    assert again.noise_sentence == "25%, counted with the truth"
    assert set(again.label_frequencies) == {"a", "b", "ü"}


def clusters(noise: float, n: int = 1500) -> tuple[CandidateDataset, float]:
    """Three labels told apart by features; false candidates at random."""
    rng = np.random.default_rng(1)
    truth = np.eye(3, dtype=np.uint8)[rng.integers(0, 3, n)]
    candidates = truth | (rng.random((n, 3)) < noise).astype(np.uint8)
    features = truth @ rng.normal(size=(3, 8)) * 3 + rng.normal(size=(n, 8))
    false = float((candidates > truth).sum() / candidates.sum())
    return CandidateDataset(features, candidates), false


@pytest.mark.parametrize("noise", [0.0, 0.1, 0.3])
def test_noise_at_random_is_estimated(noise: float) -> None:
    data, false = clusters(noise)
    estimate = estimate_noise(data)
    assert estimate == pytest.approx(false, abs=0.1)
    summary = summarize(data)
    assert summary.noise_is_estimate
    assert summary.noise is None  # features give a bound, no figure
    assert summary.noise_high == estimate
    assert f"at most about {estimate:.0%}" in summary.noise_sentence


def test_noise_of_little_data_is_not_estimated() -> None:
    assert estimate_noise(dataset(n=20)) is None
