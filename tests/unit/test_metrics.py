import numpy as np
import pytest
from sklearn import metrics as sk

from core.engine.metrics import disambiguation_metrics, f1, ranking_metrics, roc_auc

RNG = np.random.default_rng(0)


def labels_and_predictions(ties):
    truth = (RNG.random((200, 8)) < 0.3).astype(int)
    predictions = RNG.random((200, 8))
    return truth, np.round(predictions, 1) if ties else predictions


@pytest.mark.parametrize("ties", [False, True])
def test_ranking_metrics_equal_scikit_learn(ties):
    truth, predictions = labels_and_predictions(ties)
    ours = ranking_metrics(truth, predictions)
    assert ours["ranking_loss"] == pytest.approx(sk.label_ranking_loss(truth, predictions))
    assert ours["hamming_loss"] == pytest.approx(sk.hamming_loss(truth, predictions > 0.5))
    some = truth.sum(axis=1) > 0
    average_precision = sk.label_ranking_average_precision_score(truth[some], predictions[some])
    ranked = ranking_metrics(truth, predictions, rows="ranked")
    assert ranked["average_precision"] == pytest.approx(average_precision, abs=1e-9)
    assert ours["average_precision"] == pytest.approx(average_precision * some.mean())
    coverage = sk.coverage_error(truth[some], predictions[some])
    assert ranked["coverage"] == pytest.approx(coverage - 1)


def test_rows_without_true_labels_count_as_the_policy_says():
    truth = np.array([[1, 0], [0, 0]])
    predictions = np.array([[0.9, 0.1], [0.9, 0.1]])
    assert ranking_metrics(truth, predictions)["average_precision"] == 0.5
    assert ranking_metrics(truth, predictions, rows="ranked")["average_precision"] == 1
    assert ranking_metrics(truth, predictions)["ranking_loss"] == 0


def test_one_error_and_coverage_by_hand():
    truth = np.array([[1, 0, 0], [0, 1, 1]])
    predictions = np.array([[0.1, 0.9, 0.5], [0.2, 0.9, 0.1]])
    result = ranking_metrics(truth, predictions)
    assert result["one_error"] == 0.5
    assert result["coverage"] == 2


def test_disambiguation_looks_at_candidate_cells_only():
    truth = np.array([[1, 0, 0], [0, 1, 0], [1, 0, 0]])
    candidates = np.array([[1, 1, 0], [1, 1, 0], [1, 0, 1]])
    confidences = np.array([[0.9, 0.2, 1.0], [0.4, 0.8, 1.0], [0.7, 1.0, 0.6]])
    result = disambiguation_metrics(truth, candidates, confidences)
    assert result["auc"] == 1
    assert result["macro_auc"] == 1
    assert result["instance_ap"] == 1
    assert result["candidate_f1"] == pytest.approx(2 * 3 / 9)
    assert result["f1"] == pytest.approx(2 * 3 / 7)


def test_undefined_measures_are_nan_not_errors():
    all_true = disambiguation_metrics(np.ones((3, 2)), np.ones((3, 2)), np.ones((3, 2)))
    assert np.isnan(all_true["auc"])
    assert np.isnan(all_true["instance_ap"])
    assert np.isnan(roc_auc(np.array([]), np.array([])))
    assert f1(np.zeros((2, 2)), np.zeros((2, 2))) == 1


def test_a_single_label_has_metrics_too():
    result = ranking_metrics(np.array([[1], [0]]), np.array([[0.9], [0.2]]))
    assert result["hamming_loss"] == 0
