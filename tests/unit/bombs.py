"""Small files made to take all memory or all day, for every reader, and how to measure a reading.

    python tests/unit/bombs.py FILE ...

reads each file in a process of its own, as `plain check` does, and prints one line of JSON per
file: what came of it, the most memory it took and how long.
"""

import io
import itertools
import json
import os
import struct
import subprocess
import sys
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

MB = 2**20
Make = Callable[[Path], Any]
BOMBS: dict[str, tuple[str, Make]] = {}  # by name: the file's name and what writes it


def bomb(file_name: str) -> Callable[[Make], Make]:
    def register(make: Make) -> Make:
        name = make.__name__.replace("_", " ")
        BOMBS[name] = (file_name, make)
        return make

    return register


# Text tables ------------------------------------------------------------------------------------


@bomb("a.csv")
def csv_one_cell(path: Path) -> None:
    path.write_bytes(b'id,x,label_a\n1,2,0\n2,3,1\n3,"' + b"x" * 10 * MB + b'",1\n')


@bomb("a.csv")
def csv_one_line(path: Path) -> None:
    path.write_bytes(b"x" * 10 * MB)


@bomb("a.csv")
def csv_open_quote(path: Path) -> None:
    path.write_bytes(b'id,x,label_a\n1,"2,0\n' + b"2,3,1\n" * 1_500_000)


@bomb("a.csv")
def csv_header_of_one_name(path: Path) -> None:
    path.write_bytes(b",".join([b"a"] * 49_999) + b",label_b\n" + b"1," * 49_999 + b"1\n")


@bomb("a.csv")
def csv_million_columns(path: Path) -> None:
    path.write_text(",".join(f"c{j}" for j in range(1_300_000)) + "\n")


@bomb("a.csv")
def csv_wide(path: Path) -> None:
    row = ",".join(["1"] * 49_999) + ",0\n"
    path.write_text(",".join(f"c{j}" for j in range(49_999)) + ",label_a\n" + row * 95)


@bomb("a.csv")
def csv_rows_of_wrong_length(path: Path) -> None:
    path.write_bytes(b"id,x,label_a\n1,2,0\n" + b"1\n" * 5 * MB)


@bomb("a.csv")
def csv_many_people(path: Path) -> None:
    """A column for each of a thousand people and five labels."""
    names = ",".join(f"Annotator{at}_{label}" for at in range(1_000) for label in "abcde")
    rows = (f"{i}," + ",".join("01"[(i + j) % 2] for j in range(5_000)) for i in range(900))
    path.write_text(f"id,{names}\n" + "\n".join(rows) + "\n")


@bomb("a.csv")
def csv_many_labels(path: Path) -> None:
    """A label of its own in every row: the matrix would have a square of cells."""
    path.write_text("id,x,labels\n" + "".join(f"{i},1,l{i}\n" for i in range(500_000)))


@bomb("a.csv")
def csv_hundred_thousand_labels(path: Path) -> None:
    rows = (f"{i},1,{'|'.join(f'l{10 * i + k}' for k in range(10))}\n" for i in range(10_000))
    path.write_text("id,x,labels\n" + "".join(rows))


@bomb("a.csv")
def csv_labels_and_truth(path: Path) -> None:
    """Two label matrices of 10^9 cells, and no true label a candidate."""
    rows = (f"{i},1,a{i % 50_000},b{i % 7}\n" for i in range(20_000))
    path.write_text("id,x,labels,truth\n" + "".join(rows))


@bomb("a.csv")
def csv_words(path: Path) -> None:
    """As many different words as fit."""
    words = (f"{i:x}" for i in itertools.count(10**6))
    rows = (f'{i},"{" ".join(itertools.islice(words, 200))}",a|b\n' for i in range(7_000))
    path.write_text("id,text,labels\n" + "".join(rows))


@bomb("a.csv")
def csv_text_of_one_letter_words(path: Path) -> None:
    path.write_text("id,text,labels\n" + "".join(f"{i},{'ab ' * 300},a|b\n" for i in range(11_000)))


@bomb("a.csv")
def csv_list_cell(path: Path) -> None:
    path.write_text("id,embedding,labels\n" + f'1,"[{"1," * 1_000_000}1]",a\n' * 5)


@bomb("a.csv")
def csv_deep_list_cells(path: Path) -> None:
    deep = "[" * 2_000 + "]" * 2_000
    path.write_text("id,x,labels\n" + f'1,2,"{deep}"\n' * 2_400)


@bomb("a.csv")
def csv_long_layout(path: Path) -> None:
    rows = (f"{i % 100},l{i},1,3\n" for i in range(600_000))
    path.write_text("id,label,value,x\n" + "".join(rows))


