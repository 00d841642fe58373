"""Readings: nothing is rejected that one keeps, and right answers find the one that holds."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit

from core.confidence.calibration import calibrate
from core.confidence.readings import (
    _FLOOR,
    _SHARPNESS,
    Readings,
    borne_out,
    held,
    worth_keeping,
)
from core.engine.metrics import f1


def alike(false_share, seed=0, n=2000, n_labels=5):
    """Candidates whose false ones are predicted like true ones, only less so."""
    rng = np.random.default_rng(seed)
    offered = rng.random((n, n_labels)) < 0.4
    truth = offered & (rng.random(offered.shape) >= false_share)
    of_candidates = np.where(truth, 3.0, 1.0) + 0.6 * rng.standard_normal(offered.shape)
    elsewhere = -3 + 1.5 * rng.standard_normal(offered.shape)
    return truth, offered, expit(np.where(offered, of_candidates, elsewhere))


def answered(truth, offered, n_answers, seed):
    decided = np.full(truth.shape, np.nan)
    cells = np.random.default_rng(seed).permutation(np.argwhere(offered))[:n_answers]
    decided[tuple(cells.T)] = truth[tuple(cells.T)]
    return decided


def resolved(truth, offered, seen, n_answers, seed=0):
    decided = answered(truth, offered, n_answers, seed)
    return f1(truth, calibrate(offered, None, seen, decided).confidences >= 0.5)


def some_readings(expected=None):
    rng = np.random.default_rng(0)
    chance, order = rng.gamma(1, 0.1, (2, 1500)), rng.normal(0, 1.5, 1500)
    return Readings.fit(chance, order, np.array([0.4, 0.6]), expected), chance, order


@pytest.mark.parametrize("false_share", [0.0, 0.1, 0.4])
def test_what_cannot_be_seen_is_kept_until_answers_show_it(false_share):
    truth, offered, seen = alike(false_share)
    none = calibrate(offered, None, seen).confidences
    assert (none >= 0.5)[offered].mean() > 0.98
    given = f1(truth, offered)
    after = np.mean([resolved(truth, offered, seen, 30, seed) for seed in range(5)])
    assert after > given + (0.08 if false_share == 0.4 else -0.002)


@pytest.mark.parametrize("false_share", [0.0, 0.05, 0.2, 0.5])
def test_no_number_of_right_answers_lowers_the_expected_result(false_share):
    truth, offered, seen = alike(false_share, n=300)
    none = f1(truth, calibrate(offered, None, seen).confidences >= 0.5)
    for n_answers in (1, 3, 7, 15, 30, 60):
        found = [resolved(truth, offered, seen, n_answers, seed) for seed in range(6)]
        assert np.mean(found) > none - 0.002


@pytest.mark.parametrize("hidden_share", [0.1, 0.2])
def test_true_labels_that_features_do_not_show_are_not_lost_by_answers(hidden_share):
    rng = np.random.default_rng(0)
    offered = rng.random((400, 5)) < 0.4
    truth = offered & (rng.random(offered.shape) >= 0.2)
    shown = np.where(rng.random(offered.shape) < hidden_share, 0.0, 3.0)  # false ones are at 0.5
    at = np.where(offered, np.where(truth, shown, 0.5), -3)
    seen = expit(at + 0.7 * rng.standard_normal(at.shape))
    none = f1(truth, calibrate(offered, None, seen).confidences >= 0.5)
    for n_answers in (30, 60):
        change = np.mean([resolved(truth, offered, seen, n_answers, s) for s in range(10)]) - none
        assert change > (0.005 if hidden_share == 0.1 else -0.003)


def test_what_answers_take_away_they_bear_out_themselves():
    p, known = np.linspace(0.01, 0.99, 100), np.arange(0, 100, 4)
    rejected = p < 0.4
    wrong = borne_out(p, rejected, known, np.ones(25), np.ones(25))
    assert not wrong.any()
    right = borne_out(p, rejected, known, (p[known] > 0.4).astype(float), np.ones(25))
    assert (right == rejected).all()
    half = borne_out(p, rejected, known, (p[known] > 0.2).astype(float), np.ones(25))
    assert 15 <= half.sum() < rejected.sum()
    assert (p[half].max() < p[rejected & ~half]).all()
    assert not borne_out(p, rejected, known[:0], np.zeros(0), np.zeros(0)).any()
    assert not borne_out(p, p < 0, known, np.ones(25), np.ones(25)).any()


def test_answers_on_random_cells_settle_the_level_and_the_calibration():
    for false_share in (0.0, 0.3):
        truth, offered, seen = alike(false_share)
        off = []
        for seed in range(8):
            decided = answered(truth, offered, 30, seed)
            p = calibrate(offered, None, seen, decided).probabilities[offered]
            off.append(abs(p.mean() - (1 - false_share)))
        assert np.mean(off) < 0.08  # the answers' own share is .096 off


def test_every_reading_has_its_share():
    readings, chance, order = some_readings()
    for at in np.ndindex(readings.weights.shape):
        alone = np.zeros_like(readings.weights)
        alone[at] = 1
        one = replace(readings, weights=alone)
        false = 1 - one.mean(chance, order)[0].mean()
        assert false == pytest.approx(readings.shares[at], abs=0.02)


def test_a_reading_with_a_floor_leaves_some_true_where_the_order_says_least():
    _, chance, order = some_readings()
    readings = Readings.fit(0 * chance, order, np.array([0.4, 0.6]), None)
    lowest = np.full(1, order.min() - 100)
    for k, floor in enumerate(_FLOOR):
        some = np.zeros_like(readings.weights)
        some[:, k] = readings.weights[:, k]
        assert readings.shares[some > 0].max() < 1 - floor
        one = replace(readings, weights=some / some.sum())
        left = one.mean(np.zeros((2, 1)), lowest)[0]
        assert left == pytest.approx(floor, abs=0.01) or _SHARPNESS[k] == 0
    short = Readings.fit(0 * chance, order, np.array([0.4, 0.6]), None, floors=False)
    assert short.weights.shape[1] == (_FLOOR == 0).sum()
    assert short.likely(0 * chance, order) == pytest.approx(readings.likely(0 * chance, order))


def test_answers_multiply_the_weights_by_their_likelihood():
    readings, chance, order = some_readings()
    verdicts = np.array([1.0, 0.0, 1.0])
    cells = np.array([3, 8, 11])
    after = readings.after(chance[:, cells], order[cells], verdicts, np.ones(3))
    wanted = np.empty_like(readings.weights)
    for at in np.ndindex(wanted.shape):
        alone = np.zeros_like(wanted)
        alone[at] = 1
        one = replace(readings, weights=alone)
        p = one.mean(chance[:, cells], order[cells])[0]
        wanted[at] = readings.weights[at] * np.prod(np.where(verdicts > 0, p, 1 - p))
    assert after.weights == pytest.approx(wanted / wanted.sum(), rel=1e-3, abs=1e-9)
    assert readings.after(chance[:, :0], order[:0], verdicts[:0], verdicts[:0]) is readings


def test_what_is_expected_moves_the_weights():
    few, unknown, most = (
        (one.weights * one.shares).sum()
        for one in (some_readings(range_)[0] for range_ in ((0, 0.05), None, (0.6, 0.9)))
    )
    assert few < unknown < most


def test_keeping_is_worth_it_where_the_expected_f1_rises():
    p = np.random.default_rng(0).beta(1, 1.5, 400)
    kept = worth_keeping(p)

    def expected(keep):
        return 2 * p[keep].sum() / (keep.sum() + p.sum())

    best = max(expected(p >= cut) for cut in p)
    assert expected(kept) == pytest.approx(best)
    assert p[kept].min() < 0.5
    assert (held(p, kept) >= 0.5).sum() == kept.sum()
    assert worth_keeping(np.zeros(0)).shape == (0,)


def test_what_is_held_at_even_odds_stays_in_order_between_likely_and_rejected():
    p = np.array([0.1, 0.2, 0.499, 0.5, 0.5001, 0.5004, 0.6, 0.3, 0.49])
    kept = np.array([True] * 7 + [False] * 2)
    found = held(p, kept).astype(np.float32)
    assert (found[:7] >= 0.5).all()
    assert (np.diff(found[:7]) > 0).all()
    assert (found[7:] == p[7:].astype(np.float32)).all()
    assert found == pytest.approx(np.where(kept, np.maximum(p, 0.5), p), abs=1e-3)
