"""Hugging Face `datasets` folders (`save_to_disk`), one split or several, without that package.

Owns the columns: `labels` or `candidate_labels` as lists of class numbers or names, `truth`,
`features` or `embedding`, else the words of `text`; other plain columns are for display. Several
splits are one data set with a column `split`. The same columns go into Parquet, where the names of
classes are in the schema too.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from core.data.dataset import CandidateDataset, Features
from core.formats.shared.class_labels import METADATA, class_names, with_names
from core.formats.shared.findings import Findings, refuse
from core.formats.shared.json_text import features_of_rows, objects, record_features
from core.formats.shared.label_sets import display_values, matrix_of_names, resolved_labels, sets_of
from core.formats.shared.limits import check_rows, check_size
from core.formats.shared.mapping import ColumnMapping, ReadResult, guess_mapping
from core.formats.shared.tabular import check_mapping, to_dataset
from core.formats.shared.text_features import word_features

NAME = "datasets"
EXTENSIONS = ()
LACKS = ()

LABEL_COLUMNS = ("candidate_labels", "labels", "label")
FEATURE_COLUMNS = ("features", "embedding", "embeddings")
OWN_COLUMNS = (*LABEL_COLUMNS, *FEATURE_COLUMNS, "truth", "confidence", "id")
INFO, STATE, SPLITS = "dataset_info.json", "state.json", "dataset_dict.json"
PART = "data-00000-of-00001.arrow"
DAMAGED = "Save it again with save_to_disk."
CHUNK = 10_000  # instances written at once


def sniff(head: bytes, path: Path) -> bool:
    """Whether this is a folder that `save_to_disk` wrote, or an Arrow file."""
    if head.startswith((b"ARROW1", b"\xff\xff\xff\xff")):
        return True
    return path.is_dir() and any((path / name).is_file() for name in (INFO, SPLITS))


def read(path: Path, mapping: ColumnMapping | None = None) -> ReadResult:
    """Read a data set, or all splits of one."""
    findings = Findings()
    table = _splits(path) if path.is_dir() else _checked([path])
    if not _is_ours(table):
        return _guessed(table, mapping, findings)
    columns = {name: table.column(name).to_pylist() for name in table.column_names}
    key = next((name for name in LABEL_COLUMNS if name in columns), None)
    if key is None:
        refuse("a column of labels is needed", "Name it candidate_labels.", value=list(columns))
    classes = class_names(table.schema)
    offered = _named(columns[key], classes.get(key, ()), key)
    truth = None
    if "truth" in columns:
        truth = _named(columns["truth"], classes.get("truth", ()), "truth")
    found = sorted({n for sets in (offered, truth or []) for s in sets for n in s})
    names = classes.get(key) or found
    display = _display(columns)
    candidates = matrix_of_names(offered, names, findings, "a candidate")
    truths = None if truth is None else matrix_of_names(truth, names, findings, "a true label")
    findings.stop_if_fatal()
    features, words = _features(columns, display)
    ids = [str(value) for value in columns.get("id", ())]
    dataset = CandidateDataset(features, candidates, names, ids, words, truths, display)
    return ReadResult(dataset, findings.problems(), mapping, NAME)


def _splits(path: Path) -> pa.Table:
    """Return the rows of all splits; their names are a column where there are several."""
    if not (path / SPLITS).is_file():
        return _rows(path)
    splits = _json(path / SPLITS).get("splits")
    if not isinstance(splits, list) or not splits:
        refuse(f"{SPLITS} must name splits", DAMAGED, value=splits)
    tables = []
    for split in map(str, splits):
        table = _rows(_below(path, split))
        if "split" not in table.column_names and len(splits) > 1:
            table = table.append_column("split", pa.array([split] * len(table), pa.string()))
        tables.append(table)
    try:
        whole = pa.concat_tables(tables, promote_options="permissive")
        return whole.replace_schema_metadata(tables[0].schema.metadata)
    except pa.ArrowException as error:
        refuse(f"splits must have the same columns: {error}", "Choose one of the folders.")


def _rows(folder: Path) -> pa.Table:
    state = folder / STATE
    listed = _json(state).get("_data_files") if state.is_file() else None
    if isinstance(listed, list):
        files = [_below(folder, str(one.get("filename"))) for one in objects(listed)]
    else:
        files = sorted(folder.glob("*.arrow"))
    if not files:
        refuse("a folder of data sets needs its .arrow files", DAMAGED, value=folder.name)
    table = _checked(files)
    if METADATA not in (table.schema.metadata or {}) and (folder / INFO).is_file():
        told = json.dumps({"info": {"features": _json(folder / INFO).get("features")}})
        table = table.replace_schema_metadata({METADATA: told})
    return table


def _checked(files: Sequence[Path]) -> pa.Table:
    check_size(sum(one.stat().st_size for one in files if one.is_file()))
    try:
        tables = [_arrow(one) for one in files]
        table = pa.concat_tables(tables)
        table.validate(full=True)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        refuse(f"the Arrow file cannot be read: {error}", DAMAGED)
    if len({*table.column_names}) < len(table.column_names):
        refuse("columns must have different names", DAMAGED, value=table.column_names[:20])
    check_rows(len(table))
    return table


def _arrow(path: Path) -> pa.Table:
    with pa.memory_map(str(path)) as file:
        is_file = file.read(6) == b"ARROW1"
        file.seek(0)
        return (pa.ipc.open_file if is_file else pa.ipc.open_stream)(file).read_all()


def _is_ours(table: pa.Table) -> bool:
    """Whether the columns are those that this program writes."""
    names = {*table.column_names}
    return bool(names & {*LABEL_COLUMNS}) and bool(names & {*FEATURE_COLUMNS, "text"})


def _guessed(table: pa.Table, mapping: ColumnMapping | None, findings: Findings) -> ReadResult:
    """Return a table of any columns, understood as other tables are."""
    classes = class_names(table.schema)
    batches = [with_names(batch, classes) for batch in table.to_batches()] if classes else None
    table = pa.Table.from_batches(batches) if batches else table
    full = guess_mapping(table, mapping)
    if len(full.labels) == 1 and not full.label_names:
        names = tuple(classes.get(full.labels[0], ()))
        full = full.model_copy(update={"label_names": names})
    check_mapping(full, table.column_names, findings)
    dataset = to_dataset(table.to_batches(), full, table.num_rows, findings)
    return ReadResult(dataset, findings.problems(), full, NAME)


def _below(folder: Path, name: str) -> Path:
    path = folder / name
    if Path(name).name != name or not path.exists():
        refuse("a folder names what lies in it", DAMAGED, value=name)
    return path


def _json(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        refuse(f"{path.name} cannot be read: {error}", DAMAGED)
    return found if isinstance(found, dict) else {}


def _named(values: Sequence[Any], classes: Sequence[str], key: str) -> list[list[str]]:
    """Return the label sets of a column by name."""
    sets = [one if isinstance(one, list) else [] if one is None else [one] for one in values]
    for i, members in enumerate(sets):
        if classes and any(isinstance(m, int) and not 0 <= m < len(classes) for m in members):
            refuse("class numbers must have names", "Correct it.", row=i, column=key, value=members)
    return [[_class_name(member, classes) for member in members] for members in sets]


def _class_name(member: Any, classes: Sequence[str]) -> str:
    return classes[member] if isinstance(member, int) and classes else str(member)


def _features(columns: dict[str, Any], display: pd.DataFrame | None) -> tuple[Features, list[str]]:
    key = next((name for name in FEATURE_COLUMNS if name in columns), None)
    if key is not None:
        return features_of_rows(columns[key]), []
    if display is None or "text" not in display:
        refuse("a column of features or text is needed", "Add features.", value=list(columns))
    return word_features([str(text) for text in display["text"]], "text")


def _display(columns: dict[str, Any]) -> pd.DataFrame | None:
    plain = (str, int, float, bool, type(None))
    shown = {
        name: values
        for name, values in columns.items()
        if name not in OWN_COLUMNS and all(isinstance(value, plain) for value in values)
    }
    return pd.DataFrame(shown) if shown else None


# ------------------------------------------------------------------------------------- writing


def write(
    dataset: CandidateDataset,
    path: Path,
    mapping: ColumnMapping | None = None,
    resolution: Any = None,
) -> None:
    """Write a folder: labels as lists of classes, confidences in the candidates' order."""
    table = table_of(dataset, resolution, features=True)
    path.mkdir()
    with pa.OSFile(str(path / PART), "wb") as file, pa.ipc.new_stream(file, table.schema) as stream:
        stream.write_table(table, CHUNK)
    info = {"citation": "", "description": "", "homepage": "", "license": ""}
    info |= json.loads((table.schema.metadata or {})[METADATA])["info"]
    (path / INFO).write_text(json.dumps(info, indent=2), "utf-8")
    state: dict[str, Any] = {
        "_data_files": [{"filename": PART}],
        "_fingerprint": dataset.fingerprint[:16],
        "_format_columns": None,
        "_format_kwargs": {},
        "_format_type": None,
        "_output_all_columns": False,
        "_split": None,
    }
    (path / STATE).write_text(json.dumps(state, indent=2), "utf-8")