@bomb("a.csv")
def csv_all_cells_wrong(path: Path) -> None:
    rows = "".join("1,1,1,0\n" for _ in range(1_000)) + "1,x,y,7\n" * 1_000_000
    path.write_text("id,x,z,label_a\n" + rows)


@bomb("a.csv")
def csv_not_finite(path: Path) -> None:
    path.write_text("a,b,c,label_a\n" + "1,1,1,0\n" + "inf,inf,inf,1\n" * 700_000)


@bomb("a.csv")
def csv_blank_lines(path: Path) -> None:
    path.write_bytes(b"a,label_b\n1,1\n" + b"\n" * 10 * MB)


@bomb("a.csv")
def csv_one_column_rows(path: Path) -> None:
    path.write_bytes(b"a,label_b\n" + b"1,1\n" * 2_600_000)


@bomb("a.csv")
def csv_utf16(path: Path) -> None:
    path.write_bytes(b"\xff\xfe" + ("a,label_b\n" + "1,1\n" * 1_300_000).encode("utf-16-le"))


@bomb("a.csv.gz")
def gz_of_zeros(path: Path) -> None:
    _gzip_repeated(path, b"a,label_b\n", b"\0" * MB, 9_000)


@bomb("a.csv.gz")
def gz_of_csv_rows(path: Path) -> None:
    _gzip_repeated(path, b"a,b,c,d,label_b\n", b"1,2,3,4,1\n" * 2**16, 4_000)


@bomb("a.csv.gz")
def gz_of_one_cell(path: Path) -> None:
    _gzip_repeated(path, b'a,label_b\n1,1\n2,1\n3,"', b"x" * MB, 1_500)


@bomb("a.json.gz")
def gz_of_empty_objects(path: Path) -> None:
    _gzip_repeated(path, b'[{"id":1}', b",{}" * 2**18, 600)


@bomb("a.json.gz")
def gz_of_empty_lists(path: Path) -> None:
    _gzip_repeated(path, b'{"labels":[[]', b",[]" * 2**18, 600)


@bomb("a.json.gz")
def gz_of_labelstudio(path: Path) -> None:
    _gzip_repeated(path, b'[{"data":{"a":1},"annotations":[]}', b',{"data":{}}' * 2**16, 1_300)


@bomb("a.jsonl.gz")
def gz_of_jsonl(path: Path) -> None:
    _gzip_repeated(path, b'{"id":1,"x":1,"labels":["a"]}\n', b'{"labels":["a"]}\n' * 2**15, 3_000)


@bomb("a.arff.gz")
def gz_of_arff(path: Path) -> None:
    head = b"@relation 'a: -C 1'\n@attribute l {0,1}\n@attribute x numeric\n@data\n"
    _gzip_repeated(path, head, b"1,2\n" * 2**18, 2_500)


@bomb("a.svm.gz")
def gz_of_svmlight(path: Path) -> None:
    _gzip_repeated(path, b"0 1:1\n", b"1 1:1\n" * 2**18, 2_000)


@bomb("a.svm.gz")
def gz_of_svmlight_without_features(path: Path) -> None:
    _gzip_repeated(path, b"0 1:1\n", b"1\n" * 2**19, 2_000)


@bomb("a.zip")
def zip_of_zips(path: Path) -> None:
    data, name = b"\0" * 400 * MB, "a.csv"
    for depth in range(4):
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(name, data)
        data, name = buffer.getvalue(), f"{depth}.zip"
    path.write_bytes(data)


