"""The program as a person uses it: a real server, a real browser, real training processes."""

import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from app_server import Server, end_runs, serving
from finished_run import finished_run, keep_map
from journey import (
    LONG,
    expect_live,
    expect_no_traceback,
    expect_state,
    run_on,
    runs,
    section,
    start_training,
    step,
)
from native_widgets import choose_row, open_part, point_at
from playwright.sync_api import expect

from core.data.demo import load_demo
from core.engine.config import PlainConfig
from core.store import Workspace
from plain_app.widgets.tour import STOPS

pytestmark = pytest.mark.e2e
SHOTS = os.environ.get("PLAIN_SCREENSHOTS")


@pytest.fixture(scope="module")
def served_demo(tmp_path_factory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("demo") / "space", "--data", "demo") as server:
        yield server


@pytest.fixture
def demo_server(served_demo) -> Iterator[Server]:
    """A server of the demo, on which each test makes a run; none goes on after its test."""
    yield served_demo
    end_runs(served_demo.workspace)
    if served_demo.process.poll() is not None:  # a test that kills it did not come to its end
        served_demo.start()


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Iterator[str]:
    """The address of an ended run called first; another one waits."""
    space = Workspace(tmp_path_factory.mktemp("made") / "space")
    run_id = finished_run(space, load_demo(n_instances=300))
    keep_map(space, run_id)
    space.runs.rename(run_id, "first")
    space.runs.create(space.runs.get(run_id).fingerprint, PlainConfig(), "second")
    space.close()
    with serving(space.folder) as server:
        yield f"{server.url}train?run={run_id}"


def wait_for_end(page, workspace: Path) -> None:
    for _ in range(LONG // 50):
        if all(run.state.is_ended for run in runs(workspace)):
            return
        page.wait_for_timeout(100)
    raise AssertionError("the run does not end")


def loaded_libraries(pid: int) -> str:
    return Path(f"/proc/{pid}/maps").read_text()


def test_the_demo_from_start_to_a_finished_run_watched_live(demo_server, open_page):
    server = demo_server
    page = open_page(server.url)
    expect(page.get_by_text("What it holds")).to_be_visible(timeout=LONG)
    start_training(page, 100)
    expect_live(page)
    expect_state(page, "running")
    expect(page.locator(".st-key-train-pause button")).to_be_visible()
    expect_state(page, "finished")
    expect_values_under_the_pointer(page)
    for title, key in (
        ("Confidences", "evolution"),
        ("Unstable cells", "unstable"),
        ("Two epochs", "difference"),
        ("Cartography", "cartography"),
    ):
        section(page, title)
        expect(page.locator(f".st-key-train-{key}")).to_be_visible(timeout=LONG)
        assert f"train.section={title.replace(' ', '+')}" in page.url
    travel_to_the_first_epoch(page)
    expect_no_traceback(page)
    if Path(f"/proc/{server.process.pid}/maps").exists():
        assert not re.search("libtorch|faiss", loaded_libraries(server.process.pid))
    assert "Traceback" not in server.errors()


def expect_values_under_the_pointer(page) -> None:
    """The chart of curves tells its values, zooms into a part and back, and saves a picture."""
    chart = page.locator(".st-key-train-curves")
    canvas = chart.locator("canvas").first
    canvas.scroll_into_view_if_needed()
    point_at(page, canvas, 0.25, chart.get_by_text("AUC of all cells"))
    box = canvas.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 3)
    page.wait_for_timeout(500)  # the tooltip is gone
    whole = canvas.screenshot()
    for _ in range(5):  # a busy browser may not have the zoom ready when it is dragged
        box = canvas.bounding_box()  # what is above may have come meanwhile
        page.mouse.click(box["x"] + box["width"] - 45, box["y"] + 6)  # the zoom
        page.wait_for_timeout(300)
        page.mouse.move(box["x"] + 150, box["y"] + 80)
        page.mouse.down()
        page.mouse.move(box["x"] + 300, box["y"] + 180, steps=6)
        page.mouse.up()
        page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 3)
        page.wait_for_timeout(1000)
        if canvas.screenshot() != whole:
            break
    assert canvas.screenshot() != whole
    with page.expect_download(timeout=LONG) as saved:
        chart.get_by_role("button", name="Download as PNG").click()
    assert saved.value.suggested_filename.endswith(".png")


