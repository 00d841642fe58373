"""What a person wrote into their columns comes out of an export as it went in."""

import csv
import gzip
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from format_cases import Resolution

from core import formats
from core.data.dataset import CandidateDataset
from core.errors import ExportError
from core.store import Workspace

HEADER = ["id", "time", "zip", "big", "small", "exact", "padded", "signed", "day", "text"]
CELLS = [
    ["0007", "1700000074", "01000", "9007199254740901", "1e-05", "1.50", " 7", "+1", "2024-02-29"],
    ["0008", "1700000099", "00200", "9007199254740903", "1E5", "2.00", "8 ", "-0", "2024-2-3"],
    ["0009", "1699999999", "99999", "12345678901234567", "1.e2", ".5", "9", "-3.0", "03/02/24"],
]
TEXTS = ["@someone said =1+1", 'a "b", c\nd', "=SUM(A1)"]
ROWS = [[*cells, text] for cells, text in zip(CELLS, TEXTS, strict=True)]
LABELS = [["1", "0"], ["0", "1"], ["1", "1"]]


def resolution(n: int = 3, *labels: str, new: bool = False) -> Resolution:
    shape = (n, len(labels) or 2)
    chosen = np.ones(shape, np.uint8) if new else np.eye(*shape, dtype=np.uint8)
    reasons = np.zeros(shape, np.uint8)
    return Resolution(chosen, np.full(shape, 0.25, np.float32), reasons, ("because",))


def csv_text(separator: str = ",", end: str = "\n", quoted: bool = False) -> str:
    """Return the rows, numbers in quotes if asked: those belong to the bytes of a line."""

    def cell(text: str) -> str:
        special = any(one in text for one in (separator, '"', "\n"))
        return '"' + text.replace('"', '""') + '"' if special or quoted else text

    rows = [[*HEADER, "label_a", "label_b"], *([*r, *y] for r, y in zip(ROWS, LABELS, strict=True))]
    return end.join(separator.join(map(cell, row)) for row in rows) + end


def exported(path: Path, target: Path, **how) -> Path:
    dataset = formats.read(path).dataset
    return formats.write(dataset, target, resolution=resolution(dataset.n_instances), **how)


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("quoted", [False, True])
def test_every_line_of_a_csv_file_begins_as_it_did(separator, end, quoted, tmp_path):
    text = csv_text(separator, end, quoted)
    kind = "tsv" if separator == "\t" else "csv"
    source = tmp_path / f"a.{kind}"
    source.write_bytes(text.encode())
    dataset = formats.read(source).dataset
    assert dataset.features[:, 0].tolist() == [np.float32(float(row[1])) for row in CELLS]
    out = exported(source, tmp_path / f"out.{kind}").read_bytes().decode()
    rest = out
    for row in csv_rows(text, end):
        start, _, rest = rest.partition(row)
        assert start == ""
        outcome, _, rest = rest.partition(end)
        assert outcome.count(separator) == 6
    assert rest == ""
    same = formats.write(dataset, tmp_path / f"same.{kind}")
    assert same.read_bytes() == source.read_bytes()


def csv_rows(text: str, end: str) -> list[str]:
    """Cut at line ends outside quotes."""
    rows, row = [], ""
    for line in text.split(end):
        row += line
        if row.count('"') % 2 == 0:
            rows.append(row)
            row = ""
        else:
            row += end
    return [row for row in rows if row]


@pytest.mark.parametrize(
    "line",
    [
        '5" pipe,1,1,0',
        '"a""b" tail,1,1,0',
        "'=x,1,1,0",
        ' "not quoted",1,1,0',
        "ü,1,1,0",
        '"",1,1,0',
    ],
)
def test_odd_quotes_are_copied_as_pyarrow_reads_them(line, tmp_path):
    lines = ["text,x,label_a,label_b", line, "", '"b,\r\nb",2.50,0,1', "c,3,1,1"]
    source = tmp_path / "a.csv"
    source.write_text("\n".join(lines), newline="")
    out = exported(source, tmp_path / "out.csv").read_bytes().decode()
    kept = [one + "," for one in lines if one]
    assert [one for one in kept if one in out] == kept


