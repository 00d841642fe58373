"""Files in and out: `read`, `write` and `detect`, whatever the format.

A format is recognised by content first and by extension second. Every format is one entry with
`NAME`, `EXTENSIONS`, `sniff(head, path)`, `read(path, mapping)` and, where the format can carry a
data set, `write(dataset, path, mapping, resolution)`. Originals are only ever opened for reading,
nothing is unpickled, and a file appears under its name only when it is complete.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import cache, partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple, Protocol, cast

from core.data.dataset import CandidateDataset
from core.data.votes import Votes
from core.errors import ExportError, Problem
from core.failpoints import failpoint
from core.formats.shared.archives import is_packed, unpacked
from core.formats.shared.findings import refuse
from core.formats.shared.limits import limited
from core.formats.shared.mapping import ColumnMapping, ReadResult, Resolution, guess_mapping
from core.formats.shared.original import Original, names_are_beside, stamp_of
from core.formats.shared.placing import check_free, checksums, placing, record_of
from core.formats.shared.progress import Progress, reporting_to
from core.formats.side_file import find_side_file, side_file_of, write_side_file

__all__ = [
    "ColumnMapping",
    "ReadResult",
    "detect",
    "guess_mapping",
    "read",
    "require_free",
    "with_votes",
    "writable",
    "write",
]

HEAD = 2**16
READERS = f"{__name__}.readers"
PICKLES = (".pkl", ".pickle", ".joblib", ".pkl.bz2", ".pkl.gz", ".pt", ".pth")

# Those that know their own content come before those that accept nearly any text.
FORMATS = (
    *("npz", "matlab", "arff", "huggingface", "parquet:parquet", "labelstudio", "cleanlab"),
    *("json_tables:JSONL", "json_tables:JSON", "svmlight", "fasttext", "item_files"),
    *("person_files", "delimited:TSV", "delimited:CSV", "picture_folders"),
)


class Format(Protocol):
    """One way to keep a data set in a file."""

    NAME: str
    EXTENSIONS: tuple[str, ...]
    sniff: Callable[[bytes, Path], bool]
    read: Callable[[Path, ColumnMapping | None], ReadResult]


def read(
    path: Path | str,
    mapping: ColumnMapping | None = None,
    *,
    name: str | None = None,
    progress: Progress | None = None,
) -> ReadResult:
    """Read a data set from a file of any known format.

    Parameters
    ----------
    mapping : roles of columns that shall not be guessed
    name : the file's own name, where `path` is a temporary one
    progress : called with the bytes read and their number, by formats that are read in parts

    Raises
    ------
    DatasetError
        With every reason at once; also for damaged files of any kind. Each reader turns the
        errors its parser documents into one: any other exception is a bug of ours.
    """
    path = _table_among_pictures(Path(path))
    shown = path.with_name(Path(name).name) if name and Path(name).name else path
    try:
        with limited(path), reporting_to(progress):
            stamp, head = stamp_of(path), _head(path)
            if not is_packed(head):
                result = _read_with_side_file(path, shown, head, mapping)
            elif (packed := _of_zip(path)) is not None:
                result = packed.read(path, mapping)
            else:
                with unpacked(path, shown.name) as inner:
                    result = _read_with_side_file(inner, inner, _head(inner), mapping)
        return _with_original(result, path.absolute(), shown.name, stamp)
    except OSError as error:
        refuse("the file cannot be read", "Check the path and its rights.", value=error.strerror)
    except MemoryError:
        refuse("the file does not fit into memory", "Split it, or drop columns.", value=shown.name)


def with_votes(result: ReadResult, votes: Path | str) -> ReadResult:
    """Return what was read with the votes of a table beside it (`Votes.from_table`).

    Candidates are then the cells that a source said yes to; where the file has others, that is
    told and the votes hold.
    """
    data = result.dataset
    found = Votes.read(votes, data.ids, data.label_names)
    problems = list(result.problems)
    differ = int((found.candidates != data.candidates).sum())
    if differ:
        rule = f"{differ:,} cells are candidates in one of the file and the votes only"
        problems.append(Problem(rule, "Candidates are the cells with a yes. Check the table."))
    return replace(
        result,
        dataset=replace(data, candidates=found.candidates, votes=found),
        problems=tuple(problems),
    )


def detect(path: Path | str) -> str:
    """Return the name of a file's format; look inside when it is packed."""
    path = Path(path)
    try:
        head = _head(path)
        if not is_packed(head):
            return _find(head, path).NAME
        with limited(path), unpacked(path, path.name) as inner:
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
    decisions: Iterable[Any] = (),
    record: Mapping[str, Any] | None = None,
    force: bool = False,
    per_item: bool = False,
    users: Mapping[str, int | str] | None = None,
) -> Path:
    """Write a data set, and its resolved labels when given, in the named format or by extension.

    Table formats copy the columns of the file the data set was read from, as they came; `mapping`
    names others, or another order. What the format has no place for, `decisions` among it, goes
    into a side file that `read` finds; `record`, how it was made, goes beside it with checksums.
    `per_item` writes one row per instance, whatever the rows of the file were; who said what is
    then in one column. `users` are annotators' numbers or e-mail addresses in Label Studio.

    Raises
    ------
    ExportError
        When the target exists (unless `force`), is a folder that is not our own export, the
        format cannot be written, or writing fails; then nothing is changed.
    """
    path = Path(path)
    writer = _naming(_writer(path, format), users)
    if per_item:
        dataset, mapping = dataset.read_from(None), None
    with _writing(path), placing(path, writer.siblings, force=force) as folder:
        writer.save(dataset, folder / path.name, mapping, resolution)
        is_more = resolution is not None or names_are_beside(dataset) or writer.lacks is not None
        if is_more or (dataset.votes is not None and not writer.has_columns):
            write_side_file(
                dataset,
                folder / path.name,
                format=writer.name,
                mapping=_written_mapping(dataset, mapping) if writer.has_columns else None,
                resolution=resolution,
                decisions=decisions,
                lacks=writer.lacks or (),
            )
        failpoint("export.written")
        if record is not None:
            note = {"note": writer.note} if writer.note else {}
            _write_record(folder, path.name, {**record, **note})
            failpoint("export.recorded")
    return path