def travel_to_the_first_epoch(page) -> None:
    """A reload finds the section in the address; its scrubber is answered."""
    section(page, "Confidences")
    expect(page.locator(".st-key-train-evolution")).to_be_visible(timeout=LONG)
    page.reload()
    panel = page.locator(".st-key-train-scrub .panel")
    expect(panel).to_have_attribute("data-answered", "0", timeout=LONG)
    page.get_by_role("slider", name="Epoch").press("Home")
    expect(panel.locator("output")).to_have_text("1")
    expect(panel).not_to_have_attribute("data-answered", "0", timeout=LONG)


def test_a_run_is_found_again_and_survives_its_own_death_and_the_servers(demo_server, open_page):
    server = demo_server
    page = open_page(server.url)
    start_training(page, 5000)
    expect_live(page)
    page.reload()
    expect_live(page)
    expect_state(page, "running")
    other = open_page(page.url)
    expect_live(other)
    expect_state(other, "running")
    other.locator(".st-key-train-pause button").click()
    expect_state(page, "paused")
    page.locator(".st-key-train-resume button").click()
    expect_state(other, "running")
    other.close()
    os.kill(run_on(page, server.workspace).pid, signal.SIGKILL)
    expect_state(page, "interrupted")
    page.locator(".st-key-train-resume button").click()
    expect_state(page, "running")
    before = run_on(page, server.workspace)
    server.kill()
    epoch = page.locator(".st-key-train-figures b").first
    seen = epoch.inner_text()
    server.start()
    expect(epoch).not_to_have_text(seen, timeout=LONG)  # the tab came back by itself
    page.locator(".st-key-train-stop button").click()
    expect_state(page, "stopped")
    after = run_on(page, server.workspace)
    assert after.pid == before.pid
    assert after.epoch >= before.epoch
    expect_no_traceback(page)


def test_the_tour_goes_from_data_to_export_and_is_offered_once(serve, open_page, pictures):
    server = serve("--data", "demo")
    page = open_page(server.url, is_new=True)
    card = page.get_by_role("dialog", name="Tour")
    card.get_by_role("button", name="Take the tour").click(timeout=LONG)
    for at, stop in enumerate(STOPS):
        expect(card.get_by_text(stop.title)).to_be_visible(timeout=LONG)
        expect(page.locator(stop.selector).first).to_be_visible(timeout=LONG)
        framed = page.locator(stop.selector).first
        expect(framed).to_have_css("outline-style", "solid", timeout=LONG)
        if at == 5:
            take(page, pictures, "tour", "light")
        if STOPS[at + 1 :] and STOPS[at + 1].page == "Review":  # there are no questions before
            wait_for_end(page, server.workspace)
        card.get_by_role("button", name=re.compile("Next|Done")).click()
    expect(card).to_have_count(0)
    page.reload()
    expect(page.locator(".st-key-frame-steps")).to_be_visible(timeout=LONG)
    expect(page.locator(".st-key-tour button")).to_be_visible(timeout=LONG)
    expect(card).to_have_count(0)
    page.locator(".st-key-tour button").click()
    expect(card.get_by_text(STOPS[0].title)).to_be_visible(timeout=LONG)
    page.keyboard.press("Escape")
    expect(card).to_have_count(0)
    expect_no_traceback(page)


@pytest.fixture
def pictured(request, open_page) -> str:
    """The address of a run that is worth a picture, where pictures are kept; else of a made one."""
    if not SHOTS:
        return request.getfixturevalue("made")
    page = open_page(request.getfixturevalue("demo_server").url)
    start_training(page, 30)
    expect_state(page, "finished")
    page.close()
    return page.url


