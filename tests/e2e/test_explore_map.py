"""Explore in a real browser: map, lasso, recolouring, evidence, labels, without WebGL, dark."""

import math
import os
import re
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from app_server import LONG, Server, serving
from finished_run import finished_run, keep_map
from native_widgets import cells, choose, choose_row, open_part
from PIL import Image
from playwright.sync_api import expect

from core.data.dataset import CandidateDataset
from core.data.demo import load_demo
from core.engine.graphs import InstanceGraph
from core.store import Workspace

SHOTS = os.environ.get("PLAIN_SCREENSHOTS")
HOSTILE = '<img src=x onerror="window.hurt=1">'
PICTURE_ROW = 44

pytestmark = pytest.mark.e2e


class Explored(NamedTuple):
    """A server, and the addresses that open Explore on its ended runs."""

    server: Server
    demo: str
    hostile: str
    many: str


@pytest.fixture(scope="module")
def explored(browser, tmp_path_factory) -> Iterator[Explored]:
    folder = tmp_path_factory.mktemp("explore") / "space"
    workspace, (many, ring) = Workspace(folder), many_instances()
    run_ids = [
        finished_run(workspace, load_demo(n_instances=400)),
        finished_run(workspace, hostile_data()),
        finished_run(workspace, many, instance_graph=ring),
    ]
    for run_id in run_ids:
        keep_map(workspace, run_id)
    workspace.close()
    with serving(folder) as server:
        yield Explored(server, *(f"{server.url}explore?run={run_id}" for run_id in run_ids))


def hostile_data() -> CandidateDataset:
    rng = np.random.default_rng(0)
    candidates = (rng.random((80, 4)) < 0.6).astype(np.uint8)
    return CandidateDataset(
        rng.normal(size=(80, 6)).astype(np.float32),
        candidates,
        label_names=[HOSTILE, "**b**", "=cmd()", "\u202ertl"],
        ids=[f"{HOSTILE}{at}" for at in range(80)],
        display=pd.DataFrame({HOSTILE: [HOSTILE, "other"] * 40}),
    )


def many_instances() -> tuple[CandidateDataset, InstanceGraph]:
    """More instances than are drawn pixel by pixel."""
    rng, n = np.random.default_rng(0), 21_000
    data = CandidateDataset(
        rng.normal(size=(n, 4)).astype(np.float32), (rng.random((n, 3)) < 0.6).astype(np.uint8)
    )
    pairs = (np.arange(n), (np.arange(n) + 1) % n)
    ring = sp.csr_array((np.ones(n, np.float32), pairs), shape=(n, n))
    return data, InstanceGraph.from_affinity(ring + ring.T)


@pytest.fixture
def page(open_page, explored) -> Any:
    return opened(open_page, explored.demo)


def opened(open_page: Any, address: str, **options: Any) -> Any:
    page = open_page(address, **options)
    wait_for_map(page)
    return page


def frame_of(page: Any) -> Any:
    return page.locator('[data-part="frame"]')


def wait_for_map(page: Any, part: str = "") -> None:
    attribute = f'data-drawn*="{part}"' if part else "data-drawn"
    drawn = page.locator(f'[data-part="frame"][{attribute}]')
    expect(drawn).to_be_attached(timeout=LONG)


def write(page: Any, instance: str) -> None:
    """Write into the field, whatever is being drawn: no rerun writes over what is typed."""
    field = page.get_by_label("Instance", exact=True)
    field.fill(instance)
    field.press("Enter")
    expect(page).to_have_url(re.compile(f"explore.instance={instance}"), timeout=LONG)


def draw_circle(page: Any, radius: float = 110) -> None:
    box = frame_of(page).bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x + radius, y)
    page.mouse.down()
    for step in range(1, 37):
        angle = step * math.pi / 18
        page.mouse.move(x + radius * math.cos(angle), y + radius * math.sin(angle))
        page.wait_for_timeout(8)
    page.mouse.up()


def painted(page: Any) -> np.ndarray:
    """Return the map as it is on the screen."""
    return np.asarray(Image.open(BytesIO(frame_of(page).screenshot())).convert("RGB"), int)


def colours_in(page: Any) -> int:
    return len(np.unique(painted(page).reshape(-1, 3), axis=0))


