"""Small files that would take all memory or all day are read or refused, reader by reader.

The whole collection, up to ten megabytes each, is `tests/hammer/test_bombs.py`.
"""

import gzip
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import bombs
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.io
import scipy.sparse as sp

from core.errors import DatasetError
from core.formats import read
from core.formats.shared import limits, text_features

MB = 2**20


def refusal(path: Path) -> str:
    with pytest.raises(DatasetError) as caught:
        read(path)
    assert caught.value.__cause__ is None, f"refused by accident: {caught.value.__cause__!r}"
    return str(caught.value)


@pytest.fixture
def little_memory(monkeypatch) -> None:
    """A machine with so little free memory that small files are bombs."""
    monkeypatch.setattr(limits, "ANY_FILE", 4 * MB)
    monkeypatch.setattr(limits, "free_memory", lambda: 64 * MB)


def parquet_of(columns: dict) -> Callable[[Path], None]:
    return lambda path: pq.write_table(pa.table(columns), path)


def repeated(text: str, n: int) -> pa.Array:
    return pa.array([text]).take(pa.array(np.zeros(n, np.int32)))


def zip_of(files: dict[str, str | bytes], path: Path) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)


def file_per_item(path: Path) -> None:
    """LabelMe's files, every shape with a label of its own."""
    items = {}
    for i in range(400):
        box = {"points": [[0, 0], [1, 1]], "shape_type": "rectangle"}
        shapes = [{"label": f"name{i}_{j}", **box} for j in range(10)]
        item = {"version": "5.0", "flags": {}, "imagePath": f"{i}.jpg", "shapes": shapes}
        items[f"set/{i}.json"] = json.dumps({**item, "imageHeight": 5, "imageWidth": 5})
    zip_of(items, path)


def arrow_folder(path: Path) -> None:
    """A Hugging Face data set: one long text, 20,000 times."""
    texts = repeated("x" * 999, 20_000).dictionary_encode()
    table = pa.table({"text": texts, "labels": [["a"], ["b"]] * 10_000})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as file:
        file.write_table(table)
    state = {"_data_files": [{"filename": "data-00000-of-00001.arrow"}]}
    files = {"dataset_info.json": '{"features": {}}', "state.json": json.dumps(state)}
    files["data-00000-of-00001.arrow"] = sink.getvalue().to_pybytes()
    zip_of({f"set/{name}": content for name, content in files.items()}, path)


N = 200_000
FLAGS, ZEROS = np.ones(N, np.int8), np.zeros(N, np.float32)
LONG_LIST = pa.ListArray.from_arrays(pa.array([0, 3 * N, 3 * N], pa.int32()), np.zeros(3 * N))
TOO_LARGE = {
    "runs.parquet": parquet_of({**{f"x{j}": ZEROS for j in range(9)}, "label_a": FLAGS}),
    "text.parquet": parquet_of({"x": ZEROS, "label_a": FLAGS, "text": repeated("x" * 999, N)}),
    "lists.parquet": parquet_of({"embedding": LONG_LIST, "labels": ["a", "b"]}),
    "rows.csv.gz": lambda path: path.write_bytes(gzip.compress(b"a,label_b\n" + b"1,1\n" * 5 * MB)),
    "objects.json": lambda path: path.write_bytes(b'[{"id":1}' + b",{}" * 80_000 + b"]"),
    "keys.jsonl": lambda path: path.write_text("".join(f'{{"k{i}":1}}\n' for i in range(2_000))),
    "texts.arff": lambda path: path.write_text(
        "@relation 'a: -C 1'\n@attribute l {0,1}\n"
        + "".join(f"@attribute a{j} string\n" for j in range(200))
        + "@data\n"
        + "{0 1}\n" * 1_000
    ),
    "labels.svm": lambda path: path.write_text("9999 1:1\n" * 1_000),
    "zeros.npz": lambda path: np.savez_compressed(path, X=np.zeros((1_000, 2_000)), Yp=np.eye(3)),
    "zeros.mat": lambda path: scipy.io.savemat(
        path, {"data": np.zeros((1_000, 2_000)), "Yp": np.ones((1, 1_000))}, do_compression=True
    ),
    "fasttext.txt": lambda path: path.write_text(
        "".join(f"__label__name{i} some words of text {i % 7}\n" for i in range(4_000))
    ),
    "items.zip": file_per_item,
    "arrow.zip": arrow_folder,
    "fields.json": lambda path: path.write_text(
        "[" + ",".join(f'{{"data":{{"k{i}":"a"}},"annotations":[]}}' for i in range(400)) + "]"
    ),
}


@pytest.mark.parametrize("name", TOO_LARGE)
def test_what_unpacks_to_more_than_fits_is_refused_with_both_sizes(name, tmp_path, little_memory):
    TOO_LARGE[name](tmp_path / name)
    said = refusal(tmp_path / name)
    assert "unpack" in said
    assert " 4 MB" in said or "4,194,304" in said


@pytest.mark.parametrize("name", ["runs.parquet", "zeros.npz", "zeros.mat"])
def test_the_same_file_is_read_where_there_is_memory(name, tmp_path):
    TOO_LARGE[name](tmp_path / name)
    if name == "zeros.npz":
        np.savez_compressed(tmp_path / name, X=np.zeros((1_000, 2_000)), Yp=np.ones((1_000, 2)))
    assert read(tmp_path / name).dataset.n_instances in (1_000, N)


def test_a_sparse_table_that_unpacks_far_is_read_with_little_memory(tmp_path, little_memory):
    """2,000 columns of 20,000 rows are 160 MB of zeros, and some bytes of other values."""
    x = np.zeros(20_000, np.float32)
    x[::5_000] = 1
    columns = {f"x{j}": x for j in range(2_000)}
    parquet_of({**columns, "label_a": np.ones(20_000, np.int8)})(tmp_path / "a.parquet")
    features = read(tmp_path / "a.parquet").dataset.features
    assert sp.issparse(features)
    assert features.nnz == 8_000