def write_parquet(
    dataset: CandidateDataset,
    path: Path,
    mapping: ColumnMapping | None = None,
    resolution: Any = None,
) -> None:
    """Write the same columns as Parquet, for `load_dataset("parquet", …)`; without features."""
    pq.write_table(table_of(dataset, resolution, features=False), path, row_group_size=CHUNK)


def table_of(dataset: CandidateDataset, resolution: Any, *, features: bool) -> pa.Table:
    """Return the data set as Hugging Face has it: typed columns, classes named in the schema."""
    columns = {"id": pa.array(dataset.ids, pa.string())}
    for name, values in display_values(dataset).items():
        columns[f"{name}_given" if name in (*OWN_COLUMNS, "labels") else name] = values
    matrices = {"labels": resolved_labels(dataset, resolution)}
    matrices["candidate_labels"] = dataset.candidates
    if dataset.truth is not None:
        matrices["truth"] = dataset.truth
    numbers = range(dataset.n_labels)
    for name, matrix in matrices.items():
        columns[name] = pa.array(sets_of(matrix, numbers), pa.list_(pa.int64()))
    if resolution is not None:
        rows = zip(resolution.confidences, dataset.candidates, strict=True)
        values = [row[offered > 0].tolist() for row, offered in rows]
        columns["confidence"] = pa.array(values, pa.list_(pa.float32()))
    if features:
        columns["features"] = _feature_column(dataset.features)
    described = {name: _described(one.type) for name, one in columns.items()}
    classes = {"names": list(dataset.label_names), "_type": "ClassLabel"}
    described |= {name: {"feature": classes, "_type": "Sequence"} for name in matrices}
    metadata = {METADATA: json.dumps({"info": {"features": described}})}
    return pa.table(columns).replace_schema_metadata(metadata)


def _feature_column(features: Features) -> pa.Array:
    if isinstance(features, np.ndarray):
        offsets = np.arange(len(features) + 1, dtype=np.int32) * features.shape[1]
        return pa.ListArray.from_arrays(pa.array(offsets), pa.array(np.ravel(features)))
    fields = {"indices": pa.list_(pa.int64()), "values": pa.list_(pa.float32()), "size": pa.int64()}
    rows = [record_features(features, i) for i in range(features.shape[0])]
    return pa.array(rows, pa.struct(list(fields.items())))


def _described(kind: pa.DataType) -> Mapping[str, Any]:
    """Return how `datasets` describes a type of Arrow."""
    if pa.types.is_list(kind):
        return {"feature": _described(kind.value_type), "_type": "Sequence"}
    if pa.types.is_struct(kind):
        return {field.name: _described(field.type) for field in kind}
    spelled = {"double": "float64", "float": "float32", "halffloat": "float16"}
    return {"dtype": spelled.get(str(kind), str(kind)), "_type": "Value"}
