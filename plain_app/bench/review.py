"""Prints how the review desk does against every bar of its table. Not a test.

    python -m plain_app.bench.review [latency] [burst] [steady] [kills] [five] [offline]

Every part starts its own server on a temporary workspace with the demo data and a made-up ended
run, and drives it in a real Chromium. Times are taken inside the page: from the key press to the
second animation frame after the next question was put there, and to the server's word that the
answer is committed. A few minutes in all; best on a machine that does nothing else.
"""

import os
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep

import numpy as np
from app_server import CHROMIUM, FLAGS, Server
from desk_driver import (
    WATCH,
    address,
    answered,
    answers,
    desk,
    doubled,
    expect_saved,
    make_run,
    stored,
)
from playwright.sync_api import Browser, Page, sync_playwright

from core.data.demo import load_demo

PEOPLE, EACH = 5, 200


def main(names: list[str]) -> None:
    print(f"load of the machine before: {os.getloadavg()[0]:.2f}, cores: {os.cpu_count()}\n")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        for name in names or list(PARTS):
            print(f"{name}", flush=True)
            PARTS[name](browser)
        browser.close()


@contextmanager
def opened(
    browser: Browser, annotator: str = "ann", **more: str
) -> Iterator[tuple[Server, str, Page]]:
    """A server on fresh demo data, its run, and a page with the desk on it."""
    with tempfile.TemporaryDirectory() as folder:
        space = Path(folder) / "space"
        run_id = make_run(space, load_demo())
        server = Server(space).start()
        page = browser.new_context(viewport={"width": 1440, "height": 900}).new_page()
        try:
            page.goto(address(server, run_id, annotator, **more))
            desk(page)
            page.evaluate(WATCH)
            yield server, run_id, page
        finally:
            page.context.close()
            server.stop()


def tell(page: Page) -> None:
    for name, values in page.evaluate("told").items():
        p50, p95, most = np.percentile(values, [50, 95, 100])
        print(f"    {name}: n {len(values)}, p50 {p50:.0f} ms, p95 {p95:.0f} ms, max {most:.0f} ms")


def check(server: Server, page: Page, pressed: int) -> None:
    expect_saved(page)
    rows = stored(server.workspace)
    lost = pressed - answers(rows)
    counts = f"pressed {pressed}, moved on {answered(page)}, stored {answers(rows)}"
    print(f"    {counts}, lost {lost}, doubled {len(doubled(rows))}")


def pressing(every: float, count: int) -> Callable[[Browser], None]:
    """Return a part that presses `a` so many times, one every so many milliseconds."""

    def part(browser: Browser) -> None:
        with opened(browser) as (server, _, page):
            for _ in range(count):
                at = monotonic()
                page.keyboard.press("x")
                page.wait_for_timeout(max(0.0, every - 1000 * (monotonic() - at)))
            check(server, page, count)
            tell(page)

    return part


def kills(browser: Browser) -> None:
    """Kill the server between key press and answer, 20 times."""
    with opened(browser) as (server, _, page):
        false_promises = 0
        for round_ in range(20):
            page.keyboard.press("x")
            sleep(0.002 * round_)  # from before the request to after the commit
            server.kill()
            status = page.locator('[data-part="status"]')
            promised = answered(page) - (status.get_attribute("data-state") != "saved")
            false_promises += answers(stored(server.workspace)) < promised
            server.start()
            expect_saved(page)
        print(f"    called saved but not stored: {false_promises} of 20")
        check(server, page, 20)


def five(browser: Browser) -> None:
    """Five people in five browsers, 200 answers each, all at once."""
    # In other orders the answers of one settle what the next would be asked, until nothing is left.
    order = {"review.order": "Random, for the estimates"}
    with opened(browser, "person-0", **order) as (server, run_id, first):
        pages = [first]
        for at in range(1, PEOPLE):
            page = browser.new_context(viewport={"width": 1440, "height": 900}).new_page()
            page.goto(address(server, run_id, f"person-{at}", **order))
            desk(page)
            page.evaluate(WATCH)
            pages.append(page)
        start = monotonic()
        while unfinished := [page for page in pages if answered(page) < EACH]:
            for page in unfinished:
                if desk_is_asking(page):
                    page.keyboard.press("x")
        for page in pages:
            expect_saved(page)
        spent = monotonic() - start
        rows = stored(server.workspace)
        holders = defaultdict(set)
        for one in rows:
            holders[one.instance_id].add(one.annotator)
        twice = sum(len(people) > 1 for people in holders.values())
        print(f"    {PEOPLE} x {EACH} answers in {spent:.0f} s; stored {answers(rows)} answers")
        print(f"    ({len(rows)} decisions), doubled {len(doubled(rows))}, given twice: {twice}")
        for page in pages:
            tell(page)


def offline(browser: Browser, seconds: float = 120) -> None:
    """No network for two minutes, one answer a second."""
    with opened(browser) as (server, _, page):
        page.context.set_offline(True)
        end, pressed = monotonic() + seconds, 0
        while monotonic() < end:
            if desk_is_asking(page):
                page.keyboard.press("x")
                pressed += 1
            page.wait_for_timeout(1000)
        shown = page.locator('[data-part="status"]').inner_text()
        print(f"    after {seconds:.0f} s: {shown!r}; stored {answers(stored(server.workspace))}")
        page.context.set_offline(False)
        check(server, page, answered(page))


def desk_is_asking(page: Page) -> bool:
    return page.locator('[data-part="desk"]').get_attribute("data-state") == "asking"


PARTS: dict[str, Callable[[Browser], None]] = {
    "latency": pressing(400, 100),
    "burst": pressing(50, 40),
    "steady": pressing(500, 240),
    "kills": kills,
    "five": five,
    "offline": offline,
}

if __name__ == "__main__":
    main(sys.argv[1:])
