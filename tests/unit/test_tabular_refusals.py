"""CSV, TSV, Parquet, JSON Lines and JSON: recognised, unpacked, and bad or hostile ones refused."""

import contextlib
import gzip
import struct
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

import format_cases as cases
import fuzzing
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tabular_cases import KINDS, ROWS, assert_rows, read_text

from core import formats
from core.errors import DatasetError, PlainError


def test_content_decides_before_the_extension(tmp_path: Path) -> None:
    for kind in KINDS:
        path = formats.write(cases.small_dataset(), tmp_path / f"a.{kind}")
        for name in ("x", "x.txt", "x.data"):
            path = path.rename(tmp_path / name)
            assert formats.detect(path) == kind
            path.unlink(missing_ok=False) if name == "x.data" else None


def test_an_upload_is_read_under_its_own_name(tmp_path: Path) -> None:
    path = tmp_path / "upload-1"
    path.write_text('{"x": 1.5, "labels": ["a"]}\n' * 3)
    assert formats.read(path, name="C/data.jsonl").format == "jsonl"


@pytest.mark.parametrize("pack", ["gz", "zip"])
def test_packed_files_are_unpacked(pack: str, tmp_path: Path) -> None:
    data = ROWS.format(",").encode()
    packed = fuzzing.gzipped(data) if pack == "gz" else fuzzing.zipped(data, "folder/a.csv")
    path = tmp_path / f"a.csv.{pack}"
    path.write_bytes(packed)
    assert formats.detect(path) == "csv"
    assert_rows(formats.read(path))
    assert_rows(formats.read(path, name="b.csv"))


def test_a_zip_file_that_is_cut_off_is_called_one(tmp_path: Path) -> None:
    path = tmp_path / "a.csv.zip"
    path.write_bytes(fuzzing.zipped(ROWS.format(",").encode(), "a.csv")[:-30])
    with pytest.raises(DatasetError, match="not a zip file"):
        formats.read(path)


@pytest.mark.parametrize("pack", ["gz", "zip"])
def test_bombs_are_refused_early(
    pack: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("core.formats.shared.limits.ANY_FILE", 2**22)
    monkeypatch.setattr("core.formats.shared.limits.free_memory", lambda: 2**30)
    path = tmp_path / f"bomb.{pack}"
    zeros = b"\0" * 2**20
    if pack == "gz":
        with gzip.open(path, "wb", compresslevel=9) as file:
            for _ in range(300):
                file.write(zeros)
    else:
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            with archive.open("a.csv", "w") as member:
                for _ in range(300):
                    member.write(zeros)
    with pytest.raises(DatasetError, match="may unpack to"):
        formats.read(path)


def test_archives_of_several_files_and_workbooks_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    for names, message in (
        (("a", "b"), "one data file"),
        (("[Content_Types].xml", "b"), "workbooks"),
        (("mimetype", "content.xml"), "workbooks"),
    ):
        with zipfile.ZipFile(path, "w") as archive:
            for name in names:
                archive.writestr(name, "x")
        with pytest.raises(DatasetError, match=message):
            formats.read(path)


@pytest.mark.parametrize("name", ["a.pkl", "a.csv", "a.joblib"])
def test_pickles_are_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="pickle"):
        read_text(tmp_path, b"\x80\x04\x95\x10", name)


def test_every_bad_cell_is_told_at_once(tmp_path: Path) -> None:
    text = "id,x,y,label_a,label_b\n" + "".join(f"{i},1.5,{i},0,1\n" for i in range(2000))
    rows = text.splitlines()
    rows[1500] = "1499,wrong,inf,0,1"
    rows[1600] = "1599,1,1,2,maybe"
    rows[1700] = "1699,1"
    with pytest.raises(DatasetError) as caught:
        read_text(tmp_path, "\n".join(rows))
    found = {(p.row, p.column, p.value) for p in caught.value.problems}
    assert {(1500, "x", "wrong"), (1600, "label_a", "2"), (1600, "label_b", "maybe")} <= found
    assert ("1499", "y", "inf") in found
    [short] = [p for p in caught.value.problems if "every row must have 5 cells" in p.message]
    assert (short.row, short.value) == (1700, "2 in '1699,1'")
    assert all(p.fix for p in caught.value.problems)


def test_many_bad_cells_are_counted_not_listed(tmp_path: Path) -> None:
    text = "x,y,label_a\n" + "1,2,0\n" * 2000 + "wrong,1,1\n" * 500
    with pytest.raises(DatasetError) as caught:
        read_text(tmp_path, text)
    assert len(caught.value.problems) < 30
    assert "480 more" in str(caught.value)


def test_ids_that_clash_are_named(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="'i1'"):
        read_text(tmp_path, ROWS.format(",").replace("i3", "i1"))


