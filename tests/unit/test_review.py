from dataclasses import dataclass

import numpy as np
import pytest

from core.data.dataset import CandidateDataset
from core.errors import ConfigError
from core.review import Threshold, resolve

CANDIDATES = np.array([[1, 1, 0], [1, 0, 1], [0, 1, 1]])
CONFIDENCES = np.array([[0.9, 0.4, 0.95], [0.6, 0.9, 0.2], [0.0, 0.7, 0.65]], np.float32)
DATA = CandidateDataset(np.eye(3), CANDIDATES, label_names=["a", "b", "c"], ids=["x", "y", "z"])


@dataclass
class Decision:
    instance_id: str
    label: str
    verdict: str
    annotator: str = "ann"
    time: str = "2026-01-02T03:04:05+00:00"


def labels(*arguments, **keywords):
    return resolve(DATA, CONFIDENCES, *arguments, **keywords).labels.tolist()


def test_confident_candidates_are_kept_and_nothing_else():
    resolution = resolve(DATA, CONFIDENCES)
    assert resolution.labels.tolist() == [[1, 0, 0], [1, 0, 0], [0, 1, 1]]
    assert resolution.reason(0, 0) == "confident"
    assert resolution.reason(0, 1) == "below threshold"
    assert resolution.reason(0, 2) == "not a candidate"


def test_a_decision_goes_before_a_confidence():
    decisions = [Decision("x", "b", "keep"), Decision("y", "a", "reject", "bo")]
    resolution = resolve(DATA, CONFIDENCES, decisions=decisions)
    assert resolution.labels.tolist() == [[1, 1, 0], [0, 0, 0], [0, 1, 1]]
    assert resolution.reason(0, 1) == "decided by ann on 2026-01-02"
    assert resolution.reason(1, 0) == "decided by bo on 2026-01-02"
    assert (resolution.confidences == CONFIDENCES).all()


def test_unsure_and_unknown_decisions_leave_the_confidence():
    decisions = [
        Decision("x", "b", "unsure"),
        Decision("gone", "b", "keep"),
        Decision("x", "q", "keep"),
    ]
    assert labels(decisions=decisions) == labels()


def test_new_labels_only_on_request():
    decisions = [Decision("z", "a", "keep")]
    assert labels(decisions=decisions) == labels()
    resolution = resolve(DATA, CONFIDENCES, decisions=decisions, allow_new_labels=True)
    assert resolution.labels.tolist() == [[1, 0, 1], [1, 1, 0], [1, 1, 1]]
    assert resolution.reason(0, 2) == "confident, though not a candidate"
    assert resolution.reason(2, 0).startswith("decided by")


def test_threshold_rules():
    assert labels(Threshold(value=0.65)) == [[1, 0, 0], [0, 0, 0], [0, 1, 1]]
    assert labels(Threshold(per_label={"b": 0.3})) == [[1, 1, 0], [1, 0, 0], [0, 1, 1]]
    assert labels(Threshold(top_k=1)) == [[1, 0, 0], [1, 0, 0], [0, 1, 0]]
    assert labels(Threshold(precision=0.79)) == [[1, 0, 0], [0, 0, 0], [0, 1, 0]]
    assert labels(Threshold(precision=1.0)) == [[0] * 3] * 3


@pytest.mark.parametrize(
    "rule",
    [
        {"value": 2},
        {"value": 0.5, "top_k": 1},
        {"per_label": {"a": -1}},
        {"precision": 0},
        {"top_k": 0},
    ],
)
def test_a_bad_threshold_is_refused(rule):
    with pytest.raises(ConfigError):
        Threshold(**rule)


def test_a_threshold_for_no_label_is_refused():
    with pytest.raises(ConfigError, match="nope"):
        labels(Threshold(per_label={"nope": 0.5}))


def test_confidences_of_other_data_are_refused():
    with pytest.raises(ConfigError, match="other data"):
        resolve(DATA, CONFIDENCES[:2])
