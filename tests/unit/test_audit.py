import numpy as np
import pytest
from finished_run import near_rows
from scipy.stats import binom

from core.bench.effort import Answer
from core.data.dataset import CandidateDataset
from core.engine.graphs import build_label_graph
from core.engine.propagation import Propagator
from core.review import Reviewer, auto_resolve, clicks_left, contradictions, remaining_false
from core.review.audit import _fewest_with, _lower_bound


def made(seed=0, n=500, n_labels=3, noise=0.3):
    """A run whose predictions are middling, so that some confident cells are false."""
    rng = np.random.default_rng(seed)
    truth = (rng.random((n, n_labels)) < 0.45).astype(np.uint8)
    X = np.column_stack([truth + rng.normal(0, 0.35, truth.shape), rng.normal(size=(n, 3))])
    candidates = truth | (rng.random(truth.shape) < 0.5)
    data = CandidateDataset(X.astype(np.float32), candidates, truth=truth)
    propagator = Propagator(near_rows(data.features), build_label_graph(candidates))
    Y_hat = np.clip(0.3 + 0.4 * truth + rng.normal(0, noise, truth.shape), 0, 1)
    return Reviewer(data, propagator, Y_hat.astype(np.float32), seed=seed)


def audited(reviewer, count):
    """Answer random cells truthfully, as the queue draws them."""
    questions = reviewer.questions("audit", limit=10**6)
    cells = [(one.row, j) for one in questions for j in one.cells]
    order = sorted(cells, key=lambda cell: -drawn(reviewer)[cell])
    return reviewer.decide([answer(reviewer, i, j, sampled=True) for i, j in order[:count]])[0]


def drawn(reviewer):
    from core.review.queue import audit_order

    return audit_order(reviewer)


def answer(reviewer, i, j, verdict=None, **more):
    data = reviewer.dataset
    verdict = verdict or ("keep" if data.truth[i, j] else "reject")
    return Answer(data.ids[i], data.label_names[j], verdict, **more)


def test_what_is_accepted_unseen_is_right_as_often_as_was_promised():
    kept, held = 0, 0
    for seed in range(20):
        reviewer = audited(made(seed), 300)
        found = auto_resolve(reviewer, 0.95)
        if found.cut is None:
            held += 1
            continue
        kept += 1
        assert np.isnan(reviewer.decided[found.rows, found.labels]).all()
        held += reviewer.dataset.truth[found.rows, found.labels].mean() >= 0.95
    assert kept >= 10
    assert held >= 19


def test_too_small_a_sample_is_refused_with_the_number_that_is_missing():
    reviewer = made(1)
    found = auto_resolve(reviewer, 0.98)
    assert found.cut is None
    assert found.n_needed == 149
    assert not len(found.rows)
    some = auto_resolve(audited(reviewer, 60), 0.98)
    assert some.cut is None
    assert some.n_needed > 149 - some.n_audited - 1


def test_an_unanswered_draw_ends_the_random_sample():
    reviewer = audited(made(2), 250)
    first = np.unravel_index(np.argmax(drawn(reviewer) * reviewer.offered), reviewer.offered.shape)
    undone, _ = reviewer.decide([answer(reviewer, *first, "undo")])
    assert auto_resolve(undone, 0.95).n_audited == 0


def test_the_bound_is_that_of_clopper_and_pearson():
    bound = _lower_bound(80, 2)
    assert binom.sf(77, 80, bound) == pytest.approx(0.05, abs=1e-9)
    assert _fewest_with(0, 0.95) == 59
    assert _lower_bound(_fewest_with(3, 0.98), 3) >= 0.98
    assert _lower_bound(_fewest_with(3, 0.98) - 1, 3) < 0.98


def test_the_remaining_false_candidates_are_within_the_interval():
    inside = total = 0
    for seed in range(8):
        reviewer = audited(made(seed), 120)
        found = remaining_false(reviewer)
        undecided = reviewer.offered & np.isnan(reviewer.decided) & (reviewer.confidences >= 0.5)
        false = (undecided & (reviewer.dataset.truth == 0)).sum(axis=0)
        np.testing.assert_array_equal(found.n_kept, undecided.sum(axis=0))
        inside += ((found.low <= false) & (false <= found.high)).sum()
        total += len(false)
    assert inside >= 0.85 * total


def test_fewer_clicks_are_left_after_every_answer_and_none_when_all_is_decided():
    reviewer = audited(made(3), 80)
    assert clicks_left(reviewer, 0.99) > clicks_left(reviewer, 0.9)
    assert clicks_left(audited(reviewer, 10**6), 0.99) == 0


def test_near_duplicates_decided_differently_are_found():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 5)).astype(np.float32)
    X[1] = X[0] + 1e-4
    data = CandidateDataset(X, np.ones((60, 2)), truth=np.ones((60, 2)))
    propagator = Propagator(near_rows(X), build_label_graph(data.candidates))
    reviewer = Reviewer(data, propagator, np.full((60, 2), 0.5, np.float32))
    reviewer, _ = reviewer.decide(
        [answer(reviewer, 0, 1, "keep"), answer(reviewer, 1, 1, "reject")]
    )
    (found,) = [one for one in contradictions(reviewer) if one.kind == "near"]
    assert found.cells == [(0, 1), (1, 1)]
    questions = reviewer.questions("contradictions")
    assert {(one.row, *one.cells) for one in questions} >= {(0, 1), (1, 1)}


def test_a_decision_against_a_rule_of_the_labels_is_found():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 4)).astype(np.float32)
    truth = np.zeros((120, 3), np.uint8)
    truth[:60, :2] = 1  # the first label never without the second
    truth[60:, 2] = 1
    data = CandidateDataset(X, np.ones((120, 3)), truth=truth)
    propagator = Propagator(near_rows(X), build_label_graph(data.candidates))
    reviewer = Reviewer(data, propagator, truth.astype(np.float32))
    cells = np.argwhere(truth >= 0)
    wrong = (5, 1)
    reviewer, _ = reviewer.decide(
        [answer(reviewer, i, j, "reject" if (i, j) == wrong else None) for i, j in cells]
    )
    rules = [one for one in contradictions(reviewer) if one.kind == "rule"]
    assert any(one.cells == [(5, 0), wrong] for one in rules)
