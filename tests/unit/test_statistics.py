"""Numbers printed in Demsar, Statistical Comparisons of Classifiers over Multiple Data Sets
(JMLR 7, 2006), and in the PLAIN paper."""

import numpy as np
import pytest
from scipy import stats

from core.bench import statistics

# AUC of C4.5, C4.5+m, C4.5+cf, C4.5+m+cf on 14 data sets (Demsar, Table 6). Of the last but one
# he prints .975 twice and ranks them 2 and 3: one digit more tells them apart.
TABLE = np.array(
    [
        [0.763, 0.768, 0.771, 0.798],
        [0.599, 0.591, 0.590, 0.569],
        [0.954, 0.971, 0.968, 0.967],
        [0.628, 0.661, 0.654, 0.657],
        [0.882, 0.888, 0.886, 0.898],
        [0.936, 0.931, 0.916, 0.931],
        [0.661, 0.668, 0.609, 0.685],
        [0.583, 0.583, 0.563, 0.625],
        [0.775, 0.838, 0.866, 0.875],
        [1.000, 1.000, 1.000, 1.000],
        [0.940, 0.962, 0.965, 0.962],
        [0.619, 0.666, 0.614, 0.669],
        [0.972, 0.981, 0.9751, 0.975],
        [0.957, 0.978, 0.946, 0.970],
    ]
)


def test_friedmans_test_is_demsars():
    found = statistics.friedman(TABLE)
    np.testing.assert_allclose(found.ranks, [3.143, 2.000, 2.893, 1.964], atol=5e-4)
    assert found.chi2 == pytest.approx(9.28, abs=0.005)
    assert found.F == pytest.approx(3.69, abs=0.005)
    assert found.critical == pytest.approx(2.85, abs=0.01)
    assert found.p < 0.05


def test_critical_distances_are_demsars_and_the_papers():
    assert statistics.nemenyi_distance(4, 14) == pytest.approx(1.25, abs=0.005)
    assert statistics.nemenyi_distance(4, 14, 0.10) == pytest.approx(1.12, abs=0.005)
    assert statistics.bonferroni_dunn_distance(4, 14) == pytest.approx(1.16, abs=0.015)
    assert statistics.bonferroni_dunn_distance(4, 14, 0.10) == pytest.approx(1.04, abs=0.005)
    assert statistics.bonferroni_dunn_distance(7, 30) == pytest.approx(1.47, abs=0.005)
    q = [statistics.nemenyi_distance(k, 1) / np.sqrt(k * (k + 1) / 6) for k in (2, 3, 10)]
    np.testing.assert_allclose(q, [1.960, 2.343, 3.164], atol=2e-3)  # Demsar, Table 5


def test_wilcoxons_ranks_are_demsars():
    """C4.5 against C4.5+m: R+ = 93, R- = 12."""
    difference = TABLE[:, 1] - TABLE[:, 0]
    assert stats.wilcoxon(difference, zero_method="zsplit").statistic == 12
    (found,) = statistics.wilcoxon_holm(TABLE[:, 1], TABLE[:, [0]])
    assert found.effect == pytest.approx((93 - 12) / 105)
    assert found.p == found.adjusted < 0.05


def test_holm_is_demsars_example():
    """His example: p of .016, .607 and .019 at level .05 (control C4.5): two hypotheses fall only
    if .016 < .05/3 and .019 < .05/2."""
    adjusted = statistics.holm([0.016, 0.607, 0.019])
    np.testing.assert_allclose(adjusted, [0.048, 0.607, 0.048])
    assert statistics.holm([0.04, 0.04, 0.04]) == pytest.approx([0.12, 0.12, 0.12])


def test_wins_ties_and_losses_are_counted_by_paired_t_tests():
    rng = np.random.default_rng(0)
    noise = 0.01 * rng.standard_normal((4, 10))
    base = 0.5 + 0.1 * rng.random((4, 10))
    shifts = np.array([0.05, -0.05, 0.0, 0.0])[:, None]
    noise[3] = 0  # equal in every fold
    noise[2] -= noise[2].mean()
    assert statistics.win_tie_loss(base + shifts + noise, base) == (1, 2, 1)
    assert statistics.win_tie_loss(base + 0.1, base) == (4, 0, 0)


def test_the_bayesian_test_knows_better_equal_and_worse():
    rng = np.random.default_rng(1)
    base = rng.random(20)
    assert statistics.bayesian_signed_rank(base + 0.05, base).better > 0.99
    assert statistics.bayesian_signed_rank(base, base + 0.05).worse > 0.99
    assert statistics.bayesian_signed_rank(base + 0.002, base).equal > 0.99
    mixed = base + np.where(np.arange(20) % 2, 0.05, -0.05)
    better, equal, worse = statistics.bayesian_signed_rank(mixed, base)
    assert better + equal + worse == pytest.approx(1)
    assert better == pytest.approx(worse, abs=0.02)
    assert 0.05 < better < 0.2


def test_equal_methods_differ_in_nothing():
    same = np.tile(np.arange(5.0)[:, None], (1, 3))
    assert statistics.friedman(same).chi2 == pytest.approx(0)
    assert [one.p for one in statistics.wilcoxon_holm(same[:, 0], same[:, 1:])] == [1.0, 1.0]
