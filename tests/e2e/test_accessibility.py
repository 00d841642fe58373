"""Every page, its tabs and popovers by axe-core, light and dark; every page by keyboard alone."""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from app_server import LONG, serving
from desk_driver import address, desk, make_picture_run, press
from finished_run import finished_run, keep_map
from native_widgets import tab_to
from playwright.sync_api import expect

from core.data.demo import load_demo
from core.store import Workspace

pytestmark = pytest.mark.e2e
AXE = Path(__file__).parents[2] / "node_modules" / "axe-core" / "axe.min.js"
PAGES = ("Data", "Train", "Explore", "Review", "Tune", "Compare", "Export")
TAB_BARS = {
    "Train": "train-section",
    "Explore": "explore-part",
    "Review": "review-part",
    "Tune": "tune-part",
    "Export": "export-chart",
}

FIND = """async (rules) => {
  const options = { resultTypes: ["violations"], ...(rules && { runOnly: rules }) };
  const found = await axe.run(document, options);
  const bad = found.violations.filter((one) => ["serious", "critical"].includes(one.impact));
  const listed = ({ id, nodes }) => nodes.map((one) => [id, one.target.flat().join(" "), one.html]);
  return bad.flatMap(listed);
}"""

ANIMATED = """() => Promise.allSettled(
  document.getAnimations()
    .filter((one) => Number.isFinite(one.effect.getComputedTiming().endTime))
    .map((one) => one.finished)
)"""


@pytest.fixture(scope="module")
def axe() -> str:
    if AXE.exists():
        return AXE.read_text("utf-8")
    if os.environ.get("PLAIN_JS_TESTS") == "required":
        pytest.fail("axe-core is not installed, and PLAIN_JS_TESTS is required: npm ci")
    pytest.skip("axe-core is not installed: npm ci")


class Pages(NamedTuple):
    """Addresses: Train of one of two finished runs, and a desk that asks about pictures."""

    train: str
    desk: str


@pytest.fixture(scope="module")
def pages(tmp_path_factory) -> Iterator[Pages]:
    folder, data = tmp_path_factory.mktemp("finished") / "space", load_demo(n_instances=200)
    of_pictures = make_picture_run(folder)
    space = Workspace(folder)
    run_id, _ = [finished_run(space, data, seed=seed) for seed in range(2)]
    keep_map(space, run_id)
    space.close()
    with serving(folder) as server:
        yield Pages(f"{server.url}train?run={run_id}&annotator=ann", address(server, of_pictures))


def violations(page, dark: bool) -> list[list[str]]:
    """Return what axe finds; dark by what depends on colours: the rest is the same in light."""
    return page.evaluate(FIND, ["color-contrast", "link-in-text-block"] if dark else None)


def go_to(page, title: str) -> None:
    page.locator(".st-key-frame-steps").get_by_text(title, exact=True).first.click()
    path = "/" if title == "Data" else f"/{title.lower()}"
    page.wait_for_url(lambda url: url.split("?")[0].endswith(path), timeout=LONG)
    expect(page.get_by_test_id("stMain").locator("p, h3, canvas").first).to_be_visible(timeout=LONG)
    settle(page)


def parts(page, tab_bar: str | None) -> Iterator[str]:
    """Open the tabs, expanders and popovers of a page one after the other; the last stays open."""
    main = page.get_by_test_id("stMain")
    tabs = page.locator(f".st-key-{tab_bar} button") if tab_bar else None
    for name in tabs.all_inner_texts()[1:] if tabs else ():
        tabs.filter(has_text=re.compile(f"^{re.escape(name)}$")).click()
        settle(page)
        yield name
    closed = main.locator("details:not([open]) > summary")
    while closed.count():
        name = closed.first.inner_text()
        closed.first.click()
        settle(page)
        yield name
    for at in range(main.get_by_test_id("stPopoverButton").count()):
        button, body = main.get_by_test_id("stPopoverButton").nth(at), "stPopoverBody"
        if button.is_enabled():
            page.keyboard.press("Escape")  # closes the one before
            expect(page.get_by_test_id(body)).to_have_count(0, timeout=LONG)
            button.click()
            expect(page.get_by_test_id(body)).to_be_visible(timeout=LONG)
            settle(page)
            yield button.inner_text()


def settle(page) -> None:
    """Wait until nothing is drawn any more, with the pointer and its colours out of the way."""
    page.mouse.move(0, 0)
    expect(page.get_by_test_id("stStatusWidget")).to_have_count(0, timeout=LONG)
    expect(page.locator('[data-test-script-state="running"]')).to_have_count(0, timeout=LONG)
    page.evaluate(ANIMATED)


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_axe_finds_nothing_serious_and_no_open_popover_is_in_the_way(pages, open_page, axe, dark):
    page = open_page(pages.train, dark=dark)
    expect(page.locator(".st-key-train-bar")).to_be_visible(timeout=LONG)
    page.evaluate(axe)
    found = []
    n_opened = 0
    for title in PAGES:
        go_to(page, title)  # by one click, whatever is open
        found += [(title, *one) for one in violations(page, dark)]
        for name in parts(page, TAB_BARS.get(title)):
            n_opened += 1
            found += [(title, name, *one) for one in violations(page, dark)]
    assert found == []
    assert n_opened > 20  # there were tabs and popovers to be looked at


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_axe_finds_nothing_serious_on_the_desk_its_panels_and_its_picture(
    pages, open_page, axe, dark
):
    page = open_page(pages.desk, dark=dark)
    desk(page)
    page.evaluate(axe)
    panel, lens = page.locator('[data-part="panel"]'), page.locator('[data-part="zoom"] .lens')
    found = []
    for key, shown in (("?", panel), ("p", panel), ("z", lens)):
        press(page, key)
        expect(shown).to_be_visible(timeout=LONG)
        settle(page)
        found += [(key, *one) for one in violations(page, dark)]
        press(page, "Escape")
        expect(shown).to_be_hidden(timeout=LONG)
    assert found == []


# Of each page: what Tab comes to, the key that uses it, and what is there afterwards.
CONTROLS = {
    "Data": ("Train on it", "Enter", ".st-key-train-start, .st-key-train-bar"),
    "Train": ("Curves", "ArrowRight Space", ".st-key-train-evolution"),
    "Explore": ("Next", "Enter", ".st-key-explore-card"),
    "Review": ("Keys", "Enter", '[data-part="panel"]:not([hidden])'),
    "Tune": ("α", "ArrowRight", ".moved"),
    "Compare": ("Which method", "Enter", '[data-testid="stPopoverBody"]'),
    "Export": ("Download", "", ""),
}


def test_every_page_is_used_by_keyboard_alone(pages, open_page):
    page = open_page(pages.train)
    expect(page.locator(".st-key-train-bar")).to_be_visible(timeout=LONG)
    for title, (name, key, after) in CONTROLS.items():
        page.evaluate("() => document.activeElement.blur()")
        tab_to(page, title, "A ")
        page.keyboard.press("Enter")
        path = "/" if title == "Data" else f"/{title.lower()}"
        page.wait_for_url(lambda url, path=path: url.split("?")[0].endswith(path), timeout=LONG)
        expect(page.get_by_text(name, exact=False).first).to_be_attached(timeout=LONG)
        settle(page)
        tab_to(page, name)
        for one in key.split():
            page.keyboard.press(one)
        if after:
            expect(page.locator(after).first).to_be_visible(timeout=LONG)
        page.keyboard.press("Escape")  # closes what was opened
