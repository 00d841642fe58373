"""The program as a person uses it: a real server, a real browser, real training processes."""

import json
import os
import re
import signal
import subprocess
import sys
import zipfile
from pathlib import Path

import pandas as pd
import pytest
from finished_run import finished_run
from native_widgets import choose, choose_row, open_part, point_at
from playwright.sync_api import expect

from core.data.demo import load_demo
from core.engine.config import PlainConfig
from core.store import RunState, Workspace
from plain_app.widgets.tour import STOPS

pytestmark = pytest.mark.e2e
HOSTILE = (
    "<img src=x onerror=\"document.title='hacked'\">",
    "<script>document.title='hacked'</script>",
    "=HYPERLINK(1)",
    "![x](http://example.invalid/x.png)",
    "\u202eright to left",
    "long" * 2500,
)
LONG = 60_000  # milliseconds, for what a busy machine may take


def step(page, title: str) -> None:
    page.locator(".st-key-frame-steps").get_by_text(title, exact=True).first.click()


def start_training(page, epochs: int) -> None:
    step(page, "Train")
    field = page.locator(".st-key-train-epochs input")
    expect(field).to_be_visible(timeout=LONG)
    field.fill(str(epochs))
    field.press("Enter")
    page.locator(".st-key-train-start button").click()
    expect(page.locator(".st-key-train-bar")).to_be_visible(timeout=LONG)


def expect_live(page) -> None:
    expect(page.locator(".st-key-train-curves canvas").first).to_be_visible(timeout=LONG)


def expect_state(page, state: str) -> None:
    badge = page.locator(".st-key-train-bar").get_by_text(state, exact=True)
    expect(badge).to_be_visible(timeout=LONG)


def expect_no_traceback(page) -> None:
    expect(page.get_by_test_id("stException")).to_have_count(0)


def section(page, title: str) -> None:
    open_part(page, "train-section", title)


def upload(page, path: Path) -> None:
    expect(page.locator(".st-key-data-upload_box")).to_be_visible(timeout=LONG)
    page.locator(".st-key-data-upload_box input[type=file]").set_input_files(path)


