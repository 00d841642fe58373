"""Out and back, every format: ids, labels, order, votes, decisions, confidences."""

import csv
import json
import shutil
import zipfile
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import format_cases as cases
import numpy as np
import pandas as pd
import pytest
from PIL import Image
from sklearn.datasets import load_svmlight_file
from typer.testing import CliRunner
from vote_table import vote_table

from core.cli import app
from core.data.dataset import CandidateDataset
from core.data.demo import load_demo
from core.errors import ConfigError, DatasetError, ExportError
from core.export import label_studio_users
from core.formats import read, writable, write
from core.formats.side_file import side_file_of
from core.review import Resolution, resolve
from core.store import Workspace

ODD_TEXTS = [
    ("007", "The sky, at night", ["Übung", "a, b"]),
    ("008", 'She said "no" — 東京', ["-ve", "sky"]),
    ("0009", "=1+1", []),
    ("010", "  red sky and sea  ", ["sky", "x y"]),
    ("11", "sky over the sea", ["日本", "sky", "a, b"]),
    ("012", 'two\nlines; "text"', ["it's 100%", "a|b;c", "Sky", "🙂", "text", "labels"]),
]
CROWD = [
    ("p1", "red sky over the sea", "anna", ["sky"]),
    ("p1", "red sky over the sea", "bob", ["sky", "sea"]),
    ("p2", "a dog", "anna", []),
    ("p2", "a dog", "cleo", ["dog"]),
    ("p3", "dog in the sea", "bob", ["dog", "sea"]),
    ("p4", "grey sky", "cleo", ["sky"]),
    ("p4", "grey sky", "2", ["Sky", "a|b"]),
    ("p1", "red sky over the sea", "李雷, K.", []),
]
DECIDED = (("keep", "anna"), ("reject", "2"), ("unsure", "anna"), ("keep", "Jörg, K."))


@dataclass(frozen=True)
class Decision:
    instance_id: str
    label: str
    verdict: str
    annotator: str
    time: str = "2026-03-01T10:00:00+00:00"


def table(path: Path, header: str, rows: list[tuple]) -> CandidateDataset:
    with path.open("w", encoding="utf-8", newline="") as file:
        lines = csv.writer(file)
        lines.writerow(header.split(","))
        lines.writerows([*cells, json.dumps(labels, ensure_ascii=False)] for *cells, labels in rows)
    return read(path).dataset


def pictures(folder: Path) -> CandidateDataset:
    rows = []
    for i, labels in enumerate((["sea", "sky"], ["dog"], [], ["dog", "sea"])):
        Image.new("RGB", (8, 8), (40 * i, 90, 200)).save(folder / f"picture {i}.png")
        rows.append((f"picture {i}.png", labels))
    return table(folder / "pictures.csv", "image,labels", rows)


CASES = {
    "demo": lambda folder: load_demo(n_instances=300),
    "odd": lambda folder: table(folder / "odd.csv", "id,text,labels", ODD_TEXTS),
    "pictures": pictures,
    "crowd": lambda folder: table(folder / "crowd.csv", "id,text,annotator,labels", CROWD),
}


def resolved(data: CandidateDataset) -> tuple[Resolution, list[Decision]]:
    """Resolve at random confidences, with decisions of two people on the first candidates."""
    rng = np.random.default_rng(0)
    confidences = rng.random(data.candidates.shape, dtype=np.float32) * data.candidates
    confidences[np.unravel_index(np.argmax(data.candidates), confidences.shape)] = 0
    cells = np.argwhere(data.candidates)[:4].tolist()
    made = [
        Decision(data.ids[i], data.label_names[j], *said)
        for (i, j), said in zip(cells, DECIDED, strict=True)
    ]
    return resolve(data, confidences, decisions=made), made