def _naming(writer: "Writer", users: Mapping[str, int | str] | None) -> "Writer":
    """Return the writer, told who annotators are."""
    if not users:
        return writer
    if writer.name != "labelstudio":
        hint = "Leave the users out, or use the format labelstudio."
        raise ExportError("Only tasks for Label Studio name its users.", writer.name, hint)
    return writer._replace(save=partial(writer.save, users=users))


def _written_mapping(
    dataset: CandidateDataset, mapping: ColumnMapping | None
) -> ColumnMapping | None:
    from core.formats.shared.copying import written_mapping  # loads pyarrow

    return written_mapping(dataset, mapping)


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, UnicodeEncodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        hint = "Nothing was written. Check the folder, the free space and the names."
        raise ExportError(f"{path.name} cannot be written.", str(reason), hint) from error


def require_free(path: Path | str, *, format: str | None = None, force: bool = False) -> None:
    """Refuse early what `write` would refuse about the target and the format."""
    check_free(Path(path), _writer(Path(path), format).siblings, force=force)


def _write_record(folder: Path, name: str, record: Mapping[str, Any]) -> None:
    files = checksums(folder)
    about = {**record, "file": name, "sha256": files.get(name), "files": files}
    text = json.dumps(about, indent=2, ensure_ascii=False)
    record_of(folder / name).write_text(text, encoding="utf-8")


@cache
def formats() -> dict[str, Format]:
    """Return every format at hand by its name, in the order they are asked."""
    found = []
    for entry in FORMATS:
        module, _, member = entry.partition(":")
        full = f"{READERS}.{module}"
        if find_spec(full) is not None:
            loaded = import_module(full)
            found.append(getattr(loaded, member, loaded))
    return {one.NAME: cast(Format, one) for one in found}


def writable() -> dict[str, str]:
    """Return what can be written by the name of its format, each with its usual extension."""
    able = {name: one.EXTENSIONS for name, one in formats().items() if hasattr(one, "write")}
    able.pop("pictures", None)  # only what came as such
    own = {name: "".join(extensions[:1]) for name, extensions in able.items()}
    return own | (import_module(f"{READERS}.records").EXTENSIONS if _flavours() else {})


@cache
def _flavours() -> dict[str, "Save"]:
    """Return how to write for programs whose files are not read back, by their names."""
    if find_spec(f"{READERS}.records") is None:
        return {}
    records = import_module(f"{READERS}.records")
    return {name: partial(records.write, name=name) for name in records.EXTENSIONS}


def _bases() -> dict[str, str]:
    """Return which flavours are a format that is read, written with an option."""
    return dict(import_module(f"{READERS}.records").BASES) if _flavours() else {}


def _head(path: Path) -> bytes:
    if path.is_dir():
        return b""
    with path.open("rb") as file:
        return file.read(HEAD)