def test_latin1_utf16_and_packed_files_keep_their_cells(tmp_path):
    text = "id,x,label_a,label_b\nMöwe,01.50,1,0\nb,2,0,1\nc,3,1,1\n"
    files = {"latin.csv": text.encode("latin-1"), "wide.csv": text.encode("utf-16")}
    files["packed.csv.gz"] = gzip.compress(text.encode())
    for name, content in files.items():
        source = tmp_path / name
        source.write_bytes(content)
        out = exported(source, tmp_path / f"{name}.out.csv").read_text("utf-8")
        assert "\nMöwe,01.50,1,0," in out


def test_an_export_read_and_exported_again_keeps_the_cells(tmp_path):
    source = tmp_path / "a.csv"
    source.write_text(csv_text())
    once = exported(source, tmp_path / "once.csv")
    twice = exported(once, tmp_path / "twice.csv")
    first, second = (list(csv.reader(path.open(newline=""))) for path in (once, twice))
    assert first == second
    assert [row[:10] for row in second[1:]] == ROWS


@pytest.mark.parametrize("kind", ["jsonl", "json"])
def test_json_values_are_copied_as_they_are_written(kind, tmp_path):
    written = [
        '{"id": 7, "x": 1.50, "n": 9007199254740901, "z": "01", "t": "\\u00e9", "labels": ["a"]}',
        '{ "id":8,"x":1E5, "n": 12345678901234567890, "z": "1", "t": "é",  "labels": ["b"] }',
        '{"id": 9, "x": -0.0, "n": 1, "z": "-", "labels": ["a", "b"]}',
    ]
    source = tmp_path / f"a.{kind}"
    source.write_text("\n".join(written) if kind == "jsonl" else f'{{"d": [{", ".join(written)}]}}')
    for target in ("jsonl", "json"):
        out = exported(source, tmp_path / f"out.{target}")
        text = out.read_text()
        for one in written:
            assert one[:-1].rstrip() in text
        rows = text.splitlines() if target == "jsonl" else json.loads(text)
        rows = [json.loads(row) if isinstance(row, str) else row for row in rows]
        assert [row["resolved"] for row in rows] == [["a"], ["b"], []]
        again = exported(out, tmp_path / f"again.{target}").read_text()
        assert '"x": 1.50, "n": 9007199254740901' in again
        assert again.count('"resolved"') == 3


