"""Prints how fast the app is, row by row, on the machine it runs on. Not a test.

    python -m plain_app.bench.app [ROW ...]   # all rows without any

Every row starts its own server on a temporary workspace and drives it in a real Chromium with WebGL
in software. Runs have the priority and threads that users get. Times are taken inside the page,
from the press of the mouse to the second frame after the awaited thing is there.
"""

import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, time

import numpy as np
import psutil
import scipy.sparse as sp
from app_server import CHROMIUM, FLAGS, Server, end_runs
from finished_run import finished_run
from playwright.sync_api import Browser, Page, sync_playwright

from core.data.dataset import CandidateDataset
from core.engine.config import PlainConfig
from core.engine.graphs import InstanceGraph
from core.store import Workspace, files
from plain_app.widgets.tour import STOPS

WAIT = 60_000
BURNING = {"epochs": 10_000}  # ended by hand

IN_PAGE = """
window.pressed = window.shift = window.blocked = 0;
localStorage.setItem("plain.tour", "seen");
addEventListener("pointerdown", () => (window.pressed = performance.now()), true);
new PerformanceObserver((list) => {
  for (const one of list.getEntries()) if (!one.hadRecentInput) window.shift += one.value;
}).observe({ type: "layout-shift", buffered: true });
new PerformanceObserver((list) => {
  for (const one of list.getEntries()) window.blocked += one.duration;
}).observe({ type: "longtask" });
window.find = (selector) => document.querySelector(selector)
  ?? [...document.querySelectorAll("[data-testid=stBidiComponentIsolated]")]
    .map((one) => one.shadowRoot?.querySelector(selector)).find(Boolean);
window.whenTrue = (test, from) => new Promise((done) => {
  const frame = () => {
    if (!test()) return requestAnimationFrame(frame);
    const at = performance.now();
    requestAnimationFrame(() => done(performance.now() - (from ?? window.pressed)));
  };
  requestAnimationFrame(frame);
});
"""


def main(names: list[str]) -> None:
    for name in ("OMP_NUM_THREADS", "PLAIN_THREADS", "PLAIN_NICENESS"):
        os.environ.pop(name, None)
    print(f"load of the machine before: {os.getloadavg()[0]:.2f}, cores: {os.cpu_count()}\n")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        for name in names or ROWS:
            ROWS[name](browser)
        browser.close()


def say(what: str, value: float, unit: str = "ms", bar: float | None = None) -> None:
    limit = "" if bar is None else f"  (bar {bar:g} {unit})"
    print(f"{what:<62} {value:9.1f} {unit}{limit}", flush=True)


def say_times(what: str, times: list[float], bar: float) -> None:
    say(f"{what}, p50 of {len(times)}", float(np.median(times)))
    say(f"{what}, p95", float(np.quantile(times, 0.95)), "ms", bar)


@contextmanager
def served(prepare: Callable[[Path], str] | None = None, *arguments: str) -> Iterator[Server]:
    """Serve a temporary workspace; `prepare` fills it and returns the query of the address."""
    with tempfile.TemporaryDirectory() as folder:
        workspace = Path(folder) / "space"
        query = prepare(workspace) if prepare else ""
        server = Server(workspace, *arguments).start()
        server.url += query
        try:
            yield server
        finally:
            server.stop()
            server.log.close()
            end_runs(workspace)


def open_page(browser: Browser, url: str) -> Page:
    page = browser.new_page(viewport={"width": 1440, "height": 900})
    page.add_init_script(IN_PAGE)
    page.goto(url)
    return page


def seen(page: Page, test: str) -> float:
    """Return the milliseconds from the last press until the expression is true and painted."""
    return float(page.evaluate(f"whenTrue(() => {test})"))


def step(page: Page, title: str, selector: str) -> float:
    page.locator(".st-key-frame-steps").get_by_text(title, exact=True).click()
    return seen(page, f"find({selector!r})")


