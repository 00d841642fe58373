import numpy as np
import pytest

from core.data.noise import confusable_candidates, resemblance, uniform_candidates
from core.errors import ConfigError

RNG = np.random.default_rng(0)
TRUTH = (RNG.random((500, 10)) < 0.2).astype(np.uint8)


@pytest.mark.parametrize("r", [0, 1, 3])
def test_uniform_noise_adds_exactly_r_false_labels(r):
    candidates = uniform_candidates(TRUTH, r, seed=1)
    assert (candidates >= TRUTH).all()
    assert ((candidates - TRUTH).sum(axis=1) == r).all()


def test_where_fewer_than_r_labels_are_false_all_become_candidates():
    truth = np.array([[1, 1, 1, 0], [1, 0, 0, 0]])
    assert uniform_candidates(truth, 3).tolist() == [[1, 1, 1, 1], [1, 1, 1, 1]]


def test_same_seed_same_candidates():
    assert np.array_equal(uniform_candidates(TRUTH, 2, 5), uniform_candidates(TRUTH, 2, 5))
    assert not np.array_equal(uniform_candidates(TRUTH, 2, 5), uniform_candidates(TRUTH, 2, 6))


def test_confusable_noise_prefers_what_an_instance_resembles():
    looks = np.full(TRUTH.shape, 0.01)
    looks[:, 3] = 1
    candidates = confusable_candidates(TRUTH, looks, seed=0)
    false = candidates - TRUTH
    assert set(np.unique(false.sum(axis=1))) <= {1, 2, 3}
    could = TRUTH[:, 3] == 0
    assert false[could, 3].mean() > 0.7 > 3 * false[could][:, [1, 2]].mean()


def test_resemblance_is_highest_for_the_own_labels():
    X = TRUTH @ RNG.standard_normal((10, 6)) + 0.1 * RNG.standard_normal((500, 6))
    looks = resemblance(X, TRUTH)
    assert looks[TRUTH == 1].mean() > looks[TRUTH == 0].mean()


@pytest.mark.parametrize(
    "looks", [np.ones((2, 2)), -np.ones((500, 10)), np.full((500, 10), np.nan)]
)
def test_unusable_resemblance_is_refused(looks):
    with pytest.raises(ConfigError):
        confusable_candidates(TRUTH, looks)


def test_negative_r_is_refused():
    with pytest.raises(ConfigError):
        uniform_candidates(TRUTH, -1)