def test_parquet_keeps_types_and_values(tmp_path):
    table = pa.table(
        {
            "id": pa.array([7, 8, 9], pa.int32()),
            "big": pa.array([9007199254740901, 2**62, 3], pa.int64()),
            "exact": pa.array([0.1, 1 / 3, 2.5], pa.float64()),
            "day": pa.array([0, 1, 2], pa.date32()),
            "at": pa.array([1, 2, 3], pa.timestamp("ns", "UTC")),
            "kind": pa.array(["u,v", "w", "u,v"]).dictionary_encode(),
            "tags": pa.array([["a"], [], None], pa.list_(pa.string())),
            "long": pa.array(["x,y", None, "z"], pa.large_string()),
            "label_a": pa.array([True, False, True]),
            "label_b": pa.array([False, True, True]),
        }
    ).replace_schema_metadata({"mine": "kept"})
    source = tmp_path / "a.parquet"
    pq.write_table(table, source)
    out = pq.read_table(exported(source, tmp_path / "out.parquet"))
    assert out.select(table.column_names).equals(table)
    assert out.schema.metadata[b"mine"] == b"kept"
    assert out.schema.field("kind").type == table.schema.field("kind").type
    with exported(source, tmp_path / "out.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["big"] for row in rows] == ["9007199254740901", str(2**62), "3"]
    assert [float(row["exact"]) for row in rows] == [0.1, 1 / 3, 2.5]
    assert [row["kind"] for row in rows] == ["u,v", "w", "u,v"]
    assert [row["long"] for row in rows] == ["x,y", "", "z"]


def test_text_becomes_a_number_in_a_typed_file_only_without_loss(tmp_path):
    source = tmp_path / "a.csv"
    source.write_text(csv_text())
    for target in ("out.parquet", "out.jsonl"):
        out = exported(source, tmp_path / target)
        held = pq.read_table(out).to_pylist() if target.endswith("parquet") else json_rows(out)
        columns = {name: [row[name] for row in held] for name in HEADER}
        assert columns["time"] == [1700000074, 1700000099, 1699999999]
        assert columns["big"] == [9007199254740901, 9007199254740903, 12345678901234567]
        for i, name in enumerate(HEADER):
            if name not in ("time", "big"):
                assert columns[name] == [row[i] for row in ROWS]
        read_back, read_first = (formats.read(path).dataset.features for path in (out, source))
        assert np.array_equal(read_back, read_first)


def json_rows(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_numbers_of_a_csv_file_are_numbers_in_json(tmp_path):
    source = tmp_path / "a.csv"
    source.write_text("x,y,label_a\n0.5488135039273248,1.50,1\n1,2,0\n3,1e3,1\n")
    out = json_rows(formats.write(formats.read(source).dataset, tmp_path / "b.jsonl"))
    assert [row["x"] for row in out] == [0.5488135039273248, 1, 3]
    assert [row["y"] for row in out] == [1.5, 2, 1000]
    assert [row["label_a"] for row in out] == [1, 0, 1]


def test_decimal_commas_go_into_other_files(tmp_path):
    source = tmp_path / "a.tsv"
    source.write_text("x\ty\tlabel_a\n0,50\t01\t1\n1\t2\t0\n3\t3\t1\n")
    dataset = formats.read(source).dataset
    assert formats.write(dataset, tmp_path / "b.tsv").read_text() == source.read_text()
    assert formats.write(dataset, tmp_path / "b.csv").read_text().splitlines()[1] == "0.50,01,1"
    out = json_rows(formats.write(dataset, tmp_path / "b.jsonl"))
    assert [(row["x"], row["y"]) for row in out] == [(0.5, "01"), (1, "2"), (3, "3")]


def test_rows_of_a_long_file_stay_as_they_came(tmp_path):
    rows = ["i1,0100,a,1", "i2,0200,b,1", "i1,0100,b,0", "i3,1.50,a,1"]
    source = tmp_path / "a.csv"
    source.write_text("id,x,label,value\n" + "\n".join(rows) + "\n")
    out = exported(source, tmp_path / "out.csv").read_text().splitlines()
    assert out[0] == "id,x,label,value,resolved,conf,reason"
    assert [line.rsplit(",", 3)[0] for line in out[1:]] == rows
    assert [line.split(",")[4] for line in out[1:]] == ["1", "1", "0", "0"]
    dataset = formats.read(source).dataset
    new = formats.write(dataset, tmp_path / "new.csv", resolution=resolution(new=True))
    more = new.read_text().splitlines()[5:]
    assert more == ["i2,,a,0,1,0.25,because", "i3,,b,0,1,0.25,because"]


def test_a_file_that_changed_since_it_was_read_is_not_copied(tmp_path):
    source = tmp_path / "a.csv"
    source.write_text(csv_text())
    dataset = formats.read(source).dataset
    source.write_text(csv_text().replace("01000", "01001"))
    with pytest.raises(ExportError, match="changed"):
        formats.write(dataset, tmp_path / "out.csv")
    assert [path.name for path in tmp_path.iterdir()] == ["a.csv"]


def stored(space: Workspace, path: Path) -> CandidateDataset:
    return space.load_dataset(space.add_dataset(formats.read(path).dataset, path.name))


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_a_workspace_keeps_the_file_when_the_user_deletes_it(kind, tmp_path):
    source = tmp_path / "a.csv"
    source.write_text(csv_text())
    if kind != "csv":
        source = formats.write(formats.read(source).dataset, tmp_path / f"a.{kind}")
    direct = exported(source, tmp_path / f"direct.{kind}")
    dataset = stored(Workspace(tmp_path / "space"), source)
    source.unlink()
    out = formats.write(dataset, tmp_path / f"out.{kind}", resolution=resolution())
    assert out.read_bytes() == direct.read_bytes()


def test_the_same_data_in_another_file_takes_its_place(tmp_path):
    space, source = Workspace(tmp_path / "space"), tmp_path / "a.csv"
    for big in ("9007199254740901", "9007199254740900"):  # the same as float32
        source.write_text(csv_text().replace("9007199254740901", big))
        dataset = stored(space, source)
        assert formats.write(dataset, tmp_path / f"{big}.csv").read_bytes() == source.read_bytes()
    held = list((tmp_path / "space" / "datasets").glob("*/original-*"))
    assert len(held) == 2  # whoever opened the first one may still export it
    for path in held:
        os.utime(path, (0, 0))
    stored(space, source)
    assert len(list((tmp_path / "space" / "datasets").glob("*/original-*"))) == 1
    arrays = CandidateDataset(
        dataset.features, dataset.candidates, dataset.label_names, dataset.ids
    )
    again = space.load_dataset(space.add_dataset(arrays, "arrays alone"))
    assert formats.write(again, tmp_path / "again.csv").read_bytes() == source.read_bytes()


def test_a_damaged_copy_is_told_and_loading_again_repairs_it(tmp_path):
    space, source = Workspace(tmp_path / "space"), tmp_path / "a.csv"
    source.write_text(csv_text())
    dataset = stored(space, source)
    (copy,) = (tmp_path / "space" / "datasets").glob("*/original-*")
    copy.write_bytes(copy.read_bytes()[:-30])
    with pytest.raises(ExportError, match="Load the file again"):
        formats.write(dataset, tmp_path / "out.csv")
    same = formats.write(stored(space, source), tmp_path / "out.csv")
    assert same.read_bytes() == source.read_bytes()


def test_a_process_killed_while_it_keeps_another_file_leaves_the_first_one(tmp_path):
    space, source = Workspace(tmp_path / "space"), tmp_path / "a.csv"
    source.write_text(csv_text())
    dataset = stored(space, source)
    other = tmp_path / "b.csv"
    other.write_text(csv_text().replace("9007199254740901", "9007199254740900"))
    script = (
        "import sys; from core import formats; from core.store import Workspace;"
        "Workspace(sys.argv[1]).add_dataset(formats.read(sys.argv[2]).dataset, 'b')"
    )
    command = [sys.executable, "-c", script, str(space.folder), str(other)]
    env = {**os.environ, "PLAIN_FAILPOINT": "dataset.original_written"}
    assert subprocess.run(command, env=env).returncode == -signal.SIGKILL
    dataset = space.load_dataset(dataset.fingerprint)
    assert formats.write(dataset, tmp_path / "out.csv").read_bytes() == source.read_bytes()


def test_who_opened_the_data_still_exports_after_the_same_file_was_loaded_again(tmp_path):
    space, source = Workspace(tmp_path / "space"), tmp_path / "a.csv"
    source.write_text(csv_text())
    before = stored(space, source)
    stored(space, source)
    assert formats.write(before, tmp_path / "out.csv").read_bytes() == source.read_bytes()


def test_data_stored_without_its_file_still_opens_and_exports(tmp_path):
    """As workspaces were before: the columns and order of the file, numbers as float32."""
    space, source = Workspace(tmp_path / "space"), tmp_path / "a.csv"
    source.write_text("x,id,label_a\n0.50,i1,1\n1.25,i2,0\n2,i3,1\n")
    fingerprint = stored(space, source).fingerprint
    folder = tmp_path / "space" / "datasets" / fingerprint
    meta = json.loads((folder / "meta.json").read_text())
    del meta["original"]
    (folder / "meta.json").write_text(json.dumps(meta))
    dataset = space.load_dataset(fingerprint)
    assert dataset.original is None
    out = formats.write(dataset, tmp_path / "out.csv", mapping=space.mapping(fingerprint))
    assert out.read_text() == "x,id,label_a\n0.5,i1,1\n1.25,i2,0\n2.0,i3,1\n"


def test_the_beginning_of_a_data_set_takes_the_beginning_of_its_file(tmp_path):
    lines = ["x,label_a,label_b", *(f"{i}.50,1,0" for i in range(9))]
    source = tmp_path / "a.csv"
    source.write_text("\n".join(lines) + "\n")
    whole = formats.read(source).dataset
    few = CandidateDataset(whole.features[:3], whole.candidates[:3], whole.label_names)
    out = formats.write(few.read_from(whole.original), tmp_path / "out.csv")
    assert out.read_text().splitlines() == lines[:4]
