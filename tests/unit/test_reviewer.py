import numpy as np
import pytest
import scipy.sparse as sp
from finished_run import near_rows

from core.data.dataset import CandidateDataset
from core.engine.graphs import build_label_graph
from core.engine.propagation import Propagator
from core.review import ORDERS, Reviewer, remaining_false
from core.store import Decision

N, L = 240, 4


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(8, 6))
    at = rng.integers(0, 8, N)
    truth = (rng.random((8, L)) < 0.4).astype(np.uint8)[at]
    X = (centres[at] + 0.3 * rng.normal(size=(N, 6))).astype(np.float32)
    candidates = truth | (rng.random((N, L)) < 0.4)
    return CandidateDataset(X, candidates, truth=truth)


@pytest.fixture(scope="module")
def propagator(data):
    graphs = near_rows(data.features), build_label_graph(data.candidates)
    return Propagator(*graphs, alpha=0.5, beta=0.1, n_steps=None)


@pytest.fixture(scope="module")
def Y_hat(data):
    noise = np.random.default_rng(1).normal(0, 0.25, data.candidates.shape)
    return np.clip(0.25 + 0.5 * data.truth + noise, 0, 1).astype(np.float32)


@pytest.fixture
def reviewer(data, propagator, Y_hat):
    return Reviewer(data, propagator, Y_hat)


def decision(data, i, j, verdict=None, **more):
    verdict = verdict or ("keep" if data.truth[i, j] else "reject")
    cell = {"instance_id": data.ids[i], "label": data.label_names[j]}
    return Decision(fingerprint="f", annotator="ann", verdict=verdict, **cell, **more)


def cells(data, count, seed=0):
    found = np.argwhere(data.candidates)
    return np.random.default_rng(seed).permutation(found)[:count]


def test_decisions_one_by_one_and_all_at_once_come_to_the_same(data, propagator, Y_hat, reviewer):
    made = [decision(data, i, j) for i, j in cells(data, 40)]
    for one in made:
        reviewer, _ = reviewer.decide([one])
    fresh = Reviewer(data, propagator, Y_hat, made)
    np.testing.assert_array_equal(reviewer.decided, fresh.decided)
    difference = np.abs(reviewer.confidences - fresh.confidences)[data.candidates > 0]
    assert difference.max() < 0.1  # labels are fitted one at a time between fits of all
    assert difference.mean() < 0.01


def test_beginning_afresh_gives_the_bits_of_a_new_reviewer(data, propagator, Y_hat, reviewer):
    first, later = (
        [
            decision(data, *cell, sampled=at % 2 == 0)
            for at, cell in enumerate(cells(data, 20, seed))
        ]
        for seed in (0, 1)
    )
    used = reviewer.after(first)
    assert not np.array_equal(used.confidences, reviewer.confidences)
    for made in (later, []):
        new, afresh = Reviewer(data, propagator, Y_hat, made), used.afresh(made)
        for name in ("confidences", "log_odds", "decided", "sampled", "start"):
            assert np.array_equal(getattr(new, name), getattr(afresh, name), equal_nan=True)


def test_undoing_a_decision_takes_its_effect_back(data, reviewer):
    (i, j), *_ = cells(data, 1)
    after, effect = reviewer.decide([decision(data, i, j)])
    assert len(effect.rows)
    back, _ = after.decide([decision(data, i, j, "undo")])
    assert np.abs(back.confidences - reviewer.confidences).max() < 5e-3
    assert np.isnan(back.decided).all()


def test_an_effect_shown_before_is_the_one_that_comes(data, reviewer):
    (i, j), *_ = cells(data, 1, seed=2)
    shown = reviewer.preview(i, j, "reject")
    _, came = reviewer.decide([decision(data, i, j, "reject")])
    np.testing.assert_array_equal(shown.rows, came.rows)
    np.testing.assert_array_equal(shown.after, came.after)
    moved = np.abs(shown.after - shown.before)
    assert (np.diff(moved) <= 0).all()
    assert (i, j) not in set(zip(shown.rows, shown.labels, strict=True))


def test_a_decision_is_no_confidence_and_a_confidence_no_decision(data, reviewer):
    i, j = np.argwhere(data.candidates & (reviewer.confidences > 0.6))[0]
    after, _ = reviewer.decide([decision(data, i, j, "reject")])
    assert after.decided[i, j] == 0
    assert after.confidences[i, j] > 0.3
    assert not after.proposed[i, j]


