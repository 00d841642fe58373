"""Pictures as strangers bring them: found beside the data, never outside, hostile ones told."""

import base64
import hashlib
import io
import json
import os
import shutil
import struct
import tracemalloc
import zipfile
import zlib
from contextlib import closing

import format_cases as cases
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from core import formats
from core.data.dataset import PENDING_FEATURES
from core.encoders import missing_pictures, plan
from core.encoders.pictures import (
    BrokenPicture,
    FolderPictures,
    NoPictures,
    ZipPictures,
    content_of,
    opened,
)
from core.encoders.thumbnails import LARGE, NO_PICTURE, SMALL, Thumbnails
from core.errors import DatasetError
from core.formats import read, write
from core.formats.shared.original import kept
from core.store import Workspace

NAMES = ("red", "green", "blue")


def picture(colour=(200, 30, 30), size=(40, 30), kind="PNG"):
    content = io.BytesIO()
    Image.new("RGB", size, colour).save(content, kind)
    return content.getvalue()


def png_header(width, height):
    """A PNG that claims a size and has no pixels."""

    def chunk(name, body):
        return (
            struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))
        )

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    pixels = zlib.compress(bytes(10_000))
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")
    )


def make_table(folder, n=6, cell=lambda i: f"img/{i}.png"):
    (folder / "img").mkdir(parents=True)
    rows = ["image,labels"]
    for i in range(n):
        (folder / f"img/{i}.png").write_bytes(picture((40 * i, 90, 10)))
        rows.append(f"{cell(i)},{NAMES[i % 3]}|{NAMES[(i + 1) % 3]}")
    (folder / "table.csv").write_text("\n".join(rows) + "\n")
    return folder / "table.csv"


def make_folder_per_label(folder):
    for i in range(6):
        for label in {NAMES[i % 3], NAMES[i % 2]}:
            (folder / label).mkdir(parents=True, exist_ok=True)
            (folder / label / f"{i}.png").write_bytes(picture((40 * i, 90, 10)))
    return folder


def zipped(folder, target):
    with zipfile.ZipFile(target, "w") as archive:
        for path in sorted(folder.rglob("*")):
            archive.write(path, path.relative_to(folder.parent))
    return target


def sets(dataset):
    return [{dataset.label_names[j] for j in np.flatnonzero(row)} for row in dataset.candidates]


def broken(path, data=None):
    result = read(path)
    return missing_pictures(result, plan(result), data or path)["image"]


def test_a_table_names_pictures_beside_it(tmp_path):
    result = read(make_table(tmp_path))
    assert result.mapping.image == "image"
    assert result.dataset.feature_names == PENDING_FEATURES
    assert [(one.column, one.offer.name) for one in plan(result)] == [("image", "efficientnet")]
    assert broken(tmp_path / "table.csv") == ()


@pytest.mark.parametrize("name", ["image", "file_name", "filename"])
def test_the_column_of_pictures_is_found_whatever_its_name(tmp_path, name):
    table = make_table(tmp_path)
    table.write_text(table.read_text().replace("image,", f"{name},"))
    assert read(table).mapping.image == name


@pytest.mark.parametrize("kind", ["folder", "zip", "json", "parquet", "bare names"])
def test_other_ways_to_bring_a_table_and_its_pictures(tmp_path, kind):
    folder = tmp_path / "set"
    cell = (lambda i: f"{i}.png") if kind == "bare names" else (lambda i: f"img/{i}.png")
    path = table = make_table(folder, cell=cell)
    rows = [line.split(",") for line in table.read_text().splitlines()[1:]]
    columns = {"image": [row[0] for row in rows], "labels": [row[1].split("|") for row in rows]}
    if kind == "folder":
        path = folder
    elif kind == "zip":
        path = zipped(folder, tmp_path / "set.zip")
    elif kind in ("json", "parquet"):
        path = table.with_suffix(f".{kind}")
        if kind == "json":
            path.write_text(pa.table(columns).to_pandas().to_json(orient="records"))
        else:
            pq.write_table(pa.table(columns), path)
    result = read(path)
    assert result.dataset.n_instances == 6
    assert set(result.dataset.label_names) == set(NAMES)
    assert broken(path) == ()