def blobs(n: int, d: int, n_labels: int, seed: int = 0) -> CandidateDataset:
    """Return instances around as many centres as labels, each offered its own and false ones."""
    rng = np.random.default_rng(seed)
    own = rng.integers(n_labels, size=n)
    features = rng.normal(size=(n_labels, d))[own] + 0.7 * rng.normal(size=(n, d))
    candidates = (rng.random((n, n_labels)) < min(0.2, 4 / n_labels)).astype(np.uint8)
    candidates[np.arange(n), own] = 1
    return CandidateDataset(features.astype(np.float32), candidates)


def explored(n: int, d: int = 8, n_labels: int = 12) -> Callable[[Path], str]:
    """Return what prepares a workspace with an ended run of n instances and its layout."""

    def prepare(folder: Path) -> str:
        workspace = Workspace(folder)
        data = blobs(n, d, n_labels)
        run_id = finished_run(workspace, data, instance_graph=random_graph(n))
        at = workspace.runs.folder(run_id)
        files.write_array(at / "layout_umap.npy", files.read_array(at / "layout_pca.npy"))
        workspace.close()
        return f"?data={data.fingerprint[:12]}&run={run_id}"

    return prepare


def random_graph(n: int, k: int = 10) -> InstanceGraph:
    rng = np.random.default_rng(0)
    rows, columns = np.repeat(np.arange(n), k), rng.integers(n, size=n * k)
    apart = rows != columns
    weights = rng.random(n * k).astype(np.float32)[apart]
    affinity = sp.csr_array((weights, (rows[apart], columns[apart])), shape=(n, n))
    return InstanceGraph.from_affinity(affinity + affinity.T)


def prepare_runs(folder: Path) -> str:
    """Prepare an ended run to look at, another to compare it with, and a long one, queued."""
    query = explored(3000, 64, 30)(folder)
    workspace = Workspace(folder)
    finished_run(workspace, blobs(3000, 64, 30), seed=1, instance_graph=random_graph(3000))
    data = workspace.add_dataset(blobs(7000, 1500, 159), "big")
    workspace.runs.create(data, PlainConfig(**BURNING), "burns")
    workspace.close()
    return query


def start_load(page: Page, server: Server) -> psutil.Process:
    """Start the queued run and return its process once it trains."""
    from core.runs.worker import start_queued

    workspace = Workspace(server.workspace)
    start_queued(workspace)
    while True:
        run = next(run for run in workspace.runs.list() if run.name == "burns")
        if run.pid is not None and run.epoch >= 1:
            workspace.close()
            return psutil.Process(run.pid)
        page.wait_for_timeout(200)


def measure_demo(browser: Browser) -> None:
    """From the command to the first live epoch: open, Train, Start training."""
    begin = time()
    with served(None, "--data", "demo") as server:
        say("demo: command to server ready", time() - begin, "s")
        page = open_page(browser, server.url)
        page.locator(".st-key-frame-steps").get_by_text("Train", exact=True).click(timeout=WAIT)
        page.locator(".st-key-train-start button").click(timeout=WAIT)
        say("demo: command to start pressed", time() - begin, "s")
        page.locator(".st-key-train-curves canvas").first.wait_for(timeout=WAIT)
        say("demo: command to first live epoch on screen", time() - begin, "s", 15)
        page.close()


def measure_tour(browser: Browser) -> None:
    """The whole tour, with five seconds of reading at every stop."""
    with served(None, "--data", "demo") as server:
        page = browser.new_page(viewport={"width": 1440, "height": 900})
        page.goto(server.url)
        card = page.get_by_role("dialog", name="Tour")
        card.get_by_role("button", name="Take the tour").click(timeout=WAIT)
        begin = monotonic()
        for stop in STOPS:
            card.get_by_text(stop.title).wait_for()
            page.locator(stop.selector).first.wait_for(timeout=WAIT)
            page.wait_for_timeout(5000)
            card.get_by_role("button").last.click()
        say("tour: all stops, 5 s of reading each", monotonic() - begin, "s", 120)
        page.close()


