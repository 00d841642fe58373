"""Several tables in a folder or a zip file that are one: of people, of splits, or in shards.

doccano's `anna.jsonl` and `bob.jsonl` are put below each other with whose rows they are in a column
`annotator`: an item that several people have is one instance. Of `train.csv` and `test.csv`, or of
`train-00000-of-00002.parquet`, the rows are joined, with a column `split`. Only read: an export is
one table.
"""

import zipfile
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path, PurePosixPath
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from core.formats.readers import parquet
from core.formats.readers.delimited import CSV, TSV
from core.formats.readers.json_tables import JSON, JSONL
from core.formats.readers.picture_folders import files_below
from core.formats.shared.archives import BAD_ARCHIVE, all_unpacked
from core.formats.shared.class_labels import class_names, with_names
from core.formats.shared.companions import (
    SHARD,
    describes,
    is_note,
    split_in,
    visible,
    without_parts,
)
from core.formats.shared.findings import Findings, refuse
from core.formats.shared.label_files import with_names_beside
from core.formats.shared.limits import check_rows, check_size
from core.formats.shared.mapping import ColumnMapping, ReadResult, guess_mapping
from core.formats.shared.profiles import PICTURE
from core.formats.shared.tabular import check_mapping, to_dataset

NAME = "person_files"
EXTENSIONS = ()
PERSON, SPLIT = "annotator", "split"
MAX_PEOPLE = 1000
TABLES: dict[str, Any] = {
    end: one for one in (CSV, TSV, JSON, JSONL, parquet) for end in one.EXTENSIONS if end != ".txt"
}


def sniff(head: bytes, path: Path) -> bool:
    """Whether a folder holds several tables of one kind and nothing else."""
    return path.is_dir() and bool(_tables(files_below(path)))


def reads_zip(path: Path) -> bool:
    """Whether a zip file holds such tables."""
    try:
        with zipfile.ZipFile(path) as archive:
            return bool(_tables(archive.namelist()))
    except BAD_ARCHIVE:
        return False


def read(path: Path, mapping: ColumnMapping | None = None) -> ReadResult:
    """Read all tables as one."""
    findings = Findings()
    with _folder(path) as folder:
        table, is_text = _joined(folder)
        table = _with_types(table) if is_text else table
        table = _with_ids(table, guess_mapping(table, mapping))
        full = with_names_beside(guess_mapping(table, mapping), table, folder / "data")
    table = _labelled(table, full, findings)
    check_mapping(full, table.column_names, findings)
    dataset = to_dataset(table.to_batches(), full, table.num_rows, findings)
    return ReadResult(dataset, findings.problems(), full, NAME)


def cells(path: Path, verbatim: bool, mapping: ColumnMapping) -> Iterator[pa.RecordBatch]:
    """Give the columns of all tables, and whose each row is."""
    with _folder(path) as folder:
        table, _ = _joined(folder)
    yield from _labelled(_with_ids(table, mapping), mapping, Findings()).to_batches()


def _folder(path: Path) -> AbstractContextManager[Path]:
    """Give the folder, or what a zip file holds but for its pictures."""
    return nullcontext(path) if path.is_dir() else all_unpacked(path, without=PICTURE)


def packed(folder: Path, target: Path) -> Path:
    """Write the tables of a folder into a zip file, the same bytes every time."""
    with zipfile.ZipFile(target, "w") as archive:
        for path in _paths(folder):
            name = path.relative_to(folder).as_posix()
            archive.writestr(zipfile.ZipInfo(name), path.read_bytes())
    return target


def _tables(names: list[str]) -> list[str]:
    """Return the files that are one table together; none where there are no such."""
    found = [name for name in sorted(visible(names)) if not is_note(name)]
    data = [name for name in found if PurePosixPath(name).suffix.lower() in TABLES]
    kept = without_parts([name for name in data if not describes(name)])
    if len({PurePosixPath(name).suffix.lower() for name in kept}) != 1 or len(kept) > MAX_PEOPLE:
        return []
    if all(_is_part(name) for name in kept):
        rest = [name for name in found if name not in data]
        beside = (PICTURE.search(name) or describes(name) or _is_small(name) for name in rest)
        is_alone = len(kept) == 1 and (not SHARD.fullmatch(PurePosixPath(kept[0]).stem))
        return kept if all(beside) and not is_alone else []
    stems = {PurePosixPath(name).stem.casefold() for name in kept}
    is_mixed = any(split_in(PurePosixPath(name).name) for name in kept)
    are_peoples = 2 <= len(stems) == len(kept) == len(found) and not is_mixed
    return kept if are_peoples else []


def _is_part(name: str) -> bool:
    return split_in(name) is not None or SHARD.fullmatch(PurePosixPath(name).stem) is not None


