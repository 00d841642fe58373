"""A real server on a free port, a temporary workspace, a real browser."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from app_server import CHROMIUM, FLAGS, LONG, Server, end_runs

REQUIRED = os.environ.get("PLAIN_BROWSER_TESTS") == "required"


@pytest.fixture(scope="module")
def browser() -> Iterator[object]:
    """Chromium; it ends with the module, for where Playwright is at work asyncio.run is not."""
    if CHROMIUM is None:
        if REQUIRED:
            pytest.fail("no Chromium was found, and PLAIN_BROWSER_TESTS is required")
        pytest.skip("no Chromium was found")
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=LONG)
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield opened
        opened.close()


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[..., Server]]:
    """Start servers on a temporary workspace; all end with the test."""
    started: list[Server] = []

    def start(*arguments: str, port: str = "") -> Server:
        started.append(Server(tmp_path / "space", *arguments))
        started[-1].port = port
        return started[-1].start()

    yield start
    for server in started:
        server.stop()
        server.log.close()
    if (tmp_path / "space").exists():
        end_runs(tmp_path / "space")


@pytest.fixture
def open_page(browser) -> Iterator[Callable[..., object]]:
    """Open pages that must not ask another host for anything, nor raise in the browser."""
    opened, strangers, errors = [], [], []

    def open_one(
        url: str, width: int = 1440, height: int = 900, dark: bool = False, is_new: bool = False
    ) -> object:
        scheme = "dark" if dark else "light"
        page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
        page.set_default_timeout(LONG)
        if not is_new:  # those who come again are not offered the tour
            page.add_init_script("localStorage.setItem('plain.tour', 'seen')")
        page.on("request", lambda one: strangers.append(one.url) if is_strange(one.url) else None)
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("console", lambda one: errors.append(one.text) if "Policy" in one.text else None)
        page.goto(url)
        opened.append(page)
        return page

    yield open_one
    for page in opened:
        page.close()  # also when the test closed it
    assert strangers == []
    assert errors == []


def is_strange(url: str) -> bool:
    return not url.startswith(("http://127.0.0.1:", "ws://127.0.0.1:", "data:", "blob:"))


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    """Where screenshots go: a folder named by PLAIN_SCREENSHOTS, or a temporary one."""
    folder = Path(os.environ.get("PLAIN_SCREENSHOTS") or tmp_path / "screenshots")
    folder.mkdir(parents=True, exist_ok=True)
    return folder
