"""A seeded mutation fuzzer for readers: damaged files must be refused, never crash or hang.

    python tests/unit/fuzzing_binary.py --count 2000

Mutates real files of every format (and what is inside archives, with checksums made right again,
so that damage gets past the outermost check), reads each and reports what came of it.
"""

import argparse
import io
import os
import random
import re
import resource
import signal
import sys
import tempfile
import time
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import format_cases as cases
import h5py
import numpy as np
import scipy.io

from core.errors import PlainError
from core.formats.readers import arff, cleanlab, labelstudio, matlab, npz, svmlight
from core.formats.readers.matlab import decoder as matlab_decoder
from core.formats.readers.matlab import decoding as matlab_decoding
from core.formats.shared.findings import refuse

HUGE = (b"\xff\xff\xff\xff", b"\xff\xff\xff\x7f", b"\0\0\0\x80", b"\0\0\0\0", b"\1\0\0\0")
WORDS = (b"99999999999", b"-1", b"1e999", b"nan", b"?", b"", b"{", b"}", b"[", b"]", b'"', b"'")
WORDS += (b",", b":", b"\n", b"\0", b"\xff\xfe", b"&a;", b"null", b"\\", b"%", b"[" * 3000)
SECONDS = 10.0


def mutate(raw: bytes, rng: random.Random) -> bytes:
    """Return a damaged copy: cut, flipped, overwritten, repeated, or with hostile words in it."""
    data = bytearray(raw)
    for _ in range(rng.choice((1, 1, 1, 2, 4, 8))):
        at = (
            rng.randrange(len(data) + 1)
            if rng.random() < 0.5
            else rng.randrange(min(len(data), 400) + 1)
        )
        end = min(len(data), at + rng.choice((1, 2, 4, 8, 64)))
        kind = rng.randrange(8)
        if kind == 0:
            del data[at:]
        elif kind == 1 and at < len(data):
            data[at] ^= 1 << rng.randrange(8)
        elif kind == 2:
            data[at:end] = rng.randbytes(end - at)
        elif kind == 3:
            data[at : at + 4] = rng.choice(HUGE)
        elif kind == 4:
            del data[at:end]
        elif kind == 5:
            data[at:at] = data[at:end] * rng.choice((1, 3, 100))
        elif kind == 6:
            data[at : at + rng.randrange(3)] = rng.choice(WORDS)
        else:
            other = rng.randrange(len(data) + 1)
            data[at:end] = data[other : other + end - at]
    return bytes(data)