def test_blank_label_cells_are_read_and_told(tmp_path: Path) -> None:
    result = read_text(tmp_path, "x,y,label_a\n1,2,\n2,3,1\n3,4,1\n")
    assert result.dataset.candidates.ravel().tolist() == [0, 1, 1]
    assert result.problems[0].column == "label_a"
    assert not result.problems[0].fatal


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "empty"),
        ("word", "known format|several columns"),
        ("a,b\n1.5,x\n2,y\n", "no label columns"),
        ("a,b\n1,2,3\n", "every row must have 2 cells"),
        ("x,label_a\n", "rows below"),
        ("x,label_a\n\n\n", "rows below"),
        ("x,label_a\n1,0\n", "at least 3 instances"),
    ],
)
def test_tables_that_say_too_little_are_refused(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match=message):
        read_text(tmp_path, text)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="cannot be read"):
        formats.read(tmp_path / "none.csv")


WIDE = 10**6
HOSTILE: dict[str, Callable[[], bytes]] = {
    "columns.csv": lambda: b"\n".join([b",".join(b"x%d" % i for i in range(WIDE))] * 2),
    "cells.csv": lambda: b"x,label_a\n1,0\n" + b"1," * WIDE + b"\n2,1\n3,1\n",
    "field.csv": lambda: b"x,label_a,text\n1,0," + b"a" * 2**25 + b"\n2,1,b\n3,1,c\n",
    "quote.csv": lambda: b'x,label_a\n1,0\n"' + b"a,b\n" * WIDE,
    "nul.csv": lambda: b"x,label_a\n1,0\n\0\0\0,\0\n2,1\n3,1\n",
    "zeros.csv": lambda: b"\0" * WIDE,
    "deep.json": lambda: b"[" * WIDE,
    "deeper.json": lambda: b'[{"x": ' * 10**5,
    "deep.jsonl": lambda: b'{"x": 1, "labels": ' + b"[" * WIDE + b"\n",
    "digits.json": lambda: b'[{"x": ' + b"9" * WIDE + b', "labels": "a"}]',
    "keys.jsonl": lambda: b"".join(b'{"k%d": 1}\n' % i for i in range(60_000)),
    "lists.csv": lambda: b'x,labels\n1,"' + b"[" * 90_000 + b"]" * 90_000 + b'"\n2,a\n3,b\n',
    "minus.csv": lambda: b"x,labels\n1,[" + b"-" * 90_000 + b"1]\n2,a\n3,b\n",
    "footer.parquet": lambda: b"PAR1" + b"\0" * 100 + struct.pack("<I", 2**31 - 1) + b"PAR1",
}


def test_a_header_of_many_columns_is_read(tmp_path: Path) -> None:
    header = ",".join([*(f"feature_{i}" for i in range(20_000)), "label_a"])
    row = ",".join(["1.5"] * 20_000)
    result = read_text(tmp_path, f"{header}\n{row},1\n{row},0\n{row},1\n")
    assert result.dataset.features.shape == (3, 20_000)
    with pytest.raises(DatasetError, match="at most 50,000 columns"):
        read_text(tmp_path, ",".join(f"x{i}" for i in range(50_001)) + "\n1,2\n")


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files_are_refused_or_read_in_time(name: str, tmp_path: Path) -> None:
    data = HOSTILE[name]()
    start = time.process_time()  # of this process: how busy the machine is does not matter
    with contextlib.suppress(PlainError):
        read_text(tmp_path, data, name)
    assert time.process_time() - start < 30  # the slowest takes 4, a bomb for ever


def test_parquet_that_declares_more_than_memory_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.parquet"
    zeros = pa.repeat(pa.scalar(0.0), 1_000_000)
    pq.write_table(pa.table({"x": zeros, "label_a": zeros}), path)
    assert path.stat().st_size < 2**14
    monkeypatch.setattr("core.formats.shared.limits.ANY_FILE", 2**21)
    monkeypatch.setattr("core.formats.shared.limits.free_memory", lambda: 2**25)
    with pytest.raises(DatasetError, match="may unpack to 2 MB"):
        formats.read(path)


@pytest.fixture(scope="module")
def whole_files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    return fuzzing.whole_files(tmp_path_factory.mktemp("whole"))


@pytest.mark.parametrize(
    "name",
    [
        *(f"{layout}.{kind}" for layout in ("one-hot", "sets") for kind in KINDS),
        *("packed.csv.gz", "packed.csv.zip"),
    ],
)
def test_damaged_files_only_ever_raise_plain_errors(
    name: str, whole_files: dict[str, bytes], tmp_path: Path
) -> None:
    outcomes = fuzzing.survive(formats.read, whole_files[name], tmp_path / name, 100, seed=1)
    assert outcomes["refused"] > 0
