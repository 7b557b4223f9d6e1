"""Preparations: how many run with how many bytes of payloads and images, and plans that wait. Read by creation."""

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from foretell.domain.creation.preparation_bounds import (
    UNPAID_COUNTED_MS,
    UNPAID_OF_CREATOR_MAX,
    UNPAID_OF_SOURCE_MAX,
    PreparationUse,
    PreparationUses,
    UnpaidUse,
    UnpaidUses,
)
from foretell.domain.creation.request import RequestStatus
from foretell.domain.values.hexadecimal import Address
from foretell.store.creation.requests import RUNNING_MAX
from foretell.store.database import Transaction
from foretell.store.tables import request_images, requests


async def load_preparation_uses(tx: Transaction, source: str, creator: Address) -> PreparationUses:
    """Return the use of a creator, of a client address, and of all.

    The preparations are bounded in number, so they are added up; of their contents the lengths are read only. SQLite
    keeps the address behind the payload in a row, so that it is looked up in an index and not read.
    """
    held = _held()
    is_of_creator = held.c.creator == creator
    all_row = await tx.first(sa.select(*_sums(held, is_of_creator), *_sums(held, sa.true())))
    of_source = _held(requests.c.source == source)
    source_row = await tx.first(sa.select(*_sums(of_source, sa.true())))
    assert all_row is not None
    assert source_row is not None
    return PreparationUses(
        of_creator=_use(all_row[:3]), of_source=_use(source_row), of_all=_use(all_row[3:])
    )


async def load_unpaid_uses(
    tx: Transaction, source: str, creator: Address, now_ms: int
) -> UnpaidUses:
    """Return how many plans of the last day wait for their transactions, up to the bounds."""
    is_of_creator, is_of_source = requests.c.creator == creator, requests.c.source == source
    return UnpaidUses(
        await _load_unpaid(tx, is_of_creator, UNPAID_OF_CREATOR_MAX, now_ms),
        await _load_unpaid(tx, is_of_source, UNPAID_OF_SOURCE_MAX, now_ms),
    )


async def _load_unpaid(
    tx: Transaction, group: sa.ColumnElement[bool], most: int, now_ms: int
) -> UnpaidUse:
    is_unpaid = requests.c.status == RequestStatus.PREPARED
    is_new = requests.c.created_at_ms > now_ms - UNPAID_COUNTED_MS
    found = (
        sa.select(requests.c.created_at_ms).where(is_unpaid, group, is_new).limit(most).subquery()
    )
    number, first = sa.func.count(), sa.func.min(found.c.created_at_ms)
    row = await tx.first(sa.select(number.label("number"), first.label("first_at_ms")))
    assert row is not None
    return UnpaidUse(row.number, row.first_at_ms or 0)


async def forget_sources(tx: Transaction, before_ms: int, most: int) -> int:
    """Delete the client addresses of plans whose challenge expired before, at most so many; return the number."""
    old = (
        sa.select(requests.c.request_id)
        .where(
            requests.c.status == RequestStatus.PREPARED,
            requests.c.source > "",
            requests.c.expires_at_ms < before_ms,
        )
        .limit(most)
    )
    return await tx.execute(
        requests.update().where(requests.c.request_id.in_(old)).values(source="")
    )


def _held(*conditions: sa.ColumnElement[bool]) -> sa.Subquery:
    """Return the creator, the start and the bytes of each preparation that meets conditions."""
    images = (
        sa.select(sa.func.sum(sa.func.length(request_images.c.content)))
        .where(request_images.c.request_id == requests.c.request_id)
        .scalar_subquery()
    )
    payload_bytes = sa.func.coalesce(sa.func.length(requests.c.payload), 0)
    return (
        sa.select(
            requests.c.creator,
            requests.c.entered_at_ms,
            (payload_bytes + sa.func.coalesce(images, 0)).label("size_bytes"),
        )
        .where(requests.c.status == RequestStatus.PREPARE_RUNNING, *conditions)
        .limit(RUNNING_MAX)  # with it SQLite computes the bytes of each once
        .subquery()
    )


def _sums(held: sa.Subquery, group: sa.ColumnElement[bool]) -> list[sa.ColumnElement[Any]]:
    """Return the number of a group, its bytes, and the time of its first."""
    return [
        sa.func.count().filter(group),
        sa.func.coalesce(sa.func.sum(held.c.size_bytes).filter(group), 0),
        sa.func.min(held.c.entered_at_ms).filter(group),
    ]


def _use(sums: Sequence[Any]) -> PreparationUse:
    number, size_bytes, first_at_ms = sums
    return PreparationUse(number, int(size_bytes), first_at_ms)
