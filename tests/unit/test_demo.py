import base64
import io

import numpy as np
from PIL import Image

from core.data.crowd_demo import RATERS, load_crowd_demo
from core.data.demo import _CONFUSABLE, DEMOS, load_demo
from core.engine.config import PlainConfig
from core.engine.trainer import PlainTrainer


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


def test_the_crowd_is_told_apart_without_the_truth():
    data = load_crowd_demo()
    assert data.fingerprint == DEMOS["demo-crowd"].load().fingerprint
    assert (data.candidates.shape, data.votes.n_sources) == ((1200, 8), 5)
    assert set(data.votes.answers.sum(axis=1)) == {3}
    assert len(set(data.display["text"])) == 1200
    trainer = PlainTrainer(PlainConfig.preset("studio", epochs=2))
    list(trainer.epochs(data))
    said = {one["source"]: one for one in trainer.sources.records()}
    for rater in RATERS:
        assert abs(said[rater.name]["sensitivity"] - rater.sees) < 0.05
    resolved = (trainer.confidences >= 0.5) & (data.candidates > 0)
    votes = data.votes.n_yes * 2 > data.votes.n_asked
    errors = [(one != (data.truth > 0)).sum() for one in (resolved, votes)]
    assert errors[0] < errors[1] / 4
