import base64
import io

import numpy as np
from PIL import Image

from core.data.demo import _CONFUSABLE, load_demo


def test_demo_is_as_documented():
    data = load_demo()
    assert data.candidates.shape == (3000, 10)
    false = (data.candidates - data.truth).sum(axis=1)
    assert (data.candidates >= data.truth).all()
    assert set(np.unique(false)) == {1, 2, 3}
    assert 1 <= data.truth.sum(axis=1).min()
    assert data.truth.sum(axis=1).max() <= 4


def test_demo_is_the_same_every_time_and_another_with_another_seed(demo):
    assert load_demo(n_instances=400).fingerprint == demo.fingerprint
    assert load_demo(n_instances=400, seed=1).fingerprint != demo.fingerprint


def test_every_scene_has_its_picture(demo):
    head, data = demo.display["image"][5].split(",")
    assert head == "data:image/png;base64"
    picture = np.asarray(Image.open(io.BytesIO(base64.b64decode(data))))
    assert picture.shape == (16, 16)
    assert picture.std() > 10


def test_false_candidates_are_mostly_confusable_digits():
    data = load_demo()
    pairs = np.zeros((10, 10), bool)
    for one, other in _CONFUSABLE:
        pairs[one, other] = pairs[other, one] = True
    false = data.candidates > data.truth
    confusable = (data.truth @ pairs > 0)[false].mean()
    could = (data.truth @ pairs > 0)[data.truth == 0].mean()
    assert confusable > 0.8 > 0.7 > could
