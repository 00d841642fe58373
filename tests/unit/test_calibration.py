from itertools import product
from math import comb

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import binom

from core.confidence.calibration import (
    _Decisions,
    _Regression,
    calibrate,
    expected_calibration_error,
    reliability,
)
from core.confidence.candidates import Candidates
from core.confidence.counts import _binomial, _count_weight, _SameSize
from core.confidence.level import Level
from core.confidence.noise_model import Noise
from core.data.noise import uniform_candidates
from core.engine.metrics import disambiguation_metrics


def world(seed=0, n=800, n_labels=8, r=3, spread=1.0):
    """Truth of known probability, and r false labels per instance."""
    rng = np.random.default_rng(seed)
    p = expit(rng.normal(-2, spread, n_labels) + rng.normal(0, 2, (n, n_labels)))
    truth = (rng.random(p.shape) < p).astype(np.uint8)
    return truth, uniform_candidates(truth, r, seed), p


def audit(truth, candidates, n_per_label, seed=0):
    rng, decided = np.random.default_rng(seed), np.full(truth.shape, np.nan)
    for j, offered in enumerate(candidates.T > 0):
        at = rng.permutation(np.flatnonzero(offered))[:n_per_label]
        decided[at, j] = truth[at, j]
    return decided


def test_the_count_model_equals_enumeration_of_all_label_sets():
    p, n_labels, nu = (
        np.array([0.6, 0.2, 0.5, 0.3]),
        7,
        np.array([0.1, 0.2, 0.4, 0.2, 0.1, 0, 0, 0]),
    )
    total, exact = 0.0, np.zeros(4)
    for T in product((0, 1), repeat=4):
        t = sum(T)
        weight = np.prod(np.where(T, p, 1 - p)) * nu[4 - t] / comb(n_labels - t, 4 - t)
        total, exact = total + weight, exact + weight * np.array(T)
    found = _SameSize((p / (1 - p))[None]).marginals(_count_weight(nu, 4, n_labels))
    assert found[0] == pytest.approx(exact / total, rel=1e-9)


