"""Prints how the app does on a run of very many instances. Not a test.

    python -m plain_app.bench.scale FOLDER [ROWS]   # a million without it

The workspace is made in FOLDER unless it is there: an ended run, its predictions made up, on
instances of 16 features and 20 labels. Pages are opened in a real Chromium; every page once, which
may read files, and then again: of these times the p95. Beside each, what the server's processor
did, which other programs do not slow down. The server's log is beside the workspace.
"""

import os
import subprocess
import sys
from pathlib import Path
from time import monotonic

import numpy as np
import psutil
import scipy.sparse as sp
from app_server import CHROMIUM, FLAGS, Server
from desk_driver import WATCH, address, desk, expect_saved
from finished_run import finished_run
from playwright.sync_api import Browser, sync_playwright

from core.confidence.level import Level
from core.engine.graphs import InstanceGraph
from core.review.load import keep_beginning
from core.store import Workspace, files
from plain_app.bench.app import blobs, open_page, say, say_times, step

ROWS, WAIT, ROUNDS, ANSWERS = 1_000_000, 600_000, 4, 20
PAGES = (
    ("Train", ".st-key-train-curves canvas"),
    ("Explore", "[data-part=frame][data-drawn]"),
    ("Review", "[data-part=desk][data-state=asking]"),
    ("Tune", ".st-key-tune-sweep canvas"),
    ("Export", ".st-key-export-plot canvas"),
    ("Data", ".st-key-data-charts canvas"),
)


def main(folder: str, rows: str = str(ROWS)) -> None:
    space = Path(folder) / f"space-{rows}"
    begin = monotonic()
    if not space.exists():
        make(space, int(rows))
        say("workspace made", monotonic() - begin, "s")
    run_id = run_of(space)
    print(f"load of the machine before: {os.getloadavg()[0]:.2f}, cores: {os.cpu_count()}\n")
    server = Server(space).start()
    try:
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
            browse(browser, server, run_id)
            browser.close()
        memory = psutil.Process(server.process.pid).memory_info().rss
        say("memory of the server", memory / 1e9, "GB")
    finally:
        server.kill()  # it may be at work for a while
    export(space, run_id)
    print(f"\nload of the machine after: {os.getloadavg()[0]:.2f}")


def make(space: Path, n: int) -> None:
    """Make a workspace with an ended run of n instances, whose neighbours are of its own label."""
    data = blobs(n, 16, 20)
    order = np.lexsort((data.features[:, 0], data.features.argmax(axis=1)))
    steps = np.arange(1, 6)
    near = order[(np.arange(n)[:, None] + steps) % n]
    weights = np.random.default_rng(0).random(near.shape).astype(np.float32)
    rows = np.repeat(order, len(steps))
    near_by = sp.csr_array((weights.ravel(), (rows, near.ravel())), shape=(n, n))
    workspace = Workspace(space)
    graph = InstanceGraph.from_affinity(near_by + near_by.T)
    run_id = finished_run(workspace, data, instance_graph=graph, noise=0.35)
    at, level = workspace.runs.folder(run_id), Level(0.1, 0.1, 0.1, share=0.3, share_low=0.3)
    files.write_array(at / "level.npy", level.to_array())
    files.write_array(at / "layout_umap.npy", files.read_array(at / "layout_pca.npy"))
    keep_beginning(workspace, workspace.runs.get(run_id))  # as the run's own process does
    workspace.close()


def run_of(space: Path) -> str:
    workspace = Workspace(space)
    found = workspace.runs.list()[0].id
    workspace.close()
    return found


def browse(browser: Browser, server: Server, run_id: str) -> None:
    page = open_page(browser, f"{server.url}?run={run_id}&annotator=ann")
    page.set_default_timeout(WAIT)
    page.locator(".st-key-data-charts canvas").first.wait_for()
    spent = page.evaluate("whenTrue(() => find('.st-key-data-charts canvas'), 0)")
    say("Data: address opened to charts", float(spent))
    times: list[float] = []
    for round_ in range(ROUNDS):
        for title, selector in PAGES:
            before = processor_seconds(server)
            taken = step(page, title, selector)
            page.wait_for_timeout(500)
            if round_:
                times.append(taken)
            bar = {"Explore": 6000.0}.get(title) if not round_ else None
            visit = f"{title}, {'again' if round_ else 'first'}"
            say(visit, taken, "ms", bar)
            say(f"{visit}: processor", processor_seconds(server) - before, "s")
    say_times("pages again", times, 1000)
    page.close()
    answer(browser, server, run_id)


def processor_seconds(server: Server) -> float:
    spent = psutil.Process(server.process.pid).cpu_times()
    return float(spent.user + spent.system)


def answer(browser: Browser, server: Server, run_id: str) -> None:
    """Answer one question after the other: painted is the next one, saved is committed."""
    page = open_page(browser, address(server, run_id))
    page.set_default_timeout(WAIT)
    page.locator('[data-part="desk"][data-state="asking"]').wait_for()
    desk(page)
    page.evaluate(WATCH)
    for _ in range(ANSWERS):
        page.keyboard.press("x")
        page.wait_for_timeout(800)
    expect_saved(page, WAIT)
    for name, values in page.evaluate("told").items():
        say_times(f"one decision, {name}", values, 300)
    page.close()


def export(space: Path, run_id: str) -> None:
    """Export to Parquet by the command line, as the page does."""
    target = space.with_name("clean.parquet")
    command = ["-m", "plain_app", "export", run_id, str(target), "--force"]
    begin, before = monotonic(), os.times()
    subprocess.run([sys.executable, *command, "--workspace", str(space)], check=True)
    spent = os.times()
    say("Parquet export", monotonic() - begin, "s", 60)
    used = spent.children_user + spent.children_system
    say("of it processor", used - before.children_user - before.children_system, "s")
    say("size of the file", target.stat().st_size / 1e6, "MB")


if __name__ == "__main__":
    main(*sys.argv[1:])
