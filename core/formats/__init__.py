"""Files in and out: `read`, `write` and `detect`, whatever the format.

A format is recognised by content first and by extension second. Every format is one entry with
`NAME`, `EXTENSIONS`, `sniff(head, path)`, `read(path, mapping)` and, where the format can carry a
data set, `write(dataset, path, mapping, resolution)`. Originals are only ever opened for reading,
nothing is unpickled, and a file appears under its name only when it is complete.
"""

import os
import shutil
import tempfile
from collections.abc import Callable, Sequence
from functools import cache, partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol, cast

from core.dataset import CandidateDataset
from core.errors import DatasetError, ExportError, PlainError, Problem
from core.formats.archives import is_packed, unpacked
from core.formats.findings import refuse
from core.formats.mapping import ColumnMapping, ReadResult, Resolution, guess_mapping

__all__ = ["ColumnMapping", "ReadResult", "detect", "guess_mapping", "read", "writable", "write"]

HEAD = 2**16
PICKLES = (".pkl", ".pickle", ".joblib", ".pkl.bz2", ".pkl.gz", ".pt", ".pth")

# Those that know their own content come before those that accept nearly any text.
FORMATS = (
    *("npz", "matlab", "arff", "huggingface", "parquet:parquet", "labelstudio", "cleanlab"),
    *("json_tables:JSONL", "json_tables:JSON", "svmlight", "delimited:TSV", "delimited:CSV"),
)


class Format(Protocol):
    """One way to keep a data set in a file."""

    NAME: str
    EXTENSIONS: tuple[str, ...]
    sniff: Callable[[bytes, Path], bool]
    read: Callable[[Path, ColumnMapping | None], ReadResult]


def read(
    path: Path | str, mapping: ColumnMapping | None = None, *, name: str | None = None
) -> ReadResult:
    """Read a data set from a file of any known format.

    Parameters
    ----------
    mapping : roles of columns that shall not be guessed
    name : the file's own name, where `path` is a temporary one

    Raises
    ------
    DatasetError
        With every reason at once; also for damaged files of any kind.
    """
    path = Path(path)
    shown = path.with_name(Path(name).name) if name and Path(name).name else path
    try:
        head = _head(path)
        if not is_packed(head):
            return _read(path, shown, head, mapping)
        with unpacked(path, shown.name) as inner:
            return _read(inner, inner, _head(inner), mapping)
    except PlainError:
        raise
    except OSError as error:
        refuse("the file cannot be read", "Check the path and its rights.", value=error.strerror)
    except MemoryError:
        refuse("the file does not fit into memory", "Split it, or drop columns.", value=shown.name)
    except Exception as error:  # a damaged file can break a parser in any way
        raise _damaged(error) from error


def detect(path: Path | str) -> str:
    """Return the name of a file's format; look inside when it is packed."""
    path = Path(path)
    try:
        head = _head(path)
        if not is_packed(head):
            return _find(head, path).NAME
        with unpacked(path, path.name) as inner:
            return _find(_head(inner), inner).NAME
    except OSError as error:
        refuse("the file cannot be read", "Check the path and its rights.", value=error.strerror)


def write(
    dataset: CandidateDataset,
    path: Path | str,
    *,
    format: str | None = None,
    mapping: ColumnMapping | None = None,
    resolution: Resolution | None = None,
    force: bool = False,
) -> Path:
    """Write a data set, and its resolved labels when given, in the named format or by extension.

    Raises
    ------
    ExportError
        When the target exists (unless `force`), the format cannot be written, or writing fails;
        then nothing is left behind.
    """
    path = Path(path)
    save, siblings = _writer(path, format)
    taken = [one.name for one in (path, *siblings) if one.exists()]
    if taken and not force:
        hint = "Choose another name, or force."
        raise ExportError("A file exists already.", ", ".join(taken), hint)
    try:
        with tempfile.TemporaryDirectory(dir=path.parent, prefix=".plain-") as folder:
            save(dataset, Path(folder) / path.name, mapping, resolution)
            _move_all(Path(folder), path, siblings)
    except PlainError:
        raise
    except Exception as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        hint = "Nothing was written. Check the folder, the free space and the names."
        raise ExportError(f"{path.name} cannot be written.", str(reason), hint) from error
    return path