def test_unsure_cells_are_neither_held_nor_asked_again(data, reviewer):
    i, j = cells(data, 1)[0]
    after, effect = reviewer.decide([decision(data, i, j, "unsure")])
    assert np.isnan(after.decided[i, j])
    assert not len(effect.rows)
    asked = {(q.row, c) for q in after.questions("doubtful", limit=N) for c in q.cells}
    assert (i, j) not in asked


def test_the_first_lap_draws_ten_cells_of_every_label(data, reviewer):
    asked = [q for q in reviewer.questions(limit=N) if q.reason == "first lap"]
    drawn = [cell for q in asked for cell in q.cells]
    assert all(q.sampled for q in asked)
    assert [drawn.count(j) for j in range(L)] == [10] * L
    made = [decision(data, q.row, j, sampled=True) for q in asked for j in q.cells]
    later, _ = reviewer.decide(made)
    reasons = [q.reason for q in later.questions(limit=20)]
    assert reasons.count("audit") == 2
    assert reasons.count("worth") == 18


def test_what_is_drawn_from_a_selection_is_no_sample(reviewer):
    for order in ("worth", "audit"):
        assert not any(one.sampled for one in reviewer.questions(order, rows=range(60)))
    assert all(one.sampled for one in reviewer.questions("audit"))


@pytest.mark.parametrize("order", [one for one in ORDERS if one != "contradictions"])
def test_every_order_asks_only_open_candidates_each_instance_once(data, reviewer, order):
    reviewer, _ = reviewer.decide([decision(data, i, j) for i, j in cells(data, 30)])
    found = reviewer.questions(order, labels=[0, 2], rows=range(100), limit=60)
    rows = [q.row for q in found]
    assert len(rows) == len(set(rows)) <= 60
    assert all(row < 100 for row in rows)
    for q in found:
        assert q.cells
        assert set(q.cells) <= {0, 2}
        assert (data.candidates[q.row, q.cells] == 1).all()
        assert np.isnan(reviewer.decided[q.row, q.cells]).all()


def test_the_same_question_is_asked_of_near_instances(data, reviewer):
    rows = reviewer.same_question(1, size=12)
    assert len(rows) == len(set(rows)) == 12
    assert (data.candidates[rows, 1] == 1).all()
    X = data.features / np.linalg.norm(data.features, axis=1, keepdims=True)
    near = (X[rows] @ X[rows[0]]).mean()
    assert near > (X @ X[rows[0]]).mean() + 0.3


def test_one_label_at_a_time_asks_all_of_a_label_first(reviewer):
    found = reviewer.questions("label", limit=30)
    assert len({one.cells[0] for one in found}) == 1


def test_what_is_promised_comes_about(data, reviewer):
    reviewer, _ = reviewer.decide([decision(data, i, j) for i, j in cells(data, 60)])
    found = [one for one in reviewer.questions(limit=80) if one.reason == "worth"][:12]
    settled = []
    for one in found:
        p = reviewer.confidences[one.row, one.cells[0]]
        keep, reject = (reviewer.preview(one.row, one.cells[0], v) for v in ("keep", "reject"))
        settled.append(p * net(keep) + (1 - p) * net(reject))
    promised = np.array([one.promise for one in found])
    assert np.abs(promised - np.maximum(settled, 0)).mean() < 1.0


def net(effect):
    from core.review.queue import is_settled

    return is_settled(effect.after).sum() - is_settled(effect.before).sum()


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("n_labels", [1, 3])
def test_odd_data_can_be_reviewed(n_labels, sparse):
    """One label, constant features, a label nobody offers, an instance without candidates."""
    X = np.ones((30, 2), np.float32)
    candidates = np.ones((30, n_labels))
    candidates[0] = 0
    if n_labels > 1:
        candidates[:, 1] = 0
    data = CandidateDataset(sp.csr_array(X) if sparse else X, candidates, truth=candidates)
    propagator = Propagator(near_rows(X), build_label_graph(candidates))
    reviewer = Reviewer(data, propagator, np.full((30, n_labels), 0.5, np.float32))
    for _ in range(4):
        question = reviewer.questions(limit=1)[0]
        reviewer, _ = reviewer.decide([decision(data, question.row, question.cells[0])])
    assert np.isfinite(reviewer.confidences).all()
    assert reviewer.confidences[candidates == 0].max() == 0
    open_cells = (candidates[:, 0] > 0) & ~reviewer.settled[:, 0] & np.isnan(reviewer.decided[:, 0])
    assert bool(reviewer.same_question(0)) == open_cells.any()
    assert remaining_false(reviewer).total >= 0
    for order in ORDERS:
        reviewer.questions(order)
