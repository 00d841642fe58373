"""Files that people bring, in a real browser: uploaded, understood, trained on, given back."""

import json
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest
from app_server import Server, serving
from command_line import plain
from journey import LONG, expect_no_traceback, expect_state, run_on, section, start_training, step
from native_widgets import choose, open_part, point_at
from playwright.sync_api import expect

from core.store import RunState, Workspace

pytestmark = pytest.mark.e2e
HOSTILE = (
    "<img src=x onerror=\"document.title='hacked'\">",
    "<script>document.title='hacked'</script>",
    "=HYPERLINK(1)",
    "![x](http://example.invalid/x.png)",
    "\u202eright to left",
    "long" * 2500,
)


@pytest.fixture(scope="module")
def file_server(tmp_path_factory) -> Iterator[Server]:
    """A server to which each test brings a file."""
    with serving(tmp_path_factory.mktemp("files") / "space") as server:
        yield server


def upload(page, path: Path) -> None:
    box = page.locator(".st-key-data-upload_box")
    another = page.get_by_role("button", name="Open another")
    expect(box.or_(another).first).to_be_visible(timeout=LONG)
    if another.count():
        another.click()
    box.locator("input[type=file]").set_input_files(path)


def write_table(path: Path, names=("sea", "sky", "sun"), rows: int = 300) -> Path:
    table = {"id": [f"photo-{i}" for i in range(rows)]}
    table |= {f"x{j}": [((i * (j + 3)) % 17) / 17 for i in range(rows)] for j in range(5)}
    table |= {
        f"label_{name}": [(i // (j + 1)) % 2 for i in range(rows)] for j, name in enumerate(names)
    }
    pd.DataFrame(table).to_csv(path, index=False)
    return path


def test_a_csv_is_uploaded_and_mapped(file_server, open_page, tmp_path):
    page = open_page(file_server.url)
    upload(page, write_table(tmp_path / "photos.csv"))
    expect(page.get_by_text("photos.csv").first).to_be_visible(timeout=LONG)
    page.get_by_text("How the file is understood").click()
    chips = page.locator(".st-key-data-map_features")
    chips.get_by_role("button", name=re.compile("x4")).last.click()
    features = page.locator(".st-key-data-figures .figures > div").nth(1)
    expect(features).to_contain_text("4", timeout=LONG)
    page.locator(".st-key-data-load button").click()
    expect(page.get_by_text("What it holds")).to_be_visible(timeout=LONG)
    expect_no_traceback(page)
    space = Workspace(file_server.workspace)
    assert [one.n_features for one in space.datasets() if one.name == "photos.csv"] == [4]
    space.close()


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
    file_server, open_page, tmp_path, name
):
    was, kind = own_files()[name], name.partition(".")[2]
    (tmp_path / name).write_text(was)
    page = open_page(f"{file_server.url}?annotator=ann")
    upload(page, tmp_path / name)
    page.locator(".st-key-data-load button").click(timeout=LONG)
    expect(page.get_by_text("What it holds")).to_be_visible(timeout=LONG)
    start_training(page, 3)
    expect_state(page, "finished")
    run = run_on(page, file_server.workspace)
    assert run.state == RunState.FINISHED
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
    shell = tmp_path / f"shell.{kind}"
    place = [run.id, str(shell), "--workspace", str(file_server.workspace)]
    assert plain("export", *place).returncode == 0
    assert shell.read_bytes() == made
    space = Workspace(file_server.workspace)
    assert {one.verdict for one in space.decisions.latest(run.fingerprint)} == {"reject"}
    space.close()


def test_a_bad_upload_is_a_table_of_problems_and_stores_nothing(file_server, open_page, tmp_path):
    space = Workspace(file_server.workspace)
    before = space.datasets()
    page = open_page(file_server.url)
    bad = write_table(tmp_path / "bad.csv")
    bad.write_text(
        bad.read_text().replace("photo-5,", "photo-5,many").replace(",1\n", ",maybe\n", 3)
    )
    upload(page, bad)
    expect(page.locator(".st-key-data-staged-error")).to_be_visible(timeout=LONG)
    expect(page.locator(".st-key-data-staged-problems")).to_be_visible(timeout=LONG)
    expect(page.locator(".st-key-data-load")).to_have_count(0)
    expect_no_traceback(page)
    assert space.datasets() == before
    space.close()


def test_a_hostile_file_is_shown_as_text(file_server, open_page, tmp_path):
    page = open_page(file_server.url)
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
    assert "Traceback" not in file_server.errors()


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