def test_a_sample_of_the_rows_tells_as_much_as_all(monkeypatch):
    _, candidates, p = world(n=8000)
    level = Level.fit(candidates, p)
    every = Noise.fit(candidates, p, level).confidences(candidates, None, p)
    monkeypatch.setattr("core.confidence.candidates.MAX_CELLS", candidates.size // 3)
    some = Noise.fit(candidates, p, level).confidences(candidates, None, p)
    offered = candidates > 0
    assert 0 < np.abs(some - every)[offered].mean() < 0.02
    assert np.corrcoef(some[offered], every[offered])[0, 1] > 0.99


def test_false_candidates_by_chance_alone_are_binomial():
    assert _binomial(9, 0.3) == pytest.approx(binom.pmf(np.arange(10), 9, 0.3))


def test_how_many_labels_are_false_is_learned_and_used():
    truth, candidates, p = world()
    metrics = disambiguation_metrics(truth, candidates, calibrate(candidates, None, p).confidences)
    by_prediction = disambiguation_metrics(truth, candidates, p)
    assert metrics["auc"] > by_prediction["auc"] + 0.01
    assert metrics["macro_auc"] > by_prediction["macro_auc"] + 0.01


def test_confidences_are_probabilities_of_candidates_only():
    truth, candidates, p = world()
    found = calibrate(candidates, None, p).confidences
    assert found.dtype == np.float32
    assert (found[candidates == 0] == 0).all()
    assert found.min() >= 0
    assert found.max() <= 1
    assert expected_calibration_error(found, truth, candidates) < 0.2  # cautious: rather kept


def test_predictions_of_candidates_serve_as_well_as_predictions_of_truth():
    truth, candidates, p = world()
    e = candidates[truth == 0].mean()
    found = calibrate(candidates, None, p + (1 - p) * e).confidences
    assert expected_calibration_error(found, truth, candidates) < 0.2  # cautious: rather kept


def shares(found, candidates):
    """Return the share of true candidates that is expected of each label."""
    return found.probabilities.sum(axis=0) / candidates.sum(axis=0)


def test_a_few_audited_cells_find_the_share_of_true_candidates():
    off = []
    for seed in range(6):
        truth, candidates, _ = world(seed, n=2000, spread=2.0)
        flat = np.full(truth.shape, 0.5)  # predictions that know nothing
        found = calibrate(candidates, None, flat, audit(truth, candidates, 40, seed))
        rate = truth.sum(axis=0) / candidates.sum(axis=0)
        off.append(np.abs(shares(found, candidates) - rate).mean())
    assert np.mean(off) < 0.07  # of the answers' own shares: .05


@pytest.mark.parametrize("seed", range(5))
def test_random_decisions_never_make_confidences_worse(seed):
    truth, candidates, p = world(seed)
    before = disambiguation_metrics(truth, candidates, calibrate(candidates, None, p).confidences)
    decided = audit(truth, candidates, 10, seed)
    found = calibrate(candidates, None, p, decided, ~np.isnan(decided)).confidences
    after = disambiguation_metrics(truth, candidates, found)
    assert after["auc"] > before["auc"] - 0.01
    assert after["instance_ap"] > before["instance_ap"] - 0.01
    assert expected_calibration_error(found, truth, candidates) < 0.08


def regression(*kept):
    """Fit ten decisions per label on cells at even odds, so many of them kept."""
    labels = np.repeat(np.arange(len(kept)), 10)
    verdicts = np.concatenate([np.arange(10) < k for k in kept]).astype(float)
    ones = np.ones(len(labels))
    return _Regression.fit(len(kept), _Decisions(0 * ones, labels, verdicts, ones))


def test_labels_stay_in_order_until_they_differ_by_more_than_chance():
    assert np.abs(regression(4, 6, 5, 7, 5).intercepts).max() < 1e-9
    apart = regression(0, 10, 10, 10, 10).intercepts
    assert apart[0] < -1 < 0 < apart[1]


def test_a_small_change_of_the_level_is_held_back_and_a_large_one_passes():
    small, large = regression(6, 6, 6, 6, 6).shared[1], regression(1, 1, 1, 1, 1).shared[1]
    assert 0 < small < 0.8 * np.log(0.6 / 0.4)
    assert large < 0.85 * np.log(0.1 / 0.9) < 0


def test_cells_chosen_for_their_confidence_move_less_than_random_ones():
    truth, candidates, p = world()
    decided = np.where(audit(truth, candidates, 20) >= 0, 0.0, np.nan)
    drawn, chosen = (
        calibrate(candidates, None, p, decided, np.full(truth.shape, sampled))
        for sampled in (True, False)
    )
    none = calibrate(candidates, None, p)
    means = [shares(found, candidates).mean() for found in (drawn, chosen, none)]
    assert means == sorted(means)


def test_a_decision_does_not_overwrite_its_confidence():
    truth, candidates, p = world()
    decided = np.full(truth.shape, np.nan)
    i, j = np.argwhere((candidates > 0) & (p > 0.8))[0]
    decided[i, j] = 0
    before, after = (calibrate(candidates, None, p, d).confidences for d in (None, decided))
    assert 0.6 * before[i, j] < after[i, j] < before[i, j]


def test_no_decisions_is_the_same_as_none_given():
    _, candidates, p = world()
    without, empty = (calibrate(candidates, None, p, d) for d in (None, np.full(p.shape, np.nan)))
    assert np.array_equal(without.confidences, empty.confidences)


def test_memorised_candidates_show_nothing_and_are_kept_in_their_order():
    truth, candidates, p = world()
    memorised = 0.9 * candidates + 0.1 * p
    found = calibrate(candidates, None, memorised).confidences
    assert (found[candidates > 0] > 0.5).all()
    assert disambiguation_metrics(truth, candidates, found)["auc"] > 0.6


@pytest.mark.parametrize(
    "candidates",
    [np.zeros((9, 3)), np.ones((9, 3)), np.eye(9, 3), np.ones((9, 1)), np.ones((3, 200))],
    ids=["none", "all", "few", "one label", "more than can compete"],
)
def test_odd_candidates_give_finite_numbers(candidates):
    Y_hat = np.random.default_rng(0).random(candidates.shape)
    decided = np.where(candidates, 1.0, np.nan)
    for given in (None, decided):
        found = calibrate(candidates, None, Y_hat, given)
        assert np.isfinite(found.confidences).all()


def test_reliability_compares_claims_with_outcomes():
    confidences = np.array([0.05, 0.05, 0.95, 0.95, 0.5])
    truth = np.array([0, 1, 1, 1, np.nan])
    claimed, true_share, n_cells = reliability(confidences, truth)
    assert claimed == pytest.approx([0.05, 0.95])
    assert true_share == pytest.approx([0.5, 1])
    assert n_cells.tolist() == [2, 2]
    assert expected_calibration_error(confidences, truth) == pytest.approx(0.25)
    assert np.isnan(expected_calibration_error(confidences, truth, np.zeros(5)))


def test_many_labels_do_not_overflow_the_count_model():
    _, candidates, p = world(n=300, n_labels=159)
    found = calibrate(candidates, None, p).confidences
    assert np.isfinite(found).all()


def with_whole(M):
    """Put a label before the others that is there wherever one of the first two is."""
    return np.concatenate([M[:, :2].any(axis=1, keepdims=True), M], axis=1)


def test_a_label_is_at_least_as_likely_as_one_of_its_kinds():
    truth, candidates, _ = world(n=2000)
    truth, candidates = (with_whole(M).astype(np.uint8) for M in (truth, candidates))
    assert set(Noise.fit(candidates, candidates).kinds) == {(1, 0), (2, 0)}
    memorised = np.where(candidates, 0.9, 0.02)
    c = calibrate(candidates, None, memorised).confidences.astype(np.float64)
    some = candidates[:, 0] > 0
    one_of_them = 1 - (1 - c[some, 1]) * (1 - c[some, 2])
    assert (c[some, 0] >= one_of_them - 1e-2).all()
    assert (c[~some, 0] == 0).all()


def test_a_label_is_kept_where_one_of_its_kinds_is():
    _, candidates, _ = world(n=2000)
    candidates = with_whole(candidates).astype(np.uint8)
    noise = Noise.fit(candidates, candidates)
    offered = Candidates.of(candidates)
    of_kind = offered.cells[1] == 1
    _, kept = noise.coherent(offered, np.full(len(of_kind), 0.3), of_kind)
    keeps = np.zeros(candidates.shape, bool)
    keeps[offered.cells] = kept
    assert (keeps[:, 0] == keeps[:, 1]).all()
    assert not keeps[:, 2:].any()


def test_a_label_shows_no_less_than_its_kinds_together():
    _, candidates, _ = world(n=2000)
    candidates = with_whole(candidates).astype(np.uint8)
    noise, predictions = Noise.fit(candidates, candidates), np.where(candidates, 0.6, 0.02)
    predictions[:, 0] = 0.1
    chance, order = noise.evidence(candidates, None, predictions)
    x, odds = np.full(candidates.shape, -np.inf), np.full(candidates.shape, np.inf)
    offered = Candidates.of(candidates).cells
    x[offered], odds[offered] = order, chance[0]
    some = candidates[:, 0] > 0
    together = np.logaddexp(x[some, 1], x[some, 2])
    assert (x[some, 0] >= together).all()
    assert (x[some, 0] == together).any()
    assert (odds[some, 0] <= odds[some, 1:3].min(axis=1)).all()


def test_labels_offered_together_by_chance_or_always_are_no_kinds():
    _, candidates, _ = world(n=2000)
    assert Noise.fit(candidates, candidates).kinds == ()
    everywhere, twice = np.ones((2000, 1), np.uint8), candidates[:, :1]
    more = np.concatenate([everywhere, twice, candidates], axis=1)
    assert Noise.fit(more, more).kinds == ()
    mistaken = with_whole(candidates)
    mistaken[np.flatnonzero(candidates[:, 0])[:2], 0] = False
    assert set(Noise.fit(mistaken, mistaken).kinds) == {(1, 0), (2, 0)}
    assert (calibrate(mistaken, None, 0.9 * mistaken).confidences[mistaken == 0] == 0).all()


def test_without_a_floor_a_label_counts_by_its_frequency_not_by_its_mean_prediction():
    rng = np.random.default_rng(0)
    Y = (rng.random((1000, 4)) < 0.5).astype(np.uint8)
    Y_hat = np.where(Y, [0.09, 0.09, 0.02, 0.02], 0)  # learned from targets at other levels
    assert np.ptp(shares(calibrate(Y, None, Y_hat), Y)) < 0.1
