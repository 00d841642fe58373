"""Coverage-guided fuzzing of one reader: anything but a PlainError is a finding.

    python tests/hammer/fuzz_readers.py csv [seconds]

Needs atheris (`make fuzz` installs it). Begins with healthy files of the format; what atheris
finds worth keeping stays in `.fuzz/<reader>` and is used again. A finding is written beside that
folder: make it small, and a case of its own in `tests/unit/test_bombs.py`.
"""

import sys
import tempfile
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests"), str(ROOT / "tests" / "unit")]

import atheris  # noqa: E402

MAX_BYTES = 16_384
SECONDS_EACH, MEMORY = 10, 2_048  # for one input, in megabytes

with atheris.instrument_imports(include=["core", "defusedxml", "json", "zipfile", "gzip"]):
    import fuzzing
    import fuzzing_binary

    from core import formats
    from core.errors import PlainError

READERS = {
    **dict.fromkeys(("csv", "tsv", "parquet", "jsonl", "json"), "table"),
    **dict.fromkeys(("gz", "zip"), "packed"),
    **dict.fromkeys(fuzzing_binary.READERS, "own"),
}


def seeds(name: str, folder: Path) -> tuple[str, list[bytes]]:
    """Return the name a file of this reader has, and healthy ones."""
    if READERS[name] == "own":
        file_name, _, writers = fuzzing_binary.READERS[name]
        healthy = []
        for write in writers:
            write(folder / file_name)
            healthy.append((folder / file_name).read_bytes())
        return file_name, healthy
    files = fuzzing.whole_files(folder)
    if READERS[name] == "packed":
        return f"a.csv.{name}", [raw for key, raw in files.items() if key.endswith(name)]
    return f"a.{name}", [raw for key, raw in files.items() if key.endswith(f".{name}")]


def target(path: Path, read: Callable[[Path], object]) -> Callable[[bytes], None]:
    def one(data: bytes) -> None:
        path.write_bytes(data)
        with suppress(PlainError):
            read(path)

    return one


def main(name: str, seconds: str = "60") -> None:
    warnings.simplefilter("ignore")
    import sklearn.feature_extraction.text  # noqa: F401  (slow: not in the time of one input)

    corpus = ROOT / ".fuzz" / name
    corpus.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="plain-fuzz-"))
    file_name, healthy = seeds(name, folder)
    for i, raw in enumerate(healthy):
        (corpus / f"seed{i}").write_bytes(raw)
    own = fuzzing_binary.mat_read if name.startswith("matlab") else formats.read
    options = [
        f"-max_total_time={seconds}", f"-max_len={MAX_BYTES}", f"-timeout={SECONDS_EACH}",
        f"-rss_limit_mb={MEMORY}", f"-artifact_prefix={corpus}-", "-print_final_stats=1",
    ]  # fmt: skip
    atheris.Setup([sys.argv[0], *options, str(corpus)], target(folder / file_name, own))
    atheris.Fuzz()


if __name__ == "__main__":
    main(*sys.argv[1:])
