"""On which machine files are: the tables may be shared by several, files are in each one's folder.

A workspace's folder has an identity, `machine.json`, that goes with it wherever it is moved; the
name of the host is for people. Runs name the folder that has their files. A data set may be in
several: what counts is whether it is here, and the name says where it was loaded first. With object
storage (`core.store.stored_files`) others open what was uploaded.
"""

import json
import socket
from pathlib import Path
from typing import Any
from uuid import uuid4

import sqlalchemy as sa
from sqlalchemy import Connection, select

from core.errors import FilesElsewhere
from core.store import files
from core.store.database import Database
from core.store.object_storage import URL_VARIABLE
from core.store.schema import datasets, machines, runs
from core.store.stored_files import StoredFiles


class Machines:
    """The machines that share a database; `here` is the id of this one."""

    def __init__(self, database: Database, folder: Path, stored: StoredFiles) -> None:
        self._database, self._folder, self.stored = database, folder, stored
        self.here = _identity(folder / "machine.json")
        self._names = self._register(socket.gethostname())

    def name(self, machine: str | None) -> str:
        """Return what people call a machine."""
        if machine is not None and machine not in self._names:
            with self._database.read() as connection:
                self._names = _names(connection)
        return self._names.get(machine or "", "another machine")

    def elsewhere(self, what: str, machine: str | None, owner: str = "") -> FilesElsewhere:
        """Return the error that says where the files of something are."""
        name = self.name(machine)
        hint = f"Open it on {name}, or load the data here and train again."
        if self.stored.storage is not None:
            hint = f"They can be opened here once {name} has uploaded them. {hint}"
        elif owner and self.stored.is_stored(owner):
            hint = f"They are in object storage too: set {URL_VARIABLE} here as on {name}. {hint}"
        return FilesElsewhere(f"The files are on {name}.", what, hint)

    def has_data(self, fingerprint: str) -> bool:
        """Whether the files of a data set are in this folder, or can be fetched."""
        owner = f"datasets/{fingerprint}"
        return (self._folder / owner).is_dir() or self.stored.can_fetch(owner)

    def _register(self, name: str) -> dict[str, str]:
        with self._database.read() as connection:
            known = _names(connection)
        if known.get(self.here) != name:
            with self._database.write() as connection:
                row = {"id": self.here, "name": name}
                if self._database.insert_new(connection, machines, [row]):
                    self._adopt(connection)
                mine = machines.c.id == self.here
                connection.execute(sa.update(machines).where(mine).values(name=name))
        return {**known, self.here: name}

    def _adopt(self, connection: Connection) -> None:
        """Take rows that name no machine, from before there were any, if their files are here.

        A database in this folder belongs to this folder, wherever it was copied from.
        """
        path = self._database.path
        is_ours = path is not None and path.parent == self._folder
        for table, key, has_files in (
            (runs, runs.c.id, self._has_run),
            (datasets, datasets.c.fingerprint, self._has_folder),
        ):
            change = sa.update(table).values(machine=self.here)
            if is_ours:
                connection.execute(change)
                continue
            for row in connection.execute(select(table).where(table.c.machine.is_(None))).all():
                if has_files(row):
                    connection.execute(change.where(key == row._mapping[key]))

    def _has_folder(self, row: sa.Row[Any]) -> bool:
        return (self._folder / "datasets" / str(row.fingerprint)).is_dir()

    def _has_run(self, row: sa.Row[Any]) -> bool:
        waits = row.state == "queued" and self._has_folder(row)  # has no folder of its own yet
        return waits or (self._folder / "runs" / row.id).is_dir()


def _names(connection: Connection) -> dict[str, str]:
    return {row.id: row.name for row in connection.execute(select(machines))}


def _identity(path: Path) -> str:
    """Return the id of a workspace's folder, made once by whoever opens it first."""
    if not path.exists():
        files.write_once(path, json.dumps({"id": uuid4().hex}).encode())
    return str(files.read_json(path)["id"])