def test_pictures_inside_the_cells(tmp_path):
    url = "data:image/png;base64," + base64.b64encode(picture()).decode()
    images = [url] * 3 + ["data:image/png;base64,AAAA"]
    path = tmp_path / "urls.parquet"
    pq.write_table(pa.table({"image": images, "labels": [["a"], ["b"], ["a"], ["b"]]}), path)
    assert [one.row for one in broken(path)] == [3]
    held = pa.table(
        {"image": [{"bytes": picture(), "path": "x"}] * 3, "labels": [["a"], ["b"], ["a"]]}
    )
    pq.write_table(held, path)
    assert broken(path) == ()


@pytest.mark.parametrize("is_zip", [False, True])
def test_a_folder_per_label_and_a_picture_in_several(tmp_path, is_zip):
    path = make_folder_per_label(tmp_path / "pictures")
    path = zipped(path, tmp_path / "pictures.zip") if is_zip else path
    result = read(path)
    assert result.format == "pictures"
    assert result.dataset.n_instances == 6
    assert sorted(map(sorted, sets(result.dataset))) == sorted(
        sorted({NAMES[i % 3], NAMES[i % 2]}) for i in range(6)
    )
    assert broken(path) == ()
    written = write(result.dataset, tmp_path / "out.csv", mapping=result.mapping)
    again = read(written).dataset
    assert again.ids == result.dataset.ids
    assert sets(again) == sets(result.dataset)


def test_pictures_without_a_label_are_refused(tmp_path):
    (tmp_path / "a.png").write_bytes(picture())
    with pytest.raises(DatasetError, match="folder that is its label"):
        read(tmp_path)


def test_broken_and_missing_pictures_are_counted_and_the_rest_goes_on(tmp_path):
    table = make_table(tmp_path)
    (tmp_path / "img/1.png").unlink()
    (tmp_path / "img/2.png").write_bytes(b"not a picture")
    found = {one.row: one.reason for one in broken(table)}
    assert found[1] == "there is no such file"
    assert found[2].startswith("it is not a picture")
    assert len(found) == 2


@pytest.mark.parametrize(
    "name",
    [
        "../secret.png",
        "img/../../secret.png",
        "..\\secret.png",
        "/etc/hosts",
        "C:\\x.png",
        "link.png",
    ],
)
def test_names_cannot_lead_out_of_the_folder(tmp_path, name):
    (tmp_path / "secret.png").write_bytes(picture())
    inside = tmp_path / "data"
    inside.mkdir()
    os.symlink(tmp_path / "secret.png", inside / "link.png")
    with pytest.raises(BrokenPicture, match="leads out"):
        FolderPictures(inside).read(name)


def test_links_to_folders_outside_are_not_followed(tmp_path):
    (tmp_path / "other").mkdir()
    (tmp_path / "other/secret.png").write_bytes(picture())
    (tmp_path / "data").mkdir()
    os.symlink(tmp_path / "other", tmp_path / "data/inside")
    with pytest.raises(BrokenPicture, match="leads out"):
        FolderPictures(tmp_path / "data").read("inside/secret.png")
    with pytest.raises(BrokenPicture, match="no such file"):
        FolderPictures(tmp_path / "data").read("secret.png")


