"""Tables of text, packed and plain."""

import io
import itertools
import struct
import zipfile
import zlib
from pathlib import Path

from bombs.registry import MB, bomb


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
def zip_of_peoples_rows(path: Path) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for who in ("anna", "bob", "cem"):
            archive.writestr(f"{who}.csv", b"a,label_b\n" + b"1,1\n" * 40 * MB)


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
