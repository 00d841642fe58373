"""Every page by axe-core, light and dark, and by keyboard alone."""

import os
from pathlib import Path

import pytest
from finished_run import finished_run
from playwright.sync_api import expect

from core.data.demo import load_demo
from core.store import Workspace

pytestmark = pytest.mark.e2e
LONG = 60_000
AXE = Path(__file__).parents[2] / "node_modules" / "axe-core" / "axe.min.js"
PAGES = ("Data", "Train", "Explore", "Review", "Tune", "Compare", "Export")

FIND = """async () => {
  const found = await axe.run(document, { resultTypes: ["violations"] });
  const bad = found.violations.filter((one) => ["serious", "critical"].includes(one.impact));
  const listed = ({ id, nodes }) => nodes.map((one) => [id, one.target.flat().join(" "), one.html]);
  return bad.flatMap(listed);
}"""


@pytest.fixture(scope="module")
def axe() -> str:
    if AXE.exists():
        return AXE.read_text("utf-8")
    if os.environ.get("PLAIN_JS_TESTS") == "required":
        pytest.fail("axe-core is not installed, and PLAIN_JS_TESTS is required: npm ci")
    pytest.skip("axe-core is not installed: npm ci")


@pytest.fixture
def finished(tmp_path) -> str:
    """A workspace with a finished run; its id."""
    space = Workspace(tmp_path / "space")
    run_id = finished_run(space, load_demo(n_instances=200))
    space.close()
    return run_id


def go_to(page, title: str) -> None:
    page.locator(".st-key-frame-steps").get_by_text(title, exact=True).first.click()
    path = "/" if title == "Data" else f"/{title.lower()}"
    page.wait_for_url(lambda url: url.split("?")[0].endswith(path), timeout=LONG)
    expect(page.get_by_test_id("stMain").locator("p, h3, canvas").first).to_be_visible(timeout=LONG)
    expect(page.get_by_test_id("stStatusWidget")).to_have_count(0, timeout=LONG)


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_axe_finds_nothing_serious(serve, open_page, finished, axe, dark):
    page = open_page(f"{serve().url}train?run={finished}&annotator=ann", dark=dark)
    expect(page.locator(".st-key-train-bar")).to_be_visible(timeout=LONG)
    page.evaluate(axe)
    found = []
    for title in PAGES:
        go_to(page, title)
        found += [(title, *one) for one in page.evaluate(FIND)]
    assert found == []