def test_names_cannot_lead_out_of_a_zip(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("../outside.png", picture())
        archive.writestr("a/one.png", picture())
        archive.writestr("b/one.png", picture())
    source = ZipPictures(tmp_path / "a.zip")
    with pytest.raises(BrokenPicture, match="leads out"):
        source.read("../outside.png")
    with pytest.raises(BrokenPicture, match="no such file"):
        source.read("one.png")  # of two that could be meant
    assert source.read("a/one.png") == picture()
    assert not (tmp_path.parent / "outside.png").exists()


@pytest.mark.parametrize(
    "cell", ["https://example.org/a.png", "s3://bucket/a.png", "file:///a.png"]
)
def test_nothing_is_fetched(cell):
    with pytest.raises(BrokenPicture, match="nothing is fetched"):
        content_of(cell, NoPictures())


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (png_header(50_000, 50_000), "claims"),
        (png_header(12_000, 12_000), "claims"),
        (png_header(10_000, 10_000), "damaged"),  # allowed by its header, but nothing is there
        (b"<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>", "SVG"),
        (b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n", "not a picture"),
        (picture()[:60], "damaged"),
        (b"", "not a picture"),
    ],
    ids=["bomb", "large", "empty", "svg", "postscript", "cut", "nothing"],
)
def test_hostile_pictures_are_told(content, reason):
    with pytest.raises(BrokenPicture, match=reason):
        opened(content)


def test_a_header_of_many_pixels_takes_no_memory():
    tracemalloc.start()
    with pytest.raises(BrokenPicture):
        opened(png_header(50_000, 50_000))
    assert tracemalloc.get_traced_memory()[1] < 2**24
    tracemalloc.stop()


@pytest.mark.parametrize("mode", ["1", "L", "P", "LA", "RGBA", "CMYK", "I;16", "F"])
def test_every_kind_of_pixel_becomes_colours(mode):
    kind = "TIFF" if mode in ("CMYK", "F") else "PNG"
    content = io.BytesIO()
    grey = np.tile(np.arange(40, dtype=np.uint16) * 1600, (30, 1))
    if mode in ("I;16", "F"):
        image = Image.fromarray(grey if mode == "I;16" else grey.astype(np.float32))
    else:
        image = Image.new("RGB", (40, 30), (120, 130, 140)).convert(mode)
    image.save(content, kind)
    made = opened(content.getvalue())
    assert (made.mode, made.size) == ("RGB", (40, 30))
    if mode in ("I;16", "F"):
        assert np.ptp(np.asarray(made)) > 200  # spread, not clipped to white


def test_mutated_pictures_are_broken_or_opened():
    rng = np.random.default_rng(0)
    for kind in ("PNG", "JPEG", "GIF", "WEBP", "BMP", "TIFF"):
        whole = np.frombuffer(picture(kind=kind), np.uint8)
        for _ in range(40):
            content = whole.copy()
            content[rng.integers(0, len(content), 3)] = rng.integers(0, 256, 3)
            try:
                assert (
                    max(opened(content[: rng.integers(20, len(content) + 1)].tobytes()).size)
                    <= 1024
                )
            except BrokenPicture:
                pass


def test_thumbnails_are_made_once_and_found_by_row(tmp_path):
    kept, key = Thumbnails(tmp_path), bytes(range(32))
    assert not kept.has(key)
    kept.add(key, Image.new("RGB", (1000, 500), "blue"))
    assert kept.has(key)
    sizes = {side: Image.open(io.BytesIO(kept.jpeg(key, side))).size for side in (SMALL, LARGE)}
    assert sizes == {SMALL: (320, 160), LARGE: (1000, 500)}
    (tmp_path / "datasets/abc").mkdir(parents=True)
    kept.remember("abc", {"a picture": [key, NO_PICTURE]})
    found = kept.rows("abc")["a picture"]
    assert [kept.jpeg(row.tobytes()) is not None for row in found] == [True, False]
    assert kept.rows("unknown") == {}


