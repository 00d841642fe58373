"""The other candidates of an instance tell which of them is false."""

import numpy as np
import pytest
from finished_run import near_rows

from core.bench.effort import Answer
from core.data.dataset import CandidateDataset
from core.data.noise import false_share_candidates
from core.engine.graphs import build_label_graph
from core.engine.propagation import Propagator
from core.review import Reviewer
from core.review.companions import Companions
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
    found = Companions.fit(candidates, Y_hat)
    for i, j in ((0, 0), (7, 3), (199, 5)):
        other = candidates.copy()
        other[i, j] ^= True
        here, there = (found.log_odds(one)[i] for one in (candidates, other))
        assert here[j] == pytest.approx(there[j], abs=1e-6)
        assert not np.allclose(np.delete(here, j), np.delete(there, j))
        again = Companions.fit(other, Y_hat)
        assert np.array_equal(again.weights[found.fold[i]], found.weights[found.fold[i]])


def test_the_only_candidate_is_expected_where_every_instance_has_one():
    rng = np.random.default_rng(0)
    candidates = np.eye(4, dtype=bool)[rng.integers(0, 4, 400)]
    candidates[:40] |= np.eye(4, dtype=bool)[rng.integers(0, 4, 40)]
    found = Companions.fit(candidates, np.full(candidates.shape, 0.25)).log_odds(candidates)
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
    found = Companions.fit(np.ones(shape, bool), np.full(shape, 0.5))
    assert np.isfinite(found.log_odds(np.ones(shape, bool))).all()
