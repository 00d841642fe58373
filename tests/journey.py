"""What journeys through the app have in common: its steps, and a run on the page Train."""

from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from app_server import LONG
from native_widgets import open_part
from playwright.sync_api import expect

from core.store import Workspace


def step(page: Any, title: str) -> None:
    page.locator(".st-key-frame-steps").get_by_text(title, exact=True).first.click()


def start_training(page: Any, epochs: int) -> None:
    step(page, "Train")
    field = page.locator(".st-key-train-epochs input")
    another = page.locator(".st-key-train-another button")
    expect(field.or_(another).first).to_be_visible(timeout=LONG)
    if another.count():  # an earlier run is open
        another.click()
    field.fill(str(epochs))
    field.press("Enter")
    page.locator(".st-key-train-start button").click()
    expect(page.locator(".st-key-train-bar")).to_be_visible(timeout=LONG)


def expect_live(page: Any) -> None:
    expect(page.locator(".st-key-train-curves canvas").first).to_be_visible(timeout=LONG)


def expect_state(page: Any, state: str) -> None:
    badge = page.locator(".st-key-train-bar").get_by_text(state, exact=True)
    expect(badge).to_be_visible(timeout=LONG)


def expect_no_traceback(page: Any) -> None:
    expect(page.get_by_test_id("stException")).to_have_count(0)


def section(page: Any, title: str) -> None:
    open_part(page, "train-section", title)


def runs(workspace: Path) -> list:
    space = Workspace(workspace)
    try:
        return space.runs.list()
    finally:
        space.close()


def run_on(page: Any, workspace: Path):
    """Return the run that a page shows."""
    (run_id,) = parse_qs(urlsplit(page.url).query)["run"]
    return next(one for one in runs(workspace) if one.id == run_id)