@pytest.mark.parametrize("format", list(writable()))
@pytest.mark.parametrize("case", list(CASES))
def test_every_export_comes_back_whole(case: str, format: str, tmp_path: Path) -> None:
    data = CASES[case](tmp_path)
    resolution, decisions = resolved(data)
    target = tmp_path / "out" / f"clean{writable()[format]}"
    target.parent.mkdir()
    write(data, target, resolution=resolution, record={}, decisions=decisions, format=format)
    back = read(target)
    assert back.dataset.label_names == data.label_names
    assert list(back.dataset.ids) == list(data.ids)
    np.testing.assert_array_equal(back.dataset.candidates, data.candidates)
    if data.truth is not None:
        np.testing.assert_array_equal(back.dataset.truth, data.truth)
    if data.votes is not None:
        assert back.dataset.votes is not None
        table = vote_table(data.votes, data.ids, data.label_names)
        assert vote_table(back.dataset.votes, data.ids, data.label_names).equals(table)
    assert back.outcome is not None
    np.testing.assert_array_equal(back.outcome.labels, resolution.labels)
    np.testing.assert_allclose(back.outcome.confidences, resolution.confidences, atol=1e-6)
    assert back.outcome.reason_texts == resolution.reason_texts
    np.testing.assert_array_equal(back.outcome.reasons, resolution.reasons)
    assert [one[:5] for one in back.decisions] == [
        (one.instance_id, one.label, one.verdict, one.annotator, one.time) for one in decisions
    ]
    assert back.fingerprint == data.fingerprint
    np.testing.assert_array_equal(cases.dense(back.dataset.features), cases.dense(data.features))


@pytest.mark.parametrize("format", list(writable()))
def test_votes_come_back_from_a_file_without_an_outcome(format: str, tmp_path: Path) -> None:
    data = CASES["crowd"](tmp_path)
    target = write(data, tmp_path / f"given{writable()[format]}", format=format)
    back = read(target).dataset
    assert back.votes is not None
    assert back.votes.sources == data.votes.sources
    np.testing.assert_array_equal(back.candidates, data.candidates)


@pytest.mark.parametrize("format", list(writable()))
def test_a_zip_of_an_export_comes_back_whole(format: str, tmp_path: Path) -> None:
    data = CASES["odd"](tmp_path)
    resolution, decisions = resolved(data)
    target = tmp_path / "out" / f"clean{writable()[format]}"
    target.parent.mkdir()
    write(data, target, resolution=resolution, record={}, decisions=decisions, format=format)
    packed = shutil.make_archive(str(tmp_path / "clean"), "zip", target.parent)
    back = read(packed)
    assert list(back.dataset.ids) == list(data.ids)
    np.testing.assert_array_equal(back.dataset.candidates, data.candidates)
    np.testing.assert_array_equal(back.outcome.labels, resolution.labels)
    assert len(back.decisions) == len(decisions)
    assert back.fingerprint == data.fingerprint
    with closing(Workspace(tmp_path / "space")) as space:
        stored = space.load_dataset(space.add_dataset(back.dataset, "clean.zip"))
        write(stored, tmp_path / "again.csv")
    assert list(read(tmp_path / "again.csv").dataset.ids) == list(data.ids)


def test_a_zip_like_an_export_cannot_lead_out(tmp_path: Path) -> None:
    for name in ("../evil.csv", "/evil.csv", "C:/evil.csv"):
        with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
            archive.writestr("a/samples.json", "{}")
            archive.writestr("a.plain.npz", b"")
            archive.writestr(name, "x")
        with pytest.raises(DatasetError, match="must lie in it"):
            read(tmp_path / "a.zip")
    assert not (tmp_path.parent / "evil.csv").exists()


def test_annotators_are_users_of_label_studio_only_where_told(tmp_path: Path) -> None:
    data = CASES["odd"](tmp_path)
    resolution, decisions = resolved(data)
    for format in ("labelstudio", "labelstudio-local-files"):
        target = tmp_path / f"{format}.json"
        users = label_studio_users(["anna=3", " 2 = bob@uni.de "], decisions)
        how = {"decisions": decisions, "format": format, "record": {}}
        write(data, target, resolution=resolution, users=users, **how)
        tasks = json.loads(target.read_text("utf-8"))
        said = {
            one["result"][0]["meta"]["text"][0].split(" on ")[0]: one.get("completed_by")
            for task in tasks
            for one in task["annotations"]
        }
        assert said == {
            "decided by anna": 3,
            "decided by 2": {"email": "bob@uni.de"},
            "decided by Jörg, K.": None,
        }
        assert [one.annotator for one in read(target).decisions] == [who for _, who in DECIDED]
    with pytest.raises(ExportError, match="Only tasks for Label Studio"):
        write(data, tmp_path / "a.csv", resolution=resolution, users=users, record={})


@pytest.mark.parametrize("pair", ["anna", "anna=", "=3", "anna=carl", "zoe=3"])
def test_users_that_cannot_be_are_refused(pair: str) -> None:
    with pytest.raises(ConfigError):
        label_studio_users([pair], [Decision("1", "sea", "keep", "anna")])