def test_every_view_fits_the_screen_and_is_pictured(pictured, open_page, pictures):
    for scheme in ("light", "dark") if SHOTS else ("light",):  # dark is seen by axe, too
        page = open_page(pictured, dark=scheme == "dark")
        for title in ("Curves", "Confidences", "Unstable cells", "Cartography"):
            section(page, title)
            expect_no_traceback(page)
            take(page, pictures, title.split()[0].lower(), scheme)
        step(page, "Data")
        expect(page.locator(".st-key-data-charts canvas").first).to_be_visible(timeout=LONG)
        take(page, pictures, "data", scheme)
        step(page, "Explore")
        umap = page.locator('[data-part="frame"][data-drawn*="|umap|"]')
        expect(umap).to_be_attached(timeout=2 * LONG)
        take(page, pictures, "explore", scheme)
        open_part(page, "explore-part", "Labels")
        expect(page.locator(".st-key-explore-network canvas").first).to_be_visible(timeout=LONG)
        take(page, pictures, "labels", scheme)
        step(page, "Review")
        name = page.locator(".st-key-review-name input")
        expect(name).to_be_visible(timeout=LONG)
        name.fill(scheme)
        name.press("Enter")
        for _ in range(3):
            expect(page.locator('[data-part="desk"][data-state="asking"]')).to_be_visible(
                timeout=LONG
            )
            page.keyboard.press("x")  # the first are random: blind, nothing to accept
        take(page, pictures, "review", scheme)
        step(page, "Export")
        expect(page.locator(".st-key-export-figures")).to_be_visible(timeout=LONG)
        take(page, pictures, "export", scheme)
        page.close()


def take(page, folder: Path, name: str, scheme: str) -> None:
    """Save the page in two sizes; nothing may be wider than the screen."""
    for suffix, width, height in (("-small", 1024, 768), ("", 1440, 900)):
        page.set_viewport_size({"width": width, "height": height})
        expect(page.get_by_test_id("stStatusWidget")).to_have_count(0, timeout=LONG)
        page.evaluate("document.fonts.ready.then(() => 0)")
        if SHOTS:
            page.wait_for_timeout(400)  # charts follow the size
            page.screenshot(path=folder / f"screenshot-{name}-{scheme}{suffix}.png")
        too_wide = "document.documentElement.scrollWidth > window.innerWidth"
        assert not page.evaluate(too_wide)


def test_a_click_on_a_cell_of_the_cartography_opens_its_instance(made, open_page):
    page = open_page(made)
    section(page, "Cartography")
    chart = page.locator(".st-key-train-cartography")
    expect(chart.locator('[data-part="frame"][data-drawn]')).to_be_attached(timeout=LONG)
    box = chart.locator('[data-part="overlay"]').bounding_box()
    for part in (0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8):  # cells lie on a curve across the middle
        page.mouse.click(box["x"] + part * box["width"], box["y"] + 0.5 * box["height"])
        page.wait_for_timeout(700)
        if "/explore" in page.url:
            break
    expect(page.locator(".st-key-explore-card")).to_be_visible(timeout=LONG)
    assert "explore.instance=scene-" in page.url


def test_runs_are_chosen_in_their_list(made, open_page):
    page = open_page(made)
    table = page.locator(".st-key-train-runs")
    expect(table.locator("canvas").first).to_be_visible(timeout=LONG)
    choose_row(table, 0)  # the newest
    expect(page.locator(".st-key-train-open")).to_be_visible(timeout=LONG)
    choose_row(table, 1)
    expect(page.get_by_role("button", name="Compare 2")).to_be_visible(timeout=LONG)
    choose_row(table, 0)
    page.locator(".st-key-train-open button").click(timeout=LONG)
    expect(page.locator(".st-key-train-title")).to_contain_text("first", timeout=LONG)
