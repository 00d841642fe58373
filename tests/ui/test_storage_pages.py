"""A run that another server made: every page opens it, or says what is missing."""

import shutil

import pytest
from app_stages import texts
from finished_run import finished_run

from core.store import Workspace

PAGES = ("train", "explore", "review", "tune", "export", "compare")


@pytest.fixture
def of_anna(tmp_path, small_demo, monkeypatch, request):
    """The stage's server shares a database and a storage with another, which made the run."""
    monkeypatch.setenv("PLAIN_DATABASE_URL", f"sqlite:///{tmp_path / 'shared.db'}")
    monkeypatch.setenv("PLAIN_STORAGE_URL", (tmp_path / "storage").as_uri())
    anna = Workspace(tmp_path / "anna")
    run_id = finished_run(anna, small_demo)
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