def test_a_changed_file_is_read_alone_and_that_is_said(tmp_path: Path) -> None:
    data = CASES["odd"](tmp_path)
    resolution, decisions = resolved(data)
    target = write(data, tmp_path / "a.csv", resolution=resolution, decisions=decisions)
    target.write_text(target.read_text("utf-8").replace("007", "700"), "utf-8")
    back = read(target)
    assert back.dataset.ids[0] == "700"
    assert back.outcome is None
    assert not back.decisions
    assert any("changed since" in problem.message for problem in back.problems)


def test_a_damaged_side_file_is_not_used_and_that_is_said(tmp_path: Path) -> None:
    data = CASES["odd"](tmp_path)
    target = write(data, tmp_path / "a.csv", resolution=resolved(data)[0])
    side_file_of(target).write_bytes(side_file_of(target).read_bytes()[:-300])
    back = read(target)
    assert back.outcome is None
    assert any("is not used" in problem.message for problem in back.problems)


def test_confidences_always_have_a_point_so_that_their_columns_are_no_whole_numbers(
    tmp_path: Path,
) -> None:
    data = CASES["odd"](tmp_path)
    resolution = resolve(data, np.zeros(data.candidates.shape, np.float32))
    text = write(data, tmp_path / "a.csv", resolution=resolution).read_text("utf-8")
    rows = csv.DictReader(text.splitlines())
    assert {row["conf_sky"] for row in rows} == {"0.0"}
    lines = write(data, tmp_path / "a.jsonl", resolution=resolution).read_text("utf-8").splitlines()
    assert all('"conf_sky": 0.0' in line for line in lines)


def test_the_provenance_tells_of_the_escape_and_raw_has_none(tmp_path: Path) -> None:
    data = CASES["odd"](tmp_path)
    for format, is_told in (("csv", True), ("csv-raw", False), ("jsonl", False)):
        target = tmp_path / f"{format}.out"
        write(data, target, resolution=resolved(data)[0], record={}, format=format)
        record = json.loads((tmp_path / f"{format}.out.provenance.json").read_text("utf-8"))
        assert ("note" in record) == is_told


def test_decisions_of_an_export_are_stored_with_their_data_once(tmp_path: Path) -> None:
    data = CASES["odd"](tmp_path)
    resolution, decisions = resolved(data)
    target = write(data, tmp_path / "a.jsonl", resolution=resolution, decisions=decisions)
    space = str(tmp_path / "space")
    Workspace(space).add_dataset(data, "odd")
    for n_new, n_known in ((4, 0), (0, 4)):
        done = CliRunner().invoke(app, ["decisions", str(target), "--workspace", space, "--json"])
        told = json.loads(done.stdout)
        assert (told["n_new"], told["n_known"], told["n_unknown"]) == (n_new, n_known, 0)
    empty = CliRunner().invoke(
        app, ["decisions", str(target), "--workspace", str(tmp_path / "other")]
    )
    assert "not in this workspace" in str(empty.exception)


def test_the_lines_of_the_docs_load_what_has_no_program_of_its_own(tmp_path: Path) -> None:
    data = CASES["odd"](tmp_path)
    resolution, _ = resolved(data)
    files = {
        name: write(data, tmp_path / f"clean{ending}", resolution=resolution, format=name)
        for name, ending in writable().items()
        if name in ("csv-raw", "tsv", "json", "jsonl", "npz", "svmlight")
    }
    ids, sky = {"dtype": {"id": str}}, data.label_names.index("sky")
    for table in (
        pd.read_csv(files["csv-raw"], **ids),
        pd.read_csv(files["tsv"], sep="\t", **ids),
        pd.read_json(files["json"], **ids),
        pd.read_json(files["jsonl"], lines=True, **ids),
    ):
        assert list(table["id"]) == list(data.ids)
        assert table["conf_sky"].dtype == np.float64
        np.testing.assert_allclose(table["conf_sky"], resolution.confidences[:, sky], atol=1e-4)
    assert np.array_equal(np.load(files["npz"])["resolved"], resolution.labels)
    features, labels = load_svmlight_file(str(files["svmlight"]), multilabel=True)
    assert np.allclose(features.toarray(), cases.dense(data.features), atol=1e-6)
    kept = [np.flatnonzero(row).tolist() for row in resolution.labels]
    assert [sorted(map(int, row)) for row in labels] == kept
