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
from core.store.schema import leases

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
        that two people may have.
        """
        now = time.time()
        free: list[str] = []
        with self._database.write() as connection:
            require_dataset(connection, fingerprint)
            for at in range(0, len(instance_ids), _CHUNK):
                chunk = instance_ids[at : at + _CHUNK]
                others = _others(connection, fingerprint, annotator, chunk, now)
                allowed = (one for one in chunk if others[one] <= _is_shared(one, overlap))
                free += [one for one, _ in zip(allowed, range(count - len(free)), strict=False)]
                if len(free) >= count:
                    break
            self._put(connection, fingerprint, annotator, free, now + seconds, answered=False)
        return free

    def finish(self, fingerprint: str, annotator: str, instance_ids: Sequence[str]) -> None:
        """Keep instances this annotator has answered from the others."""
        until = time.time() + ANSWERED_SECONDS
        with self._database.write() as connection:
            self._put(connection, fingerprint, annotator, instance_ids, until, answered=True)

    def release(
        self, fingerprint: str, annotator: str, instance_ids: Sequence[str] | None = None
    ) -> None:
        """Give these instances, or all, back as far as they were not answered."""
        mine = (leases.c.fingerprint == fingerprint) & (leases.c.annotator == annotator)
        gone = sa.delete(leases).where(mine, ~leases.c.answered)
        with self._database.write() as connection:
            if instance_ids is None:
                connection.execute(gone)
            for chunk in _chunks(instance_ids or ()):
                connection.execute(gone.where(leases.c.instance_id.in_(chunk)))

    def second_opinions(self, fingerprint: str, annotator: str, overlap: float) -> list[str]:
        """Return instances to be shared that exactly one other person has answered."""
        query = select(leases.c.instance_id, leases.c.annotator, leases.c.answered)
        who: dict[str, list[tuple[str, bool]]] = defaultdict(list)
        with self._database.read() as connection:
            rows = connection.execute(query.where(leases.c.fingerprint == fingerprint)).all()
        for instance_id, other, answered in rows:
            who[instance_id].append((other, answered))
        return sorted(
            one
            for one, holders in who.items()
            if _is_shared(one, overlap)
            and (len(holders) == 1 and holders[0][1] and holders[0][0] != annotator)
        )

    def _put(
        self,
        connection: Connection,
        fingerprint: str,
        annotator: str,
        instance_ids: Iterable[str],
        until: float,
        *,
        answered: bool,
    ) -> None:
        mine = (leases.c.fingerprint == fingerprint) & (leases.c.annotator == annotator)
        for chunk in _chunks(instance_ids):
            change = sa.update(leases).where(mine, leases.c.instance_id.in_(chunk))
            longer = sa.case((leases.c.until > until, leases.c.until), else_=until)
            sure = sa.or_(leases.c.answered, sa.literal(answered))
            connection.execute(change.values(until=longer, answered=sure))
            key = {"fingerprint": fingerprint, "annotator": annotator}
            new = {"until": until, "answered": answered}
            rows = [{**key, "instance_id": one, **new} for one in chunk]
            self._database.insert_new(connection, leases, rows)


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
