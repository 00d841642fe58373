"""The folder of one data set: written whole or not at all, checked when read."""

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import numpy as np
import scipy.sparse as sp

from core.data.dataset import CandidateDataset, Features
from core.data.votes import Votes
from core.errors import DatasetError, DatasetMismatch
from core.failpoints import failpoint
from core.paths import sync_folder
from core.store import files
from core.store.originals import read_original, remove_others, write_original
from core.store.permissions import make_private_folder

if TYPE_CHECKING:
    import pandas as pd


def write_dataset(folder: Path, dataset: CandidateDataset) -> None:
    """Write a data set's folder under a temporary name, then rename it."""
    temporary = _temporary(folder)
    try:
        with files.disk_errors(folder):
            make_private_folder(temporary)
        _write_features(temporary, dataset.features)
        files.write_array(temporary / "candidates.npy", dataset.candidates)
        if dataset.votes is not None:
            files.write_arrays(temporary / "votes.npz", **dataset.votes.arrays())
        write_extras(temporary, dataset)
        failpoint("dataset.before_rename")
        _put_in_place(temporary, folder)
        failpoint("dataset.in_place")
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _put_in_place(temporary: Path, folder: Path) -> None:
    with files.disk_errors(folder):
        try:
            os.rename(temporary, folder)
        except OSError:
            if not folder.is_dir():  # else another process was faster with the same data
                raise
        sync_folder(folder.parent)


def remove_dataset(folder: Path) -> None:
    """Take a damaged folder away in one step, then delete it."""
    doomed = _temporary(folder)
    with files.disk_errors(folder):
        if folder.exists():
            os.rename(folder, doomed)
            failpoint("dataset.taken_away")
            shutil.rmtree(doomed)


def _temporary(folder: Path) -> Path:
    return folder.with_name(f".{folder.name[:12]}.{uuid4().hex[:8]}.tmp")


def _write_features(folder: Path, features: Features) -> None:
    if sp.issparse(features):
        parts = {name: getattr(features, name) for name in ("data", "indices", "indptr")}
        files.write_arrays(folder / "features.npz", **parts)
    else:
        files.write_array(folder / "features.npy", features)


def write_extras(folder: Path, dataset: CandidateDataset) -> None:
    """Write what the fingerprint does not cover, as far as it is given, and `meta.json`."""
    if dataset.truth is not None:
        files.write_array(folder / "truth.npy", dataset.truth)
    if dataset.display is not None:
        _write_display(folder / "display.parquet", dataset.display)
    meta_path = folder / "meta.json"
    original = files.read_json(meta_path).get("original") if meta_path.exists() else None
    if dataset.original is not None:
        original = write_original(folder, dataset.original)
    meta = {
        "fingerprint": dataset.fingerprint,
        "shape": [dataset.n_instances, dataset.n_features, dataset.n_labels],
        "ids": list(dataset.ids),
        "label_names": dataset.label_names,
        "feature_names": dataset.feature_names,
        "original": original,
    }
    files.write_json(meta_path, meta)
    remove_others(folder, original)


def _write_display(path: Path, display: "pd.DataFrame") -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pa.Table.from_pandas(display, preserve_index=False)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
        # Columns of mixed types have no Parquet type; a person reads them as text all the same.
        mixed = [name for name in display if display[name].dtype == object]
        table = pa.Table.from_pandas(
            display.astype(dict.fromkeys(mixed, str)), preserve_index=False
        )
    with files.replacing(path) as file:
        pq.write_table(table, file)


def _read_display(path: Path) -> "pd.DataFrame":
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return pq.read_table(path).to_pandas()
    except (pa.ArrowException, OSError) as error:
        raise files.damaged(path, str(error)) from error


def read_dataset(folder: Path, fingerprint: str, verify: bool) -> CandidateDataset:
    """Read a data set; with `verify`, refuse one whose bytes have another fingerprint."""
    try:
        dataset = _parse_folder(folder)
    except (DatasetError, KeyError, TypeError, ValueError) as error:
        raise files.damaged(folder, str(error)) from error
    if verify and dataset.fingerprint != fingerprint:
        hint = "Load the data again to repair it."
        raise DatasetMismatch("The stored data was changed.", f"In {folder}.", hint)
    dataset.__dict__["fingerprint"] = fingerprint  # spares hashing what was hashed when stored
    return dataset


def _parse_folder(folder: Path) -> CandidateDataset:
    meta = files.read_json(folder / "meta.json")
    n, d, n_labels = meta["shape"]
    truth, display = folder / "truth.npy", folder / "display.parquet"
    votes = folder / "votes.npz"
    return CandidateDataset(
        _read_features(folder, (n, d)),
        _checked(folder / "candidates.npy", (n, n_labels), np.uint8),
        label_names=meta["label_names"],
        ids=meta["ids"],
        feature_names=meta["feature_names"],
        truth=_checked(truth, (n, n_labels), np.uint8) if truth.exists() else None,
        display=_read_display(display) if display.exists() else None,
        votes=Votes.from_arrays(files.read_arrays(votes), (n, n_labels))
        if votes.exists()
        else None,
        original=read_original(folder, meta.get("original")),
    )


def _read_features(folder: Path, shape: tuple[int, int]) -> Features:
    if not (folder / "features.npz").exists():
        return _checked(folder / "features.npy", shape, np.float32, mmap=True)
    parts = files.read_arrays(folder / "features.npz")
    return sp.csr_array((parts["data"], parts["indices"], parts["indptr"]), shape=shape)


def _checked(path: Path, shape: tuple[int, int], dtype: Any, *, mmap: bool = False) -> files.Array:
    array = files.read_array(path, mmap=mmap)
    if array.shape != shape or array.dtype != dtype:
        expected = f"{np.dtype(dtype)} of shape {shape}"
        raise files.damaged(path, f"expected {expected}, found {array.dtype} of {array.shape}")
    return array