def measure_clicks(browser: Browser) -> None:
    """Clicks of every kind while a run burns both cores."""
    with served(prepare_runs) as server:
        page = open_page(browser, f"{server.url}&annotator=ann")
        page.locator(".st-key-data-charts canvas").first.wait_for(timeout=WAIT)
        run = start_load(page, server)
        run.cpu_percent()
        first, *rounds = (click_everywhere(page) for _ in range(6))
        kinds = {name: [one for times in rounds for one in times[name]] for name in first}
        say("clicks: the run uses, of one core", run.cpu_percent(), "%")
        for name, values in first.items():
            say(f"clicks: {name}, the first time", max(values))
        for name, values in kinds.items():
            say(f"clicks: {name}, median of {len(values)}", float(np.median(values)))
        say_times("clicks while a run burns", [one for v in kinds.values() for one in v], 200)
        page.close()


def click_everywhere(page: Page) -> dict[str, list[float]]:
    times = {"Train": [step(page, "Train", ".st-key-train-curves canvas")]}
    times["section"] = press_sections(page, SECTIONS)
    times["Explore"] = [step(page, "Explore", "[data-part=frame][data-drawn]")]
    page.wait_for_timeout(500)
    times["next instance"] = [next_instance(page) for _ in range(4)]
    for title, selector in OTHERS:
        times[title] = [step(page, title, selector)]
        page.wait_for_timeout(300)
    return times


OTHERS = (
    ("Review", ".st-key-review-desk"),
    ("Tune", ".st-key-tune-sweep canvas"),
    ("Compare", ".st-key-compare-curves canvas"),
    ("Export", ".st-key-export-plot canvas"),
    ("Data", ".st-key-data-charts canvas"),
)


SECTIONS = (
    ("Confidences", ".st-key-train-evolution canvas"),
    ("Unstable cells", ".st-key-train-unstable canvas"),
    ("Cartography", "[data-part=frame][data-drawn]"),
    ("Curves", ".st-key-train-curves canvas"),
)


def press_sections(page: Page, sections: tuple[tuple[str, str], ...]) -> list[float]:
    times = []
    for title, selector in sections:
        page.locator(f".st-key-train-section >> text={title}").first.click()
        times.append(seen(page, f"find({selector!r})"))
    return times


def next_instance(page: Page) -> float:
    """Press Next and wait until the sum of the new instance's evidence is there."""
    said = "find('.st-key-explore-why-terms [role=img]')?.ariaLabel"
    page.evaluate(f"window.before = {said}")
    page.get_by_role("button", name="Next").click()
    return seen(page, f"{said} && {said} !== window.before")


def measure_live(browser: Browser) -> None:
    """The live page during 50 epochs: exceptions, layout shift, long tasks, CPU of the server."""

    def prepare(folder: Path) -> str:
        workspace = Workspace(folder)
        data = workspace.add_dataset(blobs(7000, 1500, 159), "live")
        run = workspace.runs.create(data, PlainConfig(epochs=50), "burns")
        workspace.close()
        return f"?run={run.id}"

    with served(prepare) as server:
        page = open_page(browser, server.url)
        step(page, "Train", ".st-key-train-bar")
        start_load(page, server)
        page.locator(".st-key-train-curves canvas").first.wait_for(timeout=WAIT)
        page.wait_for_timeout(1500)
        page.evaluate("window.shift = window.blocked = 0")
        process = psutil.Process(server.process.pid)
        spent, begin = sum(process.cpu_times()[:2]), monotonic()
        page.locator(".st-key-train-bar").get_by_text("finished").wait_for(timeout=10 * WAIT)
        seconds = monotonic() - begin
        cpu = 100 * (sum(process.cpu_times()[:2]) - spent) / seconds
        say("live: 50 epochs watched", seconds, "s")
        say("live: CPU of the server, of one core", cpu, "%", 20)
        say("live: layout shift (0 is none)", float(page.evaluate("window.shift")), "", 0)
        blocked = float(page.evaluate("window.blocked")) / (10 * seconds)
        say("live: the browser's thread in tasks over 50 ms", blocked, "%", 10)
        say("live: exceptions", page.get_by_test_id("stException").count(), "", 0)
        page.close()


