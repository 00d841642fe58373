"""A workspace: one folder with a database, data sets and the files of runs.

    plain.db                      unless PLAIN_DATABASE_URL names a PostgreSQL
    machine.json                  which folder this is, where several share a PostgreSQL
    settings.json                 how many runs may be at work at once
    presets.json                  settings saved under names
    opened.json                   data set and run each person had open last
    datasets/<fingerprint>/       features.npy or .npz (CSR), candidates.npy, meta.json, votes.npz,
                                  truth.npy and display.parquet where there are such; the file it
                                  came from (original-*.zst), if its columns go into exports
    runs/<run id>/                what a run leaves behind
    cache/                        copies of both that other machines made (`stored_files.py`)
    studies.db, studies/<id>/     trials of studies, and what they leave behind
    backups/plain-<time>.db
    exports/<random>.json         where an export is being written: the next start looks there

A data set's folder is written under a temporary name and renamed, so it is whole or absent. Its
fingerprint covers features, candidates, ids, label names and votes; truth, display columns and
feature names may be added later. A `Workspace` may be used from many threads; a process opens its
own.
"""

import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from uuid import uuid4
from weakref import WeakValueDictionary

import numpy as np
import scipy.sparse as sp
import sqlalchemy as sa
from pydantic import BaseModel, ConfigDict

from core.data.dataset import CandidateDataset
from core.engine.config import PRESETS, PlainConfig
from core.errors import PlainError, StoreError, StoreUnavailable
from core.formats.shared.mapping import ColumnMapping
from core.formats.shared.placing import recover
from core.paths import full_path
from core.store import files
from core.store.backup import copy_database
from core.store.database import Database
from core.store.dataset_files import read_dataset, remove_dataset, write_dataset, write_extras
from core.store.decisions import DecisionStore
from core.store.full_restore import refuse_half_restored
from core.store.labels import LabelStore
from core.store.lanes import LaneStore
from core.store.machines import Machines
from core.store.object_storage import ObjectStorage
from core.store.permissions import make_private_folder, restrict_permissions
from core.store.runs import RunStore, require_dataset
from core.store.schema import datasets, now, storable
from core.store.stored_files import StoredFiles
from core.store.studies import StudyStore

DEFAULT_MAX_RUNNING = 1


