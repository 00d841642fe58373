"""What pages say where there is little: a run without an epoch, a single label."""

import numpy as np
import pytest
from app_stages import texts
from finished_run import finished_run

from core.data.dataset import CandidateDataset
from core.engine.config import PlainConfig
from core.runs import worker
from core.store import RunState


@pytest.mark.parametrize("state", [RunState.FAILED, RunState.STOPPED])
def test_a_run_that_ended_before_its_first_epoch_says_so_and_has_its_log(stage, open_app, state):
    stage.set("loaded")
    fingerprint = stage.space.datasets()[0].fingerprint
    run = stage.space.runs.create(fingerprint, PlainConfig(seed=17), "early")
    stage.space.runs.finish(run.id, state, "out of memory")
    log = worker.log_of(stage.space, run.id)
    log.parent.mkdir(parents=True, exist_ok=True)
    log.write_text("Traceback: CUDA out of memory")
    stage.run_id = run.id
    app = open_app("train")
    assert not app.exception
    assert "ended before its first epoch" in texts(app)
    assert "…</b>" not in " ".join(one.proto.body for one in app.get("html"))  # nothing is awaited
    app.segmented_control(key="train.section").set_value("Log").run()
    assert not app.exception
    assert "CUDA" in app.code[0].value
    (used,) = (one.value for one in app.dataframe if "setting" in one.value)
    assert dict(zip(used["setting"], used["value"], strict=True))["seed"] == "17"


def test_a_single_label_has_no_others_to_be_related_to(stage, open_app):
    data = stage.dataset
    alone = np.ascontiguousarray(data.candidates[:, :1])
    stage.dataset = CandidateDataset(data.features, alone, data.label_names[:1], data.ids)
    stage.run_id = finished_run(stage.space, stage.dataset)
    app = open_app("explore")
    app.segmented_control(key="explore.part").set_value("Labels").run()
    assert not app.exception
    assert "one label" in app.info[0].value