def mutate_archive(raw: bytes, rng: random.Random) -> bytes:
    """Damage one member of a zip archive and put it back with a right checksum."""
    if rng.random() < 0.3:
        return mutate(raw, rng)
    with zipfile.ZipFile(io.BytesIO(raw)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    name = rng.choice(list(members))
    members[name] = mutate(members[name], rng)
    if rng.random() < 0.1:
        members.pop(rng.choice(list(members)))
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        for key, value in members.items():
            archive.writestr(key, value)
    return target.getvalue()


def write_v73(path: Path, sparse: bool = False) -> None:
    """Write what MATLAB's `save -v7.3` writes, for the small data set."""
    data = cases.small_dataset(sparse)
    with h5py.File(path, "w", userblock_size=512) as file:
        if sparse:
            columns = data.features.tocsc()
            group = file.create_group("data")
            group.attrs["MATLAB_class"] = np.bytes_("double")
            group.attrs["MATLAB_sparse"] = np.uint64(columns.shape[0])
            group["data"], group["ir"] = columns.data.astype(float), columns.indices.astype("u8")
            group["jc"] = columns.indptr.astype("u8")
        else:
            file.create_dataset("data", data=data.features.T, compression="gzip")
        file["partial_labels"] = data.candidates.T.astype(float).T * 2 - 1  # L x N in MATLAB
        cells = file.create_dataset("label_names", (1, 2), h5py.ref_dtype)
        cells.attrs["MATLAB_class"] = np.bytes_("cell")
        for j, name in enumerate(data.label_names):
            codes = np.frombuffer(name.encode("utf-16-le"), "<u2")[:, None]
            text = file.create_dataset(f"#refs#/{j}", data=codes)
            text.attrs["MATLAB_class"] = np.bytes_("char")
            cells[0, j] = text.ref
    with path.open("r+b") as file:
        file.write(b"MATLAB 7.3 MAT-file".ljust(124) + b"\0\2IM")


def write_plain_mat(path: Path) -> None:
    """Write a v5 file without compression, so that damage reaches the parser."""
    compressed = path.with_name("compressed.mat")
    matlab.write(cases.small_dataset(sparse=True), compressed)
    variables = scipy.io.loadmat(compressed)
    compressed.unlink()
    scipy.io.savemat(path, {k: v for k, v in variables.items() if not k.startswith("__")})


Seed = Callable[[Path], None]


def written(module: Any, sparse: bool, resolved: bool = False) -> Seed:
    data = cases.small_dataset(sparse)
    resolution = cases.resolution_of(data) if resolved else None
    return lambda path: module.write(data, path, resolution=resolution)


def mat_read(path: Path) -> None:
    """Read with the decoder in this process, not in a child: the caller isolates it."""
    with mock.patch.object(matlab_decoding, "_decode", decode_here):
        matlab.read(path)


def decode_here(path: Path, target: Path, wanted: str) -> None:
    try:
        matlab_decoder.convert(path, target, re.compile(wanted), matlab_decoder.Budget(2**29))
    except matlab_decoder.BAD_FILE as error:  # as the child does
        refuse(f"the .mat file cannot be read: {error}", "")


READERS: dict[str, tuple[str, Callable[[Path], Any], list[Seed]]] = {
    "arff": ("a.arff", arff.read, [written(arff, s, r) for s in (0, 1) for r in (0, 1)]),
    "svmlight": ("a.svm", svmlight.read, [written(svmlight, s, r) for s in (0, 1) for r in (0, 1)]),
    "npz": ("a.npz", npz.read, [written(npz, False), written(npz, True)]),
    "labelstudio": ("a.json", labelstudio.read, [written(labelstudio, s, True) for s in (0, 1)]),
    "cleanlab": ("a.json", cleanlab.read, [written(cleanlab, s, True) for s in (0, 1)]),
    "matlab": ("a.mat", mat_read, [written(matlab, False), written(matlab, True), write_plain_mat]),
    "matlab73": ("a.mat", mat_read, [write_v73, lambda path: write_v73(path, sparse=True)]),
}
ISOLATED = ("matlab", "matlab73")


def damaged_files(name: str, count: int, folder: Path, seed: int = 0) -> Iterator[Path]:
    """Yield the same path again and again, each time with other damage to it or a side file."""
    file_name, _, seeds = READERS[name]
    rng = random.Random(f"{name} {seed}")
    originals = []
    for i, write in enumerate(seeds):
        home = folder / f"seed{i}"
        home.mkdir()
        write(home / file_name)
        READERS[name][1](home / file_name)  # undamaged, it can be read
        originals.append({path.name: path.read_bytes() for path in home.iterdir()})
    for _ in range(count):
        files = rng.choice(originals)
        victim = file_name if rng.random() < 0.7 else rng.choice(list(files))
        change = mutate_archive if name == "npz" else mutate
        for other in files:
            raw = change(files[other], rng) if other == victim else files[other]
            (folder / other).write_bytes(raw)
        yield folder / file_name


def outcome(read: Callable[[Path], Any], path: Path) -> str:
    """Return what reading gives, read or refused; anything but a PlainError is raised."""
    start = time.process_time()  # of this process: how busy the machine is does not matter
    try:
        read(path)
        result = "read"
    except PlainError:
        result = "refused"
    seconds = time.process_time() - start
    assert seconds < SECONDS, f"reading took {seconds:.1f} s"
    return result


def isolated_outcome(read: Callable[[Path], Any], path: Path) -> str:
    """Return the outcome in a forked copy of this process, which may crash."""
    child = os.fork()
    if child == 0:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        matlab_decoder.limit_memory(3 * 2**30)
        try:
            read(path)
        except BaseException as error:
            os._exit(3 if isinstance(error, PlainError) else 4)
        os._exit(0)
    deadline = time.monotonic() + 6 * SECONDS  # on the clock, where the machine may be busy
    while time.monotonic() < deadline:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            code = os.waitstatus_to_exitcode(status)
            return {0: "read", 3: "refused", 4: "bug"}.get(code, f"crashed ({code})")
        time.sleep(0.001)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return "hung"


def fuzz(name: str, count: int, folder: Path, seed: int = 0) -> Counter[str]:
    """Read that many damaged files of a format and count what came of it."""
    read = READERS[name][1]
    judge = isolated_outcome if name in ISOLATED else outcome
    return Counter(judge(read, path) for path in damaged_files(name, count, folder, seed))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("formats", nargs="*", default=list(READERS))
    options = parser.parse_args()
    for name in options.formats:
        start = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            counts = fuzz(name, options.count, Path(folder), options.seed)
        peak = max(resource.getrusage(who).ru_maxrss for who in (0, -1)) / 1024
        print(f"{name}: {dict(counts)} in {time.monotonic() - start:.0f} s, peak {peak:.0f} MB")


if __name__ == "__main__":
    sys.exit(main())
