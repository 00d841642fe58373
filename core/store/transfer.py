"""All rows of one database into another, empty one: between SQLite and PostgreSQL, either way."""

import sqlalchemy as sa

from core.failpoints import failpoint
from core.store import schema
from core.store.database import Database

_BATCH = 5000
_TABLES = [one for one in schema.metadata.sorted_tables if one is not schema.schema_version]


def copy_tables(source: Database, target: Database) -> None:
    """Copy one consistent moment of the source, in one transaction of the target."""
    with source.read() as reader, target.write() as writer:
        for table in _TABLES:
            rows = reader.execution_options(yield_per=_BATCH).execute(sa.select(table))
            for part in rows.partitions():
                target.insert_new(writer, table, [dict(row._mapping) for row in part])
                failpoint("transfer.rows_written")
            if not target.is_sqlite and "id" in table.c and isinstance(table.c.id.type, sa.Integer):
                _advance_sequence(writer, table)


def count_rows(database: Database) -> dict[str, int]:
    """Return how many rows each table has; machines that only looked in do not count."""
    with database.read() as connection:
        return {
            table.name: connection.scalar(sa.select(sa.func.count()).select_from(table)) or 0
            for table in _TABLES
            if table is not schema.machines
        }


def _advance_sequence(connection: sa.Connection, table: sa.Table) -> None:
    """Have PostgreSQL number new rows after those that came with numbers of their own."""
    sequence = sa.func.pg_get_serial_sequence(table.name, "id")
    if last := connection.scalar(sa.select(sa.func.max(table.c.id))):
        connection.execute(sa.select(sa.func.setval(sequence, last)))
