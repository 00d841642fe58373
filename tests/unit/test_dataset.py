import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from core.data.dataset import CandidateDataset
from core.errors import DatasetError

X = np.arange(12, dtype=np.float32).reshape(4, 3)
Y = np.array([[1, 0], [1, 1], [0, 1], [1, 0]])


def test_labels_may_be_zero_one_signs_or_booleans():
    for given in (Y, Y * 2 - 1, Y.astype(bool), sp.csr_array(Y), pd.DataFrame(Y)):
        assert CandidateDataset(X, given).candidates.tolist() == Y.tolist()


def test_names_are_numbered_when_not_given():
    data = CandidateDataset(X, Y)
    assert data.label_names == ("label0", "label1")
    assert data.ids == ("0", "1", "2", "3")


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"features": X[:3]}, "rows"),
        ({"features": X + np.inf}, "finite"),
        ({"features": [["a"], ["b"], ["c"], ["d"]]}, "numbers"),
        ({"features": X[:, 0]}, "table"),
        ({"candidates": Y + 1}, "0 or 1"),
        ({"candidates": Y[:, 0]}, "table"),
        ({"candidates": Y * np.nan}, "0 or 1"),
        ({"truth": Y[:, :1]}, "shape"),
        ({"ids": ["a", "a", "b", "c"]}, "different"),
        ({"label_names": ["x"]}, "needed"),
        ({"display": pd.DataFrame({"t": ["one"]})}, "rows"),
        ({"features": X[:2], "candidates": Y[:2]}, "3 instances"),
    ],
)
def test_unusable_data_is_refused_with_the_reason(changes, word):
    with pytest.raises(DatasetError, match=word) as error:
        CandidateDataset(**{"features": X, "candidates": Y, **changes})
    assert error.value.problems


def test_all_problems_are_told_at_once_with_their_place():
    bad = X.copy()
    bad[1, 2] = np.nan
    with pytest.raises(DatasetError) as error:
        CandidateDataset(bad, Y + 1)
    places = {(problem.row, problem.column) for problem in error.value.problems}
    assert (1, 2) in places
    assert len(places) > 1


def test_data_cannot_be_changed_and_the_caller_keeps_his():
    mine = X.copy()
    data = CandidateDataset(mine, Y)
    with pytest.raises(ValueError, match="read-only"):
        data.features[0, 0] = 1
    mine[0, 0] = 5  # the caller's array stays writable


def test_fingerprint_tells_data_apart():
    data = CandidateDataset(X, Y)
    assert data.fingerprint == CandidateDataset(X.copy(), Y * 2 - 1).fingerprint
    for changes in (
        {"features": X + 1},
        {"candidates": 1 - Y},
        {"ids": list("abcd")},
        {"label_names": ["x", "y"]},
    ):
        other = CandidateDataset(**{"features": X, "candidates": Y, **changes})
        assert other.fingerprint != data.fingerprint


def test_odd_but_usable_data_is_reported():
    zero = X.copy()
    zero[0] = 0
    candidates = np.array([[1, 0, 1], [1, 0, 0], [1, 0, 0], [1, 0, 0]])
    truth = np.array([[1, 1, 0], [1, 0, 0], [1, 0, 0], [1, 0, 0]])
    problems = CandidateDataset(zero, candidates, truth=truth).check()
    text = " ".join(problem.message for problem in problems)
    for words in ("no instance has", "every instance has", "not a candidate", "are zero"):
        assert words in text
    assert not any(problem.fatal for problem in problems)


def test_its_repr_is_one_line_of_sizes(demo):
    assert repr(demo).startswith("<CandidateDataset: 400 instances, 256 features, 10 labels, ")
