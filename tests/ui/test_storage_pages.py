"""A run that another server made: every page opens it, or says what is missing."""

import shutil

import numpy as np
import pytest
from app_stages import texts
from finished_run import finished_run, keep_map

from core.engine.config import PlainConfig
from core.store import RunState, Workspace, files

PAGES = ("train", "explore", "review", "tune", "export", "compare")


@pytest.fixture
def of_anna(tmp_path, small_demo, monkeypatch, request):
    """The stage's server shares a database and a storage with another, which made the run."""
    monkeypatch.setenv("PLAIN_DATABASE_URL", f"sqlite:///{tmp_path / 'shared.db'}")
    monkeypatch.setenv("PLAIN_STORAGE_URL", (tmp_path / "storage").as_uri())
    anna = Workspace(tmp_path / "anna")
    run_id = finished_run(anna, small_demo)
    keep_map(anna, run_id)
    anna.share_all()
    anna.close()
    stage = request.getfixturevalue("stage")
    stage.run_id = run_id
    return stage


@pytest.mark.parametrize("page", PAGES)
def test_a_page_shows_the_run_of_another_server(of_anna, open_app, page):
    app = open_app(page)
    assert not app.exception
    assert not app.error
    assert "the files are on" not in str(app.main).lower()
    assert (of_anna.space.folder / "cache" / "runs" / of_anna.run_id).is_dir()
    assert not app.get("progress") or page == "train"  # which has one of its own


@pytest.mark.parametrize("page", ["train", "explore", "review", "tune", "export"])
def test_a_page_says_which_object_is_missing_and_what_to_do(of_anna, open_app, tmp_path, page):
    shutil.rmtree(tmp_path / "storage" / "runs")
    app = open_app(page)
    assert not app.exception
    assert "A file is missing in the object storage." in texts(app)
    assert "uploads what is missing" in texts(app)


def test_a_run_whose_server_fell_silent_can_go_on_here(of_anna, open_app, tmp_path, monkeypatch):
    anna = Workspace(tmp_path / "anna")
    run = anna.runs.create(anna.runs.get(of_anna.run_id).fingerprint, PlainConfig(epochs=3))
    anna.runs.claim(run.id, 1, 1.0)
    of_anna.run_id = run.id
    of_anna.keep_the_only_place()
    monkeypatch.setattr("core.runs.worker.SILENT_SECONDS", -1.0)
    app = open_app("train")
    assert "The run can be resumed there." in texts(app)
    assert not [one for one in app.button if one.key == "train.here"]  # nothing was uploaded
    files.write_arrays(anna.runs.folder(run.id) / "checkpoint.npz", epoch=np.array(0))
    anna.share(f"runs/{run.id}")
    anna.close()
    app.run()
    app.button(key="train.here").click().run()
    assert not app.exception
    new = of_anna.space.runs.get(app.session_state["frame.run"])
    assert (new.state, new.machine) == (RunState.QUEUED, of_anna.space.machines.here)
    assert new.id != run.id