class DatasetRow(BaseModel):
    """What the workspace knows of a data set without opening it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    fingerprint: str
    name: str
    created: str
    n_instances: int
    n_features: int
    n_labels: int
    n_candidates: int
    is_sparse: bool
    has_truth: bool
    machine: str | None


class Workspace:
    """Open a workspace, making it when it is not there.

    Raises
    ------
    StoreError
        The folder cannot be written, or its database cannot be used.
    """

    def __init__(self, folder: Path | str) -> None:
        self.folder = full_path(folder)
        refuse_half_restored(self.folder)
        with files.disk_errors(self.folder):
            make_private_folder(self.folder)
            restrict_permissions(self.folder)
            tempfile.TemporaryFile(dir=self.folder).close()
        for name in ("datasets", "backups", "exports", "cache/datasets", "cache/runs"):
            files.remove_leftovers(self.folder / name, older_than=24 * 3600)
        self._recover_exports()
        self._saving_preset = threading.Lock()
        self._loaded = WeakValueDictionary[tuple[str, int], CandidateDataset]()
        self.database = Database.for_folder(self.folder, before_migration=self._keep_a_copy)
        self.stored = StoredFiles(self.database, self.folder, ObjectStorage.from_environment())
        self.machines = Machines(self.database, self.folder, self.stored)
        self.runs = RunStore(self.database, self.folder, self.machines)
        self.decisions = DecisionStore(self.database)
        self.studies = StudyStore(self.database, self.folder)
        self.lanes = LaneStore(self.database)
        self.labels = LabelStore(self.database)

    @property
    def max_running(self) -> int:
        """How many runs may be at work at once. Settable; read anew each time."""
        path = self.folder / "settings.json"
        stored = files.read_json(path) if path.exists() else {}
        return int(stored.get("max_running", DEFAULT_MAX_RUNNING))

    @max_running.setter
    def max_running(self, number: int) -> None:
        if number < 1:
            raise StoreError("At least one run must be allowed.", f"Got {number}.")
        files.write_json(self.folder / "settings.json", {"max_running": number})

    def presets(self) -> dict[str, dict[str, Any]]:
        """Return the presets saved here, each as the settings that make it up."""
        path = self.folder / "presets.json"
        return dict(files.read_json(path)) if path.exists() else {}

    def save_preset(self, name: str, config: PlainConfig) -> None:
        """Save settings under a name; the same name again replaces them."""
        name = storable(name).strip()[:80]
        if not name or name in PRESETS:
            raise StoreError("This name cannot be used.", f"Got {name!r}.", "Choose another.")
        with self._saving_preset:  # two people may save at once
            saved = self.presets() | {name: config.model_dump(mode="json")}
            files.write_json(self.folder / "presets.json", saved)

    def preset(self, name: str) -> PlainConfig:
        """Return a preset of ours, or one saved here."""
        saved = self.presets()
        return PlainConfig(**saved[name]) if name in saved else PlainConfig.preset(name)

    def add_dataset(
        self, dataset: CandidateDataset, name: str, mapping: ColumnMapping | None = None
    ) -> str:
        """Store a data set and return its fingerprint; the second time only what is new of it.

        `mapping` is kept so that exports have the columns and order of the file it came from; of a
        table also the file itself, whose cells they copy.
        """
        if mapping is None and dataset.original is not None and dataset.original.columns:
            mapping = dataset.original.mapping
        fingerprint = dataset.fingerprint
        folder = self.folder / "datasets" / fingerprint
        with suppress(StoreError):  # where the storage does not answer, it is written anew here
            folder = self._dataset_folder(fingerprint, fetch=True)
        if _is_whole(folder, fingerprint):
            write_extras(folder, dataset)
        else:
            remove_dataset(folder)
            write_dataset(folder, dataset)
        if mapping is not None:
            files.write_json(folder / "mapping.json", mapping.model_dump(mode="json"))
        row = {**_dataset_row(dataset, name), "machine": self.machines.here}
        with self.database.write() as connection:
            self.database.insert_new(connection, datasets, [row])
            if dataset.truth is not None:
                _update(connection, fingerprint, has_truth=True)
        self.share(f"datasets/{fingerprint}")
        return fingerprint

    def share(self, *owners: str) -> None:
        """Upload what is new of data sets and runs, if there is object storage.

        What cannot be uploaded now is left to `share_all`, which servers call again and again.
        """
        try:
            for owner in owners:
                self.stored.upload(owner)
        except StoreUnavailable as error:
            print(f"{error}\nThe files of {owner} are uploaded later.", file=sys.stderr)

    def share_all(self, *, verify: bool = True) -> int:
        """Upload all that is here and not in object storage; return how many files were.

        With `verify` also what was uploaded once and is there no more.

        Raises
        ------
        StoreUnavailable
            The storage cannot be used.
        """
        owners = [f"datasets/{row.fingerprint}" for row in self.datasets()]
        owners += [f"runs/{run.id}" for run in self.runs.list() if run.state.is_ended]
        owners += [f"pictures/{one.name}" for one in self.folder.glob("pictures/??")]
        owners.append("selections")
        return sum(self.stored.upload(one, verify=verify) for one in owners)

    def load_dataset(self, fingerprint: str, *, verify: bool = False) -> CandidateDataset:
        """Read a data set; dense features stay on the disk and are mapped into memory.

        Shapes and types are always checked, every byte when `verify` is set. While somebody has
        it, others get the same one, unless `verify` is set or its files have changed.
        """
        with self.database.read() as connection:
            require_dataset(connection, fingerprint, self.machines)
        if (lost := self.lost_data(fingerprint)) is not None:
            raise lost
        folder = self._dataset_folder(fingerprint, fetch=True)
        key = (fingerprint, folder.stat().st_mtime_ns)  # of the last file put there
        found = None if verify else self._loaded.get(key)
        if found is None:
            found = self._loaded[key] = read_dataset(folder, fingerprint, verify)
        return found

    def lost_data(self, fingerprint: str) -> StoreError | None:
        """Return the error that says where a data set's files are; none where they are here."""
        folder, owner = self._dataset_folder(fingerprint), f"datasets/{fingerprint}"
        if (folder / "meta.json").exists():
            return None
        if self.stored.can_fetch(owner):
            return self.stored.failure(owner)
        row = self.dataset(fingerprint)
        name = row.name if row else ""
        if row and row.machine != self.machines.here:
            return self.machines.elsewhere(f"Data {name}", row.machine, owner)
        hint = f"Load {name} again, unchanged: its runs and decisions are found again."
        return StoreError("The files of this data are gone.", f"{name}: {folder}", hint)

    def mapping(self, fingerprint: str) -> ColumnMapping | None:
        """Return how the columns of the data set's file were understood, if it had columns."""
        path = self._dataset_folder(fingerprint, fetch=True) / "mapping.json"
        return ColumnMapping(**files.read_json(path)) if path.exists() else None

    @contextmanager
    def exporting(self, path: Path) -> Iterator[None]:
        """Remember where a file is written: the next start clears up there if this process dies."""
        note = self.folder / "exports" / f"{uuid4().hex}.json"
        with files.disk_errors(note):
            make_private_folder(note.parent)
        files.write_json(note, str(path.absolute().parent))
        try:
            yield
        finally:
            note.unlink(missing_ok=True)

    def datasets(self) -> list[DatasetRow]:
        """Return the data sets, the newest first."""
        return self._datasets(sa.select(datasets).order_by(datasets.c.created.desc()))

    def dataset(self, fingerprint: str) -> DatasetRow | None:
        """Return what is known of a data set; none where it is not in the workspace."""
        found = self._datasets(sa.select(datasets).where(datasets.c.fingerprint == fingerprint))
        return found[0] if found else None

    def _datasets(self, query: sa.Select[Any]) -> list[DatasetRow]:
        with self.database.read() as connection:
            return [DatasetRow(**row._mapping) for row in connection.execute(query)]

    def close(self) -> None:
        """Let go of the database."""
        self.database.close()

    def _keep_a_copy(self, database: Database) -> None:
        if database.is_sqlite:
            copy_database(database, self.folder / "backups")

    def _recover_exports(self) -> None:
        for note in (self.folder / "exports").glob("*.json"):
            with suppress(PlainError, OSError):
                if recover(Path(files.read_json(note))):
                    note.unlink(missing_ok=True)

    def _dataset_folder(self, fingerprint: str, *, fetch: bool = False) -> Path:
        """Return where a data set is or is to be: the copy of another machine's, if that is all."""
        own, owner = self.folder / "datasets" / fingerprint, f"datasets/{fingerprint}"
        if own.is_dir() or not self.stored.can_fetch(owner):
            return own
        return self.stored.fetch(owner) if fetch else self.stored.local(owner)


def _is_whole(folder: Path, fingerprint: str) -> bool:
    try:
        read_dataset(folder, fingerprint, verify=True)
    except PlainError:
        return False
    return True


def _update(connection: sa.Connection, fingerprint: str, **values: Any) -> None:
    where = datasets.c.fingerprint == fingerprint
    connection.execute(sa.update(datasets).where(where).values(**values))


def _dataset_row(dataset: CandidateDataset, name: str) -> dict[str, Any]:
    return {
        "fingerprint": dataset.fingerprint,
        "name": storable(name),
        "created": now(),
        "n_instances": dataset.n_instances,
        "n_features": dataset.n_features,
        "n_labels": dataset.n_labels,
        "n_candidates": int(dataset.candidates.sum(dtype=np.int64)),
        "is_sparse": bool(sp.issparse(dataset.features)),
        "has_truth": dataset.truth is not None,
    }