def a_point(page: Any) -> tuple[int, int]:
    """Return where on the map an instance is: in the middle of something strongly coloured."""
    image = painted(page)
    strong = (image.max(axis=2) - image.min(axis=2) > 70).astype(int)
    around = sum(np.roll(strong, (a, b), (0, 1)) for a in (-1, 0, 1) for b in (-1, 0, 1))
    y, x = np.unravel_index(np.argmax(around), around.shape)
    return int(x), int(y)


def keep(page: Any, name: str) -> None:
    if SHOTS:
        page.wait_for_timeout(1000)
        page.screenshot(path=str(Path(SHOTS) / f"explore-{name}.png"))


def test_the_map_is_painted_and_a_click_opens_an_instance(page):
    assert colours_in(page) > 20
    expect(page.locator('[data-part="legend"]')).to_contain_text("not offered")
    expect(page.locator('[data-part="note"]')).to_contain_text("wheel to zoom")
    box = frame_of(page).bounding_box()
    x, y = a_point(page)
    page.mouse.move(box["x"] + x, box["y"] + y, steps=4)
    page.wait_for_timeout(300)
    page.mouse.click(box["x"] + x, box["y"] + y)
    chosen = page.get_by_label("Instance", exact=True)
    expect(chosen).to_have_value(re.compile(r"scene-\d{4}"), timeout=LONG)
    assert "explore.instance=scene-" in page.url
    keep(page, "map-light")


def test_a_lasso_lists_its_instances_and_clear_forgets_them(page):
    page.get_by_role("button", name="Lasso").click()
    draw_circle(page)
    expect(page.get_by_text("selected")).to_be_visible(timeout=LONG)
    assert "0 instances" not in page.get_by_text("selected").inner_text().split(" ", 1)[0]
    keep(page, "lasso")
    page.get_by_role("button", name="Clear").click()
    expect(page.get_by_text("selected")).to_have_count(0, timeout=LONG)
    recolour(page)


def recolour(page: Any) -> None:
    """Another colour and another epoch do not move the map."""
    choose(page, "Colour by", "Uncertainty")
    wait_for_map(page, "uncertainty")
    expect(page.locator('[data-part="legend"]')).to_contain_text("Uncertainty")
    before = frame_of(page).bounding_box()
    page.get_by_role("slider", name="Epoch").press("Home")
    wait_for_map(page, "|uncertainty||1|")
    assert frame_of(page).bounding_box() == before
    assert "|uncertainty||1|" in frame_of(page).get_attribute("data-drawn")


def test_evidence_adds_up_on_screen_and_neighbours_open(page):
    total = page.get_by_text("Exact, before rounding").inner_text(timeout=LONG)
    terms, found = total.replace("−", "-").split(" = ")
    said = float(re.match(r"-?\d\.\d+", found)[0])
    assert sum(float(term) for term in terms.split()) == pytest.approx(said, abs=0.003)
    page.get_by_role("tab", name="Neighbours").click()
    expect(page.get_by_text("Near is strong")).to_be_visible(timeout=LONG)
    keep(page, "neighbours")
    table = page.locator(".st-key-explore-neighbours-0")
    table.locator(".dvn-scroller").scroll_into_view_if_needed()
    edges = lambda: [float(one) for one in cells(table, 3)]  # noqa: E731
    given = edges()
    assert given == sorted(given, reverse=True)
    table.locator(".dvn-scroller").click(position={"x": 250, "y": 18})  # the menu of the edges
    first = cells(table, 3)[0]
    page.get_by_role("menuitem", name="Sort ascending").click()
    expect(table.locator("td[aria-colindex='3']").first).not_to_have_text(first)
    assert edges() == sorted(given)
    near = cells(table, 2)[0]
    choose_row(table, 0, PICTURE_ROW)
    expect(page.get_by_label("Instance", exact=True)).to_have_value(near, timeout=LONG)
    write(page, "scene-0000")
    page.get_by_role("button", name="Next").click()
    expect(page.get_by_label("Instance", exact=True)).to_have_value("scene-0001", timeout=LONG)
    expect(page.get_by_text("Near is strong")).to_be_visible(timeout=LONG)


