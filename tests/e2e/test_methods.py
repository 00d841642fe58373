"""Which method for my data? One is trained in Train, another from Compare, and both are judged."""

import pytest
from journey import LONG, step
from native_widgets import choose
from playwright.sync_api import expect

pytestmark = pytest.mark.e2e


def test_a_method_is_chosen_run_and_compared_with_another(serve, open_page):
    server = serve("--data", "demo")
    page = open_page(server.url)
    expect(page.get_by_text("What it holds")).to_be_visible(timeout=LONG)
    step(page, "Train")
    expect(page.locator(".st-key-train-start")).to_be_visible(timeout=LONG)
    choose(page, "Method", "ml-knn")
    form = page.locator(".st-key-train-method_form")
    expect(form.get_by_text("Instances near each other share labels")).to_be_visible(timeout=LONG)
    page.locator(".st-key-train-start button").click()
    state = page.locator(".st-key-train-bar").get_by_text("finished", exact=True)
    expect(state).to_be_visible(timeout=LONG)
    step(page, "Compare")
    expect(page.get_by_text("Two or more, side by side")).to_be_visible(timeout=LONG)
    page.get_by_role("button", name="Which method for my data?").click()
    page.locator(".st-key-compare-methods").get_by_text("pml-ni", exact=True).click()
    page.locator(".st-key-compare-start button").click()
    expect(page.get_by_text("Which fits this data?")).to_be_visible(timeout=LONG)
    expect(page.get_by_text("Judged by the truth")).to_be_visible(timeout=LONG)
    chosen = page.locator(".st-key-compare-of")
    for name in ("ml-knn", "pml-ni"):
        expect(chosen.get_by_text(name).first).to_be_visible()
    expect(page.get_by_test_id("stException")).to_have_count(0)
    assert "Traceback" not in server.errors()
