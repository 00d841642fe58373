"""Damage files on purpose, the same way for the same seed, and see that only PlainError comes out.

Used by the format tests with some mutations each; `python tests/unit/fuzzing.py 2000` does many.
"""

import gzip
import io
import random
import sys
import tempfile
import time
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

HUGE = (b"99999999999999999999", b"-1", b"1e999", b"NaN", b"0x7f", b"\x00", b"[" * 2000, b'"')
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


def mutations(data: bytes, n: int, seed: int = 0) -> Iterator[bytes]:
    """Give n damaged copies of a file."""
    rng = random.Random(seed)
    for _ in range(n):
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
        start = time.perf_counter()
        try:
            read(path)
            outcomes["read"] += 1
        except PlainError as error:
            outcomes["refused" if str(error).strip() else "no message"] += 1
        except Exception as error:
            raise AssertionError(f"mutation {i} of seed {seed}: {error!r}") from error
        seconds = time.perf_counter() - start
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
