"""Whether a database is sound inside."""

import sqlalchemy as sa

from core.errors import StoreError
from core.store import schema
from core.store.database import Database


def integrity(database: Database) -> list[str]:
    """Return what is wrong inside the database; an empty list when it is sound."""
    try:
        with database.read() as connection:
            if not database.is_sqlite:
                there = sa.inspect(connection).get_table_names()
                missing = set(schema.metadata.tables) - set(there)
                return [f"table {name} is missing" for name in sorted(missing)]
            found = [str(row[0]) for row in connection.exec_driver_sql("PRAGMA integrity_check")]
            orphans = connection.exec_driver_sql("PRAGMA foreign_key_check").all()
    except StoreError as error:
        return [str(error)]
    lost = [f"{row[0]}: row {row[1]} refers to no {row[2]}" for row in orphans]
    return [line for line in found if line != "ok"] + lost