def _is_small(name: str) -> bool:
    return PurePosixPath(name).suffix.lower() in (".txt", ".xml", ".arrow", ".lock", ".py", "")


def _paths(folder: Path) -> Iterator[Path]:
    for name in _tables(files_below(folder)):
        path = folder / name
        if not path.resolve().is_relative_to(folder.resolve()):
            refuse("files of a folder must lie in it", "Copy it there.", value=name)
        yield path


def _joined(folder: Path) -> tuple[pa.Table, bool]:
    """Return the rows of all tables, each with whose it is unless the tables say so.

    And whether these are text tables, whose cells have no types.
    """
    parts: list[pa.Table] = []
    is_text = False
    for one in _paths(folder):
        kind = TABLES[one.suffix.lower()]
        is_text = kind in (CSV, TSV)
        rows = list(_limited(_cells(kind, one), parts))
        if not rows:
            continue
        parts.append(_with_origin(pa.Table.from_batches(rows), one, folder))
        fewer, more = sorted((set(parts[-1].column_names), set(parts[0].column_names)), key=len)
        if not fewer <= more:
            fix = "Give one table, or one for each person with the same columns."
            refuse("tables of several people must have the same columns", fix, value=one.name)
    if not parts:
        refuse("a table needs rows below its header", "Add instances.", value="no rows")
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


def _cells(kind: Any, path: Path) -> Iterator[pa.RecordBatch]:
    batches: Iterator[pa.RecordBatch] = kind.cells(path, False, ColumnMapping())
    try:
        for batch in batches:
            classes = class_names(batch.schema)
            yield with_names(batch, classes) if classes else batch
    except parquet.BAD_FILE as error:
        refuse(f"a table cannot be read: {error}", parquet.DAMAGED, value=path.name)


def _with_origin(table: pa.Table, path: Path, folder: Path) -> pa.Table:
    """Return the table with whose it is, or which part of the data, unless it says so."""
    table = table.replace_schema_metadata()
    if any(name != name.strip() for name in table.column_names):  # spaces behind the commas
        table = table.rename_columns([name.strip() for name in table.column_names])
        for i, column in enumerate(table.itercolumns()):
            if pa.types.is_string(column.type):
                name = table.column_names[i]
                table = table.set_column(i, name, pc.utf8_trim_whitespace(column))
    name = path.relative_to(folder).as_posix()
    column, what = (SPLIT, split_in(name)) if _is_part(name) else (PERSON, path.stem)
    if column in table.column_names or what is None:
        return table
    return table.append_column(column, pa.repeat(what, len(table)))


def _with_ids(table: pa.Table, mapping: ColumnMapping) -> pa.Table:
    """Return the table with ids that differ, where those of every split count anew."""
    if mapping.id is None or mapping.row != "item" or SPLIT not in table.column_names:
        return table
    ids, split = table.column(mapping.id).cast(pa.string()), table.column(SPLIT)
    pairs = pc.binary_join_element_wise(split.cast(pa.string()), ids, "/")
    if len(pc.unique(ids)) == len(table) or len(pc.unique(pairs)) < len(table):
        return table
    return table.set_column(table.column_names.index(mapping.id), mapping.id, pairs)


def _labelled(table: pa.Table, mapping: ColumnMapping, findings: Findings) -> pa.Table:
    """Return the rows of splits that have labels at all: often those of a test have none."""
    columns = [name for name in mapping.labels if name in table.column_names]
    if SPLIT not in table.column_names or not columns:
        return table
    for split in pc.unique(table.column(SPLIT)).to_pylist():
        is_other = pc.not_equal(table.column(SPLIT), split).fill_null(True)
        rows = table.filter(pc.invert(is_other))
        if all(rows.column(name).null_count == len(rows) for name in columns):
            rule = f"rows of {split!r} have no labels and are left out"
            findings.add(rule, "Add their labels if they are meant.", value=f"{len(rows):,} rows")
            table = table.filter(is_other)
    return table


def _with_types(table: pa.Table) -> pa.Table:
    """Return the table with numbers where all cells of a column of texts are such."""
    for i, column in enumerate(table.itercolumns()):
        if pa.types.is_string(column.type):
            table = table.set_column(i, table.column_names[i], _as_numbers(column))
    return table


def _as_numbers(texts: pa.ChunkedArray) -> pa.ChunkedArray:
    trimmed = pc.utf8_trim_whitespace(texts)
    values = pc.if_else(pc.equal(trimmed, ""), None, trimmed)
    is_id = pc.any(pc.match_substring_regex(values, r"^0\d")).as_py()
    for kind in () if is_id or values.null_count == len(values) else (pa.int64(), pa.float64()):
        with suppress(pa.ArrowInvalid):
            return pc.cast(values, kind)
    return texts
