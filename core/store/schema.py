"""The tables, their version, and how a database of an older version becomes one of today's.

A new database gets today's tables at once; an older one is brought up by `MIGRATIONS`, in order.
Whoever changes a table, a field of `PlainConfig` or an event in a way that stored rows no longer
fit appends a function there, and keeps a database of the old version among the tests.
"""

from collections.abc import Callable
from datetime import UTC, datetime
from secrets import choice
from time import time_ns

import sqlalchemy as sa
from sqlalchemy import CheckConstraint, Column, Connection, ForeignKey, Index, Table

from core.errors import StoreError
from core.failpoints import failpoint

metadata = sa.MetaData()

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"  # Crockford's base 32: sorts, has no look-alikes

Id = sa.BigInteger().with_variant(sa.Integer(), "sqlite")

schema_version = Table(
    "schema_version",
    metadata,
    Column("version", sa.Integer, primary_key=True, autoincrement=False),
    Column("applied", sa.Text, nullable=False),
)

machines = Table(
    "machines",
    metadata,
    Column("id", sa.Text, primary_key=True),
    Column("name", sa.Text, nullable=False),
)

datasets = Table(
    "datasets",
    metadata,
    Column("fingerprint", sa.Text, primary_key=True),
    Column("name", sa.Text, nullable=False),
    Column("created", sa.Text, nullable=False),
    Column("n_instances", sa.Integer, nullable=False),
    Column("n_features", sa.Integer, nullable=False),
    Column("n_labels", sa.Integer, nullable=False),
    Column("n_candidates", sa.BigInteger, nullable=False),
    Column("is_sparse", sa.Boolean, nullable=False),
    Column("has_truth", sa.Boolean, nullable=False),
    Column("machine", sa.Text),  # no foreign key: unknown for rows of earlier versions
)

runs = Table(
    "runs",
    metadata,
    Column("id", sa.Text, primary_key=True),
    Column("fingerprint", ForeignKey(datasets.c.fingerprint), nullable=False),
    Column("name", sa.Text, nullable=False),
    Column("note", sa.Text, nullable=False),
    Column("state", sa.Text, nullable=False, index=True),
    Column("command", sa.Text),
    Column("config", sa.Text, nullable=False),
    Column("created", sa.Text, nullable=False),
    Column("started", sa.Text),
    Column("ended", sa.Text),
    Column("epoch", sa.Integer, nullable=False),
    Column("error", sa.Text),
    Column("pid", sa.Integer),
    Column("pid_started", sa.Double),
    Column("heartbeat", sa.Double),
    Column("deleted", sa.Text),
    Column("machine", sa.Text),
    Column("claim", sa.Integer, nullable=False, server_default=sa.text("0")),
    CheckConstraint(
        "state IN ('queued', 'running', 'paused', 'finished', 'stopped', 'failed')",
        name="runs_state",
    ),
    CheckConstraint("command IN ('pause', 'resume', 'stop')", name="runs_command"),
)

events = Table(
    "events",
    metadata,
    Column("run_id", ForeignKey(runs.c.id, ondelete="CASCADE"), primary_key=True),
    Column("seq", sa.Integer, primary_key=True, autoincrement=False),
    Column("time", sa.Text, nullable=False),
    Column("kind", sa.Text, nullable=False),
    Column("data", sa.Text, nullable=False),
    CheckConstraint("seq >= 0", name="events_seq"),
)

decisions = Table(
    "decisions",
    metadata,
    Column("id", Id, primary_key=True),
    Column("uid", sa.Text, nullable=False, unique=True),
    Column("fingerprint", ForeignKey(datasets.c.fingerprint), nullable=False),
    Column("instance_id", sa.Text, nullable=False),
    Column("label", sa.Text, nullable=False),
    Column("verdict", sa.Text, nullable=False),
    Column("annotator", sa.Text, nullable=False),
    Column("time", sa.Text, nullable=False),
    Column("run_id", sa.Text),  # no foreign key: a decision outlives the run it was made on
    Column("confidence", sa.Double),
    Column("shown", sa.Boolean, nullable=False),
    Column("seconds", sa.Double),
    Column("sampled", sa.Boolean, nullable=False, server_default=sa.false()),
    Column("adjudicates", sa.Boolean, nullable=False, server_default=sa.false()),
    Column("batch", sa.Text),
    Column("received", sa.Text),
    CheckConstraint("verdict IN ('keep', 'reject', 'unsure', 'undo')", name="decisions_verdict"),
    Index("decisions_cell", "fingerprint", "instance_id", "label"),
    sqlite_autoincrement=True,
)

leases = Table(
    "leases",
    metadata,
    Column("fingerprint", ForeignKey(datasets.c.fingerprint), primary_key=True),
    Column("instance_id", sa.Text, primary_key=True),
    Column("annotator", sa.Text, primary_key=True),
    Column("until", sa.Double, nullable=False),
    Column("answered", sa.Boolean, nullable=False),
)

