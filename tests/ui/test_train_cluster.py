"""Train: the address of a cluster is a setting like others, and its workers are seen at work."""

import pytest
from app_stages import EPOCHS, opened, texts

from core.cluster.progress import Progress, ProgressFile
from core.engine.config import PlainConfig


@pytest.fixture
def launched(monkeypatch):
    pytest.importorskip("distributed")
    found = []
    monkeypatch.setattr("core.runs.worker.launch", lambda space, run_id: found.append(run_id))
    monkeypatch.setattr("core.runs.worker.start_queued", lambda space: None)
    return found


def test_a_run_is_started_on_a_cluster_that_may_be_used(stage, open_app, launched):
    stage.set("loaded")
    app = opened(open_app("train"), "train.settings")
    assert app.text_input(key="train.cluster").placeholder == "tls://host:8786"
    app.text_input(key="train.cluster").set_value("tcp://10.0.0.1:8786").run()
    app.button(key="train.start").click().run()
    assert not app.exception
    assert launched == []
    assert "unpickle" in texts(app)
    app.text_input(key="train.cluster").set_value(" tls://far.example:8786 ").run()
    app.button(key="train.start").click().run()
    assert not app.exception
    assert stage.space.runs.get(launched[0]).config.cluster == "tls://far.example:8786"


def test_what_every_worker_has_done_is_shown(stage, open_app, monkeypatch):
    monkeypatch.setattr(
        "app_stages.PlainConfig", lambda **more: PlainConfig(cluster="tls://far:1", **more)
    )
    stage.set("running")
    assert stage.space.runs.get(stage.run_id).config.epochs == 2 * EPOCHS
    assert "Cluster" not in texts(open_app("train"))
    told = Progress("networks", 3, 8, {"tcp://a:1": 2, "tcp://b:1": 1})
    ProgressFile(stage.space.runs.folder(stage.run_id))(told)
    shown = texts(open_app("train"))
    assert f"Cluster tls://far:1: {told.sentence}" in shown
    assert "tcp://b:1 1" in shown
