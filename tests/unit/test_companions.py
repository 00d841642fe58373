"""The other candidates of an instance tell which of them is false."""

import numpy as np
import pytest
import scipy.sparse as sp
from finished_run import near_rows

from core.bench.effort import Answer
from core.data.dataset import CandidateDataset
from core.data.noise import false_share_candidates
from core.engine.graphs import build_label_graph
from core.engine.propagation import Propagator
from core.review import Reviewer
from core.review.companions import Companions
from core.review.neighbors import by_neighbors
from core.review.queue import likely_false


def groups(seed=0, n=600):
    """Labels 0 to 2 go together, and so do 3 to 5; a few are false; predictions say little."""
    rng = np.random.default_rng(seed)
    first = rng.random(n) < 0.5
    side = np.arange(6) < 3
    truth = (rng.random((n, 6)) < 0.7) & (first[:, None] == side)
    candidates = false_share_candidates(truth, 0.05, seed)
    Y_hat = np.clip(0.35 + 0.05 * truth + rng.normal(0, 0.05, truth.shape), 0, 1)
    return candidates > 0, truth, Y_hat.astype(np.float32)


def share_found(order, candidates, truth):
    """Of the false ones, how many are among as many candidates, the smallest first."""
    false = candidates & ~truth
    first = np.argsort(np.where(candidates, order, np.inf), axis=None)[: false.sum()]
    return false.ravel()[first].mean()


def reviewer_of(candidates, truth, Y_hat):
    X = np.random.default_rng(1).normal(size=(len(truth), 4)).astype(np.float32)
    data = CandidateDataset(X, candidates, truth=truth)
    return Reviewer(data, Propagator(near_rows(X), build_label_graph(candidates)), Y_hat)


def test_candidates_that_never_go_with_the_others_come_first():
    candidates, truth, Y_hat = groups()
    reviewer = reviewer_of(candidates, truth, Y_hat)
    found = share_found(-likely_false(reviewer), candidates, truth)
    assert found > 0.7
    assert found > share_found(reviewer.start, candidates, truth) + 0.2


def test_a_cell_does_not_speak_for_itself():
    candidates, _, Y_hat = groups(n=200)
    found = Companions.fit(candidates, [Y_hat])
    for i, j in ((0, 0), (7, 3), (199, 5)):
        other = candidates.copy()
        other[i, j] ^= True
        here, there = (found.log_odds(one)[i] for one in (candidates, other))
        assert here[j] == pytest.approx(there[j], abs=1e-6)
        assert not np.allclose(np.delete(here, j), np.delete(there, j))
        again = Companions.fit(other, [Y_hat])
        assert np.array_equal(again.weights[found.fold[i]], found.weights[found.fold[i]])


@pytest.mark.parametrize("is_sparse", [False, True])
def test_neighbors_are_weighed_without_the_label_in_question(is_sparse):
    rng = np.random.default_rng(3)
    offered, X = rng.random((30, 5)) < 0.4, rng.random((30, 4)).astype(np.float32)
    U = X if is_sparse else (X - X.mean(axis=0)) / X.std(axis=0)
    U = U / np.linalg.norm(U, axis=1, keepdims=True)
    found = by_neighbors(sp.csr_array(X) if is_sparse else X, offered)
    for i, j in ((0, 0), (11, 4), (29, 2)):
        differ = np.delete(offered != offered[i], j, axis=1).sum(axis=1)
        weights = np.delete(np.exp(8 * U @ U[i] - differ), i)
        expected = weights @ np.delete(offered[:, j], i) / weights.sum()
        rate = (offered[:, j].sum() + 0.5) / 31
        assert found[i, j] == pytest.approx(0.98 * expected + 0.02 * rate, abs=1e-5)


def test_of_many_instances_a_sample_is_compared_and_of_too_many_none(monkeypatch):
    rng = np.random.default_rng(4)
    truth = np.eye(3, dtype=bool)[rng.integers(0, 3, 3000)]
    X = truth + rng.normal(0, 0.3, truth.shape)
    monkeypatch.setattr("core.review.neighbors._MAX_PAIRS", 3000 * 1000)
    found = by_neighbors(X, truth)
    assert found[truth].mean() > 0.9
    assert found[~truth].mean() < 0.1
    monkeypatch.setattr("core.review.neighbors._MAX_PAIRS", 3000 * 999)
    assert by_neighbors(X, truth) is None


def test_the_only_candidate_is_expected_where_every_instance_has_one():
    rng = np.random.default_rng(0)
    candidates = np.eye(4, dtype=bool)[rng.integers(0, 4, 400)]
    candidates[:40] |= np.eye(4, dtype=bool)[rng.integers(0, 4, 40)]
    found = Companions.fit(candidates, [np.full(candidates.shape, 0.25)]).log_odds(candidates)
    alone = candidates & (candidates.sum(axis=1) == 1)[:, None]
    assert found[alone].min() > found[candidates & ~alone].max()


def test_what_was_rejected_no_longer_speaks_and_what_is_undone_does_again():
    candidates, truth, Y_hat = groups(n=300)
    reviewer = reviewer_of(candidates, truth, Y_hat)
    before = reviewer.beside_others()
    i, j = np.argwhere(candidates & (candidates.sum(axis=1) > 1)[:, None])[0]
    cell = reviewer.dataset.ids[i], reviewer.dataset.label_names[j]
    rejected, _ = reviewer.decide([Answer(*cell, "reject")])
    assert not np.allclose(np.delete(rejected.beside_others()[i], j), np.delete(before[i], j))
    undone, _ = rejected.decide([Answer(*cell, "undo")])
    assert np.allclose(undone.beside_others(), before)


@pytest.mark.parametrize("shape", [(1, 3), (3, 1), (2, 2)])
def test_very_little_data_is_enough(shape):
    found = Companions.fit(np.ones(shape, bool), [np.full(shape, 0.5)])
    assert np.isfinite(found.log_odds(np.ones(shape, bool))).all()


def test_decisions_tell_how_much_the_other_candidates_say():
    """What goes with the others badly is true here, and some of what goes well with them false."""
    rng = np.random.default_rng(5)
    _, usual, _ = groups(n=800)
    candidates = false_share_candidates(usual, 0.2, 5) > 0
    truth = candidates & ~(usual & (rng.random(usual.shape) < 0.2))
    Y_hat = np.clip(0.3 + 0.1 * truth + rng.normal(0, 0.1, truth.shape), 0.01, 0.99)
    before = reviewer_of(candidates, truth, Y_hat.astype(np.float32))
    cells = rng.permutation(np.argwhere(candidates))
    ids, names = before.dataset.ids, before.dataset.label_names
    asked = [Answer(ids[i], names[j], "keep" if truth[i, j] else "reject") for i, j in cells[:300]]
    after, _ = before.decide(asked)
    left = candidates & np.isnan(after.decided)
    by_review = share_found(after.log_odds, left, truth)
    at_first = share_found(-likely_false(before), left, truth)
    learned = share_found(-likely_false(after), left, truth)
    assert learned > at_first + 0.03
    assert learned > by_review - 0.02
