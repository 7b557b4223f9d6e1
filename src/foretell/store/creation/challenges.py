"""Unsigned challenges: requests that wait for their creator's signature. Written by creation.

All challenges live equally long, so the oldest of several is the first to expire, and what is counted of a source or
of all is in an index.
"""

from typing import Final, NamedTuple

import sqlalchemy as sa

from foretell.domain.creation.request import Challenge, RequestStatus
from foretell.domain.values.hexadecimal import Address
from foretell.store.database import Transaction
from foretell.store.tables import requests


class Unsigned(NamedTuple):
    """The unsigned challenges of a creator, of a source, or of all."""

    creator: Address | None = None
    source: str | None = None

    def conditions(self) -> list[sa.ColumnElement[bool]]:
        """Return the conditions on a row of requests."""
        of_creator = [] if self.creator is None else [requests.c.creator == self.creator]
        of_source = [] if self.source is None else [requests.c.source == self.source]
        return [requests.c.status == RequestStatus.AUTH_PENDING, *of_creator, *of_source]


EVERYWHERE: Final = Unsigned()


async def record_challenge(tx: Transaction, challenge: Challenge, source: str, now_ms: int) -> None:
    """Store a new request that waits for its creator's signature."""
    await tx.execute(
        requests.insert().values(
            request_id=challenge.request_id,
            creator=challenge.creator,
            chain_id=challenge.chain_id,
            payload_hash=challenge.payload_hash,
            nonce=challenge.nonce,
            source=source,
            expires_at_ms=challenge.expires_at_ms,
            created_at_ms=now_ms,
            updated_at_ms=now_ms,
            entered_at_ms=now_ms,
            status=RequestStatus.AUTH_PENDING,
            images={},
            register_results=[],
            metadata_updates=[],
            metadata_plan=[],
        )
    )


async def count_unsigned(tx: Transaction, group: Unsigned, since_ms: int = 0) -> int:
    """Return how many challenges of a group are stored that expire at a time or later."""
    conditions = [*group.conditions(), requests.c.expires_at_ms >= since_ms]
    row = await tx.first(sa.select(sa.func.count()).select_from(requests).where(*conditions))
    assert row is not None
    return int(row[0])


async def make_room(tx: Transaction, group: Unsigned, most: int, now_ms: int) -> None:
    """Delete challenges of a group that can still be signed, until fewer than `most` are left.

    The source with most of them gives up its oldest; of two that have as many, the one with the older.
    """
    surplus = await count_unsigned(tx, group, now_ms) - most + 1
    waiting = [*group.conditions(), requests.c.expires_at_ms >= now_ms]
    greediest = (
        sa.select(requests.c.source)
        .where(*waiting)
        .group_by(requests.c.source)
        .order_by(sa.func.count().desc(), sa.func.min(requests.c.expires_at_ms))
        .limit(1)
    )
    for _ in range(surplus):
        oldest = (
            sa.select(requests.c.request_id)
            .where(*waiting, requests.c.source == greediest.scalar_subquery())
            .order_by(requests.c.created_at_ms, requests.c.request_id)
            .limit(1)
        )
        await tx.execute(requests.delete().where(requests.c.request_id.in_(oldest)))


async def drop_expired(tx: Transaction, before_ms: int) -> int:
    """Delete unsigned challenges that expired before a time; return how many."""
    return await tx.execute(
        requests.delete().where(*EVERYWHERE.conditions(), requests.c.expires_at_ms < before_ms)
    )


async def drop_surplus(tx: Transaction, group: Unsigned, most: int, now_ms: int) -> int:
    """Delete expired challenges, the oldest first, while a group has more than `most` unsigned ones.

    Challenges that can still be signed stay, however many there are.
    """
    surplus = (
        sa.select(requests.c.request_id)
        .where(*group.conditions())
        .order_by(requests.c.created_at_ms.desc(), requests.c.request_id.desc())
        .offset(most)
    )
    return await tx.execute(
        requests.delete().where(
            requests.c.status == RequestStatus.AUTH_PENDING,
            requests.c.expires_at_ms < now_ms,
            requests.c.request_id.in_(surplus),
        )
    )