def write_table(path: Path, names=("sea", "sky", "sun"), rows: int = 300) -> Path:
    table = {"id": [f"photo-{i}" for i in range(rows)]}
    table |= {f"x{j}": [((i * (j + 3)) % 17) / 17 for i in range(rows)] for j in range(5)}
    table |= {
        f"label_{name}": [(i // (j + 1)) % 2 for i in range(rows)] for j, name in enumerate(names)
    }
    pd.DataFrame(table).to_csv(path, index=False)
    return path


def runs(workspace: Path) -> list:
    space = Workspace(workspace)
    try:
        return space.runs.list()
    finally:
        space.close()


def wait_for_end(page, workspace: Path) -> None:
    for _ in range(LONG // 50):
        if all(run.state.is_ended for run in runs(workspace)):
            return
        page.wait_for_timeout(100)
    raise AssertionError("the run does not end")


def loaded_libraries(pid: int) -> str:
    return Path(f"/proc/{pid}/maps").read_text()


def test_the_demo_from_start_to_a_finished_run_watched_live(serve, open_page):
    server = serve("--data", "demo")
    page = open_page(server.url)
    expect(page.get_by_text("What it holds")).to_be_visible(timeout=LONG)
    start_training(page, 150)
    expect_live(page)
    expect_state(page, "running")
    expect(page.locator(".st-key-train-pause button")).to_be_visible()
    expect_state(page, "finished")
    expect_values_under_the_pointer(page)
    for title, key in (
        ("Confidences", "evolution"),
        ("Unstable cells", "unstable"),
        ("Two epochs", "difference"),
        ("Cartography", "cartography"),
    ):
        section(page, title)
        expect(page.locator(f".st-key-train-{key}")).to_be_visible(timeout=LONG)
        assert f"train.section={title.replace(' ', '+')}" in page.url
    travel_to_the_first_epoch(page)
    expect_no_traceback(page)
    if Path(f"/proc/{server.process.pid}/maps").exists():
        assert not re.search("libtorch|faiss", loaded_libraries(server.process.pid))
    assert "Traceback" not in server.errors()


def expect_values_under_the_pointer(page) -> None:
    """The chart of curves tells its values, zooms into a part and back, and saves a picture."""
    chart = page.locator(".st-key-train-curves")
    canvas = chart.locator("canvas").first
    canvas.scroll_into_view_if_needed()
    point_at(page, canvas, 0.25, chart.get_by_text("AUC of all cells"))
    box = canvas.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 3)
    page.wait_for_timeout(500)  # the tooltip is gone
    whole = canvas.screenshot()
    for _ in range(5):  # a busy browser may not have the zoom ready when it is dragged
        box = canvas.bounding_box()  # what is above may have come meanwhile
        page.mouse.click(box["x"] + box["width"] - 45, box["y"] + 6)  # the zoom
        page.wait_for_timeout(300)
        page.mouse.move(box["x"] + 150, box["y"] + 80)
        page.mouse.down()
        page.mouse.move(box["x"] + 300, box["y"] + 180, steps=6)
        page.mouse.up()
        page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 3)
        page.wait_for_timeout(1000)
        if canvas.screenshot() != whole:
            break
    assert canvas.screenshot() != whole
    with page.expect_download(timeout=LONG) as saved:
        chart.get_by_role("button", name="Download as PNG").click()
    assert saved.value.suggested_filename.endswith(".png")


def travel_to_the_first_epoch(page) -> None:
    """A reload finds the section in the address; its scrubber is answered."""
    section(page, "Confidences")
    expect(page.locator(".st-key-train-evolution")).to_be_visible(timeout=LONG)
    page.reload()
    panel = page.locator(".st-key-train-scrub .panel")
    expect(panel).to_have_attribute("data-answered", "0", timeout=LONG)
    page.get_by_role("slider", name="Epoch").press("Home")
    expect(panel.locator("output")).to_have_text("1")
    expect(panel).not_to_have_attribute("data-answered", "0", timeout=LONG)


def test_a_csv_is_uploaded_mapped_and_trained(serve, open_page, tmp_path):
    server = serve()
    page = open_page(server.url)
    upload(page, write_table(tmp_path / "photos.csv"))
    expect(page.get_by_text("photos.csv")).to_be_visible(timeout=LONG)
    page.get_by_text("How the file is understood").click()
    chips = page.locator(".st-key-data-map_features")
    chips.get_by_role("button", name=re.compile("x4")).last.click()
    features = page.locator(".st-key-data-figures .figures > div").nth(1)
    expect(features).to_contain_text("4", timeout=LONG)
    page.locator(".st-key-data-load button").click()
    expect(page.get_by_text("What it holds")).to_be_visible(timeout=LONG)
    start_training(page, 5)
    expect_state(page, "finished")
    expect_no_traceback(page)
    assert [run.state for run in runs(server.workspace)] == [RunState.FINISHED]


def own_files() -> dict[str, str]:
    """Return files as people have them, with cells that programs like to change."""
    rows = range(10, 70)
    texts = [f'{i:04},"the {i}th text, of {i % 7}",{"a|b" if i % 3 else "b"}' for i in rows]
    numbers = [
        f"{i:04},17000000{i},0{i:04},2024-02-{i % 28 + 1:02},9007199254740{i},{i % 2},{i % 3 > 0:d}"
        for i in rows
    ]
    records = [
        {"id": f"{i:04}", "text": f"the {i}th, of {i % 7}", "note": None, "labels": ["é", "b"]}
        for i in rows
    ]
    head = ["@relation 'own: -C -2'", "@attribute x1 numeric", "@attribute x2 numeric"]
    head += ["@attribute a {0,1}", "@attribute b {0,1}", "@data"]
    cells = [f"{i / 8},-{i},{i % 2},{i % 3 > 0:d}" for i in rows]
    lines = {
        "texts.csv": ["id,text,labels", *texts],
        "numbers.csv": ["id,time,zip,day,big,label_a,label_b", *numbers],
        "records.jsonl": [json.dumps(one, ensure_ascii=False) for one in records],
        "table.arff": [*head, *cells],
    }
    return {name: "\n".join([*one, ""]) for name, one in lines.items()}


def expect_own(was: str, now: str, kind: str) -> None:
    """Every column of the input is in the output, in its order, with its values."""
    if kind == "csv":
        pairs = zip(was.splitlines(), now.splitlines(), strict=True)
        assert all(after.startswith(f"{before},") for before, after in pairs)
    elif kind == "jsonl":
        for before, after in zip(was.splitlines(), now.splitlines(), strict=True):
            own = list(json.loads(before).items())
            assert list(json.loads(after).items())[: len(own)] == own
    else:
        before, after = ([one.split() for one in text.lower().splitlines()] for text in (was, now))
        names = [
            [one[1] for one in lines if one[:1] == ["@attribute"]] for lines in (before, after)
        ]
        assert names[0] == names[1]
        data = [text.lower().partition("@data")[2].split() for text in (was, now)]
        features = [[list(map(float, row.split(",")[:2])) for row in rows] for rows in data]
        assert features[0] == features[1]


@pytest.mark.parametrize("name", own_files())
def test_a_file_is_uploaded_trained_reviewed_and_comes_back_as_it_was(
    serve, open_page, tmp_path, name
):
    was, kind = own_files()[name], name.partition(".")[2]
    (tmp_path / name).write_text(was)
    server = serve()
    page = open_page(f"{server.url}?annotator=ann")
    upload(page, tmp_path / name)
    page.locator(".st-key-data-load button").click(timeout=LONG)
    expect(page.get_by_text("What it holds")).to_be_visible(timeout=LONG)
    start_training(page, 3)
    expect_state(page, "finished")
    step(page, "Review")
    expect(page.locator('[data-part="desk"][data-state="asking"]')).to_be_visible(timeout=LONG)
    page.keyboard.press("x")  # reject all that is asked of the first
    expect(page.locator('[data-part="status"][data-state="saved"]')).to_be_visible(timeout=LONG)
    step(page, "Export")
    expect(page.locator(".st-key-export-download")).to_be_visible(timeout=LONG)
    if kind != "csv":
        choose(page, "Format", kind)
    preview = page.get_by_test_id("stText").filter(has_text=f"clean.{kind}")
    expect(preview.first).to_be_visible(timeout=LONG)
    with page.expect_download(timeout=LONG) as downloading:
        page.locator(".st-key-export-download button").first.click(timeout=LONG)
    with zipfile.ZipFile(downloading.value.path()) as packed:
        made = packed.read(f"clean.{kind}")
    expect_own(was, made.decode(), kind)
    shell, run = tmp_path / f"shell.{kind}", runs(server.workspace)[0]
    place = [run.id, str(shell), "--workspace", str(server.workspace)]
    subprocess.run([sys.executable, "-m", "plain_app", "export", *place], check=True)
    assert shell.read_bytes() == made
    space = Workspace(server.workspace)
    assert {one.verdict for one in space.decisions.latest(run.fingerprint)} == {"reject"}
    space.close()


def test_a_reload_in_the_middle_of_a_run_finds_it_again(serve, open_page):
    server = serve("--data", "demo")
    page = open_page(server.url)
    start_training(page, 2000)
    expect_live(page)
    page.reload()
    expect_live(page)
    expect_state(page, "running")
    other = open_page(page.url)
    expect_live(other)
    expect_state(other, "running")
    other.locator(".st-key-train-pause button").click()
    expect_state(page, "paused")
    page.locator(".st-key-train-resume button").click()
    expect_state(other, "running")
    os.kill(runs(server.workspace)[0].pid, signal.SIGKILL)
    expect_state(page, "interrupted")
    page.locator(".st-key-train-resume button").click()
    expect_state(page, "running")
    page.locator(".st-key-train-stop button").click()
    expect_state(page, "stopped")
    expect_no_traceback(page)


def test_a_run_survives_the_death_of_the_server(serve, open_page):
    server = serve("--data", "demo")
    page = open_page(server.url)
    start_training(page, 2000)
    expect_live(page)
    before = runs(server.workspace)[0]
    server.kill()
    epoch = page.locator(".st-key-train-figures b").first
    seen = epoch.inner_text()
    server.start()
    expect(epoch).not_to_have_text(seen, timeout=LONG)  # the tab came back by itself
    page.locator(".st-key-train-stop button").click()
    after = runs(server.workspace)[0]
    assert after.pid == before.pid
    assert after.epoch >= before.epoch
    expect_state(page, "stopped")


def test_a_bad_upload_is_a_table_of_problems_and_stores_nothing(serve, open_page, tmp_path):
    server = serve()
    page = open_page(server.url)
    bad = write_table(tmp_path / "bad.csv")
    bad.write_text(
        bad.read_text().replace("photo-5,", "photo-5,many").replace(",1\n", ",maybe\n", 3)
    )
    upload(page, bad)
    expect(page.locator(".st-key-data-staged-error")).to_be_visible(timeout=LONG)
    expect(page.locator(".st-key-data-staged-problems")).to_be_visible(timeout=LONG)
    expect(page.locator(".st-key-data-load")).to_have_count(0)
    expect_no_traceback(page)
    space = Workspace(server.workspace)
    assert space.datasets() == []
    space.close()


def test_a_hostile_file_is_shown_as_text(serve, open_page, tmp_path):
    server = serve()
    page = open_page(server.url)
    upload(page, write_table(tmp_path / "hostile.csv", HOSTILE, rows=60))
    load = page.locator(".st-key-data-load button")
    expect(load).to_be_enabled(timeout=LONG)
    load.click()
    expect(page.get_by_text("What it holds")).to_be_visible(timeout=LONG)
    expect_names_under_the_pointer(page)
    start_training(page, 4)
    expect_state(page, "finished")
    for title in ("Confidences", "Unstable cells", "Cartography", "Log"):
        section(page, title)
        expect_no_traceback(page)
    look_at_hostile_pages(page)
    expect(page).to_have_title("PLAIN Studio")
    assert page.locator("img[src='x']").count() == 0
    assert "Traceback" not in server.errors()


def expect_names_under_the_pointer(page) -> None:
    """What a chart says of a hostile label is its name, as text."""
    chart = page.locator(".st-key-data-charts")
    point_at(page, chart.locator("canvas").first, 0.45, chart.get_by_text("% of instances"))
    assert chart.locator(":is(img, script, a)").count() == 0


def look_at_hostile_pages(page) -> None:
    """Open what draws names and ids after a run: maps, graphs, tables, questions, exports."""
    page.goto(page.url.replace("/train?", "/explore?") + "&annotator=ann")
    expect(page.locator("[data-part=frame][data-drawn]")).to_be_attached(timeout=LONG)
    page.get_by_role("tab", name="Neighbours").click()
    expect(page.get_by_text("Near is strong")).to_be_visible(timeout=LONG)
    for part, awaited in (("Labels", ".st-key-explore-network"), ("Outside the candidates", "")):
        open_part(page, "explore-part", part)
        if awaited:
            expect(page.locator(awaited)).to_be_visible(timeout=LONG)
            hover_over(page, awaited)
    for title in ("Review", "Tune", "Compare", "Export"):
        step(page, title)
        page.wait_for_url(f"**/{title.lower()}?**", timeout=LONG)
        expect(page.get_by_test_id("stStatusWidget")).to_have_count(0, timeout=LONG)
        expect_no_traceback(page)


def hover_over(page, selector: str) -> None:
    box = page.locator(selector).bounding_box()
    for part in range(12):  # tooltips
        page.mouse.move(box["x"] + box["width"] * part / 12, box["y"] + 40 + 25 * part)
        page.wait_for_timeout(30)


def test_the_tour_goes_from_data_to_export_and_is_offered_once(serve, open_page, pictures):
    server = serve("--data", "demo")
    page = open_page(server.url, is_new=True)
    card = page.get_by_role("dialog", name="Tour")
    card.get_by_role("button", name="Take the tour").click(timeout=LONG)
    for at, stop in enumerate(STOPS):
        expect(card.get_by_text(stop.title)).to_be_visible(timeout=LONG)
        expect(page.locator(stop.selector).first).to_be_visible(timeout=LONG)
        framed = page.locator(stop.selector).first
        expect(framed).to_have_css("outline-style", "solid", timeout=LONG)
        if at == 5:
            take(page, pictures, "tour", "light")
        if STOPS[at + 1 :] and STOPS[at + 1].page == "Review":  # there are no questions before
            wait_for_end(page, server.workspace)
        card.get_by_role("button", name=re.compile("Next|Done")).click()
    expect(card).to_have_count(0)
    page.reload()
    expect(page.locator(".st-key-frame-steps")).to_be_visible(timeout=LONG)
    expect(page.locator(".st-key-tour button")).to_be_visible(timeout=LONG)
    expect(card).to_have_count(0)
    page.locator(".st-key-tour button").click()
    expect(card.get_by_text(STOPS[0].title)).to_be_visible(timeout=LONG)
    page.keyboard.press("Escape")
    expect(card).to_have_count(0)
    expect_no_traceback(page)


def test_pictures_of_every_view(serve, open_page, pictures):
    server = serve("--data", "demo")
    page = open_page(server.url)
    start_training(page, 30)
    expect_state(page, "finished")
    address = page.url
    page.close()
    for scheme in ("light", "dark"):
        page = open_page(address, dark=scheme == "dark")
        for title in ("Curves", "Confidences", "Unstable cells", "Cartography"):
            section(page, title)
            expect_no_traceback(page)
            take(page, pictures, title.split()[0].lower(), scheme)
        step(page, "Data")
        expect(page.locator(".st-key-data-charts canvas").first).to_be_visible(timeout=LONG)
        take(page, pictures, "data", scheme)
        step(page, "Explore")
        umap = page.locator('[data-part="frame"][data-drawn*="|umap|"]')
        expect(umap).to_be_attached(timeout=2 * LONG)
        take(page, pictures, "explore", scheme)
        open_part(page, "explore-part", "Labels")
        expect(page.locator(".st-key-explore-network canvas").first).to_be_visible(timeout=LONG)
        take(page, pictures, "labels", scheme)
        step(page, "Review")
        name = page.locator(".st-key-review-name input")
        expect(name).to_be_visible(timeout=LONG)
        name.fill(scheme)
        name.press("Enter")
        for _ in range(3):
            expect(page.locator('[data-part="desk"][data-state="asking"]')).to_be_visible(
                timeout=LONG
            )
            page.keyboard.press("x")  # the first are random: blind, nothing to accept
        take(page, pictures, "review", scheme)
        step(page, "Export")
        expect(page.locator(".st-key-export-figures")).to_be_visible(timeout=LONG)
        take(page, pictures, "export", scheme)
        page.close()


def take(page, folder: Path, name: str, scheme: str) -> None:
    """Save the page in two sizes; nothing may be wider than the screen."""
    for suffix, width, height in (("-small", 1024, 768), ("", 1440, 900)):
        page.set_viewport_size({"width": width, "height": height})
        expect(page.get_by_test_id("stStatusWidget")).to_have_count(0, timeout=LONG)
        page.evaluate("document.fonts.ready.then(() => 0)")
        page.evaluate("() => new Promise(done => setTimeout(done, 400))")  # charts follow the size
        page.screenshot(path=folder / f"screenshot-{name}-{scheme}{suffix}.png")
        too_wide = "document.documentElement.scrollWidth > window.innerWidth"
        assert not page.evaluate(too_wide)


def test_runs_are_chosen_in_their_list(serve, open_page, tmp_path):
    space = Workspace(tmp_path / "space")
    run_id = finished_run(space, load_demo(n_instances=200))
    space.runs.rename(run_id, "first")
    space.runs.create(space.runs.get(run_id).fingerprint, PlainConfig(), "second")
    space.close()
    page = open_page(f"{serve().url}train?run={run_id}")
    table = page.locator(".st-key-train-runs")
    expect(table.locator("canvas").first).to_be_visible(timeout=LONG)
    choose_row(table, 0)  # the newest
    expect(page.locator(".st-key-train-open")).to_be_visible(timeout=LONG)
    choose_row(table, 1)
    expect(page.get_by_role("button", name="Compare 2")).to_be_visible(timeout=LONG)
    choose_row(table, 0)
    page.locator(".st-key-train-open button").click(timeout=LONG)
    expect(page.locator(".st-key-train-title")).to_contain_text("first", timeout=LONG)
