"""Every family of layouts on its whole way: uploaded, trained on, one answer, exported as it came.

They run by `make hammer`.
"""

import io
import random
import zipfile
from pathlib import Path
from typing import Any

import layouts
import number_layouts
import pytest
import tool_layouts
import wild_layouts
from app_server import LONG, Server, end_runs
from desk_driver import answered, desk, expect_saved
from PIL import Image
from playwright.sync_api import Page, expect
from vote_table import vote_table

from core import formats
from core.data.dataset import CandidateDataset

pytestmark = pytest.mark.e2e
RECORD = ".provenance.json"
COLOURS = {"red": (220, 40, 30), "green": (30, 160, 60), "blue": (30, 60, 220)}


def of_text(layout: layouts.Layout) -> Any:
    return lambda folder: layout.write(folder)


def with_names(folder: Path) -> Path:
    """A table without a header and the names of its classes beside it, in a zip file."""
    layout = layouts.headerless_numbers()
    layout.write(folder)
    path = folder / "headerless.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for name in (layout.name, *layout.beside):
            archive.write(folder / name, name)
    return path


def picture(colour: str, i: int) -> bytes:
    content, (r, g, b) = io.BytesIO(), COLOURS[colour]
    Image.new("RGB", (40 + i, 40), (max(r - 3 * i, 0), g, b)).save(content, "PNG")
    return content.getvalue()


def pictures_and_table(folder: Path) -> Path:
    path = folder / "pictures.zip"
    with zipfile.ZipFile(path, "w") as archive:
        rows = ["file,labels"]
        for i in range(18):
            colour = list(COLOURS)[i % 3]
            archive.writestr(f"img/{i}.png", picture(colour, i))
            rows.append(f"img/{i}.png,{colour}{';red' if i % 4 == 0 and colour != 'red' else ''}")
        archive.writestr("table.csv", "\n".join(rows) + "\n")
    return path


def folder_per_label(folder: Path) -> Path:
    path = folder / "folders.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for i in range(18):
            colour = list(COLOURS)[i % 3]
            archive.writestr(f"{colour}/{i}.png", picture(colour, i))
            if i % 4 == 0 and colour != "red":
                archive.writestr(f"red/{i}.png", picture(colour, i))
    return path


def tables_of_people(folder: Path) -> Path:
    """A table of each person, in a zip file."""
    path = folder / "people.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for who in layouts.RATERS:
            mine = [one for one in layouts.crowd() if who in one.answers]
            rows = [[one.id, one.text, ";".join(one.answers[who])] for one in mine]
            archive.writestr(f"{who}.csv", layouts.table([["id", "text", "labels"], *rows]))
    return path


FAMILIES: dict[str, Any] = {
    "rater_rows": of_text(layouts.rater_rows_one_hot()),
    "columns_of_people": of_text(layouts.wide_columns()),
    "pictures_and_table": pictures_and_table,
    "lists_of_lists": of_text(layouts.lists_of_lists()),
    "parallel_lists": of_text(layouts.parallel_lists()),
    "keyed_json": of_text(layouts.keyed_by_source()),
    "headerless_with_names": with_names,
    "ragged_tags": of_text(layouts.ragged_tags()),
    "label_studio": of_text(tool_layouts.label_studio(random.Random(0))),
    "folder_per_label": folder_per_label,
    "long_with_value": of_text(layouts.long_with_value()),
    "no_features": of_text(layouts.worker_task_label()),
    "label_matrix": of_text(wild_layouts.label_matrix(random.Random(0))),
    "shares": of_text(wild_layouts.shares_of_raters(random.Random(0))),
    "coco": of_text(wild_layouts.coco(random.Random(0))),
    "counts_per_label": of_text(number_layouts.counts_of_three(random.Random(0))),
    "item_and_label": of_text(number_layouts.composite_ids(random.Random(0))),
    "people_of_one_label": of_text(number_layouts.worker_columns(random.Random(0))),
    "tables_of_people": tables_of_people,
    "regions": of_text(number_layouts.via_regions(random.Random(0))),
}
USUAL: tuple[str, ...] = ()


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """One server for all of them."""
    space = tmp_path_factory.mktemp("journeys") / "space"
    started = Server(space).start()
    yield started
    started.stop()
    started.log.close()
    end_runs(space)


def step(page: Page, title: str) -> None:
    page.locator(".st-key-frame-steps").get_by_text(title, exact=True).first.click()


def upload(page: Page, path: Path) -> None:
    expect(page.get_by_text("What it holds").or_(page.get_by_text("Nothing loaded"))).to_be_visible(
        timeout=LONG
    )
    if not page.locator(".st-key-data-upload_box").count():
        page.get_by_role("button", name="Open another").click()
    page.locator(".st-key-data-upload_box input[type=file]").set_input_files(path)
    page.locator(".st-key-data-load button").click(timeout=LONG)
    expect(page.locator(".st-key-data-staged_bar")).to_have_count(0, timeout=LONG)
    expect(page.get_by_text("What it holds")).to_be_visible(timeout=LONG)


def train(page: Page) -> None:
    step(page, "Train")
    field = page.locator(".st-key-train-epochs input")
    expect(field).to_be_visible(timeout=LONG)
    field.fill("3")
    field.press("Enter")
    page.locator(".st-key-train-start button").click()
    badge = page.locator(".st-key-train-bar").get_by_text("finished", exact=True)
    expect(badge).to_be_visible(timeout=LONG)


def answer(page: Page) -> None:
    step(page, "Review")
    name = page.get_by_role("textbox", name="Annotator")
    name.fill("ann")
    name.press("Enter")
    desk(page)
    rows = page.locator('[data-part="rows"] .row').count()
    for at in range(min(rows, 9)):  # every label gets a verdict: random questions propose none
        page.keyboard.press(str(at + 1))
    page.keyboard.press("a")
    expect_saved(page)
    assert answered(page) == 1


def exported(page: Page, folder: Path) -> CandidateDataset:
    step(page, "Export")
    with page.expect_download(timeout=LONG) as downloading:
        page.locator(".st-key-export-download button").first.click(timeout=LONG)
    with zipfile.ZipFile(downloading.value.path()) as packed:
        packed.extractall(folder)
        (record,) = (one for one in packed.namelist() if one.endswith(RECORD))
    return formats.read(folder / record.removesuffix(RECORD)).dataset


def said(data: CandidateDataset) -> Any:
    return data.votes and vote_table(data.votes, data.ids, data.label_names).to_dict("list")


@pytest.mark.parametrize(
    "family",
    [pytest.param(one, marks=() if one in USUAL else pytest.mark.hammer) for one in FAMILIES],
)
def test_a_layout_goes_in_and_comes_out_again(server, open_page, tmp_path, family):
    path = FAMILIES[family](tmp_path)
    given = formats.read(path).dataset
    page = open_page(f"http://127.0.0.1:{server.port}/")
    upload(page, path)
    train(page)
    answer(page)
    again = exported(page, tmp_path / "out")
    expect(page.get_by_test_id("stException")).to_have_count(0)
    assert again.n_instances == given.n_instances
    if family != "folder_per_label":  # which has a place for the labels that were kept, no other
        assert again.ids == given.ids
        assert sorted(again.label_names) == sorted(given.label_names)
        assert said(again) == said(given)
    assert "Traceback" not in server.errors()
