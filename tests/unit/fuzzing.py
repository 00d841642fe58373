"""Damage files on purpose, the same way for the same seed, and see that only PlainError comes out.

Used by the format tests with some mutations each; `python tests/unit/fuzzing.py 2000` does many.
"""

import csv
import gzip
import io
import json
import random
import sys
import tempfile
import time
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

HUGE = (b"99999999999999999999", b"-1", b"1e999", b"NaN", b"0x7f", b"\x00", b"[" * 2000, b'"')
# Values of another kind than a reader expects, for cells and anywhere in JSON.
ODD_VALUES = (
    *(None, True, False, 0, -1, 1.5, 1e308, float("inf"), 10**400, 2**63, -(2**70)),
    *("", "NaN", "NA", "a|b", "[1, 2", "{}", "=1+1", "\ud800", "\0", "9" * 500, "[" * 300),
    *([], {}, [[]], [None], [1e999], ["x", 1, None, {}], {"": ""}, {"choices": None}),
    *({"a": {"b": [1]}}, {"size": -1}, {"labels": {"x": 1}}, {"x": "yes", "y": 2}),
)
MAX_SECONDS = 10

Mutation = Callable[[random.Random, bytearray], None]


def truncate(rng: random.Random, data: bytearray) -> None:
    del data[rng.randrange(len(data)) :]


def flip_bits(rng: random.Random, data: bytearray) -> None:
    for _ in range(rng.choice((1, 1, 2, 8, 64))):
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)


def duplicate(rng: random.Random, data: bytearray) -> None:
    start, size = rng.randrange(len(data)), rng.choice((1, 7, 100, 5000))
    data[start:start] = data[start : start + size] * rng.choice((1, 2, 20))


def cut_out(rng: random.Random, data: bytearray) -> None:
    start = rng.randrange(len(data))
    del data[start : start + rng.choice((1, 3, 50, 1000))]


def insert_bytes(rng: random.Random, data: bytearray) -> None:
    start = rng.randrange(len(data))
    data[start:start] = rng.randbytes(rng.choice((1, 4, 64)))


def insert_huge(rng: random.Random, data: bytearray) -> None:
    start = rng.randrange(len(data))
    data[start:start] = rng.choice(HUGE)


def wrong_count(rng: random.Random, data: bytearray) -> None:
    """Overwrite a number: four bytes of a binary file, or the digits of a text file."""
    start = rng.randrange(len(data))
    data[start : start + 4] = rng.choice((b"\xff\xff\xff\x7f", b"\0\0\0\0", b"9999", b"\xff" * 4))


def damage_end(rng: random.Random, data: bytearray) -> None:
    """Binary files keep their table of contents at the end."""
    for _ in range(rng.choice((1, 4, 16))):
        data[-rng.randint(1, min(len(data), 600))] = rng.randrange(256)


MUTATIONS: tuple[Mutation, ...] = (
    *(truncate, flip_bits, duplicate, cut_out, insert_bytes, insert_huge, wrong_count, damage_end),
)


def parsed_text(data: bytes) -> tuple[Any, Callable[[Any], str]] | None:
    """Return the values of a JSON, JSON Lines or CSV file and what writes them; none of others."""
    try:
        text = data.decode()
        return json.loads(text), json.dumps
    except UnicodeDecodeError:
        return None
    except ValueError:
        pass
    try:
        return [*map(json.loads, text.splitlines())], lambda rows: "\n".join(map(json.dumps, rows))
    except ValueError:
        separator = "\t" if "\t" in text[:2000] else ","
        return [*csv.reader(io.StringIO(text), delimiter=separator)], csv_writer(separator)


