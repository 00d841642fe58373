"""What the review desk shows of the data: pictures looked at closely, hostile texts."""

import re
from collections.abc import Iterator

import numpy as np
import pytest
from app_server import serving
from desk_driver import (
    address,
    answered,
    desk,
    expect_saved,
    make_picture_run,
    make_run,
    press,
)
from playwright.sync_api import expect

from core.data.dataset import CandidateDataset

pytestmark = pytest.mark.e2e
HOSTILE = '<img src=x onerror="document.title=1">'


@pytest.fixture(scope="module")
def desks(tmp_path_factory) -> Iterator[tuple[str, str]]:
    """The addresses of a desk that shows pictures, and of one that shows hostile texts."""
    folder = tmp_path_factory.mktemp("data") / "space"
    of_pictures, of_texts = make_picture_run(folder), make_run(folder, hostile_data())
    with serving(folder) as server:
        yield address(server, of_pictures), address(server, of_texts, "%3Cimg src=x%3E")


def hostile_data() -> CandidateDataset:
    rng = np.random.default_rng(0)
    return CandidateDataset(
        rng.normal(size=(60, 5)).astype(np.float32),
        (rng.random((60, 4)) < 0.7).astype(np.uint8),
        label_names=[HOSTILE, "**b**", "=1+1", "x" * 3000],
        ids=[f"{HOSTILE}{at}" for at in range(60)],
    )


def test_a_picture_is_looked_at_closely(desks, open_page):
    page = open_page(desks[0])
    desk(page)
    small, lens = page.locator('[data-part="picture"]'), page.locator('[data-part="zoom"] .lens')
    large = lens.locator("img")
    assert small.evaluate("one => one.naturalWidth") == 320
    press(page, "?")
    expect(page.locator('[data-part="panel"]')).to_contain_text("Look closer at the picture")
    press(page, "Escape", "z", "a")
    expect(lens).to_be_visible()
    assert answered(page) == 0  # keys are the picture's now
    expect(large).to_have_js_property("naturalWidth", 1024)
    fits = large.bounding_box()["width"]
    press(page, "z")
    assert large.bounding_box()["width"] == pytest.approx(2 * fits, rel=0.05)
    large.click()
    page.mouse.wheel(0, 100)
    expect(large).to_have_css("--zoom", "3.2")
    press(page, "Escape")
    expect(lens).to_be_hidden()
    small.click()
    expect(lens).to_be_visible()
    expect(large).to_have_css("--zoom", "1")
    page.get_by_role("button", name="Close").click()
    expect(lens).to_be_hidden()
    press(page, "a")
    assert answered(page) == 1


def test_hostile_data_is_text(desks, open_page):
    page = open_page(desks[1])
    desk(page)
    press(page, "p", "e", "a", "a")
    expect_saved(page)
    expect(page.get_by_test_id("stException")).to_have_count(0)
    expect(page).to_have_title(re.compile("PLAIN|Review"))
    assert page.locator("img[src='x']").count() == 0
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
