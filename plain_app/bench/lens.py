"""Times the lens in a real browser: `python -m plain_app.bench.lens [MOVES]`.

A run is made on the demo and on synthetic data of 7,000 x 11 and 7,000 x 159; sliders move by keys,
one step at random. Timed is from the key to the second frame after everything the move changes was
drawn, charts and tables included. The server's processor time is told too: it is what counts where
others use the machine.
"""

import os
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import psutil
from app_server import CHROMIUM, FLAGS
from finished_run import finished_run
from playwright.sync_api import Browser, Page, sync_playwright

from core.bench.data import clusters
from core.data.dataset import CandidateDataset
from core.data.demo import load_demo
from core.engine.graphs import build_instance_graph
from core.runs.results import keep_neighbors
from core.store import Workspace
from plain_app.bench.app import open_page, say, say_times, seen, served, step

ANSWERED = "find('[data-part=panel]').dataset.answered"


def main(moves: int) -> None:
    print(f"load of the machine before: {os.getloadavg()[0]:.2f}, cores: {os.cpu_count()}\n")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        measure(browser, "demo", load_demo(), moves, 150)
        for n_labels, bar in ((11, 150), (159, 600)):
            one = clusters(7000, 64, n_labels)
            data = CandidateDataset(one.X, one.noisy(3, 0), truth=one.truth)
            measure(browser, f"7k x {n_labels}", data, moves, bar)
        browser.close()


def measure(browser: Browser, name: str, data: CandidateDataset, moves: int, bar: float) -> None:
    with served(ended(data)) as server:
        page = open_page(browser, server.url)
        page.evaluate("addEventListener('keydown', () => (pressed = performance.now()), true)")
        step(page, "Tune", "[data-part=panel] input:enabled")  # drawn last
        rng, process = np.random.default_rng(0), psutil.Process(server.process.pid)
        move(page, rng)  # the first one loads what the others use
        spent = sum(process.cpu_times()[:2])
        say_times(f"lens at {name}: key to drawn", [move(page, rng) for _ in range(moves)], bar)
        cpu = 1000 * (sum(process.cpu_times()[:2]) - spent) / moves
        say(f"lens at {name}: of it the server's processor time, mean", cpu)
        page.close()


def ended(data: CandidateDataset) -> Callable[[Path], str]:
    """Return what prepares a workspace with an ended run whose neighbours were searched."""

    def prepare(folder: Path) -> str:
        space = Workspace(folder)
        graph = build_instance_graph(data.features)
        run_id = finished_run(space, data, instance_graph=graph)
        keep_neighbors(space, run_id)
        space.close()
        return f"?run={run_id}"

    return prepare


def move(page: Page, rng: np.random.Generator) -> float:
    """Move one slider by one step; return the milliseconds until its effect is drawn."""
    sliders = page.locator("[data-part=panel] input:enabled").all()
    slider = sliders[rng.integers(len(sliders))]
    at, last = int(slider.input_value()), int(slider.get_attribute("max") or 0)
    right = at == 0 or (at < last and rng.random() < 0.5)
    page.evaluate(f"window.before = {ANSWERED}")
    slider.press("ArrowRight" if right else "ArrowLeft")
    return seen(page, f"{ANSWERED} !== window.before")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 60)
