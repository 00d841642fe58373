"""A database restored without its files: every page says what is gone and what still works."""

import shutil

import pytest
from finished_run import finished_run

from core.store import Decision, RunState


def shown(app):
    kinds = (app.subheader, app.caption, app.text)
    return "\n".join([*(str(one.value) for kind in kinds for one in kind), *labels(app)])


def labels(app):
    return [one.label for one in app.button]


PAGES = ("train", "explore", "review", "tune", "export", "compare")


@pytest.fixture
def lost(stage):
    """A finished run with a decision; its files are taken away, and those of its data if asked."""
    stage.run_id = finished_run(stage.space, stage.dataset)
    cell = {"instance_id": stage.dataset.ids[0], "label": stage.dataset.label_names[0]}
    one = Decision(fingerprint=stage.dataset.fingerprint, verdict="keep", annotator="ann", **cell)
    stage.space.decisions.add(one)

    def lose(*folders):
        for name in folders:
            shutil.rmtree(stage.space.folder / name)
        return stage

    return lose


@pytest.mark.parametrize("page", PAGES)
def test_a_page_of_a_run_without_files_says_what_still_works(lost, open_app, page):
    lost("runs")
    app = open_app(page)
    assert not app.exception
    if page != "compare":  # which lists only runs that can be compared
        assert "files of this run are gone" in shown(app)
        assert "1 decisions" in shown(app)
        assert "rain again" in shown(app)


@pytest.mark.parametrize("page", ["data", *PAGES])
def test_without_the_data_every_page_leads_to_data(lost, open_app, page):
    lost("runs", "datasets")
    app = open_app(page)
    assert not app.exception
    if page != "compare":
        assert "gone" in shown(app)
        assert "again, unchanged" in shown(app)


def test_a_new_run_on_data_without_files_is_not_offered(lost, open_app):
    lost("runs", "datasets")
    app = open_app("train")
    app.button(key="train.another").click().run()
    assert not app.exception
    assert "files of this data are gone" in shown(app)
    assert "Start training" not in labels(app)


def test_the_same_data_loaded_again_brings_all_back_but_the_run(lost, open_app):
    stage = lost("runs", "datasets")
    stage.space.add_dataset(stage.dataset, "again")
    stage.keep_the_only_place()
    app = open_app("train")
    assert "Train again" in labels(app)
    app.button(key="train.again").click().run()
    assert not app.exception
    assert stage.space.runs.list()[0].state is RunState.QUEUED