@cache
def formats() -> dict[str, Format]:
    """Return every format at hand by its name, in the order they are asked."""
    found = []
    for entry in FORMATS:
        module, _, member = entry.partition(":")
        full = f"{__name__}.{module}"
        if find_spec(full) is not None:
            loaded = import_module(full)
            found.append(getattr(loaded, member, loaded))
    return {one.NAME: cast(Format, one) for one in found}


def writable() -> dict[str, str]:
    """Return what can be written by the name of its format, each with its usual extension."""
    able = {name: one.EXTENSIONS for name, one in formats().items() if hasattr(one, "write")}
    own = {name: "".join(extensions[:1]) for name, extensions in able.items()}
    return own | {name: ".csv" if name == "cleanlab-issues" else ".jsonl" for name in _flavours()}


@cache
def _flavours() -> dict[str, Callable[..., None]]:
    """Return how to write for programs whose files are not read back, by their names."""
    if find_spec(f"{__name__}.records") is None:
        return {}
    records = import_module(f"{__name__}.records")
    return {name: partial(records.write, name=name) for name in records.NAMES}


def _head(path: Path) -> bytes:
    if path.is_dir():
        return b""
    with path.open("rb") as file:
        return file.read(HEAD)


def _read(path: Path, shown: Path, head: bytes, mapping: ColumnMapping | None) -> ReadResult:
    return _find(head, shown).read(path, mapping)


def _find(head: bytes, path: Path) -> Format:
    """Return the format whose content this is; of several, the one of this extension."""
    _refuse_pickle(head, path)
    if not head and not path.is_dir():
        refuse("the file must not be empty", "Check how it was made.", value="0 bytes")
    known = list(formats().values())
    by_content = [one for one in known if one.sniff(head, path)]
    by_name = _by_name(path)
    both = [one for one in by_content if one in by_name]
    found = [*both, *by_content, *by_name]
    if not found:
        names = f"Known formats: {', '.join(formats())}."
        refuse("the file must be of a known format", names, value=path.suffix or path.name)
    return found[0]


def _by_name(path: Path) -> list[Format]:
    """Return the formats of this extension, those for any table first."""
    ordered = reversed(formats().values())
    return [one for one in ordered if path.name.lower().endswith(one.EXTENSIONS)]


def _refuse_pickle(head: bytes, path: Path) -> None:
    is_pickle = head[:1] == b"\x80" and head[1:2] in (b"\x02", b"\x03", b"\x04", b"\x05")
    if is_pickle or path.name.lower().endswith(PICKLES):
        fix = "Save the data as Parquet, CSV or npz: a pickle can run any code when opened."
        refuse("pickle files are never opened", fix, value=path.name)


def _damaged(error: Exception) -> DatasetError:
    detail = " ".join(str(error).split())[:200]
    found = f"{type(error).__name__}: {detail}" if detail else type(error).__name__
    fix = "Write it again from its source: it is damaged, cut off, or of another format."
    return DatasetError([Problem("the file cannot be understood", fix, True, value=found)])


def _writer(path: Path, name: str | None) -> tuple[Callable[..., None], list[Path]]:
    """Return what writes this format, and the paths of files it may put beside the main one."""
    known = formats()
    by_name = [one for one in _by_name(path) if hasattr(one, "write")]
    chosen = by_name[0] if name is None and by_name else known.get(name or "")
    save: Any = _flavours().get(name or "") or getattr(chosen, "write", None)
    if save is None:
        able = ", ".join(writable())
        raise ExportError(
            "This format cannot be written.", f"Got {name or path.suffix!r}.", f"Use one of {able}."
        )
    siblings: Any = getattr(chosen, "siblings", None)
    return save, siblings(path) if siblings else []


def _move_all(folder: Path, path: Path, siblings: Sequence[Path]) -> None:
    """Give complete files their names: those beside the main one first, the main one last."""
    made = sorted(folder.iterdir(), key=lambda one: one.name == path.name)
    for one in made:
        _sync(one)
    for stale in siblings:  # of the file that is replaced: they would be read with the new one
        stale.unlink(missing_ok=True)
    for one in made:
        target = path.with_name(one.name)
        if target.is_dir():
            shutil.rmtree(target)
        os.replace(one, target)


def _sync(path: Path) -> None:
    for one in path.rglob("*") if path.is_dir() else [path]:
        if one.is_file():
            with one.open("rb") as file:
                os.fsync(file.fileno())