def measure_map(browser: Browser) -> None:
    """Maps of 10k and 100k instances: painted, recoloured, lassoed."""
    for n, bar in ((10_000, 2500), (100_000, 4000)):
        with served(explored(n)) as server:
            page = open_page(browser, server.url)
            page.locator(".st-key-data-charts canvas").first.wait_for(timeout=WAIT)
            drawn = "[data-part=frame][data-drawn]"
            say(f"map of {n:,}: pressed to painted, first", step(page, "Explore", drawn), "ms", bar)
            made = page.locator("[data-part=frame]").get_attribute("data-milliseconds")
            say(f"map of {n:,}: of it the browser's drawing", float(made or "nan"))
            page.wait_for_timeout(1000)
            say_times(f"map of {n:,}: recolour", [recolour(page, at) for at in range(5)], 500)
            say_times(f"map of {n:,}: lasso to table", [lasso(page) for _ in range(5)], 600)
            page.goto(page.url.replace("/?", "/explore?"))
            spent = page.evaluate(f"whenTrue(() => find({drawn!r}), 0)")
            say(f"map of {n:,}: address opened to painted", float(spent), "ms", bar)
            page.close()


def recolour(page: Page, at: int) -> float:
    page.get_by_role("combobox", name="Label", exact=True).click()
    option = page.get_by_role("option").nth(at + 1)
    name = option.inner_text()
    option.click()
    return seen(page, f"find('[data-part=frame]').dataset.drawn.includes('|{name}|')")


def lasso(page: Page) -> float:
    """Lasso the middle of the map; return the time from letting go to the table."""
    if page.locator(".st-key-explore-clear").count():
        page.locator(".st-key-explore-clear button").click()
        page.locator(".st-key-explore-clear").wait_for(state="detached")
    page.get_by_role("button", name="Lasso").click()
    box = page.locator("[data-part=frame]").bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x + 90, y)
    page.mouse.down()
    for angle in np.linspace(0, 2 * np.pi, 40):
        page.mouse.move(x + 90 * np.cos(angle), y + 90 * np.sin(angle))
        page.wait_for_timeout(16)
    page.evaluate(
        "addEventListener('pointerup', () => pressed = performance.now(), "
        "{ capture: true, once: true })"
    )
    page.mouse.up()
    return seen(page, "find('.st-key-explore-selected canvas')")


def measure_evidence(browser: Browser) -> None:
    """Evidence and neighbours of one cell at 7k × 159."""
    with served(explored(7000, 64, 159)) as server:
        page = open_page(browser, server.url)
        step(page, "Explore", "[data-part=frame][data-drawn]")
        page.wait_for_timeout(1500)
        next_instance(page)
        say_times("evidence at 7k x 159", [next_instance(page) for _ in range(12)], 300)
        page.get_by_role("tab", name="Neighbours").click()
        page.locator(".st-key-explore-ego canvas").first.wait_for()
        say_times("ego network at 7k x 159", [next_neighbours(page) for _ in range(12)], 300)
        page.close()


def next_neighbours(page: Page) -> float:
    """Press Next and wait until another network is painted."""
    pixels = "find('.st-key-explore-ego canvas').toDataURL()"
    page.evaluate(f"window.before = {pixels}")
    page.get_by_role("button", name="Next").click()
    return seen(page, f"{pixels} !== window.before")


ROWS = {
    "demo": measure_demo,
    "tour": measure_tour,
    "clicks": measure_clicks,
    "live": measure_live,
    "map": measure_map,
    "evidence": measure_evidence,
}

if __name__ == "__main__":
    main(sys.argv[1:])
