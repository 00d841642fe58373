"""Every page in every state, in a real browser; and the whole way by keyboard alone."""

import re
from collections.abc import Iterator

import pytest
from app_server import LONG, Server, serving
from app_stages import Stage
from finished_run import finished_run, keep_map
from native_widgets import choose, tab_to
from playwright.sync_api import expect

from core.data.demo import load_demo
from core.store import Workspace

pytestmark = pytest.mark.e2e
PAGES = ("Train", "Explore", "Review", "Tune", "Compare", "Export", "Data")


@pytest.fixture(scope="module")
def served(tmp_path_factory) -> Iterator[tuple[Server, dict[str, str]]]:
    """A server of a finished run, a failed one and one at work; their ids."""
    folder, data = tmp_path_factory.mktemp("states") / "space", load_demo(n_instances=200)
    space = Workspace(folder)
    made = {"finished": finished_run(space, data)}
    keep_map(space, made["finished"])
    space.close()
    stages = {state: Stage(folder, data).set(state) for state in ("failed", "running")}
    with serving(folder) as server:
        yield server, made | {state: stage.run_id for state, stage in stages.items()}
    for stage in stages.values():
        stage.close()


def look_at_every_page(page) -> None:
    expect(page.locator(".st-key-frame-steps")).to_be_visible(timeout=LONG)
    for title in PAGES:
        page.locator(".st-key-frame-steps").get_by_text(title, exact=True).first.click()
        path = "/" if title == "Data" else f"/{title.lower()}"
        page.wait_for_url(lambda url, path=path: url.split("?")[0].endswith(path), timeout=LONG)
        expect(page.get_by_test_id("stStatusWidget")).to_have_count(0, timeout=LONG)
        expect(page.get_by_test_id("stException")).to_have_count(0)
        expect(page.get_by_test_id("stMain").locator("p, h3, canvas").first).to_be_visible()


def test_an_empty_workspace_says_on_every_page_what_to_do(serve, open_page):
    server = serve()
    page = open_page(server.url)
    look_at_every_page(page)
    assert "Traceback" not in server.errors()


def test_every_page_draws_every_run(served, open_page):
    server, runs = served
    for state, run_id in runs.items():
        page = open_page(f"{server.url}train?run={run_id}&annotator=ann")
        badge = page.locator(".st-key-train-bar").get_by_text(state, exact=True)
        expect(badge).to_be_visible(timeout=LONG)
        look_at_every_page(page)
        page.close()
    assert "Traceback" not in server.errors()


def test_the_choices_of_the_frame_are_made_written_and_kept_in_the_address(served, open_page):
    server, runs = served
    page = open_page(f"{server.url}train?run={runs['finished']}")
    run = page.get_by_role("combobox", name="Run", exact=True)
    who = page.get_by_role("textbox", name="Annotator", exact=True)
    state = page.locator(".st-key-train-bar")
    expect(state.get_by_text("finished")).to_be_visible(timeout=LONG)
    names = {state: re.compile(run_id[-6:]) for state, run_id in runs.items()}
    expect(run).to_have_value(names["finished"])
    choose(page, "Run", f"try · {runs['failed'][-6:]}")
    expect(state.get_by_text("failed")).to_be_visible(timeout=LONG)
    who.fill("<b>ann</b>")
    who.press("Enter")
    page.wait_for_url(lambda url: "annotator=%3Cb%3Eann" in url and runs["failed"] in url)
    page.reload()
    expect(who).to_have_value("<b>ann</b>", timeout=LONG)
    expect(run).to_have_value(names["failed"])
    who.fill("")
    who.press("Enter")
    page.wait_for_url(lambda url: "annotator" not in url)
    expect(who).to_have_value("")
    choose(page, "Run", "new run")
    expect(page.get_by_role("button", name="Start training")).to_be_visible(timeout=LONG)


def test_the_whole_way_by_keyboard_alone(serve, open_page):
    page = open_page(serve().url)
    expect(page.get_by_text("Nothing loaded yet")).to_be_visible(timeout=LONG)
    tab_to(page, "Open the demo")
    page.keyboard.press("Enter")
    expect(page.get_by_text("What it holds")).to_be_visible(timeout=LONG)
    tab_to(page, "Train on it")
    page.keyboard.press("Enter")
    expect(page.locator(".st-key-train-start")).to_be_visible(timeout=LONG)
    tab_to(page, "Start training")
    page.keyboard.press("Enter")
    finished = page.locator(".st-key-train-bar").get_by_text("finished", exact=True)
    expect(finished).to_be_visible(timeout=2 * LONG)
    page.locator("body").evaluate("() => document.activeElement.blur()")
    tab_to(page, "Explore")
    page.keyboard.press("Enter")
    expect(page.locator('[data-part="frame"][data-drawn]')).to_be_attached(timeout=LONG)
    tab_to(page, "Map; arrow keys")
    page.keyboard.press("+")
    tab_to(page, "Next")
    page.keyboard.press("Enter")
    expect(page.get_by_label("Instance", exact=True)).to_have_value("scene-0001", timeout=LONG)