def csv_writer(separator: str) -> Callable[[Any], str]:
    def written(rows: Any) -> str:
        file = io.StringIO()
        writer = csv.writer(file, delimiter=separator)
        for row in rows if isinstance(rows, list) else [rows]:
            cells = row if isinstance(row, list) else [row]
            writer.writerow([one if isinstance(one, str) else json.dumps(one) for one in cells])
        return file.getvalue()

    return written


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Give every list or object within a value, with each of its keys."""
    for key in value if isinstance(value, dict) else range(len(value)):
        yield value, key
        if isinstance(value[key], dict | list):
            yield from places(value[key])


def with_odd_values(rng: random.Random, data: bytes) -> bytes | None:
    """Return a file that can be parsed, with some values replaced or left out; none if binary."""
    found = parsed_text(data)
    if found is None or not isinstance(found[0], dict | list):
        return None
    values, write = found
    for _ in range(rng.choice((1, 1, 2, 5))):
        holders = [*places(values)]
        if not holders:
            break
        holder, key = rng.choice(holders)
        if rng.random() < 0.1:
            del holder[key]
        else:
            holder[key] = json.loads(json.dumps(rng.choice(ODD_VALUES)))
    return write(values).encode("utf-8", "surrogatepass")


def mutations(data: bytes, n: int, seed: int = 0) -> Iterator[bytes]:
    """Give n damaged copies of a file; a third of those of text can still be parsed."""
    rng = random.Random(seed)
    for i in range(n):
        odd = with_odd_values(rng, data) if i % 3 == 0 else None
        if odd is not None:
            yield odd
            continue
        damaged = bytearray(data)
        for _ in range(rng.choice((1, 1, 1, 2, 3))):
            if damaged:
                rng.choice(MUTATIONS)(rng, damaged)
        yield bytes(damaged)


def survive(
    read: Callable[[Path], object], data: bytes, path: Path, n: int, seed: int = 0
) -> Counter[str]:
    """Read n damaged copies; return how many were read and how many refused.

    Anything but a PlainError, or more than ten seconds, is an AssertionError that names the seed.
    """
    from core.errors import PlainError

    outcomes: Counter[str] = Counter()
    for i, damaged in enumerate(mutations(data, n, seed)):
        path.write_bytes(damaged)
        start = time.process_time()  # of this process: how busy the machine is does not matter
        try:
            read(path)
            outcomes["read"] += 1
        except PlainError as error:
            outcomes["refused" if str(error).strip() else "no message"] += 1
        except Exception as error:
            raise AssertionError(f"mutation {i} of seed {seed}: {error!r}") from error
        seconds = time.process_time() - start
        assert seconds < MAX_SECONDS, f"mutation {i} of seed {seed} took {seconds:.0f} s"
    assert not outcomes["no message"]
    return outcomes


def gzipped(data: bytes) -> bytes:
    return gzip.compress(data, mtime=0)


def zipped(data: bytes, name: str) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, data)
    return buffer.getvalue()


def whole_files(folder: Path) -> dict[str, bytes]:
    """Return a healthy file per kind of file: labels one by one, in sets, in lists, packed."""
    from format_cases import resolution_of, small_dataset

    from core import formats

    dataset = small_dataset()
    sets = {"labels": ("labels",), "layout": "delimited", "features": ("embedding",)}
    listed = {"feature_layout": "list", "columns": ("id", "text", "embedding", "labels")}
    mapping = formats.ColumnMapping(id="id", display=("text",), delimiter="|", **sets, **listed)
    files = {}
    for kind in ("csv", "tsv", "parquet", "jsonl", "json"):
        path = formats.write(dataset, folder / f"plain.{kind}", resolution=resolution_of(dataset))
        files[f"one-hot.{kind}"] = path.read_bytes()
        path = formats.write(dataset, folder / f"sets.{kind}", mapping=mapping)
        files[f"sets.{kind}"] = path.read_bytes()
    table = files["one-hot.csv"]
    return files | {"packed.csv.gz": gzipped(table), "packed.csv.zip": zipped(table, "a.csv")}


def main(n: int) -> None:
    import resource

    from core import formats

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for kind, data in whole_files(folder).items():
            start = time.perf_counter()
            outcomes = survive(formats.read, data, folder / kind, n)
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
            print(kind, dict(outcomes), f"{time.perf_counter() - start:.1f} s, peak {peak} MB")


if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).parents[2]), str(Path(__file__).parent)]
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 2000)
