"""Studies: what is searched on which data. Their trials are kept by `core.tuning`."""

import json
from pathlib import Path
from typing import Any, TypeAlias

import sqlalchemy as sa
from pydantic import BaseModel, ConfigDict

from core.errors import RunNotFound
from core.store.database import Database
from core.store.files import disk_errors
from core.store.permissions import make_private_folder
from core.store.runs import require_dataset
from core.store.schema import new_id, now, storable, studies


class StudyRow(BaseModel):
    """One study as it was created; its settings are plain values and never change."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    fingerprint: str
    name: str
    created: str
    settings: dict[str, Any]


StudyRows: TypeAlias = list[StudyRow]


class StudyStore:
    """The studies of one workspace."""

    def __init__(self, database: Database, folder: Path) -> None:
        self._database, self._folder = database, folder

    def create(self, fingerprint: str, settings: dict[str, Any], name: str = "") -> StudyRow:
        """Store a study on a data set of this workspace."""
        row = {
            "id": new_id(),
            "fingerprint": fingerprint,
            "name": storable(name),
            "created": now(),
            "settings": json.dumps(settings),
        }
        with self._database.write() as connection:
            require_dataset(connection, fingerprint)
            connection.execute(sa.insert(studies).values(row))
        return self.get(str(row["id"]))

    def get(self, study_id: str) -> StudyRow:
        """Return the study with this id, or the only one whose id begins so."""
        begins = studies.c.id.startswith(study_id.strip().lower() or " ", autoescape=True)
        with self._database.read() as connection:
            found = connection.execute(sa.select(studies).where(begins)).all()
        if len(found) != 1:
            what = "Which study?" if found else "There is no such study."
            raise RunNotFound(what, f"Got {study_id!r}.", "Studies are listed on the Tune page.")
        return _study(found[0])

    def list(self, fingerprint: str | None = None) -> StudyRows:
        """Return the studies, of one data set or of all, the newest first."""
        query = sa.select(studies).order_by(studies.c.created.desc(), studies.c.id.desc())
        if fingerprint is not None:
            query = query.where(studies.c.fingerprint == fingerprint)
        with self._database.read() as connection:
            return [_study(row) for row in connection.execute(query)]

    def folder(self, study_id: str) -> Path:
        """Return the folder of the study's files, made when first asked."""
        folder = self._folder / "studies" / self.get(study_id).id
        with disk_errors(folder):
            make_private_folder(folder)
        return folder


def _study(row: sa.Row[Any]) -> StudyRow:
    values = dict(row._mapping)
    return StudyRow(**{**values, "settings": json.loads(values["settings"])})