@bomb("a.zip")
def zip_of_many_files(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        for i in range(60_000):
            archive.writestr(f"{i}", b"")


@bomb("a.zip")
def zip_that_lies(path: Path) -> None:
    """Says that it holds ten bytes, holds a gigabyte."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.csv", b"a,label_b\n" + b"1,1\n" * 250 * MB)
    raw = bytearray(path.read_bytes())
    for mark, at in ((b"PK\3\4", 22), (b"PK\1\2", 24)):
        place = raw.find(mark) + at
        raw[place : place + 4] = struct.pack("<I", 10)
    path.write_bytes(raw)


def _gzip_repeated(path: Path, head: bytes, block: bytes, times: int) -> None:
    """Pack head + times x block without ever packing the same block twice."""
    start, repeated = _deflated(head), _deflated(block)
    check = zlib.crc32(head)
    for _ in range(times):
        check = zlib.crc32(block, check)
    n_bytes = (len(head) + times * len(block)) % 2**32
    with path.open("wb") as file:
        file.write(b"\x1f\x8b\x08\0\0\0\0\0\0\xff" + start)
        for _ in range(times):
            file.write(repeated)
        file.write(b"\x03\x00" + struct.pack("<II", check, n_bytes))


def _deflated(block: bytes) -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    return packer.compress(block) + packer.flush(zlib.Z_FULL_FLUSH)


# JSON -------------------------------------------------------------------------------------------


@bomb("a.json")
def json_deep(path: Path) -> None:
    path.write_bytes(b"[" * 10 * MB)


@bomb("a.json")
def json_deep_cells(path: Path) -> None:
    path.write_text("[" + ",".join(['{"a":' + "[" * 400 + "]" * 400 + "}"] * 10_000) + "]")


@bomb("a.json")
def json_empty_objects(path: Path) -> None:
    path.write_bytes(b"[" + b"{}," * 3_300_000 + b"{}]")


@bomb("a.json")
def json_empty_lists(path: Path) -> None:
    path.write_bytes(b'{"labels":[' + b"[]," * 3_300_000 + b'[]],"features":[[1]]}')


@bomb("a.json")
def json_digits(path: Path) -> None:
    path.write_bytes(b'[{"id":' + b"9" * 10 * MB + b"}]")


@bomb("a.json")
def json_a_key_per_object(path: Path) -> None:
    path.write_text("[" + ",".join(f'{{"k{i}":1}}' for i in range(49_000)) + "]")


@bomb("a.jsonl")
def jsonl_a_key_per_line(path: Path) -> None:
    path.write_text("".join(f'{{"k{i}":1}}\n' for i in range(49_000)))


@bomb("a.jsonl")
def jsonl_nested_keys(path: Path) -> None:
    """Objects inside objects, each with keys of its own: a struct of as many fields."""
    path.write_text("".join(f'{{"a":{{"k{i}":1}},"labels":["a"]}}\n' for i in range(200_000)))


@bomb("a.jsonl")
def jsonl_mixed_kinds(path: Path) -> None:
    kinds = itertools.cycle(["1", '"a"', "[1]", '{"b":2}', "null", "true", "1.5", "[[2]]"])
    rows = (f'{{"x":{next(kinds)},"y":{i},"labels":["a"]}}\n' for i in range(250_000))
    path.write_text("".join(rows))


@bomb("a.jsonl")
def jsonl_bad_lines(path: Path) -> None:
    path.write_bytes(b'{"a":1}\n' + b"[\n" * 5 * MB)


@bomb("a.jsonl")
def jsonl_one_line(path: Path) -> None:
    path.write_bytes(b'{"a":"' + b"x" * 10 * MB)


@bomb("a.jsonl")
def jsonl_labels(path: Path) -> None:
    rows = (f'{{"x":1,"labels":["{i}"]}}\n' for i in range(300_000))
    path.write_text("".join(rows))


@bomb("a.json")
def labelstudio_labels(path: Path) -> None:
    tasks = (
        f'{{"data":{{"text":"a b c"}},"annotations":[{{"result":[{{"type":"choices",'
        f'"value":{{"choices":["{i}"]}}}}]}}]}}'
        for i in range(90_000)
    )
    path.write_text("[" + ",".join(tasks) + "]")


@bomb("a.json")
def labelstudio_keys(path: Path) -> None:
    tasks = (f'{{"data":{{"k{i % 1900}":"a b"}},"annotations":[]}}' for i in range(200_000))
    path.write_text("[" + ",".join(tasks) + "]")


@bomb("a.json")
def labelstudio_min(path: Path) -> None:
    rows = (f'{{"id":{i},"annotator":1,"annotation_id":1,"k":"{i}"}}' for i in range(180_000))
    path.write_text("[" + ",".join(rows) + "]")


@bomb("a.json")
def labelstudio_sparse_size(path: Path) -> None:
    row = '{"data":{"features":{"indices":[0],"values":[1],"size":999999}},"annotations":[]}'
    path.write_text("[" + ",".join([row] * 110_000) + "]")


@bomb("a.json")
def cleanlab_label_number(path: Path) -> None:
    path.write_text('{"labels":[[0],[99999],[2147483648]],"features":[[1],[2],[3]]}')


@bomb("a.json")
def cleanlab_many_labels(path: Path) -> None:
    rows = ",".join(["[99999]"] * 10_700)
    path.write_text(f'{{"labels":[{rows}],"features":[{",".join(["[1]"] * 10_700)}]}}')


@bomb("a.json")
def cleanlab_huge_label(path: Path) -> None:
    path.write_text('{"labels":[[' + "9" * 4000 + ']],"features":[[1]]}')


@bomb("a.json")
def cleanlab_sparse_shape(path: Path) -> None:
    path.write_text(
        '{"labels":[[0]],"features":{"data":[],"indices":[],"indptr":[0],'
        '"shape":[9223372036854775807,999999]}}'
    )


@bomb("a.json")
def cleanlab_ragged(path: Path) -> None:
    rows = ",".join(f"[{','.join(['1'] * (i % 7))}]" for i in range(900_000))
    path.write_text(f'{{"labels":[[0]],"features":[{rows}]}}')


# ARFF and svmlight ------------------------------------------------------------------------------


@bomb("a.arff")
def arff_million_attributes(path: Path) -> None:
    path.write_text(
        "@relation 'a: -C 1'\n" + "@attribute a{0,1}\n" * 550_000 + "@data\n" + "{0 1}\n" * 3
    )


@bomb("a.arff")
def arff_different_attributes(path: Path) -> None:
    attributes = "".join(f"@attribute a{j} real\n" for j in range(450_000))
    path.write_text("@relation 'a: -C 1'\n" + attributes + "@data\n" + "{0 1, 5 2}\n" * 50)


@bomb("a.arff")
def arff_text_attributes(path: Path) -> None:
    """A text of its own for each attribute and row, though no row writes any."""
    attributes = "".join(f"@attribute a{j} string\n" for j in range(100_000))
    head = "@relation 'a: -C 1'\n@attribute l {0,1}\n" + attributes + "@data\n"
    path.write_text(head + "{0 1}\n" * 1_000_000)


@bomb("a.arff")
def arff_nominal_values(path: Path) -> None:
    values = ",".join(f"v{i}" for i in range(300_000))
    path.write_text(
        f"@relation 'a: -C 1'\n@attribute l {{0,1}}\n@attribute a {{{values}}}\n@data\n"
        + "1,v1\n" * 500_000
    )


@bomb("a.arff")
def arff_many_nominals(path: Path) -> None:
    attributes = "".join(f"@attribute a{j} {{x,y,z}}\n" for j in range(100_000))
    head = "@relation 'a: -C 1'\n@attribute l {0,1}\n" + attributes + "@data\n"
    path.write_text(head + "{0 1}\n" * 500_000)


@bomb("a.arff")
def arff_many_labels(path: Path) -> None:
    attributes = "".join(f"@attribute a{j} {{0,1}}\n" for j in range(99_999))
    head = "@relation 'a: -C 99998'\n" + attributes + "@data\n"
    path.write_text(head + "{0 1}\n" * 10_000)


@bomb("a.arff")
def arff_open_quotes(path: Path) -> None:
    path.write_text("@relation 'a: -C 1'\n@attribute a {0,1}\n@data\n" + "'" + "\\'" * 5_000_000)


@bomb("a.arff")
def arff_spaces(path: Path) -> None:
    path.write_text("@attribute a" + " " * 9_000_000 + "x\n@data\n1\n")


@bomb("a.arff")
def arff_nominal_spaces(path: Path) -> None:
    path.write_text("@attribute a {0" + ", 1" * 3_000_000 + "\n@data\n1\n")


@bomb("a.arff")
def arff_quoted_tokens(path: Path) -> None:
    path.write_text("@relation 'a: -C 1'\n@attribute a {0,1}\n@data\n" + "'1'," * 2_500_000)


@bomb("a.arff")
def arff_bad_rows(path: Path) -> None:
    head = "@relation 'a: -C 1'\n@attribute a {0,1}\n@attribute b real\n@data\n"
    path.write_text(head + "x,y\n" * 2_500_000)


@bomb("a.arff")
def arff_entities(path: Path) -> None:
    path.write_text("@relation a\n@attribute a {0,1}\n@attribute b real\n@data\n" + "1,1\n" * 5)
    entities = "".join(f'<!ENTITY a{i} "{f"&a{i - 1};" * 10}">' for i in range(1, 20))
    path.with_suffix(".xml").write_text(
        f'<!DOCTYPE labels [<!ENTITY a0 "a">{entities}]><labels><label name="&a19;"/></labels>'
    )


@bomb("a.arff")
def arff_deep_xml(path: Path) -> None:
    path.write_text("@relation a\n@attribute a {0,1}\n@attribute b real\n@data\n" + "1,1\n" * 5)
    path.with_suffix(".xml").write_text("<a>" * 2_000_000)


@bomb("a.svm")
def svmlight_index(path: Path) -> None:
    path.write_text("0 2147483648:1\n1 1:1\n0 1:2\n")


@bomb("a.svm")
def svmlight_label(path: Path) -> None:
    path.write_text("0 1:1\n2147483648 1:1\n1 1:2\n")


@bomb("a.svm")
def svmlight_many_labels(path: Path) -> None:
    path.write_text("99999 1:1\n" * 10_700)


@bomb("a.svm")
def svmlight_wide(path: Path) -> None:
    path.write_text("0 999999:1\n1 1:1\n" * 500_000)


@bomb("a.svm")
def svmlight_label_sets(path: Path) -> None:
    path.write_text(("0," * 2_000_000 + "0 1:1\n") * 2 + "1 2:1\n")


@bomb("a.svm")
def svmlight_dense_rows(path: Path) -> None:
    row = " ".join(f"{j}:1" for j in range(1, 900))
    path.write_text(f"0 {row}\n1 {row}\n" * 1_000)


@bomb("a.svm")
def svmlight_bad_pairs(path: Path) -> None:
    path.write_text("0 1:1\n1 1:1\n" + "0 a:b c:d e:f\n" * 700_000)


@bomb("a.svm")
def svmlight_is_dense(path: Path) -> None:
    """The side file says that zeros shall be stored."""
    path.write_text("0 1:1\n1 5:1\n" * 500_000)
    path.with_name("a.names.json").write_text('{"n_features": 900000, "is_dense": true}')


# Arrays -----------------------------------------------------------------------------------------


def _npz(path: Path, shapes: dict[str, tuple[Any, str]], filled: int = 0) -> None:
    """Write arrays of one byte repeated, which deflate to a thousandth."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, (shape, dtype) in shapes.items():
            head = io.BytesIO()
            facts = {"descr": dtype, "fortran_order": False, "shape": tuple(shape)}
            np.lib.format.write_array_header_1_0(head, facts)
            left = int(np.prod(shape, dtype=object)) * np.dtype(dtype).itemsize
            with archive.open(f"{name}.npy", "w", force_zip64=True) as stream:
                stream.write(head.getvalue())
                while left > 0:
                    stream.write(bytes([filled]) * min(left, MB))
                    left -= MB


@bomb("a.npz")
def npz_zeros(path: Path) -> None:
    _npz(path, {"X": ((100_000, 5_000), "<f4"), "Yp": ((100_000, 3), "|u1")})


@bomb("a.npz")
def npz_not_finite(path: Path) -> None:
    _npz(path, {"X": ((100_000, 4_000), "<f4"), "Yp": ((100_000, 3), "|u1")}, filled=255)


@bomb("a.npz")
def npz_bad_labels(path: Path) -> None:
    _npz(path, {"X": ((20_000, 3), "<f4"), "Yp": ((20_000, 50_000), "|u1")}, filled=2)


@bomb("a.npz")
def npz_wide_labels(path: Path) -> None:
    _npz(path, {"X": ((20_000, 3), "<f4"), "Yp": ((20_000, 50_000), "|u1")}, filled=1)


@bomb("a.npz")
def npz_float_labels(path: Path) -> None:
    _npz(path, {"X": ((20_000, 3), "<f4"), "Yp": ((20_000, 13_000), "<f8")})


@bomb("a.npz")
def npz_names(path: Path) -> None:
    shapes = {"X": ((100, 3), "<f4"), "Yp": ((100, 3), "|u1"), "ids": ((100,), "<U2000000")}
    _npz(path, shapes)


@bomb("a.npz")
def npz_rows(path: Path) -> None:
    _npz(path, {"X": ((300_000_000, 1), "<f4"), "Yp": ((300_000_000, 1), "|u1")})


@bomb("a.npz")
def npz_double(path: Path) -> None:
    _npz(path, {"X": ((100_000, 2_500), "<f8"), "Yp": ((100_000, 3), "|u1")})


@bomb("a.npz")
def npz_claims(path: Path) -> None:
    """A header that claims more than follows."""
    with zipfile.ZipFile(path, "w") as archive:
        head = io.BytesIO()
        facts = {"descr": "<f4", "fortran_order": False, "shape": (2**40, 2**20)}
        np.lib.format.write_array_header_1_0(head, facts)
        archive.writestr("X.npy", head.getvalue())


@bomb("a.npz")
def npz_csr_shape(path: Path) -> None:
    empty = np.empty(0, np.float32)
    np.savez(
        path, X_data=empty, X_indices=empty.astype(int), X_indptr=np.zeros(2, int),
        X_shape=np.array([2**62, 10**6]), Yp=np.ones((3, 1)),
    )  # fmt: skip


@bomb("a.npz")
def npz_csr_rows(path: Path) -> None:
    shapes = {"X_data": ((0,), "<f4"), "X_indices": ((0,), "<i4")}
    _npz(path, {**shapes, "X_indptr": ((100_000_001,), "<i8"), "Yp": ((100_000_000, 1), "|u1")})
    with zipfile.ZipFile(path, "a") as archive:
        stream = io.BytesIO()
        np.save(stream, np.array([100_000_000, 1_000_000]))
        archive.writestr("X_shape.npy", stream.getvalue())


@bomb("a.npz")
def npz_many_members(path: Path) -> None:
    stream = io.BytesIO()
    np.save(stream, np.empty(0))
    with zipfile.ZipFile(path, "w") as archive:
        for i in range(40_000):
            archive.writestr(f"display_{i}.npy", stream.getvalue())


def _mat(path: Path, **variables: Any) -> None:
    import scipy.io

    scipy.io.savemat(path, variables, do_compression=True)


@bomb("a.mat")
def mat_zeros(path: Path) -> None:
    _mat(path, data=np.zeros((20_000, 6_000)), partial_labels=np.ones((3, 20_000), np.uint8))


@bomb("a.mat")
def mat_many_zeros(path: Path) -> None:
    """Ten variables of a quarter of a gigabyte each."""
    names = ("data", "train_data", "features", "fea", "X", "target", "labels", "Y", "Yp", "targets")
    one = np.zeros((8_000, 4_000))
    _mat(path, **dict.fromkeys(names, one))


@bomb("a.mat")
def mat_not_wanted(path: Path) -> None:
    data = np.random.default_rng(0).random((30, 4))
    _mat(path, a=np.zeros((20_000, 6_000)), data=data, partial_labels=np.eye(3)[:, [0, 1, 2] * 10])


@bomb("a.mat")
def mat_sparse_rows(path: Path) -> None:
    import scipy.sparse as sp

    wide = sp.csc_array((2_000_000_000, 3))
    _mat(path, data=wide, partial_labels=np.ones((2, 3)))


@bomb("a.mat")
def mat_sparse_labels(path: Path) -> None:
    import scipy.sparse as sp

    labels = sp.csc_array((np.ones(3), ([0, 1, 2], [0, 1, 2])), shape=(99_999, 10_000))
    _mat(path, data=np.eye(10_000, 5), partial_labels=labels)


@bomb("a.mat")
def mat_cells(path: Path) -> None:
    cells = np.empty((500_000, 1), object)
    cells[:] = "a"
    _mat(path, data=np.eye(5), partial_labels=np.eye(5), ids=cells)


@bomb("a.mat")
def mat_text(path: Path) -> None:
    """A char table of as many short texts as its first size says."""
    texts = np.full((1_000, 100_000), "a", "U1")
    _mat(path, data=np.eye(5), partial_labels=np.eye(5), label_names=texts)


@bomb("a.mat")
def mat_deep_cells(path: Path) -> None:
    cell = np.empty((1, 1), object)
    cell[0, 0] = "a"
    for _ in range(300):
        outer = np.empty((1, 1), object)
        outer[0, 0] = cell
        cell = outer
    _mat(path, data=np.eye(5), partial_labels=np.eye(5), ids=cell)


def _v73(path: Path, fill: Callable[[Any], None]) -> None:
    import h5py

    with h5py.File(path, "w", userblock_size=512) as file:
        fill(file)
    with path.open("r+b") as raw:
        raw.write(b"MATLAB 7.3 MAT-file".ljust(124) + b"\0\2IM")


@bomb("a.mat")
def v73_claims(path: Path) -> None:
    """Chunks that were never written are zeros: a terabyte costs nothing on the disk."""

    def fill(file: Any) -> None:
        file.create_dataset("data", (10**6, 10**6), "f4", chunks=(1000, 1000))
        file.create_dataset("partial_labels", (3, 10**6), "u1", chunks=(3, 1000))

    _v73(path, fill)


@bomb("a.mat")
def v73_zeros(path: Path) -> None:
    def fill(file: Any) -> None:
        file.create_dataset("data", (6_000, 60_000), "f4", chunks=(100, 100))
        file.create_dataset("partial_labels", (60_000, 3), "u1", chunks=(1000, 3))

    _v73(path, fill)


@bomb("a.mat")
def v73_gzip(path: Path) -> None:
    def fill(file: Any) -> None:
        zeros = np.zeros((3_000, 50_000))
        file.create_dataset("data", data=zeros, chunks=(3_000, 5_000), compression="gzip")
        file["partial_labels"] = np.ones((50_000, 3), "u1")

    _v73(path, fill)


@bomb("a.mat")
def v73_references(path: Path) -> None:
    """A million references to one text of a megabyte."""

    def fill(file: Any) -> None:
        import h5py

        text = file.create_dataset("#refs#/a", data=np.full((MB, 1), 65, "u2"), compression="gzip")
        text.attrs["MATLAB_class"] = np.bytes_("char")
        cells = file.create_dataset("label_names", (1, 100_000), h5py.ref_dtype)
        cells[:] = text.ref
        cells.attrs["MATLAB_class"] = np.bytes_("cell")
        file["data"], file["partial_labels"] = np.eye(5), np.eye(5)

    _v73(path, fill)


@bomb("a.mat")
def v73_sparse(path: Path) -> None:
    def fill(file: Any) -> None:
        group = file.create_group("data")
        group.attrs["MATLAB_class"] = np.bytes_("double")
        group.attrs["MATLAB_sparse"] = np.uint64(2**40)
        group.create_dataset("jc", (10**8,), "u8", chunks=(10**6,), compression="gzip")
        file["partial_labels"] = np.eye(5)

    _v73(path, fill)


# Parquet ----------------------------------------------------------------------------------------


def _parquet(path: Path, columns: dict[str, Any], times: int = 1, **options: Any) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.table(columns)
    with pq.ParquetWriter(path, table.schema, compression="zstd", **options) as writer:
        for _ in range(times):
            writer.write_table(table)


def _runs(n: int, n_columns: int) -> dict[str, Any]:
    import pyarrow as pa

    zeros = pa.array(np.zeros(n, np.float32))
    labels = {"label_a": pa.array(np.zeros(n, np.int8)), "label_b": pa.array(np.ones(n, np.int8))}
    return {f"x{j}": zeros for j in range(n_columns)} | labels


@bomb("a.parquet")
def parquet_runs(path: Path) -> None:
    """What once took 20 GB for 3 MB: equal values in a few bytes."""
    _parquet(path, _runs(1_000_000, 900))


@bomb("a.parquet")
def parquet_rows(path: Path) -> None:
    _parquet(path, _runs(20_000_000, 2), times=8)


@bomb("a.parquet")
def parquet_few_gigabytes(path: Path) -> None:
    _parquet(path, _runs(2_000_000, 90), times=5)


@bomb("a.parquet")
def parquet_row_groups(path: Path) -> None:
    _parquet(path, _runs(1, 2), times=15_000)


@bomb("a.parquet")
def parquet_wide(path: Path) -> None:
    _parquet(path, _runs(100, 19_000))


@bomb("a.parquet")
def parquet_columns(path: Path) -> None:
    _parquet(path, _runs(3, 30_000))


@bomb("a.parquet")
def parquet_long_text(path: Path) -> None:
    """One text of ten megabytes in every one of a million rows, stored once."""
    import pyarrow as pa

    text = pa.DictionaryArray.from_arrays(pa.array([0] * 1_000_000, pa.int32()), ["x" * 10 * MB])
    _parquet(path, {**_runs(1_000_000, 1), "text": text}, dictionary_pagesize_limit=32 * MB)


@bomb("a.parquet")
def parquet_plain_long_text(path: Path) -> None:
    """The same, not declared as a dictionary in the schema."""
    import pyarrow as pa

    n = 20_000
    text = pa.array(["x" * 50_000], pa.string()).take(pa.array([0] * n, pa.int32()))
    _parquet(path, {**_runs(n, 1), "text": text}, times=10)


@bomb("a.parquet")
def parquet_long_labels(path: Path) -> None:
    import pyarrow as pa

    n = 20_000
    text = pa.array(["|".join(f"l{i}" for i in range(5_000))]).take(pa.array([0] * n, pa.int32()))
    _parquet(path, {"x": np.zeros(n, np.float32), "labels": text})


@bomb("a.parquet")
def parquet_label_lists(path: Path) -> None:
    import pyarrow as pa

    sets = pa.array([[f"l{i}" for i in range(5_000)]] * 20_000)
    _parquet(path, {"x": np.zeros(20_000, np.float32), "labels": sets})


@bomb("a.parquet")
def parquet_few_long_lists(path: Path) -> None:
    """Ten lists of ten million numbers: few rows, so all of them would be the sample."""
    import pyarrow as pa

    lists = pa.array([np.zeros(10_000_000, np.float32)] * 10)
    _parquet(path, {"x": lists, "labels": ["a|b"] * 10})


@bomb("a.parquet")
def parquet_lists_of_objects(path: Path) -> None:
    """A column to be shown that takes twenty times its size as Python's objects."""
    import pyarrow as pa

    objects = pa.array([[{"a": 1.0, "b": "xy"}] * 200_000] * 110)
    _parquet(path, {"shown": objects, "labels": ["a|b"] * 110})


@bomb("a.parquet")
def parquet_one_list(path: Path) -> None:
    """One instance whose list has 400 million numbers."""
    import pyarrow as pa

    values = pa.array(np.zeros(400_000_000, np.int8))
    lists = pa.ListArray.from_arrays(pa.array([0, 400_000_000, 400_000_000], pa.int32()), values)
    _parquet(path, {"embedding": lists, "labels": ["a", "b"]})


@bomb("a.parquet")
def parquet_lists(path: Path) -> None:
    import pyarrow as pa

    values = pa.array(np.zeros(50_000_000, np.float32))
    offsets = pa.array(np.arange(0, 50_000_001, 5_000), pa.int32())
    lists = pa.ListArray.from_arrays(offsets, values)
    _parquet(path, {"embedding": lists, "labels": ["a"] * 10_000}, times=20)


@bomb("a.parquet")
def parquet_nulls(path: Path) -> None:
    import pyarrow as pa

    n = 40_000_000
    columns = {f"x{j}": pa.nulls(n, pa.float64()) for j in range(20)}
    _parquet(path, {**columns, "label_a": pa.array(np.ones(n, np.int8))}, times=2)


@bomb("a.parquet")
def parquet_fixed_width(path: Path) -> None:
    import pyarrow as pa

    wide = pa.array([b"\0" * MB] * 20, pa.binary(MB))
    times = {**_runs(20, 1), "text": wide}
    _parquet(path, times, times=100)


@bomb("a.parquet")
def parquet_deep_lists(path: Path) -> None:
    import pyarrow as pa

    kind = pa.int32()
    for _ in range(60):
        kind = pa.list_(kind)
    _parquet(path, {"x": [1.0, 2.0, 3.0], "labels": ["a"] * 3, "deep": pa.nulls(3, kind)})


@bomb("a.parquet")
def parquet_not_finite(path: Path) -> None:
    n = 1_000_000
    nan = np.full(n, np.nan, np.float32)
    _parquet(path, {**{f"x{j}": nan for j in range(100)}, "label_a": np.ones(n, np.int8)})


@bomb("a.parquet")
def parquet_text_numbers(path: Path) -> None:
    """Numbers given as text that no column of numbers takes, many times over."""
    import pyarrow as pa

    n = 1_000_000
    text = pa.array(["1", "x"]).take(pa.array([0] * 1_000 + [1] * (n - 1_000), pa.int32()))
    _parquet(path, {**{f"feature_{j}": text for j in range(20)}, "label_a": np.ones(n, np.int8)})


# Measuring --------------------------------------------------------------------------------------


class Outcome(NamedTuple):
    """What came of reading one file; `result` is read, refused, or the name of a bug."""

    result: str
    peak: int  # bytes
    seconds: float  # of the processor
    message: str


def measure(paths: Sequence[Path], *, memory: int | None = None) -> list[Outcome]:
    """Read and check each file in a process of its own, within so much address space."""
    root = Path(__file__).parents[2]
    command = [sys.executable, __file__, str(memory or 0), *map(str, paths)]
    env = {**os.environ, "PYTHONPATH": str(root)}
    done = subprocess.run(command, capture_output=True, text=True, env=env, check=True)
    return [Outcome(*json.loads(line)) for line in done.stdout.splitlines()]


def _look(path: Path) -> str:
    from core.data.checks import check, summarize
    from core.errors import PlainError
    from core.formats import read

    try:
        dataset = read(path).dataset
        check(dataset)
        summarize(dataset)
    except PlainError as error:
        cause = error.__cause__
        return f"refused|{error}" + (f" <- {cause!r}" if cause else "")
    return f"read|{dataset.candidates.shape} {dataset.features.shape}"


def _measured(path: Path, memory: int) -> Outcome:
    inlet, outlet = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(inlet)
        try:
            _limit(memory)
            said = _look(path)
        except BaseException as error:
            said = f"{type(error).__name__}|{error}"
        os.write(outlet, said.encode("utf-8", "replace")[:2_000])
        os._exit(0)
    os.close(outlet)
    with os.fdopen(inlet, "rb") as said:
        result, _, message = said.read().decode().partition("|")
    _, status, usage = os.wait4(child, 0)
    code = os.waitstatus_to_exitcode(status)
    seconds = usage.ru_utime + usage.ru_stime
    return Outcome(
        result if code == 0 else f"exit {code}", usage.ru_maxrss * 1024, seconds, message
    )


def _limit(memory: int) -> None:
    import resource

    resource.setrlimit(resource.RLIMIT_CPU, (60, 60))
    if memory:
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))


def _outcomes(paths: Sequence[str], memory: int) -> Iterator[Outcome]:
    from core import formats
    from core.data.checks import check  # noqa: F401  (loaded once, before the processes part)

    formats.formats()
    for path in paths:
        yield _measured(Path(path), memory)


if __name__ == "__main__":
    for outcome in _outcomes(sys.argv[2:], int(sys.argv[1])):
        print(json.dumps(outcome), flush=True)