label_changes = Table(
    "label_changes",
    metadata,
    Column("id", Id, primary_key=True),
    Column("uid", sa.Text, nullable=False, unique=True),
    Column("fingerprint", ForeignKey(datasets.c.fingerprint), nullable=False),
    Column("kind", sa.Text, nullable=False),
    Column("label", sa.Text, nullable=False),
    Column("name", sa.Text, nullable=False),
    Column("annotator", sa.Text, nullable=False),
    Column("time", sa.Text, nullable=False),
    CheckConstraint("kind IN ('rename', 'merge', 'undo')", name="label_changes_kind"),
    sqlite_autoincrement=True,
)

studies = Table(
    "studies",
    metadata,
    Column("id", sa.Text, primary_key=True),
    Column("fingerprint", ForeignKey(datasets.c.fingerprint), nullable=False),
    Column("name", sa.Text, nullable=False),
    Column("created", sa.Text, nullable=False),
    Column("settings", sa.Text, nullable=False),
)

stored_files = Table(
    "stored_files",  # in object storage; an owner is a folder, such as runs/<id>
    metadata,
    Column("owner", sa.Text, primary_key=True),
    Column("path", sa.Text, primary_key=True),
    Column("size", sa.BigInteger, nullable=False),
    Column("sha256", sa.Text, nullable=False),
)

Migration = Callable[[Connection], None]


def _review_by_several(connection: Connection) -> None:
    """Version 2: sampled, adjudicating and grouped decisions, lanes, renamed and merged labels."""
    columns = (
        "sampled BOOLEAN NOT NULL DEFAULT false",
        "adjudicates BOOLEAN NOT NULL DEFAULT false",
    )
    for column in (*columns, "batch TEXT"):
        connection.execute(sa.text(f"ALTER TABLE decisions ADD COLUMN {column}"))
    metadata.create_all(connection, tables=[leases, label_changes])


def _several_machines(connection: Connection) -> None:
    """Version 3: where the files of runs and data are, and how often a run was claimed."""
    columns = (
        "datasets ADD COLUMN machine TEXT",
        "runs ADD COLUMN machine TEXT",
        "runs ADD COLUMN claim INTEGER NOT NULL DEFAULT 0",
    )
    for column in columns:
        connection.execute(sa.text(f"ALTER TABLE {column}"))
    metadata.create_all(connection, tables=[machines])


def _late_answers(connection: Connection) -> None:
    """Version 4: when a decision was received, beside when it was made."""
    connection.execute(sa.text("ALTER TABLE decisions ADD COLUMN received TEXT"))


def _object_storage(connection: Connection) -> None:
    """Version 5: which files of runs and data are in object storage."""
    metadata.create_all(connection, tables=[stored_files])


MIGRATIONS: list[Migration] = [
    _review_by_several,
    _several_machines,
    _late_answers,
    _object_storage,
]
"""`MIGRATIONS[i]` takes a database of version i + 1 to version i + 2."""


def latest_version() -> int:
    """Return the version of a database made today."""
    return len(MIGRATIONS) + 1


def stored_version(connection: Connection) -> int:
    """Return the version of this database, 0 when it is empty; refuse what is not ours or newer."""
    found = set(sa.inspect(connection).get_table_names())
    if schema_version.name not in found:
        if strange := found & set(metadata.tables):
            raise _not_ours(f"It has a table {min(strange)!r}, but no version.")
        return 0
    version = connection.scalar(sa.select(sa.func.max(schema_version.c.version)))
    check_version(version)
    return int(version)


def check_version(version: object) -> None:
    """Refuse a version that this program does not know."""
    if not isinstance(version, int) or version < 1:
        raise _not_ours(f"Its version is {version!r}.")
    if version > latest_version():
        raise StoreError(
            "This workspace was made by a newer version of PLAIN Studio.",
            f"Its database has version {version}; this program knows up to {latest_version()}.",
            "Update PLAIN Studio, or choose another workspace. Nothing was changed.",
        )


def migrate(connection: Connection, version: int) -> None:
    """Bring a database of `version` up to date, in the caller's transaction."""
    if version == 0:
        metadata.create_all(connection)
    else:
        for migration in MIGRATIONS[version - 1 :]:
            migration(connection)
            failpoint("migration.step_done")
    stamp = {"version": latest_version(), "applied": now()}
    connection.execute(sa.insert(schema_version).values(stamp))


def now() -> str:
    """Return the time as text that sorts: UTC, ISO 8601, microseconds."""
    return stamp(datetime.now(UTC))


def stamp(moment: datetime) -> str:
    """Return a moment in UTC as text that sorts."""
    return moment.isoformat(timespec="microseconds")


def storable(text: str) -> str:
    """Return free text as every database takes it: without NUL and half surrogate pairs."""
    return text.replace("\0", "\ufffd").encode("utf-8", "replace").decode()


def new_id() -> str:
    """Nine characters of time in milliseconds, four random ones: sorts by age, fits any path."""
    stamp = time_ns() // 1_000_000
    digits = "".join(_ALPHABET[stamp >> shift & 31] for shift in range(40, -1, -5))
    return digits + "".join(choice(_ALPHABET) for _ in range(4))


def _not_ours(detail: str) -> StoreError:
    hint = "Choose another workspace or database. Nothing was changed."
    return StoreError("This database was not made by PLAIN Studio.", detail, hint)
