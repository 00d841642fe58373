"""The frame: which data set and run are open, who decides, and what a new session finds again."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Barrier, BrokenBarrierError

import pytest
from streamlit.testing.v1 import AppTest

from core.data.demo import load_demo
from core.engine.config import PlainConfig
from plain_app.services import workspace as services
from plain_app.services.workspace import MAX_PEOPLE, Opened, keep_opened, last_opened


@pytest.fixture
def two(stage, small_demo):
    """Two data sets, the older with two runs and the newer with one; the runs, oldest first."""
    space, other = stage.space, load_demo(n_instances=60)
    older, newer = (space.add_dataset(one, "demo") for one in (small_demo, other))
    made = [space.runs.create(one, PlainConfig(epochs=2)).id for one in (older, older, newer)]
    for run_id in made:
        space.runs.command(run_id, "stop")  # no process trains it
    return older, newer, made


def chosen(app: AppTest) -> tuple[str, str]:
    return app.selectbox(key="frame.data").value, app.selectbox(key="frame.run").value


def test_without_an_address_the_newest_run_of_the_newest_data_is_open(two, open_app):
    _, newer, made = two
    app = open_app("train", run=False)
    assert not app.exception
    assert chosen(app) == (newer, made[2])


def test_without_an_address_what_a_person_had_open_is_open_again(two, open_app):
    older, _, made = two
    app = open_app(run=False)
    app.selectbox(key="frame.data").set_value(older).run()
    app.selectbox(key="frame.run").set_value(made[0]).run()
    assert chosen(open_app(run=False)) == (older, made[0])


def test_each_person_finds_what_was_their_own(two, open_app):
    older, newer, made = two
    for name, data, run_id in (("ann", older, made[1]), ("bob", newer, made[2])):
        keep_opened(name, Opened(data, run_id))
        assert last_opened(name) == (data, run_id)
    assert chosen(open_app(run=False, annotator="ann")) == (older, made[1])


def test_the_list_of_people_does_not_grow_for_ever(two):
    for at in range(MAX_PEOPLE + 3):
        keep_opened(f"p{at}", Opened(two[0]))
    assert last_opened("p0") == Opened()
    assert last_opened(f"p{MAX_PEOPLE + 2}").fingerprint == two[0]


def test_what_two_people_open_at_once_is_kept_of_both(two, monkeypatch):
    both, read = Barrier(2), services._all_opened

    def meet():
        found = read()
        with suppress(BrokenBarrierError):  # where the other has to wait for its turn
            both.wait(0.2)
        return found

    monkeypatch.setattr(services, "_all_opened", meet)
    with ThreadPoolExecutor(2) as threads:
        list(threads.map(lambda who: keep_opened(who, Opened(two[0])), ("ann", "bob")))
    assert {*read()} == {"ann", "bob"}


def test_another_data_set_opens_its_newest_run(two, open_app):
    older, _, made = two
    app = open_app(run=False)
    app.selectbox(key="frame.data").set_value(older).run()
    assert not app.exception
    assert chosen(app) == (older, made[1])
    assert app.query_params["run"] == made[1]


def test_a_new_run_is_in_the_address_too(two, stage, open_app):
    app = open_app("train", run=False)
    app.button(key="train.another").click().run()
    assert chosen(app)[1] == ""
    assert app.query_params["run"] == "new"
    stage.run_id = "new"
    assert chosen(open_app())[1] == ""


def test_a_run_in_the_address_brings_its_data_set(two, stage, open_app):
    older, _, made = two
    stage.run_id = made[0]
    assert chosen(open_app()) == (older, made[0])


def test_data_sets_of_one_name_are_told_apart(two, open_app):
    options = open_app(run=False).selectbox(key="frame.data").options
    assert len(set(options)) == 2


def test_the_annotator_is_written_in_the_frame(two, open_app):
    app = open_app(run=False)
    app.text_input(key="frame.annotator").set_value("ann").run()
    assert app.query_params["annotator"] == "ann"
    app.text_input(key="frame.annotator").set_value("").run()
    assert "annotator" not in app.query_params
