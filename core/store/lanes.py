"""Lanes: who is asked about which instance, so that no two people are given the same one.

An instance is leased to an annotator for a while, and kept for a day after it was answered. Leases
run out by themselves, so a closed browser blocks nobody for long. With overlap, a share of the
instances (the same ones, always) may be given to one other person too, to measure agreement.
"""

import hashlib
import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection, select

from core.store.database import Database
from core.store.runs import require_dataset
from core.store.schema import leases, storable

LEASE_SECONDS = 300.0
ANSWERED_SECONDS = 24 * 3600.0
_CHUNK = 500  # SQLite takes a limited number of values in one statement


class LaneStore:
    """The lanes of one workspace. May be used from many threads and processes."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def claim(
        self,
        fingerprint: str,
        annotator: str,
        instance_ids: Sequence[str],
        count: int,
        *,
        overlap: float = 0.0,
        seconds: float = LEASE_SECONDS,
    ) -> list[str]:
        """Lease the first `count` of these instances that nobody else has; return them in order.

        Those this annotator has already are renewed and count. `overlap` is the share of instances
        that two people may have. Instances whose names no database takes are given to nobody.
        """
        now = time.time()
        free: list[str] = []
        instance_ids = [one for one in instance_ids if storable(one) == one]
        if not instance_ids:
            return free
        with self._database.write(durable=False) as connection:
            require_dataset(connection, fingerprint)
            for at in range(0, len(instance_ids), _CHUNK):
                chunk = instance_ids[at : at + _CHUNK]
                others = _others(connection, fingerprint, annotator, chunk, now)
                allowed = (one for one in chunk if others[one] <= _is_shared(one, overlap))
                free += [one for one, _ in zip(allowed, range(count - len(free)), strict=False)]
                if len(free) >= count:
                    break
            until = now + seconds
            _put(self._database, connection, (fingerprint, annotator), free, until, answered=False)
        return free

    def release(
        self, fingerprint: str, annotator: str, instance_ids: Sequence[str] | None = None
    ) -> None:
        """Give these instances, or all, back as far as they were not answered."""
        mine = (leases.c.fingerprint == fingerprint) & (leases.c.annotator == annotator)
        gone = sa.delete(leases).where(mine, ~leases.c.answered)
        if instance_ids is not None and not instance_ids:
            return
        with self._database.write(durable=False) as connection:
            if instance_ids is None:
                connection.execute(gone)
            for chunk in _chunks(instance_ids or ()):
                connection.execute(gone.where(leases.c.instance_id.in_(chunk)))

    def count(self, fingerprint: str) -> int:
        """Return how many instances are leased and not answered."""
        query = select(sa.func.count()).where(leases.c.fingerprint == fingerprint)
        with self._database.read() as connection:
            return connection.scalar(query.where(~leases.c.answered)) or 0

    def second_opinions(self, fingerprint: str, annotator: str, overlap: float) -> list[str]:
        """Return instances to be shared that exactly one other person has answered."""
        theirs = sa.case((leases.c.answered & (leases.c.annotator != annotator), 1), else_=0)
        query = (
            select(leases.c.instance_id)
            .where(leases.c.fingerprint == fingerprint)
            .group_by(leases.c.instance_id)
            .having(sa.func.count() == 1, sa.func.sum(theirs) == 1)
        )
        with self._database.read() as connection:
            found = connection.scalars(query).all()
        return sorted(one for one in found if _is_shared(one, overlap))


def keep_answered(
    database: Database, connection: Connection, answers: Iterable[dict[str, Any]]
) -> None:
    """Keep the instances of these rows of decisions from others than who answered them."""
    until = time.time() + ANSWERED_SECONDS
    by_lane: dict[tuple[str, str], dict[str, None]] = defaultdict(dict)
    for one in answers:
        by_lane[one["fingerprint"], one["annotator"]][one["instance_id"]] = None
    for lane, instance_ids in by_lane.items():
        _put(database, connection, lane, instance_ids, until, answered=True)


def _put(
    database: Database,
    connection: Connection,
    lane: tuple[str, str],
    instance_ids: Iterable[str],
    until: float,
    *,
    answered: bool,
) -> None:
    """Lease instances to an annotator, or for longer; `lane` is the data and the annotator."""
    key = dict(zip(("fingerprint", "annotator"), lane, strict=True))
    mine = (leases.c.fingerprint == lane[0]) & (leases.c.annotator == lane[1])
    for chunk in _chunks(instance_ids):
        change = sa.update(leases).where(mine, leases.c.instance_id.in_(chunk))
        longer = sa.case((leases.c.until > until, leases.c.until), else_=until)
        sure = sa.or_(leases.c.answered, sa.literal(answered))
        connection.execute(change.values(until=longer, answered=sure))
        new = {"until": until, "answered": answered}
        database.insert_new(
            connection, leases, [{**key, "instance_id": one, **new} for one in chunk]
        )


def _others(
    connection: Connection, fingerprint: str, annotator: str, chunk: Sequence[str], now: float
) -> dict[str, int]:
    """Return by how many other people each instance is held; expired leases are removed."""
    here = (leases.c.fingerprint == fingerprint) & leases.c.instance_id.in_(chunk)
    connection.execute(sa.delete(leases).where(here, leases.c.until <= now))
    held: dict[str, int] = defaultdict(int)
    for row in connection.execute(select(leases.c.instance_id, leases.c.annotator).where(here)):
        held[row.instance_id] += row.annotator != annotator
    return held


def _is_shared(instance_id: str, overlap: float) -> bool:
    """Tell whether two people may have this instance; the same for everyone, always."""
    digest = hashlib.blake2b(instance_id.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big") / 2**64 < overlap


def _chunks(values: Iterable[Any]) -> Iterable[list[Any]]:
    whole = list(values)
    return (whole[at : at + _CHUNK] for at in range(0, len(whole), _CHUNK))