def test_the_card_follows_what_is_written_picked_and_chosen(page):
    card = page.locator(".st-key-explore-card")
    written = card.get_by_label("Instance", exact=True)
    write(page, "nobody")
    expect(card.get_by_text("no instance with this id")).to_be_visible(timeout=LONG)
    write(page, "scene-0007")
    expect(page).to_have_url(re.compile("explore.instance=scene-0007"), timeout=LONG)
    candidates = card.locator(".st-key-explore-candidates-7")
    first, *_, last = cells(candidates, 1)
    explained = card.get_by_role("combobox", name="Label to explain")
    expect(explained).to_have_value(last, timeout=LONG)  # the most doubtful
    choose_row(candidates, 0)
    expect(explained).to_have_value(first, timeout=LONG)
    choose(page, "Label to explain", last)
    expect(card.get_by_text("Exact, before rounding")).to_be_visible(timeout=LONG)
    card.get_by_role("button", name="Previous").click()
    expect(written).to_have_value("scene-0006", timeout=LONG)
    voters = card.locator("[class*=st-key-explore-why-voters-6]")
    name = cells(voters, 2)[0]
    choose_row(voters, 0, PICTURE_ROW)
    expect(written).to_have_value(name, timeout=LONG)
    page.locator(".st-key-frame-steps").get_by_text("Train", exact=True).click()
    expect(page).to_have_url(re.compile("/train"), timeout=LONG)
    page.locator(".st-key-frame-steps").get_by_text("Explore", exact=True).click()
    expect(written).to_have_value(name, timeout=LONG)
    card.locator(".st-key-explore-review button").click()
    expect(page).to_have_url(re.compile("/review.*selection="), timeout=LONG)


def test_labels_and_outside_draw_and_the_server_never_loads_torch_or_faiss(page, explored):
    open_part(page, "explore-part", "Labels")
    expect(page.get_by_text("When a label beside another is doubtful")).to_be_visible(timeout=LONG)
    keep(page, "labels")
    page.get_by_text("Difference", exact=True).click()
    expect(page.get_by_text("Edges that cleaning changes most")).to_be_visible(timeout=LONG)
    open_part(page, "explore-part", "Outside the candidates")
    expect(page.get_by_text("though never offered")).to_be_visible(timeout=LONG)
    keep(page, "outside")
    maps = Path(f"/proc/{explored.server.process.pid}/maps")
    assert not maps.exists() or not re.search("libtorch|faiss", maps.read_text())


def test_many_instances_look_the_same_with_and_without_webgl(browser, open_page, explored):
    with_webgl = painted(opened(open_page, explored.many))
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    context.add_init_script(
        "const get = HTMLCanvasElement.prototype.getContext;"
        "HTMLCanvasElement.prototype.getContext = function (kind, ...more) {"
        "  return kind.includes('webgl') ? null : get.call(this, kind, ...more); };"
    )
    page = context.new_page()
    page.goto(explored.many)
    wait_for_map(page)
    expect(page.locator('[data-part="note"]')).to_contain_text("Without WebGL")
    assert colours_in(page) > 20
    assert np.abs(painted(page).astype(int) - with_webgl).mean() < 5
    page.get_by_role("button", name="Lasso").click()
    draw_circle(page)
    expect(page.get_by_text("selected")).to_be_visible(timeout=LONG)
    keep(page, "without-webgl")
    context.close()


def test_dark_colours_the_map_too(open_page, explored):
    page = opened(open_page, explored.demo, dark=True)
    assert np.median(painted(page)) < 80
    keep(page, "map-dark")


def test_hostile_names_are_shown_as_text(open_page, explored):
    page = opened(open_page, explored.hostile)
    expect(page.locator('[data-part="legend"]')).to_contain_text(HOSTILE)
    choose(page, "Colour by", "A column of the data")
    wait_for_map(page, "column")
    page.get_by_role("tab", name="Neighbours").click()
    expect(page.get_by_text("Near is strong")).to_be_visible(timeout=LONG)
    open_part(page, "explore-part", "Labels")
    network = page.locator(".st-key-explore-network")
    expect(network).to_be_visible(timeout=LONG)
    box = network.bounding_box()
    for step in range(20):  # tooltips of nodes and edges
        page.mouse.move(box["x"] + box["width"] * step / 20, box["y"] + 60 + 15 * step)
        page.wait_for_timeout(30)
    assert page.evaluate("window.hurt") is None