def test_a_picture_is_seen_as_large_as_its_file_while_that_is_the_same(tmp_path):
    inside = tmp_path / "data"
    inside.mkdir()
    (tmp_path / "datasets/abc").mkdir(parents=True)
    content = io.BytesIO()
    Image.new("RGB", (6000, 1500), "blue").save(content, "PNG", exif=_exif())
    (inside / "a.png").write_bytes(content.getvalue())
    (tmp_path / "b.png").write_bytes(content.getvalue())
    os.symlink(tmp_path / "b.png", inside / "link.png")
    kept, key = Thumbnails(tmp_path), hashlib.sha256(content.getvalue()).digest()
    kept.remember("abc", {"image": [key]}, inside / "table.csv")
    assert kept.close_view("abc", "image", 0, "a.png") is None  # the table is gone
    (inside / "table.csv").write_text("image\na.png\n")
    seen = Image.open(io.BytesIO(kept.close_view("abc", "image", 0, "a.png")))
    assert (seen.format, seen.size) == ("JPEG", (4096, 1024))
    assert not seen.getexif()
    for name in ("../b.png", "link.png", str(tmp_path / "b.png"), "http://x/a.png", None):
        assert kept.close_view("abc", "image", 0, name) is None
    assert kept.close_view("abc", "image", 1, "a.png") is None
    assert kept.close_view("abc", "other", 0, "a.png") is None
    (inside / "a.png").write_bytes(picture())
    assert kept.close_view("abc", "image", 0, "a.png") is None


def _exif():
    exif = Image.Exif()
    exif[0x010E] = "a place nobody should know"
    return exif


def test_a_folder_per_label_comes_out_again(tmp_path):
    for label, name, shade in (("sea", "a", 1), ("sea", "b", 2), ("sky", "b", 2), ("sky", "c", 3)):
        (tmp_path / "in" / label).mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (8, 8), (shade, 0, 0)).save(tmp_path / "in" / label / f"{name}.png")
    Image.new("RGB", (8, 8), (9, 0, 0)).save(tmp_path / "in" / "sky" / "d.png")
    given = formats.read(tmp_path / "in").dataset
    space = Workspace(tmp_path / "space")
    stored = space.load_dataset(space.add_dataset(given, "in"))
    out = formats.write(stored, tmp_path / "out.zip", format="pictures")
    again = formats.read(out).dataset
    assert (again.ids, again.label_names) == (given.ids, given.label_names)
    assert again.candidates.tolist() == given.candidates.tolist()
    rejected = cases.resolution_of(given)
    rejected.labels[:] = given.candidates
    rejected.labels[0] = 0
    cleaned = formats.read(
        formats.write(stored, tmp_path / "none.zip", resolution=rejected)
    ).dataset
    assert cleaned.candidates.any(axis=1).tolist().count(False) == 1
    table = formats.read(formats.write(stored, tmp_path / "out.csv")).dataset
    assert table.ids == given.ids
    space.close()


def fiftyone_pictures(dataset, target):
    """Return the pictures of a folder for FiftyOne, in the order of the instances."""
    formats.write(dataset, target, format="fiftyone")
    samples = json.loads((target / "samples.json").read_text("utf-8"))["samples"]
    return [(target / one["filepath"]).read_bytes() for one in samples]


def test_fiftyone_gets_the_pictures_that_a_workspace_keeps(tmp_path):
    folder = tmp_path / "set"
    make_table(folder)
    given = [(folder / f"img/{i}.png").read_bytes() for i in range(6)]
    upload = zipped(folder, tmp_path / "set.zip")
    with kept(read(upload).dataset) as dataset:  # as `plain clean` does
        assert fiftyone_pictures(dataset, tmp_path / "cleaned") == given
    with closing(Workspace(tmp_path / "space")) as space:
        fingerprint = space.add_dataset(read(upload).dataset, "set.zip")
        views, keys = Thumbnails(space.folder), [bytes([i]) * 32 for i in range(1, 7)]
        for key, content in zip(keys, given, strict=True):
            views.add(key, Image.open(io.BytesIO(content)))
        views.remember(fingerprint, {"image": keys})
        upload.unlink()
        found = fiftyone_pictures(space.load_dataset(fingerprint), tmp_path / "uploaded")
        assert found == [views.jpeg(key, LARGE) for key in keys]
        labelled = read(make_folder_per_label(tmp_path / "labelled")).dataset
        stored = space.load_dataset(space.add_dataset(labelled, "labelled"))
        wanted = [(tmp_path / "labelled" / name).read_bytes() for name in labelled.ids]
        shutil.rmtree(tmp_path / "labelled")
        assert fiftyone_pictures(stored, tmp_path / "folders") == wanted