@pytest.mark.parametrize(
    ("free", "size", "limit"),
    [
        (64, 0.01, 4 * 1024),  # gigabytes free, gigabytes of file -> megabytes allowed
        (64, 1.0, 16 * 1024),
        (4, 0.01, 512),
        (4, 1.0, 1024),
    ],
)
def test_any_file_may_take_a_sixteenth_of_the_memory_and_a_large_one_a_quarter(
    free, size, limit, monkeypatch, tmp_path
):
    monkeypatch.setattr(limits, "free_memory", lambda: free * 2**30)
    path = tmp_path / "file"
    with path.open("wb") as file:
        file.truncate(int(size * 2**30))
    with limits.limited(path):
        assert limits.size_limit() == limit * MB


def test_free_memory_is_what_machine_container_and_process_leave(monkeypatch):
    monkeypatch.setattr(limits.psutil, "virtual_memory", lambda: SimpleNamespace(available=9 * MB))
    monkeypatch.setattr(limits, "_container_free", lambda: iter([7 * MB]))
    monkeypatch.setattr(limits, "_process_free", lambda: iter([8 * MB]))
    assert limits.free_memory() == 7 * MB


QUICK = ("csv header of one name", "json a key per object", "cleanlab sparse shape", "npz claims")
QUICK += ("v73 claims", "mat sparse rows", "svmlight index", "arff entities", "zip of many files")


def test_bombs_are_refused_with_little_memory_and_time(tmp_path):
    """Read in processes of their own, one after the other, and measured."""
    paths = []
    for name in QUICK:
        file_name, make = bombs.BOMBS[name]
        (tmp_path / name).mkdir()
        paths.append(tmp_path / name / file_name)
        make(paths[-1])
    for name, outcome in zip(QUICK, bombs.measure(paths), strict=True):
        assert outcome.result == "refused", f"{name}: {outcome}"
        assert outcome.peak < bombs.MAX_MEMORY, f"{name}: {outcome}"


def test_texts_of_endless_words_are_counted_with_the_rare_ones_forgotten(monkeypatch):
    texts = [f"often also w{i} v{i}" for i in range(300)]
    monkeypatch.setattr(text_features, "MAX_WORDS", 2)
    _, known = text_features.word_features(texts, "text")
    monkeypatch.setattr(text_features, "MANY", 100)
    monkeypatch.setattr(text_features, "MAX_COUNTED", 50)
    features, words = text_features.word_features(texts, "text")
    assert words == known == ["also", "often"]
    assert features.shape == (300, 2)


def test_problems_beyond_counting_end_the_reading(tmp_path):
    (tmp_path / "a.csv").write_text("id,x,label_a\n1,2,0\n" + "1\n" * 150_000)
    assert "reading stopped after 100,000 problems" in refusal(tmp_path / "a.csv")


def test_columns_of_one_name_are_numbered(tmp_path):
    (tmp_path / "a.csv").write_text("a,a,a_2,a,label_b\n" + "1,2,3,4,1\n5,6,7,8,0\n" * 3)
    dataset = read(tmp_path / "a.csv").dataset
    assert dataset.feature_names == ("a", "a_2", "a_2_2", "a_3")


def latin_text() -> pa.Array:
    places = pa.py_buffer(np.arange(4, dtype=np.int32))
    return pa.Array.from_buffers(pa.string(), 3, [None, places, pa.py_buffer(b"\xff\xfe\xfd")])


def nameless_zip(path: Path) -> None:
    member = zipfile.ZipInfo()
    member.filename = ""
    with zipfile.ZipFile(path, "w") as archive, archive.open(member, "w") as file:
        file.write(b"a,label_b")


def latin_name(path: Path) -> None:
    parquet_of({"x\u00e9": [1, 2, 3], "label_a": [0, 1, 1]})(path)
    path.write_bytes(path.read_bytes().replace("x\u00e9".encode(), b"x\xff\xff"))


FOUND = {  # by fuzzing: each once ended in an exception that was not a refusal
    "nameless.zip": nameless_zip,
    "latin.parquet": lambda path: parquet_of({"labels": latin_text(), "x": [1, 2, 3]})(path),
    "name.parquet": latin_name,
    "twice.parquet": lambda path: pq.write_table(
        pa.table([[1, 2, 3], [1, 2, 3], [0, 1, 1]], names=["x", "x", "label_a"]), path
    ),
    "half.tsv": lambda path: path.write_bytes(b"\xfe\xff" + b"\xff" * 6 + b" "),
    "cut.parquet": lambda path: path.write_bytes(b"PAR1" + b"\0" * 99 + b"\xff\0\0\0PAR1"),
}


@pytest.mark.parametrize("name", FOUND)
def test_what_fuzzing_found_is_refused_by_its_reader(name, tmp_path):
    FOUND[name](tmp_path / name)
    assert refusal(tmp_path / name)


def test_half_a_character_in_json_is_told_and_read(tmp_path):
    tasks = [{"id": i, "data": {"text": f"word {i} \ud800"}} for i in range(4)]
    for task in tasks:
        task["annotations"] = [
            {"result": [{"type": "choices", "from_name": "c", "value": {"choices": ["a"]}}]}
        ]
    (tmp_path / "a.json").write_text(json.dumps(tasks))
    result = read(tmp_path / "a.json")
    assert result.dataset.display["text"][0] == "word 0 ?"
    assert any("whole characters" in str(problem) for problem in result.problems)
