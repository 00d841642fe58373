"""Drives the review desk in a real browser, and looks at what was stored."""

from collections import Counter
from pathlib import Path
from typing import Any

import pandas as pd
from app_server import LONG
from finished_run import finished_run
from PIL import Image
from playwright.sync_api import Page, expect

from core.data.dataset import CandidateDataset
from core.data.demo import load_demo
from core.encoders.thumbnails import Thumbnails
from core.store import Decision, Workspace

WATCH = """
(() => {
  const look = (root) => root.querySelector('[data-part="desk"]') ?? [...root.querySelectorAll("*")]
    .filter((one) => one.shadowRoot).map((one) => look(one.shadowRoot)).find(Boolean);
  const told = (window.told = { painted: [], saved: [] });
  const pressed = [], kept = new Map();
  addEventListener("keydown", () => pressed.push(performance.now()), true);
  new MutationObserver(() => {
    const at = pressed.splice(0);
    requestAnimationFrame(() => requestAnimationFrame(() => {
      for (const one of at) told.painted.push(performance.now() - one);
    }));
  }).observe(look(document), { attributes: true, attributeFilter: ["data-item"] });
  const { setItem, removeItem } = Storage.prototype;
  Storage.prototype.setItem = function (slot, value) {
    kept.set(slot, performance.now());
    setItem.call(this, slot, value);
  };
  Storage.prototype.removeItem = function (slot) {
    told.saved.push(performance.now() - kept.get(slot));
    removeItem.call(this, slot);
  };
})()
"""
"""Notes for every key press when the next question was painted (milliseconds to the second
animation frame after the change), and for every decision when the server said it is committed,
which is when the browser stops keeping it."""


def make_run(folder: Path, dataset: CandidateDataset) -> str:
    """Make a workspace with an ended run, of which much is left to ask, and return the run."""
    space = Workspace(folder)
    try:
        return finished_run(space, dataset, noise=0.35)
    finally:
        space.close()


def make_picture_run(folder: Path) -> str:
    """Make the same of instances that have a picture each."""
    given = load_demo(n_instances=60)
    fields = {name: getattr(given, name) for name in ("features", "candidates", "truth")}
    shown = pd.DataFrame({"picture": [f"{row}.png" for row in range(60)]})
    data = CandidateDataset(**fields, label_names=given.label_names, ids=given.ids, display=shown)
    run_id, kept = make_run(folder, data), Thumbnails(folder)
    keys = [bytes([row + 1]) * 32 for row in range(60)]
    for row, key in enumerate(keys):
        kept.add(key, Image.new("RGB", (1200, 900), (4 * row, 90, 160)))
    kept.remember(data.fingerprint, {"picture": keys})
    return run_id


def address(server: Any, run_id: str, annotator: str = "ann", **more: str) -> str:
    more = {"review.order": "Most doubtful", **more}  # random cells are blind: nothing to accept
    extra = "".join(f"&{name}={value}" for name, value in more.items())
    return f"http://127.0.0.1:{server.port}/review?run={run_id}&annotator={annotator}{extra}"


def desk(page: Page, state: str = "asking") -> Any:
    """Wait until the desk is in this state and return it."""
    found = page.locator(f'[data-part="desk"][data-state="{state}"]')
    expect(found).to_be_visible(timeout=LONG)
    return found


def expect_saved(page: Page, timeout: float = LONG) -> None:
    """Wait until the page says that everything is committed."""
    status = page.locator('[data-part="status"][data-state="saved"]')
    expect(status).to_be_visible(timeout=timeout)


def answered(page: Page) -> int:
    return int(page.locator('[data-part="desk"]').get_attribute("data-count"))


def shown_item(page: Page) -> str:
    return page.locator('[data-part="desk"]').get_attribute("data-item")


def stored(folder: Path, *annotators: str) -> list[Decision]:
    """Return every row of decisions in the workspace, or those of some people."""
    space = Workspace(folder)
    try:
        rows = [
            one for data in space.datasets() for one in space.decisions.history(data.fingerprint)
        ]
        return [one for one in rows if not annotators or one.annotator in annotators]
    finally:
        space.close()


def answers(rows: list[Decision]) -> int:
    """Return how many answers, of any number of cells each, these rows are."""
    return len({one.batch for one in rows if one.verdict != "undo"})


def doubled(rows: list[Decision]) -> list[Any]:
    """Return the cells that were decided more than once by one answer."""
    counts = Counter((one.instance_id, one.label, one.annotator, one.batch) for one in rows)
    return [cell for cell, count in counts.items() if count > 1]


def press(page: Page, *keys: str) -> None:
    for key in keys:
        page.keyboard.press(key)
