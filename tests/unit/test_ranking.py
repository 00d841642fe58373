"""Runs judged by what is known of the cells, or by each other; their consensus."""

import numpy as np
import pytest

from core.data.demo import load_demo
from core.errors import ConfigError, StoreError
from core.methods.choice import method_config
from core.runs import worker
from core.runs.ranking import judge, judge_each_other
from core.store import Workspace

RNG = np.random.default_rng(0)
ROWS = np.repeat(np.arange(200), 3)
TRUE = RNG.random(600) < 0.5


def said(noise):
    return np.clip(TRUE * 0.6 + 0.2 + noise * RNG.normal(size=600), 0, 1)


def test_the_better_run_is_first_and_ranks_say_how_sure_that_is():
    good, fair, bad = said(0.1), said(0.4), RNG.random(600)
    found = judge([bad, good, fair], ROWS, TRUE.astype(float))
    assert np.argsort(-found.scores).tolist() == [1, 2, 0]
    assert np.argsort(found.ranks).tolist() == [1, 2, 0]
    assert found.n_parts == 10
    assert found.ranks[0] - found.ranks[1] > found.distance
    assert found.good == [1, 2]  # two at least


def test_with_little_known_there_are_scores_and_no_diagram():
    known = np.full(600, np.nan)
    known[:12] = TRUE[:12]
    found = judge([said(0.1), said(0.2), said(0.3)], ROWS, known)
    assert found.ranks is None
    assert "Too little" in found.why_not
    assert judge([said(0.1)] * 3, ROWS, np.full(600, np.nan)) is None
    assert "three" in judge([said(0.1), said(0.2)], ROWS, TRUE.astype(float)).why_not


def test_among_themselves_the_odd_one_is_seen():
    found = judge_each_other([said(0.1), said(0.1), said(0.2), RNG.random(600)])
    assert int(np.argmin(found.scores)) == 3
    assert judge_each_other([said(0.1), said(0.1)]) is None


def test_a_consensus_is_a_run_of_what_runs_predict_together(tmp_path):
    demo, space = load_demo(n_instances=100), Workspace(tmp_path)
    fingerprint = space.add_dataset(demo, "demo")
    ids = []
    for name in ("ml-knn", "pml-ni"):
        ids.append(space.runs.create(fingerprint, method_config(name), name).id)
        worker.run_training(space, ids[-1])
    config = method_config("consensus", {"runs": " ".join(ids)})
    run = worker.run_training(space, space.runs.create(fingerprint, config, "both").id)
    assert run.state == "finished"
    each = [np.load(space.runs.folder(one) / "predictions.npy") for one in (*ids, run.id)]
    np.testing.assert_allclose(each[2], (each[0] + each[1]) / 2, atol=1e-6)
    with pytest.raises(ConfigError, match="two runs"):
        method_config("consensus", {"runs": ids[0]})
    other = space.add_dataset(load_demo(n_instances=90), "other")
    with pytest.raises(StoreError, match="same data"):
        worker.run_training(space, space.runs.create(other, config).id)
