"""Tune and Compare in a real browser: dragging, and links that land on what they stand for."""

import re
from urllib.parse import urljoin

import pytest
from app_server import LONG, serving
from finished_run import finished_run, keep_map
from native_widgets import choose_row
from playwright.sync_api import expect

from core import tuning
from core.data.demo import load_demo
from core.engine.config import PlainConfig
from core.runs.results import keep_neighbors
from core.store import Workspace
from core.tuning import StudySettings
from core.tuning.search import work
from plain_app.widgets.links import instance_address, trial_address

pytestmark = pytest.mark.e2e
PICTURE_ROW = 44


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    """A server of two ended runs and a study that ended."""
    folder, demo = tmp_path_factory.mktemp("tune") / "space", load_demo(n_instances=300)
    space = Workspace(folder)
    run_ids = [finished_run(space, demo, seed=seed) for seed in (0, 1)]
    for run_id in run_ids:
        keep_neighbors(space, run_id)
        keep_map(space, run_id)
    settings = StudySettings(base=PlainConfig(epochs=2, device="cpu"), n_trials=5)
    study = tuning.create_study(space, demo.fingerprint, settings, "try")
    work(space, study.id)
    space.close()
    with serving(folder) as server:
        yield server.url, run_ids, study.id, demo


def changed(page):
    return page.locator(".st-key-tune-figures b").first


def lasso(page, box) -> None:
    """Draw a line around everything in a plot."""
    corners = ((0.01, 0.02), (0.99, 0.02), (0.99, 0.98), (0.01, 0.98), (0.01, 0.05))
    places = [(box["x"] + box["width"] * x, box["y"] + box["height"] * y) for x, y in corners]
    page.mouse.move(*places[0])
    page.mouse.down()
    for place in places[1:]:
        page.mouse.move(*place, steps=5)
    page.mouse.up()


def test_a_dragged_slider_changes_charts_while_it_moves_and_never_queues_up(prepared, open_page):
    url, (run_id, _), _, _ = prepared
    page = open_page(urljoin(url, f"/tune?run={run_id}"))
    slider = page.locator("input[data-name=threshold]")
    expect(slider).to_be_visible(timeout=LONG)
    expect(changed(page)).to_have_text("0", timeout=LONG)
    panel = page.locator('[data-part="panel"]')
    before = panel.get_attribute("data-answered")
    box = slider.bounding_box()
    height = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + box["width"] / 2, height)
    page.mouse.down()
    for step in range(30):
        page.mouse.move(box["x"] + box["width"] * (0.5 + 0.4 * step / 30), height)
        page.wait_for_timeout(25)
    expect(panel).not_to_have_attribute("data-answered", before, timeout=LONG)  # still held
    expect(changed(page)).not_to_have_text("0")
    page.mouse.up()
    place = int(slider.input_value())
    value = page.locator(".row", has=slider).locator(".value").inner_text()
    assert float(value) == pytest.approx(0.02 * (place + 1), abs=0.001)
    expect(page.locator(".st-key-tune-distribution canvas").first).to_be_visible()
    choose_row(page.locator(".st-key-tune-cells"), 1, PICTURE_ROW)
    expect(page.get_by_label("Instance", exact=True)).to_have_value(
        re.compile("scene-"), timeout=LONG
    )
    slider.dblclick()
    expect(changed(page)).to_have_text("0", timeout=LONG)


def test_links_land_on_the_instance_the_run_and_the_comparison(prepared, open_page):
    url, run_ids, study_id, demo = prepared
    page = open_page(urljoin(url, instance_address(run_ids[0], demo.ids[7])))
    expect(page.get_by_label("Instance", exact=True)).to_have_value(demo.ids[7], timeout=LONG)
    page.goto(urljoin(url, trial_address(study_id, 2)))
    expect(page.locator(".st-key-train-title")).to_contain_text("trial 2", timeout=LONG)
    page.goto(urljoin(url, f"/tune?tune.part=Search&study={study_id}"))
    expect(page.locator(".st-key-tune-history .main-svg").first).to_be_visible(timeout=LONG)
    lasso(page, page.locator(".st-key-tune-history .nsewdrag").first.bounding_box())
    picked = page.locator(".st-key-tune-picked_bar")
    expect(picked).to_contain_text("5 trials picked in the plot", timeout=LONG)
    page.locator(".st-key-tune-compare button").click()
    expect(page.locator(".st-key-compare-of").get_by_text("trial").first).to_be_visible(
        timeout=LONG
    )
    page.goto(urljoin(url, f"/compare?of={','.join(run_ids)}"))
    page.locator(".st-key-compare-review button").click(timeout=LONG)
    expect(page).to_have_url(re.compile("/review.*selection="), timeout=LONG)
    expect(page.get_by_test_id("stException")).to_have_count(0)
