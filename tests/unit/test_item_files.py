"""A file of annotations per item: LabelMe, Pascal VOC, brat, in a folder or zip; CVAT's for all."""

import json
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from fuzzing import survive
from PIL import Image

from core import formats
from core.encoders.pictures import content_of, source_of
from core.errors import DatasetError

LABELS = (["dog"], ["dog", "sea"], [], ["sea"])


def picture(path: Path, i: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (8, 8), (50 * i, 90, 200)).save(path)


def labelme(folder: Path) -> None:
    for i, labels in enumerate(LABELS):
        picture(folder / f"{i}.png", i)
        shapes = [{"label": name, "points": [[0, 0], [1, 1]]} for name in (*labels, *labels)]
        about = {"version": "5.0", "flags": {"blurred": i == 2}, "shapes": shapes}
        content = {**about, "imagePath": f"..\\images\\{i}.png", "imageData": None}
        (folder / f"{i}.json").write_text(json.dumps(content))


def voc(folder: Path) -> None:
    (folder / "Annotations").mkdir()
    for i, labels in enumerate(LABELS):
        picture(folder / "JPEGImages" / f"{i}.png", i)
        objects = "".join(f"<object><name>{name}</name></object>" for name in labels)
        text = f"<annotation><filename>{i}.png</filename>{objects}</annotation>"
        (folder / "Annotations" / f"{i}.xml").write_text(text)


def brat(folder: Path) -> None:
    for i, labels in enumerate(LABELS):
        (folder / f"{i}.txt").write_text(f"a text of {' and '.join(labels)} number {i}\n")
        spans = [f"T{k}\t{name} {k} {k + 3}\tabc\n" for k, name in enumerate(labels)]
        (folder / f"{i}.ann").write_text("".join(spans) + "#1\tAnnotatorNotes T1\tunsure\n")


def zipped(folder: Path) -> Path:
    path = folder.with_suffix(".zip")
    with zipfile.ZipFile(path, "w") as archive:
        for file in sorted(folder.rglob("*")):
            archive.write(file, f"set/{file.relative_to(folder)}")
    return path


@pytest.mark.parametrize("packed", [False, True], ids=["folder", "zip"])
@pytest.mark.parametrize("make", [labelme, voc, brat])
def test_labels_are_what_is_marked(
    make: Callable[[Path], None], packed: bool, tmp_path: Path
) -> None:
    folder = tmp_path / "items"
    folder.mkdir()
    make(folder)
    path = zipped(folder) if packed else folder
    result = formats.read(path)
    data = result.dataset
    sets = [{data.label_names[j] for j in row.nonzero()[0]} for row in data.candidates]
    third = {"blurred"} if make is labelme else set()
    assert sets == [{"dog"}, {"dog", "sea"}, third, {"sea"}]
    assert formats.detect(folder) == "item_files"
    if make is not brat:
        source = source_of(path)
        assert data.display is not None
        assert all(content_of(cell, source)[:4] == b"\x89PNG" for cell in data.display["image"])


def cvat(folder: Path) -> Path:
    images = []
    for i, labels in enumerate(LABELS):
        picture(folder / "images" / f"{i}.png", i)
        marked = "".join(f'<tag label="{name}"/><box label="{name}" xtl="1"/>' for name in labels)
        images.append(f'<image id="{i}" name="{i}.png" width="8" height="8">{marked}</image>')
    names = "".join(f"<label><name>{name}</name></label>" for name in ("sea", "dog", "cat"))
    meta = f"<meta><task><labels>{names}</labels></task></meta>"
    path = folder / "annotations.xml"
    path.write_text(f"<annotations><version>1.1</version>{meta}{''.join(images)}</annotations>")
    return path


@pytest.mark.parametrize("packed", [False, True], ids=["file", "zip"])
def test_cvat_declares_its_labels(packed: bool, tmp_path: Path) -> None:
    folder = tmp_path / "task"
    folder.mkdir()
    path = cvat(folder)
    data = formats.read(zipped(folder) if packed else path).dataset
    assert data.label_names == ("sea", "dog", "cat")
    assert data.candidates.tolist() == [[0, 1, 0], [1, 1, 0], [0, 0, 0], [1, 0, 0]]
    assert data.ids == ("0.png", "1.png", "2.png", "3.png")


def test_mutated_annotations_are_read_or_refused(tmp_path: Path) -> None:
    for make in (labelme, voc, brat):
        folder = tmp_path / make.__name__
        folder.mkdir()
        make(folder)
        path = next(
            file for file in sorted(folder.rglob("*")) if file.suffix in (".json", ".xml", ".ann")
        )
        survive(lambda _, folder=folder: formats.read(folder), path.read_bytes(), path, 40)
    folder = tmp_path / "task"
    folder.mkdir()
    path = cvat(folder)
    survive(formats.read, path.read_bytes(), path, 40)


def test_half_a_character_in_a_name_is_no_crash(tmp_path: Path) -> None:
    labelme(tmp_path)
    content = '{"shapes": [{"label": "\\ud800"}], "imagePath": "\\ud800.png"}'
    (tmp_path / "0.json").write_text(content)
    assert formats.read(tmp_path).dataset.n_instances == len(LABELS)


def test_entities_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "annotations.xml"
    path.write_text(
        '<!DOCTYPE a [<!ENTITY x "xxxx">]><annotations><image name="&x;"></image></annotations>'
    )
    with pytest.raises(DatasetError, match="entities"):
        formats.read(path)


def test_names_do_not_lead_out_of_the_folder(tmp_path: Path) -> None:
    folder = tmp_path / "items"
    folder.mkdir()
    labelme(folder)
    secret = tmp_path / "secret.json"
    secret.write_text((folder / "0.json").read_text())
    (folder / "9.json").symlink_to(secret)
    result = formats.read(folder)
    assert result.dataset.n_instances == len(LABELS)
    assert any("9.json" in str(one.value) for one in result.problems)
