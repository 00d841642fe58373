"""JSON of every kind."""

import itertools
from pathlib import Path

from bombs.registry import MB, bomb


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