def _table_among_pictures(path: Path) -> Path:
    """Return the table of a folder that has one beside its pictures, else the path itself."""
    others = (one for name, one in formats().items() if name != "pictures")
    is_ours = side_file_of(path).is_file()
    if not path.is_dir() or is_ours or any(one.sniff(b"", path) for one in others):
        return path
    from core.formats.readers.picture_folders import table_in

    return table_in(path) or path


def _of_zip(path: Path) -> Format | None:
    """Return the format of a zip file that is read without being unpacked."""
    return next(
        (f for f in formats().values() if hasattr(f, "reads_zip") and f.reads_zip(path)), None
    )


def _read(path: Path, shown: Path, head: bytes, mapping: ColumnMapping | None) -> ReadResult:
    return _find(head, shown).read(path, mapping)


def _read_with_side_file(
    path: Path, shown: Path, head: bytes, mapping: ColumnMapping | None
) -> ReadResult:
    """Read a file, and what lies beside it where it is an export of ours that nobody changed."""
    side, problem = find_side_file(path) if mapping is None else (None, None)
    if side is not None and side.has_all:
        return side.result()
    if side is not None:
        return side.joined(_read(path, shown, head, side.about.mapping))
    result = _read(path, shown, head, mapping)
    return result if problem is None else replace(result, problems=(problem, *result.problems))


def _with_original(
    result: ReadResult, path: Path, name: str, stamp: tuple[int, int] | None
) -> ReadResult:
    """Have the data set know its file where cells can be copied, or features be had exactly."""
    format = formats().get(result.format)
    has_columns = result.mapping is not None and hasattr(format, "cells")
    is_kept = hasattr(format, "TASKS_ARE_KEPT") or hasattr(format, "exact_features")
    keeps = getattr(format, "keeps_original", None)
    if keeps is not None and keeps(path):  # a folder per label has no columns
        original = Original(path, name, result.format, ColumnMapping(), stamp)
        return replace(result, dataset=result.dataset.read_from(original))
    if not has_columns and not is_kept:
        return result
    names = result.dataset.label_names if hasattr(format, "exact_features") else ()
    mapping = result.mapping or ColumnMapping(labels=tuple(names))
    original = Original(path, name, result.format, mapping, stamp)
    return replace(result, dataset=result.dataset.read_from(original))


def _find(head: bytes, path: Path) -> Format:
    """Return the format whose content this is; of several, the one of this extension."""
    _refuse_pickle(head, path)
    if not head and not path.is_dir():
        refuse("the file must not be empty", "Check how it was made.", value="0 bytes")
    known = list(formats().values())
    by_content = [one for one in known if one.sniff(head, path)]
    by_name = _by_name(path)
    says_it = path.suffix.lower() != ".txt"  # any text may be called so
    both = [one for one in by_content if one in by_name and says_it]
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


class Save(Protocol):
    """How every format writes: the one signature of its `write`."""

    def __call__(
        self,
        dataset: CandidateDataset,
        path: Path,
        mapping: ColumnMapping | None = None,
        resolution: Resolution | None = None,
        **options: Any,
    ) -> None: ...


class Writer(NamedTuple):
    """What writes a format, and what is known of its files."""

    name: str
    save: Save
    siblings: list[Path]  # files it may put beside the main one
    lacks: tuple[str, ...] | None  # what it has no place for, beside what was found out
    has_columns: bool
    note: str = ""  # what whoever opens the file should know


def _writer(path: Path, name: str | None) -> Writer:
    """Return what writes this format."""
    known = formats()
    by_name = [one for one in _by_name(path) if hasattr(one, "write")]
    in_folders = name is None and path.suffix.lower() == ".zip"
    name = "pictures" if in_folders else name
    chosen: Any = by_name[0] if name is None and by_name else known.get(name or "")
    save: Any = _flavours().get(name or "") or getattr(chosen, "write", None)
    if save is None:
        able = ", ".join(writable())
        raise ExportError(
            "This format cannot be written.", f"Got {name or path.suffix!r}.", f"Use one of {able}."
        )
    chosen = known.get(_bases().get(name or "", ""), chosen)
    siblings: Any = getattr(chosen, "siblings", None)
    beside = [*(siblings(path) if siblings else []), side_file_of(path)]
    if chosen is None:
        return Writer(str(name), save, beside, ("features", "display"), False)
    lacks = getattr(chosen, "LACKS", None)
    note = "" if name == "csv-raw" else getattr(chosen, "NOTE", "")
    return Writer(chosen.NAME, save, beside, lacks, hasattr(chosen, "cells"), note)
