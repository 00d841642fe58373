"""A table per person in a folder or a zip file, such as doccano's `anna.jsonl` and `bob.jsonl`.

The tables are put below each other, with whose rows they are in a column `annotator`: an item that
several people have is one instance. Only read: an export is one table.
"""

import zipfile
from collections.abc import Iterable, Iterator
from contextlib import nullcontext, suppress
from pathlib import Path, PurePosixPath

import pyarrow as pa
import pyarrow.compute as pc

from core.formats.readers.delimited import CSV, TSV
from core.formats.readers.json_tables import JSON, JSONL
from core.formats.readers.picture_folders import files_below
from core.formats.shared.archives import BAD_ARCHIVE, all_unpacked
from core.formats.shared.companions import is_note, visible
from core.formats.shared.findings import Findings, refuse
from core.formats.shared.guessing_sets import SPLITS
from core.formats.shared.limits import check_rows, check_size
from core.formats.shared.mapping import ColumnMapping, ReadResult, guess_mapping
from core.formats.shared.tabular import check_mapping, to_dataset

NAME = "person_files"
EXTENSIONS = ()
PERSON = "annotator"
MAX_PEOPLE = 1000
TABLES = {end: one for one in (CSV, TSV, JSON, JSONL) for end in one.EXTENSIONS if end != ".txt"}


def sniff(head: bytes, path: Path) -> bool:
    """Whether a folder holds several tables of one kind and nothing else."""
    return path.is_dir() and _are_peoples(files_below(path))


def reads_zip(path: Path) -> bool:
    """Whether a zip file holds such tables."""
    try:
        with zipfile.ZipFile(path) as archive:
            return _are_peoples(archive.namelist())
    except BAD_ARCHIVE:
        return False


def read(path: Path, mapping: ColumnMapping | None = None) -> ReadResult:
    """Read all tables as one."""
    findings = Findings()
    table, is_text = _joined(path)
    table = _with_types(table) if is_text else table
    full = guess_mapping(table, mapping)
    check_mapping(full, table.column_names, findings)
    dataset = to_dataset(table.to_batches(), full, table.num_rows, findings)
    return ReadResult(dataset, findings.problems(), full, NAME)


def cells(path: Path, verbatim: bool, mapping: ColumnMapping) -> Iterator[pa.RecordBatch]:
    """Give the columns of all tables, and whose each row is."""
    yield from _joined(path)[0].to_batches()


def packed(folder: Path, target: Path) -> Path:
    """Write the tables of a folder into a zip file, the same bytes every time."""
    with zipfile.ZipFile(target, "w") as archive:
        for path in _paths(folder):
            archive.writestr(zipfile.ZipInfo(path.name), path.read_bytes())
    return target


def _are_peoples(names: list[str]) -> bool:
    files = [PurePosixPath(name) for name in _tables(names)]
    kinds, people = {one.suffix.lower() for one in files}, {one.stem.casefold() for one in files}
    is_split = not people.isdisjoint(SPLITS)
    return 2 <= len(people) == len(files) <= MAX_PEOPLE and len(kinds) == 1 and not is_split


def _tables(names: list[str]) -> list[str]:
    """Return the files that hold data; none where some are no tables."""
    found = [name for name in sorted(visible(names)) if not is_note(name)]
    are_tables = all(PurePosixPath(name).suffix.lower() in TABLES for name in found)
    return found if are_tables else []


def _paths(folder: Path) -> Iterator[Path]:
    for name in _tables(files_below(folder)):
        path = folder / name
        if not path.resolve().is_relative_to(folder.resolve()):
            refuse("files of a folder must lie in it", "Copy it there.", value=name)
        yield path


def _joined(path: Path) -> tuple[pa.Table, bool]:
    """Return the rows of all tables, each with whose it is unless the tables say so.

    And whether these are text tables, whose cells have no types.
    """
    parts: list[pa.Table] = []
    is_text = False
    with nullcontext(path) if path.is_dir() else all_unpacked(path) as folder:
        for one in _paths(folder):
            kind = TABLES[one.suffix.lower()]
            is_text = kind in (CSV, TSV)
            batches = kind.cells(one, False, ColumnMapping())
            parts.append(_with_person(pa.Table.from_batches(list(_limited(batches, parts))), one))
            fewer, more = sorted((set(parts[-1].column_names), set(parts[0].column_names)), key=len)
            if not fewer <= more:
                fix = "Give one table, or one for each person with the same columns."
                refuse("tables of several people must have the same columns", fix, value=one.name)
    try:
        joined = pa.concat_tables(parts, promote_options="permissive").combine_chunks()
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        refuse("cells of a column must be of one kind in all tables", "Correct them.", value=error)
    return joined, is_text


def _limited(batches: Iterable[pa.RecordBatch], before: list[pa.Table]) -> Iterator[pa.RecordBatch]:
    n_rows, n_bytes = sum(map(len, before)), sum(part.nbytes for part in before)
    for batch in batches:
        n_rows, n_bytes = n_rows + batch.num_rows, n_bytes + batch.nbytes
        check_rows(n_rows)
        check_size(n_bytes)
        yield batch


def _with_person(table: pa.Table, path: Path) -> pa.Table:
    if PERSON in table.column_names:
        return table
    return table.append_column(PERSON, pa.repeat(path.stem, len(table)))


def _with_types(table: pa.Table) -> pa.Table:
    """Return the table with numbers where all cells of a column of texts are such."""
    for i, column in enumerate(table.itercolumns()):
        if pa.types.is_string(column.type):
            table = table.set_column(i, table.column_names[i], _as_numbers(column))
    return table


def _as_numbers(texts: pa.ChunkedArray) -> pa.ChunkedArray:
    values = pc.if_else(pc.equal(pc.utf8_trim_whitespace(texts), ""), None, texts)
    is_id = pc.any(pc.match_substring_regex(values, r"^0\d")).as_py()
    for kind in () if is_id or values.null_count == len(values) else (pa.int64(), pa.float64()):
        with suppress(pa.ArrowInvalid):
            return pc.cast(values, kind)
    return texts
