"""The level: an interval that holds the truth, nothing rejected where nothing shows false ones."""

import re

import numpy as np
import pytest
from scipy.special import expit

from core.cli.screen import parse_expectation
from core.confidence.calibration import calibrate
from core.confidence.level import Level, expected_range
from core.confidence.offer_curve import OfferCurve
from core.engine.metrics import f1
from core.errors import ConfigError, PlainError


def world(false_share, seed=0, n=1500, n_labels=8, strength=3.0):
    """Labels of different frequency that features show more or less, and even false ones."""
    rng = np.random.default_rng(seed)
    signal = rng.normal(0, strength, (n, n_labels))
    truth = rng.random(signal.shape) < expit(rng.normal(-2, 1, n_labels) + signal)
    seen = expit(rng.normal(-2, 1, n_labels) + 0.8 * signal + 0.5 * rng.normal(size=signal.shape))
    n_false = int(false_share / (1 - false_share) * truth.sum())
    candidates = truth.copy().ravel()
    candidates[rng.permutation(np.flatnonzero(~candidates))[:n_false]] = True
    return truth, candidates.reshape(truth.shape), seen


@pytest.mark.parametrize("strength", [1.0, 3.0])
@pytest.mark.parametrize("false_share", [0.0, 0.05, 0.2, 0.5])
def test_the_interval_holds_the_truth_and_resolving_does_no_harm(false_share, strength):
    truth, candidates, seen = world(false_share, strength=strength)
    level = Level.fit(candidates, seen)
    assert level.share_low <= false_share <= level.share_high
    resolved = calibrate(candidates, None, seen, level=level).confidences > 0.5
    assert f1(truth, resolved) >= f1(truth, candidates) - 0.005
    if false_share == 0.5:
        assert f1(truth, resolved) > f1(truth, candidates) + 0.03


def test_clean_labels_are_all_kept_however_weak_the_features():
    truth, _, _ = world(0.0)
    noise = np.random.default_rng(1).random(truth.shape)
    resolved = calibrate(truth, None, noise).confidences > 0.5
    assert resolved[truth].all()


def test_regular_numbers_of_false_candidates_are_found():
    rng = np.random.default_rng(0)
    p = expit(rng.normal(-1.5, 1, 6) + rng.normal(0, 2, (1000, 6)))
    truth = rng.random(p.shape) < p
    order = np.where(truth, np.inf, rng.random(p.shape))
    candidates = truth | (order.argsort(axis=1).argsort(axis=1) < 3)
    level = Level.fit(candidates, p)
    assert level.e == pytest.approx(candidates[~truth].mean(), abs=0.02)
    assert level.share_low <= 1 - truth.sum() / candidates.sum() <= level.share_high


def test_regular_numbers_of_true_labels_are_seldom_taken_for_false_ones():
    taken = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        strength = 0.5 * rng.standard_normal((1000, 12)) + np.linspace(-1, 1, 12)
        place = np.argsort(np.argsort(-strength - rng.gumbel(size=strength.shape), axis=1), axis=1)
        truth = place < rng.integers(3, 6, len(place))[:, None]
        seen = expit(strength - 1)
        taken.append(OfferCurve(truth, seen).counted(truth, seen, 0.005, 0.02) > 0.005)
    assert sum(taken) <= 1  # by chance; two where any gain in likelihood was enough


def test_the_few_cells_in_which_rare_labels_are_true_are_told_apart():
    rng = np.random.default_rng(1)
    p = expit(rng.normal(-10, 4.5, (1000, 30)))
    candidates = (rng.random(p.shape) < p) | (rng.random(p.shape) < 0.05)
    curve = OfferCurve(candidates, p)
    labels = np.broadcast_to(np.arange(30), p.shape)
    found = curve.at(0.05)(curve.score(p, slice(None)), labels)
    assert found[p > 0.9].mean() > 0.9
    assert found[p < 0.02].mean() < 0.02


def test_a_curve_is_the_same_wherever_its_fit_begins():
    _, candidates, seen = world(0.2)
    curve = OfferCurve(candidates, seen)
    labels = np.broadcast_to(np.arange(8), seen.shape)
    u = curve.score(seen, slice(None))
    alone, after = curve.at(0.05, 0.03), curve.at(0.05, 0.03, like=curve.at(0.01, 0.03))
    assert after(u, labels) == pytest.approx(alone(u, labels), abs=0.01)


def test_what_is_expected_is_a_prior_and_not_a_fact():
    _, candidates, seen = world(0.2)
    none, few, most = (Level.fit(candidates, seen, one) for one in (None, 0.02, 0.8))
    assert few.share <= none.share <= most.share
    assert few.share > 0.1  # the data show more
    expecting = calibrate(candidates, None, seen, level=most).confidences[candidates]
    assert (
        expecting.mean()
        < calibrate(candidates, None, seen, level=none).confidences[candidates].mean()
    )


@pytest.mark.parametrize("bad", [-0.1, (0.3, 0.1), (0.2, 1.5)])
def test_an_expectation_is_a_share(bad):
    with pytest.raises(ConfigError):
        expected_range(bad)


def test_the_gradient_of_the_curve_is_that_of_its_loss():
    _, candidates, seen = world(0.2, n=300)
    curve = OfferCurve(candidates, seen)
    theta = curve._start + 0.1 * np.random.default_rng(0).normal(size=len(curve._start))
    step = 1e-5 * np.eye(len(theta))
    loss = [[curve._loss(theta + s * one, None, None)[0] for s in (1, -1)] for one in step]
    slope = np.array([(up - down) / 2e-5 for up, down in loss])
    assert curve._loss(theta, None, None)[1] == pytest.approx(slope, abs=1e-3)


def test_stored_numbers_are_read_again_and_answers_narrow_the_interval():
    _, candidates, seen = world(0.2)
    level = Level.fit(candidates, seen)
    assert Level.from_array(level.to_array()) == level
    before, after = level.after(0, 0), level.after(24, 30)
    assert before == (1 - level.share_high, 1 - level.share_low)
    assert after[0] < 0.8 < after[1]
    assert after[1] - after[0] < before[1] - before[0]


def test_the_sentence_says_what_is_seen_and_what_would_narrow_it():
    clean, noisy = (Level.fit(*world(share)[1:]) for share in (0.0, 0.35))
    assert "if any" in clean.sentence
    assert re.match(r"\d+% to \d+% of the candidates", noisy.sentence)
    assert all("random answers" in one.sentence for one in (clean, noisy))


@pytest.mark.parametrize(
    ("text", "wanted"), [("5%", 0.05), ("5-20%", (0.05, 0.2)), ("0.1", 0.1), ("20", 0.2)]
)
def test_an_expectation_is_read_from_the_command_line(text, wanted):
    assert parse_expectation(text) == {"expected_false": pytest.approx(wanted)}


@pytest.mark.parametrize("text", ["few", "1-2-3%", ""])
def test_a_bad_expectation_is_refused(text):
    with pytest.raises(PlainError):
        parse_expectation(text)
